"""Tables: forty million rows from file to result, against fewer rows and a straightforward program."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import sottovoce as sv
from experiments import avazu, avazu_like

from .measure import Line, at_least, at_most, fresh

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
import oracles

ATTRIBUTE, EPSILONS = "C18", (8.0, 12.0, 16.0)
RUN = """
import resource, sys, time
from pathlib import Path
import sottovoce as sv
from experiments import avazu
begin = time.perf_counter()
rows = avazu.measure(Path({path!r}), {attribute!r})
assert len(rows) == 4 * 3 * len(sv.SAMPLERS), len(rows)
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def large_logs() -> list[Line]:
    """One attribute, three epsilons, all samplers: invented logs of 10 and 40 million rows."""
    taken: dict[str, float] = {}
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for kind, name, minutes in (("csv.gz", "gzip CSV", 10), ("parquet", "Parquet", 4)):
            for millions in (10, 40):
                path = Path(temporary) / f"log.{kind}"
                avazu_like.write(path, millions * 10**6)
                size = path.stat().st_size / 2**30
                code = RUN.format(path=str(path), attribute=ATTRIBUTE)
                runs = [[float(word) for word in fresh(code).split()] for _ in range(2)]
                path.unlink()
                seconds, memory = min(run[0] for run in runs), max(run[1] for run in runs)
                taken[f"{kind} {millions}"] = seconds
                if millions == 40:
                    what = f"40,000,000 rows of {name} ({size:.1f} GiB) to a table, whole process"
                    lines.append(at_most(what, seconds, 60.0 * minutes, 1))
                    what = f"memory at its peak, the same {name}"
                    limit = f"{memory / 8:.2f}×"
                    lines.append(Line(what, f"{memory:.2f} GiB", "8 GiB", limit, "≤ 1×", memory <= 8))
            what = f"40 against 10 million rows, {name}"
            lines.append(at_most(what, taken[f"{kind} 40"], taken[f"{kind} 10"], 5))
    return lines


def straightforward(path: Path) -> dict[tuple[str, float, str], float]:
    """What one would write first: pandas, a loop over groups and users, a linear program per user.

    Only the paper's two samplers; the library's run has all ten.
    """
    log = pd.read_csv(path, dtype=str)
    log["click"] = log["click"].astype(int)
    often = log["device_id"].map(log["device_id"].value_counts())
    log = log[often >= avazu.Rules.rows_per_device]
    out: dict[tuple[str, float, str], float] = {}
    for value, part in log.groupby(ATTRIBUTE):
        best = part.groupby("site_id")["click"].sum().sort_index().sort_values(ascending=False, kind="stable")
        sites = sorted(best.index[: avazu.Rules.sites])
        counts = pd.crosstab(part["device_id"], part["site_id"]).reindex(columns=sites, fill_value=0)
        counts = counts[counts.sum(axis=1) > 0]
        if len(counts) < avazu.Rules.devices_per_value:
            continue
        laws = counts.div(counts.sum(axis=1), axis=0).to_numpy()
        q = laws.mean(axis=0)
        for epsilon in EPSILONS:
            kernel = oracles.algorithm_1_any_order(q, epsilon)
            paper = np.abs(laws - laws @ kernel).sum(axis=1) / 2
            floor = q * np.exp(-epsilon / 2)
            mollifier = [oracles.projection_tv_lp(law, floor, epsilon) for law in laws]
            out[str(value), epsilon, "minimax_kernel"] = float(paper.max())
            out[str(value), epsilon, "relative_mollifier"] = float(max(mollifier))
    return out


def against_pandas() -> list[Line]:
    """A million rows, the straightforward program against the library, both from the gzip CSV."""
    with tempfile.TemporaryDirectory() as temporary:
        path = avazu_like.write(Path(temporary) / "log.csv.gz", 10**6)
        theirs, expected = _timed(lambda: straightforward(path))
        ours, rows = min(
            (_timed(lambda: avazu.measure(path, ATTRIBUTE)) for _ in range(3)), key=lambda r: r[0]
        )
    found = {(row["group"], row["epsilon"], row["sampler"]): row["max_tv"] for row in rows}
    worst = max(abs(found[key] - value) for key, value in expected.items())
    what = "ten samplers, 1,000,000 rows, against pandas and linear programs"
    agree = Line(
        f"largest difference of the two programs' {len(expected)} maxima",
        f"{worst:.1e}",
        "1e-6",
        "–",
        "≤ 1e-6",
        worst <= 1e-6,
    )
    return [at_least(what, ours, theirs, 20), agree]


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    value = call()
    return time.perf_counter() - begin, value


RELEASE = """
import resource, time
from sottovoce import Policy, load, releasing
mechanism = load({mechanism!r}, policy=Policy(max_epsilon=2))
begin = time.perf_counter()
releasing.release_file({{"all": mechanism}}, {table!r}, {output!r}, force=True)
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
TABLE = """
COPY (SELECT format('user-{{:08d}}', hash(i * 2 + 1) % {people}) AS user,
             format('item{{:03d}}', hash(i * 7 + 3) % 100) AS item FROM range({rows}) t(i))
TO '{table}' (FORMAT parquet)
"""
READ = """
import time
from sottovoce.tables.reader import Columns, opened, ordered_cells
begin = time.perf_counter()
with opened({table!r}) as source:
    for batch in ordered_cells(source, Columns("item", "user")).batches(1_000_000, named=False):
        pass
print(time.perf_counter() - begin)
"""
GROUP = """
import duckdb, tempfile, time
with tempfile.TemporaryDirectory() as folder:
    connection = duckdb.connect(config={{"memory_limit": "3GB", "temp_directory": folder}})
    connection.execute("SET enable_progress_bar = false")
    begin = time.perf_counter()
    cells = 'SELECT "user", item, count(*) AS n FROM read_parquet(?) GROUP BY ALL'
    connection.execute(f"SELECT count(*), sum(n) FROM ({{cells}})", [{table!r}]).fetchall()
    print(time.perf_counter() - begin)
"""


def streamed(sizes: tuple[tuple[int, int], ...] = ((20_000_000, 10**6), (100_000_000, 10**7))) -> list[Line]:
    """`release_file` on Parquet files of 100 categories, its reading against DuckDB's own GROUP BY."""
    lines = []
    items = [f"item{i:03d}" for i in range(100)]
    with tempfile.TemporaryDirectory() as temporary:
        paths = {name: str(Path(temporary) / name) for name in ("table.parquet", "out.parquet", "m.json")}
        table, output, mechanism = paths.values()
        sv.certify(sv.kernel_clip(sv.Prior.uniform(items), 2.0)).save(mechanism)
        for rows, people in sizes:
            made = TABLE.format(rows=rows, people=people, table=table)
            duckdb.connect(config={"memory_limit": "3GB", "temp_directory": f"{temporary}/spilled"}).execute(
                made
            )
            ours, plain = (float(fresh(code.format(table=table))) for code in (READ, GROUP))
            code = RELEASE.format(table=table, output=output, mechanism=mechanism)
            seconds, memory = map(float, fresh(code).split())
            what = f"{rows:,} rows of {people:,} users"
            lines.append(at_most(f"{what}: grouping against DuckDB's", ours, plain, 2))
            share = f"{memory / 4:.2f}×"
            what = f"{what} released in {seconds:.0f} s: peak memory"
            lines.append(Line(what, f"{memory:.2f} GiB", "4 GiB", share, "≤ 1×", memory <= 4))
    return lines


SECTIONS = {
    "Streamed releases": streamed,
    "Large tables": large_logs,
    "A straightforward program": against_pandas,
}
