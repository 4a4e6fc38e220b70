"""Does it hold? The certificate, checked again in exact arithmetic, and the shipping paths from outside.

The black-box test draws for several users, chooses two of them and a set of categories that the one releases
more often than the other, and computes from *fresh* draws of these two a Clopper–Pearson
lower bound on ε. A bound above ε proves a violation; a bound below proves nothing, it fails
to disprove: it looks at users with one category (all of them up to 64, else a dozen) and two with several.
The proof is the certificate.

Both ways of releasing are tested: `release_many`, on rows of all users mixed, and `release`, which is slower
and gets a tenth of the draws.

The event. The set of categories that distinguishes two users best is a likelihood-ratio set {i : P_i >
t·R_i}. Single categories may each differ by less than their noise; the set adds them up. Draws are kept in
two tallies: one orders the categories, the other chooses how many of them to take, because an order that was
chosen to look extreme always looks extreme to the draws that chose it. What is chosen here is bounded by
other draws still.

The looks. The error probability is divided over the looks before anything is drawn: half of it to the last
look, the other half in equal parts to the earlier ones. Each look uses fresh draws for its limits. So, by
adding up the parts, *all* limits of an audit are right together with the stated confidence, and an audit may
stop after any look for any reason, and may report the best of its limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _html
from ..errors import CertificateError, ParameterError
from ..prior import Category
from .mechanism import Mechanism, recheck
from .stream import StreamEngine

IntegerArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

ROWS = 1 << 19
"""Users of one batch."""

ALL_ROWS = 64
"""Up to this many categories a user of each is looked at."""

STEPS = 3
"""Releases of a stream that are looked at together."""
ENUMERATED = 1000
"""Transcripts up to which their probabilities are compared exactly."""
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
        return max(self.findings, key=lambda finding: finding.lower_bound)

    @property
    def lower_bound(self) -> float:
        """ε is at least this, with the stated confidence for all paths together."""
        return self.worst.lower_bound

    @property
    def draws(self) -> int:
        """The draws of all paths."""
        return sum(finding.draws for finding in self.findings)

    @property
    def passed(self) -> bool:
        """No violation was found."""
        return self.certificate in ("holds", "not checked") and self.lower_bound <= self.epsilon

    def _repr_html_(self) -> str:
        bound = f"at least {self.lower_bound:.4f} in {self.draws:,} draws, of {self.epsilon:g} stated"
        passed = "yes" if self.passed else "no"
        rows = [("certificate", self.certificate), ("epsilon spent", bound), ("passed", passed)]
        return _html.facts(f"Audit of {self.sampler}", rows)


def audit(
    mechanism: Mechanism,
    *,
    draws: int | None = None,
    confidence: float = 0.999,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """Check a mechanism's certificate again and test its releases as a black box.

    Of a stream with at most ten categories the certificate includes all transcripts of three releases.

    Guarantees
        A sound mechanism, whose draws are independent, exceeds its ε with probability at most
        1 − confidence. The two paths share 1 − confidence alike; within a path it is divided over up to four
        looks, which the number of draws and of users fixes before anything is drawn. Each look bounds an
        event that was chosen before its draws were made. So all bounds hold together, and stopping early
        costs nothing: a path ends as soon as a violation is proved, or as the limits of its event lie within
        2 % of ε of each other, so that more draws could hardly raise the bound of that event.

    Parameters
        draws: how many releases to look at, at most: nine in ten by `release_many`, one in ten by `release`.
            By default a million; with several samples, which take longer, 100,000. Of a stream the first
            three releases of a new user, all from the same data, are one draw.
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
        _check_transcripts(mechanism)
        certificate = "holds"
    except CertificateError as problem:
        certificate = str(problem)
    names = mechanism.categories
    draws = usual_draws(mechanism) if draws is None else draws
    users = _users(_extremes(mechanism), names)
    error = _check(draws, confidence, len(users)) / 2
    records = [[names[index] for index in held for _ in range(held[index])] for held in users.values()]

    def one_by_one(who: IntegerArray) -> list[Any]:
        return [_transcript(mechanism, records[user]) for user in who.tolist()]

    epsilon = float(mechanism.epsilon)
    many_at_once = _transcripts(mechanism) if mechanism.streaming else mechanism.release_many
    batches = _by_rows(many_at_once, users, len(names))
    several = mechanism.samples > 1 or mechanism.streaming
    answers = None if several else mechanism.answers
    many = _search("release_many", batches, users, answers, epsilon, draws - draws // SINGLE, error, progress)
    later = None if progress is None else lambda done: progress(many.draws + done)
    single = _search("release", one_by_one, users, answers, epsilon, draws // SINGLE, error, later)
    return AuditReport(mechanism.sampler, epsilon, certificate, confidence, (many, single))


def _check_transcripts(mechanism: Mechanism) -> None:
    """Of a stream of few categories: the first releases of users with one category each, exactly."""
    engine, n = mechanism.engine, len(mechanism.categories)
    if not isinstance(engine, StreamEngine) or n**STEPS > ENUMERATED:
        return
    laws = [engine.transcripts([(i, 1)], STEPS) for i in range(n)]
    if any(max(chances) > mechanism.ratio * min(chances) for chances in zip(*laws, strict=True)):
        raise CertificateError("a transcript breaks the ratio: the stream is not ε-private")


def _transcript(mechanism: Mechanism, records: list[Any]) -> Any:
    """One release; of a stream the first few of a new user."""
    if not mechanism.streaming:
        return mechanism.release(records)
    state, out = mechanism.start(), []
    for _ in range(STEPS):
        category, state = mechanism.release(records, state)
        out.append(category)
    return tuple(out)


def _transcripts(mechanism: Mechanism) -> Callable[[Any], Any]:
    """The same for many users at once: a row of releases each."""

    def release_many(rows: Any) -> Any:
        states, out = [mechanism.start()] * rows.shape[0], []
        for _ in range(STEPS):
            categories, states = mechanism.release_many(rows, states)
            out.append(categories)
        return np.stack(out, axis=1)

    return release_many


def usual_draws(mechanism: Mechanism) -> int:
    """How many releases an audit looks at unless it is told otherwise."""
    return 100_000 if mechanism.samples > 1 or mechanism.streaming else 1_000_000


def black_box(
    draw: Draw,
    categories: Sequence[Category],
    indices: list[int],
    *,
    epsilon: float,
    draws: int,
    confidence: float = 0.999,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """A lower bound on the ε of any function from counts to categories, from its draws alone."""
    users = _users(indices, categories)
    error = _check(draws, confidence, len(users))
    by_rows = _by_rows(draw, users, len(categories))
    finding = _search("function", by_rows, users, categories, epsilon, draws, error, progress)
    return AuditReport("function", epsilon, "not checked", confidence, (finding,))


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
    """Look for the event with the largest bound."""
    names = list(users)
    positions = _Positions(draw, answers, progress)
    seen = [Seen() for _ in names]
    best, chosen, made = -math.inf, Event(0, 1, np.zeros(1, dtype=np.int64)), 0
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
            best, chosen = low, event
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
        users=(names[chosen.first], names[chosen.second]),
        event=tuple(positions.names[i] for i in chosen.indices.tolist()),
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
        self._index = {name: index for index, name in enumerate(self.names)}

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
        indices = np.concatenate(parts)
        return {user: indices[turn :: len(turns)] for turn, user in enumerate(users)}


def _by_rows(draw: Draw, users: dict[str, dict[int, int]], n: int) -> DrawFor:
    """A function of rows of counts, asked by the numbers of users."""
    from scipy import sparse

    columns = [index for held in users.values() for index in held]
    counts = np.array([held[index] for held in users.values() for index in held], dtype=np.int64)
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


def _users(indices: list[int], categories: Sequence[Category]) -> dict[str, dict[int, int]]:
    """How many records of which category: users with one category, one with several alike, one with more."""
    out = {f"only {categories[index]!r}": {index: 1} for index in indices}
    out[f"{min(len(indices), 16)} categories alike"] = dict.fromkeys(sorted(indices[:16]), 1)
    uneven = sorted(indices[-8:])
    out[f"{len(uneven)} categories, unevenly"] = {index: i + 1 for i, index in enumerate(uneven)}
    return out


# --- which event -----------------------------------------------------------------------------------


STRENGTH = 1.0
"""How many draws the average of all users counts for in each category when ratios are smoothed."""


@dataclass(frozen=True)
class Tally:
    """How often each category was drawn; only those that were, so that memory follows the draws."""

    indices: IntegerArray
    times: IntegerArray
    draws: int = 0

    def plus(self, drawn: IntegerArray) -> Tally:
        """The same with more draws."""
        return together([self, Tally(*np.unique(drawn, return_counts=True), len(drawn))])

    def at(self, indices: IntegerArray) -> FloatArray:
        """The counts at some indices, which ascend."""
        times = np.zeros(len(indices))
        if len(self.indices):
            where = np.searchsorted(self.indices, indices)
            where[where == len(self.indices)] = 0
            same = self.indices[where] == indices
            times[same] = self.times[where[same]]
        return times


def together(tallies: Sequence[Tally]) -> Tally:
    """All draws of several tallies."""
    indices, where = np.unique(np.concatenate([tally.indices for tally in tallies]), return_inverse=True)
    times = np.zeros(len(indices), dtype=np.int64)
    np.add.at(times, where, np.concatenate([tally.times for tally in tallies]))
    return Tally(indices, times, sum(tally.draws for tally in tallies))


NOTHING = Tally(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Seen:
    """The draws of one user so far: those that order the categories, and those that choose among them."""

    ordering: Tally = NOTHING
    choosing: Tally = NOTHING

    def plus(self, drawn: IntegerArray) -> Seen:
        """The same with more draws, half to each."""
        return Seen(self.ordering.plus(drawn[0::2]), self.choosing.plus(drawn[1::2]))


@dataclass(frozen=True)
class Event:
    """Two users, by number, and the indices of the categories that the first should release more often."""

    first: int
    second: int
    indices: IntegerArray

    def count(self, drawn: IntegerArray) -> int:
        """How many draws fell into it."""
        return int(np.isin(drawn, self.indices).sum())


def choose_event(seen: Sequence[Seen]) -> Event:
    """The two users and the set of categories whose ratio, taken pessimistically, is largest."""
    average = together([user.ordering for user in seen])
    # Of so many candidates the luckiest is about this many standard deviations off: each is moved back by it.
    # The sets of a pair contain each other, so that they count for the number of their doublings.
    caution = math.sqrt(2 * math.log(len(seen) ** 2 * (1 + math.log2(max(len(average.indices), 1)))))
    best, chosen = -math.inf, Event(0, 1, np.zeros(1, dtype=np.int64))
    for first in range(len(seen)):
        for second in range(first + 1, len(seen)):
            for event, score in _best_sets(seen, first, second, average, caution):
                if score > best:
                    best, chosen = score, event
    return chosen


def _best_sets(
    seen: Sequence[Seen], first: int, second: int, average: Tally, caution: float
) -> list[tuple[Event, float]]:
    """The best set for one pair of users, and for the same pair the other way round."""
    x, y = seen[first], seen[second]
    indices = np.union1d(x.ordering.indices, y.ordering.indices)
    usual = average.at(indices) / average.draws
    # Draws a of N become (a + s)/(N + s/usual): few draws say little, and no draw rules nothing out.
    own = (x.ordering.at(indices) + STRENGTH) / (x.ordering.draws * usual + STRENGTH)
    other = (y.ordering.at(indices) + STRENGTH) / (y.ordering.draws * usual + STRENGTH)
    order = np.argsort(other / own)
    indices = indices[order]
    ascending = np.sort(indices)
    back = np.searchsorted(ascending, indices)
    a, b = x.choosing.at(ascending)[back], y.choosing.at(ascending)[back]
    sizes = x.choosing.draws, y.choosing.draws
    events = []
    for pair, these, those, trials, step in (
        ((first, second), a, b, sizes, 1),
        ((second, first), b, a, sizes[::-1], -1),
    ):
        along = indices[::step]
        score = _pessimistic(np.cumsum(these[::step]), np.cumsum(those[::step]), *trials, caution)
        k = int(score.argmax())
        events.append((Event(*pair, np.sort(along[: k + 1])), float(score[k])))
    return events


def _pessimistic(a: FloatArray, b: FloatArray, own: int, other: int, caution: float) -> Any:
    """log of a/own over b/other, each count moved against it."""
    low = np.maximum(a - caution * np.sqrt(a), 0.5)
    high = b + caution * np.sqrt(b) + caution**2 / 2
    return np.log(low / own) - np.log(high / other)


# --- which looks, and how sure ---------------------------------------------------------------------


GROWTH = 4
"""Each look sees this many times the draws of the one before it."""

EARLY_LOOKS = 3
"""Looks before the last one, at most."""

LEAST_LOOK = 100
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
        if draws // GROWTH**step >= LEAST_LOOK * users * EXPLORED
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
