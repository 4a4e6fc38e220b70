"""Solvers of the limit's convex program: cutting planes and a smooth descent, and a linear program in W1.

The first two have one signature and improve a floor until the gap between F there and a value proven to be
below F everywhere is small. The lower bounds are computed here, hold whatever the solver did, and are lowered
by a bound on their rounding.

**Cutting planes** are exact to a small gap for some hundred categories and any divergence. Every floor that
is evaluated gives cuts: affine functions below h_u, for the mean and for the worst users. A linear program
minimises the largest of them over the domain. The next floor lies half-way between the best one so far and
the program's (pulling towards the best is what keeps the method from wandering). For *any* λ ≥ 0 whose sum is
at most 1 over the cuts of the mean and at most `tail` over those of the maximum, and any ν ≥ 0, the smallest
value of an affine function over a box,

    Σ λ_k b_k + min_{low ≤ c ≤ high} (Σ λ_k g_k + ν·M)·c − ν·r,

is below F everywhere in the domain (ν is for M·c ≤ r: Σc ≤ 1 ≤ a·Σc where no prior is kept, or a promise).

**The smooth descent** is for total variation over thousands of categories. With h_u(c) =
max(Σ_i (p_ui − a·c_i)₊, Σ_i (p_ui − c_i)₊ + Σc − 1), sums over the categories that the user has,

    F(c) = max Σ_u α_u·Σ_i (p_ui − a·c_i)₊ + β_u·(Σ_i (p_ui − c_i)₊ + Σc − 1)

over α, β ≥ 0 with α_u + β_u = s_u + tail·w_u, w a distribution over the users.

- From above: both maxima are softened at a temperature, the positive parts rounded off, and the smooth F is
  minimised in the box by L-BFGS-B; the temperature falls from stage to stage. F itself is then evaluated.
- From below: the softened maxima give α and β. For *any* α, β the sum above is separable: for each category
  a convex, piecewise linear function of c_i alone with knots p_ui/a and p_ui, minimised exactly. The sum of
  the minima is below F everywhere, however α and β were found.

Without a prior to keep the domain c ≥ 0, Σc ≤ 1 ≤ a·Σc may be replaced by c ≥ 0: scaling c into it makes no
h_u larger.

**In W1** the program is linear over the floor and the laws of all users at once. With p(v) and x(v) the
masses below an edge v, minimise Σ_u s_u·d_u + tail·T over c, x, f and T, where

    c_i ≤ x_ui ≤ a·c_i,   Σ_i x_ui = 1,   f_uv ≥ ±(p_u(v) − x_u(v)),   d_u = Σ_v length_v·f_uv ≤ T.

For potentials φ_u that differ by at most the distance of two categories, d_u ≥ Σφ_u·p_u − Σ_i c_i·(a·φ_ui⁺ −
φ_ui⁻), whatever x is. The solver's dual variables, cut to the lengths, give such φ. Weighed and added up, the
right side is linear in c; its least value over all floors is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import FloatArray, IntArray
from ..errors import ParameterError
from ..geometry import Geometry

if TYPE_CHECKING:
    from scipy import sparse

    from .limit import FloorProblem

LARGEST_W1 = 40_000
"""Different users × categories of the linear program."""
CUTTING_STEPS = 600
WORST = 4
"""Users with a cut of their own in one step: those with the largest divergence."""
FORGET = 60
"""Steps after which a cut that no program has used is dropped."""
TEMPERATURES = (0.03, 0.02, 0.01, 0.005, 0.003, 0.002, 0.001, 0.0005, 0.0003, 0.0002, 0.0001)
"""The stages, in units of the best F so far."""
ROUNDED = 10.0
"""How far positive parts are rounded off, in units of the temperature and of p."""
STAGE_STEPS = 100
"""Steps of L-BFGS-B in one stage."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A floor of the domain, its F, and a value below F everywhere in the domain."""

    floor: FloatArray
    objective: float
    lower_bound: float


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


def cutting_planes(
    problem: FloorProblem,
    start: FloatArray,
    enough: Callable[[float, float], bool],
    report: Callable[[float, float], object],
) -> Solution:
    """Improve `start` until `enough(objective, lower bound)`, the steps are used up, or the program fails."""
    scale = np.where(problem.high > 0, problem.high, 1.0)
    cuts = _Cuts(np.empty((0, len(scale))), np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=np.intp))
    floor, best, bound = start, np.inf, 0.0
    point = start
    for _ in range(CUTTING_STEPS):
        values = _cut(problem, point, scale, cuts)
        objective = problem.objective(values)
        if objective < best:
            floor, best = point, objective
        answer = _program(problem, scale, cuts)
        if answer is None:
            break
        lowest, multipliers, sums = answer
        bound = max(bound, _bound_of_cuts(problem, scale, cuts, multipliers, sums))
        report(best, bound)
        if enough(best, bound):
            break
        cuts.forget(multipliers > 0)
        point = problem.settle((floor + lowest * scale) / 2)
    return Solution(floor, best, min(bound, best))


def _cut(problem: FloorProblem, c: FloatArray, scale: FloatArray, cuts: _Cuts) -> FloatArray:
    """Add the cuts at c, and give back the values there."""
    values, inside, outside = problem.tangents(c)
    weights = [problem.share]
    if problem.tail > 0:
        top = np.argsort(-values, kind="stable")[:WORST]
        weights += [np.eye(1, len(values), int(u))[0] for u in top]
    slopes = np.array([problem.gradient(weight, inside, outside) for weight in weights])
    offsets = np.array([weight @ values for weight in weights]) - slopes @ c
    if np.all(np.isfinite(slopes)) and np.all(np.isfinite(offsets)):
        cuts.add(slopes * scale, offsets, [k > 0 for k in range(len(weights))])
    return values


def _program(
    problem: FloorProblem, scale: FloatArray, cuts: _Cuts
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Minimise t + tail·T with every cut below its t or T: the point and the multipliers of cuts and sums."""
    from scipy.optimize import linprog

    mine = -np.stack([~cuts.worst, cuts.worst], axis=1).astype(np.float64)
    matrix, right = problem.sums
    rows = [np.hstack([cuts.slopes, mine]), np.hstack([matrix * scale, np.zeros((len(right), 2))])]
    bounds = np.stack([problem.low / scale, problem.high / scale], axis=1)
    solved = linprog(
        np.append(np.zeros(len(scale)), [1.0, problem.tail]),
        A_ub=np.concatenate(rows),
        b_ub=np.concatenate([-cuts.offsets, right]),
        bounds=[*bounds, (0, None), (0, None)],
        method="highs",
    )
    if solved.status != 0 or solved.x is None:
        return None
    duals = np.maximum(-solved.ineqlin.marginals, 0.0)
    split = len(cuts.offsets)
    return solved.x[: len(scale)], duals[:split], duals[split:]


def _bound_of_cuts(
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
    matrix, right = problem.sums
    slope = slope + (sums @ matrix) * scale
    size = size + (sums @ np.abs(matrix)) * scale
    offset = np.append(offset, -sums * right)
    least = np.minimum(slope * (problem.low / scale), slope * (problem.high / scale))
    depth = sum(problem.rows.shape) + len(offset)
    return float(offset.sum() + least.sum()) - rounding(offset, size, depth=depth)


def smooth_descent(
    problem: FloorProblem,
    start: FloatArray,
    enough: Callable[[float, float], bool],
    report: Callable[[float, float], object],
) -> Solution:
    """Improve `start` until `enough(objective, lower bound)` or the last stage is done."""
    from scipy.optimize import Bounds, minimize

    below = _SeparableBound(problem)
    floor, best, bound = start, problem.objective(problem.values(start)), 0.0
    for stage in TEMPERATURES:
        heat = max(stage * best, 1e-12)
        scale = np.sqrt(np.maximum(floor, 1e-9 * problem.high.max()) * np.maximum(problem.high, floor))
        scale = np.maximum(scale, np.finfo(np.float64).tiny)

        def smooth(z: FloatArray, heat: float = heat, scale: FloatArray = scale) -> tuple[float, FloatArray]:
            value, slope, _, _ = softened(problem, z * scale, heat)
            return value, slope * scale

        solved = minimize(
            smooth,
            floor / scale,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(problem.low / scale, problem.high / scale),
            options={"maxiter": STAGE_STEPS, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-12},
        )
        point = np.clip(solved.x * scale, problem.low, problem.high)
        _, _, alpha, beta = softened(problem, point, heat)
        bound = max(bound, below(alpha, beta))
        settled = problem.settle(point)
        objective = problem.objective(problem.values(settled))
        if objective < best:
            floor, best = settled, objective
        report(best, bound)
        if enough(best, bound):
            break
    return Solution(floor, best, min(bound, best))


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
class _SeparableBound:
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


def rounding(*terms: FloatArray, depth: int) -> float:
    """What rounding may have added to a sum of these terms, each a sum of at most `depth` numbers."""
    size = sum(float(np.abs(term).sum()) for term in terms)
    return 4 * np.finfo(np.float64).eps * (depth + sum(term.size for term in terms)) * size


def best_floor(
    p: FloatArray,
    share: FloatArray,
    q: FloatArray,
    a: float,
    geometry: Geometry,
    tail: float,
    keep_prior: bool,
) -> tuple[FloatArray, float]:
    """The floor that is best for these users in W1, and a proven lower bound of its mean + tail·maximum."""
    from scipy import sparse
    from scipy.optimize import linprog

    many, n = p.shape
    if many * n > LARGEST_W1:
        raise ParameterError(
            f"the limit in W1 takes at most {LARGEST_W1:,} different users × categories, "
            f"got {many:,} × {n:,}; take fewer users"
        )
    below, lengths = _edges(geometry)
    edges = len(lengths)
    block: Any = sparse.block_array
    each, laws, flows = (sparse.eye_array(size) for size in (many, many * n, many * edges))
    floors, masses = sparse.vstack([sparse.eye_array(n)] * many), sparse.kron(each, below.T)
    right: FloatArray = np.asarray(p @ below).ravel()
    program: Any = linprog
    low, high = (q / a, q) if keep_prior else (np.zeros(n), np.ones(n))
    solved = program(
        np.concatenate([np.zeros(n + many * n), np.kron(share, lengths), [tail]]),
        block([
            [floors, -laws, None, None],
            [-a * floors, laws, None, None],
            [None, -masses, -flows, None],
            [None, masses, -flows, None],
            [None, None, sparse.kron(each, lengths[None, :]), sparse.csr_array(-np.ones((many, 1)))],
        ], format="csr"),
        np.concatenate([np.zeros(2 * many * n), -right, right, np.zeros(many)]),
        block([[sparse.csr_array((many, n)), sparse.kron(each, np.ones((1, n))),
                sparse.csr_array((many, many * edges + 1))]], format="csr"),
        np.ones(many),
        [*zip(low, high, strict=True), *[(0, None)] * (many * (n + edges) + 1)],
        method="highs",
    )  # fmt: skip
    if solved.x is None:
        raise ParameterError("the linear program of the limit was not solved; take fewer users")
    dual = -solved.ineqlin.marginals[2 * many * n :]
    weights = share + np.maximum(dual[2 * many * edges :], 0)
    pulls = (dual[: many * edges] - dual[many * edges : 2 * many * edges]).reshape(many, edges)
    potentials = np.clip(pulls / weights[:, None], -lengths, lengths) @ below.T.toarray()
    potentials += (solved.eqlin.marginals / weights)[:, None]
    bound = _bound(potentials, weights, p, share, tail, low, high, a, keep_prior)
    return np.clip(solved.x[:n], low, high), bound


def _edges(geometry: Geometry) -> tuple[sparse.csr_array[np.float64], FloatArray]:
    """Which categories are below which edge, and the lengths of the edges."""
    from scipy import sparse

    columns: list[list[int]] = []
    below: list[list[int]] = [[] for _ in range(len(geometry.parents) + 1)]
    lengths = []
    for v, (parent, length) in enumerate(zip(geometry.parents, geometry.lengths, strict=True)):
        mine = below[v] or [v]
        below[parent] += mine
        if length:
            columns.append(mine)
            lengths.append(length * geometry.unit)
    owner = np.repeat(np.arange(len(columns)), [len(one) for one in columns])
    entries = [i for one in columns for i in one]
    made = sparse.coo_array((np.ones(len(entries)), (entries, owner)), shape=(len(geometry), len(columns)))
    return sparse.csr_array(made), np.array(lengths)


def _bound(
    potentials: FloatArray,
    weights: FloatArray,
    p: FloatArray,
    share: FloatArray,
    tail: float,
    low: FloatArray,
    high: FloatArray,
    a: float,
    keep_prior: bool,
) -> float:
    """The least value over all floors of the weighted sum of the users' bounds, less what rounding can do.

    The weights are the shares and, for the maximum, numbers ≥ 0 that add up to at most the tail.
    """
    extra = weights - share
    if extra.sum() > tail:
        weights = share + extra * (tail / extra.sum())
    gain = weights @ (a * np.maximum(potentials, 0) - np.maximum(-potentials, 0))
    if keep_prior:
        most = float(np.where(gain > 0, high * gain, low * gain).sum())
    else:
        most = float(gain.max()) / (1 if gain.max() > 0 else a)
    size = float(weights @ np.abs(potentials).max(axis=1)) * a
    value = float(weights @ (potentials * p).sum(axis=1)) - most
    return value - 8 * np.finfo(np.float64).eps * p.size * max(size, math.ulp(1.0))
