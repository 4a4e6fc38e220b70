"""Does it hold? The certificate, checked again in exact arithmetic, and the shipping paths from outside.

The black-box test draws for several users, chooses two of them and a set of categories that the one releases
more often than the other (`audit_events`), and computes from *fresh* draws of these two a Clopper–Pearson
lower bound on ε (`audit_looks`). A bound above ε proves a violation; a bound below proves nothing, it fails
to disprove: it looks at users with one category (all of them up to 64, else a dozen) and two with several.
The proof is the certificate.

Both ways of releasing are tested: `release_many`, on rows of all users mixed, and `release`, which is slower
and gets a tenth of the draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _html
from ..errors import CertificateError, ParameterError
from ..prior import Category
from .audit_events import Event, IntegerArray, Seen, choose_event
from .audit_looks import log_ratio_limits, schedule
from .mechanism import Mechanism, recheck

ROWS = 1 << 19
"""Users of one batch."""

ALL_ROWS = 64
"""Up to this many categories a user of each is looked at."""

SINGLE = 10
"""One draw in so many goes through `release`."""

LEAST = 300
"""Draws per user, at least."""

SETTLED = 0.02
"""A bound is settled when the limits of its event are within this part of ε of each other."""

Draw = Callable[[Any], Any]
"""Takes sparse rows of counts, returns one released category per row."""

DrawFor = Callable[[IntegerArray], Any]
"""Takes the numbers of users, returns one released category for each."""

VIOLATION, SETTLED_BOUND, ALL_DRAWN = "a violation is proved", "the bound is settled", "all draws are made"


@dataclass(frozen=True)
class Finding:
    """What the draws of one path show: the event of the largest bound."""

    path: str  # "release_many", "release" or "function"
    draws: int
    lower_bound: float
    users: tuple[str, str]  # the first releases a category of the event more often than the second
    event: tuple[Any, ...]  # categories, or with several samples tuples of them
    looks: int
    ended: str  # why no more was drawn


@dataclass(frozen=True)
class AuditReport:
    """What an audit found."""

    sampler: str
    epsilon: float
    certificate: str  # "holds", or why not; "not checked" for a bare function
    confidence: float
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The finding with the largest bound."""
        return max(self.findings, key=lambda one: one.lower_bound)

    @property
    def lower_bound(self) -> float:
        """ε is at least this, with the stated confidence for all paths together."""
        return self.worst.lower_bound

    @property
    def draws(self) -> int:
        """The draws of all paths."""
        return sum(one.draws for one in self.findings)

    @property
    def passed(self) -> bool:
        """No violation was found."""
        return self.certificate in ("holds", "not checked") and self.lower_bound <= self.epsilon

    def _repr_html_(self) -> str:
        bound = f"at least {self.lower_bound:.4f} in {self.draws:,} draws, of {self.epsilon:g} stated"
        passed = "yes" if self.passed else "no"
        said = [("certificate", self.certificate), ("epsilon spent", bound), ("passed", passed)]
        return _html.facts(f"Audit of {self.sampler}", said)


def audit(
    mechanism: Mechanism,
    *,
    draws: int | None = None,
    confidence: float = 0.999,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """Check a mechanism's certificate again and test its releases as a black box.

    Guarantees
        A sound mechanism, whose draws are independent, exceeds its ε with probability at most
        1 − confidence. The two paths share 1 − confidence alike; within a path it is divided over up to four
        looks, which the number of draws and of users fixes before anything is drawn. Each look bounds an
        event that was chosen before its draws were made. So all bounds hold together, and stopping early
        costs nothing: a path ends as soon as a violation is proved, or as the limits of its event lie within
        2 % of ε of each other, so that more draws could hardly raise the bound of that event.

    Parameters
        draws: how many releases to look at, at most: nine in ten by `release_many`, one in ten by `release`.
            By default a million; with several samples, which take longer, 100,000.
        confidence: the probability, at least, with which a sound mechanism passes.
        progress: called with the number of draws made so far.

    >>> from sottovoce import Prior, certify, kernel_clip
    >>> mechanism = certify(kernel_clip(Prior.uniform(["a", "b"]), 1.0))
    >>> audit(mechanism, draws=20_000, confidence=0.999999).passed
    True
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism must be a Mechanism, made by certify or load")
    try:
        recheck(mechanism)
        certificate = "holds"
    except CertificateError as problem:
        certificate = str(problem)
    names = mechanism.categories
    draws = usual_draws(mechanism) if draws is None else draws
    users = _users(_extremes(mechanism), names)
    error = _check(draws, confidence, len(users)) / 2
    records = [[names[place] for place in held for _ in range(held[place])] for held in users.values()]

    def one_by_one(who: IntegerArray) -> list[Any]:
        return [mechanism.release(records[user]) for user in who.tolist()]

    epsilon = float(mechanism.epsilon)
    batches = _by_rows(mechanism.release_many, users, len(names))
    several = mechanism.samples > 1
    answers = None if several else names
    many = _search("release_many", batches, users, answers, epsilon, draws - draws // SINGLE, error, progress)
    told = None if progress is None else lambda done: progress(many.draws + done)
    one = _search("release", one_by_one, users, answers, epsilon, draws // SINGLE, error, told)
    return AuditReport(mechanism.sampler, epsilon, certificate, confidence, (many, one))


def usual_draws(mechanism: Mechanism) -> int:
    """How many releases an audit looks at unless it is told otherwise."""
    return 1_000_000 if mechanism.samples == 1 else 100_000


def black_box(
    draw: Draw,
    categories: Sequence[Category],
    places: list[int],
    *,
    epsilon: float,
    draws: int,
    confidence: float = 0.999,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """A lower bound on the ε of any function from counts to categories, from its draws alone."""
    users = _users(places, categories)
    error = _check(draws, confidence, len(users))
    by_rows = _by_rows(draw, users, len(categories))
    found = _search("function", by_rows, users, categories, epsilon, draws, error, progress)
    return AuditReport("function", epsilon, "not checked", confidence, (found,))


def _check(draws: int, confidence: float, users: int) -> float:
    """The error probability, if the arguments are sound."""
    if draws < LEAST * users:
        raise ParameterError(f"draws must be at least {LEAST * users}, got {draws}")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence}")
    return 1 - confidence


def _search(
    path: str,
    draw: DrawFor,
    users: dict[str, dict[int, int]],
    answers: Sequence[Any] | None,
    epsilon: float,
    draws: int,
    error: float,
    progress: Callable[[int], None] | None,
) -> Finding:
    """Look for the event with the largest bound; see `audit_looks` for what may be concluded."""
    names = list(users)
    positions = _Positions(draw, answers, progress)
    seen = [Seen() for _ in names]
    best, found, made = -math.inf, Event(0, 1, np.zeros(1, dtype=np.int64)), 0
    ended = ALL_DRAWN
    for look in schedule(draws, len(names), error):
        for user, drawn in positions.of(range(len(names)), look.explore).items():
            seen[user] = seen[user].plus(drawn)
        event = choose_event(seen)
        fresh = positions.of((event.first, event.second), look.confirm)
        hits = [event.count(fresh[user]) for user in (event.first, event.second)]
        low, high = log_ratio_limits(hits[0], hits[1], look.confirm, look.error)
        made += 1
        if low > best:
            best, found = low, event
        if low > epsilon:
            ended = VIOLATION
            break
        if high - low <= SETTLED * epsilon:
            ended = SETTLED_BOUND
            break
        for user, drawn in fresh.items():  # bounded once; from now on they help to choose
            seen[user] = seen[user].plus(drawn)
    return Finding(
        path=path,
        draws=positions.done,
        lower_bound=max(best, 0.0),
        users=(names[found.first], names[found.second]),
        event=tuple(positions.names[place] for place in found.places.tolist()),
        looks=made,
        ended=ended,
    )


class _Positions:
    """Draws for some users, as numbers of answers, and counts how many were made.

    Tuples are numbered as they are seen: there are too many to list.
    """

    def __init__(
        self, draw: DrawFor, answers: Sequence[Any] | None, progress: Callable[[int], None] | None
    ) -> None:
        self._draw, self._progress, self.done, self._grows = draw, progress, 0, answers is None
        self.names: list[Any] = [] if answers is None else list(answers)
        self._index = {name: place for place, name in enumerate(self.names)}

    def _number(self, answer: Any) -> int:
        if not self._grows:
            return self._index[answer]
        key = tuple(answer)
        if key not in self._index:
            self._index[key] = len(self.names)
            self.names.append(key)
        return self._index[key]

    def of(self, users: Sequence[int], times: int) -> dict[int, IntegerArray]:
        """Each user drawn so many times; the users take turns, as in a batch of many people."""
        turns = np.array(users, dtype=np.int64)
        step = max(1, ROWS // len(turns))
        parts = []
        for begin in range(0, times, step):
            who = np.tile(turns, min(step, times - begin))
            drawn = np.asarray(self._draw(who)).tolist()
            parts.append(np.fromiter(map(self._number, drawn), dtype=np.int64, count=len(who)))
            self.done += len(who)
            if self._progress is not None:
                self._progress(self.done)
        places = np.concatenate(parts)
        return {user: places[turn :: len(turns)] for turn, user in enumerate(users)}


def _by_rows(draw: Draw, users: dict[str, dict[int, int]], n: int) -> DrawFor:
    """A function of rows of counts, asked by the numbers of users."""
    from scipy import sparse

    columns = [place for held in users.values() for place in held]
    counts = np.array([held[place] for held in users.values() for place in held], dtype=np.int64)
    starts = np.cumsum([0, *map(len, users.values())])
    rows = sparse.csr_array((counts, columns, starts), shape=(len(users), n))
    return lambda who: draw(rows[who])


def _extremes(mechanism: Mechanism) -> list[int]:
    """All positions of a small domain; of a large one the rarest, the likeliest and some at random."""
    n = len(mechanism.categories)
    if n <= ALL_ROWS:
        return list(range(n))
    order = sorted(range(n), key=mechanism.engine.prior_weights().__getitem__)
    others = np.random.default_rng().choice(n, size=8, replace=False).tolist()
    return list(dict.fromkeys([*(order[i] for i in (0, 1, n // 2, n - 2, n - 1)), *others]))


def _users(places: list[int], categories: Sequence[Category]) -> dict[str, dict[int, int]]:
    """How many records of which category: users with one category, one with several alike, one with more."""
    out = {f"only {categories[place]!r}": {place: 1} for place in places}
    out[f"{min(len(places), 16)} categories alike"] = dict.fromkeys(sorted(places[:16]), 1)
    uneven = sorted(places[-8:])
    out[f"{len(uneven)} categories, unevenly"] = {place: i + 1 for i, place in enumerate(uneven)}
    return out
