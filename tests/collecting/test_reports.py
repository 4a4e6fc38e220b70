"""Reports counted once: a report stands under its id in exports and stores, however many of them hold it."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command import check_refused, run

import sottovoce as sv
from sottovoce.collecting.store import create_store, export, open_store
from sottovoce.groups import Groups
from sottovoce.release.file import save_mechanisms

NAMES = ["a", "b", "c"]
MECHANISM = sv.certify(sv.minimax_kernel(sv.Prior(NAMES, [0.5, 0.3, 0.2]), 2.0))
YOUNG = sv.certify(sv.minimax_kernel(sv.Prior(NAMES, [0.2, 0.3, 0.5]), 2.0))
SHARED, OWN = 40, 25
"""Reports that both collectors have, and those that only one of them has."""


def reports(first: int, many: int) -> dict[bytes, int]:
    """Reports by their ids: so many from a number on, the category following from the number."""
    return {number.to_bytes(16, "big"): number * number % 3 for number in range(first, first + many)}


FIRST = reports(0, SHARED + OWN)
SECOND = reports(OWN, SHARED + OWN)
BOTH = {**FIRST, **SECOND}


def collected(path: Path, held: Mapping[bytes, int], mechanism: sv.Mechanism = MECHANISM) -> Path:
    """A store that holds these reports."""
    create_store(path)
    key = (mechanism.digest, "all")
    database, numbers = open_store(path, [key])
    rows = [(name, numbers[key], category) for name, category in held.items()]
    database.executemany("INSERT INTO reports VALUES (?, ?, ?)", rows)
    database.close()
    return path


def exported(store: Path, *tables: Path) -> None:
    """The export of a store, in each of the files."""
    rows = list(itertools.chain(*export(store, Groups.of(MECHANISM, None))))
    for path in tables:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two stores, their exports, and the exports of both in one file."""
    MECHANISM.save(tmp_path / "m.json")
    for name, held in (("a", FIRST), ("b", SECOND)):
        exported(collected(tmp_path / f"{name}.db", held), tmp_path / f"{name}.csv")
    second = (tmp_path / "b.csv").read_text(encoding="utf-8").split("\n", 1)[1]
    both = (tmp_path / "a.csv").read_text(encoding="utf-8") + second
    (tmp_path / "both.csv").write_text(both, encoding="utf-8")
    return tmp_path


def test_a_report_that_stands_twice_in_a_table_counts_once(folder: Path) -> None:
    found = sv.estimate(MECHANISM, folder / "both.csv")
    assert found.counts.tolist() == np.bincount(list(BOTH.values()), minlength=3).tolist()
    assert found.reports == SHARED + 2 * OWN


@pytest.mark.parametrize(
    "names", [["a.db", "b.db"], ["a.csv", "b.csv"], ["a.db", "b.csv"], ["both.csv", "a.db"]]
)
def test_several_stores_and_exports_are_one_collection(names: list[str], folder: Path) -> None:
    expected = sv.estimate(MECHANISM, np.bincount(list(BOTH.values()), minlength=3).astype(float))
    found = sv.estimate(MECHANISM, [folder / name for name in names])
    assert found.values.tolist() == expected.values.tolist()
    done = run("estimate", folder / "m.json", *(folder / name for name in names), "--json")
    assert done.returncode == 0, done.stderr
    (facts,) = json.loads(done.stdout)
    assert facts["reports"] == SHARED + 2 * OWN
    assert [row["reports"] for row in facts["rows"]] == expected.counts.tolist()
    repeated = 2 * SHARED + OWN if "both.csv" in names else SHARED
    assert f"{repeated} of {SHARED + 2 * OWN + repeated} reports are repeated and count once" in done.stderr


def changed(path: Path, name: str, value: str) -> Path:
    """A table with another value in the column of its third row."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows[2][name] = value
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


def one_more(held: dict[bytes, int], number: int) -> dict[bytes, int]:
    """The same reports, one of them with the next category."""
    name = number.to_bytes(16, "big")
    return {**held, name: (held[name] + 1) % 3}


def conflicts(folder: Path) -> Iterator[list[Path]]:
    """Sources in which one id has two contents."""
    forged = collected(folder / "forged.db", one_more(SECOND, OWN + 3))
    yield [folder / "a.db", forged]
    exported(forged, folder / "forged.csv")
    yield [folder / "a.csv", folder / "forged.csv"]
    yield [folder / "forged.csv", folder / "a.db"]
    shared = f"{(OWN + 2).to_bytes(16, 'big').hex()}"
    yield [changed(folder / "a.csv", "id", shared), folder / "b.db"]


def test_of_two_contents_of_an_id_the_first_source_counts(folder: Path) -> None:
    cases = zip(conflicts(folder), (90, 90, 90, 89), (1, 1, 1, 2), strict=True)
    for paths, reports, forged in cases:  # the last took the id of another, which stands in both sources
        assert sv.estimate(MECHANISM, paths).reports == reports
        done = run("estimate", folder / "m.json", *paths)
        assert done.returncode == 0
        told = f"{forged} of 130 reports have the id of an earlier one and other contents, and do not count"
        assert told in done.stderr
        assert not any(name.hex() in done.stderr for name in BOTH)
    other, held = folder / "forged.db", one_more(SECOND, OWN + 3)
    for paths, first, later in (
        ([folder / "a.db", other], FIRST, held),
        ([other, folder / "a.db"], held, FIRST),
    ):
        expected = np.bincount(list({**later, **first}.values()), minlength=3)
        assert sv.estimate(MECHANISM, paths).counts.tolist() == expected.tolist()


Row = tuple[str, str]


def rows_of(held: Mapping[bytes, int], shift: int = 0) -> list[Row]:
    """The rows of an export: ids and categories, each category a later one."""
    return [(name.hex(), NAMES[(category + shift) % 3]) for name, category in held.items()]


def table_of(path: Path, rows: Sequence[Row]) -> Path:
    """A table with the columns id and item, in the format of its name."""
    frame = pl.DataFrame(rows, schema=["id", "item"], orient="row")
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    return path


def counts_of(rows: Sequence[Row]) -> list[int]:
    return [sum(item == name for _, item in rows) for name in NAMES]


@pytest.mark.parametrize(("honest", "forged"), [(8, 1), (300, 34), (4, 300)])
def test_ids_that_are_sent_to_two_collectors_with_different_contents_stop_no_estimate(
    tmp_path: Path, honest: int, forged: int
) -> None:
    """One device can send so, as many as it likes; each of its ids is one report, as if it were invented."""
    rows, invented = rows_of(reports(0, honest)), reports(1000, forged)
    one = table_of(tmp_path / "1.csv", rows[: honest // 2] + rows_of(invented))
    two = table_of(tmp_path / "2.csv", rows[honest // 2 :] + rows_of(invented, 1))
    found = sv.estimate(MECHANISM, [one, two])
    assert found.counts.tolist() == counts_of(rows + rows_of(invented))
    assert found.reports == honest + forged


@pytest.mark.parametrize("copies", [20, 150])
def test_copied_ids_in_a_later_source_cancel_no_honest_report(tmp_path: Path, copies: int) -> None:
    """Whoever reads an export knows the ids of others, and can send them elsewhere with other contents."""
    rows = rows_of(reports(0, 300))
    copied = rows_of(reports(0, copies), 1)
    one, two = table_of(tmp_path / "1.csv", rows[:150]), table_of(tmp_path / "2.csv", rows[150:] + copied)
    assert sv.estimate(MECHANISM, [one, two]).counts.tolist() == counts_of(rows)


def test_copied_ids_in_an_earlier_source_replace_one_report_each(tmp_path: Path) -> None:
    rows = rows_of(reports(0, 300))
    copied = rows_of(reports(0, 20), 1)
    one, two = table_of(tmp_path / "1.csv", rows[:150]), table_of(tmp_path / "2.csv", rows[150:] + copied)
    found = sv.estimate(MECHANISM, [two, one])
    assert found.reports == 300
    assert found.counts.tolist() == counts_of(copied + rows[20:])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ""])
@pytest.mark.parametrize("shift", [1, 2])
def test_in_one_table_the_first_row_of_an_id_counts(tmp_path: Path, ending: str, shift: int) -> None:
    """As it stands in the file, not in the order of categories: exports that were put together in order."""
    rows, copied = rows_of(reports(0, 3000)), rows_of(reports(0, 700), shift)
    for order in (rows + copied, copied + rows, [*copied[::2], *rows, *copied[1::2]]):
        first = dict(reversed(order))  # the first row of an id is the last one here
        table: Any = pl.DataFrame(order, schema=["id", "item"], orient="row")
        if ending:
            table = table_of(tmp_path / f"t{ending}", order)
        assert sv.estimate(MECHANISM, table).counts.tolist() == counts_of(list(first.items()))


def test_in_one_table_the_rows_that_do_not_count_are_told(folder: Path) -> None:
    rows, copied = rows_of(reports(0, 9)), rows_of(reports(0, 4), 1)
    done = run("estimate", folder / "m.json", table_of(folder / "t.csv", rows + rows[:2] + copied))
    assert done.returncode == 0
    assert "2 of 15 reports are repeated and count once" in done.stderr
    assert "4 of 15 reports have the id of an earlier one and other contents" in done.stderr


def test_a_column_id_that_names_no_reports_is_refused(tmp_path: Path) -> None:
    """More than half of its ids have different contents: as where it names users who report each week."""
    rows = rows_of(reports(0, 8))
    half = table_of(tmp_path / "half.csv", rows + rows_of(reports(0, 4), 1))
    assert sv.estimate(MECHANISM, half).reports == 8
    more = table_of(tmp_path / "more.csv", rows + rows_of(reports(0, 5), 1))
    for paths in (more, [more, half], [half, more]):
        with pytest.raises(sv.errors.EstimateError, match="5 of 8 ids have different contents"):
            sv.estimate(MECHANISM, paths)


def test_sources_that_mostly_differ_are_told(folder: Path) -> None:
    """Two weeks of the same users, whose names stand in the column id: they may be no forgeries."""
    weeks = [table_of(folder / f"w{i}.csv", rows_of(reports(0, 9), i)) for i in range(2)]
    done = run("estimate", folder / "m.json", *weeks)
    assert done.returncode == 0
    assert "9 of 18 reports have the id of an earlier one and other contents" in done.stderr
    assert "does the column 'id' name reports, and are these sources of one collection?" in done.stderr


def test_an_id_in_two_groups_counts_where_it_stands_first(tmp_path: Path) -> None:
    save_mechanisms({"old": MECHANISM, "young": YOUNG}, "age", tmp_path / "m.json")
    row = "{},{},{},2,{}\n".format
    rows = [row(i, age, NAMES[i % 3], made.digest) for i, (age, made) in enumerate(
        [("old", MECHANISM), ("young", YOUNG)] * 6)]  # fmt: skip
    table, head = tmp_path / "r.csv", "id,age,item,epsilon,mechanism\n"
    table.write_text(head + "".join(rows) + rows[0] + rows[1], encoding="utf-8")
    whole = {"all groups together": 12, "old": 6, "young": 6}
    other = row(0, "young", NAMES[0], YOUNG.digest)
    moved = {"all groups together": 12, "old": 5, "young": 7}
    for lines, expected in (([*rows, *rows[:2]], whole), ([*rows, other], whole), ([other, *rows], moved)):
        table.write_text(head + "".join(lines), encoding="utf-8")
        done = run("estimate", tmp_path / "m.json", table, "--json")
        assert {one["group"]: one["reports"] for one in json.loads(done.stdout)} == expected
    assert "1 of 13 reports have the id of an earlier one and other contents" in done.stderr


def test_several_tables_without_ids_are_refused(folder: Path) -> None:
    """Whether a report stands in both cannot be seen."""
    (folder / "plain.csv").write_text("item\na\nb\nc\n", encoding="utf-8")
    (folder / "users.csv").write_text("user,item\nu,a\nv,b\n", encoding="utf-8")
    for name in ("plain.csv", "users.csv"):
        assert sv.estimate(MECHANISM, folder / name).reports in (2, 3)
        for other in ("a.db", "a.csv", name):
            done = run("estimate", folder / "m.json", folder / other, folder / name)
            check_refused(done, "has no column 'id'")


def test_counts_and_users_are_no_reports_with_an_id(tmp_path: Path) -> None:
    """A column of counts is added up as ever, and where users are named, nobody counts twice."""
    (tmp_path / "counts.csv").write_text("id,item,count\n1,a,5\n1,b,1\n2,c,2\n", encoding="utf-8")
    assert sv.estimate(MECHANISM, tmp_path / "counts.csv").counts.tolist() == [5, 1, 2]
    (tmp_path / "users.csv").write_text("id,user,item\n1,u,a\n2,u,b\n3,v,c\n", encoding="utf-8")
    with pytest.raises(sv.errors.EstimateError, match="1 of 2 users have more than one report"):
        sv.estimate(MECHANISM, tmp_path / "users.csv")
