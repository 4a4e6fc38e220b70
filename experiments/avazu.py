"""The paper's Avazu experiment (Figure 3 and appendix): a device's sites, within one value of an attribute.

    python -m experiments.avazu train.gz --attribute C18

Rules, as the published numbers were computed: devices with at least 20 rows in the whole log; per value of
the attribute the 100 sites with the most clicks (of those devices); counts are of rows, not of clicks; values
with at least 100 devices; values with a single site are skipped; the prior of a value is the plain mean of
its devices' distributions; wins and losses are of maxima that are not rounded. The paper prints six of the
nine attributes. That prior is made from the very devices it serves. It compares samplers; it is no private
deployment, and every table says so.

The log is not ours to ship: it is one gzip CSV of about 40 million rows. `experiments.avazu_like` writes
invented files in its format. The file is read in a stream, once per attribute, and only its counts stay in
memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import sottovoce as sv
from sottovoce.pictures.plots import new_figure

from .results import DRAWN, PAPERS, Row, draw_groups, save_both, share_legend, versus_mollifier, write_table

ATTRIBUTES = ("C1", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21")
PRINTED = ("C1", "C15", "C16", "C17", "C18", "C19")
"""The attributes of the paper's appendix, its Figures 6 to 11 in this order."""

EPSILONS = (8.0, 12.0, 16.0)
COLUMNS = (
    "attribute", "epsilon", "group", "sampler", "users", "max_tv", "mean_tv", "p99_tv", "provenance",
)  # fmt: skip
MAIN = ("C18", 12.0)


@dataclass(frozen=True)
class Rules:
    """What is left out; the defaults are the paper's, small samples need lower ones."""

    rows_per_device: int = 20
    sites: int = 100
    devices_per_value: int = 100


class NothingLeft(Exception):
    """No value of the attribute has enough devices and more than one site."""


def measure(
    path: Path, attribute: str, epsilons: Sequence[float] = EPSILONS, rules: Rules | None = None
) -> list[Row]:
    """One tidy row per epsilon, value of the attribute and sampler."""
    counts = _counts(path, attribute, rules or Rules())
    sites: dict[str, list[str]] = {}
    for value, site in counts.project("value, site").distinct().order("value, site").fetchall():
        sites.setdefault(value, []).append(site)
    if not sites:
        raise NothingLeft
    users = sv.read_users(
        counts,
        user="device",
        item="site",
        weight="n",
        by="value",
        prior={value: sv.Prior.uniform(listed) for value, listed in sites.items()},
        several_groups="allow",  # a device meets several values, and nothing is released here
    )
    priors = {
        value: sv.Prior.from_counts(group.p.mean(axis=0), group.categories, provenance="users")
        for value, group in users.items()
    }
    samplers = {
        value: [make(prior, epsilon) for epsilon in epsilons for make in sv.SAMPLERS.values()]
        for value, prior in priors.items()
    }
    return [
        {
            "attribute": attribute,
            "epsilon": row.epsilon,
            "group": row.group,
            "sampler": row.sampler.split("(")[0],
            "users": row.users,
            "max_tv": row.maximum,
            "mean_tv": row.mean,
            "p99_tv": row.p99,
            "provenance": row.provenance,
        }
        for row in sv.compare(users, samplers, sv.TV)
    ]


def _counts(path: Path, attribute: str, rules: Rules) -> duckdb.DuckDBPyRelation:
    """How often each device met each site within each value, of those that the rules keep."""
    if not path.is_file():
        raise sv.errors.TableError(f"{path} cannot be read: there is no such file")
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    parquet = path.suffix == ".parquet"
    form: Any = {"all_varchar": True, "buffer_size": 1 << 22}  # detection reads a whole buffer
    log = connection.read_parquet(str(path)) if parquet else connection.read_csv(str(path), **form)
    columns = f"device_id AS device, site_id AS site, {attribute}::VARCHAR AS value, click::BIGINT AS click"
    log.project(columns).create_view("log")
    connection.execute(
        """
        CREATE TABLE heavy AS SELECT device, site, value, count(*) AS n, sum(click) AS clicks
        FROM log GROUP BY device, site, value QUALIFY sum(count(*)) OVER (PARTITION BY device) >= ?
        """,
        [rules.rows_per_device],
    )
    connection.execute(
        """
        CREATE TABLE kept AS SELECT value, site FROM heavy GROUP BY value, site
        QUALIFY row_number() OVER (PARTITION BY value ORDER BY sum(clicks) DESC, site) <= ?
        """,
        [rules.sites],
    )
    enough = connection.sql(
        """
        SELECT value FROM heavy JOIN kept USING (value, site) GROUP BY value
        HAVING count(DISTINCT device) >= ? AND count(DISTINCT site) > 1
        """,
        params=[rules.devices_per_value],
    )
    enough.create("enough")
    return connection.sql(
        "SELECT device, site, value, n FROM heavy JOIN kept USING (value, site) JOIN enough USING (value)"
    )


def draw(
    rows: Sequence[Row],
    attribute: str,
    epsilons: Sequence[float],
    title: str,
    drawn: Sequence[str] = DRAWN,
) -> Any:
    """One panel per epsilon: the maximum TV within every value of the attribute."""
    mine = [row for row in rows if row["attribute"] == attribute]
    groups = sorted(dict.fromkeys(row["group"] for row in mine), key=lambda group: (len(group), group))
    figure = new_figure(1 + 4.2 * len(epsilons), 3.8)
    panels = figure.subplots(1, len(epsilons), squeeze=False)[0]
    for axes, epsilon in zip(panels, epsilons, strict=True):
        draw_groups(axes, [row for row in mine if row["epsilon"] == epsilon], groups, drawn)
        axes.set_title(f"ε = {epsilon:g}")
    panels[0].set_ylabel("maximum TV over the devices")
    share_legend(figure)
    figure.suptitle(f"{title}, values of {attribute}\n(priors made from the devices themselves)", fontsize=10)
    return figure


def run(
    path: Path,
    output: Path,
    *,
    attributes: Sequence[str] = ATTRIBUTES,
    epsilons: Sequence[float] = EPSILONS,
    rules: Rules | None = None,
    stem: str = "avazu",
    title: str | None = None,
) -> tuple[list[Path], list[Row]]:
    """Write the tidy table, Figures 3 and 6 to 11 where they can be drawn, and a picture per attribute."""
    output.mkdir(parents=True, exist_ok=True)
    title = title or path.name
    rows: list[Row] = []
    for attribute in attributes:
        begin = time.perf_counter()
        try:
            found = measure(path, attribute, epsilons, rules)
        except NothingLeft:
            print(f"skipped   {attribute}: no value has enough devices and more than one site", flush=True)
            continue
        rows += found
        taken, values = time.perf_counter() - begin, len({row["group"] for row in found})
        print(f"measured  {attribute}: {values} values in {taken:.1f} s", flush=True)
    if not rows:
        raise sv.errors.TableError(
            f"{path}: no attribute has a value with enough devices: lower "
            "--rows-per-device and --devices-per-value"
        )
    written = [write_table(rows, COLUMNS, output / f"{stem}.csv")]
    measured = list(dict.fromkeys(row["attribute"] for row in rows))
    if MAIN[0] in measured and MAIN[1] in epsilons:
        written += save_both(draw(rows, MAIN[0], (MAIN[1],), title, PAPERS), output, f"{stem}-figure3")
    for attribute in measured:
        if attribute in PRINTED:
            like = draw(rows, attribute, epsilons, title, PAPERS)
            written += save_both(like, output, f"{stem}-figure{6 + PRINTED.index(attribute)}")
        written += save_both(draw(rows, attribute, epsilons, title), output, f"{stem}-{attribute}")
    return written, rows


def summary(rows: Sequence[Row]) -> str:
    """Averages over the cells of the attributes that the paper prints, and who wins them, unrounded."""
    printed = [row for row in rows if row["attribute"] in PRINTED]
    return versus_mollifier(printed or rows, ("attribute", "epsilon", "group"))


def main() -> int:
    """Run on a file and print who wins."""
    parser = argparse.ArgumentParser(description="The Avazu experiment on a log in its 24 columns.")
    parser.add_argument("path", type=Path, help="train.gz, or any CSV, gzip CSV or Parquet in its columns")
    parser.add_argument("--attribute", action="append", choices=ATTRIBUTES, help="repeat; default all nine")
    parser.add_argument("--epsilon", action="append", type=float, help="repeat; default 8, 12 and 16")
    parser.add_argument("--rows-per-device", type=int, default=Rules.rows_per_device)
    parser.add_argument("--sites", type=int, default=Rules.sites)
    parser.add_argument("--devices-per-value", type=int, default=Rules.devices_per_value)
    parser.add_argument("--output", type=Path, default=Path("results"))
    given = parser.parse_args()
    try:
        written, rows = run(
            given.path,
            given.output,
            attributes=given.attribute or ATTRIBUTES,
            epsilons=given.epsilon or EPSILONS,
            rules=Rules(given.rows_per_device, given.sites, given.devices_per_value),
        )
    except sv.errors.SottovoceError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(summary(rows))
    print(f"The priors were made from the devices they serve: {rows[0]['provenance'] == 'users'}.")
    print(*(f"written   {path}" for path in written), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
