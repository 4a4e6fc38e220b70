"""What several samples of one budget are worth, on the invented film club: a table and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sottovoce as sv
from sottovoce.demo import demo_data
from sottovoce.pictures.plots import new_figure, save_figure
from sottovoce.planning.compare import SEPARATELY, TOGETHER, compare_samples

GROUP = "25 to 44"
EPSILONS = (2.0, 4.0, 8.0)
NUMBERS = (1, 2, 4, 8)


def members() -> tuple[sv.Prior, np.ndarray]:
    """One group's prior, and its members."""
    data = demo_data()
    return data.priors[GROUP], data.users(GROUP).toarray()


def table() -> str:
    """Mean and 99th percentile of each sample's distance, together and separately, as Markdown."""
    prior, people = members()
    head = ["ε", "samples", "released", "mean", "99th percentile", "maximum"]
    lines = [f"| {' | '.join(head)} |", "|---:|---:|---|---:|---:|---:|"]
    for epsilon in EPSILONS:
        for row in compare_samples(people, prior, epsilon, samples=NUMBERS):
            way = row.way if row.samples > 1 else "one alone"
            numbers = " | ".join(f"{one:.3f}" for one in (row.mean, row.p99, row.maximum))
            lines.append(f"| {epsilon:g} | {row.samples} | {way} | {numbers} |")
    return "\n".join(lines)


def picture(folder: Path) -> Path:
    """The same at ε = 8, drawn."""
    prior, people = members()
    rows = compare_samples(people, prior, 8.0, samples=(1, 2, 3, 4, 6, 8))
    figure = new_figure(7, 3.8)
    axes = figure.subplots()
    for way, look in ((TOGETHER, "o-"), (SEPARATELY, "s--")):
        points = [(row.samples, row.mean) for row in rows if row.way == way or row.samples == 1]
        axes.plot(*zip(*points, strict=True), look, markersize=5, label=way)
    axes.set_xticks(sorted({row.samples for row in rows}))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("samples per user")
    axes.set_ylabel("mean distance of each (tv)")
    axes.set_title("ε = 8 for all samples of a user together")
    axes.legend(fontsize=8)
    return save_figure(figure, folder / "samples.png")
