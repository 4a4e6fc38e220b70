"""Does it hold? The certificate, checked again in exact arithmetic, and the shipping path from outside.

The black-box test draws from the mechanism for several users, looks at one half of the draws to choose the
two users and the category whose frequencies differ most, and from the *other* half computes a Clopper–Pearson
lower bound on ε. A bound above ε proves a violation; a bound below proves nothing, it fails to disprove.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import CertificateError, ParameterError
from .mechanism import Mechanism, recheck
from .prior import Category

BATCH = 1 << 18
Draw = Callable[[Any], Any]
"""Takes an (m, n) array of counts, returns m released categories."""


@dataclass(frozen=True)
class AuditReport:
    """What an audit found."""

    sampler: str
    epsilon: float
    certificate: str  # "holds", or why not; "not checked" for a bare function
    draws: int
    lower_bound: float
    confidence: float
    category: Category
    users: tuple[str, str]

    @property
    def passed(self) -> bool:
        """No violation was found."""
        return self.certificate in ("holds", "not checked") and self.lower_bound <= self.epsilon


def audit(
    mechanism: Mechanism,
    *,
    draws: int = 1_000_000,
    confidence: float = 0.999,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """Check a mechanism's certificate again and test its releases as a black box.

    Parameters
        draws: how many releases to look at, spread over a handful of extreme users.
        confidence: a sound mechanism exceeds its ε with probability at most 1 − confidence.
        progress: called with the number of draws made so far.

    >>> from sottovoce import Prior, certify, kernel_clip
    >>> audit(certify(kernel_clip(Prior.uniform(["a", "b"]), 1.0)), draws=20_000).passed
    True
    """
    try:
        recheck(mechanism)
        certificate = "holds"
    except CertificateError as problem:
        certificate = str(problem)
    weights = getattr(mechanism.engine, "prior", None) or getattr(mechanism.engine, "kernel", None)
    rarest = _extremes(mechanism, weights)
    return black_box(
        mechanism.release_many,
        mechanism.categories,
        rarest,
        epsilon=float(mechanism.epsilon),
        draws=draws,
        confidence=confidence,
        progress=progress,
        certificate=certificate,
        sampler=mechanism.sampler,
    )


def _extremes(mechanism: Mechanism, weights: Any) -> list[int]:
    """Positions worth looking at: the rarest and the likeliest categories, and some between."""
    n = len(mechanism.categories)
    if hasattr(weights, "prior"):
        order = list(mechanism.engine.order)  # type: ignore[attr-defined]
    elif weights is not None:
        order = sorted(range(n), key=weights.__getitem__)
    else:
        order = list(range(n))
    picked = [0, 1, n // 2, n - 2, n - 1]
    return list(dict.fromkeys(order[min(max(i, 0), n - 1)] for i in picked))


def black_box(
    draw: Draw,
    categories: Any,
    places: list[int],
    *,
    epsilon: float,
    draws: int,
    confidence: float = 0.999,
    progress: Callable[[int], None] | None = None,
    certificate: str = "not checked",
    sampler: str = "function",
) -> AuditReport:
    """A lower bound on the ε of any function from counts to categories, from its draws alone."""
    users = _users(places, len(categories))
    each = draws // (2 * len(users))
    if each < 100:
        raise ParameterError(f"draws must be at least {200 * len(users)}, got {draws}")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence}")
    index = {name: i for i, name in enumerate(categories)}
    done = 0
    halves = []
    for _ in range(2):
        counts = {}
        for name, user in users.items():
            tally = np.zeros(len(categories), dtype=np.int64)
            for begin in range(0, each, BATCH):
                size = min(BATCH, each - begin)
                drawn = draw(np.repeat(user[None, :], size, axis=0))
                names, times = np.unique(np.asarray(drawn), return_counts=True)
                for one, many in zip(names.tolist(), times.tolist(), strict=True):
                    tally[index[one]] += many
                done += size
                if progress is not None:
                    progress(done)
            counts[name] = tally
        halves.append(counts)
    first, second, place = _choose(halves[0], each)
    alpha = (1 - confidence) / 2
    low = _least(int(halves[1][first][place]), each, alpha)
    high = _most(int(halves[1][second][place]), each, alpha)
    bound = math.log(low / high) if low > 0 else 0.0
    return AuditReport(
        sampler=sampler,
        epsilon=epsilon,
        certificate=certificate,
        draws=done,
        lower_bound=max(bound, 0.0),
        confidence=confidence,
        category=categories[place],
        users=(first, second),
    )


def _users(places: list[int], n: int) -> dict[str, Any]:
    """Users who hold one category only, and one who holds everything alike."""
    out = {}
    for place in places:
        row = np.zeros(n, dtype=np.int64)
        row[place] = 1
        out[f"only category {place}"] = row
    out["everything alike"] = np.ones(n, dtype=np.int64)
    return out


def _choose(counts: dict[str, Any], each: int) -> tuple[str, str, int]:
    """The pair of users and the category whose pessimistic ratio is largest on this half."""
    best, chosen = -math.inf, None
    for first, a in counts.items():
        for second, b in counts.items():
            if first == second:
                continue
            # Two standard deviations against the ratio keep rare events from winning by luck.
            low = np.maximum(a - 2 * np.sqrt(a), 0.5) / each
            high = (b + 2 * np.sqrt(b) + 3) / each
            ratio = low / high
            place = int(ratio.argmax())
            if ratio[place] > best:
                best, chosen = float(ratio[place]), (first, second, place)
    if chosen is None:
        raise ParameterError("an audit needs at least two different users")
    return chosen


def _least(successes: int, trials: int, alpha: float) -> float:
    """Clopper–Pearson lower limit of a probability."""
    from scipy.special import betaincinv

    return float(betaincinv(successes, trials - successes + 1, alpha)) if successes else 0.0


def _most(successes: int, trials: int, alpha: float) -> float:
    """Clopper–Pearson upper limit of a probability."""
    from scipy.special import betaincinv

    return float(betaincinv(successes + 1, trials - successes, 1 - alpha)) if successes < trials else 1.0
