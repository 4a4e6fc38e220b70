"""The command release on large logs: against grouping and writing alone, with a ledger, and its memory."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import sottovoce as sv
from sottovoce.release.ledger import request

from .measure import Line, at_most, fresh, seconds

CATEGORIES, ROWS = 100, 20
_SPENT = """
import resource, time
def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
"""
_GROUPED = """
import time, duckdb
duckdb.sql("SET enable_progress_bar = false")
begin, before = time.perf_counter(), spent()
duckdb.sql("CREATE TABLE cells AS SELECT t.user, item, count(*) n FROM read_parquet({log!r}) t GROUP BY ALL")
duckdb.sql("COPY (SELECT cells.user, any_value(item) AS item, '2' AS epsilon, repeat('0', 64) AS mechanism "
           "FROM cells GROUP BY cells.user) TO {out!r} (HEADER)")
print(spent() - before, time.perf_counter() - begin)
"""
_COUNTED = """
import time, duckdb
duckdb.sql("SET enable_progress_bar = false")
begin, before = time.perf_counter(), spent()
duckdb.sql("CREATE TABLE cells AS SELECT t.user, item, count(*) n FROM read_parquet({log!r}) t GROUP BY ALL")
print(spent() - before, time.perf_counter() - begin)
"""
_TALLIED = """
import time
from sottovoce.tables.reader import Columns, count_table
count_table({small!r}, Columns("item", "user"))
begin, before = time.perf_counter(), spent()
count_table({log!r}, Columns("item", "user"))
took = time.perf_counter() - begin
print(spent() - before, took)
"""
_COMMAND = """
import resource, sys, time
sys.argv = ["sottovoce", *{arguments!r}]
from sottovoce.cli.app import run
begin, before = time.perf_counter(), spent()
try:
    run()
except SystemExit as end:
    assert not end.code, end.code
took = time.perf_counter() - begin
used = [resource.getrusage(who).ru_maxrss / 2**20 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(spent() - before, took, *used)
"""


def shares() -> np.ndarray:
    """The share of every category: rank^−0.8."""
    weights = np.arange(1, CATEGORIES + 1) ** -0.8
    law: np.ndarray = weights / weights.sum()
    return law


def write_log(path: Path, users: int) -> None:
    """Twenty rows for every user, in no order, names as text."""
    rng = np.random.default_rng(1)
    items = rng.choice(CATEGORIES, size=users * ROWS, p=shares()).astype(np.int32)
    who = rng.permutation(np.repeat(np.arange(users, dtype=np.int32), ROWS))
    table = pl.DataFrame({"user": who, "item": items})
    named = table.select(pl.format("u{}", "user").alias("user"), pl.format("i{}", "item").alias("item"))
    named.write_parquet(path)


def _mechanism(name: str) -> sv.Mechanism:
    prior = sv.Prior([f"i{i}" for i in range(CATEGORIES)], shares())
    return sv.certify(sv.SAMPLERS[name](prior, 2.0))


def _release(folder: Path, log: Path, mechanism: str, *more: str) -> list[float]:
    """Seconds of processor and of wall of the command, memory of its process and of its reader in GiB."""
    out = folder / "out.csv"
    out.unlink(missing_ok=True)
    given = ["release", str(folder / f"{mechanism}.json"), str(log), "-o", str(out), "--max-epsilon", "100"]
    return [float(word) for word in fresh(_SPENT + _COMMAND.format(arguments=[*given, *more])).split()]


def _least(code: str) -> list[float]:
    """Seconds of processor and of wall, of the better of two runs."""
    return min([float(word) for word in fresh(_SPENT + code).split()] for _ in range(2))


def _both(what: str, ours: list[float], theirs: list[float], most: float) -> list[Line]:
    """Processor time against its limit, and beside it the time on the wall, without one."""
    wall = at_most(f"{what}: wall", ours[1], theirs[1], most)
    return [
        at_most(f"{what}: processor time", ours[0], theirs[0], most),
        replace(wall, required="", holds=True),
    ]


def commands() -> list[Line]:
    """A million users of twenty rows from a Parquet log to a CSV file of reports."""
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        log, small = folder / "log.parquet", folder / "small.parquet"
        write_log(log, 10**6)
        write_log(small, 100)
        for name in ("minimax_kernel", "kernel_clip"):
            _mechanism(name).save(folder / f"{name}.json")
        place = {"log": str(log), "out": str(folder / "ref.csv"), "small": str(small)}
        alone = _least(_GROUPED.format(**place))
        for name in ("minimax_kernel", "kernel_clip"):
            took = min(_release(folder, log, name)[:2] for _ in range(2))
            what = f"release of 10⁶ users × 20 rows, `{name}`, against group-by and write in DuckDB"
            lines += _both(what, took, alone, 3)
        book = folder / "book.db"
        sv.Ledger.create(book, budget=4).close()
        took = _release(folder, log, "kernel_clip", "--ledger", str(book), "--epoch", "now")[:2]
        lines += _both("the same with a new ledger", took, alone, 6)
        write_log(log, 5 * 10**5)
        counted, tallied = (_least(code.format(**place)) for code in (_COUNTED, _TALLIED))
        what = "count_table of 10⁷ Parquet rows, against DuckDB's own group-by"
        lines += _both(what, tallied, counted, 1.8)
    return lines


def charges() -> list[Line]:
    """A million charges in one commit, against the bare writes of the same two tables."""
    users = 10**6
    mechanism = _mechanism("minimax_kernel")
    rows = np.zeros((users, 1), dtype=np.int64)
    names = [f"u{i}" for i in range(users)]
    from scipy import sparse

    counts = sparse.csr_array(
        (np.ones(users, dtype=np.int64), rows.ravel(), np.arange(users + 1)), shape=(users, CATEGORIES)
    )
    asked = request(mechanism, names, counts)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        book = sv.Ledger.create(folder / "book.db", budget=4)
        took = seconds(lambda: book.charge([asked], epoch="now"), 1)
        keys = [book._hash(name) for name in names]
        book.close()
        bare = seconds(lambda: _bare(folder / "bare.db", keys), 1)
    rate = f"{users / took / 1e3:,.0f} k/s"
    holds = users / took >= 70_000 or took <= 1.5 * bare
    ratio = f"{took / bare:.2f}×"
    against = f"{users / bare / 1e3:,.0f} k/s"
    what = "charges, one commit, against bare writes"
    return [Line(what, rate, against, ratio, "≥ 70 k/s or ≤ 1.5×", holds)]


_TABLES = """
CREATE TABLE spent (user BLOB, epoch INTEGER, micro INTEGER, PRIMARY KEY (user, epoch)) WITHOUT ROWID;
CREATE TABLE answers (user BLOB, epoch INTEGER, kind INTEGER, position INTEGER,
                      PRIMARY KEY (user, epoch, kind)) WITHOUT ROWID;
"""


def _bare(path: Path, keys: list[bytes]) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = EXTRA")
    database.executescript(_TABLES)
    ordered = sorted(keys)
    database.execute("BEGIN IMMEDIATE")
    database.executemany("INSERT INTO spent VALUES (?, 1, 2000000)", ((key,) for key in ordered))
    database.executemany("INSERT INTO answers VALUES (?, 1, 1, NULL)", ((key,) for key in ordered))
    database.execute("COMMIT")
    database.close()


def memory() -> list[Line]:
    """How the memory of the command grows with the log: ten, twenty and forty million rows."""
    lines, before = [], 0.0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        log = folder / "log.parquet"
        _mechanism("kernel_clip").save(folder / "kernel_clip.json")
        for millions in (10, 20, 40):
            write_log(log, millions * 10**6 // ROWS)
            _, _, own, reader = _release(folder, log, "kernel_clip")
            what = f"memory of release (of its reader), {millions} M rows of {millions / ROWS:g} M users"
            ratio = f"{own / before:.2f}×" if before else "–"
            required = "≤ 2.2×" if before else ""
            lines.append(
                Line(what, f"{own:.2f} GiB", f"{reader:.2f} GiB", ratio, required, own <= 2.2 * before)
            )
            before = own
    return lines


SECTIONS = {"The command release": commands, "The ledger": charges, "Memory of a release": memory}
