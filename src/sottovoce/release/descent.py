"""The category that a word falls into, for many users at once all of whose categories are at their caps.

The others then follow clip(m·q_i; low_i, high_i), with the m that makes the sum N. `spread` finds the
category of one word in such a law. Here whole arrays of 64-bit integers do it, in O(w·log n) a user with w
categories. There is no float in this file.

The tables. m = M/2^p with a whole M ≤ L. The limit L is the largest M, 2^31 at most, for which the clip of
all categories is at most N. Category i leaves its floor when M passes the knot ⌊low_i·2^p/q_i⌋ and reaches
its cap when M passes ⌊high_i·2^p/q_i⌋: for whole M this is exact. Up to the limit, a sum of the clip over
some categories is `units + M·slope/2^p`: units are their floors and caps, slope is the weight q of those in
between. The knots are sorted over all categories, over each half of them, over each quarter, and so on down
to single ones. For such a run of categories and the number of its knots that M has passed, a table gives
units and slope of the run's left half, and the numbers of knots passed in both halves. So a word finds its
category in ⌈log2 n⌉ steps.

The proof. V_c is the sum over the first c categories that the tables give: units, plus M·⌊slope/2^p⌋, plus
high_i − clip(M·⌊q_i/2^p⌋; low_i, high_i) for each of the user's categories i among them.

1. The products are short by less than M each. So V_c is within (w + 1)·M of the clip at M over the first c
   categories, with the user's own at their caps.
2. That clip and the exact one lie on one curve that grows in every category (see `filter`, also for a user
   who is not capped), and they differ by |V_n − N| + (w + 1)·M at most in all. So over the first c
   categories they differ by no more.
3. The drawn law is ahead of the exact clip by 0 to n/2 units (see `spread`). Therefore a word u with V_c +
   E ≤ u ≤ V_(c+1) − E falls into category c of the drawn law if

       E = |V_n − N| + 2·(w + 1)·M + ⌊n/2⌋ + 1,

   *however M was found*. Any other word is in doubt, and takes another path.

No overflow. Units and M·⌊slope/2^p⌋ over any categories are part of the clip of all at M ≤ L, so together
they are at most N ≤ 2^62. A user is taken only if its caps add up to less than N, so V < 2·N. ⌊q_i/2^p⌋ is
cut to ⌊N/M⌋ + 1: the product is then above N and at most N + M, and its clip is the same. |V_n − N| ≤ N, M
≤ 2^31 and w ≤ n ≤ 2^16, so E < 2^63.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .exact import Box
from .filter import IntegerArray, Truths

MOST = 1 << 16
"""With more categories the tables, 50 to 100 bytes times n·log2 n, would outgrow the rest of a batch."""

ROUNDS = 40
"""The search for M halves its bracket of 31 digits if it cannot do better."""


class _Level(NamedTuple):
    """For every run of categories and every number of its knots passed: its left half, and where to go on."""

    units: IntegerArray
    slope: IntegerArray
    onward: IntegerArray  # the place in the next table, for the left half, and then for the right one


class Descent:
    """The tables of one box and one prior of at most 2^16 categories."""

    def __init__(self, box: Box, prior: Sequence[int]) -> None:
        self.total, self.categories = box.total, len(prior)
        self.low, self.high, self.weight = (
            np.array([*values, 0], dtype=np.int64) for values in (box.low, box.high, prior)
        )
        digits = max((box.total.bit_length() - 1) // 2, 1)
        self.power = max(digits - _size_of_multiplier(box, prior), 0)
        self.leaves, self.fills = (_knots(edge, prior, self.power) for edge in (box.low, box.high))
        self.limit = self._limit(1 << digits)

        knots = np.concatenate([self.leaves[:-1], self.fills[:-1]])
        order = np.argsort(knots, kind="stable")
        order = order[: np.searchsorted(knots[order], self.limit)]  # the others are never passed
        self.knots, places, full = knots[order], order % len(prior), order >= len(prior)
        units = np.where(full, self.high[places], -self.low[places])
        slope = np.where(full, -self.weight[places], self.weight[places])
        self.units, self.slope = _running(units) + sum(box.low), _running(slope)
        self.levels = []
        for depth in reversed(range((len(prior) - 1).bit_length())):
            self.levels.append(self._level(depth, places, units, slope))
            by_half = np.argsort(places >> depth, kind="stable")
            places, units, slope = places[by_half], units[by_half], slope[by_half]

        alone = np.flatnonzero(sum(box.low) + self.high[:-1] - self.low[:-1] < self.total)
        self.alone = np.zeros(len(prior) + 1, dtype=np.int64)
        self.alone[alone] = self._solve(alone[None, :])

    def _limit(self, most: int) -> int:
        """The largest M, `most` at most, for which the clip of all categories is at most N."""
        half = (1 << 31) - 1

        def clip_of_all(multiplier: int) -> int:
            floored, full = multiplier <= self.leaves, multiplier > self.fills
            caps = (int((self.high[full] >> 31).sum()) << 31) + int((self.high[full] & half).sum())
            slope = int(self.weight[~(floored | full)].sum())
            return int(self.low[floored].sum()) + caps + -(-(multiplier * slope) >> self.power)

        return bisect_right(range(most + 1), self.total, key=clip_of_all) - 1

    def _level(self, depth: int, places: IntegerArray, units: IntegerArray, slope: IntegerArray) -> _Level:
        """The table of the runs of 2^(depth + 1) categories; the knots come run by run, sorted in each."""
        runs = 1 << ((self.categories - 1).bit_length() - depth - 1)  # the last ones may be empty
        run, half = places >> (depth + 1), (places >> depth) & 1
        size = np.bincount(run, minlength=runs)
        offset = np.cumsum(size) - size  # of the run's first knot
        entry_run = np.repeat(np.arange(runs), size + 1)
        knot = np.arange(len(entry_run)) - entry_run  # of an entry: the first knot that is not passed
        first = offset[entry_run]

        def passed_left(values: IntegerArray) -> IntegerArray:
            sums = _running(np.where(half == 0, values, 0))
            passed: IntegerArray = sums[knot] - sums[first]
            return passed

        floors = np.zeros(runs << (depth + 1), dtype=np.int64)
        floors[: self.categories] = self.low[:-1]
        floors = floors.reshape(runs, 2, 1 << depth)[:, 0].sum(axis=1)
        in_left = passed_left(np.ones_like(units))
        all_left = np.bincount(run[half == 0], minlength=runs)[entry_run]
        left = first + 2 * entry_run + in_left
        right = first + 2 * entry_run + all_left + 1 + (knot - first - in_left)
        return _Level(
            passed_left(units) + floors[entry_run], passed_left(slope), np.concatenate([left, right])
        )

    def locate(self, places: IntegerArray, words: IntegerArray) -> tuple[IntegerArray, Truths]:
        """Every user's category, and whether it is proved.

        Each user is a column. Its `places` ascend; below the last one it is filled with n.
        """
        width = len(places)
        multiplier = self.alone[places[0]] if width == 1 else self._solve(places)
        more = self.high[places] - self._own(places, multiplier)
        at = np.searchsorted(self.knots, multiplier)
        whole = self.units[at] + multiplier * (self.slope[at] >> self.power) + more.sum(axis=0)
        error = self._error(whole - self.total, width, multiplier)

        found, units, slope = (np.zeros_like(words) for _ in range(3))
        for depth, level in zip(reversed(range(len(self.levels))), self.levels, strict=True):
            middle = found + (1 << depth)
            more_units, more_slope = level.units.take(at), level.slope.take(at)
            value = multiplier * ((slope + more_slope) >> self.power)
            value += units
            value += more_units
            value += (more * (places < middle)).sum(axis=0)
            right = (value <= words).astype(np.int64)
            at = level.onward.take(at + len(level.units) * right)
            chosen = -right  # all digits one, or all zero
            units += more_units & chosen
            slope += more_slope & chosen
            found += chosen & (1 << depth)

        found = np.minimum(found, self.categories)  # behind the last one nothing is shared out
        start = units + multiplier * (slope >> self.power) + (more * (places < found)).sum(axis=0)
        floored, full = multiplier <= self.leaves[found], multiplier > self.fills[found]
        units += np.where(floored, self.low[found], np.where(full, self.high[found], 0))
        slope += np.where(floored | full, 0, self.weight[found])
        end = units + multiplier * (slope >> self.power) + (more * (places <= found)).sum(axis=0)
        return found, (words - start >= error) & (end - words >= error)

    def _error(self, gap: IntegerArray, width: int, multiplier: IntegerArray) -> IntegerArray:
        """The E of the proof, for every user."""
        bound: IntegerArray = np.abs(gap) + 2 * (width + 1) * multiplier + (self.categories // 2 + 1)
        return bound

    def _own(self, places: IntegerArray, multiplier: IntegerArray) -> IntegerArray:
        """The clip of the users' own categories at M, about."""
        weight = np.minimum(self.weight[places] >> self.power, self.total // np.maximum(multiplier, 1) + 1)
        own: IntegerArray = np.maximum(multiplier * weight, self.low[places])
        return np.minimum(own, self.high[places], out=own)

    def _solve(self, places: IntegerArray) -> IntegerArray:
        """An M whose clip adds up to about N, by Newton's steps in a bracket; no proof rests on it."""
        high, low, weight = self.high[places], self.low[places], self.weight[places]
        multiplier = np.full(places.shape[1], self.limit, dtype=np.int64)
        least, largest = np.zeros_like(multiplier), multiplier.copy()
        for _ in range(ROUNDS):
            own = self._own(places, multiplier)
            at = np.searchsorted(self.knots, multiplier)
            value = self.units[at] + multiplier * (self.slope[at] >> self.power) + (high - own).sum(axis=0)
            gap = value - self.total
            inside = np.where((own > low) & (own < high), weight, 0).sum(axis=0)
            slope = (self.slope[at] - inside) >> self.power
            over = gap > 0
            largest[over] = multiplier[over]
            least[~over] = multiplier[~over]
            done = (np.abs(gap) <= slope) | (largest - least <= 1)
            step = multiplier - gap // np.maximum(slope, 1)
            outside = (slope <= 0) | (step <= least) | (step >= largest)
            multiplier = np.where(done, multiplier, np.where(outside, (least + largest) >> 1, step))
            if done.all():
                break
        return multiplier


def _size_of_multiplier(box: Box, prior: Sequence[int]) -> int:
    """The least j for which 2^j is above every m that a capped user can have, about."""

    def clip_of_all(j: int) -> int:
        return sum(
            [
                min(max(w << j if j >= 0 else w >> -j, a), b)
                for w, a, b in zip(prior, box.low, box.high, strict=True)
            ]
        )

    return bisect_right(range(-62, 62), box.total, key=clip_of_all) - 62


def _knots(edge: Sequence[int], prior: Sequence[int], power: int) -> IntegerArray:
    """⌊edge_i·2^p/q_i⌋; what is far above every limit is cut."""
    far = 1 << 62
    knots = [min((unit << power) // w, far) for unit, w in zip(edge, prior, strict=True)]
    return np.array([*knots, far], dtype=np.int64)


def _running(values: IntegerArray) -> IntegerArray:
    """0, values_0, values_0 + values_1, …"""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return sums
