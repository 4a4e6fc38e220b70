"""The best floor for total variation over thousands of categories: a smooth descent with a proven bound.

With h_u(c) = max(Σ_i (p_ui − a·c_i)₊, Σ_i (p_ui − c_i)₊ + Σc − 1), sums over the categories that the user
has,

    F(c) = max Σ_u α_u·Σ_i (p_ui − a·c_i)₊ + β_u·(Σ_i (p_ui − c_i)₊ + Σc − 1)

over α, β ≥ 0 with α_u + β_u = s_u + tail·w_u, w a distribution over the users.

- **From above.** Both maxima are softened at a temperature, the positive parts rounded off, and the smooth F
  is minimised in the box by L-BFGS-B; the temperature falls from stage to stage. F itself is then evaluated.
- **From below.** The softened maxima give α and β. For *any* α, β the sum above is separable: for each
  category a convex, piecewise linear function of c_i alone with knots p_ui/a and p_ui, minimised exactly.
  The sum of the minima is below F everywhere, however α and β were found.

Without a prior to keep the domain c ≥ 0, Σc ≤ 1 ≤ a·Σc may be replaced by c ≥ 0: scaling c into it makes no
h_u larger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._validate import FloatArray, IntArray
from .cutting_planes import Found
from .floor_problem import FloorProblem, rounding

TEMPERATURES = (0.03, 0.02, 0.01, 0.005, 0.003, 0.002, 0.001, 0.0005, 0.0003, 0.0002, 0.0001)
"""The stages, in units of the best F so far."""
ROUNDED = 10.0
"""How far positive parts are rounded off, in units of the temperature and of p."""
STEPS = 100
"""Steps of L-BFGS-B in one stage."""


def solve(
    problem: FloorProblem,
    start: FloatArray,
    enough: Callable[[float, float], bool],
    report: Callable[[float, float], object],
) -> Found:
    """Improve `start` until `enough(objective, lower bound)` or the last stage is done."""
    from scipy.optimize import Bounds, minimize

    below = _Below(problem)
    floor, best, bound, steps = start, problem.objective(problem.values(start)), 0.0, 0
    for stage in TEMPERATURES:
        heat = max(stage * best, 1e-12)
        scale = np.sqrt(np.maximum(floor, 1e-9 * problem.high.max()) * np.maximum(problem.high, floor))
        scale = np.maximum(scale, np.finfo(np.float64).tiny)

        def smooth(z: FloatArray, heat: float = heat, scale: FloatArray = scale) -> tuple[float, FloatArray]:
            value, slope, _, _ = softened(problem, z * scale, heat)
            return value, slope * scale

        found = minimize(
            smooth,
            floor / scale,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(problem.low / scale, problem.high / scale),
            options={"maxiter": STEPS, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-12},
        )
        steps += int(found.nit)
        point = np.clip(found.x * scale, problem.low, problem.high)
        _, _, alpha, beta = softened(problem, point, heat)
        bound = max(bound, below(alpha, beta))
        settled = problem.settle(point)
        objective = problem.objective(problem.values(settled))
        if objective < best:
            floor, best = settled, objective
        report(best, bound)
        if enough(best, bound):
            break
    return Found(floor, best, min(bound, best), steps)


def softened(
    problem: FloorProblem, c: FloatArray, heat: float
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """The smooth F, its gradient, and the α and β of the softened maxima."""
    rows, owner = problem.rows, problem.owner
    own, starts, width = c[rows.indices], rows.indptr[:-1], min(1.0, ROUNDED * heat) * rows.data
    boost, boost_slope = _rounded(rows.data - problem.a * own, width)
    keep, keep_slope = _rounded(rows.data - own, width)
    over = np.add.reduceat(boost, starts)
    under = np.add.reduceat(keep, starts) + (float(c.sum()) + problem.rest - 1)
    apart = np.exp(-np.abs(over - under) / heat)
    larger = 1 / (1 + apart)
    first = np.where(over > under, larger, 1 - larger)
    each = np.maximum(over, under) + heat * np.log1p(apart)
    top = float(each.max())
    heavy = np.exp((each - top) / heat)
    weights = problem.share + problem.tail * (heavy / heavy.sum())
    value = float(problem.share @ each) + problem.tail * (top + heat * float(np.log(heavy.sum())))
    alpha, beta = weights * first, weights * (1 - first)
    entries = -problem.a * alpha[owner] * boost_slope - beta[owner] * keep_slope
    gradient = np.bincount(rows.indices, entries, minlength=len(c)) + float(beta.sum())
    return value, np.asarray(gradient, dtype=np.float64), alpha, beta


def _rounded(x: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """x₊ with the corner rounded off over `width`, and its derivative."""
    slope = np.clip(x / width, 0.0, 1.0)
    return np.where(slope < 1, slope * slope * width / 2, x - width / 2), slope


@dataclass(eq=False)
class _Below:
    """A value below the separable sum everywhere in the box, for any α and β; the knots are sorted once."""

    problem: FloorProblem

    def __post_init__(self) -> None:
        rows = self.problem.rows
        self.knots = rows.data / self.problem.a
        knots, columns = np.concatenate([self.knots, rows.data]), np.tile(rows.indices, 2)
        self.order: IntArray = np.lexsort((knots, columns))
        self.sorted, self.columns = knots[self.order], columns[self.order]
        self.ends = np.searchsorted(self.columns, np.arange(rows.shape[1]), side="right") - 1

    def __call__(self, alpha: FloatArray, beta: FloatArray) -> float:
        problem, rows = self.problem, self.problem.rows
        steep, flat, rise = problem.a * alpha[problem.owner], beta[problem.owner], float(beta.sum())
        c = self._lowest(np.concatenate([steep, flat])[self.order], rise)
        own, starts = c[rows.indices], rows.indptr[:-1]

        def falls(boosted: np.typing.NDArray[np.bool_], kept: np.typing.NDArray[np.bool_]) -> FloatArray:
            entries = steep * boosted + flat * kept
            return np.asarray(np.bincount(rows.indices, entries, len(c)), dtype=np.float64)

        left = rise - falls(self.knots >= own, rows.data >= own)
        right = rise - falls(self.knots > own, rows.data > own)
        slope = np.clip(0.0, left, right)  # zero where c is the minimum, as it should be
        over = alpha * np.add.reduceat(np.maximum(rows.data - problem.a * own, 0.0), starts)
        under = beta * np.add.reduceat(np.maximum(rows.data - own, 0.0), starts)
        floors = rise * np.append(c, [problem.rest, -1.0])
        further = np.minimum(slope * (problem.low - c), slope * (problem.high - c))
        doubt = (falls(self.knots >= 0, rows.data >= 0) + rise) * (problem.high - problem.low)
        total = float(over.sum() + under.sum() + floors.sum() + further.sum())
        return total - rounding(over, under, floors, doubt, depth=rows.shape[0])

    def _lowest(self, steps: FloatArray, rise: float) -> FloatArray:
        """Where the sum is smallest: to the right of a knot its slope is Σβ less the steps still to come."""
        sums = np.cumsum(steps)
        rising = rise >= sums[self.ends][self.columns] - sums
        c = np.full(len(self.ends), np.inf)
        np.minimum.at(c, self.columns[rising], self.sorted[rising])
        return np.asarray(np.clip(c, self.problem.low, self.problem.high))
