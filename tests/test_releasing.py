"""A table of histories in, a table of reports out: the same kind, the same promises as the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sottovoce as sv

PRIOR = sv.Prior(["a", "b", "c"], [0.6, 0.3, 0.1])
ONE = sv.certify(sv.kernel_clip(PRIOR, 2.0))
ROWS: dict[str, list[Any]] = {"user": [7, 7, 8, 9, 9, 9], "item": ["a", "c", "c", "b", "c", "c"]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_the_same_kind_of_table_comes_back_and_integer_users_stay_integers(make: Any) -> None:
    found = sv.release_table(make(ROWS), ONE)
    assert type(found) is type(make(ROWS))
    plain = pl.from_pandas(found) if isinstance(found, pd.DataFrame) else pl.DataFrame(found)
    assert plain.columns == ["user", "item", "epsilon", "mechanism"]
    assert sorted(plain["user"].to_list()) == [7, 8, 9]
    assert set(plain["item"].to_list()) <= {"a", "b", "c"}
    assert plain["mechanism"].unique().to_list() == [ONE.digest]
    assert plain["epsilon"].unique().to_list() == ["2"]
    merged = pl.DataFrame(ROWS).join(plain.select("user"), on="user")
    assert len(merged) == len(ROWS["user"])
    assert sv.estimate(ONE, found, item="item", user="user").reports == 3


def test_with_a_ledger_everybody_is_charged_once_and_repeated_for_nothing(tmp_path: Path) -> None:
    ledger = sv.Ledger.create(tmp_path / "budget.db", budget=3)
    first = sv.release_table(pl.DataFrame(ROWS), ONE, ledger=ledger, epoch="2026-11")
    again = sv.release_table(pl.DataFrame(ROWS), ONE, ledger=ledger, epoch="2026-11")
    assert first.equals(again)
    assert [ledger.left(user, "2026-11") for user in (7, 8, 9)] == [1, 1, 1]
    other = sv.certify(sv.kernel_clip(PRIOR, 1.5))
    with pytest.raises(sv.errors.BudgetError, match="nobody was charged"):
        sv.release_table(pl.DataFrame(ROWS), other, ledger=ledger, epoch="2026-11")
    more = {"user": [*ROWS["user"], 10], "item": [*ROWS["item"], "a"]}
    skipped = sv.release_table(pl.DataFrame(more), other, ledger=ledger, epoch="2026-11", exhausted="skip")
    assert skipped["user"].to_list() == [10]


def test_what_is_refused_has_charged_nobody(tmp_path: Path) -> None:
    ledger = sv.Ledger.create(tmp_path / "budget.db", budget=3)
    wrong = {"user": [1, 2], "item": ["a", "nowhere"]}
    with pytest.raises(sv.errors.UserDataError):
        sv.release_table(pl.DataFrame(wrong), ONE, ledger=ledger, unknown="error")
    assert ledger.users() == 0
    marked = sv.certify(
        sv.kernel_clip(sv.build_prior(pl.DataFrame(ROWS), item="item", user="user", provenance="users"), 2.0),
        provenance="users",
    )
    with pytest.raises(sv.errors.PriorError, match="provenance='users'"):
        sv.release_table(pl.DataFrame(ROWS), marked, ledger=ledger)
    assert ledger.users() == 0


def test_groups_have_a_mechanism_each() -> None:
    rows = {**ROWS, "region": ["n", "n", "s", "s", "s", "s"]}
    known = {"n": ONE, "s": sv.certify(sv.kernel_clip(PRIOR, 2.0))}
    found = sv.release_table(pl.DataFrame(rows), known, by="region")
    assert found.columns == ["user", "region", "item", "epsilon", "mechanism"]
    assert sorted(found["user"].to_list()) == [7, 8, 9]
    assert found.filter(pl.col("user") == 9)["region"].unique().to_list() == ["s"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"by": "region"}, "one per group needs"),
        ({"epoch": "x"}, "need a ledger"),
        ({"item": "epsilon"}, "must differ"),
        ({"mechanism": sv.kernel_clip(PRIOR, 1.0)}, "must be a Mechanism"),
        ({"frame": "members.csv"}, "sottovoce release"),
    ],
)
def test_bad_arguments_say_what_to_do(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"frame": pl.DataFrame(ROWS), "mechanism": ONE, **change}
    with pytest.raises(sv.errors.ParameterError, match=words):
        sv.release_table(given.pop("frame"), given.pop("mechanism"), **given)


def test_users_go_straight_into_samplers_and_mechanisms() -> None:
    users = sv.read_users(pl.DataFrame(ROWS), prior=PRIOR, user="user", item="item")
    sampler = sv.kernel_clip(PRIOR, 2.0)
    np.testing.assert_array_equal(sampler.distribution(users), sampler.distribution(users.p))
    np.testing.assert_array_equal(sampler.divergence(users, sv.TV), sampler.divergence(users.p, sv.TV))
    assert len(ONE.release_many(users)) == 3
    kernel = sv.minimax_kernel(PRIOR, 2.0)
    np.testing.assert_array_equal(kernel.distribution(users), kernel.distribution(users.p))
    other = sv.Prior(["c", "b", "a"], [0.6, 0.3, 0.1])
    for call in (
        sv.certify(sv.kernel_clip(other, 1.0)).release_many,
        sv.kernel_clip(other, 1.0).distribution,
    ):
        with pytest.raises(sv.errors.UserDataError, match="other categories"):
            call(users)
