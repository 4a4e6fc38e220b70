"""Several samples of one budget, drawn: together, separately, and one release beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ParameterError
from ..planning.several_samples import SEPARATELY, SamplesRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {"together": ("-", "o"), SEPARATELY: ("--", "s")}


def plot_samples(rows: Sequence[SamplesRow], axes: Axes) -> None:
    """Mean distance by the number of samples: of all samples jointly, and of each single one.

    Solid lines are releases of all samples together, dashed ones separate releases at ε/samples.
    """
    if not rows:
        raise ParameterError("rows must not be empty: make them with compare_samples")
    for value, color, named in (
        ("joint_mean", "C0", "all samples jointly"),
        ("single_mean", "C1", "each sample"),
    ):
        for way, (line, marker) in LOOKS.items():
            points = [
                (row.samples, getattr(row, value))
                for row in rows
                if (row.way == way or row.samples == 1) and getattr(row, value) is not None
            ]
            if points:
                axes.plot(
                    [k for k, _ in points],
                    [mean for _, mean in points],
                    linestyle=line,
                    marker=marker,
                    markersize=5,
                    color=color,
                    label=f"{named}, {'one release' if way != SEPARATELY else 'separate releases'}",
                )
    axes.set_xticks(sorted({row.samples for row in rows}))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("samples per user")
    axes.set_ylabel(f"mean distance ({rows[0].divergence})")
    axes.set_title(f"ε = {rows[0].epsilon:g} for all samples of a user together")
    axes.legend(fontsize=8)
