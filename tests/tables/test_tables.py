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
from kinds import of_kind
from rows import columns, table

import sottovoce as sv
from sottovoce.prior import FROM_USERS
from sottovoce.release.file import ANY
from sottovoce.tables import priors as priors_table
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
    options: dict[str, Any] = {
        "top": 6,
        "other": "rest",
        "minimum_rows": 3,
        "minimum_users": 2,
        "smoothing": 1,
    }
    priors = sv.build_prior(frame, **NAMED, by="age", top_by="clicks", **options)
    expected = oracles.priors_by_hand(rows, **options)
    same_priors(priors, expected)
    users = sv.read_users(
        frame, **NAMED, by="age", prior=priors, minimum_rows=3, unknown="other", other="rest",
        unknown_groups="drop", several_groups="allow",
    )  # fmt: skip
    names = {group: list(law) for group, law in expected.items()}
    same_users(users, oracles.users_by_hand(rows, names, other="rest", minimum_rows=3))


@pytest.mark.parametrize("seed", range(12))
def test_every_option_counts_as_by_hand(seed: int) -> None:
    rows = table(seed, rows=150 + 40 * seed, zeros=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {
        "top": [None, 1, 4, 50][seed % 4],
        "other": [None, "rest", "else"][seed % 3],
        "minimum_rows": int(rng.integers(0, 6)),
        "minimum_users": int(rng.integers(0, 5)),
        "average": ["rows", "users"][seed // 2 % 2],
        "smoothing": 1,
    }
    counted = sv.count_table(
        pl.DataFrame(columns(rows)), user="who", item="genre", weight="stars", by="age", top_by="clicks"
    )
    expected = oracles.priors_by_hand(rows, **options)
    priors = of_kind(sv.build_prior(counted, **options), dict)
    same_priors(priors, expected)
    names = {group: list(law) for group, law in expected.items()}
    for unknown, other in (("drop", None), ("other", options["other"] or "i01")):
        if other is not None and any(other not in law for law in names.values()):
            continue
        users = sv.read_users(
            counted,
            prior=priors,
            minimum_rows=options["minimum_rows"],
            unknown=unknown,
            other=other or "",
            empty="skip",
            unknown_groups="drop",
            several_groups="allow",
        )
        least = options["minimum_rows"]
        filled = {group: one for group, one in of_kind(users, dict).items() if len(one)}
        same_users(filled, oracles.users_by_hand(rows, names, other=other, minimum_rows=least))


def test_ties_at_the_top_go_to_the_name_that_sorts_first() -> None:
    frame = pl.DataFrame({"item": ["c", "b", "a", "d", "d"]})
    assert sv.build_prior(frame, item="item", top=2).categories == ("a", "d")


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars-lazy", "pyarrow", "duckdb"])
def test_wide_tables_equal_long_ones(kind: str) -> None:
    wide = {"who": ["ann", "bob", "cy"], "age": ["o", "y", "y"], "War": [1, 0, 2], "Drama": [3, 2, 0]}
    frame = FRAMES[kind](wide)
    prior = sv.build_prior(frame, item=["War", "Drama"])
    assert prior.categories == ("Drama", "War")
    assert prior.probabilities.tolist() == [5 / 8, 3 / 8]
    users = sv.read_users(frame, user="who", item=["War", "Drama"], prior=prior)
    assert users.ids == ("ann", "bob", "cy")
    assert users.p.toarray().tolist() == [[0.75, 0.25], [1, 0], [0, 1]]
    grouped = sv.read_users(frame, user="who", item=["War", "Drama"], by="age", prior=prior)
    assert [one.ids for one in grouped.values()] == [("ann",), ("bob", "cy")]


def test_zero_weights_leave_no_trace() -> None:
    frame = pl.DataFrame({"who": ["a", "a"], "genre": ["x", "y"], "w": [0, 2]})
    users = sv.read_users(frame, user="who", item="genre", weight="w", prior=sv.Prior(["x", "y"], [0.5, 0.5]))
    assert users.p.nnz == 1


def test_wide_tables_with_holes_or_text_are_refused() -> None:
    prior = sv.Prior(["War", "Drama"], [0.5, 0.5])
    for bad, message in (
        (
            pl.DataFrame({"who": ["a", "b"], "War": [None, 1.0], "Drama": [1.0, 1.0]}),
            "the category columns must hold finite",
        ),
        (pl.DataFrame({"who": ["a"], "War": [-1], "Drama": [1]}), "the category columns must hold finite"),
        (pl.DataFrame({"who": ["a"], "War": [True], "Drama": [1]}), "column 'War' must hold numbers"),
    ):
        with pytest.raises(sv.errors.TableError, match=message):
            sv.read_users(bad, user="who", item=["War", "Drama"], prior=prior)
    with pytest.raises(sv.errors.ParameterError, match="leave the weight out"):
        sv.read_users(pl.DataFrame({"w": ["a"], "x": [1]}), user="w", item=["x"], weight="x", prior=prior)


def test_paths_of_every_kind_are_tables_too(tmp_path: Path) -> None:
    rows = table(3)
    frame = pl.DataFrame(columns(rows))
    frame.write_csv(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    (tmp_path / "t.gz").write_bytes((tmp_path / "t.csv.gz").read_bytes())
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ndjson(tmp_path / "t.jsonl")
    expected = oracles.priors_by_hand(rows, top=5)
    for name in ("t.csv", "t.csv.gz", "t.gz", "t.parquet", "t.jsonl"):
        counted = sv.count_table(
            tmp_path / name, user="who", item="genre", weight="stars", by="age", top_by="clicks"
        )
        same_priors(of_kind(sv.build_prior(counted, top=5), dict), expected)
        sizes = (len(counted.groups), len(set(columns(rows)["who"])), len(counted.items))
        assert repr(counted) == "Tally(400 rows: {} groups, {} users, {} items)".format(*sizes)


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
    counted = sv.count_table(frame, user="who", item="genre")
    for call, message in (
        (lambda: sv.build_prior(frame), "Pass item="),  # type: ignore[call-overload]
        (lambda: sv.build_prior(frame, item="genre", average="users"), "need the user column"),
        (lambda: sv.build_prior(frame, item="genre", minimum_users=2), "need the user column"),
        (lambda: sv.build_prior(frame, item="genre", average="mode"), "one of rows, users, got 'mode'"),
        (
            lambda: sv.build_prior(frame, item="genre", top=0),
            "top must be a whole number of at least 1, got 0",
        ),
        (lambda: sv.build_prior(counted, item="genre"), "a tally has its columns already: leave item out"),
        (lambda: sv.read_users(frame, item="genre", prior=prior), "needs the column of the user"),  # type: ignore[call-overload]
        (lambda: sv.read_users(counted, prior=prior, unknown="guess"), "one of error, drop, other"),
        (lambda: sv.read_users(counted, prior=prior, unknown_groups="guess"), "one of error, drop"),
        (lambda: sv.read_users(counted, prior=prior, minimum_rows=-1), "at least 0, got -1"),
        (lambda: sv.read_users(counted, prior=prior, minimum_rows=2), "no user has at least 2 rows"),
        (lambda: sv.build_prior(counted, minimum_users=3), "no group has at least 3 users"),
        (lambda: sv.read_users(counted, prior=sv.Prior([1, 2], [0.5, 0.5])), "one side has text"),
        (lambda: sv.read_users(counted, prior=prior, unknown="other"), "there is no category 'other'"),
        (lambda: sv.build_prior(frame, item="genre", other="x", top=1), "has an item called 'x' already"),
        (lambda: sv.build_prior(frame, item="genre", top_by="who"), "specify how many to keep"),
        (lambda: sv.build_prior(frame, item=[]), "item must name a column"),
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

    for average in ("rows", "users"):
        for smoothing in (0.0, 0.5):
            public = sv.build_prior(
                frame, **NAMED, average=average, smoothing=smoothing, provenance="public"
            )  # a lie
            assert marked(sv.read_users(frame, **NAMED, prior=public), public)
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
            options=PriorOptions(top=4, other="rest"),
        )
        if public
        else priors_table.read_priors(
            tmp_path / "t.csv",
            item="genre",
            user="who",
            by=by,
            provenance="users",
            options=PriorOptions(top=4),
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
        (good + f'"groups": {{"all": {law}}}}}', "age", "--by age does not fit this prior: it has no groups"),
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


def test_wide_tables_have_no_rows_to_count_and_keep_their_names() -> None:
    wide = pl.DataFrame({"who": ["ann", "bob"], "War": [1, 0], "Drama": [3, 2]})
    prior = sv.Prior(["War", "Drama"], [0.5, 0.5])
    with pytest.raises(sv.errors.TableError, match="needs a long table"):
        sv.read_users(wide, user="who", item=["War", "Drama"], prior=prior, minimum_rows=2)
    assert repr(sv.count_table(wide, user="who", item=["War", "Drama"])).startswith("Tally(4 entries")
    names = ["amount", "key_user"]
    clash = pl.DataFrame({"who": ["ann"], "amount": [1], "key_user": [3]})
    assert sv.build_prior(clash, item=names).probabilities.tolist() == [0.25, 0.75]


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
    (tmp_path / "o.json").write_text('{"a": 3, "b": 2, "c": 1}')
    smoothed = PriorOptions(smoothing=1)
    options: dict[str, Any]
    for options in (
        {"count": "n"},
        {"user": "who"},
        {"wide": True},
    ):
        with pytest.raises(sv.errors.ParameterError, match="this is a JSON object of counts"):
            priors_table.read_priors(tmp_path / "o.json", **options)
    with pytest.raises(sv.errors.ParameterError, match="need the user column"):
        priors_table.read_priors(tmp_path / "o.json", options=PriorOptions(average="users"))
    best = priors_table.read_priors(tmp_path / "o.json", options=PriorOptions(top=2), provenance="users")
    assert best.priors["all"].categories == ("a", "b")
    assert best.priors["all"].provenance == "users"
    priors_table.write_priors(
        priors_table.read_priors(tmp_path / "o.json", options=smoothed), tmp_path / "p.json"
    )
    with pytest.raises(
        sv.errors.ParameterError, match="--smoothing is for tables, and this is a prior that is made"
    ):
        priors_table.read_priors(tmp_path / "p.json", options=smoothed)
    plain = (tmp_path / "p.json").read_text()
    for old, new in (('"by": null', '"by": 5'), ('"all"', '"young"'), ('"all"', r'"\ud800"')):
        (tmp_path / "q.json").write_text(plain.replace(old, new))
        with pytest.raises(sv.errors.TableError, match="not a prior file"):
            priors_table.read_priors(tmp_path / "q.json")
