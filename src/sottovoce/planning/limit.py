"""The limit: what no ε-private sampler can beat on given users."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .. import _html, _validate
from .._validate import FloatArray, IntArray
from ..divergences import TV, FDivergence, checked
from ..errors import ParameterError
from ..prior import Prior
from ..samplers.catalogue import SAMPLERS
from ..users import Users, UsersLike, rows_for
from . import cutting_planes, smoothing
from .floor_problem import FloorProblem, required_slope
from .summary import summarise

if TYPE_CHECKING:
    from scipy import sparse

TAIL = 0.3
"""The weight of the maximum against the mean, unless another one is asked for."""
FEW, MANY = 24, 150
"""Categories up to which cutting planes are as fast as the smooth descent, and up to which they end."""
NOTHING = 1e-6
"""An absolute gap that is always small enough: a divergence below it is no distance."""


@dataclass(frozen=True)
class Limit:
    """How close to these users the best ε-private sampler can be, in numbers.

    No ε-private sampler (that keeps the prior, if `keep_prior`) has mean + tail·maximum below `lower_bound`.
    Some sampler has `objective`, and with it the other statistics. That sampler was fitted to these very
    users, so it is a measuring stick and no mechanism: the value holds numbers alone. They are computed from
    the users' true data and must not be published about private users.
    """

    epsilon: float
    divergence: str
    tail: float
    keep_prior: bool
    users: int
    mean: float
    median: float
    p90: float
    p99: float
    maximum: float
    objective: float
    lower_bound: float
    steps: int

    @property
    def gap(self) -> float:
        """How much smaller than `objective` the true limit can be."""
        return self.objective - self.lower_bound

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        keeping = " that keeps the prior" if self.keep_prior else ""
        what = f"mean + {self.tail:g} × maximum {self.divergence}"
        rows: list[tuple[str, object]] = [
            (f"{what}: no private sampler{keeping} is below", f"{self.lower_bound:.4f}"),
            ("some sampler has", f"{self.objective:.4f}"),
            ("its mean, 90th and 99th percentile", f"{self.mean:.4f}, {self.p90:.4f}, {self.p99:.4f}"),
            ("its maximum", f"{self.maximum:.4f}"),
            ("measured on", f"the true data of {self.users:,} users: not for publishing"),
        ]
        return _html.facts(f"The limit at epsilon {self.epsilon:g}", rows)


def limit(
    prior: Prior,
    epsilon: float,
    users: UsersLike | Users,
    *,
    divergence: FDivergence = TV,
    tail: float = TAIL,
    keep_prior: bool = True,
    relative_gap: float = 1e-3,
    progress: Callable[[float], object] | None = None,
) -> Limit:
    """The smallest mean + tail·maximum of the divergence that any ε-private sampler can have on these users.

    A sampler is a choice of floor c and nothing else, because the clip is the best point of a floor's box
    for every user. So the limit is the minimum of a convex function over q/a ≤ c ≤ q (a = e^ε; if the prior
    need not be kept, over Σc ≤ 1 ≤ a·Σc). It is found by cutting planes, for total variation over many
    categories by a smooth descent.

    Guarantees
        `lower_bound` is proven: it is computed from affine (or separable) functions below the objective, is
        valid whatever the solver did, and is lowered by a bound on its rounding. `objective` is attained.
        Neither the floor nor a sampler is given back: it was fitted to these users, and would tell about
        them.

    Parameters
        users: as `compare` takes them.
        divergence: total variation, or any divergence that knows its `slope`.
        tail: the weight of the maximum, 0 or more.
        keep_prior: only samplers with Q(q) = q.
        relative_gap: stop when objective − lower_bound is at most this part of the objective (or 1e-6). Over
            thousands of categories the work may end before that; the gap says so.
        progress: called with the part of the way to that gap, between 0 and 1.

    Raises
        ParameterError: an option is out of range, the divergence has no slope, or it is infinite for every
            sampler.
        UserDataError: the users are not distributions over the prior's categories.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["A", "B"], [0.3, 0.7])
    >>> found = sv.limit(prior, 1.0, [[0.3, 0.7], [0.6, 0.4]])
    >>> found.mean < sv.compare([[0.3, 0.7], [0.6, 0.4]], sv.kernel_clip(prior, 1.0)).rows[0].mean
    True
    """
    if not isinstance(prior, Prior):
        raise ParameterError(
            f"prior must be a Prior, got {type(prior).__name__}; use Prior(categories, probabilities)"
        )
    epsilon = _validate.privacy(epsilon)
    weight = _validate.at_least(0, tail=tail)
    target = _validate.positive(relative_gap=relative_gap)
    required_slope(checked(divergence))
    problem, owned, inverse = _problem(prior, epsilon, users, divergence, weight, bool(keep_prior))
    start = _start(problem, prior, epsilon, owned)
    furthest = 0.0

    def enough(objective: float, bound: float) -> bool:
        return objective - bound <= max(target * objective, NOTHING)

    def report(objective: float, bound: float) -> None:
        nonlocal furthest
        left = max(objective - bound, 1e-300) / max(objective, 1e-300)
        done = math.log(left) / math.log(target) if target < 1 else 1.0
        furthest = max(furthest, min(1.0 if enough(objective, bound) else done, 1.0))
        if progress is not None:
            progress(furthest)

    smooth = divergence == TV and len(owned) > FEW
    found = (smoothing if smooth else cutting_planes).solve(problem, start, enough, report)
    if smooth and len(owned) <= MANY and not enough(found.objective, found.lower_bound):
        further = cutting_planes.solve(problem, found.floor, enough, report)
        bound = max(found.lower_bound, further.lower_bound)
        found = replace(further, lower_bound=bound, steps=found.steps + further.steps)
    values = problem.values(found.floor)[inverse]
    summary = summarise(values)
    objective = summary["mean"] + (weight * summary["maximum"] if weight > 0 else 0.0)
    return Limit(
        epsilon=epsilon,
        divergence=divergence.name,
        tail=weight,
        keep_prior=bool(keep_prior),
        users=len(values),
        **summary,
        objective=objective,
        lower_bound=min(max(float(found.lower_bound), 0.0), objective),
        steps=found.steps,
    )


def _problem(
    prior: Prior,
    epsilon: float,
    users: UsersLike | Users,
    divergence: FDivergence,
    tail: float,
    keep_prior: bool,
) -> tuple[FloorProblem, IntArray, IntArray]:
    """The program, the categories it is about, and the row of every user in it."""
    from scipy import sparse

    rows = _validate.users(rows_for(users, prior), len(prior))
    if math.isinf(divergence.at_zero) and rows.nnz < rows.shape[0] * rows.shape[1]:
        raise ParameterError(
            f"divergence {divergence.name!r} is infinite for every sampler as soon as a user lacks a "
            f"category; take another divergence, such as sottovoce.TV or sottovoce.KL"
        )
    first, inverse, counts = _alike(rows)
    owned = np.unique(rows.indices).astype(np.intp)
    position = np.zeros(len(prior), dtype=np.intp)
    position[owned] = np.arange(len(owned))
    few = rows[first]
    few = sparse.csr_array((few.data, position[few.indices], few.indptr), shape=(len(first), len(owned)))
    q, a = prior.probabilities, math.exp(epsilon)
    low, high = (q[owned] / a, q[owned]) if keep_prior else (np.zeros(len(owned)), np.ones(len(owned)))
    if divergence == TV:  # above what anybody has of a category, a floor only hurts
        most = np.zeros(len(owned))
        np.maximum.at(most, few.indices, few.data)
        high = np.clip(most, low, high)
    rest = math.fsum(np.delete(q, owned) / a) if keep_prior else 0.0
    share = counts / counts.sum()
    return FloorProblem(few, share, low, high, rest, a, tail, divergence, keep_prior), owned, inverse


def _alike(rows: sparse.csr_array[np.float64]) -> tuple[IntArray, IntArray, FloatArray]:
    """The first of each kind of user, the kind of every user, and how many there are of each kind."""
    kinds: dict[bytes, int] = {}
    first: list[int] = []
    inverse = np.empty(rows.shape[0], dtype=np.intp)
    for u, (begin, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        key = rows.indices[begin:end].tobytes() + rows.data[begin:end].tobytes()
        kind = kinds.setdefault(key, len(kinds))
        if kind == len(first):
            first.append(u)
        inverse[u] = kind
    return np.array(first, dtype=np.intp), inverse, np.bincount(inverse).astype(np.float64)


def _start(problem: FloorProblem, prior: Prior, epsilon: float, owned: IntArray) -> FloatArray:
    """The best floor of the catalogue: the limit is never above a sampler that everybody can have."""
    floors = [make(prior, epsilon).floor[owned] for make in SAMPLERS.values()]
    if problem.keep_prior:
        q = prior.probabilities[owned]
        rounded = 1 + 1e-9
        floors = [c for c in floors if np.all((c <= q * rounded) & (c * rounded >= q / problem.a))]
    settled = [problem.settle(c) for c in floors]
    scores = [problem.objective(problem.values(c)) for c in settled]
    return settled[int(np.argmin(scores))]
