"""Pictures as HTML and SVG in per cent: they fit every width and follow the colours of the page.

Every picture is a figure with a name and numbers as text for those who do not see it. The text of the page is
never markup: all names pass `text`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..pictures.plots import style
from ..planning.compare import BEST_POSSIBLE
from .names import plain

PERSON, TRUTH, REPORTS, ESTIMATE, PUBLIC = "this person", "what people hold", "reports", "estimate", "public"
_SHAPES = {
    "s": "M-4,-4H4V4H-4Z", "o": "M0,-4.5A4.5,4.5 0 1 1 0,4.5A4.5,4.5 0 1 1 0,-4.5Z", "^": "M0,-5L5,4H-5Z",
    "D": "M0,-5.5L5.5,0L0,5.5L-5.5,0Z", "v": "M0,5L5,-4H-5Z", "<": "M-5,0L4,-5V5Z", ">": "M5,0L-4,-5V5Z",
    "h": "M-5,0L-2.5,-4.4H2.5L5,0L2.5,4.4H-2.5Z", "x": "M-4,-4L4,4M4,-4L-4,4", "+": "M0,-5V5M-5,0H5",
    "*": "M0,-6L1.6,-2L5.8,-1.9L2.5,0.8L3.6,4.9L0,2.5L-3.6,4.9L-2.5,0.8L-5.8,-1.9L-1.6,-2Z",
}  # fmt: skip
_OWN = {PERSON: ("var(--sv-ink)", "D"), TRUTH: ("var(--sv-ink)", "|"), ESTIMATE: ("var(--sv-accent)", "o")}
_DASHES = {"-": "", "--": "6 4", ":": "2 4", "-.": "8 3 2 3"}


@dataclass(frozen=True)
class Row:
    """One category of a picture: an interval, marks of public shares, points, all between 0 and 1."""

    name: str
    interval: tuple[float, float] | None = None
    tick: float | None = None
    bar: float | None = None
    points: dict[str, float] = field(default_factory=dict)
    value: str = ""
    words: str = ""


@dataclass(frozen=True)
class Axis:
    """From numbers to per cents of the width, with the ticks that are written below."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a number stands, in per cent; what lies outside stands at the edge."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            return 100 * math.log(value / self.low) / math.log(self.high / self.low)
        return 100 * (value - self.low) / (self.high - self.low)


def logarithmic(smallest: float) -> Axis:
    """From below the smallest number up to 1, in decades."""
    low = smallest / 2
    ticks = tuple(10.0**power for power in range(math.ceil(math.log10(low)), 1))
    step = -(-len(ticks) // 4)
    return Axis(low, 1.0, ticks[::-1][::step][::-1], True)


def linear(largest: float, ticks: int = 4) -> Axis:
    """From 0 to just above the largest number, with round ticks."""
    largest = max(largest, 1e-6)
    step = 10.0 ** math.floor(math.log10(largest / ticks))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step * ticks >= largest * 0.999)
    count = math.ceil(largest / step - 1e-9)
    return Axis(0.0, count * step, tuple(i * step for i in range(count + 1)))


def text(value: object) -> str:
    """Text for HTML and its attributes: names are data, and must not become markup."""
    return html.escape(str(value), quote=True)


def per_cent(share: float) -> str:
    """A share as people read it."""
    if share >= 0.9995:
        return "100 %"
    return f"{100 * share:.1f} %" if share >= 0.001 else ("0 %" if share <= 0 else f"{100 * share:.2g} %")


def colour_of(series: str) -> str:
    """The colour of a sampler or of a quantity; the sheet has others where these lack contrast."""
    if series in _OWN:
        return _OWN[series][0]
    colour: str = style(series)["color"]
    drawn = colour if colour.startswith("#") and series != BEST_POSSIBLE else "var(--sv-ink)"
    return f"var(--sv-{series.replace(' ', '-')}, {drawn})"


def mark(series: str, x: float, y: str = "50%", words: str = "") -> str:
    """A point: an own colour and an own shape for each series, so that colour is not needed."""
    shape = _OWN[series][1] if series in _OWN else style(series)["marker"]
    colour, title = colour_of(series), f"<title>{text(words)}</title>" if words else ""
    if shape == "|":
        path = f'<path d="M0,-9V9" stroke="{colour}" stroke-width="3"/>'
    elif shape in "x+":
        path = f'<path d="{_SHAPES[shape]}" stroke="{colour}" stroke-width="2.2" fill="none"/>'
    else:
        drawn = _SHAPES.get(shape, _SHAPES["o"])
        path = f'<path d="{drawn}" fill="{colour}" stroke="var(--sv-card)" stroke-width="0.8"/>'
    return f'<svg x="{x:.2f}%" y="{y}" overflow="visible" class="sv-mark">{title}{path}</svg>'


def called(series: str) -> str:
    """The words of a legend: plain and technical names of a sampler."""
    if series in _OWN or series == BEST_POSSIBLE:
        return text(series)
    return f"{text(plain(series).name)} <small>{text(series)}</small>"


def legend(series: Sequence[str], extra: str = "") -> str:
    """What the marks mean."""
    items = "".join(
        f'<li><svg width="16" height="20" aria-hidden="true">{mark(one, 50)}</svg>'
        f"<span>{called(one)}</span></li>"
        for one in series
    )
    return f'<ul class="sv-legend">{items}{extra}</ul>'


def key(kind: str, words: str) -> str:
    """A line of a legend for what is no point: a bar, an interval, a tick."""
    return f'<li><i class="sv-key sv-key-{kind}" aria-hidden="true"></i><span>{text(words)}</span></li>'


def figure(name: str, body: str, words: str) -> str:
    """A picture with its name, and with the numbers in words for whoever does not see it."""
    return (
        f'<figure class="sv-chart" aria-label="{text(name)}">{body}'
        f'<figcaption class="sv-hidden">{text(words)}</figcaption></figure>'
    )


def _row(row: Row, axis: Axis) -> str:
    parts = [
        f'<line x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="100%" class="sv-grid"/>'
        for x in map(axis.place, axis.ticks)
    ]
    for kind, ends in (("interval", row.interval), ("bar", None if row.bar is None else (axis.low, row.bar))):
        if ends is not None:
            left, right = axis.place(ends[0]), axis.place(ends[1])
            height, top = (10, 6) if kind == "interval" else (14, 4)
            parts.append(
                f'<rect x="{left:.2f}%" width="{max(right - left, 0.4):.2f}%" y="{top}" height="{height}" '
                f'rx="3" class="sv-{kind}"><title>{text(row.words)}</title></rect>'
            )
    if row.tick is not None:
        x = axis.place(row.tick)
        parts.append(f'<line x1="{x:.2f}%" x2="{x:.2f}%" y1="2" y2="20" class="sv-tick"/>')
    apart = min(4.0, 12 / max(len(row.points), 1))
    for number, (series, value) in enumerate(row.points.items()):  # one above the other: none is hidden
        up = 11 + apart * (number - (len(row.points) - 1) / 2)
        up = 11 if series == TRUTH else up
        parts.append(mark(series, axis.place(value), f"{up:.1f}", f"{row.name}, {series}: {per_cent(value)}"))
    return (
        f'<div class="sv-row"><span class="sv-name" title="{text(row.name)}">{text(row.name)}</span>'
        f'<svg class="sv-track" height="22" aria-hidden="true">{"".join(parts)}</svg>'
        f'<span class="sv-value">{text(row.value)}</span>'
        f'<span class="sv-hidden">{text(row.words)}</span></div>'
    )


def _below(axis: Axis) -> str:
    ticks = "".join(
        f'<span style="left:{axis.place(t):.2f}%">{per_cent(t).replace(".0 %", " %")}</span>'
        for t in axis.ticks
    )
    return (
        f'<div class="sv-row sv-axis" aria-hidden="true"><span></span><div>{ticks}</div><span></span></div>'
    )


def rows_chart(
    name: str,
    rows: Sequence[Row],
    rest: Sequence[Row],
    axis: Axis,
    more: str,
    words: str,
    axis_of_rest: Axis | None = None,
) -> str:
    """Categories as lines: `rows` at once, the `rest` folded behind the words of `more`."""
    body = "".join(_row(row, axis) for row in rows) + _below(axis)
    if rest:
        other = axis_of_rest or axis
        inner = "".join(_row(row, other) for row in rest) + _below(other)
        body += f'<details class="sv-fold"><summary>{text(more)}</summary>{inner}</details>'
    return figure(name, body, words)


def lines_chart(
    name: str, curves: dict[str, list[tuple[float, float]]], at: float, x: Axis, height: int = 230
) -> str:
    """Lines over ε with a rule at the chosen one; the axis fits the data."""
    y = linear(max(value for curve in curves.values() for _, value in curve))

    def up(value: float) -> str:
        return f"{4 + 92 * (1 - y.place(value) / 100):.2f}%"

    def across(value: float) -> float:
        return 2 + 0.96 * x.place(value)

    parts = [f'<line x1="0" x2="100%" y1="{up(t)}" y2="{up(t)}" class="sv-grid"/>' for t in y.ticks]
    parts.append(f'<line x1="{across(at):.2f}%" x2="{across(at):.2f}%" y1="0" y2="100%" class="sv-rule"/>')
    for series, curve in curves.items():
        limit = series == BEST_POSSIBLE
        colour, dash = colour_of(series), _DASHES[style(series)["linestyle"]]
        parts += [
            f'<line x1="{across(a):.2f}%" y1="{up(b)}" x2="{across(c):.2f}%" y2="{up(d)}" stroke="{colour}" '
            f'stroke-width="{3 if limit else 2}" stroke-dasharray="{dash}"/>'
            for (a, b), (c, d) in pairwise(curve)
        ]
        if not limit:
            parts += [mark(series, across(a), up(b), f"{series}, ε = {a:g}: {b:.4f}") for a, b in curve]
    left = "".join(f'<span style="top:{up(t)}">{t:.3g}</span>' for t in y.ticks)
    below = "".join(f'<span style="left:{across(t):.2f}%">{t:g}</span>' for t in x.ticks)
    line = '<li><i class="sv-key sv-key-line" aria-hidden="true"></i><span>the best possible</span></li>'
    body = (
        f'<div class="sv-plot" style="height:{height}px"><div class="sv-y" aria-hidden="true">{left}</div>'
        f'<svg width="100%" height="100%" aria-hidden="true">{"".join(parts)}</svg></div>'
        f'<div class="sv-x" aria-hidden="true">{below}</div><p class="sv-x-name" aria-hidden="true">ε</p>'
        + legend([one for one in curves if one != BEST_POSSIBLE], line if BEST_POSSIBLE in curves else "")
    )
    told = "; ".join(
        f"{series}: " + ", ".join(f"{b:.3f} at ε = {a:g}" for a, b in curve)
        for series, curve in curves.items()
    )
    return figure(name, body, f"Distance by ε. {told}.")
