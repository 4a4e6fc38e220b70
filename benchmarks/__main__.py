"""`make bench`: measure everything and write docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import date
from pathlib import Path

import numpy
import scipy

from . import collecting, commands, core, cost, estimation, page, release, several, spark, tables
from .measure import Line, table

(COST,) = cost.SECTIONS
PICTURES = {
    COST: "![Seconds against the number of categories: linear program, Algorithm 1, ours](images/cost.png)"
}
OUT = Path(__file__).parent.parent / "docs" / "benchmarks.md"


HEAD = """# Benchmarks

Written by `make bench`; `python -m benchmarks WORD …` measures sections with a word in their title anew.
Times are the best of several runs and are compared with another time of the same run.
Memory, the import, one release on a device and certifying are held against fixed limits.
Absolute times say little on another machine.
"""
MEASURED = {
    **core.SECTIONS,
    **cost.SECTIONS,
    **release.SECTIONS,
    **several.SECTIONS,
    **tables.SECTIONS,
    **commands.SECTIONS,
    **collecting.SECTIONS,
    **spark.SECTIONS,
    **estimation.SECTIONS,
    **page.SECTIONS,
}


def section(title: str, lines: list[Line]) -> str:
    """A section of the page: when and where it was measured, its picture, if it has one, and its table."""
    where = (
        f"{date.today().isoformat()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {numpy.__version__}, scipy {scipy.__version__}."
    )
    picture = [PICTURES[title], ""] if title in PICTURES else []
    return "\n".join([f"## {title}", "", where, "", *picture, table(lines)]) + "\n"


def sections_of(page: str) -> dict[str, str]:
    """The sections that a page has, by their titles."""
    parts = re.split(r"(?m)^(?=## )", page)[1:]
    return {part.splitlines()[0][3:]: part.rstrip() + "\n" for part in parts}


def main() -> int:
    """Measure every section, or those whose titles have one of the words given; write the page.

    The exit code is 1 when a required ratio is missed.
    """
    words = [word.casefold() for word in sys.argv[1:]]
    written = sections_of(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    holds = True
    for title, measure in MEASURED.items():
        if words and not any(word in title.casefold() for word in words):
            continue
        print(f"{title} …", flush=True)
        lines = measure()
        holds &= all(line.holds for line in lines)
        written[title] = section(title, lines)
        print(table(lines), flush=True)
    page = [HEAD, *(written[title] for title in MEASURED if title in written)]
    OUT.write_text("\n".join(page), encoding="utf-8")
    print(f"written to {OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
