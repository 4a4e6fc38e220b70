"""The best floor by cutting planes: exact to a small gap for some hundred categories, any divergence.

Every floor that is looked at gives cuts: affine functions below h_u, for the mean and for the worst users. A
linear program minimises the largest of them over the domain. The next floor lies half-way between the best
one so far and the program's (pulling towards the best is what keeps the method from wandering).

The lower bound is computed here, from the cuts and the program's multipliers, and does not rely on the
solver: for *any* λ ≥ 0 whose sum is at most 1 over the cuts of the mean and at most `tail` over those of the
maximum, and any ν ≥ 0, the smallest value of an affine function over a box,

    Σ λ_k b_k + min_{low ≤ c ≤ high} (Σ λ_k g_k + ν₁ − a·ν₂)·c − ν₁ + ν₂,

is below F everywhere in the domain (ν₁ and ν₂ are for Σc ≤ 1 and 1 ≤ a·Σc, where no prior is kept).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._validate import FloatArray
from .floor_problem import FloorProblem, rounding

STEPS = 600
WORST = 4
"""Users with a cut of their own in one step: those with the largest divergence."""
FORGET = 60
"""Steps after which a cut that no program has used is dropped."""


@dataclass(frozen=True, eq=False)
class Found:
    """A floor of the domain, its F, a value below F everywhere in the domain, and the work done."""

    floor: FloatArray
    objective: float
    lower_bound: float
    steps: int


@dataclass(eq=False)
class _Cuts:
    """Cuts g·c + b, in units of `scale`; `worst` says which are about the maximum."""

    slopes: FloatArray
    offsets: FloatArray
    worst: np.typing.NDArray[np.bool_]
    unused: np.typing.NDArray[np.intp]

    def add(self, slopes: FloatArray, offsets: FloatArray, worst: list[bool]) -> None:
        self.slopes = np.concatenate([self.slopes, slopes])
        self.offsets = np.concatenate([self.offsets, offsets])
        self.worst = np.concatenate([self.worst, worst])
        self.unused = np.concatenate([self.unused, np.zeros(len(worst), dtype=np.intp)])

    def forget(self, used: np.typing.NDArray[np.bool_]) -> None:
        self.unused = np.where(used, 0, self.unused + 1)
        kept = self.unused < FORGET
        self.slopes, self.offsets = self.slopes[kept], self.offsets[kept]
        self.worst, self.unused = self.worst[kept], self.unused[kept]


def solve(
    problem: FloorProblem,
    start: FloatArray,
    enough: Callable[[float, float], bool],
    report: Callable[[float, float], object],
) -> Found:
    """Improve `start` until `enough(objective, lower bound)`, the steps are used up, or the program fails."""
    scale = np.where(problem.high > 0, problem.high, 1.0)
    cuts = _Cuts(np.empty((0, len(scale))), np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=np.intp))
    floor, best, bound = start, np.inf, 0.0
    point, steps = start, 0
    while steps < STEPS:
        steps += 1
        values = _cut(problem, point, scale, cuts)
        objective = problem.objective(values)
        if objective < best:
            floor, best = point, objective
        answer = _program(problem, scale, cuts)
        if answer is None:
            break
        lowest, multipliers, sums = answer
        bound = max(bound, _below(problem, scale, cuts, multipliers, sums))
        report(best, bound)
        if enough(best, bound):
            break
        cuts.forget(multipliers > 0)
        point = problem.settle((floor + lowest * scale) / 2)
    return Found(floor, best, min(bound, best), steps)


def _cut(problem: FloorProblem, c: FloatArray, scale: FloatArray, cuts: _Cuts) -> FloatArray:
    """Add the cuts at c, and give back the values there."""
    values, inside, outside = problem.tangents(c)
    weights = [problem.share]
    if problem.tail > 0:
        top = np.argsort(-values, kind="stable")[:WORST]
        weights += [np.eye(1, len(values), int(u))[0] for u in top]
    slopes = np.array([problem.gradient(one, inside, outside) for one in weights])
    offsets = np.array([one @ values for one in weights]) - slopes @ c
    if np.all(np.isfinite(slopes)) and np.all(np.isfinite(offsets)):
        cuts.add(slopes * scale, offsets, [k > 0 for k in range(len(weights))])
    return values


def _program(
    problem: FloorProblem, scale: FloatArray, cuts: _Cuts
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Minimise t + tail·T with every cut below its t or T: the point and the multipliers of cuts and sums."""
    from scipy.optimize import linprog

    mine = -np.stack([~cuts.worst, cuts.worst], axis=1).astype(np.float64)
    rows, right = [np.hstack([cuts.slopes, mine])], [-cuts.offsets]
    if not problem.keep_prior:
        rows.append(np.stack([np.append(scale, [0.0, 0.0]), np.append(-problem.a * scale, [0.0, 0.0])]))
        right.append(np.array([1.0, -1.0]))
    bounds = np.stack([problem.low / scale, problem.high / scale], axis=1)
    solved = linprog(
        np.append(np.zeros(len(scale)), [1.0, problem.tail]),
        A_ub=np.concatenate(rows),
        b_ub=np.concatenate(right),
        bounds=[*bounds, (0, None), (0, None)],
        method="highs",
    )
    if solved.status != 0 or solved.x is None:
        return None
    duals = np.maximum(-solved.ineqlin.marginals, 0.0)
    split = len(cuts.offsets)
    return solved.x[: len(scale)], duals[:split], duals[split:]


def _below(
    problem: FloorProblem, scale: FloatArray, cuts: _Cuts, multipliers: FloatArray, sums: FloatArray
) -> float:
    """The lower bound of the head of this file, less what rounding may have added."""
    weights = multipliers.copy()
    for kind, most in ((~cuts.worst, 1.0), (cuts.worst, problem.tail)):
        total = float(weights[kind].sum())
        if total > most:
            weights[kind] *= most / total * (1 - 1e-15)
    offset, slope = weights * cuts.offsets, weights @ cuts.slopes
    size = weights @ np.abs(cuts.slopes)
    if len(sums):
        slope = slope + (sums[0] - problem.a * sums[1]) * scale
        size = size + (sums[0] + problem.a * sums[1]) * scale
        offset = np.append(offset, [-sums[0], sums[1]])
    least = np.minimum(slope * (problem.low / scale), slope * (problem.high / scale))
    depth = sum(problem.rows.shape) + len(offset)
    return float(offset.sum() + least.sum()) - rounding(offset, size, depth=depth)
