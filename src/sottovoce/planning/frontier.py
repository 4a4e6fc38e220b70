"""The frontier between a promise and the mean: what it costs to have no possible user far from their data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _html, _validate
from ..divergences import TV
from ..prior import Prior
from ..samplers.catalogue import prior_minimax
from .choose import people, promise_for
from .fitted import PublicUsers, fitted
from .limit import MANY, limit, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEAD = ("nobody above", "mean", "99th percentile", "maximum", "limit of the mean")


@dataclass(frozen=True)
class FrontierRow:
    """`fitted` with one promise, measured, and the smallest mean that any sampler with that promise has.

    `nobody_above` is the largest distance of any possible user. `lowest_mean` is a proven lower bound, and
    None over more than 150 categories.
    """

    nobody_above: float
    mean: float
    p99: float
    maximum: float
    lowest_mean: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """Promises from none to the best one, and the mean within each; total variation."""

    epsilon: float
    measured_on: str
    rows: tuple[FrontierRow, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary a row."""
        return [asdict(row) for row in self.rows]

    def cells(self) -> list[list[str]]:
        """The table as text, one list a row, in the order of `HEAD`."""
        numbers = [(r.nobody_above, r.mean, r.p99, r.maximum, r.lowest_mean) for r in self.rows]
        return [["" if x is None else f"{x:.4f}" for x in row] for row in numbers]

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the mean against the promise, with the limit below it."""
        from ..pictures.plots import plot_frontier

        return plot_frontier({"": self}, axes)

    def __str__(self) -> str:
        lines = [f"{self.title}:", "  ".join(HEAD)]
        return "\n".join(
            lines + ["  ".join(c.rjust(len(h)) for c, h in zip(r, HEAD, strict=True)) for r in self.cells()]
        )

    @property
    def title(self) -> str:
        """What the table shows, on one line."""
        return f"What a promise costs at epsilon {self.epsilon:g}, measured on {self.measured_on}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return _html.listed(self.title, HEAD, self.cells(), [row.mean for row in self.rows])


def frontier(
    prior: Prior,
    epsilon: float,
    users: PublicUsers | None = None,
    *,
    steps: int = 6,
    progress: Callable[[float], object] | None = None,
) -> Frontier:
    """Measure `fitted` with promises from its own worst case down to the best that keeps the prior.

    The users are those of `choose`: public ones, or 1,200 invented from the prior, others than those that
    `fitted` looks at. The limit of the mean is the best that any sampler with the same promise could do for
    these very users.

    >>> made = frontier(Prior(["a", "b", "c"], [0.6, 0.3, 0.1]), 2.0, steps=3)
    >>> [row.mean >= row.lowest_mean for row in made.rows]
    [True, True, True]
    """
    count = _validate.whole_at_least(2, steps=steps)
    rows, measured_on = people(prior, users)
    free = fitted(prior, epsilon, users)
    most, least = free.worst_case(TV), prior_minimax(prior, epsilon).worst_case(TV)
    made = []
    for k, above in enumerate(np.linspace(most, least, count).tolist()):
        promise = promise_for(above, least)
        sampler = free if k == 0 else fitted(prior, epsilon, users, promise=promise)
        found = summarise(np.asarray(sampler.divergence(rows, TV)))
        bound = None
        if len(prior) <= MANY:
            bound = limit(prior, epsilon, rows, tail=0, promise=promise).lower_bound
        made.append(FrontierRow(sampler.worst_case(TV), found["mean"], found["p99"], found["maximum"], bound))
        if progress is not None:
            progress((k + 1) / count)
    return Frontier(float(epsilon), measured_on, tuple(made))
