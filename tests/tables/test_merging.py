"""Rare categories merged into one: the prior as by hand, and users' items that it lacks counted as it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import polars as pl
import pytest

import sottovoce as sv
from sottovoce.tables import priors as priors_table
from sottovoce.tables import users as users_table
from sottovoce.tables.priors import PriorOptions
from sottovoce.tables.users import ReadingOptions

ZEROS = "item,count\nDrama,30\nWar,0\nNoir,0\nOpera,10\n"


def shares(prior: sv.Prior) -> dict[object, float]:
    return dict(zip(prior.categories, prior.probabilities.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_rare_categories_are_merged_as_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"i{i}" for i in range(9)] + (["rest"] if seed % 2 else [])
    held = {group: {name: int(rng.integers(0, 12)) for name in names} for group in ("a", "b", "c")}
    for amounts in held.values():
        amounts["i0"], amounts["i1"] = 40, 2  # one that stays, one that is rare
    rows = [(group, name, count) for group, one in held.items() for name, count in one.items()]
    frame = pl.DataFrame(rows, schema=["group", "item", "count"], orient="row")
    below = [3, 5.5, 12][seed % 3]
    counts = {group: {name: Fraction(n) for name, n in one.items()} for group, one in held.items()}
    expected = oracles.merged_by_hand(counts, "rest", Fraction(below))
    priors = sv.build_prior(
        frame, item="item", weight="count", by="group", merge_rare="rest", rare_below=below
    )
    assert list(priors) == list(expected)
    for group, prior in priors.items():
        whole = sum(expected[group].values())
        assert shares(prior) == pytest.approx(
            {name: float(count / whole) for name, count in expected[group].items()}, rel=1e-12
        )
    assert len({prior.categories for prior in priors.values()}) == 1  # groups still share their categories


def test_without_a_number_those_without_a_count_are_rare() -> None:
    frame = pl.DataFrame({"item": ["a", "b", "c", "rest"], "count": [6, 0, 1, 3]})
    named: dict[str, Any] = {"item": "item", "weight": "count"}
    assert shares(sv.build_prior(frame, **named, merge_rare="rest")) == {"a": 0.6, "c": 0.1, "rest": 0.3}
    assert shares(sv.build_prior(frame, **named, merge_rare="more", smoothing=1)) == pytest.approx(
        {"a": 7 / 14, "c": 2 / 14, "rest": 4 / 14, "more": 1 / 14}
    )
    probabilities = pl.DataFrame({"item": ["a", "b"], "count": [0.75, 0.25]})
    assert shares(sv.build_prior(probabilities, **named, merge_rare="rest")) == {"a": 0.75, "b": 0.25}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"merge_rare": "rest"},
            r"2 categories to be merged .* \('Noir', 'War'\) .*rare_below=11",
        ),
        ({"merge_rare": "rest", "rare_below": 31}, "all 4 categories are rare"),
        ({"rare_below": 3}, "merge_rare='NAME'"),
        ({"merge_rare": "rest", "rare_below": 0}, "rare_below"),
        ({"merge_rare": "rest", "drop_zero": True}, "drop_zero and merge_rare"),
        ({}, "2 of 4 categories have none.*merge_rare='NAME'"),
    ],
)
def test_what_gives_no_prior_is_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    (tmp_path / "t.csv").write_text(ZEROS)
    with pytest.raises(sv.errors.SottovoceError, match=words):
        priors_table.read_priors(tmp_path / "t.csv", options=PriorOptions(**options))


def test_the_note_says_how_many_and_names_only_what_is_public(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(ZEROS)
    rare = PriorOptions(merge_rare="rest", rare_below=11)
    found = priors_table.read_priors(path, options=rare)
    assert shares(found.priors["all"]) == {"Drama": 0.75, "rest": 0.25}
    assert found.how.endswith("; 3 categories below 11 merged into 'rest' ('Noir', 'Opera', 'War')")
    private = priors_table.read_priors(path, options=rare, provenance="users")
    assert private.how.endswith("; 3 categories below 11 merged into 'rest'")
    with pytest.raises(sv.errors.PriorError, match="2 categories to be merged into 'rest' have") as refused:
        priors_table.read_priors(path, options=PriorOptions(merge_rare="rest"), provenance="users")
    assert "Noir" not in str(refused.value)
    assert " 11" not in str(refused.value)
    nothing = priors_table.read_priors(path, options=PriorOptions(merge_rare="Drama", rare_below=0.5))
    assert "2 categories below 0.5 merged into 'Drama'" in nothing.how
    path.write_text("item,count\na,30\nb,2\nrest,1\n")
    itself = priors_table.read_priors(path, options=PriorOptions(merge_rare="rest", rare_below=5))
    assert itself.how.endswith("; 1 categories below 5 merged into 'rest' ('b')")  # not into itself
    path.write_text("item,count\na,3\nb,1\n")
    assert priors_table.read_priors(path, options=PriorOptions(merge_rare="rest")).how.endswith(
        "nothing merged"
    )


def test_records_and_ready_priors(tmp_path: Path) -> None:
    path = tmp_path / "o.json"
    counts = {"Drama": 30, "War": 4, "Noir": 0, "Opera": 6}
    path.write_text(json.dumps([{"item": name, "count": count} for name, count in counts.items()]))
    rare = PriorOptions(merge_rare="rest", rare_below=5)
    made = priors_table.read_priors(path, options=rare)
    assert shares(made.priors["all"]) == {"Drama": 0.75, "Opera": 0.15, "rest": 0.1}
    assert made.how == "amounts from column 'count'; 2 categories below 5 merged into 'rest' ('Noir', 'War')"
    priors_table.write_priors(made, tmp_path / "p.json")
    assert priors_table.read_priors(tmp_path / "p.json").priors["all"].digest == made.priors["all"].digest
    with pytest.raises(sv.errors.ParameterError, match="merge_rare is for tables"):
        priors_table.read_priors(tmp_path / "p.json", options=PriorOptions(merge_rare="rest"))
    with pytest.raises(sv.errors.ParameterError, match="merge_rare is for tables"):
        priors_table.read_priors(tmp_path / "p.json", options=rare)
    path.write_text(json.dumps(counts))
    with pytest.raises(sv.errors.TableError, match="there is no column 'item'"):
        priors_table.read_priors(path, options=rare)


@pytest.mark.parametrize("weighted", [False, True], ids=["runs", "cells"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_items_that_the_prior_lacks_are_counted_as_one(tmp_path: Path, kind: str, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    rows = [(f"u{i % 30}", f"i{rng.integers(0, 12)}", int(rng.integers(1, 4))) for i in range(300)]
    frame = pl.DataFrame(rows, schema=["user", "item", "w"], orient="row")
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    known = sv.Prior(["i1", "i2", "rest"], [0.5, 0.3, 0.2])
    table: Any = frame if kind == "frame" else tmp_path / f"t.{kind}"
    users = sv.read_users(
        table, user="user", item="item", weight="w" if weighted else None, prior=known, unknown="other",
        other="rest",
    )  # fmt: skip
    by_hand: dict[str, list[Fraction]] = {}
    for who, item, weight in rows:
        place = {"i1": 0, "i2": 1}.get(item, 2)
        by_hand.setdefault(who, [Fraction(0)] * 3)[place] += weight if weighted else 1
    assert users.ids == tuple(sorted(by_hand))
    laws = [[float(one / sum(held)) for one in held] for _, held in sorted(by_hand.items())]
    np.testing.assert_allclose(users.p.toarray(), laws, rtol=1e-12)
    assert users.moved == sum(item not in ("i1", "i2") for _, item, _ in rows)


def test_the_refusal_counts_what_is_unknown_and_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,item,g\n1,a,x\n1,Orchid,x\n2,Orchid,y\n2,Lily,y\n3,a,y\n")
    known = {"x": sv.Prior(["a", "rest"], [0.5, 0.5]), "y": sv.Prior(["a", "b"], [0.5, 0.5])}
    with pytest.raises(sv.errors.UserDataError, match="3 of 5 rows do not name one;") as refused:
        users_table.read_user_groups(path, known, by="g")
    assert "other='NAME'" in str(refused.value)
    assert "Orchid" not in str(refused.value)
    merging = ReadingOptions(unknown="other", other="rest")
    with pytest.raises(sv.errors.TableError, match=r"no category 'rest' .* in the prior of group 'y'"):
        users_table.read_user_groups(path, known, by="g", options=merging)
    both = dict.fromkeys(known, known["x"])
    users, how = users_table.read_user_groups(path, both, by="g", options=merging)
    assert how.endswith("; 3 rows with unknown items counted as rest")
    assert users["y"].p.toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_table_is_released_with_items_that_the_prior_lacks() -> None:
    prior = sv.Prior(["a", "rest"], [0.9, 0.1])
    mechanism = sv.certify(sv.kernel_clip(prior, 2.0))
    frame = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "Orchid", "Lily"]})
    with pytest.raises(sv.errors.UserDataError, match="2 of 3 rows do not name one"):
        sv.release_table(frame, mechanism, unknown="error")
    found = sv.release_table(frame, mechanism, unknown="other", other="rest")
    assert found["user"].to_list() == [1, 2]
    assert set(found["item"]) <= {"a", "rest"}
