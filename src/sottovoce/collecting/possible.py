"""What the population can be, given the law that a clip mechanism released on average.

A clip mechanism is not linear, so that its reports do not give the population's average p̄ back; but they
leave a range for it. Let c be the floor, C its sum, e = 1 − C, a = e^ε, κ = (a − 1)/a, and S a set of
categories, c_m its smallest floor. For a user with p(S) = t > 0 and law x,

    x(S) − c(S) ≥ g(t) = min( (a − 1)·c_m , (e + c(S))·t/(t + κ(1 − t)) − c(S) )₊ .

Proof. If everything the user has is capped, some category of S is at a·c_j: x(S) − c(S) ≥ (a − 1)·c_m. Else
x_j = clip(p_j/r; c_j, a·c_j) with one r > 0. Outside S, clip(y; c, a·c) ≤ c + κ·y for every y ≥ 0, so x(S) −
c(S) ≥ e − κ(1 − t)/r. Inside S, x(S) − c(S) is at least (a − 1)·c_m if a category is capped, and otherwise at
least Σ_S (p_j/r − c_j) = t/r − c(S). The first bound falls and the second rises in 1/r; where they meet is
g(t).

On [t₀, 1], t₀ = κ·c(S)/(e + κ·c(S)), g is concave, and before it is 0; so it lies above the line from (t₀, 0)
to (1, g(1)). The line, cut at 0, is convex, and averaging over the users (Jensen) gives

    p̄(S) ≤ t₀ + (1 − t₀)·(x̄(S) − c(S))/g(1),   g(1) = min((a − 1)·c_m, e).

With S = {i} this bounds p̄_i from above, with S = everything but i from below. The two are closed over Σp̄ = 1,
which is what a linear program over these inequalities would do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._validate import FloatArray
from ..errors import EstimateError
from ..release.box_engine import BoxEngine
from ..release.mechanism import Mechanism
from ..samplers.base import ClipSampler

if TYPE_CHECKING:
    from .model import Model

ROUNDING = 1e-12
"""Added to every range for the integers of a mechanism, which differ from a law by 2^-62 a category."""


def floor_of(model: Model) -> FloatArray | None:
    """The floor of a clip mechanism; None for anything else."""
    source = model.source
    if isinstance(source, ClipSampler):
        return source.floor
    if isinstance(source, Mechanism) and isinstance(source.engine, BoxEngine):
        low = np.array(source.engine.box.low, dtype=np.float64)
        return low / float(1 << source.bits)
    return None


def possible_shares(model: Model, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The range of each p̄_i, if the average law that was released lies between `low` and `high`."""
    floor = floor_of(model)
    if floor is None:
        raise EstimateError(
            "a range is for clip mechanisms with one sample; where reports can be undone, take the interval"
        )
    n = len(floor)
    if n == 1:
        return np.ones(1), np.ones(1)
    total = float(floor.sum())
    most = _at_most(high, floor, floor, total, model.epsilon)
    least = 1 - _at_most(1 - low, total - floor, _smallest_other(floor), total, model.epsilon)
    far = model.worst_distance  # no user's law is further from their own than this
    most = np.minimum(most, high + far) + ROUNDING
    least = np.maximum(least, low - far) - ROUNDING
    least, most = np.clip(least, 0, 1), np.clip(most, 0, 1)
    together = np.maximum(least, 1 - (most.sum() - most)), np.minimum(most, 1 - (least.sum() - least))
    return np.clip(together[0], 0, 1), np.clip(together[1], 0, 1)


def _at_most(
    released: FloatArray, floor: FloatArray, smallest: FloatArray, total: float, epsilon: float
) -> FloatArray:
    """t₀ + (1 − t₀)·(x̄(S) − c(S))/g(1) for each set, from x̄(S), c(S) and c_m; 1 where nothing is told."""
    spare = max(1 - total, 0.0)
    kept = -math.expm1(-epsilon)
    top = np.minimum(math.expm1(epsilon) * smallest, spare)
    start = kept * floor / (spare + kept * floor)
    above = np.maximum(released - floor, 0) + 16 * np.finfo(np.float64).eps  # sums are rounded, top is small
    part = np.divide(above, top, out=np.ones_like(top), where=top > 0)
    return np.minimum(start + (1 - start) * np.minimum(part, 1), 1)


def _smallest_other(floor: FloatArray) -> FloatArray:
    """The smallest floor of all categories but one, for each one."""
    first, second = np.partition(floor, 1)[:2]
    smallest = np.full(len(floor), first)
    smallest[int(floor.argmin())] = second
    return smallest
