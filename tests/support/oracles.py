"""Slow, obvious references for the tests, sharing no code with the library.

Everything here follows a definition or a published algorithm as directly as possible, with no
regard for speed.  Nothing is imported from the package under test, so an agreement between the
two means something.  Categories stay in the caller's order unless a function says otherwise,
divergences take the private law first and the released law second, logarithms are natural.

Sources: Zamanlooy, Diaz and Asoodeh 2025 (Locally Private Sampling with Public Data); Husain et
al. 2020; Park, Asoodeh and Lee 2024; Ghazi et al. 2021; Warner 1965.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from mpmath import mp
from scipy.optimize import brentq, linprog

Array = npt.NDArray[np.float64]

_TIGHT: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


# --- the kernel of the paper -----------------------------------------------------------------


def _algorithm_1_step(q: Array, a: float) -> Array:
    """One call of the recursion of Zamanlooy et al. 2025, Algorithm 1, with Proposition 1 below."""
    n = len(q)
    if n == 1:
        return np.ones((1, 1))
    if n == 2:
        alpha = q[0]
        d = a * alpha + 1 - alpha
        binary: Array = np.array([[a * alpha, 1 - alpha], [alpha, (a - 1) * alpha + 1 - alpha]]) / d
        return binary
    # The recursive call comes before the allocation so that only two matrices are ever alive.
    inner = _algorithm_1_step(q[1:] / q[1:].sum(), a)
    d = a * q[0] + 1 - q[0]
    kernel = np.zeros((n, n))
    kernel[0, 0] = a * q[0] / d
    kernel[1:, 0] = q[0] / d
    kernel[1:, 1:] = (1 - q[0] / d) * inner
    kernel[0, 1:] = q[1:] / d
    return kernel


def algorithm_1(sorted_prior: Array, epsilon: float) -> Array:
    """Zamanlooy et al. 2025, Algorithm 1 as printed, trusting the caller to sort (q_min = q[0])."""
    q = np.asarray(sorted_prior, dtype=np.float64)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 2 * len(q) + 100)
    try:
        return _algorithm_1_step(q, math.exp(epsilon))
    finally:
        sys.setrecursionlimit(limit)


def algorithm_1_any_order(prior: Array, epsilon: float) -> Array:
    """Zamanlooy et al. 2025, Algorithm 1 on the sorted prior, put back in the caller's order."""
    q = np.asarray(prior, dtype=np.float64)
    order = np.argsort(q, kind="stable")
    kernel = np.empty((len(q), len(q)))
    kernel[np.ix_(order, order)] = algorithm_1(q[order], epsilon)
    return kernel


def kernel_mpmath(prior: Array, epsilon: float) -> Array:
    """Zamanlooy et al. 2025, Algorithm 1 unrolled into a loop in 50 digits, caller's order."""
    n = len(prior)
    order = [int(i) for i in np.argsort(prior, kind="stable")]
    with mp.workdps(50):
        a = mp.exp(mp.mpf(float(epsilon)))
        q = [mp.mpf(float(prior[i])) for i in order]
        total = mp.fsum(q)
        q = [value / total for value in q]
        scale = mp.mpf(1)  # the product of the m of the steps done so far
        kernel = np.empty((n, n))
        for step in range(n - 1):
            d = a * q[0] + 1 - q[0]
            here = order[step]
            kernel[here, here] = float(scale * a * q[0] / d)
            for offset in range(1, len(q)):
                later = order[step + offset]
                kernel[later, here] = float(scale * q[0] / d)
                kernel[here, later] = float(scale * q[offset] / d)
            scale *= 1 - q[0] / d
            rest = mp.fsum(q[1:])
            q = [value / rest for value in q[1:]]
        kernel[order[-1], order[-1]] = float(scale)
    return kernel


def ldp_epsilon(matrix: Array) -> float:
    """The true epsilon of a kernel by definition: log of the largest max/min over its columns."""
    worst = 0.0
    for column in np.asarray(matrix, dtype=np.float64).T:
        high, low = float(column.max()), float(column.min())
        if high > 0:
            worst = max(worst, math.log(high / low) if low > 0 else math.inf)
    return worst


# --- other kernels ---------------------------------------------------------------------------


def randomized_response(n: int, epsilon: float) -> Array:
    """Warner 1965 for n categories: the truth with weight e^epsilon, any other with weight 1."""
    a = math.exp(epsilon)
    kernel = np.full((n, n), 1 / (a + n - 1))
    np.fill_diagonal(kernel, a / (a + n - 1))
    return kernel


def rr_with_prior(prior: Array, epsilon: float) -> Array:
    """Ghazi et al. 2021 by trying every k and keeping the likeliest to tell the truth."""
    q = np.asarray(prior, dtype=np.float64)
    n = len(q)
    likeliest_first = np.argsort(-q, kind="stable")
    best, best_truth = np.empty((n, n)), -math.inf
    for k in range(1, n + 1):
        top = likeliest_first[:k]
        kernel = np.zeros((n, n))
        kernel[:, top] = 1 / k
        kernel[np.ix_(top, top)] = randomized_response(k, epsilon)
        truth = float(q @ np.diag(kernel))
        if truth >= best_truth - 1e-12:  # ties go to the largest k
            best, best_truth = kernel, truth
    return best


# --- optimal values by linear programming ----------------------------------------------------


def _solve(cost: Array, **problem: Any) -> float:
    """The optimal value of a linear program by HiGHS, or an error when there is none."""
    answer = linprog(cost, method="highs", options=_TIGHT, **problem)
    if answer.status != 0 or answer.fun is None:
        raise RuntimeError(f"linear program not solved: {answer.message}")
    return float(answer.fun)


def _all_kernels(prior: Array, epsilon: float) -> tuple[npt.NDArray[np.int64], int, dict[str, Any]]:
    """The private kernels that keep the prior, as a polytope: where K_ij stands, the size, the constraints.

    The variables are the entries of K, the n column minima, and one more that is left to the caller.
    """
    n, a = len(prior), math.exp(epsilon)
    size = n * n + n + 1
    k, least = np.arange(n * n).reshape(n, n), np.arange(n * n, n * n + n)
    below: list[Array] = []
    equal: list[tuple[Array, float]] = []
    for i, j in itertools.product(range(n), repeat=2):
        floor_row, cap_row = np.zeros(size), np.zeros(size)
        floor_row[[least[j], k[i, j]]] = [1, -1]  # minimum_j <= K_ij
        cap_row[[k[i, j], least[j]]] = [1, -a]  # K_ij <= a minimum_j
        below += [floor_row, cap_row]
    for i in range(n):
        stochastic, kept = np.zeros(size), np.zeros(size)
        stochastic[k[i]] = 1
        kept[k[:, i]] = prior
        equal += [(stochastic, 1.0), (kept, float(prior[i]))]
    constraints = {
        "A_ub": np.array(below),
        "b_ub": np.zeros(len(below)),
        "A_eq": np.array([row for row, _ in equal]),
        "b_eq": np.array([bound for _, bound in equal]),
        "bounds": (0, 1),
    }
    return k, size, constraints


def best_linear_tv(prior: Array, epsilon: float) -> float:
    """Zamanlooy et al. 2025, Lemma 1: least max_i (1 - K_ii) over private K that keep the prior."""
    k, size, constraints = _all_kernels(prior, epsilon)
    worst = np.zeros((len(prior), size))
    for i in range(len(prior)):
        worst[i, [k[i, i], size - 1]] = -1  # 1 - K_ii <= worst case
    constraints["A_ub"] = np.vstack([constraints["A_ub"], worst])
    constraints["b_ub"] = np.append(constraints["b_ub"], np.full(len(prior), -1.0))
    cost = np.zeros(size)
    cost[-1] = 1
    return _solve(cost, **constraints)


def largest_diagonal(prior: Array, epsilon: float, i: int) -> float:
    """Zamanlooy et al. 2025, Lemma 3 as an optimum: the largest K_ii of private K that keep q."""
    k, size, constraints = _all_kernels(prior, epsilon)
    cost = np.zeros(size)
    cost[k[i, i]] = -1
    return -_solve(cost, **constraints)


def largest_move(kernel: Array) -> float:
    """The largest TV(v, vK)/TV(v, 0) over differences v of two laws, at the point masses that span them."""
    change = np.eye(len(kernel)) - kernel
    return max(
        float(np.abs(change[i] - change[j]).sum()) / 2
        for i, j in itertools.combinations(range(len(kernel)), 2)
    )


def projection_tv_lp(p: Array, floor: Array, epsilon: float) -> float:
    """Husain et al. 2020 as the linear program of Zamanlooy et al. 2025: least TV to the box."""
    n, a = len(p), math.exp(epsilon)
    one = np.eye(n)
    return _solve(
        np.concatenate([np.zeros(n), np.full(n, 0.5)]),  # x, then |x - p|
        A_ub=np.block([[one, -one], [-one, -one]]),
        b_ub=np.concatenate([p, -np.asarray(p)]),
        A_eq=np.concatenate([np.ones(n), np.zeros(n)])[None, :],
        b_eq=np.ones(1),
        bounds=[(c, a * c) for c in floor] + [(0, None)] * n,
    )


def minimax_with_prior_lp(prior: Array, epsilon: float) -> float:
    """Best worst-case TV of any private sampler that keeps the prior, a program over its floor."""
    q, n, a = np.asarray(prior, dtype=np.float64), len(prior), math.exp(epsilon)
    one, m = np.eye(n), np.ones((n, 1))
    return 1 + _solve(
        np.append(np.zeros(n), -1.0),  # the floor, then the least t_i
        A_ub=np.block([[-a * one, m], [np.ones((n, n)) - one, m]]),
        b_ub=np.concatenate([np.zeros(n), np.ones(n)]),
        bounds=[(value / a, value) for value in q] + [(None, None)],
    )


def users_within_a_factor(prior: Array, gamma: float) -> Array:
    """The extreme points of {p : q/gamma <= p <= gamma q}: every category but one at one of its ends."""
    q, n = np.asarray(prior, dtype=np.float64), len(prior)
    found: dict[tuple[float, ...], Array] = {}
    for free in range(n):
        others = [i for i in range(n) if i != free]
        for ends in itertools.product((1 / gamma, gamma), repeat=n - 1):
            p = np.empty(n)
            p[others] = q[others] * ends
            p[free] = 1 - math.fsum(p[others])
            if q[free] / gamma - 1e-12 <= p[free] <= gamma * q[free] + 1e-12:
                found[tuple(np.round(p, 12))] = p
    return np.array(list(found.values()))


def best_floor_lp(users: Array, prior: Array, epsilon: float, floors: str) -> float:
    """Least worst TV over these users of any floor, a program in the floor c and the positive parts.

    `floors` says which: "any" private sampler, those that "keep" the prior, or the "multiples" of it.
    """
    q, a, (m, n) = np.asarray(prior, dtype=np.float64), math.exp(epsilon), users.shape
    over = n + np.arange(m * n).reshape(m, n)  # (p - a c)+ ...
    under = over + m * n  # ... and (c - p)+, per user and category
    size = n + 2 * m * n + 1
    below: list[tuple[Array, float]] = []
    for user, i in itertools.product(range(m), range(n)):
        above, short = np.zeros(size), np.zeros(size)
        above[[i, over[user, i]]] = [-a, -1]
        short[[i, under[user, i]]] = [1, -1]
        below += [(above, -float(users[user, i])), (short, float(users[user, i]))]
    for parts in (*over, *under):
        total = np.zeros(size)
        total[parts], total[-1] = 1, -1
        below.append((total, 0.0))
    mass = np.zeros(size)
    mass[:n] = 1
    below += [(mass, 1.0), (-a * mass, -1.0)]  # the box holds a law
    bounds = [(0.0, 1.0)] * n if floors == "any" else [(value / a, value) for value in q]
    equal: dict[str, Any] = {}
    if floors == "multiples":
        alike = np.zeros((n - 1, size))
        alike[:, 0], alike[np.arange(n - 1), np.arange(1, n)] = q[1:], -q[0]
        equal = {"A_eq": alike, "b_eq": np.zeros(n - 1)}
    cost = np.zeros(size)
    cost[-1] = 1
    return _solve(
        cost,
        A_ub=np.array([row for row, _ in below]),
        b_ub=np.array([bound for _, bound in below]),
        bounds=bounds + [(0, None)] * (2 * m * n + 1),
        **equal,
    )


def limit_lp(
    users: Array, prior: Array, epsilon: float, tail: float, keep_prior: bool, promise: float = 0.0
) -> float:
    """Least mean + tail * max of the TV to the box, written out as one program over the floor.

    Variables: the floor c; per user and category (p - a c)+ and (c - p)+; per user its TV; the largest.
    With a promise a point mass on every category is a user who counts for nothing and is within 1 - promise.
    """
    p, q, a = np.asarray(users, dtype=np.float64), np.asarray(prior, dtype=np.float64), math.exp(epsilon)
    counted, n = p.shape
    p = np.vstack([p, np.eye(n)]) if promise else p
    m = len(p)
    size = n + 2 * m * n + m + 1
    over, under = n + np.arange(m * n).reshape(m, n), n + m * n + np.arange(m * n).reshape(m, n)
    own, largest = n + 2 * m * n + np.arange(m), size - 1
    below: list[tuple[Array, float]] = []
    for u in range(m):
        for i in range(n):
            boosted, suppressed = np.zeros(size), np.zeros(size)
            boosted[[i, over[u, i]]] = [-a, -1]  # p - a c <= over
            suppressed[[i, under[u, i]]] = [1, -1]  # c - p <= under
            below += [(boosted, -p[u, i]), (suppressed, p[u, i])]
        first, second, worst = np.zeros(size), np.zeros(size), np.zeros(size)
        first[over[u]], first[own[u]] = 1, -1
        second[under[u]], second[own[u]] = 1, -1
        worst[own[u]], worst[largest] = 1, -1 if u < counted else 0
        below += [(first, 0.0), (second, 0.0), (worst, 0.0 if u < counted else 1 - promise)]
    floors: list[tuple[float, float | None]] = [(value / a, value) for value in q]
    if not keep_prior:
        some, enough = np.zeros(size), np.zeros(size)
        some[:n], enough[:n] = 1, -a
        below += [(some, 1.0), (enough, -1.0)]
        floors = [(0.0, None)] * n
    cost = np.zeros(size)
    cost[own[:counted]], cost[largest] = 1 / counted, tail
    return _solve(
        cost,
        A_ub=np.array([row for row, _ in below]),
        b_ub=np.array([bound for _, bound in below]),
        bounds=[*floors, *[(0.0, None)] * (size - n)],
    )


def minimax_without_prior(n: int, epsilon: float) -> float:
    """Park et al. 2024: the best worst-case TV when no prior has to be kept."""
    return (n - 1) / (math.exp(epsilon) + n - 1)


# --- divergences -----------------------------------------------------------------------------


def _js_generator(t: Any) -> Any:
    """The f of the Jensen-Shannon divergence of Lin 1991."""
    return (t * mp.log(2 * t / (1 + t)) - mp.log((1 + t) / 2)) / 2


def divergence_mpmath(
    p: Array, x: Array, name: str, gamma: float | None = None, alpha: float | None = None
) -> float:
    """Csiszar's sum of x f(p/x) in 50 digits, with f(0) and lim f(t)/t taken at the two ends."""
    with mp.workdps(50):
        half, inf = mp.mpf(1) / 2, mp.inf
        f: Callable[[Any], Any]
        if name == "tv":
            f, at_zero, slope = (lambda t: abs(t - 1) / 2), half, half
        elif name == "kl":
            f, at_zero, slope = (lambda t: t * mp.log(t)), 0, inf
        elif name == "chi2":
            f, at_zero, slope = (lambda t: (t - 1) ** 2), 1, inf
        elif name == "hellinger2":
            f, at_zero, slope = (lambda t: (mp.sqrt(t) - 1) ** 2), 1, 1
        elif name == "js":
            f, at_zero, slope = _js_generator, mp.log(2) / 2, mp.log(2) / 2
        elif name == "reverse_kl":
            f, at_zero, slope = (lambda t: -mp.log(t)), inf, 0
        elif name == "hockey_stick" and gamma is not None and gamma >= 0:
            level = mp.mpf(float(gamma))
            f, at_zero, slope = (lambda t: max(t - level, 0)), 0, 1
        elif name == "alpha" and alpha is not None and alpha not in (0, 1):
            order = mp.mpf(float(alpha))
            weight = order * (order - 1)
            at_zero = -1 / weight if order > 0 else inf
            f, slope = (lambda t: (t**order - 1) / weight), (inf if order > 1 else 0)
        else:
            raise ValueError(f"unknown divergence, or parameter missing: {name}")
        total = mp.mpf(0)
        for p_i, x_i in zip(p, x, strict=True):
            private, released = mp.mpf(float(p_i)), mp.mpf(float(x_i))
            if released > 0:
                total += released * (f(private / released) if private > 0 else at_zero)
            elif private > 0:
                total += private * slope
        return float(total)


# The summands x f(p/x) and their derivatives in x, for p > 0; at p = 0 the summand is x f(0).
_SUMMAND: dict[str, Callable[[float, float], float]] = {
    "kl": lambda p, x: p * math.log(p / x),
    "chi2": lambda p, x: (p - x) ** 2 / x,
    "hellinger2": lambda p, x: (math.sqrt(p) - math.sqrt(x)) ** 2,
    "js": lambda p, x: (p * math.log(2 * p / (p + x)) + x * math.log(2 * x / (p + x))) / 2,
    "reverse_kl": lambda p, x: x * math.log(x / p),
}
_DERIVATIVE: dict[str, Callable[[float, float], float]] = {
    "kl": lambda p, x: -p / x,
    "chi2": lambda p, x: 1 - (p / x) ** 2,
    "hellinger2": lambda p, x: 1 - math.sqrt(p / x),
    "js": lambda p, x: math.log(2 * x / (p + x)) / 2,
    "reverse_kl": lambda p, x: math.log(x / p) + 1,
}
_AT_ZERO = {"kl": 0.0, "chi2": 1.0, "hellinger2": 1.0, "js": math.log(2) / 2}


def projection_convex(p: Array, floor: Array, epsilon: float, divergence_name: str) -> float:
    """Least D_f(p || x) over the box by Lagrangian duality, certified by its own duality gap."""
    if divergence_name == "reverse_kl" and np.any(np.asarray(p) == 0):
        return math.inf
    a, n = math.exp(epsilon), len(p)

    def summand(i: int, x: float) -> float:
        return _AT_ZERO[divergence_name] * x if p[i] == 0 else _SUMMAND[divergence_name](p[i], x)

    def slope(i: int, x: float) -> float:
        return _AT_ZERO[divergence_name] if p[i] == 0 else _DERIVATIVE[divergence_name](p[i], x)

    def best(i: int, price: float) -> float:
        """The x_i of the box that minimises its summand minus price * x_i."""
        low, high = float(floor[i]), a * float(floor[i])
        if slope(i, low) >= price:
            return low
        if slope(i, high) <= price:
            return high
        return float(brentq(lambda x: slope(i, x) - price, low, high, xtol=1e-300, rtol=1e-15))

    # Bisect on the price of one unit of mass; the two ends bracket a total of one.
    cheap = min(slope(i, float(floor[i])) for i in range(n)) - 1
    dear = max(slope(i, a * float(floor[i])) for i in range(n)) + 1
    for _ in range(200):
        middle = (cheap + dear) / 2
        if math.fsum(best(i, middle) for i in range(n)) < 1:
            cheap = middle
        else:
            dear = middle
    low = np.array([best(i, cheap) for i in range(n)])
    high = np.array([best(i, dear) for i in range(n)])
    room = math.fsum(high) - math.fsum(low)
    share = (1 - math.fsum(low)) / room if room > 0 else 0.0
    x = low + min(max(share, 0.0), 1.0) * (high - low)
    if abs(math.fsum(x) - 1) > 1e-9:
        raise RuntimeError(f"the box holds no law: total {math.fsum(x)}")
    primal = math.fsum(summand(i, x[i]) for i in range(n))
    dual = dear + math.fsum(summand(i, high[i]) - dear * high[i] for i in range(n))
    if abs(primal - dual) > 1e-9 * max(1.0, abs(primal)):
        raise RuntimeError(f"duality gap: {primal} against {dual}")
    return primal


def limit_by_search(users: Array, prior: Array, epsilon: float, name: str, tail: float) -> float:
    """Least mean + tail * max of a divergence for two categories, by a fine grid of floors, refined.

    With two categories the box is an interval of x_1, whose best point is the nearest one to p_1.
    """
    a = math.exp(epsilon)
    q = np.asarray(prior, dtype=np.float64)

    def term(p: float, x: Array) -> Array:
        return _AT_ZERO[name] * x if p == 0 else np.vectorize(_SUMMAND[name])(p, x)

    low, high = q / a, q.copy()
    best = math.inf
    for _ in range(4):
        first, second = np.meshgrid(np.linspace(low[0], high[0], 101), np.linspace(low[1], high[1], 101))
        values = []
        for p in users:
            x = np.clip(p[0], np.maximum(first, 1 - a * second), np.minimum(a * first, 1 - second))
            values.append(term(p[0], x) + term(p[1], 1 - x))
        total = np.mean(values, axis=0) + tail * np.max(values, axis=0)
        best = min(best, float(total.min()))
        place = np.unravel_index(int(total.argmin()), total.shape)
        where, step = np.array([first[place], second[place]]), 6 * (high - low) / 100
        low, high = np.maximum(where - step, q / a), np.minimum(where + step, q)
    return best


def power_caps(prior: Array, epsilon: float, scale: float, exponent: float) -> Array:
    """Caps s q^b between the prior and e^epsilon times it, at most one, over e^epsilon, in 50 digits."""
    with mp.workdps(50):
        a = mp.exp(mp.mpf(float(epsilon)))
        floor = []
        for value in prior:
            q = mp.mpf(float(value))
            cap = mp.mpf(float(scale)) * q ** mp.mpf(float(exponent))
            floor.append(float(min(max(cap, q), min(mp.mpf(1), a * q)) / a))
        return np.array(floor)


def clip_by_bisection_mpmath(p: Array, prior: Array, floor: Array, epsilon: float) -> Array:
    """Park et al. 2024, Proposition 3.4: p/r cut to [c, a c], with r by bisection to 200 bits."""
    n = len(p)
    with mp.workprec(400):
        a = mp.exp(mp.mpf(float(epsilon)))
        c = [mp.mpf(float(value)) for value in floor]
        cap = [a * value for value in c]

        def filled(direction: list[Any], members: list[int], mass: Any) -> dict[int, Any]:
            """Cut scale * direction to the box on the members, the scale fixed by their mass."""
            low = min(c[i] / direction[i] for i in members)
            high = max(cap[i] / direction[i] for i in members)
            for _ in range(200):
                scale = mp.sqrt(low * high)
                cut = [min(max(scale * direction[i], c[i]), cap[i]) for i in members]
                if mp.fsum(cut) < mass:
                    low = scale
                else:
                    high = scale
            return {i: min(max(high * direction[i], c[i]), cap[i]) for i in members}

        support = [i for i in range(n) if p[i] > 0]
        zeros = [i for i in range(n) if p[i] <= 0]
        supported, rest = mp.fsum(cap[i] for i in support), mp.fsum(c[i] for i in zeros)
        if supported + rest < 1 and zeros:  # from the floor towards the clip of the prior
            public = filled([mp.mpf(float(value)) for value in prior], list(range(n)), mp.mpf(1))
            part = (1 - supported - rest) / mp.fsum(public[i] - c[i] for i in zeros)
            x = {i: cap[i] for i in support}
            x |= {i: c[i] + part * (public[i] - c[i]) for i in zeros}
        else:
            x = {i: c[i] for i in zeros}
            x |= filled([mp.mpf(float(value)) for value in p], support, 1 - rest)
        return np.array([float(x[i]) for i in range(n)])


# --- searching ---------------------------------------------------------------------------------


def drawn_units(
    counts: dict[int, int], low: list[int], high: list[int], prior: list[int], total: int
) -> list[int]:
    """A clip mechanism's law in whole units, from the definition, in fractions.

    x_i = clip(m·k_i; low_i, high_i) over the user's categories with Σx = N, the others at their floors, in
    whole units. A capped user, for whom that cannot be, has all categories at their caps. What is left is cut
    into as many equal pieces, and laid over what the prior's own law has above the floors of the others: each
    piece belongs to the category where it begins.
    """
    n, held = len(low), sorted(counts)
    units = [high[i] if i in counts else low[i] for i in range(n)]
    left = total - sum(units)
    if left <= 0:
        target = total - sum(low[i] for i in range(n) if i not in counts)
        for i, unit in zip(held, clipped_units(held, counts, low, high, target), strict=True):
            units[i] = unit
        return units
    public = clipped_units(list(range(n)), dict(enumerate(prior)), low, high, total)
    rooms = [0 if i in counts else public[i] - low[i] for i in range(n)]
    piece = Fraction(sum(rooms), left)
    end, given = 0, 0
    for i, room in enumerate(rooms):
        end += room
        upto = math.ceil(end / piece)  # pieces that begin before the end of category i
        units[i] += upto - given
        given = upto
    return units


def clipped_units(
    free: list[int], weight: dict[int, int], low: list[int], high: list[int], target: int
) -> list[int]:
    """clip(m·w_i; low_i, high_i) over some categories with this sum, rounded down, one unit each to the first."""

    def clip(m: Fraction) -> list[Fraction]:
        return [min(max(m * weight[i], Fraction(low[i])), Fraction(high[i])) for i in free]

    knots = sorted({Fraction(edge[i], weight[i]) for edge in (low, high) for i in free})
    below, above = 0, len(knots) - 1  # the clip is at most the target at the first, at least at the second
    while above - below > 1:
        middle = (below + above) // 2
        if sum(clip(knots[middle])) <= target:
            below = middle
        else:
            above = middle
    least, most = sum(clip(knots[below])), sum(clip(knots[above]))
    m = knots[below]
    if most > least:
        m += (target - least) * (knots[above] - knots[below]) / (most - least)
    shares = clip(m)
    assert sum(shares) == target
    units, spare = [], target - sum(math.floor(x) for x in shares)
    for x in shares:
        lifted = spare > 0 and x.denominator > 1
        units.append(math.floor(x) + lifted)
        spare -= lifted
    return units


def drawn_intervals(
    counts: dict[int, int], low: list[int], high: list[int], prior: list[int], total: int
) -> list[int]:
    """How many words in turn: own units and floors in the order of the categories, then what is above them."""
    units = drawn_units(counts, low, high, prior, total)
    first = [unit if i in counts else low[i] for i, unit in enumerate(units)]
    return [*first, *(unit - base for unit, base in zip(units, first, strict=True))]


def worst_case_dense_search(
    law: Callable[[Array], Array],
    n: int,
    divergence: Callable[[Array, Array], float],
    rng: np.random.Generator,
    tries: int,
) -> float:
    """Largest divergence found by search, to hold against Lemma 1 of Zamanlooy et al. 2025."""
    users = [np.eye(n)[i] for i in range(n)]
    if n <= 10:
        for size in range(2, n + 1):
            for subset in itertools.combinations(range(n), size):
                user = np.zeros(n)
                user[list(subset)] = 1 / size
                users.append(user)
    for _ in range(tries):
        user = rng.dirichlet(np.full(n, 10 ** rng.uniform(-2.0, 1.5)))
        users.append(user / user.sum())
    return max(float(divergence(user, law(user))) for user in users)


def random_box_points(floor: Array, epsilon: float, rng: np.random.Generator, count: int) -> Array:
    """Random laws of the mollifier of Husain et al. 2020, from its vertices to its interior."""
    low = np.asarray(floor, dtype=np.float64)
    high = math.exp(epsilon) * low
    n = len(low)

    def vertex() -> Array:
        """Raise the categories to their caps in a random order until the mass runs out."""
        x = low.copy()
        for i in rng.permutation(n):
            left = 1 - math.fsum(x)
            if left >= high[i] - low[i]:
                x[i] = high[i]
            else:
                x[i] = min(max(low[i] + left, low[i]), high[i])
                break
        return x

    points = np.empty((count, n))
    for row in range(count):
        corners = [1, 2, 3, n + 1][row % 4]  # a vertex, an edge or chord, a triangle, the interior
        weights = rng.dirichlet(np.ones(corners))
        mixed = weights @ np.array([vertex() for _ in range(corners)])
        points[row] = np.clip(mixed, low, high)
        if abs(math.fsum(points[row]) - 1) > 1e-12:
            raise RuntimeError("the box holds no law")
    return points


# --- tables, counted by hand: loops over rows (group, user, item, weight, score), exact fractions ---


def priors_by_hand(
    rows: list[tuple[str, str, str, int, int]],
    *,
    top: int | None = None,
    other: str | None = None,
    minimum_rows: int = 0,
    minimum_users: int = 0,
    average: str = "rows",
    smoothing: int = 0,
) -> dict[str, dict[str, Fraction]]:
    """Group → category → probability, from the rules as they are written in the documentation."""
    per_user = Counter(user for _, user, _, _, _ in rows)
    rows = [row for row in rows if per_user[row[1]] >= minimum_rows]
    everything = sorted({item for _, _, item, _, _ in rows})
    out = {}
    for group in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == group]
        score: dict[str, int] = {}
        for _, _, item, _, value in mine:
            score[item] = score.get(item, 0) + value
        ranked = sorted(score, key=lambda item: (-score[item], item))
        kept = everything if top is None else sorted(ranked[:top])
        names = kept + ([other] if other is not None and other not in kept else [])
        counts: dict[str, dict[str, Fraction]] = {}
        for _, user, item, weight, _ in mine:
            name = item if item in kept else other
            if name is not None and weight > 0:
                held = counts.setdefault(user, {})
                held[name] = held.get(name, Fraction(0)) + weight
        if not counts or len(counts) < minimum_users:
            continue
        total = dict.fromkeys(names, Fraction(smoothing))
        for held in counts.values():
            size = sum(held.values()) if average == "users" else 1
            for name, amount in held.items():
                total[name] += amount / size
        whole = sum(total.values())
        out[group] = {name: amount / whole for name, amount in total.items()}
    return out


def users_by_hand(
    rows: list[tuple[str, str, str, int, int]],
    categories: dict[str, list[str]],
    *,
    other: str | None = None,
    minimum_rows: int = 0,
) -> dict[str, dict[str, list[Fraction]]]:
    """Group → user → distribution over the group's categories; unknown items dropped or put into `other`."""
    per_user = Counter(user for _, user, _, _, _ in rows)
    out: dict[str, dict[str, list[Fraction]]] = {group: {} for group in categories}
    for group, user, item, weight, _ in rows:
        if per_user[user] < minimum_rows or group not in categories:
            continue
        name = item if item in categories[group] else other
        if name is not None and weight > 0:
            held = out[group].setdefault(user, [Fraction(0)] * len(categories[group]))
            held[categories[group].index(name)] += weight
    return {
        group: {user: [amount / sum(held) for amount in held] for user, held in sorted(users.items())}
        for group, users in out.items()
    }


def chance_ratio(q: list[float], users: list[list[float]], weights: list[float]) -> float:
    """χ² of q and the users' weighted average, over what it is on average if they were drawn from q.

    Written out user by user and category by category, from the definition of a weighted mean's variance.
    """
    total = sum(weights)
    distance = expected = 0.0
    for i, public in enumerate(q):
        mean = sum(a * p[i] for a, p in zip(weights, users, strict=True)) / total
        distance += (public - mean) ** 2 / public
        expected += (
            sum((a / total * (p[i] - mean)) ** 2 for a, p in zip(weights, users, strict=True)) / public
        )
    return distance / expected


def shuffled_delta(first: Array, second: Array, others: Array, epsilon: float) -> float:
    """The exact δ at ε′ of shuffled reports: one user with either of two laws, the others as they are.

    The distribution of how often each category was reported, by adding one user after another.
    """

    def counts(laws: Array) -> dict[tuple[int, ...], float]:
        found = {(0,) * len(first): 1.0}
        for law in laws:
            after: dict[tuple[int, ...], float] = {}
            for seen, chance in found.items():
                for i, share in enumerate(law):
                    key = (*seen[:i], seen[i] + 1, *seen[i + 1 :])
                    after[key] = after.get(key, 0.0) + chance * share
            found = after
        return found

    one, other = counts(np.vstack([first, others])), counts(np.vstack([second, others]))
    return math.fsum(max(one[key] - math.exp(epsilon) * other[key], 0.0) for key in one)


def merged_by_hand(
    counts: dict[str, dict[str, Fraction]], name: str, below: Fraction | None
) -> dict[str, dict[str, Fraction]]:
    """Group → category → count, with what is rare in any group added up into one category, in all groups."""
    rare = {
        category
        for held in counts.values()
        for category, count in held.items()
        if category != name and (count == 0 if below is None else count < below)
    }
    out: dict[str, dict[str, Fraction]] = {}
    for group, held in counts.items():
        out[group] = {}
        for category, count in held.items():
            target = name if category in rare else category
            out[group][target] = out[group].get(target, Fraction(0)) + count
    return out


def largest_excess(kernel: Array, q: Array, factor: float, gamma: float) -> float:
    """max over all p of E(p‖pK) − factor·E(p‖q) for f(t) = (t − γ)₊ − (1 − γ)₊.

    The first sum is the largest of those over a set of categories, so there is one linear program a set, in p
    and t ≥ (p − γq)₊.
    """
    n = len(q)
    best = -math.inf
    both = np.hstack([np.eye(n), -np.eye(n)])  # p − t ≤ γq
    for chosen in range(1 << n):
        inside = np.array([chosen >> j & 1 for j in range(n)], dtype=float)
        gain = (np.eye(n) - gamma * kernel) @ inside
        answer = linprog(
            np.concatenate([-gain, np.full(n, factor)]),
            A_ub=both, b_ub=gamma * q, A_eq=[[1.0] * n + [0.0] * n], b_eq=[1.0], bounds=(0, None),
            method="highs", options=_TIGHT,
        )  # fmt: skip
        best = max(best, -float(answer.fun if answer.fun is not None else math.inf))
    return float(best - (1 - factor) * max(1 - gamma, 0.0))


def largest_diagonal_lp(q: Array, a: float, category: int, at_least: float) -> Array:
    """The kernel with the largest K_kk that keeps q, has no column ratio above a, and K_ii >= at_least."""
    n = len(q)
    below, equal, right = [], [], []
    for i in range(n):
        row, column = np.zeros((n, n)), np.zeros((n, n))
        row[i], column[:, i] = 1, q
        equal += [row.ravel(), column.ravel()]
        right += [1.0, float(q[i])]
        for j in range(n):
            for other in range(n):
                if other != i:
                    pair = np.zeros((n, n))
                    pair[i, j], pair[other, j] = 1, -a
                    below.append(pair.ravel())
    cost = np.zeros((n, n))
    cost[category, category] = -1
    bounds = [(at_least if i == j else 0.0, 1.0) for i in range(n) for j in range(n)]
    solved = linprog(
        cost.ravel(), A_ub=np.array(below), b_ub=np.zeros(len(below)), A_eq=np.array(equal), b_eq=right,
        bounds=bounds, method="highs",
    )  # fmt: skip
    assert solved.status == 0
    return np.asarray(solved.x).reshape(n, n)


def survey_matrix(n: int, base: int, own: Fraction, other: Fraction) -> list[list[Fraction]]:
    """The law of every category's report by brute force: all vectors, normalised, as tuples of digits."""
    digits = next(d for d in itertools.count(1) if base**d >= n)
    vectors = [v for v in itertools.product(range(base), repeat=digits) if next(filter(None, v), 0) == 1]
    names = list(itertools.product(range(base), repeat=digits))[:n]
    share = Fraction(1, len(vectors))
    return [
        [
            share * (own if sum(a * b for a, b in zip(v, w, strict=True)) % base == value else other)
            for v in vectors
            for value in range(base)
        ]
        for w in names
    ]


def least_move(targets: Any, low: Any, high: Any, distances: Array) -> float:
    """The least Σ d_ij·π_ij over all plans π with row sums p and column sums in the box: a linear program."""
    n = len(targets)
    ones, eye = np.ones((1, n)), np.eye(n)
    columns = np.kron(ones, eye)
    return _solve(
        distances.ravel(),
        A_ub=np.vstack([columns, -columns]),
        b_ub=np.concatenate([np.array(high, dtype=float), -np.array(low, dtype=float)]),
        A_eq=np.kron(eye, ones),
        b_eq=np.array(targets, dtype=float),
        bounds=(0, None),
    )


def paths_apart(parents: Any, lengths: Any, leaves: int) -> Array:
    """The distance of every two leaves of a tree, by climbing from both until they meet."""

    def climb(v: int) -> dict[int, int]:
        seen, far = {v: 0}, 0
        while v < len(parents):
            far, v = far + lengths[v], parents[v]
            seen[v] = far
        return seen

    ways = [climb(i) for i in range(leaves)]
    return np.array([[min(a[v] + b[v] for v in a if v in b) for b in ways] for a in ways], dtype=float)


def nearest_unit_by_unit(targets: Any, low: Any, high: Any, parents: Any, lengths: Any) -> list[int]:
    """The definition of `nearest_law`, every unit above a floor being an item of its own with a slope."""
    n, root = len(targets), len(parents)
    goals = [p - a for p, a in zip(targets, low, strict=True)] + [0] * (root + 1 - n)
    items: list[list[tuple[int, bool, int, int]]] = [[] for _ in range(root + 1)]
    for i in range(n):
        items[i] = [(0, low[i] + k >= targets[i], i, k) for k in range(high[i] - low[i])]
    for v in range(root):
        order = sorted(items[v])
        if lengths[v]:
            cut = min(max(goals[v], 0), len(order))
            shifts = [-lengths[v]] * cut + [lengths[v]] * (len(order) - cut)
            order = [(one[0] + shift, *one[1:]) for one, shift in zip(order, shifts, strict=True)]
        items[parents[v]] += order
        goals[parents[v]] += goals[v]
    law = list(low)
    for _, _, i, _ in sorted(items[root])[: sum(targets) - sum(low)]:
        law[i] += 1
    return law
