"""Does it hold? The certificate, checked again in exact arithmetic, and the shipping paths from outside.

The black-box test draws for several users: all with one category (beyond 64 categories a dozen) and two with
several. It chooses two of them and a set of categories that the one releases more often than the other, and
computes from *fresh* draws of these two a Clopper–Pearson lower bound on ε. A bound above ε proves a
violation; a bound below proves nothing. The proof is the certificate. Both ways of releasing are tested:
`release_many`, on rows of all users mixed, and `release`, which is slower and gets a tenth of the draws.

The event. The set of categories that distinguishes two users best is a likelihood-ratio set {i : P_i >
t·R_i}. Single categories may each differ by less than their noise; the set adds them up. Of the draws that
choose, one half orders the categories and the other decides how many of them to take, because an order that
was chosen to look extreme always looks extreme to the draws that chose it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _html
from ..errors import CertificateError, ParameterError
from ..prior import Category
from .mechanism import Mechanism, recheck
from .stream import StreamEngine

IntegerArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

ROWS = 1 << 19  # users of one batch
ALL_ROWS = 64  # up to this many categories a user of each is looked at
STEPS = 3  # releases of a stream that are looked at together
ENUMERATED = 1000  # transcripts up to which their probabilities are compared exactly
SINGLE = 10  # one draw in so many goes through `release`
LEAST = 300  # draws per user, at least
EXPLORED = 3  # one draw in so many looks for the event; the others go to its two users
Draw = Callable[[Any], Any]  # sparse rows of counts to one released category per row
DrawFor = Callable[[IntegerArray], Any]  # numbers of users to one released category for each


@dataclass(frozen=True)
class Finding:
    """What the draws of one path show: the event of the largest bound."""

    path: str  # "release_many", "release" or "function"
    draws: int
    lower_bound: float
    users: tuple[str, str]  # the first releases a category of the event more often than the second
    event: tuple[Any, ...]  # categories; of a stream tuples of them, one for each release


@dataclass(frozen=True, repr=False)
class AuditReport(_html.Described):
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

    def facts(self) -> tuple[str, list[tuple[str, object]]]:
        """What is shown."""
        bound = f"at least {self.lower_bound:.4f} in {self.draws:,} draws, of {self.epsilon:g} stated"
        passed = "yes" if self.passed else "no"
        rows: list[tuple[str, object]]
        rows = [("certificate", self.certificate), ("epsilon spent", bound), ("passed", passed)]
        return f"Audit of {self.sampler}", rows


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
        1 − confidence, which the two paths share alike. Each path bounds an event that was chosen before the
        draws that bound it were made.

    Parameters
        draws: how many releases to look at: nine in ten by `release_many`, one in ten by `release`.
            By default a million. Of a stream, by default 100,000, the first three releases of a new user, all
            from the same data, are one draw.
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
    order = None if mechanism.streaming else mechanism.answer_index
    many = _search("release_many", batches, users, order, draws - draws // SINGLE, error, progress)
    later = None if progress is None else lambda done: progress(many.draws + done)
    single = _search("release", one_by_one, users, order, draws // SINGLE, error, later)
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
    return 100_000 if mechanism.streaming else 1_000_000


def black_box(
    draw: Draw,
    categories: Sequence[Category],
    indices: list[int],
    *,
    epsilon: float,
    draws: int,
    confidence: float = 0.999,
) -> AuditReport:
    """A lower bound on the ε of any function from counts to categories, from its draws alone."""
    users = _users(indices, categories)
    error = _check(draws, confidence, len(users))
    by_rows, order = _by_rows(draw, users, len(categories)), {name: i for i, name in enumerate(categories)}
    finding = _search("function", by_rows, users, order, draws, error, None)
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
    order: Mapping[Any, int] | None,
    draws: int,
    error: float,
    progress: Callable[[int], None] | None,
) -> Finding:
    """Choose the event that distinguishes two users best, and bound its ratio by fresh draws.

    The categories of the event are listed in their `order`; tuples, which have none, as they were seen.
    """
    names = list(users)
    positions = _Positions(draw, progress)
    explore = draws // EXPLORED // len(names)
    confirm = (draws - explore * len(names)) // 2
    seen = positions.of(range(len(names)), explore)
    event = choose_event([seen[user] for user in range(len(names))])
    fresh = positions.of((event.first, event.second), confirm)
    first, second = (event.count(fresh[user]) for user in (event.first, event.second))
    answers = list(positions.numbers)
    members = [answers[i] for i in event.indices.tolist()]
    return Finding(
        path=path,
        draws=positions.done,
        lower_bound=max(log_ratio_limit(first, second, confirm, error), 0.0),
        users=(names[event.first], names[event.second]),
        event=tuple(members if order is None else sorted(members, key=order.__getitem__)),
    )


class _Positions:
    """Draws for some users: what they release as numbers, in the order in which it was seen first."""

    def __init__(self, draw: DrawFor, progress: Callable[[int], None] | None) -> None:
        self._draw, self._progress, self.done = draw, progress, 0
        self.numbers: dict[Any, int] = {}

    def of(self, users: Sequence[int], times: int) -> dict[int, IntegerArray]:
        """Each user drawn so many times; the users take turns, as in a batch of many people."""
        turns = np.array(users, dtype=np.int64)
        step = max(1, ROWS // len(turns))
        parts = []
        for begin in range(0, times, step):
            who = np.tile(turns, min(step, times - begin))
            drawn = np.asarray(self._draw(who))
            answers = drawn.tolist() if drawn.ndim == 1 else map(tuple, drawn.tolist())
            numbers = [self.numbers.setdefault(answer, len(self.numbers)) for answer in answers]
            parts.append(np.array(numbers, dtype=np.int64))
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


class Tally(NamedTuple):
    """How often each category was drawn; only those that were, so that memory follows the draws."""

    indices: IntegerArray
    times: IntegerArray
    draws: int

    @classmethod
    def of(cls, drawn: IntegerArray) -> Tally:
        """Count draws."""
        return cls(*np.unique(drawn, return_counts=True), len(drawn))

    def at(self, indices: IntegerArray) -> FloatArray:
        """The counts at some indices."""
        times = np.zeros(len(indices))
        if len(self.indices):
            where = np.minimum(np.searchsorted(self.indices, indices), len(self.indices) - 1)
            same = self.indices[where] == indices
            times[same] = self.times[where[same]]
        return times


@dataclass(frozen=True)
class Event:
    """Two users, by number, and the indices of the categories that the first should release more often."""

    first: int
    second: int
    indices: IntegerArray

    def count(self, drawn: IntegerArray) -> int:
        """How many draws fell into it."""
        return int(np.isin(drawn, self.indices).sum())


def choose_event(seen: Sequence[IntegerArray]) -> Event:
    """The two users and the set of categories whose ratio, taken pessimistically, is largest."""
    ordering, choosing = ([Tally.of(drawn[half::2]) for drawn in seen] for half in (0, 1))
    average = Tally.of(np.concatenate([drawn[0::2] for drawn in seen]))
    # Of so many candidates the luckiest is about this many standard deviations off: each is moved back by it.
    # The sets of a pair contain each other, so that they count for the number of their doublings.
    caution = math.sqrt(2 * math.log(len(seen) ** 2 * (1 + math.log2(max(len(average.indices), 1)))))
    best, chosen = -math.inf, Event(0, 1, np.zeros(1, dtype=np.int64))
    for first, second in combinations(range(len(seen)), 2):
        indices = np.union1d(ordering[first].indices, ordering[second].indices)
        usual = average.at(indices) / average.draws
        # Draws a of N become (a + s)/(N + s/usual): few draws say little, and no draw rules nothing out.
        shares = [
            (ordering[user].at(indices) + STRENGTH) / (ordering[user].draws * usual + STRENGTH)
            for user in (first, second)
        ]
        indices = indices[np.argsort(shares[1] / shares[0])]
        for pair, along in (((first, second), indices), ((second, first), indices[::-1])):
            own, other = (choosing[user] for user in pair)
            reached, others = np.cumsum(own.at(along)), np.cumsum(other.at(along))
            score = _pessimistic(reached, others, own.draws, other.draws, caution)
            k = int(score.argmax())
            if score[k] > best:
                best, chosen = float(score[k]), Event(*pair, np.sort(along[: k + 1]))
    return chosen


def _pessimistic(a: FloatArray, b: FloatArray, own: int, other: int, caution: float) -> Any:
    """log of a/own over b/other, each count moved against it."""
    low = np.maximum(a - caution * np.sqrt(a), 0.5)
    high = b + caution * np.sqrt(b) + caution**2 / 2
    return np.log(low / own) - np.log(high / other)


def log_ratio_limit(first: int, second: int, trials: int, error: float) -> float:
    """A lower limit of log(P/R) from `first` and `second` successes in as many trials each.

    It exceeds log(P/R) with probability at most `error`: it is made of two exact binomial limits (Clopper and
    Pearson), wrong with half of it each.
    """
    from scipy.special import betainccinv, betaincinv

    if first == 0:
        return -math.inf
    least = float(betaincinv(first, trials - first + 1, error / 2))
    most = float(betainccinv(second + 1, trials - second, error / 2)) if second < trials else 1.0
    return math.log(least / most)
