"""Pictures of a box and of a comparison, readable in black and white and by colour-blind eyes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .catalogue import SAMPLERS
from .comparison import Comparison
from .demo import DemoData
from .samplers import ClipSampler, Sampler, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette; marker and dash differ too, so colour is never the only sign.
STYLES: dict[str, dict[str, Any]] = {
    "minimax_kernel": {"color": "#D55E00", "marker": "s", "linestyle": "-"},
    "kernel_clip": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "prior_minimax": {"color": "#009E73", "marker": "^", "linestyle": "--"},
    "blend": {"color": "#CC79A7", "marker": "D", "linestyle": "-"},
    "tuned": {"color": "#CC79A7", "marker": "P", "linestyle": "--"},
    "relative_mollifier": {"color": "#E69F00", "marker": "v", "linestyle": "--"},
    "local_minimax": {"color": "#56B4E9", "marker": "<", "linestyle": ":"},
    "global_minimax": {"color": "#555555", "marker": ">", "linestyle": ":"},
    "randomized_response": {"color": "#000000", "marker": "x", "linestyle": "--"},
    "rr_with_prior": {"color": "#999999", "marker": "+", "linestyle": ":"},
}


def style(sampler: str) -> dict[str, Any]:
    """How a sampler is drawn, whatever its options."""
    return STYLES.get(sampler.split("(")[0], {"color": "#000000", "marker": ".", "linestyle": "-"})


def plot_box(samplers: Sequence[Sampler], p: Any, axes: Axes) -> Axes:
    """Per category: the prior, the interval the first clip sampler allows, p and each released law."""
    prior = samplers[0].prior
    order = np.argsort(-prior.probabilities, kind="stable")
    place = np.arange(len(order))
    box = next((s for s in samplers if isinstance(s, ClipSampler)), samplers[0])
    floor = np.maximum(box.floor[order], 1e-300)
    cap = np.minimum(np.exp(box.epsilon) * floor, 1.0)
    axes.vlines(place, floor, cap, color="#CCCCCC", linewidth=9, label=f"allowed by {label(box)}")
    axes.plot(place, prior.probabilities[order], "_", color="black", markersize=13, label="public prior")
    axes.plot(place, np.asarray(p)[order], "*", color="black", markersize=9, label="the user's p")
    shifts = np.linspace(-0.25, 0.25, len(samplers)) if len(samplers) > 1 else [0.0]
    for shift, sampler in zip(shifts, samplers, strict=True):
        look = {**style(sampler.name), "linestyle": "none", "markersize": 5}
        axes.plot(place + shift, sampler.distribution(p)[order], label=label(sampler), **look)
    axes.set_yscale("log")
    axes.set_ylim(bottom=float(floor.min()) / 3, top=2)
    axes.set_xticks(place, [str(prior.categories[i]) for i in order], rotation=60, ha="right")
    axes.set_ylabel("probability of release")
    return axes


def plot_comparison(
    comparison: Comparison, axes: Axes, *, statistic: str = "mean", divergence: str = "tv"
) -> Axes:
    """One statistic of every sampler against epsilon, averaged over groups."""
    cells: dict[str, dict[float, list[float]]] = {}
    for row in comparison:
        if row.divergence == divergence:
            value = getattr(row, statistic)
            cells.setdefault(row.sampler.split("(")[0], {}).setdefault(row.epsilon, []).append(value)
    for name, by_epsilon in cells.items():
        epsilons = sorted(by_epsilon)
        means = [float(np.mean(by_epsilon[epsilon])) for epsilon in epsilons]
        axes.plot(epsilons, means, label=name, linewidth=1.6, markersize=6, **style(name))
    axes.set_xlabel("epsilon (more is less private)")
    axes.set_ylabel(f"{statistic} {divergence.upper()} distance to the user's p")
    axes.set_ylim(bottom=0)
    axes.grid(color="#EEEEEE")
    return axes


def new_figure(width: float, height: float) -> Figure:
    """A figure that needs no screen and no global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a picture whole or not at all: to a neighbour first, then renamed."""
    path = Path(path)
    beside = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        figure.savefig(beside, dpi=150, metadata={"Software": None} if path.suffix == ".png" else None)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def demo_picture(data: DemoData, table: Comparison, path: str | Path) -> Path:
    """The demo's picture: one member's box, then the typical and the worst-served member."""
    prior = data.priors["25 to 44"]
    member = data.users("25 to 44").toarray()[3]
    figure = new_figure(15, 5.2)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
    names = ("kernel_clip", "minimax_kernel", "relative_mollifier")
    plot_box([SAMPLERS[name](prior, 2.0) for name in names], member, left)
    left.set_title("one member at ε = 2: what may be released, and what is")
    left.legend(fontsize=8)
    plot_comparison(table, middle, statistic="mean")
    middle.set_title("the typical member")
    plot_comparison(table, right, statistic="maximum")
    right.set_title("the worst-served member")
    right.legend(fontsize=8)
    return save_figure(figure, path)
