"""Whether a prior was made from the users that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import FloatArray
from ..records import Users

SHARP = 0.005
"""E below which the average is sharp: chance then moves it by about 3 % in total variation."""
RARE = 0.01
"""The chance that flawless public priors are refused by their closeness alone, all weighings together."""


def made_from(q: FloatArray, users: Sequence[Users]) -> bool:
    """Whether the prior q was made from these users, from most of them, or from a table they are part of.

    Public data about other people differ from the users' average by more than chance, and such a prior does
    not. R is the distance of `distance`: 0 for the users' own average, about (1 − φ)/φ for the average of a
    share φ of them, about 1 − φ for that of a crowd of which they are a share φ, about 1 for a flawless
    public prior, and far above 1 for other people's data (15 to 144 for priors of MovieLens 100K and users of
    MovieLens 1M, by age group). By chance R is nearly χ²_ν/ν. A prior was made from the users

    - when R is below the 1 % quantile: closer than chance allows, even a flawless one;
    - when R is below the 99 % quantile and E is below SHARP: the average of so many users is so sharp that
      other people's data do not fall within its chance, but half of these users do.

    The answer is for planning, where the owner of the data looks; a release does not depend on it, because
    whoever writes the prior could ask questions by it.
    """
    from scipy import sparse

    p: Any = users[0].p if len(users) == 1 else sparse.vstack([given.p for given in users], format="csr")
    if p.shape[0] < 2 or np.ptp(q) <= 1e-9 * q.max():
        return False  # one user may be like the public; a uniform prior (but for rounding) tells nothing
    weighings = [np.ones(p.shape[0])]
    amounts = [given.amounts for given in users if given.amounts is not None]
    if len(amounts) == len(users):
        weighings.append(np.concatenate(amounts))
    for a in weighings:
        ratio, freedom, expected = distance(q, p, a)
        close = ratio < 1 and ratio < _quantile(freedom, RARE / len(weighings))
        sharp = expected < SHARP and ratio < _quantile(freedom, 1 - RARE)
        if close or sharp or _same_shape(q, p.T @ a):
            return True
    return False


def _quantile(freedom: float, share: float) -> float:
    """The quantile of χ²_ν/ν; scipy.special loads slowly, and is seldom needed."""
    from scipy import special

    return float(2 * special.gammaincinv(freedom / 2, share) / freedom)


def distance(q: FloatArray, p: Any, a: FloatArray) -> tuple[float, float, float]:
    """Pearson's χ² between q and the average of users weighed by a, in units of what chance gives.

    χ² = Σ (q_i − p̄_i)²/q_i,    E = Σ var(p̄_i)/q_i,    R = χ²/E, if the users are drawn from q. Returns R,
    the degrees of freedom ν of its chance, and E; R is infinite where all users are alike.
    """
    mean = p.T @ a / a.sum()
    squares = p.multiply(p).T @ (a * a) - 2 * mean * (p.T @ (a * a)) + mean * mean * (a * a).sum()
    terms = np.maximum(squares, 0) / a.sum() ** 2 / q
    expected = float(terms.sum())
    if expected <= 0:
        return np.inf, 1.0, 0.0
    freedom = expected**2 / float((terms * terms).sum())
    return float(((q - mean) ** 2 / q).sum()) / expected, freedom, expected


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
