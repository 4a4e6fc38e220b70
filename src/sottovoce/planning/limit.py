"""The limit: what no ε-private sampler can beat on given users.

A sampler is a choice of floor and nothing else: whatever it does, its laws lie in the box of its floor
c_i = inf_p Q(p)_i, and the clip is the best point of that box for every user. So for given users no ε-private
sampler has a smaller mean + tail·maximum of the divergence than

    min_c F(c),    F(c) = Σ_u s_u·h_u(c) + tail·max_u h_u(c),    h_u(c) = min { D_f(p_u‖x) : c ≤ x ≤ a·c },

over q/a ≤ c ≤ q if the prior is kept, else over c ≥ 0 with Σc ≤ 1 ≤ a·Σc; a = e^ε, and s_u is the share of
the users with the distribution p_u. D_f is jointly convex, so h_u and F are convex in c.

Where no user has category i, a smaller c_i is better for all: it takes its smallest value, and all such
categories enter through the sum of their floors alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import checks, listing
from ..checks import FloatArray, IntArray
from ..divergences import TV, Distance, FDivergence, checked_f
from ..errors import ParameterError
from ..geometry import Wasserstein, checked_geometry
from ..prior import Prior
from ..records import Users, UsersLike, distributions, rows_for
from ..samplers import clip
from ..samplers.base import checked_prior
from ..samplers.blocks import blocks
from ..samplers.catalogue import SAMPLERS, checked_promise
from ..samplers.nearest import NearestSampler
from .limit_solvers import best_floor, cutting_planes, smooth_descent
from .statistics import summarise, weighed

if TYPE_CHECKING:
    from scipy import sparse

TAIL = 0.3
"""The weight of the maximum against the mean, unless another one is set."""
FEW, MANY = 24, 150
"""Categories up to which cutting planes are as fast as the smooth descent, and up to which they end."""
NOTHING = 1e-6
"""An absolute gap that is always small enough: a divergence below it is no distance."""


@dataclass(frozen=True, repr=False)
class Limit(listing.Described):
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

    @property
    def gap(self) -> float:
        """How much smaller than `objective` the true limit can be."""
        return self.objective - self.lower_bound

    def facts(self) -> tuple[str, list[tuple[str, object]]]:
        """What is shown."""
        keeping = " that keeps the prior" if self.keep_prior else ""
        what = f"mean + {self.tail:g} × maximum {self.divergence}"
        rows: list[tuple[str, object]] = [
            (f"{what}: no private sampler{keeping} is below", f"{self.lower_bound:.4f}"),
            ("some sampler has", f"{self.objective:.4f}"),
            ("its mean, 90th and 99th percentile", f"{self.mean:.4f}, {self.p90:.4f}, {self.p99:.4f}"),
            ("its maximum", f"{self.maximum:.4f}"),
            ("measured on", f"the true data of {self.users:,} users: not for publishing"),
        ]
        return f"The limit at epsilon {self.epsilon:g}", rows


def limit(
    prior: Prior,
    epsilon: float,
    users: UsersLike | Users,
    *,
    divergence: Distance = TV,
    tail: float = TAIL,
    keep_prior: bool = True,
    promise: float | str | None = None,
    relative_gap: float = 1e-3,
    progress: Callable[[float], object] | None = None,
) -> Limit:
    """The smallest mean + tail·maximum of the divergence that any ε-private sampler can have on these users.

    It is the minimum of a convex function over floors, found by cutting planes or, for total variation over
    many categories, by a smooth descent.

    Guarantees
        `lower_bound` is proven: it is valid whatever the solver did, and lowered by a bound on its rounding.
        `objective` is attained. Neither the floor nor a sampler is returned: it was fitted to these users,
        and would tell about them.

    Parameters
        users: as `compare` takes them.
        divergence: total variation, any divergence that knows its `slope`, or the W1 of a geometry, which is
            a linear program for up to 40,000 different users × categories.
        tail: the weight of the maximum, 0 or more.
        keep_prior: only samplers with Q(q) = q.
        promise: only samplers that keep the prior and this promise, as in `fitted`; up to 150 categories.
        relative_gap: stop when objective − lower_bound is at most this part of the objective (or 1e-6). Over
            thousands of categories the work may end before that; the gap says so.
        progress: called with the part of the way to that gap, between 0 and 1.

    Raises
        ParameterError: an option is out of range, the divergence has no slope, or it is infinite for every
            sampler.
        UserDataError: the users are not distributions over the prior's categories.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["A", "B"], [0.3, 0.7])
    >>> best = sv.limit(prior, 1.0, [[0.3, 0.7], [0.6, 0.4]])
    >>> best.mean < sv.compare([[0.3, 0.7], [0.6, 0.4]], sv.kernel_clip(prior, 1.0)).rows[0].mean
    True
    """
    checked_prior(prior)
    epsilon = checks.privacy(epsilon)
    weight = checks.at_least(0, tail=tail)
    target = checks.positive(relative_gap=relative_gap)
    if isinstance(divergence, Wasserstein):
        return _limit_in_w1(prior, epsilon, users, divergence, weight, bool(keep_prior), promise)
    required_slope(checked_f(divergence))
    kept = None if promise is None else checked_promise(prior.probabilities, epsilon, promise)
    if kept is not None and not keep_prior:
        raise ParameterError("a promise is for samplers that keep the prior")
    problem, owned, inverse = _problem(prior, epsilon, users, divergence, weight, bool(keep_prior), kept)
    if kept is not None and len(owned) > MANY:
        raise ParameterError(f"a limit with a promise takes at most {MANY} categories, got {len(owned)}")
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

    smooth = divergence == TV and len(owned) > FEW and kept is None
    solved = (smooth_descent if smooth else cutting_planes)(problem, start, enough, report)
    if smooth and len(owned) <= MANY and not enough(solved.objective, solved.lower_bound):
        further = cutting_planes(problem, solved.floor, enough, report)
        solved = replace(further, lower_bound=max(solved.lower_bound, further.lower_bound))
    values = problem.values(solved.floor)[inverse]
    return _limit(epsilon, divergence, weight, bool(keep_prior), values, float(solved.lower_bound))


def _limit(
    epsilon: float, divergence: Distance, tail: float, keep_prior: bool, values: FloatArray, bound: float
) -> Limit:
    """The value of the limit from one number per user and a lower bound."""
    summary = summarise(values)
    objective = weighed(summary["mean"], summary["maximum"], tail)
    return Limit(
        epsilon=epsilon,
        divergence=divergence.name,
        tail=tail,
        keep_prior=keep_prior,
        users=len(values),
        **summary,
        objective=objective,
        lower_bound=min(max(bound, 0.0), objective),
    )


def _limit_in_w1(
    prior: Prior,
    epsilon: float,
    users: UsersLike | Users,
    distance: Wasserstein,
    tail: float,
    keep_prior: bool,
    promise: float | str | None,
) -> Limit:
    """The limit by a linear program; the values are those of the nearest laws above its floor."""
    if promise is not None:
        raise ParameterError("a promise is about total variation, and the limit was requested in W1")
    geometry = checked_geometry(distance.geometry, len(prior))
    rows = distributions(rows_for(users, prior), len(prior))
    first, inverse, counts = _alike(rows)
    a, p, share = math.exp(epsilon), rows[first].toarray(), counts / counts.sum()
    floor, bound = best_floor(p, share, prior.probabilities, a, geometry, tail, keep_prior)
    floor = np.maximum(floor, np.finfo(np.float64).tiny)
    if not keep_prior:
        floor = floor / max(float(floor.sum()), 1.0) / min(a * float(floor.sum()), 1.0)
    sampler = NearestSampler("nearest", prior, epsilon, floor, {}, geometry)
    return _limit(
        epsilon, distance, tail, keep_prior, sampler.divergence_of(rows[first], distance)[inverse], bound
    )


@dataclass(frozen=True, eq=False, repr=False)
class FloorProblem:
    """Users over the categories that some user has, and the box in which their best floor is sought."""

    rows: sparse.csr_array[np.float64]
    share: FloatArray  # of the users who have the distribution of a row
    low: FloatArray
    high: FloatArray
    rest: float  # Σc of the categories that no user has
    a: float
    tail: float
    divergence: FDivergence
    keep_prior: bool
    sums: tuple[FloatArray, FloatArray]  # M and r: a floor of the domain has M·c ≤ r

    @cached_property
    def owner(self) -> IntArray:
        """The row of every entry."""
        return np.repeat(np.arange(self.rows.shape[0]), np.diff(self.rows.indptr))

    def settle(self, c: FloatArray) -> FloatArray:
        """The floor of the domain that a point near the domain stands for."""
        inside = np.clip(c, self.low, self.high)
        if self.keep_prior:
            return self._kept(inside)
        total = float(inside.sum())  # scaling into Σc ≤ 1 ≤ a·Σc makes no user's total variation larger
        factor = total if total > 1 else min(self.a * total, 1.0)
        return np.asarray(inside / max(factor, np.finfo(np.float64).tiny))

    def _kept(self, c: FloatArray) -> FloatArray:
        """c, moved towards the lowest floor, which keeps every promise, until it keeps the promise too."""
        matrix, right = self.sums
        above = matrix @ c - right
        if not np.any(above > 0):
            return c
        share = float(np.max(above[above > 0] / (matrix @ (c - self.low))[above > 0]))
        return np.asarray(c + min(share, 1.0) * (self.low - c))

    def objective(self, values: FloatArray) -> float:
        """F from one value per row."""
        worst = self.tail * float(values.max()) if self.tail > 0 else 0.0  # 0·∞ is nothing
        return float(self.share @ values) + worst

    def values(self, c: FloatArray) -> FloatArray:
        """h_u(c) of every row."""
        return self.tangents(c)[0]

    def tangents(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """h_u(c), its subgradient for every entry, and for all categories that the user lacks."""
        return self._tangents_tv(c) if self.divergence == TV else self._tangents_of_clip(c)

    def _tangents_tv(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """h = max(Σ(p − a·c)₊, Σ(c − p)₊): slope −a where p > a·c, or 1 where c > p."""
        p, own, starts = self.rows.data, c[self.rows.indices], self.rows.indptr[:-1]
        over = np.add.reduceat(np.maximum(p - self.a * own, 0.0), starts)
        under = float(c.sum()) + self.rest - np.add.reduceat(np.minimum(own, p), starts)
        boosted = over >= under
        slopes = np.where(boosted[self.owner], -self.a * (p > self.a * own), 1.0 * (own > p))
        return np.maximum(np.maximum(over, under), 0.0), slopes, np.where(boosted, 0.0, 1.0)

    def _tangents_of_clip(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The envelope theorem over the clip x = clip(p/r; c, a·c).

        With g(t) = f(t) − t·f'(t), decreasing, the price of one unit of mass is −g(r). Raising the floor of a
        category that sits on it costs g(p/x) − g(r) ≥ 0; raising the cap of one that sits there gains
        g(r) − g(p/x), a times as fast as c grows. Between floor and cap nothing changes.
        """
        f, total = self.divergence, float(c.sum()) + self.rest
        slope = required_slope(f)
        values, outside = np.empty(self.rows.shape[0]), np.empty(self.rows.shape[0])
        inside = np.empty(self.rows.nnz)
        first = self.rows.indptr[:-1]
        for block in blocks(self.rows):
            held = block.p > 0
            low = block.gather(c)
            u = clip.multipliers(block.p, low, self.a, 1 - (total - low.sum(axis=1)))
            x = clip.clipped(block.p, low, self.a, u)
            everything = (np.count_nonzero(held, axis=1) == self.rows.shape[1]) & (self.rest == 0)
            rest = np.where(everything, 0.0, np.maximum(1 - x.sum(axis=1), np.finfo(np.float64).tiny))
            values[block.rows] = f.on_support(block.p, x, rest)
            ratio = np.divide(block.p, x, out=np.ones_like(x), where=held & (x > 0))
            spilt = np.isinf(u)  # mass is left with everything the user has at its cap
            own = slope(ratio)
            highest = own.max(axis=1) if math.isinf(f.at_zero) else np.full(len(u), f.at_zero)
            price = np.where(spilt, highest, slope(1 / np.where(spilt, 1.0, u)))
            steps = own - price[:, None]
            scaled = np.where(held, np.where(spilt, np.inf, u)[:, None] * np.where(held, block.p, 1.0), 0.0)
            at_floor, at_cap = scaled <= low, scaled >= self.a * low
            steps = np.where(
                at_cap, self.a * np.minimum(steps, 0), np.where(at_floor, np.maximum(steps, 0), 0.0)
            )
            outside[block.rows] = 0.0 if math.isinf(f.at_zero) else np.where(spilt, 0.0, f.at_zero - price)
            entry = first[block.rows][:, None] + np.arange(block.p.shape[1])
            inside[entry[held]] = steps[held]
        return values, inside, np.maximum(outside, 0.0)

    def gradient(self, weights: FloatArray, inside: FloatArray, outside: FloatArray) -> FloatArray:
        """Σ_u w_u·(subgradient of h_u), one number per category."""
        entries = (weights * outside)[self.owner]
        moved = np.bincount(
            self.rows.indices, weights[self.owner] * inside - entries, minlength=self.rows.shape[1]
        )
        return np.asarray(moved + float(weights @ outside))


def required_slope(f: FDivergence) -> Callable[[FloatArray], FloatArray]:
    """The slope of a divergence that knows it."""
    if f.slope is None:
        raise ParameterError(
            f"divergence {f.name!r} does not know its slope: FDivergence(…, slope=…), or take sottovoce.TV"
        )
    return f.slope


def _problem(
    prior: Prior,
    epsilon: float,
    users: UsersLike | Users,
    divergence: FDivergence,
    tail: float,
    keep_prior: bool,
    promise: float | None,
) -> tuple[FloorProblem, IntArray, IntArray]:
    """The program, the categories it is about, and the row of every user in it."""
    from scipy import sparse

    rows = distributions(rows_for(users, prior), len(prior))
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
    lowest = np.minimum(np.maximum(q, promise or 0.0) / a, q)
    low, high = (lowest[owned], q[owned]) if keep_prior else (np.zeros(len(owned)), np.ones(len(owned)))
    if divergence == TV:  # above what anybody has of a category, a floor only hurts
        most = np.zeros(len(owned))
        np.maximum.at(most, few.indices, few.data)
        high = np.clip(most, low, high)
    others = np.delete(lowest, owned) if keep_prior else np.empty(0)
    rest = math.fsum(others)
    sums = _sums(len(owned), a, keep_prior, promise, others)
    share = counts / counts.sum()
    return FloorProblem(few, share, low, high, rest, a, tail, divergence, keep_prior, sums), owned, inverse


def _sums(
    n: int, a: float, keep_prior: bool, promise: float | None, others: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """M and r of M·c ≤ r: Σc ≤ 1 ≤ a·Σc without a prior to keep; Σc − c_i ≤ 1 − t for every i with a promise.

    `others` are the floors of the categories that no user has; of them the lowest decides.
    """
    every = np.ones(n)
    if not keep_prior:
        return np.stack([every, -a * every]), np.array([1.0, -1.0])
    if promise is None:
        return np.empty((0, n)), np.empty(0)
    matrix, right = every - np.eye(n), np.full(n, 1 - promise - math.fsum(others))
    if len(others):
        matrix, right = np.vstack([matrix, every]), np.append(right, right[0] + others.min())
    return matrix, right


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
