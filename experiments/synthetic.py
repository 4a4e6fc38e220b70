"""The paper's synthetic experiment (Figure 2): ten random priors, users from uniform to one category.

n = 100 and ε = 8. In round i the prior is numpy's RandomState(42 + i).uniform(size=100), normalised; a user
has p_1 on a grid from 1/n to 0.99 and the rest equal. Mean and standard error over the rounds of TV and KL,
for every sampler of the library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.pictures.plots import new_figure, style

from .results import DRAWN, PAPERS, Row, save_both, write_table

N, EPSILON, ROUNDS = 100, 8.0, 10
FIRST = np.linspace(1 / N, 0.99, 100)
COLUMNS = ("p1", "divergence", "sampler", "mean", "standard_error")


def users() -> np.ndarray:
    """One row per p_1; the first category is the first before any sorting."""
    rows = np.tile(((1 - FIRST) / (N - 1))[:, None], (1, N))
    rows[:, 0] = FIRST
    return rows


def prior(round_number: int) -> sv.Prior:
    """The prior of one round."""
    q = np.random.RandomState(42 + round_number).uniform(size=N)
    return sv.Prior(range(N), q / q.sum())


def measure() -> list[Row]:
    """One tidy row per p_1, divergence and sampler."""
    rows: list[Row] = []
    everyone = users()
    for name, make in sv.SAMPLERS.items():
        for f in (sv.TV, sv.KL):
            values = np.array([make(prior(i), EPSILON).divergence(everyone, f) for i in range(ROUNDS)])
            means = values.mean(axis=0)
            finite = np.isfinite(means)  # a sampler that drops categories has infinite KL, without error bar
            errors = np.full(len(means), np.inf)
            errors[finite] = values[:, finite].std(axis=0, ddof=1) / np.sqrt(ROUNDS)
            for first, mean, error in zip(FIRST, means, errors, strict=True):
                cells = (float(first), f.name, name, float(mean), float(error))
                rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def table() -> str:
    """TV and KL at the two ends of the grid and in its middle, mean ± standard error, as Markdown."""
    rows = {(row["divergence"], row["sampler"], row["p1"]): row for row in measure()}
    shown = [float(FIRST[i]) for i in (0, 45, 99)]
    head = [f"{f.upper()} at p₁ = {p:.4g}" for f in ("tv", "kl") for p in shown]
    lines = [f"| sampler | {' | '.join(head)} |", f"|---{'|---:' * len(head)}|"]
    for name in sv.SAMPLERS:
        cells = []
        for f in ("tv", "kl"):
            for p in shown:
                row = rows[f, name, p]
                finite = np.isfinite(row["mean"])
                cells.append(f"{row['mean']:.4f}±{row['standard_error']:.4f}" if finite else "∞")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(rows: list[Row], drawn: tuple[str, ...]) -> Any:
    """Two panels, TV and KL against p_1, with standard errors."""
    figure = new_figure(11, 4.4)
    for axes, name in zip(figure.subplots(1, 2), ("tv", "kl"), strict=True):
        for sampler in drawn:
            mine = [row for row in rows if row["sampler"] == sampler and row["divergence"] == name]
            x = np.array([row["p1"] for row in mine], dtype=float)
            mean = np.array([row["mean"] for row in mine], dtype=float)
            error = np.array([row["standard_error"] for row in mine], dtype=float)
            look = style(sampler)
            axes.plot(x, mean, label=sampler, markevery=12, **look)
            axes.fill_between(x, mean - error, mean + error, color=look["color"], alpha=0.15, linewidth=0)
        axes.set_xlabel("p₁, the share of the first category")
        axes.set_ylabel(f"{name.upper()} to the user's p, mean of {ROUNDS} priors")
        axes.set_ylim(bottom=0)
        axes.grid(color="#EEEEEE")
        axes.legend(fontsize=8)
    figure.suptitle(f"n = {N}, ε = {EPSILON:g}: users from uniform to one dominant category")
    return figure


def run(folder: Path) -> list[Path]:
    """Write synthetic.csv, Figure 2 as in the paper, and the same with every sampler that is drawn."""
    rows = measure()
    written = [write_table(rows, COLUMNS, folder / "synthetic.csv")]
    written += save_both(draw(rows, DRAWN), folder, "synthetic")
    return [*written, *save_both(draw(rows, PAPERS), folder, "synthetic-figure2")]
