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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from .. import listing
from ..checks import FloatArray
from ..core.arrays import IntegerArray
from ..core.stream import StreamEngine
from ..errors import CertificateError, ParameterError, Setting
from ..records import Category
from .mechanism import Mechanism, recheck

ROWS = 1 << 19  # users of one batch
ALL_ROWS = 64  # up to this many categories a user of each is looked at
STEPS = 3  # releases of a stream that are looked at together
ENUMERATED = 1000  # transcripts up to which their probabilities are compared exactly
SINGLE = 10  # one draw in so many goes through `release`
LEAST = 300  # draws per user, at least
EXPLORED = 3  # one draw in so many looks for the event; the others go to its two users
DrawFor = Callable[[IntegerArray], Any]  # numbers of users to one released category for each


@dataclass(frozen=True)
class Finding:
    """What the draws of one path show: the event of the largest bound."""

    path: str  # "release_many" or "release"
    draws: int
    lower_bound: float
    users: tuple[str, str]  # the first releases a category of the event more often than the second
    event: tuple[Any, ...]  # categories; of a stream tuples of them, one for each release


@dataclass(frozen=True, repr=False)
class AuditReport(listing.Described):
    """What an audit found."""

    sampler: str
    epsilon: float
    certificate: str  # "holds", or why not
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
        return self.certificate == "holds" and self.lower_bound <= self.epsilon

    def facts(self) -> tuple[str, Sequence[tuple[str, object]]]:
        """What is shown."""
        bound = f"at least {self.lower_bound:.4f} in {self.draws:,} draws, of {self.epsilon:g} stated"
        passed = "yes" if self.passed else "no"
        shown = [("certificate", self.certificate), ("epsilon spent", bound), ("passed", passed)]
        return f"Audit of {self.sampler}", shown


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
    if draws < LEAST * len(users):
        raise ParameterError(Setting("draws"), f" must be at least {LEAST * len(users)}, got {draws}")
    if not 0 < confidence < 1:
        raise ParameterError(Setting("confidence"), f" must lie between 0 and 1, got {confidence}")
    records = [[names[index] for index in held for _ in range(held[index])] for held in users.values()]
    batches = by_rows(lambda rows: _together(mechanism, rows), users, len(names))
    tell, single, error = progress or (lambda done: None), draws // SINGLE, (1 - confidence) / 2
    many = search("release_many", batches, users, draws - single, error, tell)
    one_by_one = search(
        "release",
        lambda who: [_alone(mechanism, records[user]) for user in who.tolist()],
        users,
        single,
        error,
        lambda done: tell(many.draws + done),
    )
    found = many, one_by_one
    return AuditReport(mechanism.sampler, float(mechanism.epsilon), certificate, confidence, found)


def _check_transcripts(mechanism: Mechanism) -> None:
    """Of a stream of few categories: the first releases of users with one category each, exactly."""
    engine, n = mechanism.engine, len(mechanism.categories)
    if not isinstance(engine, StreamEngine) or n**STEPS > ENUMERATED:
        return
    laws = [engine.transcripts([(i, 1)], STEPS) for i in range(n)]
    if any(max(chances) > mechanism.ratio * min(chances) for chances in zip(*laws, strict=True)):
        raise CertificateError("a transcript breaks the ratio: the stream is not ε-private")


def _alone(mechanism: Mechanism, records: list[Any]) -> Any:
    """One release; of a stream the first few of a new user."""
    if not mechanism.streaming:
        return mechanism.release(records=records)
    return tuple(_several(lambda state: mechanism.release(records=records, state=state), mechanism.start()))


def _together(mechanism: Mechanism, rows: Any) -> Any:
    """The same for many users at once."""
    if not mechanism.streaming:
        return mechanism.release_many(rows)
    states = [mechanism.start()] * rows.shape[0]
    return list(zip(*_several(lambda now: mechanism.release_many(rows, now), states), strict=True))


def _several(release: Callable[..., Any], states: Any) -> Iterator[Any]:
    for _ in range(STEPS):
        answer, states = release(states)
        yield answer


def usual_draws(mechanism: Mechanism) -> int:
    """How many releases an audit looks at unless it is told otherwise."""
    return 100_000 if mechanism.streaming else 1_000_000


def search(
    path: str,
    draw: DrawFor,
    users: Mapping[str, Mapping[int, int]],
    draws: int,
    error: float,
    progress: Callable[[int], object],
) -> Finding:
    """Choose the event that distinguishes two users best, and bound its ratio by fresh draws."""
    names, answers = list(users), _Answers(draw, progress)
    explore = draws // EXPLORED // len(names)
    confirm = (draws - explore * len(names)) // 2
    seen = answers.of(range(len(names)), explore)
    first, second, event = choose_event(list(seen.values()))
    fresh = answers.of((first, second), confirm)
    times, others = (int(np.isin(fresh[user], event).sum()) for user in (first, second))
    known = list(answers.numbers)
    return Finding(
        path=path,
        draws=answers.done,
        lower_bound=max(log_ratio_limit(times, others, confirm, error), 0.0),
        users=(names[first], names[second]),
        event=tuple(known[i] for i in event.tolist()),
    )


@dataclass
class _Answers:
    """What users release, as numbers in the order in which the answers were seen first."""

    draw: DrawFor
    progress: Callable[[int], object]
    done: int = 0
    numbers: dict[Any, int] = field(default_factory=dict)

    def of(self, users: Sequence[int], times: int) -> dict[int, IntegerArray]:
        """Each user drawn so many times; the users take turns, as in a batch of many people."""
        parts, step = [], max(1, ROWS // len(users))
        for begin in range(0, times, step):
            drawn = self.draw(np.tile(np.array(users), min(step, times - begin)))
            answers = drawn.tolist() if isinstance(drawn, np.ndarray) else drawn
            parts.append([self.numbers.setdefault(answer, len(self.numbers)) for answer in answers])
            self.done += len(answers)
            self.progress(self.done)
        numbers = np.concatenate(parts)
        return {user: numbers[turn :: len(users)] for turn, user in enumerate(users)}


def by_rows(draw: Callable[[Any], Any], users: Mapping[str, Mapping[int, int]], n: int) -> DrawFor:
    """A function of sparse rows of counts, asked by the numbers of users."""
    from scipy import sparse

    held = [(user, *cell) for user, counts in enumerate(users.values()) for cell in counts.items()]
    numbers, indices, counts = np.array(held).T
    rows = sparse.csr_array((counts, (numbers, indices)), shape=(len(users), n))
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


def choose_event(seen: Sequence[IntegerArray]) -> tuple[int, int, IntegerArray]:
    """The two users and the set of answers whose ratio, taken pessimistically, is largest.

    The first user, by number, should release them more often.
    """
    size = max(int(drawn.max()) for drawn in seen) + 1
    ordering, choosing = (
        np.array([np.bincount(drawn[half::2], minlength=size) for drawn in seen]) for half in (0, 1)
    )
    average = ordering.sum(axis=0) / ordering.sum()
    # Of so many candidates the luckiest is about this many standard deviations off: each is moved back by it.
    # The sets of a pair contain each other, so that they count for the number of their doublings.
    doublings = 1 + math.log2(np.count_nonzero(average))
    caution = math.sqrt(2 * math.log(len(seen) ** 2 * doublings))
    best, chosen = -math.inf, (0, 1, np.zeros(1, dtype=np.int64))
    for first, second in combinations(range(len(seen)), 2):
        indices = np.flatnonzero(ordering[first] + ordering[second])
        # Draws a of N become (a + s)/(N + s/usual): few draws say little, and no draw rules nothing out.
        shares = [
            (counts[indices] + STRENGTH) / (counts.sum() * average[indices] + STRENGTH)
            for counts in (ordering[first], ordering[second])
        ]
        indices = indices[np.argsort(shares[1] / shares[0])]
        for pair, along in (((first, second), indices), ((second, first), indices[::-1])):
            own, other = (choosing[user] for user in pair)
            reached, others = np.cumsum(own[along]), np.cumsum(other[along])
            score = _pessimistic(reached, others, own.sum(), other.sum(), caution)
            k = int(score.argmax())
            if score[k] > best:
                best, chosen = float(score[k]), (*pair, np.sort(along[: k + 1]))
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
