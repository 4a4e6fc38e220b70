"""Pictures of a box, a comparison and an estimate, readable in black and white and by colour-blind eyes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..collecting.estimation import Estimate
from ..demo import COMPARED, DemoData, DemoRelease
from ..divergences import TV, FDivergence
from ..errors import ParameterError
from ..planning.comparison import BEST_POSSIBLE, STATISTICS, Comparison
from ..prior import Prior
from ..samplers.base import ClipSampler, Sampler, label
from ..samplers.catalogue import SAMPLERS
from .fonts import drawable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette; marker and dash differ too, so colour is never the only sign.
STYLES: dict[str, dict[str, Any]] = {
    "minimax_kernel": {"color": "#D55E00", "marker": "s", "linestyle": "-"},
    "kernel_clip": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "prior_minimax": {"color": "#009E73", "marker": "^", "linestyle": "--"},
    "blend": {"color": "#CC79A7", "marker": "D", "linestyle": "-"},
    "tuned": {"color": "#CC79A7", "marker": "P", "linestyle": "--"},
    "power_caps": {"color": "#F0E442", "marker": "h", "linestyle": "-."},
    "fitted": {"color": "#882255", "marker": "*", "linestyle": "-"},
    "relative_mollifier": {"color": "#E69F00", "marker": "v", "linestyle": "--"},
    "local_minimax": {"color": "#56B4E9", "marker": "<", "linestyle": ":"},
    "global_minimax": {"color": "#555555", "marker": ">", "linestyle": ":"},
    "randomized_response": {"color": "#000000", "marker": "x", "linestyle": "--"},
    "rr_with_prior": {"color": "#999999", "marker": "+", "linestyle": ":"},
    BEST_POSSIBLE: {"color": "#000000", "marker": "", "linestyle": "-"},  # a line that nobody goes below
}


def style(sampler: str) -> dict[str, Any]:
    """How a sampler is drawn, whatever its options."""
    name = sampler.split("(")[0]
    if name in STYLES:
        return STYLES[name]
    place = list(SAMPLERS).index(name) if name in SAMPLERS else 0  # a new sampler has a look of its own
    return {"color": f"C{place % 10}", "marker": "1234p*hH"[place % 8], "linestyle": "-."}


def _plain(name: object) -> str:
    """A name as text: a dollar sign would begin a formula."""
    return str(name).replace("$", r"\$")


def plot_box(samplers: Sequence[Sampler], p: Any, axes: Axes | None = None) -> Axes:
    """Per category: the prior, the interval the first clip sampler allows, p and each released law.

    Without `axes` every picture makes a figure of its own: `plot_box(...).figure.savefig("box.png")`.
    """
    axes = axes if axes is not None else new_figure(9, 4.6).subplots()
    prior = samplers[0].prior
    order = np.argsort(-prior.probabilities, kind="stable")
    place = np.arange(len(order))
    box = next((s for s in samplers if isinstance(s, ClipSampler)), samplers[0])
    floor = box.floor[order]
    cap = np.minimum(np.exp(box.epsilon) * floor, 1.0)
    bottom = float(floor[floor > 0].min()) / 3
    own = np.asarray(p.toarray() if hasattr(p, "toarray") else p, dtype=np.float64).ravel()
    axes.vlines(place, floor, cap, color="#CCCCCC", linewidth=9, label=f"allowed by {label(box)}")
    axes.plot(place, prior.probabilities[order], "_", color="black", markersize=13, label="public prior")
    held = own[order] > 0
    axes.plot(place[held], own[order][held], "*", color="black", markersize=9, label="the user's p")
    if not held.all():
        look: dict[str, Any] = {
            "color": "black",
            "markersize": 8,
            "markerfacecolor": "white",
            "linestyle": "none",
        }
        axes.plot(place[~held], np.full((~held).sum(), bottom * 1.25), marker="*", label="p is zero", **look)
    shifts = np.linspace(-0.25, 0.25, len(samplers)) if len(samplers) > 1 else [0.0]
    for shift, sampler in zip(shifts, samplers, strict=True):
        shape = {**style(sampler.name), "linestyle": "none", "markersize": 5}
        axes.plot(place + shift, sampler.distribution(own)[order], label=label(sampler), **shape)
    axes.set_yscale("log")
    axes.set_ylim(bottom=bottom, top=2)
    axes.set_xticks(place, [_plain(prior.categories[i]) for i in order], rotation=60, ha="right")
    axes.set_ylabel("probability of release")
    return axes


def plot_comparison(
    comparison: Comparison, axes: Axes | None = None, *, statistic: str = "mean", divergence: str = "tv"
) -> Axes:
    """One statistic of every sampler against epsilon, averaged over groups; the limit as a plain line."""
    axes = axes if axes is not None else new_figure(6, 4.4).subplots()
    cells: dict[str, dict[float, list[float]]] = {}
    if statistic not in STATISTICS:
        raise ParameterError(f"statistic must be one of {', '.join(STATISTICS)}, got {statistic!r}")
    if divergence not in {row.divergence for row in comparison}:
        raise ParameterError(f"the comparison has no divergence {divergence!r}")
    for row in comparison:
        if row.divergence == divergence:
            value = getattr(row, statistic)
            if value is None:  # the limit has no worst case
                continue
            cells.setdefault(row.sampler, {}).setdefault(row.epsilon, []).append(value)
    for name, by_epsilon in cells.items():
        epsilons = sorted(by_epsilon)
        means = [float(np.mean(by_epsilon[epsilon])) for epsilon in epsilons]
        axes.plot(epsilons, means, label=name, linewidth=1.6, markersize=6, **style(name))
    axes.set_xlabel("epsilon (more is less private)")
    axes.set_ylabel(f"{statistic} {divergence.upper()} distance to the user's p")
    axes.set_ylim(bottom=0)
    axes.grid(color="#EEEEEE")
    return axes


def plot_tradeoff(
    prior: Prior,
    axes: Axes | None = None,
    *,
    p: Any = None,
    samplers: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    divergence: FDivergence = TV,
) -> Axes:
    """What privacy costs: each sampler's distance against epsilon, for the worst user, or for the user p."""
    axes = axes if axes is not None else new_figure(6, 4.4).subplots()
    unknown = [name for name in samplers or () if name not in SAMPLERS]
    if unknown:
        raise ParameterError(f"samplers must be names of sottovoce.SAMPLERS, got {unknown[0]!r}")
    grid = np.linspace(0.5, 10, 20) if epsilons is None else np.asarray(epsilons, dtype=np.float64)
    for name in samplers or SAMPLERS:
        made = [SAMPLERS[name](prior, float(epsilon)) for epsilon in grid]
        values = [s.worst_case(divergence) if p is None else float(s.divergence(p, divergence)) for s in made]
        axes.plot(grid, values, label=name, linewidth=1.6, markersize=5, markevery=3, **style(name))
    whom = "at worst, over all users" if p is None else "for this user"
    axes.set_xlabel("epsilon (more is less private)")
    axes.set_ylabel(f"{divergence.name.upper()} distance {whom}")
    axes.set_ylim(bottom=0)
    axes.grid(color="#EEEEEE")
    return axes


def plot_estimate(found: Estimate, axes: Axes | None = None, *, truth: Any = None, most: int = 40) -> Axes:
    """Per category, largest prior first: the prior, the estimate, its interval and, if known, the truth."""
    axes = axes if axes is not None else new_figure(9, 4.2).subplots()
    order = np.argsort(-found.model.prior, kind="stable")[:most]
    place = np.arange(len(order))
    low, high = found.interval()
    shares = found.shares
    bars = np.maximum([shares - low, high - shares], 0)[:, order]
    axes.bar(place, found.model.prior[order], color="#DDDDDD", width=0.8, label="public prior")
    what = "estimate" if found.unbiased else "released law"
    look: dict[str, Any] = {"color": "#0072B2", "markersize": 5, "capsize": 3, "linewidth": 1.4}
    name = f"{what}, {100 * found.level:g}% interval"
    axes.errorbar(place, shares[order], bars, fmt="o", label=name, **look)
    if truth is not None:
        values = np.asarray(truth, dtype=np.float64)[order]
        axes.plot(place, values, "_", color="black", markersize=13, label="the truth, which nobody sees")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(place, [_plain(found.categories[i]) for i in order], rotation=60, ha="right")
    axes.set_ylabel("share")
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
        with drawable(figure):
            figure.savefig(beside, dpi=150, metadata={"Software": None} if path.suffix == ".png" else None)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def demo_picture(data: DemoData, table: Comparison, path: str | Path) -> Path:
    """The demo's picture: one member's box, then the typical and the worst-served member."""
    prior = data.priors["25 to 44"]
    member = data.users("25 to 44").toarray()[3]
    figure = new_figure(10, 8.6)
    grid = figure.add_gridspec(2, 2)
    top, left, right = figure.add_subplot(grid[0, :]), *(figure.add_subplot(grid[1, i]) for i in (0, 1))
    names = ("fitted", "kernel_clip", "minimax_kernel", "relative_mollifier")
    plot_box([COMPARED[name](prior, 2.0) for name in names], member, top)
    top.set_title("one member at ε = 2: what may be released, and what is")
    top.legend(fontsize=8, ncols=2)
    plot_comparison(table, left, statistic="mean")
    left.set_title("the typical member")
    left.legend(fontsize=8)
    plot_comparison(table, right, statistic="maximum")
    right.set_title("the worst-served member of each group")
    return save_figure(figure, path)


def demo_estimate(released: DemoRelease, path: str | Path) -> Path:
    """The demo's second picture: what the collector learns, beside the truth."""
    figure = new_figure(10, 4.4)
    axes = plot_estimate(released.found, figure.subplots(), truth=released.truth)
    axes.set_title(f"members {released.group}: {released.found.reports:,.0f} private reports")
    axes.legend(fontsize=8)
    return save_figure(figure, path)
