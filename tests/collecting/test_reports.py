"""Reports counted once: a report stands under its id in exports and stores, however many of them hold it."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
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


def test_reports_of_one_id_with_two_contents_count_for_nothing(folder: Path) -> None:
    """One dishonest device can send the same id twice, and must not stop the estimate of everybody."""
    for paths, reports in zip(conflicts(folder), (89, 89, 89, 88), strict=True):  # the last took another's id
        assert sv.estimate(MECHANISM, paths).reports == reports
        done = run("estimate", folder / "m.json", *paths)
        assert done.returncode == 0
        assert "1 ids with different contents count for nothing" in done.stderr
        assert not any(name.hex() in done.stderr for name in BOTH)


def test_a_column_id_that_names_no_reports_is_refused(folder: Path) -> None:
    (folder / "one.csv").write_text("id,item\nx,a\nx,b\ny,c\n", encoding="utf-8")
    with pytest.raises(sv.errors.EstimateError, match="1 of 2 ids have different contents"):
        sv.estimate(MECHANISM, folder / "one.csv")


def test_an_id_in_two_groups_counts_for_nothing(tmp_path: Path) -> None:
    save_mechanisms({"old": MECHANISM, "young": YOUNG}, "age", tmp_path / "m.json")
    row = "{},{},{},2,{}\n".format
    rows = [row(i, age, NAMES[i % 3], made.digest) for i, (age, made) in enumerate(
        [("old", MECHANISM), ("young", YOUNG)] * 6)]  # fmt: skip
    table, head = tmp_path / "r.csv", "id,age,item,epsilon,mechanism\n"
    table.write_text(head + "".join(rows) + rows[0] + rows[1], encoding="utf-8")
    done = run("estimate", tmp_path / "m.json", table, "--json")
    assert {one["group"]: one["reports"] for one in json.loads(done.stdout)} == {
        "all groups together": 12, "old": 6, "young": 6,
    }  # fmt: skip
    table.write_text(head + "".join(rows) + row(0, "young", NAMES[0], YOUNG.digest), encoding="utf-8")
    done = run("estimate", tmp_path / "m.json", table)
    assert "1 ids with different contents count for nothing" in done.stderr


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
