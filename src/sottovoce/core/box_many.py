"""Batches of clip mechanisms: the category that each user's word selects, for all users at once.

`BoxEngine.position` solves x_i = clip(m·k_i; low_i, high_i), Σx = N, exactly, one user after another. A
release only needs the category of its word u, and an approximate solution almost always proves which one it
is. `Filter` does that; what it cannot prove takes the exact path, so that the released category is that of
the exact law always. A capped user has nothing to solve: `Capped` draws exactly as the single release does.

The lemma, for a user who is not capped. X_c, Y_c and W_c are sums over the first c categories: of the exact
clip x, of some point y of the user's curve, and of the drawn law. Let V_c be numbers with |V_c − Y_c| ≤ d for
every c, n included. Then word u falls into category c of the drawn law if, with E = |V_n − N| + 2·d,

    V_c + E + n/2 ≤ u < V_(c+1) − E,

*however y was found*.

1. The curve grows in every category: the user's follow clip(m·k_i; low_i, high_i), with growing m, and the
   others stay at their floors. The exact clip is the point with N units in all. Of two points, one has no
   less than the other in any category. So if they differ by D in all, they differ by at most D over any set
   of categories: |Y_c − X_c| ≤ |Y_n − N| ≤ |V_n − N| + d, and |V_c − X_c| ≤ E.
2. Rounding lifts the first r fractions of x to the next whole unit and drops the others. So W_c − X_c rises
   from 0 and then falls back to 0: it is never negative. Its peak is at most r, the lifts, and at most the
   number of the other fractions, the drops. The smaller of the two is at most n/2. So X_c ≤ W_c ≤ X_c + n/2.
3. Together: W_c ≤ X_c + n/2 ≤ V_c + E + n/2 ≤ u < V_(c+1) − E ≤ X_(c+1) ≤ W_(c+1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import CertificateError
from .arithmetic import Box
from .arrays import IntegerArray, packs, running_sums, scaled_product

if TYPE_CHECKING:
    from scipy import sparse

Truths: TypeAlias = npt.NDArray[np.bool_]


# --- users who are not capped ----------------------------------------------------------------------

ROOMY = 60  # sums of caps in coarse units stay below 2^60
COUNT_BITS = 30  # binary digits kept of a user's counts in all
NEAR = 32  # the search for μ ends within N/2^32, or where the next integer μ would not be better

FILTER_ROUNDS = 80
"""The search halves its bracket of 60 digits if it cannot do better; whoever is not done then is in doubt."""


class Filter:
    """The coarse tables of one box; the index behind the last category is for padding.

    Units. One coarse unit is 2^s units, with the least s for which Σ⌊high_i/2^s⌋ < 2^60. Put l_i =
    ⌊low_i/2^s⌋, h_i = ⌊high_i/2^s⌋, room = N − Σlow, B_c = ⌊Σ_{i<c} low_i/2^s⌋. Counts become k'_i =
    ⌊k_i/2^r⌋ with the least r ≥ 0 for which ⌊Σk/2^r⌋ < 2^30. For an integer μ ≥ 0, e_i = clip(μ·k'_i − l_i;
    0, h_i − l_i) is what the clip at μ adds to the floor of a category i of the user, and B_c + Σ e_i over
    the user's categories i < c is the boundary before category c.

    The proof, in coarse units, for a user with w categories. A clip moves by no more than its arguments do.
    At μ, the product is short by less than μ if r > 0, and by nothing if r = 0; floor and cap are short by
    less than 1. Put d = max(1, μ) if r > 0, and d = 1 if r = 0. What the curve at μ has above the floor in
    category i then exceeds e_i by more than −1 and less than d. So over any set of the user's categories, the
    sum of e is within w·d of the curve at μ. With gap = Σe − ⌊room/2^s⌋, it is within |gap| + 2·w·d + 1 of
    the exact clip (lemma, 1). n/2^(s+1) < ⌊n/2^(s+1)⌋ + 1 bounds the rounding (lemma, 2). With U = ⌊u/2^s⌋, U
    − B_c is within 1 of (u − Σ_{i<c} low_i)/2^s. So a word with start + E ≤ U ≤ end − E, for the two
    boundaries of a category that are computed from e, falls into it if

        E = |gap| + 2·w·d + ⌊n/2^(s+1)⌋ + 3.

    No overflow. μ ≤ 2^60. Where μ·k'_i could pass 2^61, k'_i is cut to ⌊2^60/μ⌋ + 1: the product is then
    above 2^60 > h_i and at most 2^61, and the clip is the same. Sums of e and the room are at most Σh < 2^60,
    so |gap| < 2^60. 2·w·d is cut to about 2^61, which still puts every word in doubt, because U < 2^60. Sums
    of k and of k' steer the search for μ, on which nothing rests (k < 2^62, see `weights`).
    """

    def __init__(self, box: Box) -> None:
        n, low, high = len(box.low), box.low, box.high
        self.shift = max(sum(high).bit_length() - ROOMY, 0)
        self.categories = n
        floors = np.array([*low, 0], dtype=np.int64)
        self.floor = floors >> self.shift
        self.span = (np.array([*high, 0], dtype=np.int64) >> self.shift) - self.floor
        self.room = (box.total - sum(low)) >> self.shift
        self.before = running_sums(floors[:-1]) >> self.shift
        beyond = np.array([1 << (ROOMY + 1)], dtype=np.int64)  # no word reaches the padding
        self.starts = np.concatenate([self.before[:-1], beyond])
        self.ends = np.concatenate([self.before[1:], beyond])
        self.near = box.total >> self.shift >> NEAR
        self.rounding = (n >> (self.shift + 1)) + 3

    def locate(
        self, counts: IntegerArray, indices: IntegerArray, span: IntegerArray, words: IntegerArray
    ) -> tuple[IntegerArray, Truths]:
        """Every user's category, and whether it is proved.

        Each user is a column whose `indices` ascend; below the last one it is filled with n, its counts with
        0. `span` is this filter's span of the indices.
        """
        width, users = indices.shape
        floor, ends = self.floor.take(indices), self.ends.take(indices)
        cut = np.searchsorted(1 << np.arange(COUNT_BITS, 63), counts.sum(axis=0), side="right")
        counts = counts >> cut
        multiplier = self._solve(counts, floor, span)
        added = np.minimum(np.maximum(_above_floor(multiplier, counts, floor), 0), span)
        deviation = np.where(cut > 0, np.maximum(multiplier, 1), 1)
        error = self._error(added.sum(axis=0) - self.room, width, deviation)

        word = words >> self.shift
        running = _sums_down(added)
        ends += running
        at = np.count_nonzero(ends <= word, axis=0)
        column = np.arange(users)
        before = running.take(np.maximum(at - 1, 0) * users + column) * (at > 0)
        own = np.minimum(at, width - 1) * users + column
        category = indices.take(own)
        start, end = self.starts.take(category) + before, ends.take(own)
        others = np.flatnonzero((at == width) | (start > word))
        rest = before[others]
        other = np.searchsorted(self.before, word[others] - rest, side="right") - 1
        other = np.minimum(np.maximum(other, 0), self.categories - 1)
        category[others], start[others] = other, self.before[other] + rest
        end[others] = self.before[other + 1] + rest
        return category, (start + error <= word) & (word <= end - error)

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
        near = np.maximum(near, self.near)  # an integer μ need not come nearer than the counts in all
        least, largest = np.zeros_like(multiplier), np.full_like(multiplier, most)
        for _ in range(FILTER_ROUNDS):
            reached = _above_floor(multiplier, counts, floor)
            added = np.minimum(np.maximum(reached, 0), span)
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


def _above_floor(multiplier: IntegerArray, counts: IntegerArray, floor: IntegerArray) -> IntegerArray:
    """μ·k'_i − l_i; where μ·k'_i is above 2^60, something else above 2^60 may take its place."""
    if int(multiplier.max()) * int(counts.max()) >= 1 << (ROOMY + 1):
        counts = np.minimum(counts, (1 << ROOMY) // np.maximum(multiplier, 1) + 1)
    product: IntegerArray = multiplier * counts
    product -= floor
    return product


def _sums_down(values: IntegerArray) -> IntegerArray:
    """Sums down each column, in place."""
    if len(values) > 64:
        return np.cumsum(values, axis=0, out=values)
    for i in range(1, len(values)):
        values[i] += values[i - 1]
    return values


# --- capped users -----------------------------------------------------------------------------------


class Capped:
    """The tables of one box for capped users: `BoxEngine.position` in arrays, exactly, without any doubt.

    The index behind the last category is for padding: it has no units, and no number reaches it.
    """

    def __init__(self, box: Box, floors: IntegerArray, above: IntegerArray) -> None:
        self.total, self.floors, self.above = box.total, floors, above
        self.spare = box.total - floors[-1]
        self.low, self.room = np.append(np.diff(floors), 0), np.append(np.diff(above), 0)
        self.span = np.array([*box.high, 0], dtype=np.int64) - self.low

    def left(self, indices: IntegerArray) -> IntegerArray:
        """How many units are left with the users' own categories at their caps; each user is a column.

        In coarse units of 2^s, what a cap adds to its floor and the room are known up to 1. So the w
        categories of a capped user add at most room + w. Where they do, they add less than N + w·2^(s+1)
        units, which fits 64 bits.
        """
        left: IntegerArray = self.spare - self.span.take(indices).sum(axis=0)
        return left

    def locate(self, indices: IntegerArray, left: IntegerArray, words: IntegerArray) -> IntegerArray:
        """The category of every user, all of whom are capped."""
        room = self.above[-1] - self.room.take(indices).sum(axis=0)
        if (left > room).any():
            raise CertificateError("a law left its box; nothing is released")
        numbers, categories = words - (self.total - left), np.empty_like(words)
        first, rest = np.flatnonzero(numbers < 0), np.flatnonzero(numbers >= 0)
        own = indices[:, first]
        categories[first] = walks(self.floors, own, self.low.take(own), self.span.take(own), words[first])
        own, numbers = indices[:, rest], scaled_product(numbers[rest], room[rest], left[rest])
        rooms = self.room.take(own)
        categories[rest] = walks(self.above, own, rooms, -rooms, numbers)
        return categories


def walks(
    before: IntegerArray,
    indices: IntegerArray,
    weights: IntegerArray,
    more: IntegerArray,
    numbers: IntegerArray,
) -> IntegerArray:
    """`box.walk` for many users, a column each: at their `indices` they have `more` than the `weights`."""
    shift, own = np.zeros_like(numbers), np.full_like(numbers, -1)
    for index, weight, extra in zip(indices, weights, more, strict=True):
        start = before.take(index) + shift
        begun = numbers >= start
        np.copyto(own, index, where=begun & (numbers < start + weight + extra))
        shift += extra * begun
    other = np.searchsorted(before, numbers - shift, side="right") - 1
    return np.where(own < 0, other, own)


# --- a batch ---------------------------------------------------------------------------------------


def decided(
    rows: sparse.csr_array[Any], words: IntegerArray, filter: Filter, capped: Capped
) -> tuple[IntegerArray, Truths]:
    """The category of every row's word, and whether it is proved to be the one of the exact law."""
    categories = np.zeros(rows.shape[0], dtype=np.int64)
    sure = np.zeros(rows.shape[0], dtype=np.bool_)
    if rows.nnz == 0 or rows.data.min() < 1:  # no users as the proofs know them
        return categories, sure
    for users, indices, counts in packs(rows):
        span = filter.span.take(indices)
        near = np.flatnonzero(span.sum(axis=0) <= filter.room + len(span))  # all capped users, and a few more
        if len(near):
            left = capped.left(indices[:, near])
            full, left = near[left > 0], left[left > 0]
            these, rest = users[full], np.delete(np.arange(len(users)), full)
            categories[these], sure[these] = capped.locate(indices[:, full], left, words[these]), True
            users, indices, counts, span = users[rest], indices[:, rest], counts[:, rest], span[:, rest]
        if len(users):
            categories[users], sure[users] = filter.locate(counts, indices, span, words[users])
    return categories, sure
