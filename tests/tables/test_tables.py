"""Tables of every library and file become the same priors and users, counted as by hand."""

from __future__ import annotations

import datetime
import gzip
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict

import duckdb
import numpy as np
import oracles
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rows import columns, table

import sottovoce as sv
from sottovoce.prior import FROM_USERS
from sottovoce.release.file import ANY
from sottovoce.tables import priors as priors_table
from sottovoce.tables.files import Dialect
from sottovoce.tables.priors import PriorOptions


class Named(TypedDict):
    """Columns of the table that `rows` makes."""

    user: str
    item: str
    weight: str


NAMED: Named = {"user": "who", "item": "genre", "weight": "stars"}


def duck(data: dict[str, list[Any]]) -> Any:
    arrow = pa.table(data)
    return duckdb.connect().from_arrow(arrow)


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas-categorical": lambda data: pd.DataFrame(data).astype({"genre": "category", "who": "category"}),
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "polars-categorical": lambda data: pl.DataFrame(data).with_columns(pl.col("genre").cast(pl.Categorical)),
    "pyarrow": pa.table,
    "duckdb": duck,
}


def same_priors(found: dict[str, sv.Prior], expected: dict[str, dict[str, Fraction]]) -> None:
    assert list(found) == list(expected)
    for group, prior in found.items():
        by_hand = expected[group]
        assert list(prior.categories) == list(by_hand)
        np.testing.assert_allclose(prior.probabilities, [float(v) for v in by_hand.values()], rtol=1e-12)


def same_users(found: dict[str, sv.Users], expected: dict[str, dict[str, list[Fraction]]]) -> None:
    assert list(found) == [group for group in expected if expected[group]]
    for group, users in found.items():
        assert users.ids == tuple(expected[group])
        by_hand = [[float(v) for v in law] for law in expected[group].values()]
        np.testing.assert_allclose(users.p.toarray(), by_hand, rtol=1e-12)


@pytest.mark.parametrize("kind", FRAMES)
def test_every_library_counts_as_by_hand(kind: str) -> None:
    rows = table()
    frame = FRAMES[kind](columns(rows))
    priors = sv.build_prior(frame, **NAMED, by="age", smoothing=1)
    expected = oracles.priors_by_hand(rows, smoothing=1)
    same_priors(priors, expected)
    few = {group: dict(list(law.items())[:5]) for group, law in expected.items()}
    known = {group: sv.Prior.from_counts(dict.fromkeys([*law, "rest"], 1)) for group, law in few.items()}
    users = sv.read_users(
        frame, **NAMED, by="age", prior=known, unknown="other", other="rest", unknown_groups="drop",
        several_groups="allow",
    )  # fmt: skip
    names = {group: list(map(str, prior.categories)) for group, prior in known.items()}
    same_users(users, oracles.users_by_hand(rows, names, other="rest"))


@pytest.mark.parametrize("seed", range(12))
def test_every_option_counts_as_by_hand(seed: int) -> None:
    rows = table(seed, rows=150 + 40 * seed, zeros=seed % 2 == 1)
    frame = pl.DataFrame(columns(rows))
    expected = oracles.priors_by_hand(rows, smoothing=1)
    priors = sv.build_prior(frame, **NAMED, by="age", smoothing=1)
    same_priors(priors, expected)
    names = {group: list(law)[: 3 + seed] for group, law in expected.items()}
    known = {group: sv.Prior.uniform(law) for group, law in names.items()}
    for unknown, other in (("drop", None), ("other", "i01")):
        if other is not None and any(other not in law for law in names.values()):
            continue
        users = sv.read_users(
            frame, **NAMED, by="age", prior=known, unknown=unknown, other=other or "", empty="skip",
            unknown_groups="drop", several_groups="allow",
        )  # fmt: skip
        filled = {group: one for group, one in users.items() if len(one)}
        same_users(filled, oracles.users_by_hand(rows, names, other=other))


@pytest.mark.parametrize("table", [["War", "Drama"], [], None, ""])
def test_a_table_with_a_column_for_each_category_is_to_be_reshaped(table: Any) -> None:
    frame = pl.DataFrame({"user": ["a", "b"], "War": [1, 0], "Drama": [3, 2]})
    with pytest.raises(sv.errors.ParameterError, match=r"one column; reshape a table .*UNPIVOT") as refused:
        sv.build_prior(frame, item=table)
    wide = frame.to_arrow()
    query = str(refused.value).rpartition(": ")[2]
    long = duckdb.connect().from_arrow(wide).query("wide", query)
    assert sv.build_prior(long, item="item", weight="weight").probabilities.tolist() == [5 / 6, 1 / 6]


def test_zero_weights_leave_no_trace() -> None:
    frame = pl.DataFrame({"who": ["a", "a"], "genre": ["x", "y"], "w": [0, 2]})
    users = sv.read_users(frame, user="who", item="genre", weight="w", prior=sv.Prior(["x", "y"], [0.5, 0.5]))
    assert users.p.nnz == 1


def test_paths_of_every_kind_are_tables_too(tmp_path: Path) -> None:
    rows = table(3)
    frame = pl.DataFrame(columns(rows))
    frame.write_csv(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    (tmp_path / "t.gz").write_bytes((tmp_path / "t.csv.gz").read_bytes())
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ndjson(tmp_path / "t.jsonl")
    expected = oracles.priors_by_hand(rows, smoothing=1)
    for name in ("t.csv", "t.csv.gz", "t.gz", "t.parquet", "t.jsonl"):
        same_priors(sv.build_prior(tmp_path / name, **NAMED, by="age", smoothing=1), expected)


def test_one_prior_serves_every_group() -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "genre": ["x", "y"], "age": [10, 20]})
    prior = sv.Prior(["x", "y"], [0.5, 0.5])
    users = sv.read_users(frame, user="who", item="genre", by="age", prior=prior)
    assert {group: one.ids for group, one in users.items()} == {"10": ("a",), "20": ("b",)}
    with pytest.raises(sv.errors.ParameterError, match="needs the group column: by="):
        sv.read_users(frame, user="who", item="genre", prior={"10": prior})  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars-lazy", "pyarrow", "duckdb"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"who": None}, r"^there is no column 'who'; the table has genre, stars$"),
        ({"genre": ["SECRET", None]}, r"^column 'genre' has 1 missing values$"),
        ({"who": [None, "SECRET"]}, r"^column 'who' has 1 missing values$"),
        ({"stars": ["1", "SECRET"]}, r"^column 'stars' must hold numbers: 1 of 2 rows do not$"),
        (
            {"stars": [1.0, -77.0]},
            r"^column 'stars' must hold finite numbers of at least 0: 1 of 2 rows do not$",
        ),
        ({"stars": [1.0, None]}, r"at least 0: 1 of 2 rows do not$"),
        ({"stars": [float("inf"), float("nan")]}, r"at least 0: 2 of 2 rows do not$"),
        ({"genre": [1.5, 2.0]}, r"^column 'genre' must hold text or integers, it holds fractions$"),
        ({"genre": [True, False]}, r"^column 'genre' must hold text or integers, it holds BOOLEAN$"),
    ],
)
def test_bad_tables_of_every_library(kind: str, change: dict[str, Any], message: str) -> None:
    data = {"who": ["ann", "bob"], "genre": ["War", "Drama"], "stars": [1.0, 2.0], **change}
    frame = FRAMES[kind]({name: values for name, values in data.items() if values is not None})
    prior = sv.Prior(["War", "Drama"], [0.5, 0.5])
    with pytest.raises(sv.errors.TableError, match=message) as caught:
        sv.read_users(frame, user="who", item="genre", weight="stars", prior=prior)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None


def test_options_that_do_not_fit() -> None:
    frame = pl.DataFrame({"who": ["a", "b"], "genre": ["x", "y"]})
    prior = sv.Prior(["x", "y"], [0.5, 0.5])
    named: Any = {"user": "who", "item": "genre"}
    for call, message in (
        (lambda: sv.read_users(frame, **named, prior=prior, unknown="guess"), "one of error, drop, other"),
        (lambda: sv.read_users(frame, **named, prior=prior, unknown_groups="guess"), "one of error, drop"),
        (lambda: sv.read_users(frame, **named, prior=sv.Prior([1, 2], [0.5, 0.5])), "one side has text"),
        (lambda: sv.read_users(frame, **named, prior=prior, unknown="other"), "there is no category 'other'"),
        (lambda: sv.build_prior(frame, item="genre", rare_below=2), "needs a category for them"),
        (lambda: sv.build_prior(frame, item="genre", dialect=Dialect(missing="drop")), "for the path of a"),
    ):
        with pytest.raises(sv.errors.SottovoceError, match=message):
            call()


# --- the mark of a prior that was made from the users it serves --------------------------------------------


def test_a_prior_from_its_own_users_says_so_everywhere(tmp_path: Path) -> None:
    frame = pl.DataFrame({"who": ["a", "a", "b"], "genre": ["x", "y", "y"]})
    prior = sv.build_prior(frame, item="genre", user="who")
    assert prior.provenance == "users"
    assert "made from the users it serves" in repr(prior)
    assert sv.build_prior(frame, item="genre", user="who", provenance="public").provenance == "public"
    assert sv.build_prior(frame, item="genre").provenance == "public"
    assert sv.build_prior(frame, item="genre", provenance="users").provenance == "users"
    assert prior != sv.Prior(prior.categories, prior.probabilities)
    sampler = sv.kernel_clip(prior, 1.0)
    compared = sv.compare([[0.5, 0.5]], sampler)
    assert compared.provenance == "users"
    assert compared.to_dicts()[0]["provenance"] == "users"
    assert FROM_USERS in str(compared)
    with pytest.raises(sv.errors.PriorError, match="provenance='users'"):
        sv.certify(sampler)
    mechanism = sv.certify(sampler, provenance="users")
    assert "prior made from the users it serves" in repr(mechanism)
    mechanism.save(tmp_path / "m.json")
    again = sv.load(tmp_path / "m.json", policy=ANY)
    assert again.provenance == "users"
    assert again == mechanism
    public = sv.certify(sv.kernel_clip(sv.Prior(prior.categories, prior.probabilities), 1.0))
    assert "provenance" not in public.document()
    assert public != mechanism


def test_users_recognise_a_prior_that_is_their_own_average() -> None:
    rows = table(5)
    frame = pl.DataFrame(columns(rows))

    def marked(users: Any, prior: sv.Prior) -> bool:
        return sv.compare(users, sv.kernel_clip(prior, 1.0)).provenance == "users"

    for smoothing in (0.0, 0.5):
        public = sv.build_prior(frame, **NAMED, smoothing=smoothing, provenance="public")  # a lie
        assert marked(sv.read_users(frame, **NAMED, prior=public), public)
    users = sv.read_users(frame, **NAMED, prior=public)
    mean = sv.Prior.from_counts(users.p.toarray().mean(axis=0), public.categories)
    assert marked(users, mean)
    survey = sv.build_prior(pl.DataFrame(columns(table(6))), **NAMED, provenance="public")
    users = sv.read_users(frame, **NAMED, prior=public)
    assert list(survey.categories) == list(public.categories)
    assert not marked(users, survey)  # what counts is the sampler's prior, not the one they were read against
    assert marked(sv.read_users(frame, **NAMED, prior=survey), public)
    public = sv.build_prior(frame, **NAMED, provenance="public")
    groups = sv.read_users(frame, **NAMED, by="age", prior=public, several_groups="allow")
    together = sv.compare(groups, {name: sv.kernel_clip(public, 1.0) for name in groups})
    assert together.provenance == "users"  # no group's average, but that of all groups together
    uniform = sv.Prior.uniform(["x", "y"])
    both = pl.DataFrame({"who": ["a", "b"], "genre": ["x", "y"]})
    assert not marked(sv.read_users(both, user="who", item="genre", prior=uniform), uniform)


def test_a_file_with_users_is_not_taken_for_public_data(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("user,item\na,x\nb,y\nb,x\n")
    assert priors_table.read_priors(tmp_path / "h.csv").priors["all"].provenance == "users"
    assert (
        priors_table.read_priors(tmp_path / "h.csv", provenance="public").priors["all"].provenance == "public"
    )
    (tmp_path / "s.csv").write_text("item,count\nx,2\ny,1\n")
    assert priors_table.read_priors(tmp_path / "s.csv").priors["all"].provenance == "public"


@pytest.mark.parametrize("by", [None, "age"])
@pytest.mark.parametrize("public", [True, None])
def test_prior_files_come_back_bit_for_bit_with_their_mark(
    tmp_path: Path, by: str | None, public: bool | None
) -> None:
    pl.DataFrame(columns(table(2))).write_csv(tmp_path / "t.csv")
    made = (
        priors_table.read_priors(
            tmp_path / "t.csv",
            item="genre",
            user="who",
            by=by,
            provenance="public",
            options=PriorOptions(smoothing=2),
        )
        if public
        else priors_table.read_priors(
            tmp_path / "t.csv",
            item="genre",
            user="who",
            by=by,
            provenance="users",
            options=PriorOptions(smoothing=1),
        )
    )
    priors_table.write_priors(made, tmp_path / "p.json")
    again = priors_table.read_priors(tmp_path / "p.json")
    assert again.priors == made.priors
    assert again.by == by
    assert all(prior.provenance == ("public" if public else "users") for prior in again.priors.values())


def test_broken_prior_files(tmp_path: Path) -> None:
    good = '{"format": "sottovoce-prior", "version": 1, "by": null, "provenance": "public", "how": "", '
    law = '{"categories": ["a", "b"], "probabilities": [0.5, 0.5]}'
    for text, by, message in (
        (good + '"groups": {}}', None, "not a prior file of version 1"),
        (good + '"groups": {"all": 3}}', None, "not a prior file of version 1"),
        (good.replace("1", "2") + f'"groups": {{"all": {law}}}}}', None, "not a prior file of version 1"),
        (
            good.replace("public", "private") + f'"groups": {{"all": {law}}}}}',
            None,
            "not a prior file of version 1",
        ),
        (good + f'"groups": {{"all": {law.replace("0.5]", "0.4]")}}}}}', None, "sum to 1"),
        (good + f'"groups": {{"all": {law}}}}}', "age", "by='age' does not fit this prior: it has no groups"),
    ):
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(sv.errors.SottovoceError, match=message):
            priors_table.read_priors(tmp_path / "p.json", by=by)


# --- what a hostile reader found ---


def test_a_file_name_is_no_pattern(tmp_path: Path) -> None:
    for suffix in ("csv", "tsv", "jsonl", "parquet"):
        for name, item in (("m[1]", "War"), ("m1", "Drama"), ("x*", "War"), ("x2", "Drama")):
            frame = pl.DataFrame({"item": [item]})
            path = tmp_path / f"{name}.{suffix}"
            writers: dict[str, Callable[[Path], object]] = {
                "csv": frame.write_csv,
                "tsv": frame.write_csv,
                "jsonl": frame.write_ndjson,
                "parquet": frame.write_parquet,
            }
            writers[suffix](path)
        for name in ("m[1]", "x*"):
            assert sv.build_prior(tmp_path / f"{name}.{suffix}", item="item").categories == ("War",)


def test_json_types_come_from_all_rows(tmp_path: Path) -> None:
    rows = ['{"item": "War", "count": 2}'] * 100 + ['{"item": "Drama", "count": 1.9}'] * 1000
    (tmp_path / "t.json").write_text(f"[{','.join(rows)}]")
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    for name in ("t.json", "t.jsonl"):
        prior = sv.build_prior(tmp_path / name, item="item", weight="count")
        assert prior.probabilities.tolist() == pytest.approx([1900 / 2100, 200 / 2100])


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"u": [uuid.UUID(int=1), uuid.UUID(int=1)], "i": ["x", "y"]}),
        pl.DataFrame({"u": pl.Series(["a", "b"], dtype=pl.Object), "i": ["x", "y"]}),
        pd.DataFrame({"u": [Decimal("1.5"), Decimal("2")], "i": ["x", "y"]}),
        pd.DataFrame({"u": [datetime.date(2024, 1, 1)] * 2, "i": ["x", "y"]}),
        pd.DataFrame({"u": pd.Series([True, False], dtype=object), "i": ["x", "y"]}),
        pd.DataFrame({"u": [b"a", b"b"], "i": ["x", "y"]}),
        pd.DataFrame({"u": [("SECRET", 1), ("b", 2)], "i": ["x", "y"]}),
        pd.DataFrame({"u": ["SECRET", 7], "i": ["x", "y"]}),
        pl.DataFrame({"u": [{"SECRET": 1}, {"SECRET": 2}], "i": ["x", "y"]}),
        pa.table({"u": pa.array([2.0**60, 1.0]), "i": ["x", "y"]}),
    ],
    ids=lambda frame: str(type(frame)),
)
def test_names_are_text_or_whole_numbers_or_refused(frame: Any) -> None:
    prior = sv.Prior(["x", "y"], [0.5, 0.5])
    with pytest.raises(sv.errors.TableError, match=r"must hold text or integers|cannot be counted") as caught:
        sv.read_users(frame, user="u", item="i", prior=prior)
    assert "SECRET" not in str(caught.value)
    weighted = {"u": ["a", 7], "i": ["x", "y"], "w": [1.0, 2.0]}
    with pytest.raises(sv.errors.TableError) as caught:
        sv.read_users(pd.DataFrame(weighted), user="u", item="i", weight="w", prior=prior)
    assert "'w'" not in str(caught.value)  # the weights are fine


def test_names_that_are_the_same_number_are_one_user() -> None:
    frame = pa.table({"u": [0.0, -0.0, -0.0, 1.0], "i": ["x", "x", "y", "x"]})
    users = sv.read_users(frame, user="u", item="i", prior=sv.Prior(["x", "y"], [0.5, 0.5]))
    assert users.ids == (0, 1)
    np.testing.assert_allclose(users.p.toarray(), np.array([[2 / 3, 1 / 3], [1, 0]]))
    views = pa.table({"u": pa.array(["a", "b"], pa.string_view()), "i": ["x", "y"]})
    assert sv.read_users(views, user="u", item="i", prior=sv.Prior(["x", "y"], [0.5, 0.5])).ids == ("a", "b")


def test_ragged_lines_and_names_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("user,item,when\nann,War,2024\nSmith,John,Drama,2024\n")
    with pytest.raises(sv.errors.TableError, match="every line needs the same number of fields"):
        sv.build_prior(tmp_path / "long.csv", item="item")
    for header in ("user,item,item", "user,item, item"):
        (tmp_path / "twice.csv").write_text(f"{header}\nann,War,Drama\n")
        with pytest.raises(sv.errors.TableError, match="same name"):
            sv.build_prior(tmp_path / "twice.csv", item="item")
    relation = duckdb.connect().sql("select 1 as u, 2 as u, 'x' as i")
    if len(set(relation.columns)) < len(relation.columns):
        with pytest.raises(sv.errors.TableError, match="same name"):
            sv.build_prior(relation, item="i")


def test_weights_that_add_up_to_infinity_are_refused() -> None:
    frame = pl.DataFrame({"who": ["a", "a"], "genre": ["x", "y"], "w": [1e308, 1e308]})
    with pytest.raises(sv.errors.TableError, match="'w' adds up to infinity"):
        sv.read_users(frame, user="who", item="genre", weight="w", prior=sv.Prior(["x", "y"], [0.5, 0.5]))


def test_errors_count_all_groups_together() -> None:
    frame = pl.DataFrame({"who": ["a", "b", "c"], "genre": ["x", "z", "z"], "age": ["o", "o", "y"]})
    prior = sv.Prior(["x", "y"], [0.5, 0.5])
    with pytest.raises(sv.errors.UserDataError, match="2 of 3 rows do not name one"):
        sv.read_users(frame, user="who", item="genre", by="age", prior=prior)
    with pytest.raises(sv.errors.UserDataError, match="2 of 3 users have no usable record"):
        sv.read_users(frame, user="who", item="genre", by="age", prior=prior, unknown="drop")


def test_options_that_a_ready_prior_cannot_honour(tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text('[{"item": "a", "count": 3}, {"item": "b", "count": 2}]')
    smoothed = PriorOptions(smoothing=1)
    priors_table.write_priors(
        priors_table.read_priors(tmp_path / "o.json", options=smoothed), tmp_path / "p.json"
    )
    refused: list[dict[str, Any]] = [{"count": "n"}, {"user": "who"}]
    for given in refused:
        with pytest.raises(sv.errors.ParameterError, match="this is a prior that is made already"):
            priors_table.read_priors(tmp_path / "p.json", **given)
    with pytest.raises(sv.errors.ParameterError, match="states another provenance"):
        priors_table.read_priors(tmp_path / "p.json", provenance="users")
    with pytest.raises(
        sv.errors.ParameterError, match="smoothing is for tables, and this is a prior that is made"
    ):
        priors_table.read_priors(tmp_path / "p.json", options=smoothed)
    plain = (tmp_path / "p.json").read_text()
    for old, new in (('"by": null', '"by": 5'), ('"all"', '"young"'), ('"all"', r'"\ud800"')):
        (tmp_path / "q.json").write_text(plain.replace(old, new))
        with pytest.raises(sv.errors.TableError, match="not a prior file"):
            priors_table.read_priors(tmp_path / "q.json")
