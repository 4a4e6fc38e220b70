"""What the experiments share: tidy tables on disk, bars per group, and who beats the relative mollifier."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.pictures.plots import save_figure, style

Row = dict[str, Any]
DRAWN = ("minimax_kernel", "relative_mollifier", "kernel_clip", "prior_minimax", "blend")
PAPERS = ("minimax_kernel", "relative_mollifier")
"""What the paper's own figures show: its sampler and its baseline."""

ROUNDING = 1e-12
"""Two maxima closer than this differ by rounding: a tie."""

_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\")
_MOST_BARS = 12


def write_table(rows: Sequence[Row], columns: Sequence[str], path: Path) -> Path:
    """One tidy CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, columns)
        out.writeheader()
        out.writerows(rows)
    return path


def save_both(figure: Any, folder: Path, stem: str) -> list[Path]:
    """A figure as PNG and as PDF."""
    return [save_figure(figure, folder / f"{stem}.{kind}") for kind in ("png", "pdf")]


def draw_groups(axes: Any, rows: Sequence[Row], groups: Sequence[str], drawn: Sequence[str] = DRAWN) -> None:
    """Maximum TV per group: bars while they can be read, else lines over the groups, worst first."""
    values = {
        name: {row["group"]: float(row["max_tv"]) for row in rows if row["sampler"] == name} for name in drawn
    }
    if len(groups) <= _MOST_BARS:
        width = 0.8 / len(drawn)
        for k, name in enumerate(drawn):
            place = np.arange(len(groups)) + (k - (len(drawn) - 1) / 2) * width
            height = [values[name][group] for group in groups]
            look = {"color": style(name)["color"], "edgecolor": "white", "hatch": _HATCHES[k]}
            axes.bar(place, height, width, label=name, linewidth=0.5, **look)
        turn = {"rotation": 30, "ha": "right"} if max(map(len, groups)) > 6 else {}
        axes.set_xticks(range(len(groups)), groups, **turn)
    else:
        order = sorted(groups, key=lambda group: -values["relative_mollifier"][group])
        for name in drawn:
            look = {**style(name), "markersize": 3, "linewidth": 1, "markevery": max(1, len(order) // 20)}
            axes.plot([values[name][group] for group in order], label=name, **look)
        axes.set_xlabel(f"{len(order)} values, the mollifier's worst first")
    axes.set_ylim(bottom=0)
    axes.grid(color="#EEEEEE", axis="y")
    axes.set_axisbelow(True)


def share_legend(figure: Any) -> None:
    """One legend below all panels, where it hides nothing."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    across = 5 if figure.get_figwidth() > 7 else 3
    figure.legend(handles, names, loc="outside lower center", ncols=across, fontsize=8, frameon=False)


def versus_mollifier(rows: Sequence[Row], cell: Sequence[str], decimals: int | None = None) -> str:
    """Averages over the cells, and how often each sampler's maximum beats the relative mollifier's.

    With `decimals` the maxima are compared as printed; without, as computed.
    """
    by_cell = {(*(row[key] for key in cell), row["sampler"]): row for row in rows}
    keys = list(dict.fromkeys(tuple(row[key] for key in cell) for row in rows))
    lines = [
        "| sampler | max TV | mean TV | p99 TV | cells won | by | cells lost | by |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    rival = np.array([by_cell[*key, "relative_mollifier"]["max_tv"] for key in keys])
    for name in sv.SAMPLERS:
        mine = [by_cell[*key, name] for key in keys]
        own = np.array([row["max_tv"] for row in mine])
        gap = rival - own if decimals is None else np.round(rival, decimals) - np.round(own, decimals)
        won, lost = gap > ROUNDING, gap < -ROUNDING
        means = [float(np.mean([row[key] for row in mine])) for key in ("max_tv", "mean_tv", "p99_tv")]
        by = [_amount(float(np.abs(gap[some]).mean())) if some.any() else "–" for some in (won, lost)]
        cells = [*(f"{mean:.3f}" for mean in means), f"{won.mean():.1%}", by[0], f"{lost.mean():.1%}", by[1]]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _amount(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 else "< 0.001"
