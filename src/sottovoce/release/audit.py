"""Does it hold? The certificate, checked again in exact arithmetic, and the shipping path from outside.

The black-box test draws from the mechanism for several users, looks at one half of the draws to choose the
two users and the category whose frequencies differ most, and from the *other* half computes a Clopper–Pearson
lower bound on ε. A bound above ε proves a violation; a bound below proves nothing, it fails to disprove: it
looks at users with one category (all of them up to 64, else a dozen) and one with several, and at single
categories as events. The proof is the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CertificateError, ParameterError
from ..prior import Category
from .mechanism import Mechanism, recheck

ENTRIES = 1 << 20
"""Entries of one batch of users, so that memory does not grow with the domain."""

ALL_ROWS = 64
"""Up to this many categories a user of each is looked at."""

Draw = Callable[[Any], Any]
"""Takes sparse rows of counts, returns one released category per row."""


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
    >>> mechanism = certify(kernel_clip(Prior.uniform(["a", "b"]), 1.0))
    >>> audit(mechanism, draws=20_000, confidence=0.999999).passed
    True
    """
    try:
        recheck(mechanism)
        certificate = "holds"
    except CertificateError as problem:
        certificate = str(problem)
    return black_box(
        mechanism.release_many,
        mechanism.categories,
        _extremes(mechanism),
        epsilon=float(mechanism.epsilon),
        draws=draws,
        confidence=confidence,
        progress=progress,
        certificate=certificate,
        sampler=mechanism.sampler,
    )


def _extremes(mechanism: Mechanism) -> list[int]:
    """All positions of a small domain; of a large one the rarest, the likeliest and some at random."""
    n = len(mechanism.categories)
    if n <= ALL_ROWS:
        return list(range(n))
    order = sorted(range(n), key=mechanism.engine.prior_weights().__getitem__)
    others = np.random.default_rng().choice(n, size=8, replace=False).tolist()
    return list(dict.fromkeys([*(order[i] for i in (0, 1, n // 2, n - 2, n - 1)), *others]))


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
            step = max(1, ENTRIES // len(user))
            for begin in range(0, each, step):
                size = min(step, each - begin)
                drawn = draw(_repeated(user, size, len(categories)))
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


def _users(places: list[int], n: int) -> dict[str, list[int]]:
    """Users who hold one category only, and one who holds up to 64 of them alike."""
    out = {f"only category {place}": [place] for place in places}
    out["several categories alike"] = sorted({*places, *range(min(n, ALL_ROWS))})
    return out


def _repeated(user: list[int], times: int, n: int) -> Any:
    """The same user many times, as sparse rows of counts."""
    from scipy import sparse

    columns = np.tile(np.array(user, dtype=np.int64), times)
    starts = np.arange(times + 1) * len(user)
    return sparse.csr_array((np.ones(len(columns), dtype=np.int64), columns, starts), shape=(times, n))


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
