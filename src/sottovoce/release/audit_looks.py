"""How sure: the looks of an audit, fixed in advance, and the exact limits of a ratio at each of them.

The error probability is divided over the looks before anything is drawn: half of it to the last look, the
other half in equal parts to the earlier ones. Each look uses fresh draws for its limits. So, by adding up the
parts, *all* limits of an audit are right together with the stated confidence, and an audit may stop after any
look for any reason, and may report the best of its limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

GROWTH = 4
"""Each look sees this many times the draws of the one before it."""

EARLY_LOOKS = 3
"""Looks before the last one, at most."""

LEAST = 100
"""Draws per user, at least, for a look to be worth its part of the error probability."""

EXPLORED = 3
"""One draw in so many looks for the event; the others go to the two users that it is about."""


@dataclass(frozen=True)
class Look:
    """What is drawn before one look, and the probability with which its limits may be wrong."""

    explore: int
    """Draws of every user, to choose the event."""
    confirm: int
    """Draws of each of the event's two users, to bound it."""
    error: float


def schedule(draws: int, users: int, error: float) -> list[Look]:
    """The looks: after a 64th, a 16th and a quarter of the draws, if that is enough of them, and after all.

    It depends on the number of draws and of users alone.
    """
    early = [
        draws // GROWTH**step
        for step in range(EARLY_LOOKS, 0, -1)
        if draws // GROWTH**step >= LEAST * users * EXPLORED
    ]
    totals = [*early, draws]
    looks, before = [], 0
    for total in totals:
        size = total - before
        explore = size // EXPLORED // users
        part = error if not early else error / 2 if total == draws else error / 2 / len(early)
        looks.append(Look(explore, (size - explore * users) // 2, part))
        before = total
    return looks


def log_ratio_limits(first: int, second: int, trials: int, error: float) -> tuple[float, float]:
    """Limits of log(P/R) from `first` and `second` successes in as many trials each, by Clopper and Pearson.

    The lower limit exceeds log(P/R) with probability at most `error`, and the upper one falls short of it
    with probability at most `error`: each is made of two exact binomial limits, wrong with half of it each.
    """
    half = error / 2
    low = _log(_least(first, trials, half)) - _log(_most(second, trials, half))
    high = _log(_most(first, trials, half)) - _log(_least(second, trials, half))
    return low, high


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf


def _least(successes: int, trials: int, error: float) -> float:
    """The lower limit of a probability."""
    from scipy.special import betaincinv

    return float(betaincinv(successes, trials - successes + 1, error)) if successes else 0.0


def _most(successes: int, trials: int, error: float) -> float:
    """The upper limit of a probability."""
    from scipy.special import betainccinv

    return float(betainccinv(successes + 1, trials - successes, error)) if successes < trials else 1.0
