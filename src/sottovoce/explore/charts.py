"""The page's charts: altair, with the palette and the shapes of the pictures, readable without colour."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from ..pictures.plots import STYLES
from .views import Rows

_SHAPES = {
    "s": "square", "o": "circle", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "<": "triangle-left", ">": "triangle-right", "x": "cross", "+": "stroke", "P": "cross",
}  # fmt: skip


_BELOW = alt.Legend(orient="bottom", title=None, columns=2, labelLimit=170)


# Charts can be saved; the editor on another host, which would be sent the data, is not offered.
_SAFE = {"embedOptions": {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}}


def _data(rows: Rows) -> Any:
    return pl.DataFrame(rows)  # three times as fast as inline values, which altair checks one by one


def _scales(names: list[str]) -> tuple[Any, Any]:
    colours = [STYLES[name]["color"] if name in STYLES else "#000000" for name in names]
    shapes = [_SHAPES[STYLES[name]["marker"]] if name in STYLES else "diamond" for name in names]
    return alt.Scale(domain=names, range=colours), alt.Scale(domain=names, range=shapes)


def box(intervals: Rows, points: Rows) -> Any:
    """Per category: the allowed interval as a bar, the prior as a tick, a point per law."""
    order = [row["category"] for row in intervals]
    x: Any = alt.X("category:N", sort=order, title=None, axis=alt.Axis(labelAngle=-50, labelLimit=160))
    bottom = min(row["floor"] for row in intervals if row["floor"] > 0) / 2
    shown = [{**row, "probability": max(row["probability"], bottom)} for row in points]
    names = list(dict.fromkeys(row["law"] for row in points))
    colour, shape = _scales(names)
    y = alt.Y(
        "floor:Q", scale=alt.Scale(type="log", domain=[bottom, 1], nice=False), title="probability of release"
    )
    bars = alt.Chart(_data(intervals)).mark_bar(color="#d0d0d0", width=11).encode(x=x, y=y, y2="cap:Q")
    ticks = (
        alt.Chart(_data(intervals)).mark_tick(color="black", thickness=2, width=16).encode(x=x, y="prior:Q")
    )
    marks = (
        alt.Chart(_data(shown))
        .mark_point(filled=True, size=55, opacity=0.9)
        .encode(
            x=x,
            y="probability:Q",
            color=alt.Color("law:N", scale=colour, legend=_BELOW),
            shape=alt.Shape("law:N", scale=shape, legend=_BELOW),
            tooltip=["category:N", "law:N", alt.Tooltip("probability:Q", format=".4f")],
        )
    )
    return (bars + ticks + marks).properties(usermeta=_SAFE, width="container", height=330)


def tradeoff(rows: Rows, epsilon: float) -> list[Any]:
    """Total variation against epsilon, for this user and for the worst one; a rule at the chosen epsilon."""
    names = list(dict.fromkeys(row["sampler"] for row in rows))
    colour, shape = _scales(names)
    look: dict[str, Any] = {
        "x": alt.X("epsilon:Q", title="ε (more is less private)"),
        "y": alt.Y("TV:Q", title="total variation", scale=alt.Scale(domain=[0, 1])),
        "color": alt.Color("sampler:N", scale=colour, legend=_BELOW),
        "shape": alt.Shape("sampler:N", scale=shape, legend=_BELOW),
        "tooltip": ["sampler:N", "epsilon:Q", alt.Tooltip("TV:Q", format=".4f")],
    }
    panels = []
    for whom in ("this user", "the worst user"):
        mine = [row for row in rows if row["whom"] == whom]
        lines = alt.Chart(_data(mine)).mark_line(point=True).encode(**look)
        rule = alt.Chart(_data([{"epsilon": epsilon}])).mark_rule(strokeDash=[4, 4]).encode(x="epsilon:Q")
        panels.append((lines + rule).properties(usermeta=_SAFE, title=whom, width="container", height=230))
    return panels


def heat_map(rows: Rows) -> Any:
    """The kernel: what is released for somebody who holds only one category."""
    order = list(dict.fromkeys(row["held"] for row in rows))
    x, y = alt.X("released:N", sort=order), alt.Y("held:N", sort=order)
    colour = alt.Color("probability:Q", scale=alt.Scale(scheme="greys"), legend=alt.Legend(orient="bottom"))
    tip = ["held:N", "released:N", alt.Tooltip("probability:Q", format=".4f")]
    chart = alt.Chart(_data(rows)).mark_rect().encode(x=x, y=y, color=colour, tooltip=tip)
    return chart.properties(usermeta=_SAFE, width="container", height=360)


def histogram(rows: Rows, order: list[str]) -> Any:
    """What many users hold, beside what they released."""
    x: Any = alt.X("category:N", sort=order, title=None, axis=alt.Axis(labelAngle=-50, labelLimit=160))
    colour = alt.Scale(domain=["users hold", "released"], range=["#999999", "#0072B2"])
    chart = (
        alt.Chart(_data(rows))
        .mark_bar()
        .encode(
            x=x,
            xOffset=alt.XOffset("what:N", sort=["users hold", "released"]),
            y=alt.Y("share:Q", title="share"),
            color=alt.Color("what:N", scale=colour, legend=_BELOW),
            tooltip=["category:N", "what:N", alt.Tooltip("share:Q", format=".4f")],
        )
    )
    return chart.properties(usermeta=_SAFE, width="container", height=260)


def estimated(rows: Rows, order: list[str]) -> Any:
    """The prior, the estimate with its interval, and the truth."""
    x: Any = alt.X("category:N", sort=order, title=None, axis=alt.Axis(labelAngle=-50, labelLimit=160))
    base = alt.Chart(_data(rows))
    tip = ["category:N", *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("prior", "estimate", "truth"))]
    prior = base.mark_bar(color="#dddddd").encode(x=x, y=alt.Y("prior:Q", title="share"), tooltip=tip)
    whisker = base.mark_rule(color="#0072B2").encode(x=x, y="low:Q", y2="high:Q")
    point = base.mark_point(filled=True, color="#0072B2", size=50).encode(x=x, y="estimate:Q", tooltip=tip)
    truth = base.mark_tick(color="black", thickness=2, width=14).encode(x=x, y="truth:Q")
    return (prior + whisker + point + truth).properties(usermeta=_SAFE, width="container", height=260)
