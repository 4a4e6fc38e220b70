"""The category that a word falls into, without solving the exact clip: in batches, and for capped users.

`BoxEngine.position` solves x_i = clip(m·k_i; low_i, high_i), Σx = N, exactly, one user after another. A
release only needs the category of its word u, and an approximate solution almost always proves which one it
is. `Filter` does that for batches, `Descent` for batches of capped users, `Spread` for a single capped user.
What they cannot prove takes the exact path, so that the released category is that of the exact law always.
`Descent` answers a user in O(w·log n) from tables of n·log n numbers; `Spread` needs tables of n numbers
only, and so any number of categories, and answers in O(√n). There is no float in this file.

The lemma. X_c, Y_c and W_c are sums over the first c categories: of the exact clip x, of some point y of the
user's curve, and of the drawn law. Let V_c be numbers with |V_c − Y_c| ≤ d for every c, n included. Then word
u falls into category c of the drawn law if, with E = |V_n − N| + 2·d,

    V_c + E + n/2 ≤ u < V_(c+1) − E,

*however y was found*.

1. The curve grows in every category. On its first part the user's categories follow clip(m·k_i; low_i,
   high_i), with growing m, and the others stay at their floors. On its second part the user's stay at their
   caps and the others follow clip(m·q_i; low_i, high_i). The exact clip is the point with N units in all,
   whether the user is capped or not. Of two points, one has no less than the other in any category. So if
   they differ by D in all, they differ by at most D over any set of categories: |Y_c − X_c| ≤ |Y_n − N| ≤
   |V_n − N| + d, and |V_c − X_c| ≤ E.
2. Rounding lifts the first r fractions of x to the next whole unit and drops the others. So W_c − X_c rises
   from 0 and then falls back to 0: it is never negative. Its peak is at most r, the lifts, and at most the
   number of the other fractions, the drops. The smaller of the two is at most n/2. So X_c ≤ W_c ≤ X_c + n/2.
3. Together: W_c ≤ X_c + n/2 ≤ V_c + E + n/2 ≤ u < V_(c+1) − E ≤ X_(c+1) ≤ W_(c+1).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import CertificateError
from .exact import Box

if TYPE_CHECKING:
    from scipy import sparse

IntegerArray: TypeAlias = npt.NDArray[np.int64]
Truths: TypeAlias = npt.NDArray[np.bool_]

_HALF = 31
"""Sums that may leave 64 bits are added in halves of so many digits."""


def _sums(values: IntegerArray, start: int = 0) -> IntegerArray:
    """start, start + values_0, start + values_0 + values_1, …"""
    sums = np.empty(len(values) + 1, dtype=np.int64)
    sums[0] = start
    np.cumsum(values, out=sums[1:])
    if start:
        sums[1:] += start
    return sums


# --- batches of any users --------------------------------------------------------------------------


ROOMY = 60
"""Sums of caps in coarse units stay below 2^60."""

COUNT_BITS = 30
"""Binary digits kept of a user's counts in all."""

NEAR = 32
"""The search for μ ends within N/2^32, or where the next integer μ would not be better."""

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
        self.categories, self.total = n, box.total >> self.shift
        floors = np.array([*low, 0], dtype=np.int64)
        self.floor = floors >> self.shift
        self.span = (np.array([*high, 0], dtype=np.int64) >> self.shift) - self.floor
        self.room = (box.total - sum(low)) >> self.shift
        self.before = _sums(floors[:-1]) >> self.shift
        beyond = np.array([1 << (ROOMY + 1)], dtype=np.int64)  # no word reaches the padding
        self.starts = np.concatenate([self.before[:-1], beyond])
        self.ends = np.concatenate([self.before[1:], beyond])
        self.near = self.total >> NEAR
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
        counts, cut = _shortened(counts)
        multiplier = self._solve(counts, floor, span)
        added = _clip_at(multiplier, counts, floor, span)
        deviation = np.where(cut, np.maximum(multiplier, 1), 1)
        error = self._error(added.sum(axis=0) - self.room, width, deviation)

        word = words >> self.shift
        running = _sums_down(added)
        ends += running
        at = _how_many(ends <= word)
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


def _clip_at(
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
    if int(size.max()) < 1 << COUNT_BITS:
        return counts, np.zeros(counts.shape[1], dtype=np.bool_)
    drop = np.searchsorted(1 << np.arange(COUNT_BITS, 63), size, side="right")
    return counts >> drop, drop > 0


def _sums_down(values: IntegerArray) -> IntegerArray:
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


# --- batches of capped users -----------------------------------------------------------------------


MOST = 1 << 16
"""With more categories the tables, 50 to 100 bytes times n·log2 n, would outgrow the rest of a batch."""

DESCENT_ROUNDS = 40
"""The search for M halves its bracket of 31 digits if it cannot do better."""


class _Level(NamedTuple):
    """For every run of categories and every number of its knots passed: its left half, and where to go on."""

    units: IntegerArray
    slope: IntegerArray
    onward: IntegerArray  # the index in the next table, for the left half, and then for the right one


class Descent:
    """The tables of one box and one prior of at most 2^16 categories, for capped users.

    All that such a user has is at its cap, and the others follow clip(m·q_i; low_i, high_i), with Σ = N.

    The tables. m = M/2^p with an integer M ≤ L. The limit L is the largest M, 2^31 at most, for which the
    clip of all categories is at most N. Category i leaves its floor when M passes the knot ⌊low_i·2^p/q_i⌋
    and reaches its cap when M passes ⌊high_i·2^p/q_i⌋: for an integer M this is exact. Up to the limit, a sum
    of the clip over some categories is `units + M·slope/2^p`: units are their floors and caps, slope is the
    weight q of those in between. The knots are sorted over all categories, over each half of them, over each
    quarter, and so on down to single ones. For such a run of categories and the number of its knots that M
    has passed, a table gives units and slope of the run's left half, and the numbers of knots passed in both
    halves. So a word finds its category in ⌈log2 n⌉ steps.

    The proof. V_c is the sum over the first c categories that the tables give: units, plus M·⌊slope/2^p⌋,
    plus high_i − clip(M·⌊q_i/2^p⌋; low_i, high_i) for each of the user's categories i among them. The
    products are short by less than M each. So V_c is within d = (w + 1)·M of the clip at M, with the user's
    own w categories at their caps, and by the lemma a word u with V_c + E ≤ u ≤ V_(c+1) − E falls into
    category c if

        E = |V_n − N| + 2·(w + 1)·M + ⌊n/2⌋ + 1.

    No overflow. Units and M·⌊slope/2^p⌋ over any categories are part of the clip of all at M ≤ L, so together
    they are at most N ≤ 2^62. A user is taken only if its caps add up to less than N, so V < 2·N. ⌊q_i/2^p⌋
    is cut to ⌊N/M⌋ + 1: the product is then above N and at most N + M, and its clip is the same. |V_n − N| ≤
    N, M ≤ 2^31 and w ≤ n ≤ 2^16, so E < 2^63.
    """

    def __init__(self, box: Box, prior: Sequence[int]) -> None:
        self.total, self.categories = box.total, len(prior)
        self.low, self.high, self.weight = (
            np.array([*values, 0], dtype=np.int64) for values in (box.low, box.high, prior)
        )
        digits = max((box.total.bit_length() - 1) // 2, 1)
        self.power = max(digits - _size_of_multiplier(box, prior), 0)
        self.leaves, self.fills = (_whole_knots(edge, prior, self.power) for edge in (box.low, box.high))
        self.limit = self._limit(1 << digits)

        knots = np.concatenate([self.leaves[:-1], self.fills[:-1]])
        order = np.argsort(knots, kind="stable")
        order = order[: np.searchsorted(knots[order], self.limit)]  # the others are never passed
        self.knots, indices, full = knots[order], order % len(prior), order >= len(prior)
        units = np.where(full, self.high[indices], -self.low[indices])
        slope = np.where(full, -self.weight[indices], self.weight[indices])
        self.units, self.slope = _sums(units, sum(box.low)), _sums(slope)
        self.levels = []
        for depth in reversed(range((len(prior) - 1).bit_length())):
            self.levels.append(self._level(depth, indices, units, slope))
            by_half = np.argsort(indices >> depth, kind="stable")
            indices, units, slope = indices[by_half], units[by_half], slope[by_half]

        alone = np.flatnonzero(sum(box.low) + self.high[:-1] - self.low[:-1] < self.total)
        self.alone = np.zeros(len(prior) + 1, dtype=np.int64)
        self.alone[alone] = self._solve(alone[None, :])

    def _limit(self, most: int) -> int:
        """The largest M, `most` at most, for which the clip of all categories is at most N."""
        half = (1 << _HALF) - 1

        def clip_of_all(multiplier: int) -> int:
            floored, full = multiplier <= self.leaves, multiplier > self.fills
            caps = (int((self.high[full] >> _HALF).sum()) << _HALF) + int((self.high[full] & half).sum())
            slope = int(self.weight[~(floored | full)].sum())
            return int(self.low[floored].sum()) + caps + -(-(multiplier * slope) >> self.power)

        return bisect_right(range(most + 1), self.total, key=clip_of_all) - 1

    def _level(self, depth: int, indices: IntegerArray, units: IntegerArray, slope: IntegerArray) -> _Level:
        """The table of the runs of 2^(depth + 1) categories; the knots come run by run, sorted in each."""
        runs = 1 << ((self.categories - 1).bit_length() - depth - 1)  # the last ones may be empty
        run, half = indices >> (depth + 1), (indices >> depth) & 1
        size = np.bincount(run, minlength=runs)
        offset = np.cumsum(size) - size  # of the run's first knot
        entry_run = np.repeat(np.arange(runs), size + 1)
        knot = np.arange(len(entry_run)) - entry_run  # of an entry: the first knot that is not passed
        first = offset[entry_run]

        def passed_left(values: IntegerArray) -> IntegerArray:
            sums = _sums(np.where(half == 0, values, 0))
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

    def locate(self, indices: IntegerArray, words: IntegerArray) -> tuple[IntegerArray, Truths]:
        """Every user's category, and whether it is proved.

        Each user is a column. Its `indices` ascend; below the last one it is filled with n.
        """
        width = len(indices)
        multiplier = self.alone[indices[0]] if width == 1 else self._solve(indices)
        more = self.high[indices] - self._own(indices, multiplier)
        at = np.searchsorted(self.knots, multiplier)
        whole = self.units[at] + multiplier * (self.slope[at] >> self.power) + more.sum(axis=0)
        error = self._error(whole - self.total, width, multiplier)

        category, units, slope = (np.zeros_like(words) for _ in range(3))
        for depth, level in zip(reversed(range(len(self.levels))), self.levels, strict=True):
            middle = category + (1 << depth)
            more_units, more_slope = level.units.take(at), level.slope.take(at)
            value = multiplier * ((slope + more_slope) >> self.power)
            value += units
            value += more_units
            value += (more * (indices < middle)).sum(axis=0)
            right = (value <= words).astype(np.int64)
            at = level.onward.take(at + len(level.units) * right)
            chosen = -right  # all digits one, or all zero
            units += more_units & chosen
            slope += more_slope & chosen
            category += chosen & (1 << depth)

        category = np.minimum(category, self.categories)  # behind the last one nothing is shared out
        start = units + multiplier * (slope >> self.power) + (more * (indices < category)).sum(axis=0)
        floored, full = multiplier <= self.leaves[category], multiplier > self.fills[category]
        units += np.where(floored, self.low[category], np.where(full, self.high[category], 0))
        slope += np.where(floored | full, 0, self.weight[category])
        end = units + multiplier * (slope >> self.power) + (more * (indices <= category)).sum(axis=0)
        return category, (words - start >= error) & (end - words >= error)

    def _error(self, gap: IntegerArray, width: int, multiplier: IntegerArray) -> IntegerArray:
        """The E of the proof, for every user."""
        bound: IntegerArray = np.abs(gap) + 2 * (width + 1) * multiplier + (self.categories // 2 + 1)
        return bound

    def _own(self, indices: IntegerArray, multiplier: IntegerArray) -> IntegerArray:
        """The clip of the users' own categories at M, about."""
        weight = np.minimum(self.weight[indices] >> self.power, self.total // np.maximum(multiplier, 1) + 1)
        own: IntegerArray = np.maximum(multiplier * weight, self.low[indices])
        return np.minimum(own, self.high[indices], out=own)

    def _solve(self, indices: IntegerArray) -> IntegerArray:
        """An M whose clip adds up to about N, by Newton's steps in a bracket; no proof rests on it."""
        high, low, weight = self.high[indices], self.low[indices], self.weight[indices]
        multiplier = np.full(indices.shape[1], self.limit, dtype=np.int64)
        least, largest = np.zeros_like(multiplier), multiplier.copy()
        for _ in range(DESCENT_ROUNDS):
            own = self._own(indices, multiplier)
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


def _whole_knots(edge: Sequence[int], prior: Sequence[int], power: int) -> IntegerArray:
    """⌊edge_i·2^p/q_i⌋; what is far above every limit is cut."""
    far = 1 << 62
    knots = [min((unit << power) // w, far) for unit, w in zip(edge, prior, strict=True)]
    return np.array([*knots, far], dtype=np.int64)


# --- one capped user -------------------------------------------------------------------------------


BLOCK = 4096
"""Categories per block at most: a release looks at every block once, and at every category of one block."""

_SCALE = 64
_DIGITS = 57


def key_of(multiplier: int) -> int:
    """A multiplier cut to 57 binary digits, as a 63-bit number in the same order."""
    power = max(multiplier.bit_length() - _DIGITS, 0)
    return (power << (_DIGITS - 1)) + (multiplier >> power)


def _key_knots(units: Sequence[int], prior: Sequence[int]) -> list[int]:
    """The keys of units_i/q_i: `key_of`, written out for a million of them."""
    digits = _DIGITS - 1
    multipliers = [(unit << _SCALE) // w for unit, w in zip(units, prior, strict=True)]
    powers = [max(m.bit_length() - _DIGITS, 0) for m in multipliers]
    return [(power << digits) + (m >> power) for m, power in zip(multipliers, powers, strict=True)]


def multiplier_of(key: int) -> int:
    """The multiplier that a key stands for, in units of 2^-64."""
    power = max((key >> (_DIGITS - 1)) - 1, 0)
    return (key - (power << (_DIGITS - 1))) << power


class _Lines(NamedTuple):
    """Running sums: `units + m·slope` each, one more than there are steps."""

    units: IntegerArray
    slope: IntegerArray

    def at(self, i: int, multiplier: int) -> int:
        """⌊units + m·slope⌋ after i steps."""
        return self.units.item(i) + (self.slope.item(i) * multiplier >> _SCALE)


class Spread:
    """The sorted knots of one box and one prior of any size, for a capped user.

    The tables. As m grows, category i leaves its floor at the knot low_i/q_i and reaches its cap at
    high_i/q_i. Between two knots, every sum of the clip over categories is `units + m·slope`. All knots are
    sorted once, and these two numbers are added up in that order, over all categories and over every block of
    them. m is an integer multiple of 2^-64 with 57 binary digits at most. A knot is cut down to such a
    number, too: `knot < m` stays exact.

    The proof. The tables give V_c = ⌊Y_c⌋ exactly, for the clip at m with the user's own categories at their
    caps. Let gap = |⌊Y_n⌋ − N| + 1, which is at least |Y_n − N|. Category c is the right one if ⌊Y_c⌋ + gap +
    1 + ⌊n/2⌋ ≤ u < ⌊Y_(c+1)⌋ − gap: by 1. and 2. of the lemma, then W_c ≤ u < W_(c+1).

    The other words, at most n·(n/2 + 2·gap + 1) of the N, take the exact path. m has digits enough for a gap
    of about N/2^56 or less: with a million categories, one word in ten million is not answered here.
    """

    def __init__(self, box: Box, prior: Sequence[int]) -> None:
        self.box, self.prior, n = box, prior, len(prior)
        self.block = min(BLOCK, 4 << (n.bit_length() // 2))  # then both looks take about as long
        self.low, self.high, self.weight = (np.array(v, dtype=np.int64) for v in (box.low, box.high, prior))
        keys = np.array([*_key_knots(box.low, prior), *_key_knots(box.high, prior)], dtype=np.int64)
        order = _sorted(keys)
        rank = np.empty(2 * n, dtype=np.int64)
        rank[order] = _count(2 * n)
        self.leaves, self.fills = rank[:n], rank[n:]
        keys, indices, full = keys[order], order % n, order >= n
        units = np.where(full, self.high[indices], -self.low[indices])
        slope = np.where(full, -self.weight[indices], self.weight[indices])

        self.limit = self._limit(keys, units, slope)
        below = int(np.searchsorted(keys, self.limit))
        self.keys, units, slope = keys[:below].copy(), units[:below], slope[:below]
        self.sums = _Lines(_sums(units, sum(box.low)), _sums(slope))

        block_of = indices[:below] // self.block
        by_block = _sorted(block_of)
        blocks = _count(-(-n // self.block))
        self.starts, self.ends = blocks * below, np.minimum((blocks + 1) * self.block, n)
        self.ranks = block_of[by_block] * below + by_block
        self.within = _Lines(_sums(units[by_block]), _sums(slope[by_block]))
        first = np.searchsorted(self.ranks, self.starts)
        floors = np.add.reduceat(self.low, blocks * self.block)
        self.idle = _Lines(floors - self.within.units[first], -self.within.slope[first])

    def _limit(self, keys: IntegerArray, units: IntegerArray, slope: IntegerArray) -> int:
        """The first key where the clip of all categories exceeds N: every user's m comes before it.

        At a user's m the clip of all is at most N, because the user's own categories hold no less than it.
        The knots from the limit on are never passed. Without them the caps that were reached add up to little
        more than N, and no sum leaves 64 bits; here, where they may, halves are added.
        """
        upper, lower = _sums(units >> _HALF), _sums(units & ((1 << _HALF) - 1), sum(self.box.low))
        slopes = _sums(slope)

        def clip_of_all(key: np.int64) -> int:
            i = int(np.searchsorted(keys, key))
            line = int(slopes[i]) * multiplier_of(int(key)) >> _SCALE
            return (int(upper[i]) << _HALF) + int(lower[i]) + line

        over = bisect_right(keys, self.box.total, key=clip_of_all)
        return int(keys[over]) if over < len(keys) else int(keys[-1]) + 1

    def locate(self, owned: Sequence[int], u: int) -> int | None:
        """The category that word u falls into when `owned`, ascending, are all at their caps; None if unsure.

        Raises CertificateError where the tables contradict each other or the box.
        """
        n, total = len(self.prior), self.box.total
        own = np.array(owned, dtype=np.int64)
        ascending = len(own) > 0 and own[0] >= 0 and own[-1] < n and bool((own[1:] > own[:-1]).all())
        if not ascending or sum(self.high[own].tolist()) > total:
            return None
        key = self._solve(own)
        multiplier, passed = multiplier_of(key), self.passed_by(key)

        blocks = self._block_sums(own, passed)
        block = bisect_right(range(1, len(self.ends) + 1), u, key=lambda i: blocks.at(i, multiplier))
        if block == len(self.ends):
            return None
        begin, end = block * self.block, int(self.ends[block])
        mine = own[np.searchsorted(own, begin) : np.searchsorted(own, end)]
        inner_units, inner_slope = self._clip(_count(end - begin) + begin, passed)
        inner_units[mine - begin], inner_slope[mine - begin] = self.high[mine], 0
        inner = _Lines(
            _sums(inner_units, int(blocks.units[block])), _sums(inner_slope, int(blocks.slope[block]))
        )
        inside = bisect_right(range(1, end - begin + 1), u, key=lambda i: inner.at(i, multiplier))
        if inside == end - begin:
            return None

        index, start, stop = begin + inside, inner.at(inside, multiplier), inner.at(inside + 1, multiplier)
        low, high = self.box.low[index], self.box.high[index]
        share = high if index in mine else min(max(multiplier * self.prior[index] >> _SCALE, low), high)
        if not low <= share <= high or not share <= stop - start <= share + 1:
            raise CertificateError("a law left its box; nothing is released")
        gap = abs(blocks.at(-1, multiplier) - total) + 1
        return index if start + gap + 1 + n // 2 <= u < stop - gap else None

    def _block_sums(self, own: IntegerArray, passed: int) -> _Lines:
        """The sums before every block and in all, with the user's own categories at their caps."""
        at = np.searchsorted(self.ranks, self.starts + passed)
        units = _sums(self.idle.units + self.within.units[at])
        slope = _sums(self.idle.slope + self.within.slope[at])
        if units[-1] != self.sums.units[passed] or slope[-1] != self.sums.slope[passed]:
            raise CertificateError("a law left its box; nothing is released")
        own_units, own_slope = self._clip(own, passed)
        before = np.searchsorted(own, self.ends)
        units[1:] += _sums(self.high[own] - own_units)[before]
        slope[1:] -= _sums(own_slope)[before]
        return _Lines(units, slope)

    def passed_by(self, key: int) -> int:
        """How many knots lie below the multiplier of a key, up to the limit."""
        return int(np.searchsorted(self.keys, key))

    def _clip(self, indices: IntegerArray, passed: int) -> tuple[IntegerArray, IntegerArray]:
        """`units` and `slope` of some categories after the first `passed` knots."""
        floored, capped = self.leaves[indices] >= passed, self.fills[indices] < passed
        units = np.where(floored, self.low[indices], np.where(capped, self.high[indices], 0))
        return units, np.where(floored | capped, 0, self.weight[indices])

    def _solve(self, own: IntegerArray) -> int:
        """The key of an m whose clip adds up to N, about: the proof does not rest on it, only the speed."""
        low, high, weight = self.low[own], self.high[own], self.weight[own]
        ranks = np.concatenate([self.leaves[own], self.fills[own]])
        order = np.argsort(ranks)
        ranks = ranks[order]
        order = order[: np.searchsorted(ranks, len(self.keys))]
        mine = ranks[: len(order)].tolist()
        units = _sums(np.concatenate([-low, high])[order], int(low.sum())).tolist()
        slope = _sums(np.concatenate([weight, -weight])[order]).tolist()
        target = self.box.total - sum(high.tolist())

        def line(i: int) -> tuple[int, int]:
            j = bisect_left(mine, i)
            return self.sums.units.item(i) - units[j], self.sums.slope.item(i) - slope[j]

        def clip_of_others(i: int) -> int:
            constant, steep = line(i)
            return constant + (steep * multiplier_of(self.keys.item(i)) >> _SCALE)

        i = bisect_left(range(len(self.keys)), target, key=clip_of_others)
        constant, steep = line(i)
        least = int(self.keys[i - 1]) if i > 0 else 0
        most = int(self.keys[i]) if i < len(self.keys) else self.limit
        key = key_of(((target - constant) << _SCALE) // steep) if steep > 0 else most
        return min(max(key, least), most)


def _count(size: int) -> IntegerArray:
    """0, 1, 2, … in 64 bits on every machine."""
    return np.arange(size, dtype=np.int64)


def _sorted(values: IntegerArray) -> IntegerArray:
    """The order that sorts; equal values stay in turn, so that a category's floor comes before its cap."""
    return np.argsort(values, kind="stable").astype(np.int64, copy=False)


# --- a batch ---------------------------------------------------------------------------------------


ENTRIES = 1 << 17
"""Entries of one pack: a megabyte an array; with fewer, threads wait for each other between operations."""

WINDOW = 1 << 15
"""Users that are sorted by the number of their categories: few enough that their rows stay in the cache."""


class Pack(NamedTuple):
    """Some users of about equally many categories: one column each, padded with index n and count 0."""

    users: IntegerArray
    indices: IntegerArray
    counts: IntegerArray


def packs(rows: sparse.csr_array[Any]) -> Iterator[Pack]:
    """Cut sparse rows into packs, at most an eighth of which is padding; empty rows are in none."""
    for begin in range(0, rows.shape[0], WINDOW):
        starts = rows.indptr[begin : begin + WINDOW + 1].astype(np.int64)
        lengths = np.diff(starts)
        short = lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths  # sorted by their digits
        order = np.argsort(short, kind="stable")
        ordered = lengths[order]
        first, last = int(starts[0]), int(starts[-1])
        indices, counts = rows.indices[first:last].astype(np.int64), rows.data[first:last]
        starts -= first
        at = int(np.searchsorted(ordered, 0, side="right"))
        while at < len(order):
            width = int(ordered[at] + (ordered[at] >> 3))
            end = min(int(np.searchsorted(ordered, width, side="right")), at + max(ENTRIES // width, 1))
            users = order[at:end]
            there, many = _columns(starts[users], ordered[at:end], indices, counts, rows.shape[1])
            yield Pack(begin + users, there, many)
            at = end


def _columns(
    starts: IntegerArray, lengths: IntegerArray, indices: IntegerArray, counts: IntegerArray, padding: int
) -> tuple[IntegerArray, IntegerArray]:
    """Rows as columns, the first entries of all of them above the second ones, and so on; lengths ascend."""
    shape = int(lengths[-1]), len(starts)
    there, many = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    entry = starts.copy()
    for depth in range(shape[0]):
        ended = int(np.searchsorted(lengths, depth, side="right"))
        if ended:
            there[depth, :ended], many[depth, :ended] = padding, 0
        np.take(indices, entry[ended:], out=there[depth, ended:], mode="clip")  # no copy; none is outside
        np.take(counts, entry[ended:], out=many[depth, ended:], mode="clip")
        entry += 1
    return there, many


def decided(
    rows: sparse.csr_array[Any], words: IntegerArray, filter: Filter, descent: Descent | None
) -> tuple[IntegerArray, Truths]:
    """The category of every row's word, and whether it is proved to be the one of the exact law."""
    categories = np.zeros(rows.shape[0], dtype=np.int64)
    sure = np.zeros(rows.shape[0], dtype=np.bool_)
    if rows.nnz == 0 or rows.data.min() < 1:  # no users as the proofs know them
        return categories, sure
    for users, indices, counts in packs(rows):
        span = filter.span.take(indices)
        full = filter.room - span.sum(axis=0) > filter.near + len(indices) + 1  # capped, beyond doubt
        if not full.any():
            categories[users], sure[users] = filter.locate(counts, indices, span, words[users])
            continue
        rest = np.flatnonzero(~full)
        if len(rest):
            these = users[rest]
            held, there, own = (np.take(array, rest, axis=1) for array in (counts, indices, span))
            categories[these], sure[these] = filter.locate(held, there, own, words[these])
        if descent is not None:
            chosen = np.flatnonzero(full)
            these = users[chosen]
            categories[these], sure[these] = descent.locate(indices[:, chosen], words[these])
    return categories, sure
