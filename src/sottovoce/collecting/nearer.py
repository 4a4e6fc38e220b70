"""Values that are biased and often nearer the truth than the unbiased ones: projected, shrunk, likeliest."""

from __future__ import annotations

import numpy as np

from .._validate import FloatArray
from .model import Invertible

LARGEST_STEPS = 5000
"""Steps of expectation maximisation at most; it gains slowly when ε is small."""


def shrink(values: FloatArray, prior: FloatArray, errors: FloatArray) -> FloatArray:
    """The values pulled towards the public prior by as much as their errors explain (James and Stein).

    q + w·(p̂ − q) with w = max(0, 1 − (1 − 2/(n−1))·Σs_j²/Σ(p̂_j − q_j)²); for n ≤ 3 w is 1. Where that is
    negative somewhere, the nearest distribution, which is no farther from any distribution.
    """
    off = values - prior
    spread = float(off @ off)
    free = max(0.0, 1 - 2 / max(len(off) - 1, 1))
    kept = max(0.0, 1 - free * float(errors @ errors) / spread) if spread > 0 else 0.0
    pulled: FloatArray = prior + kept * off
    return project(pulled) if pulled.min() < 0 else pulled


def project(values: FloatArray) -> FloatArray:
    """The distribution nearest to the values in Euclidean distance: max(v − t, 0) for the right t."""
    descending = np.sort(values)[::-1]
    excess = np.cumsum(descending) - 1
    rank = np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(descending * rank > excess)[-1])
    nearest: FloatArray = np.maximum(values - excess[last] / (last + 1), 0.0)
    return nearest


def maximum_likelihood(
    kernel: Invertible, y: FloatArray, start: FloatArray, *, tolerance: float = 1e-12
) -> FloatArray:
    """The p that makes shares y likeliest, by expectation maximisation: p_i ← p_i·Σ_z K_iz y_z/(pK)_z.

    The log-likelihood per report is within max_i Σ_z K_iz y_z/(pK)_z − 1 of the best; stops when that is
    below the tolerance, or after `LARGEST_STEPS`.
    """
    p = start.copy()
    for _ in range(LARGEST_STEPS):
        x = kernel.apply(p)
        gain = kernel.back(np.divide(y, x, out=np.zeros_like(y), where=y > 0))
        p *= gain
        if gain.max() - 1 < tolerance:
            break
    p /= p.sum()
    return p
