"""How a benchmark line is measured and written down."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One ratio with what it must reach; `required` reads like "≥ 20" or "≤ 3", empty if nothing."""

    what: str
    ours: str
    against: str
    ratio: str
    required: str
    holds: bool


def seconds(call: Callable[[], object], repeat: int = 5) -> float:
    """The best of several runs: the least disturbed by the machine."""
    best = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def per_call(call: Callable[[], object], times: int = 2000) -> float:
    """Seconds of one call, the best of five averages."""
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, (time.perf_counter() - begin) / times)
    return best


def at_least(what: str, ours: float, theirs: float, least: float) -> Line:
    """How many times faster than `theirs` we are."""
    ratio = theirs / ours
    return Line(what, duration(ours), duration(theirs), f"{ratio:,.0f}×", f"≥ {least:,g}×", ratio >= least)


def at_most(what: str, ours: float, theirs: float, most: float) -> Line:
    """How many times `theirs` we take."""
    ratio = ours / theirs
    return Line(what, duration(ours), duration(theirs), f"{ratio:.2f}×", f"≤ {most:,g}×", ratio <= most)


def duration(value: float) -> str:
    """A time with a readable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def fresh(code: str) -> str:
    """Run code in a new interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def table(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    rows = ["| what | ours | against | ratio | required | holds |", "|---|---:|---:|---:|---:|:---:|"]
    for line in lines:
        mark = "yes" if line.holds else "**no**"
        rows.append(
            f"| {line.what} | {line.ours} | {line.against} | {line.ratio} | {line.required or '–'} "
            f"| {mark if line.required else '–'} |"
        )
    return "\n".join(rows)
