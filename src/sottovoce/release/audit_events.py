"""Which event to look at: two users, and a set of categories that the one releases more often than the other.

The set of categories that tells two users apart best is a likelihood-ratio set {i : P_i > t·R_i}. Single
categories may each differ by less than their noise; the set adds them up. Draws are kept in two tallies: one
orders the categories, the other chooses how many of them to take, because an order that was chosen to look
extreme always looks extreme to the draws that chose it. What is chosen here is bounded by other draws still.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

IntegerArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

STRENGTH = 1.0
"""How many draws the average of all users counts for in each category when ratios are smoothed."""


@dataclass(frozen=True)
class Tally:
    """How often each category was drawn; only those that were, so that memory follows the draws."""

    places: IntegerArray
    times: IntegerArray
    draws: int = 0

    def plus(self, drawn: IntegerArray) -> Tally:
        """The same with more draws."""
        return together([self, Tally(*np.unique(drawn, return_counts=True), len(drawn))])

    def at(self, places: IntegerArray) -> FloatArray:
        """The counts at some places, which ascend."""
        found = np.zeros(len(places))
        if len(self.places):
            where = np.searchsorted(self.places, places)
            where[where == len(self.places)] = 0
            same = self.places[where] == places
            found[same] = self.times[where[same]]
        return found


def together(tallies: Sequence[Tally]) -> Tally:
    """All draws of several tallies."""
    places, where = np.unique(np.concatenate([one.places for one in tallies]), return_inverse=True)
    times = np.zeros(len(places), dtype=np.int64)
    np.add.at(times, where, np.concatenate([one.times for one in tallies]))
    return Tally(places, times, sum(one.draws for one in tallies))


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
    """Two users, by number, and the places of the categories that the first should release more often."""

    first: int
    second: int
    places: IntegerArray

    def count(self, drawn: IntegerArray) -> int:
        """How many draws fell into it."""
        return int(np.isin(drawn, self.places).sum())


def choose_event(seen: Sequence[Seen]) -> Event:
    """The two users and the set of categories whose ratio, taken pessimistically, is largest."""
    average = together([one.ordering for one in seen])
    # Of so many candidates the luckiest is about this many standard deviations off: each is moved back by it.
    # The sets of a pair contain each other, so that they count for the number of their doublings.
    caution = math.sqrt(2 * math.log(len(seen) ** 2 * (1 + math.log2(max(len(average.places), 1)))))
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
    places = np.union1d(x.ordering.places, y.ordering.places)
    usual = average.at(places) / average.draws
    # Draws a of N become (a + s)/(N + s/usual): few draws say little, and no draw rules nothing out.
    own = (x.ordering.at(places) + STRENGTH) / (x.ordering.draws * usual + STRENGTH)
    other = (y.ordering.at(places) + STRENGTH) / (y.ordering.draws * usual + STRENGTH)
    order = np.argsort(other / own)
    places = places[order]
    ascending = np.sort(places)
    back = np.searchsorted(ascending, places)
    a, b = x.choosing.at(ascending)[back], y.choosing.at(ascending)[back]
    sizes = x.choosing.draws, y.choosing.draws
    found = []
    for pair, these, those, trials, step in (
        ((first, second), a, b, sizes, 1),
        ((second, first), b, a, sizes[::-1], -1),
    ):
        along = places[::step]
        score = _pessimistic(np.cumsum(these[::step]), np.cumsum(those[::step]), *trials, caution)
        k = int(score.argmax())
        found.append((Event(*pair, np.sort(along[: k + 1])), float(score[k])))
    return found


def _pessimistic(a: FloatArray, b: FloatArray, own: int, other: int, caution: float) -> Any:
    """log of a/own over b/other, each count moved against it."""
    low = np.maximum(a - caution * np.sqrt(a), 0.5)
    high = b + caution * np.sqrt(b) + caution**2 / 2
    return np.log(low / own) - np.log(high / other)
