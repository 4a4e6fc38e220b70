"""What a stream is worth: simulated releases beside releases at an equal part of ε each.

Everything is simulated with the mechanism that would be shipped, in its batch path. For looking at data you
may look at: the numbers are not private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validate
from .._validate import FloatArray
from ..collecting.model import furthest_at_first
from ..divergences import TV, FDivergence, checked
from ..errors import ParameterError
from ..groups import EVERYBODY
from ..prior import Prior
from ..release.certify import certify
from ..release.mechanism import Mechanism
from ..release.stream import StreamEngine
from ..samplers.base import Sampler
from ..samplers.stream import PACE, Stream, several
from ..users import Users, UsersLike, rows_for
from .cards import Shuffled, what_shuffling_adds
from .fitted import fitted
from .limit import summarise

TOGETHER, SEPARATELY = "together", "separately"


def of_kind(mechanism: Mechanism) -> StreamEngine:
    """The engine of a stream, or of several samples."""
    if not isinstance(mechanism.engine, StreamEngine):
        raise ParameterError("mechanism must be a stream, or several samples of one")
    return mechanism.engine


@dataclass(frozen=True, eq=False)
class Walk:
    """One step of simulated streams: how far each user's law is from their data, and R of each user."""

    distances: FloatArray
    ratios: FloatArray


def walk(
    mechanism: Mechanism,
    steps: Iterable[UsersLike],
    *,
    divergence: FDivergence = TV,
    rng: np.random.Generator | None = None,
) -> Iterator[Walk]:
    """Simulate the streams of some users: their distributions at each step, a row per user."""
    engine = of_kind(mechanism)
    if engine.persistence:
        raise ParameterError("mechanism must be a stream without persistence")
    f = checked(divergence)
    generator = np.random.default_rng(0) if rng is None else rng
    bounds = None
    for step, users in enumerate(steps):
        rows = mechanism.prepare(users)
        bounds = engine.first_many(rows.shape[0]) if bounds is None else bounds
        moved = np.zeros(rows.shape[0])

        def observe(
            who: Any, weights: Any, units: Any, n: int = rows.shape[1], moved: FloatArray = moved
        ) -> None:
            p, x = (weights / weights.sum(axis=0)).T, (units / engine.total).T
            everything = np.count_nonzero(weights, axis=0) == n
            rest = np.where(everything, 0.0, np.maximum(1 - x.sum(axis=1), 0.0))
            moved[who] = f.on_support(p, x, rest)

        words = generator.integers(0, engine.total, rows.shape[0])
        _, bounds = engine.step_many(rows, words, bounds, step, observe)
        yield Walk(moved, bounds[:, 0] / engine.one)


@dataclass(frozen=True)
class SamplesRow:
    """One way to spend ε on so many samples: the distance of one sample, averaged over a user's samples."""

    samples: int
    way: str  # "together": one release of all samples; "separately": each at ε/samples
    epsilon: float  # for all samples together
    divergence: str
    users: int
    mean: float
    p99: float
    maximum: float


def compare_samples(
    users: UsersLike | Users,
    prior: Prior,
    epsilon: float,
    *,
    samples: int | Iterable[int] = (1, 2, 4),
    sampler: Callable[..., Sampler] = fitted,
    divergence: FDivergence = TV,
    provenance: str = "public",
    progress: Callable[[], object] | None = None,
    **options: float,
) -> tuple[SamplesRow, ...]:
    """How far each of several samples is from the user's data, released together and separately.

    One row for one sample; two for more: all samples together for ε (`several`), and each separately for
    ε/samples, by `sampler` with `options`. The first are simulated. `progress` is called after every row.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
    >>> rows = compare_samples([[0.7, 0.2, 0.1]] * 100, prior, 4.0, samples=[1, 4])
    >>> [(row.samples, row.way) for row in rows]
    [(1, 'together'), (4, 'together'), (4, 'separately')]
    >>> rows[1].mean < rows[2].mean
    True
    """
    held = _validate.users(rows_for(users, prior), len(prior))
    f, total, out = checked(divergence), _validate.privacy(epsilon), []
    report = progress or (lambda: None)
    for k in [samples] if isinstance(samples, int) else samples:
        many = _validate.whole_at_least(1, samples=k)
        if many > 1:
            mechanism = certify(several(prior, total, samples=many), provenance=provenance)
            each = [one.distances for one in walk(mechanism, [held] * many, divergence=f)]
            out.append(_row(many, TOGETHER, total, f, np.mean(each, axis=0)))
            report()
        single = np.atleast_1d(sampler(prior, total / many, **options).divergence(held, f))
        out.append(_row(many, SEPARATELY if many > 1 else TOGETHER, total, f, single))
        report()
    return tuple(out)


def _row(samples: int, way: str, epsilon: float, f: FDivergence, distances: FloatArray) -> SamplesRow:
    found = summarise(distances)
    numbers = (found["mean"], found["p99"], found["maximum"])
    return SamplesRow(samples, way, epsilon, f.name, len(distances), *numbers)


@dataclass(frozen=True)
class StepRow:
    """One release of many: how far the laws of the users are from their data, and the budget that is left.

    `left` is the mean over the users of 2·min(log R, ε − log R)/ε: at 0 only the public law can be released.
    Where ε is split, it is the part that later releases have.
    """

    step: int
    way: str  # "stream": one ε for all; "split": each release at ε/releases
    users: int
    mean: float
    p99: float
    maximum: float
    left: float


def compare_over_time(
    steps: Sequence[UsersLike],
    prior: Prior,
    sampler: Stream,
    *,
    split: Callable[..., Sampler] = fitted,
    divergence: FDivergence = TV,
    provenance: str = "public",
) -> tuple[StepRow, ...]:
    """A stream beside releases at ε/releases each: the users' distributions at every step, a row per user.

    A user with an empty row is released as the prior at that step, and not counted there.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
    >>> rows = sv.compare_over_time([[[0.7, 0.2, 0.1]] * 50] * 4, prior, sv.stream(prior, 8.0, horizon=4))
    >>> [row.way for row in rows[:2]], len(rows)
    (['stream', 'split'], 8)
    """
    laws = [_validate.users(rows_for(one, prior), len(prior), empty=True) for one in steps]
    if not laws or len({one.shape[0] for one in laws}) > 1:
        raise ParameterError("steps must be one table per release, with the same users in the same order")
    f, out = checked(divergence), []
    alone = split(prior, sampler.epsilon / len(laws))
    found = walk(certify(sampler, provenance=provenance), laws, divergence=f)
    for number, (one, held) in enumerate(zip(found, laws, strict=True), start=1):
        used = np.log(one.ratios) / sampler.epsilon
        left = 2 * float(np.mean(np.minimum(used, 1 - used)))
        here = np.diff(held.indptr) > 0
        if not here.any():
            raise ParameterError("steps must have a user with records each")
        for way, distances, room in (
            ("stream", one.distances[here], max(left, 0.0)),
            ("split", np.atleast_1d(alone.divergence(held[here], f)), 1 - number / len(laws)),
        ):
            said = summarise(distances)
            numbers = (said["mean"], said["p99"], said["maximum"])
            out.append(StepRow(number, way, len(distances), *numbers, room))
    return tuple(out)


@dataclass(frozen=True)
class StreamCard:
    """The facts about a stream that follow from its prior alone."""

    group: str
    samples: int  # of one release; 1 for a stream
    horizon: int | None  # releases that the pace is planned for
    epsilon: float  # for all of them together
    categories: int
    keeps_prior: bool
    prior_digest: str
    provenance: str
    released_as_another: float  # at most, at the first step: Pr(X ≠ Z), X a draw of any user's own
    shuffled: tuple[Shuffled, ...] = ()


def stream_card(sampler: Stream, *, group: str = EVERYBODY, shuffled: bool = False) -> StreamCard:
    """Collect the facts; with `shuffled` what shuffling the tuples of several samples adds.

    >>> from sottovoce import Prior, several
    >>> round(stream_card(several(Prior(["A", "B"], [0.2, 0.8]), 4.0, samples=2)).released_as_another, 2)
    0.15
    """
    mechanism = certify(sampler, provenance="users")
    return StreamCard(
        group=group,
        samples=sampler.samples,
        horizon=len(sampler.pace) if sampler.pace[-1] == PACE else None,
        epsilon=sampler.epsilon,
        categories=len(sampler.prior),
        keeps_prior=sampler.keeps_prior,
        prior_digest=sampler.prior.digest,
        provenance=sampler.prior.provenance,
        released_as_another=furthest_at_first(of_kind(mechanism)),
        shuffled=what_shuffling_adds(mechanism) if shuffled and sampler.samples > 1 else (),
    )
