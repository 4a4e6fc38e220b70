"""The floors: one pure function per design, (q, epsilon, …) -> c in the order of q.

A floor c says with what probability at least each category is released, whoever the user is. With
a = e^ε it spans the box B(c) = {x : c_i ≤ x_i ≤ a·c_i, Σx = 1}. Any rule that answers every user with
a point of the box is ε-locally private, because x_i ≤ a·c_i ≤ a·x'_i; and every ε-locally private
sampler is such a rule. The prior is kept only if q itself lies in the box: q/a ≤ c ≤ q.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

from ..checks import FloatArray
from .kernels import MinimaxKernel


def relative(q: FloatArray, epsilon: float) -> FloatArray:
    """c = q·e^(−ε/2): half of ε for suppressing, half for boosting (Husain et al. 2020)."""
    return q * math.exp(-epsilon / 2)


def uniform(n: int, epsilon: float) -> FloatArray:
    """c_i = 1/(e^ε + n − 1): the same for all, blind to the prior (Park et al. 2024)."""
    return np.full(n, 1 / (math.expm1(epsilon) + n))


def local(q: FloatArray, epsilon: float, gamma: float) -> FloatArray:
    """c = q·(γ+1)/(γ+e^ε) for users with q/γ ≤ p ≤ γq (Ghoukasian et al. 2025).

    When γ² ≤ e^ε those users fit into the relative mollifier as they are, and c is its floor; the
    two formulas agree at γ² = e^ε.
    """
    if 2 * math.log(gamma) <= epsilon:
        return relative(q, epsilon)
    return q * ((gamma + 1) / (gamma + math.exp(epsilon)))


def kernel(q: FloatArray, epsilon: float) -> FloatArray:
    """c of the paper's kernel: K_ij lies in [c_j, a·c_j] for all i, j (Zamanlooy et al. 2025)."""
    return MinimaxKernel(q, epsilon).floor


def prior_minimax(q: FloatArray, epsilon: float) -> FloatArray:
    """c = clip(θ/a; q/a, q), the floor with the best worst case among all that keep q.

    θ is the root of θ(1 − 1/a) + Σ_i clip(θ/a; q_i/a, q_i) = 1, an increasing function that is
    linear between the knots q_i and a·q_i; it is solved exactly on the one segment that holds it.
    """
    a, shrink = math.exp(epsilon), math.exp(-epsilon)
    spread = -math.expm1(-epsilon)
    ascending = np.sort(q)
    below = np.concatenate([[0.0], np.cumsum(ascending)])
    above = np.concatenate([np.cumsum(ascending[::-1])[::-1], [0.0]])

    def total(theta: FloatArray) -> FloatArray:
        raised = np.searchsorted(ascending, theta, side="left")
        full = np.searchsorted(a * ascending, theta, side="left")
        middle = (raised - full) * shrink * theta
        return np.asarray(theta * spread + below[full] + middle + shrink * above[raised])

    knots = np.sort(np.concatenate([ascending, a * ascending]))
    after = int(np.searchsorted(total(knots), 1.0))
    left = knots[after - 1] if after > 0 else 0.0
    right = knots[after] if after < len(knots) else math.inf
    # Inside a segment both counts are constant: those raised by its left end, those full by it.
    raised = int(np.searchsorted(ascending, left, side="right"))
    full = int(np.searchsorted(a * ascending, left, side="right"))
    slope = spread + (raised - full) * shrink
    theta = (1 - below[full] - shrink * above[raised]) / slope
    theta = min(max(theta, left), right)
    return np.asarray(np.clip(theta * shrink, q * shrink, q))


def blend(q: FloatArray, epsilon: float, weight: float) -> FloatArray:
    """c = relative^(1−w) · kernel^w, category by category: the geometric mean of two floors.

    Both factors satisfy q/a ≤ c ≤ q, hence so does their mean: the prior is kept for every weight.
    """
    suppressed = (1 - weight) * (-epsilon / 2) + weight * np.log(kernel(q, epsilon) / q)
    return q * np.exp(suppressed)


def kept_mass(floor: FloatArray, epsilon: float) -> float:
    """t = 1 − the worst total variation of any user: the least that a point mass on i keeps.

    It keeps min(a·c_i, 1 − Σc + c_i), so t = min(a·min c, 1 − Σc + min c).
    """
    least = float(floor.min())
    return min(exactly_rounded_exp(epsilon) * least, 1 - math.fsum(floor.tolist()) + least)


def promised(floor: FloatArray, reference: FloatArray, epsilon: float, promise: float) -> FloatArray:
    """The floor, changed so that no user is further than 1 − t in total variation.

    That holds exactly if a·c_i ≥ t and Σc − c_i ≤ 1 − t for every i. The floor is raised to t/a; if its sum
    is then too large, it is moved towards `reference`, which keeps the promise, by as much as the chord of
    the convex function Σc − min c demands.
    """
    raised = np.maximum(floor, promise / exactly_rounded_exp(epsilon))
    start, end = (math.fsum(one.tolist()) - float(one.min()) for one in (raised, reference))
    if start <= 1 - promise:
        return raised
    share = min(1.0, (start - (1 - promise)) / (start - end)) if start > end else 1.0
    return np.asarray(raised + share * (reference - raised))


def power_caps(q: FloatArray, epsilon: float, scale: float, exponent: float) -> FloatArray:
    """c = cap/a, cap = clip(s·q^β; q, min(1, a·q)): between an even boost (β = 1) and an even cap (β = 0).

    q ≤ cap ≤ a·q, so the prior is kept. With an exponent in sixteenths only products, quotients and square
    roots of doubles are used, and e^ε to its last bit: the floor is then the same, bit for bit, on every
    machine.
    """
    a = exactly_rounded_exp(epsilon)
    return np.asarray(np.clip(scale * power(q, exponent), q, np.minimum(1.0, a * q)) / a)


def power_range(q: FloatArray, epsilon: float, exponent: float) -> tuple[float, float]:
    """The scales between which some cap is neither q nor a·q: from min q^(1−β) to a·max q^(1−β)."""
    ratio = q / power(q, exponent)
    return float(ratio.min()), exactly_rounded_exp(epsilon) * float(ratio.max())


def power(q: FloatArray, exponent: float) -> FloatArray:
    """q^β for 0 ≤ β ≤ 1; in sixteenths by square roots, which every machine rounds alike."""
    sixteenths = int(16 * exponent)
    if sixteenths != 16 * exponent or sixteenths == 16:
        return q if exponent == 1 else np.asarray(q**exponent)
    out, root = np.ones_like(q), q
    for bit in (8, 4, 2, 1):
        root = np.sqrt(root)
        if sixteenths & bit:
            out = out * root
    return out


@lru_cache
def exactly_rounded_exp(x: float) -> float:
    """e^x as the nearest double: libraries of mathematics differ in the last bit, `decimal` does not."""
    with localcontext() as context:
        context.prec = 50
        return float(Decimal(x).exp())
