"""`make bench`: measure everything; write build/benchmarks.md and the table of docs/evidence.md."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from datetime import date

import numpy
import scipy

from experiments.documents import ROOT, write_block

from . import collecting, commands, core, cost, estimation, page, release, spark, tables
from .measure import Line, table

(COST,) = cost.SECTIONS
PAGE, BLOCK = "docs/evidence.md", "benchmarks"
FULL = ROOT / "build" / "benchmarks.md"
HEAD = ["|what|ours|against|ratio|required|", "|---|---:|---:|---:|---:|"]
MEASURED = {
    **core.SECTIONS,
    **cost.SECTIONS,
    **release.SECTIONS,
    **tables.SECTIONS,
    **commands.SECTIONS,
    **collecting.SECTIONS,
    **spark.SECTIONS,
    **estimation.SECTIONS,
    **page.SECTIONS,
}


def machine() -> str:
    """What the times were measured on."""
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {numpy.__version__}, scipy {scipy.__version__}"
    )


def section(title: str, lines: list[Line]) -> str:
    """All lines of a section, with the date and the machine."""
    where = f"{date.today().isoformat()}, {machine()}."
    return "\n".join([f"## {title}", "", where, "", table(lines)]) + "\n"


def sections_of(text: str) -> dict[str, str]:
    """The sections of the full list, by their titles."""
    parts = re.split(r"(?m)^(?=## )", text)[1:]
    return {part.splitlines()[0][3:]: part.rstrip() + "\n" for part in parts}


def tightest(lines: list[Line]) -> list[Line]:
    """The first line with a requirement, the other one that is nearest to its limit, and all that miss it."""
    required = [line for line in lines if line.required]
    nearest = sorted(required[1:], key=_slack)[:1]
    return [line for line in required if line in (*required[:1], *nearest) or not line.holds]


def _slack(line: Line) -> float:
    """How many times better than its limit a ratio is."""
    ratio, limit = (
        float(number[0].replace(",", "")) if (number := re.search(r"\d[\d.,]*", text)) else math.inf
        for text in (line.ratio, line.required)
    )
    return ratio / limit if line.required.startswith("≥") else limit / ratio


def rows(title: str, lines: list[Line]) -> list[str]:
    """A section of the table: its title and date, and a row for each line."""
    shown = lines if title == COST else tightest(lines)
    written = [f"|**{title}**, {date.today().isoformat()}|||||"]
    for line in shown:
        required = line.required if line.holds else f"**{line.required}**"
        written.append(f"|{line.what}|{line.ours}|{line.against}|{line.ratio}|{required}|")
    return written


def rows_of(text: str) -> dict[str, list[str]]:
    """The sections of the table as it is now, by their titles."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if title := re.match(r"\|\*\*(.+?)\*\*", line):
            found[title[1]] = [line]
        elif found and line.startswith("|"):
            next(reversed(found.values())).append(line)
    return found


def main() -> int:
    """Measure every section, or those whose titles have one of the words given; write both tables.

    The exit code is 1 when a required ratio is missed.
    """
    words = [word.casefold() for word in sys.argv[1:]]
    full = sections_of(FULL.read_text(encoding="utf-8")) if FULL.exists() else {}
    short = rows_of((ROOT / PAGE).read_text(encoding="utf-8"))
    holds = True
    for title, measure in MEASURED.items():
        if words and not any(word in title.casefold() for word in words):
            continue
        print(f"{title} …", flush=True)
        lines = measure()
        holds &= all(line.holds for line in lines)
        full[title] = section(title, lines)
        short[title] = rows(title, lines)
        print(table(lines), flush=True)
    FULL.parent.mkdir(exist_ok=True)
    FULL.write_text("\n".join(full[title] for title in MEASURED if title in full), encoding="utf-8")
    body = [row for title in MEASURED if len(short.get(title, ())) > 1 for row in short[title]]
    write_block(PAGE, BLOCK, "\n".join([f"Last run: {machine()}.", "", *HEAD, *body]))
    print(f"written to {PAGE} and {FULL.relative_to(ROOT)}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
