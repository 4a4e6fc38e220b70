"""Free trimming: a larger box from the same floor, for nothing.

A law of the box above c has x_i ≤ 1 − Σ_{j≠i} c_j, so a cap a·c_i beyond that is never used. Put
c' = min(c, τ), with τ the root of (a−1)τ + Σ_j min(c_j, τ) = 1 where (a−1)·max c + Σc > 1. Then

- a trimmed category's cap is a·τ = 1 − Σ_{j≠i} c'_j, which is all that can be used;
- every law x of the old box lies in the new one: x ≥ c ≥ c', and where c is trimmed
  x_i ≤ 1 − Σ_{j≠i} c_j ≤ 1 − Σ_{j≠i} c'_j = a·c'_i.

So the clip is at least as close to every user, in every f-divergence, and what was kept stays kept.
"""

from __future__ import annotations

import math

import numpy as np

from .._validate import FloatArray
from ..errors import ParameterError
from .base import ClipSampler

MARK = "trimmed"
"""The option that a trimmed sampler carries."""


def trimmed(sampler: ClipSampler) -> ClipSampler:
    """The clip sampler with its floor trimmed: never further from any user, and the same ε.

    `kernel_clip` and `prior_minimax` have nothing to trim. `local_minimax`, `relative_mollifier`, `blend` and
    `power_caps` have at large ε, where a cap of theirs would be above what the floors leave.

    Guarantees
        ε-locally private; keeps the prior if the sampler did; D_f(p‖Q'(p)) ≤ D_f(p‖Q(p)) for every user and
        every f-divergence, up to rounding.

    Raises
        ParameterError: the sampler is no clip sampler.

    >>> from sottovoce import Prior, TV, relative_mollifier
    >>> sampler = relative_mollifier(Prior(["a", "b"], [0.1, 0.9]), 4.0)
    >>> round(sampler.worst_case(TV), 3), round(trimmed(sampler).worst_case(TV), 3)
    (0.261, 0.261)
    >>> sampler.floor.round(3).tolist(), trimmed(sampler).floor.round(3).tolist()
    ([0.014, 0.122], [0.014, 0.018])
    """
    if not isinstance(sampler, ClipSampler):
        raise ParameterError(
            f"only a clip sampler has a floor to trim, got {getattr(sampler, 'name', type(sampler).__name__)}"
        )
    floor = trimmed_floor(sampler.floor, sampler.epsilon)
    return ClipSampler(sampler.name, sampler.prior, sampler.epsilon, floor, {**sampler.options, MARK: 1.0})


def trimmed_floor(c: FloatArray, epsilon: float) -> FloatArray:
    """min(c, τ); the sum in τ is linear between the sorted floors, so τ is one division.

    A sum that is above 1 by no more than its rounding is no cap beyond reach: `kernel_clip` is tight.
    """
    more = math.expm1(epsilon)
    ascending = np.sort(c)
    below = np.concatenate([[0.0], np.cumsum(ascending)[:-1]])  # Σ of those before
    left = len(c) - np.arange(len(c))  # this one and those after it
    reached = more * ascending + below + left * ascending  # the sum at τ = this floor
    beyond = reached > 1 + 4 * len(c) * np.finfo(np.float64).eps
    if not beyond[-1]:
        return c
    first = int(np.argmax(beyond))
    tau = (1 - below[first]) / (more + left[first])
    lower: FloatArray = np.minimum(c, tau)
    return lower
