"""`make bench`: measure everything and write docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import sys
from datetime import date
from pathlib import Path

import numpy
import scipy

from . import commands, core, cost, estimation, release, spark, tables
from .measure import Line, table

(COST,) = cost.SECTIONS
PICTURES = {
    COST: "![Seconds against the number of categories: linear program, Algorithm 1, ours](images/cost.png)"
}
OUT = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def section(title: str, lines: list[Line]) -> list[str]:
    """A section of the page: its picture, if it has one, and its table."""
    picture = [PICTURES[title], ""] if title in PICTURES else []
    return ["", f"## {title}", "", *picture, table(lines)]


def main() -> int:
    """Run every section, write the page, and fail when a required ratio is missed.

    With words as arguments, only the sections whose titles have one of them; then no page is written.
    """
    words = [word.casefold() for word in sys.argv[1:]]
    parts = [
        "# Benchmarks",
        "",
        f"Written by `make bench` on {date.today().isoformat()}: {os.cpu_count()} cores, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {numpy.__version__}, scipy {scipy.__version__}. Times are the best of several runs and are "
        f"compared with another time of the same run; memory, the import, one release on a device and "
        f"certifying are held against fixed limits. Absolute times say little on another machine.",
    ]
    holds = True
    for title, measure in {
        **core.SECTIONS,
        **cost.SECTIONS,
        **release.SECTIONS,
        **tables.SECTIONS,
        **commands.SECTIONS,
        **spark.SECTIONS,
        **estimation.SECTIONS,
    }.items():
        if words and not any(word in title.casefold() for word in words):
            continue
        print(f"{title} …", flush=True)
        lines = measure()
        holds &= all(line.holds for line in lines)
        parts += section(title, lines)
        print(table(lines), flush=True)
    if words:
        return 0 if holds else 1
    OUT.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(f"written to {OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
