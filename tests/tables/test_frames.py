"""Tables become priors and users; what is wrong with a table is said in one line, without its data."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.tables import priors as priors_table
from sottovoce.tables import users as users_table

LONG: dict[str, list[Any]] = {
    "who": ["ann", "ann", "bob", "bob", "bob", "cy"],
    "genre": ["War", "Drama", "War", "War", "Drama", "Drama"],
    "stars": [1.0, 3.0, 2.0, 2.0, 1.0, 5.0],
    "age": ["young", "young", "old", "old", "old", "young"],
}
PRIOR = sv.Prior(["War", "Drama", "Noir"], [0.5, 0.3, 0.2])


@pytest.mark.parametrize("frame", [pl.DataFrame(LONG), pa.table(LONG)], ids=["polars", "pyarrow"])
def test_users_and_priors_by_hand(frame: object) -> None:
    users = sv.read_users(frame, user="who", item="genre", prior=PRIOR)
    assert users.ids == ("ann", "bob", "cy")
    assert users.p.toarray().tolist() == [[0.5, 0.5, 0], [2 / 3, 1 / 3, 0], [0, 1, 0]]
    weighted = sv.read_users(frame, user="who", item="genre", weight="stars", prior=PRIOR)
    assert weighted.p.toarray().tolist() == [[0.25, 0.75, 0], [0.8, 0.2, 0], [0, 1, 0]]
    prior = sv.build_prior(frame, item="genre", weight="stars")
    assert dict(zip(prior.categories, prior.probabilities, strict=True)) == pytest.approx(
        {"War": 5 / 14, "Drama": 9 / 14}
    )
    groups = sv.build_prior(frame, item="genre", by="age", smoothing=1)
    assert groups["old"].probabilities.tolist() == pytest.approx([2 / 5, 3 / 5])  # Drama, War
    assert groups["young"].probabilities.tolist() == pytest.approx([3 / 5, 2 / 5])


def test_a_printed_table_of_users_shows_no_data() -> None:
    users = sv.read_users(pl.DataFrame(LONG), user="who", item="genre", prior=PRIOR)
    assert repr(users) == "Users(3 users over 3 categories)"
    assert len(users) == 3


def test_integers_are_categories_too() -> None:
    frame = pl.DataFrame({"u": [1, 1, 2], "i": [10, 20, 10]})
    prior = sv.build_prior(frame, item="i")
    assert prior.categories == (10, 20)
    assert sv.read_users(frame, user="u", item="i", prior=prior).ids == (1, 2)


def test_unknown_items_stop_or_are_dropped() -> None:
    frame = pl.DataFrame({**LONG, "genre": ["War", "Secret", *LONG["genre"][2:]]})
    with pytest.raises(sv.errors.UserDataError, match="1 of 6 rows do not") as caught:
        sv.read_users(frame, user="who", item="genre", prior=PRIOR)
    assert "Secret" not in str(caught.value)
    dropped = sv.read_users(frame, user="who", item="genre", prior=PRIOR, unknown="drop")
    assert dropped.p.toarray()[0].tolist() == [1, 0, 0]
    only = pl.DataFrame({"who": ["zoe"], "genre": ["Secret"]})
    with pytest.raises(sv.errors.UserDataError, match="1 of 1 users have no usable record") as caught:
        sv.read_users(only, user="who", item="genre", prior=PRIOR, unknown="drop")
    assert "zoe" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"who": None}, "there is no column 'who'; the table has 3 columns, among them genre, stars"),
        ({"genre": ["War", None, "War", "War", "War", "War"]}, "column 'genre' has 1 missing values"),
        ({"stars": ["1", "x", "2", "2", "1", "5"]}, "column 'stars' must hold numbers"),
        ({"stars": [1.0, -3.0, 2.0, 2.0, 1.0, 5.0]}, "at least 0: 1 of 6 rows do not"),
        ({"stars": [1.0, None, 2.0, 2.0, 1.0, 5.0]}, "at least 0: 1 of 6 rows do not"),
        ({"stars": [0.0, 0.0, 2.0, 2.0, 1.0, 5.0]}, "1 of 3 users have no usable record"),
    ],
)
def test_bad_tables(change: dict[str, object], message: str) -> None:
    columns = {k: v for k, v in {**LONG, **change}.items() if v is not None}
    with pytest.raises(sv.errors.SottovoceError, match=message):
        sv.read_users(pl.DataFrame(columns), user="who", item="genre", weight="stars", prior=PRIOR)


def test_not_a_table() -> None:
    with pytest.raises(
        sv.errors.TableError,
        match="must be a pandas, polars, pyarrow, DuckDB or Spark frame or a path, got list",
    ):
        sv.build_prior([1, 2], item="x")
    with pytest.raises(sv.errors.TableError, match="no rows"):
        sv.build_prior(pl.DataFrame({"x": []}, schema={"x": pl.String}), item="x")


def test_files_of_every_kind_read_alike(tmp_path: Path) -> None:
    table = pl.DataFrame({"item": ["007", "1e10", "007"], "count": [1, 2, 3]})
    table.write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet")
    table.write_json(tmp_path / "t.json")
    table.write_csv(tmp_path / "t.tsv", separator="\t")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    table.write_ndjson(tmp_path / "t.jsonl")
    (tmp_path / "spaces.csv").write_text("item, Count \n007,4\n1e10,2\n")
    (tmp_path / "t.json.gz").write_bytes(gzip.compress((tmp_path / "t.json").read_bytes()))
    (tmp_path / "lines.json").write_bytes((tmp_path / "t.jsonl").read_bytes())
    for name in (
        "t.csv",
        "t.parquet",
        "t.json",
        "t.tsv",
        "t.csv.gz",
        "t.jsonl",
        "spaces.csv",
        "t.json.gz",
        "lines.json",
    ):
        data = priors_table.read_priors(tmp_path / name)
        (prior,) = data.priors.values()
        assert "amounts from" in data.how
        assert prior.categories == ("007", "1e10")
        assert prior.probabilities.tolist() == pytest.approx([4 / 6, 2 / 6])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.csv", None, "there is no such file"),
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"item,count\n", "it has no rows"),
        ("table.xyz", b"x", "must end in one of .csv"),
        ("broken.parquet", b"not parquet", "cannot be read as parquet"),
        ("broken.json", b"{", "cannot be read as json"),
        ("broken.csv.gz", b"\x1f\x8b\x08\x00 broken", "cannot be read as csv"),
        ("ragged.csv", b"item,count\na,1\nb,2,3,4\n", "cannot be read as csv"),
        ("latin.csv", b"item,count\nCaf\xe9,1\n", "cannot be read as csv"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(sv.errors.TableError, match=message):
        priors_table.read_priors(path, item="item", count=None, by=None)


@pytest.mark.parametrize(
    ("name", "text", "by", "message"),
    [
        ("twice.json", '{"a": 1, "a": 2}', None, "there is no column 'item'"),
        ("groups.json", '{"x": {"a": 1}}', None, "there is no column 'item'"),
        ("flat.json", '{"a": 1}', "g", "there is no column 'g'"),
        ("none.json", "{}", "g", "records are expected"),
        ("huge.json", '[{"item": "a", "count": 1' + "0" * 400 + "}]", None, "must hold finite numbers"),
        ("deep.json", "[" * 100_000, None, "cannot be read as json: "),
        ("object.json", '{"a": ' * 100_000, None, "cannot be read as json: "),
        ("lists.json", '[{"item": ["a"]}]', None, "records are expected, with texts and numbers in them"),
        ("nested.json", '[{"item": {"a": 1}}]', None, "records are expected, with texts and numbers in them"),
        ("big.csv", "item,count\na,1e308\nb,1e308\n", None, "adds up to infinity"),
        ("bool.json", '[{"item": "a", "count": true}]', None, "must hold numbers: 1 of 1 rows do not"),
    ],
)
def test_odd_prior_files(tmp_path: Path, name: str, text: str, by: str | None, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(sv.errors.SottovoceError, match=message) as caught:
        priors_table.read_priors(tmp_path / name, item="item", count=None, by=by)
    assert name in str(caught.value)


def test_whole_floats_in_parquet_are_the_same_categories_as_text(tmp_path: Path) -> None:
    pl.DataFrame({"item": [1.0, 2.0]}).write_parquet(tmp_path / "p.parquet")
    priors = priors_table.read_priors(tmp_path / "p.parquet").priors
    assert priors["all"].categories == ("1", "2")


def test_users_remember_their_categories_and_feed_compare() -> None:
    users = sv.read_users(pl.DataFrame(LONG), user="who", item="genre", prior=PRIOR)
    table = sv.compare(users, sv.kernel_clip(PRIOR, 1.0))
    assert table == sv.compare(users.p, sv.kernel_clip(PRIOR, 1.0))
    other = sv.Prior(["Drama", "War", "Noir"], [0.3, 0.5, 0.2])
    with pytest.raises(sv.errors.UserDataError, match="read against other categories"):
        sv.compare(users, sv.kernel_clip(other, 1.0))


def test_no_private_value_hides_behind_an_error() -> None:
    frame = pl.DataFrame({**LONG, "stars": ["1", "SECRET", "2", "2", "1", "5"]})
    with pytest.raises(sv.errors.TableError) as caught:
        sv.read_users(frame, user="who", item="genre", weight="stars", prior=PRIOR)
    assert str(caught.value) == "column 'stars' must hold numbers: 1 of 6 rows do not"
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_groups_without_prior_and_without_names(tmp_path: Path) -> None:
    pl.DataFrame({"item": ["a", "b"], "age": ["old", "old"]}).write_csv(tmp_path / "p.csv")
    pl.DataFrame({"user": ["u", "v"], "item": ["a", "b"], "age": ["old", "young"]}).write_csv(
        tmp_path / "u.csv"
    )
    data = priors_table.read_priors(tmp_path / "p.csv", by="age")
    assert data.how == "no column of amounts: every row counts once"
    with pytest.raises(sv.errors.TableError, match="there are priors for 'old'"):
        users_table.read_user_groups(tmp_path / "u.csv", data.priors, by="age")
