"""The store: made whole, for one mechanism file, private to its owner, read while it grows."""

from __future__ import annotations

import csv
import os
import secrets
import sqlite3
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
from collector import Collector, report, rows_of, write_groups, write_mechanism
from command import check_refused, run

import sottovoce as sv
from sottovoce.collecting.store import Key, create_store, is_store, open_store, reading, stored_totals
from sottovoce.release.file import ANY
from sottovoce.serving import writer as writing
from sottovoce.serving.batches import Refusal
from sottovoce.serving.writer import Writer

KEY = ("0" * 64, "all")


def rows(count: int, place: int = 0) -> list[tuple[bytes, Key, int]]:
    return [(secrets.token_bytes(16), KEY, place) for _ in range(count)]


def test_a_store_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Collector(write_mechanism(tmp_path), tmp_path / "r.db") as collector:
            collector.post([report(collector.digest)])
            for name in ("r.db", "r.db-wal", "r.db-shm"):
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_store_holds_three_things_of_a_report_and_no_order(tmp_path: Path) -> None:
    create_store(tmp_path / "r.db")
    database = sqlite3.connect(tmp_path / "r.db")
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"mechanisms", "reports", "counts"}
    columns = [row[1] for row in database.execute("PRAGMA table_info(reports)")]
    assert columns == ["id", "mechanism", "category"]
    for missing in ("rowid", "_rowid_", "oid"):  # a row number would be the order of arrival
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            database.execute(f"SELECT {missing} FROM reports")  # noqa: S608
    for bad in ((b"0" * 15, 0, 0), ("0" * 16, 0, 0), (b"0" * 16, None, 0), (b"0" * 16, 0, "War")):
        with pytest.raises(sqlite3.IntegrityError):
            database.execute("INSERT INTO reports VALUES (?, ?, ?)", bad)
    database.close()


def test_the_sums_follow_the_reports_whoever_changes_them(tmp_path: Path) -> None:
    create_store(tmp_path / "r.db")
    database = sqlite3.connect(tmp_path / "r.db")
    database.executemany("INSERT INTO reports VALUES (?, 0, ?)", [(os.urandom(16), i % 3) for i in range(30)])
    database.execute("DELETE FROM reports WHERE category = 1 AND id < x'80'")
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        database.execute("UPDATE reports SET category = 2")
    database.commit()
    database.close()
    rows_of(tmp_path / "r.db")  # compares the sums with the rows


def test_a_store_is_never_overwritten_and_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(FileExistsError):
        create_store(tmp_path / "there")
    with pytest.raises(sv.errors.StoreError, match="No such file"):
        create_store(tmp_path / "no" / "r.db")
    assert (tmp_path / "there").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    create_store(tmp_path / "r.db")
    sqlite3.connect(tmp_path / "other.db").executescript("CREATE TABLE a (b)").connection.close()
    (tmp_path / "r.csv").write_text("item\nWar\n")
    (tmp_path / "empty").touch()
    for name in ("other.db", "r.csv", "empty", "nothing", "."):
        assert not is_store(tmp_path / name)
        with pytest.raises(sv.errors.StoreError, match="not a store of reports"):
            open_store(tmp_path / name, [KEY])
    open_store(tmp_path / "r.db", [KEY])[0].close()
    with pytest.raises(sv.errors.StoreError, match="another mechanism file"):
        open_store(tmp_path / "r.db", [("1" * 64, "all")])
    with pytest.raises(sv.errors.StoreError, match="another mechanism file"):
        open_store(tmp_path / "r.db", [(KEY[0], "old")])
    os.link(tmp_path / "r.db", tmp_path / "second.db")
    with pytest.raises(sv.errors.StoreError, match="second name"):
        open_store(tmp_path / "r.db", [KEY])
    (tmp_path / "second.db").unlink()
    database = sqlite3.connect(tmp_path / "r.db")
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(sv.errors.StoreError, match="has format 2, this version reads 1"):
        open_store(tmp_path / "r.db", [KEY])


def test_a_commit_is_flushed_to_the_disk(tmp_path: Path) -> None:
    create_store(tmp_path / "r.db")
    database, numbers = open_store(tmp_path / "r.db", [KEY])
    assert numbers == {KEY: 1}
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert database.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    database.close()


def test_writers_share_a_store_and_each_batch_is_whole(tmp_path: Path) -> None:
    create_store(tmp_path / "r.db")
    said: list[str] = []
    writers = [Writer(tmp_path / "r.db", [KEY], said.append) for _ in range(2)]
    batches = [rows(7, place=i % 4) for i in range(60)]
    spoilt = [[*rows(6), (batches[i][3][0], KEY, 9)] for i in range(20)]  # an id with another content
    for i, one in enumerate(batches[:20]):
        writers[i % 2].store(one).result()
    futures = [writers[i % 2].store(one) for i, one in enumerate([*batches, *spoilt, *batches])]
    outcomes = [future.exception() for future in futures]
    assert [i for i, one in enumerate(outcomes) if one is not None] == list(range(60, 80))
    assert all(isinstance(one, Refusal) and one.status == 409 for one in outcomes[60:80])
    for writer in writers:
        writer.close()
    assert rows_of(tmp_path / "r.db") == {(name, 1, place) for one in batches for name, _, place in one}
    assert said == []


def test_a_reader_sees_whole_batches_and_stops_no_writer(tmp_path: Path) -> None:
    create_store(tmp_path / "r.db")
    writer = Writer(tmp_path / "r.db", [KEY], lambda _: None)
    writer.store(rows(10)).result()
    with reading(tmp_path / "r.db") as database:
        assert sum(stored_totals(database).values()) == 10
        for _ in range(5):
            writer.store(rows(10)).result()  # a reader that is not done keeps nobody waiting
        assert sum(stored_totals(database).values()) == 10  # and sees the moment at which it began
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            writer.store(rows(10)).result()

    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    for _ in range(50):
        with reading(tmp_path / "r.db") as database:
            seen.append(sum(stored_totals(database).values()))
    done.set()
    thread.join()
    writer.close()
    assert all(total % 10 == 0 for total in seen)
    assert seen == sorted(seen)


def test_a_store_that_is_gone_accepts_nothing(tmp_path: Path) -> None:
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db") as collector:
        assert collector.post([report(collector.digest)]).status == 202
        (tmp_path / "r.db").rename(tmp_path / "moved.db")
        answers = [collector.post([report(collector.digest)]) for _ in range(2)]
        assert [one.status for one in answers] == [503, 503]
        assert answers[0].headers["retry-after"] == "1"
        assert len(collector.said) == 1
        assert "removed or replaced" in collector.said[0]
        (tmp_path / "moved.db").rename(tmp_path / "r.db")
        assert collector.post([report(collector.digest)]).status == 202
        assert collector.said[1:] == ["reports are stored again"]
        assert len(rows_of(collector.store)) == 2


def test_a_locked_store_answers_503_and_the_same_batch_later_202(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.collecting.store.PATIENCE", 0.0)
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db") as collector:
        one = report(collector.digest)
        other = sqlite3.connect(collector.store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert collector.post([one]).status == 503
        other.execute("ROLLBACK")
        other.close()
        assert collector.post([one]).status == 202
        assert len(rows_of(collector.store)) == 1


def test_a_full_disk_refuses_whole_batches_until_there_is_room(tmp_path: Path) -> None:
    create_store(tmp_path / "r.db")
    said: list[str] = []
    writer = Writer(tmp_path / "r.db", [KEY], said.append)
    database = writer._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages + 2}")
    taken: list[list[tuple[bytes, Key, int]]] = []
    refused = rows(1)
    for _ in range(100):
        one = rows(50)
        if (problem := writer.store(one).exception()) is not None:
            assert isinstance(problem, Refusal)
            assert problem.status == 503
            refused = one
            break
        taken.append(one)
    assert len(said) == 1
    assert "full" in said[0]
    assert len(rows_of(tmp_path / "r.db")) == 50 * len(taken)
    database.execute("PRAGMA max_page_count = 100000")
    writer.store(refused).result()
    writer.close()
    assert said[1:] == ["reports are stored again"]
    assert len(rows_of(tmp_path / "r.db")) == 50 * (len(taken) + 1)


def test_waiting_reports_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_WAITING", 25)
    create_store(tmp_path / "r.db")
    writer = Writer(tmp_path / "r.db", [KEY], lambda _: None)
    other = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # the writer waits
    futures = [writer.store(rows(10)) for _ in range(2)]
    with pytest.raises(Refusal) as refusal:
        writer.store(rows(10))
    assert refusal.value.status == 503
    other.execute("ROLLBACK")
    other.close()
    for future in futures:
        future.result()
    writer.store(rows(10)).result()
    writer.close()
    assert len(rows_of(tmp_path / "r.db")) == 30


def test_estimate_from_a_store_equals_estimate_from_a_table(tmp_path: Path) -> None:
    path = write_mechanism(tmp_path)
    mechanism = sv.load(path, policy=ANY)
    released = list(mechanism.release_many(np.tile([0.1, 0.2, 0.3, 0.2, 0.2], (500, 1))))
    with Collector(path, tmp_path / "r.db") as collector:
        assert collector.post([report(collector.digest, one) for one in released]).status == 202
        with (tmp_path / "r.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([["item", "mechanism"], *([one, collector.digest] for one in released)])
        given = [run("estimate", path, tmp_path / f"r.{kind}", "--json") for kind in ("db", "csv")]
        assert given[0].returncode == 0, given[0].stderr
        assert given[0].stdout == given[1].stdout
        assert sv.estimate(mechanism, tmp_path / "r.db").values.tolist() == (
            sv.estimate(mechanism, released).values.tolist()
        )


def test_estimate_from_a_store_of_groups_equals_estimate_from_a_table(tmp_path: Path) -> None:
    path = write_groups(tmp_path, twins=True)
    mechanisms = sv.load_groups(path, policy=ANY)
    rng = np.random.default_rng(3)
    told = [(group, str(rng.choice(one.categories))) for group, one in mechanisms.items() for _ in range(90)]
    with Collector(path, tmp_path / "r.db") as collector:
        digests = collector.served.digests
        reports = [report(digests[group], name, group=group) for group, name in told]
        assert collector.post(reports).status == 202
    with (tmp_path / "r.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["age", "item", "mechanism"], *([group, name, digests[group]] for group, name in told)]
        )
    given = [run("estimate", path, tmp_path / f"r.{kind}", "--json") for kind in ("db", "csv")]
    assert given[0].returncode == 0, given[0].stderr
    assert given[0].stdout == given[1].stdout


def test_estimate_refuses_the_wrong_store(tmp_path: Path) -> None:
    path, groups = write_mechanism(tmp_path), write_groups(tmp_path)
    mechanism = sv.load(path, policy=ANY)
    create_store(tmp_path / "r.db")
    open_store(tmp_path / "r.db", [(mechanism.digest, "all")])[0].close()
    check_refused(run("estimate", path, tmp_path / "r.db"), "holds no report yet")
    check_refused(run("estimate", groups, tmp_path / "r.db"), "another mechanism file")
    check_refused(run("estimate", path, tmp_path / "r.db", "--user", "u"), "a store of reports has none")
    with pytest.raises(sv.errors.EstimateError, match="not a sampler"):
        sv.estimate(sv.minimax_kernel(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0), tmp_path / "r.db")
    database = sqlite3.connect(tmp_path / "r.db")
    database.execute("INSERT INTO reports VALUES (?, 1, 99)", (os.urandom(16),))
    database.commit()
    database.close()
    check_refused(run("estimate", path, tmp_path / "r.db"), "changed from outside")
    with (tmp_path / "r.db").open("r+b") as file:
        file.seek(1024)  # the head is whole, and nothing else
        file.write(os.urandom(os.path.getsize(tmp_path / "r.db") - 1024))
    check_refused(run("estimate", path, tmp_path / "r.db"), "cannot be read")
