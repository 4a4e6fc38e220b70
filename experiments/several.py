"""What several samples of one budget are worth, on the invented film club: a table and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sottovoce as sv
from sottovoce.demo import demo_data
from sottovoce.pictures.plots import new_figure, plot_samples, save_figure

GROUP, USERS = "25 to 44", 100
EPSILONS = (2.0, 4.0, 8.0)
NUMBERS = (1, 2, 4)


def members() -> tuple[sv.Prior, np.ndarray]:
    """One group's prior, and some of its members, evenly spread."""
    data = demo_data()
    people = data.users(GROUP).toarray()
    return data.priors[GROUP], people[np.linspace(0, len(people) - 1, USERS).astype(int)]


def table() -> str:
    """Mean distances of all samples jointly and of each, together and separately, as Markdown."""
    prior, people = members()
    head = ["ε", "samples", "released", "each sample", "99th percentile", "all jointly", "99th percentile"]
    lines = [f"| {' | '.join(head)} |", "|---:|---:|---|---:|---:|---:|---:|"]
    for epsilon in EPSILONS:
        for row in sv.compare_samples(people, prior, epsilon, samples=NUMBERS, sampler=sv.fitted):
            way = row.way if row.samples > 1 else "one alone"
            means = (row.single_mean, row.single_p99, row.joint_mean, row.joint_p99)
            lines.append(
                f"| {epsilon:g} | {row.samples} | {way} | {' | '.join(f'{mean:.3f}' for mean in means)} |"
            )
    return "\n".join(lines)


def picture(folder: Path) -> Path:
    """The same at ε = 8, drawn."""
    prior, people = members()
    rows = sv.compare_samples(people[::2], prior, 8.0, samples=(1, 2, 3, 4), sampler=sv.fitted)
    figure = new_figure(7, 3.8)
    plot_samples(rows, figure.subplots())
    path = folder / "samples.png"
    save_figure(figure, path)
    return path
