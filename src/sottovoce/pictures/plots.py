"""Pictures that are readable in black and white and by colour-blind eyes.

Names may be in any script: for characters that the usual font lacks, another installed font is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from .. import checks
from ..atomic import written_whole
from ..collecting.estimate import Estimate
from ..demo import COMPARED, DemoData, DemoRelease
from ..errors import ParameterError
from ..planning.compare import BEST_POSSIBLE, Comparison
from ..planning.statistics import STATISTICS
from ..samplers.base import ClipSampler, Sampler, label

# Okabe and Ito's palette; marker and dash differ too, so colour is never the only sign.
STYLES: dict[str, dict[str, Any]] = {
    "minimax_kernel": {"color": "#D55E00", "marker": "s", "linestyle": "-"},
    "kernel_clip": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "prior_minimax": {"color": "#009E73", "marker": "^", "linestyle": "--"},
    "blend": {"color": "#CC79A7", "marker": "D", "linestyle": "-"},
    "power_caps": {"color": "#F0E442", "marker": "h", "linestyle": "-."},
    "fitted": {"color": "#882255", "marker": "*", "linestyle": "-"},
    "relative_mollifier": {"color": "#E69F00", "marker": "v", "linestyle": "--"},
    "local_minimax": {"color": "#56B4E9", "marker": "<", "linestyle": ":"},
    "global_minimax": {"color": "#555555", "marker": ">", "linestyle": ":"},
    "randomized_response": {"color": "#000000", "marker": "x", "linestyle": "--"},
    "rr_with_prior": {"color": "#999999", "marker": "+", "linestyle": ":"},
    BEST_POSSIBLE: {"color": "#000000", "marker": "", "linestyle": "-"},  # a line that nobody goes below
}
USUAL_FONT = "DejaVu Sans"


def style(sampler: str) -> dict[str, Any]:
    """How a sampler is drawn, whatever its options."""
    return STYLES.get(sampler.split("(")[0].split(" [")[0], {"marker": "p", "linestyle": "-."})


class _Shown(Axes):
    """Axes that a notebook shows as the picture that they are in, without pyplot."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        figure = self.get_figure(root=True)
        if figure is not None:
            _draw(figure, file, ".png")
        return file.getvalue()


def _own(axes: Axes | None, width: float = 6, height: float = 4.4) -> Axes:
    """The axes that were given, or those of a new figure."""
    return new_figure(width, height).add_subplot(axes_class=_Shown) if axes is None else axes


def _plain(name: object) -> str:
    """A name as text: a dollar sign would begin a formula."""
    return str(name).replace("$", r"\$")


def plot_box(samplers: Sequence[Sampler], p: Any, axes: Axes | None = None) -> Axes:
    """Per category: the prior, the interval the first clip sampler allows, p and each released law.

    Without `axes` every picture makes a figure of its own: `plot_box(...).figure.savefig("box.png")`.
    """
    axes = _own(axes, 9, 4.6)
    prior = samplers[0].prior
    order = np.argsort(-prior.probabilities, kind="stable")
    x = np.arange(len(order))
    box = next((s for s in samplers if isinstance(s, ClipSampler)), samplers[0])
    floor = box.floor[order]
    cap = np.minimum(np.exp(box.epsilon) * floor, 1.0)
    bottom = float(floor[floor > 0].min()) / 3
    own = np.asarray(p.toarray() if hasattr(p, "toarray") else p, dtype=np.float64).ravel()
    axes.vlines(x, floor, cap, color="#CCCCCC", linewidth=9, label=f"allowed by {label(box)}")
    axes.plot(x, prior.probabilities[order], "_", color="black", markersize=13, label="public prior")
    axes.plot(x, own[order], "*", color="black", markersize=9, label="the user's p")
    shifts = np.linspace(-0.25, 0.25, len(samplers)) if len(samplers) > 1 else [0.0]
    for shift, sampler in zip(shifts, samplers, strict=True):
        shape = {**style(sampler.name), "linestyle": "none", "markersize": 5}
        axes.plot(x + shift, sampler.distribution(own)[order], label=label(sampler), **shape)
    axes.set_yscale("log")
    axes.set_ylim(bottom=bottom, top=2)
    axes.set_xticks(x, [_plain(prior.categories[i]) for i in order], rotation=60, ha="right")
    axes.set_ylabel("probability of release")
    return axes


def plot_comparison(
    comparison: Comparison, axes: Axes | None = None, *, statistic: str = "mean", divergence: str = "tv"
) -> Axes:
    """One statistic of every sampler against epsilon, averaged over groups; the limit as a plain line."""
    axes = _own(axes)
    checks.one_of(STATISTICS, statistic=statistic)
    rows = [row for row in comparison if row.divergence == divergence]
    if not rows:
        raise ParameterError(f"the comparison has no divergence {divergence!r}")
    cells: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        value = getattr(row, statistic)
        if value is not None:  # the limit has no worst case
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


def plot_estimate(shares: Estimate, axes: Axes | None = None, *, truth: Any = None) -> Axes:
    """The prior, the estimate, its interval and, if known, the truth of the 40 likeliest by the prior."""
    axes = _own(axes, 9, 4.2)
    order = np.argsort(-shares.model.prior, kind="stable")[:40]
    x = np.arange(len(order))
    low, high = shares.interval()
    values = shares.shares
    bars = np.maximum([values - low, high - values], 0)[:, order]
    axes.bar(x, shares.model.prior[order], color="#DDDDDD", width=0.8, label="public prior")
    what = "estimate" if shares.unbiased else "released law"
    look: dict[str, Any] = {"color": "#0072B2", "markersize": 5, "capsize": 3, "linewidth": 1.4}
    name = f"{what}, {100 * shares.level:g}% interval"
    axes.errorbar(x, values[order], bars, fmt="o", label=name, **look)
    if truth is not None:
        true = np.asarray(truth, dtype=np.float64)[order]
        axes.plot(x, true, "_", color="black", markersize=13, label="the truth, which nobody sees")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(x, [_plain(shares.categories[i]) for i in order], rotation=60, ha="right")
    axes.set_ylabel("share")
    return axes


def new_figure(width: float, height: float) -> Figure:
    """A figure that needs no screen and no global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a picture whole or not at all."""
    path = Path(path)
    with written_whole(path) as file:
        _draw(figure, file, path.suffix)
    return path


def _draw(figure: Figure, file: IO[bytes], suffix: str) -> None:
    """Draw a picture in fonts that draw its texts; warn of characters without one."""
    lacking = set[str]()
    for text in figure.findobj(Text):
        if not text.get_text().isascii():
            families, missing = families_for(text.get_text())
            lacking |= missing
            if len(families) > 1:
                text.set_fontfamily(families)
    if lacking:
        warnings.warn(
            f"no font on this machine draws {len(lacking)} characters of the names in this picture; install "
            f"fonts for their script, such as the Noto fonts, and draw it again",
            stacklevel=2,
        )
    metadata = {"Software": None} if suffix == ".png" else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=metadata)


def families_for(text: str) -> tuple[list[str], set[str]]:
    """The families that draw a text together, the usual one first, and the characters that none draws."""
    families, missing = [USUAL_FONT], {c for c in text if not c.isspace()}
    for family, file in _faces().items():
        covered = {c for c in missing if ord(c) in _characters(file)}
        if covered and family not in families:
            families.append(family)
        missing -= covered
    return families, missing


@cache
def _faces() -> dict[str, str]:
    """The file of every upright family of ordinary weight, the usual one first.

    With fonts that were installed after matplotlib made its list of them. Its font of last resort draws an
    empty frame for every character there is.
    """
    known = {face.fname for face in font_manager.fontManager.ttflist}
    for file in set(font_manager.findSystemFonts()) - known:
        with suppress(RuntimeError, OSError, ValueError):  # one that cannot be read is no font for us
            font_manager.fontManager.addfont(file)
    files: dict[str, str] = {}
    for face in sorted(font_manager.fontManager.ttflist, key=lambda face: face.name != USUAL_FONT):
        usual = face.style == "normal" and face.weight in (400, "normal", "regular", "book")
        if usual and "Last Resort" not in face.name:
            files.setdefault(face.name, face.fname)
    return files


@cache
def _characters(file: str) -> frozenset[int]:
    """The characters that a font draws; none for a font that cannot be opened, such as one of bitmaps."""
    try:
        return frozenset(FT2Font(file).get_charmap())
    except (RuntimeError, OSError):
        return frozenset()


def demo_picture(data: DemoData, table: Comparison, path: str | Path) -> Path:
    """The demo's picture: one member's box, then the typical and the worst-served member."""
    prior = data.priors["25 to 44"]
    member = data.users("25 to 44").toarray()[3]
    figure = new_figure(10, 8.6)
    panels = figure.subplot_mosaic([["top", "top"], ["left", "right"]])
    top, left, right = panels["top"], panels["left"], panels["right"]
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
