"""The category that a word falls into, for many users at once, without solving the clip exactly.

`BoxEngine.position` solves x_i = clip(m·k_i; low_i, high_i), Σx = N, exactly, one user after another. A
release only needs the category of its word, and a coarse solution almost always proves which one it is.
Here whole arrays of 64-bit integers do that. There is no float in this file.

Units. One coarse unit is 2^s units, with the least s for which Σ⌊high_i/2^s⌋ < 2^60. Put l_i = ⌊low_i/2^s⌋,
h_i = ⌊high_i/2^s⌋, room = N − Σlow, B_c = ⌊Σ_{i<c} low_i/2^s⌋. Counts become k'_i = ⌊k_i/2^r⌋ with the
least r ≥ 0 for which ⌊Σk/2^r⌋ < 2^30. For a whole μ ≥ 0, e_i = clip(μ·k'_i − l_i; 0, h_i − l_i) is what the
clip at μ adds to the floor of a category i of the user, and B_c + Σ e_i over the user's categories i < c is
the boundary before category c: both up to an error, which is bounded now.

The proof. A user has w categories. Everything below is in coarse units, as real numbers.

1. The exact clip lies on a curve that grows in every category. On its first part the user's categories
   follow clip(μ·k_i/2^r; low_i/2^s, high_i/2^s), with growing μ, and the others stay at their floors. On
   its second part the user's stay at their caps and the others follow clip(m·q_i; low_i, high_i)/2^s, with
   growing m. The exact clip is the point of the curve with room/2^s above the floors in all, whether the
   user is capped or not. Of two points of the curve, one has no less than the other in any category. So if
   they differ by D in all, they differ by at most D over any set of categories.
2. A clip moves by no more than its arguments do. At μ, the product is short by less than μ if r > 0, and by
   nothing if r = 0; floor and cap are short by less than 1. Put d = max(1, μ) if r > 0, and d = 1 if r = 0.
   What the curve at μ has above the floor in category i then exceeds e_i by more than −1 and less than d.
   So over any set of the user's categories, the sum of e is within w·d of the curve at μ.
3. With gap = Σe − ⌊room/2^s⌋, the curve at μ thus differs from the exact clip by |gap| + w·d + 1 at most in
   all, and by 1. over any set. So the sum of e is within |gap| + 2·w·d + 1 of the exact clip over any set.
4. The drawn law rounds the exact clip to whole units, the first fractions up and the others down. Its
   running sums are ahead of those of the exact clip by 0 to n/2 units (see `spread`), and n/2^(s+1) <
   ⌊n/2^(s+1)⌋ + 1.
5. With U = ⌊u/2^s⌋, U − B_c is within 1 of (u − Σ_{i<c} low_i)/2^s. Therefore a word u with start + E ≤ U ≤
   end − E, for the two boundaries of a category that are found from e, falls into the same category of the
   drawn law if

       E = |gap| + 2·w·d + ⌊n/2^(s+1)⌋ + 3,

   *however μ was found*. Any other word is in doubt, and takes the exact path.

No overflow. μ ≤ 2^60. Where μ·k'_i could pass 2^61, k'_i is cut to ⌊2^60/μ⌋ + 1: the product is then above
2^60 > h_i and at most 2^61, and the clip is the same. Sums of e and the room are at most Σh < 2^60, so
|gap| < 2^60. 2·w·d is cut to about 2^61, which still puts every word in doubt, because U < 2^60. Sums of k
and of k' steer the search for μ, on which nothing rests (k < 2^62, see `weights`).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .exact import Box

IntegerArray: TypeAlias = npt.NDArray[np.int64]
Truths: TypeAlias = npt.NDArray[np.bool_]

ROOMY = 60
"""Sums of caps in coarse units stay below 2^60."""

KEPT = 30
"""Binary digits kept of a user's counts in all."""

NEAR = 32
"""The search for μ ends within N/2^32, or where the next whole μ would not be better."""

ROUNDS = 80
"""The search halves its bracket of 60 digits if it cannot do better; whoever is not done then is in doubt."""


class Filter:
    """The coarse tables of one box; the place behind the last category is for padding."""

    def __init__(self, box: Box) -> None:
        n, low, high = len(box.low), box.low, box.high
        self.shift = max(sum(high).bit_length() - ROOMY, 0)
        self.categories, self.total = n, box.total >> self.shift
        floors = np.array([*low, 0], dtype=np.int64)
        self.floor = floors >> self.shift
        self.span = (np.array([*high, 0], dtype=np.int64) >> self.shift) - self.floor
        self.room = (box.total - sum(low)) >> self.shift
        self.before = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(floors[:-1], out=self.before[1:])
        self.before >>= self.shift
        beyond = np.array([1 << (ROOMY + 1)], dtype=np.int64)  # no word reaches the padding
        self.starts = np.concatenate([self.before[:-1], beyond])
        self.ends = np.concatenate([self.before[1:], beyond])
        self.near = self.total >> NEAR
        self.rounding = (n >> (self.shift + 1)) + 3

    def locate(
        self, counts: IntegerArray, places: IntegerArray, span: IntegerArray, words: IntegerArray
    ) -> tuple[IntegerArray, Truths]:
        """Every user's category, and whether it is proved.

        Each user is a column. Its `places` ascend. Below the last one it is filled with n, its counts with 0.
        `span` is this filter's span of the places.
        """
        width, users = places.shape
        floor, ends = self.floor.take(places), self.ends.take(places)
        counts, cut = _shortened(counts)
        multiplier = self._solve(counts, floor, span)
        added = _clip(multiplier, counts, floor, span)
        deviation = np.where(cut, np.maximum(multiplier, 1), 1)
        error = self._error(added.sum(axis=0) - self.room, width, deviation)

        word = words >> self.shift
        running = _running(added)
        ends += running
        at = _how_many(ends <= word)
        column = np.arange(users)
        before = running.take(np.maximum(at - 1, 0) * users + column) * (at > 0)
        own = np.minimum(at, width - 1) * users + column
        found = places.take(own)
        start, end = self.starts.take(found) + before, ends.take(own)
        others = np.flatnonzero((at == width) | (start > word))
        rest = before[others]
        other = np.searchsorted(self.before, word[others] - rest, side="right") - 1
        other = np.minimum(np.maximum(other, 0), self.categories - 1)
        found[others], start[others] = other, self.before[other] + rest
        end[others] = self.before[other + 1] + rest
        return found, (start + error <= word) & (word <= end - error)

    def _error(self, gap: IntegerArray, width: int, deviation: IntegerArray) -> IntegerArray:
        """The E of the proof, for every user."""
        within = width * np.minimum(deviation, (1 << ROOMY) // width)
        bound: IntegerArray = np.abs(gap) + 2 * within + self.rounding
        return bound

    def _solve(self, counts: IntegerArray, floor: IntegerArray, span: IntegerArray) -> IntegerArray:
        """A μ whose clip adds up to about the room, by Newton's steps inside a bracket.

        The proof does not rest on the answer, only the speed does. Users who are done leave the arrays.
        """
        most = 1 << ROOMY
        answer = np.empty(counts.shape[1], dtype=np.int64)
        who = np.arange(counts.shape[1])
        near = counts.sum(axis=0)
        multiplier = (self.room + floor.sum(axis=0)) // np.maximum(near, 1)
        near = np.maximum(near, self.near)  # a whole μ need not come nearer than the counts in all
        least, largest = np.zeros_like(multiplier), np.full_like(multiplier, most)
        for _ in range(ROUNDS):
            reached = _product(multiplier, counts)
            reached -= floor
            added = np.maximum(reached, 0)
            np.minimum(added, span, out=added)
            gap = added.sum(axis=0) - self.room
            over = gap > 0
            least, largest = np.where(over, least, multiplier), np.where(over, multiplier, largest)
            done = (np.abs(gap) <= near) | (largest - least <= 1)
            left = np.flatnonzero(~done)
            if 2 * len(left) < len(who):
                answer[who] = multiplier
                if len(left) == 0:
                    return answer
                who, multiplier, least, largest = who[left], multiplier[left], least[left], largest[left]
                gap, near, done = gap[left], near[left], done[left]
                counts, floor, span, added, reached = (
                    np.take(array, left, axis=1) for array in (counts, floor, span, added, reached)
                )
            slope = np.multiply(counts, added == reached, out=reached).sum(axis=0)
            step = multiplier - gap // np.maximum(slope, 1)
            middle = np.where(largest == most, np.minimum(2 * least + 1, most), (least + largest) >> 1)
            step = np.where((slope == 0) | (step <= least) | (step >= largest), middle, step)
            multiplier = np.where(done, multiplier, step)
        answer[who] = multiplier
        return answer


def _clip(
    multiplier: IntegerArray, counts: IntegerArray, floor: IntegerArray, span: IntegerArray
) -> IntegerArray:
    """e_i = clip(μ·k'_i − l_i; 0, h_i − l_i)."""
    reached = _product(multiplier, counts)
    reached -= floor
    np.maximum(reached, 0, out=reached)
    return np.minimum(reached, span, out=reached)


def _product(multiplier: IntegerArray, counts: IntegerArray) -> IntegerArray:
    """μ·k'_i, or something else above 2^60 where it is above 2^60."""
    if int(multiplier.max()) * int(counts.max()) >= 1 << (ROOMY + 1):
        counts = np.minimum(counts, (1 << ROOMY) // np.maximum(multiplier, 1) + 1)
    product: IntegerArray = multiplier * counts
    return product


def _shortened(counts: IntegerArray) -> tuple[IntegerArray, Truths]:
    """The counts without the digits that are not kept, and whose were cut."""
    size = counts.sum(axis=0)
    if int(size.max()) < 1 << KEPT:
        return counts, np.zeros(counts.shape[1], dtype=np.bool_)
    drop = np.searchsorted(1 << np.arange(KEPT, 63), size, side="right")
    return counts >> drop, drop > 0


def _running(values: IntegerArray) -> IntegerArray:
    """Sums down each column, in place."""
    if len(values) > 64:
        return np.cumsum(values, axis=0, out=values)
    for i in range(1, len(values)):
        values[i] += values[i - 1]
    return values


def _how_many(truths: Truths) -> IntegerArray:
    """How many are true in each column."""
    small = np.int8 if len(truths) < 128 else np.int64
    many: IntegerArray = truths.view(np.int8).sum(axis=0, dtype=small).astype(np.int64)
    return many
