"""Whether a prior was made from the very users it is compared with, as far as numbers show it.

Public data about other people differ from the users' average by more than chance. A prior that was counted
from these users, from most of them, or from a table that they are part of, does not. The distance is
Pearson's χ² between the prior q and the users' average p̄, in units of what chance gives if the users are
drawn from q:

    χ² = Σ (q_i − p̄_i)²/q_i,    E = Σ var(p̄_i)/q_i,    R = χ²/E.

R is 0 for the users' own average, about (1 − φ)/φ for the average of a share φ of them, about 1 − φ for that
of a crowd of which they are a share φ, about 1 for a flawless public prior, and far above 1 for other
people's data (15 to 144 for priors of MovieLens 100K and users of MovieLens 1M, by age group). By chance R is
nearly χ²_ν/ν. The answer is for planning, where the owner of the data looks; a release does not depend on it,
because whoever writes the prior could ask questions by it. A prior was made from the users

- when R is below the 1 % quantile: closer than chance allows, even a flawless one;
- when R is below the 99 % quantile and E is below SHARP: the average of so many users is so sharp that other
  people's data do not fall within its chance, but half of these users do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._validate import FloatArray
from ..users import Users

SHARP = 0.005
"""E below which the average is sharp: chance then moves it by about 3 % in total variation."""
RARE = 0.01
"""The chance that flawless public priors are refused by their closeness alone, all groups together."""
UNIFORM = 1e-9
"""Relative spread below which a prior is uniform: units of rounding make no difference."""


def moments(users: Users) -> tuple[FloatArray, ...]:
    """What the check needs to know of users, as numbers that add up over batches and groups.

    One array where every user weighs the same and one where users weigh by their amounts, each with m, Σa,
    Σa² and, by category, Σa·p, Σa²·p and Σa²·p².
    """
    weights = [np.ones(len(users)), *([] if users.amounts is None else [users.amounts])]
    squares = users.p.multiply(users.p).tocsr() if not users.p.has_canonical_format else users.p.power(2)
    return tuple(
        np.concatenate(
            [[len(users), a.sum(), (a * a).sum()], users.p.T @ a, users.p.T @ (a * a), squares.T @ (a * a)]
        )
        for a in weights
    )


def add_up(parts: Sequence[tuple[FloatArray, ...]]) -> tuple[FloatArray, ...]:
    """The moments of several groups of users together."""
    return tuple(np.sum(same, axis=0) for same in zip(*parts, strict=False))


def distance(q: FloatArray, moment: FloatArray) -> tuple[float, float, float]:
    """R, the degrees of freedom ν of its chance, and E; R is infinite where all users are alike."""
    _, total, total_squares = moment[:3]
    sums, cross, squares = moment[3:].reshape(3, -1)
    mean = sums / total
    variance = np.maximum(squares - 2 * mean * cross + mean * mean * total_squares, 0) / total**2
    terms = variance / q
    expected = float(terms.sum())
    if expected <= 0:
        return np.inf, 1.0, 0.0
    freedom = expected**2 / float((terms * terms).sum())
    return float(((q - mean) ** 2 / q).sum()) / expected, freedom, expected


def made_from(q: FloatArray, weighings: Sequence[FloatArray]) -> bool:
    """Whether the prior q was made from users with these moments."""
    if weighings[0][0] < 2 or np.ptp(q) <= UNIFORM * q.max():
        return False  # one user may be like the public; a uniform prior tells nothing
    for moment in weighings:
        ratio, freedom, expected = distance(q, moment)
        close = ratio < 1 and ratio < _quantile(freedom, RARE / len(weighings))  # scipy.special loads slowly
        sharp = expected < SHARP and ratio < _quantile(freedom, 1 - RARE)
        if close or sharp or _same_shape(q, moment[3:].reshape(3, -1)[0]):
            return True
    return False


def _quantile(freedom: float, share: float) -> float:
    """The quantile of χ²_ν/ν."""
    from scipy import special

    return float(2 * special.gammaincinv(freedom / 2, share) / freedom)


def _same_shape(q: FloatArray, sums: FloatArray) -> bool:
    """q ∝ sums or, where four categories make it no coincidence, q ∝ sums + smoothing."""
    shares = sums / sums.sum()
    if np.allclose(shares, q, rtol=1e-9, atol=0):
        return True
    low, high = int(q.argmin()), int(q.argmax())
    spread = shares[high] - shares[low]
    if len(q) < 4 or spread <= 0:
        return False
    slope = (q[high] - q[low]) / spread
    return bool(
        1e-6 < slope < 1 and np.allclose(q[low] + slope * (shares - shares[low]), q, rtol=1e-9, atol=0)
    )
