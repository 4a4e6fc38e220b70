"""What the page advises: the sampler that is closest to the people who are looked at, and what is possible.

Everything is computed on the people of the page and kept, because a slider comes back to where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._validate import FloatArray
from ..demo import COMPARED
from ..divergences import TV
from ..errors import SottovoceError
from ..planning.limit import FEW, TAIL, limit
from ..prior import Prior
from ..samplers.base import Sampler
from .people import People

CURVE = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
"""Where the curves are computed; between them they are straight."""
RELATIVE_GAP = 0.01
OFFERED = tuple(COMPARED)


@dataclass(frozen=True)
class Measured:
    """How far one sampler is from the people of the page: on average, and from the one it serves worst."""

    sampler: str
    typical: float
    worst: float

    @property
    def score(self) -> float:
        """What is to be small: mean + tail·maximum, as in `sottovoce.limit`."""
        return self.typical + TAIL * self.worst


@lru_cache(maxsize=512)
def sampler(prior: Prior, name: str, epsilon: float) -> Sampler:
    """A sampler of the catalogue, or `fitted`."""
    return COMPARED[name](prior, epsilon)


@lru_cache(maxsize=1024)
def measured(prior: Prior, name: str, epsilon: float, people: People) -> Measured:
    """One sampler on the people of the page."""
    distances = sampler(prior, name, epsilon).divergence(people.some, TV)
    return Measured(name, float(np.mean(distances)), float(np.max(distances)))


def recommended(prior: Prior, epsilon: float, people: People) -> Measured:
    """Of the samplers that keep the public data, the one with the smallest score."""
    names = [name for name in OFFERED if sampler(prior, name, epsilon).keeps_prior]
    return min((measured(prior, name, epsilon, people) for name in names), key=lambda one: one.score)


@lru_cache(maxsize=256)
def best_possible(prior: Prior, epsilon: float, people: People) -> float | None:
    """A mean distance below which no private sampler that keeps the public data can be on these people.

    None where a slider could not wait for it.
    """
    if len(np.unique(people.some.indices)) > FEW:
        return None
    return limit(prior, epsilon, people.some, tail=0, relative_gap=RELATIVE_GAP).lower_bound


@lru_cache(maxsize=64)
def _own_curve(prior: Prior, name: str, p: bytes) -> list[tuple[float, float]]:
    law = np.frombuffer(p)
    return [(epsilon, float(sampler(prior, name, epsilon).divergence(law, TV))) for epsilon in CURVE]


def own_curve(prior: Prior, name: str, p: FloatArray) -> list[tuple[float, float]]:
    """How far from one person the sampler is at every ε of the curve."""
    return _own_curve(prior, name, p.tobytes())


def typical_curve(prior: Prior, name: str, people: People) -> list[tuple[float, float]]:
    """The same for the people of the page, on average."""
    return [(epsilon, measured(prior, name, epsilon, people).typical) for epsilon in CURVE]


def limit_curve(prior: Prior, people: People) -> list[tuple[float, float]]:
    """What is possible for the people of the page, on average; empty where it takes too long."""
    found = [(epsilon, best_possible(prior, epsilon, people)) for epsilon in CURVE]
    return [(epsilon, best) for epsilon, best in found if best is not None]


def warm(prior: Prior, people: People, epsilons: Iterable[float]) -> threading.Thread:
    """Compute ahead, in a thread of its own, what the next moves of the slider will ask for."""

    def compute() -> None:
        with suppress(SottovoceError):  # the page itself will tell
            for epsilon in epsilons:
                recommended(prior, epsilon, people)
                best_possible(prior, epsilon, people)

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    return thread


def most_told(one: Sampler, p: FloatArray) -> tuple[int, float]:
    """The answer that tells most about this person, and by which factor it can raise the odds for them.

    Whoever asks compares the person with anybody else. No law is below the floor c, so an answer i changes
    the odds by at most Q(p)_i/c_i, and that is at most e^ε.
    """
    law, floor = one.distribution(p), one.floor
    factor = np.divide(law, floor, out=np.zeros(len(law)), where=floor > 0)
    place = int(factor.argmax())
    return place, float(factor[place])
