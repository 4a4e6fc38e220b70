"""What is left over, spread over the categories a user does not have, without a walk over all of them.

When everything a user has sits at its cap and units are left, the others get x_i = clip(m·q_i; low_i, high_i)
with the rational m that makes Σx = N; then ⌊x_i⌋, and the units still missing go one each to the first
fractions. `exact_clip` does that in O(n). A release only needs the category that its word u falls into, and
this module finds it from sorted tables, or says that it cannot be sure. There is no float in this file.

The tables. As m grows, category i leaves its floor at the knot low_i/q_i and reaches its cap at high_i/q_i.
Between two knots, every sum of x over categories is `units + m·slope`. All knots are sorted once, and these
two numbers are added up in that order, over all categories and over every block of them. m is a whole number
of 2^-64 with 57 binary digits at most. A knot is cut down to such a number, too: `knot < m` stays exact.

The proof. Let m be any such number, however it was found, and y its clip, with the user's own categories at
their caps. X_k, Y_k and W_k are the sums of x, of y and of the drawn law over the first k categories.

1. Both x and y lie on one curve that grows in every category. If y has more units than x in all, it has no
   fewer in any category, and over no set of them more than in all; likewise if it has fewer units.
   So |Y_k − X_k| ≤ |Y_n − N|.
2. Rounding lifts the first r fractions to the next whole unit and drops the others. So W_k − X_k rises from 0
   and then falls back to 0: it is never negative. Its peak is at most r, the lifts, and at most the number of
   the other fractions, the drops. The smaller of the two is at most n/2. So X_k ≤ W_k ≤ X_k + n/2.
3. The tables give ⌊Y_k⌋ exactly. Let gap = |⌊Y_n⌋ − N| + 1, which is at least |Y_n − N|. Category k is the
   right one if ⌊Y_k⌋ + gap + 1 + ⌊n/2⌋ ≤ u < ⌊Y_(k+1)⌋ − gap, because then W_k ≤ u < W_(k+1).

The other words, at most n·(n/2 + 2·gap + 1) of the N, take the exact path. m has digits enough for a gap of
about N/2^56 or less: with a million categories, one word in ten million is not answered here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import CertificateError
from .exact import Box

IntegerArray = npt.NDArray[np.int64]

BLOCK = 4096
"""Categories per block at most: a release looks at every block once, and at every category of one block."""

_SCALE = 64
_DIGITS = 57
_HALF = 31


def key_of(multiplier: int) -> int:
    """A multiplier cut to 57 binary digits, as a 63-bit number in the same order."""
    power = max(multiplier.bit_length() - _DIGITS, 0)
    return (power << (_DIGITS - 1)) + (multiplier >> power)


def _knots(units: Sequence[int], prior: Sequence[int]) -> list[int]:
    """The keys of units_i/q_i: `key_of`, written out for a million of them."""
    digits = _DIGITS - 1
    multipliers = [(unit << _SCALE) // w for unit, w in zip(units, prior, strict=True)]
    powers = [max(one.bit_length() - _DIGITS, 0) for one in multipliers]
    return [(power << digits) + (one >> power) for one, power in zip(multipliers, powers, strict=True)]


def multiplier_of(key: int) -> int:
    """The multiplier that a key stands for, in units of 2^-64."""
    power = max((key >> (_DIGITS - 1)) - 1, 0)
    return (key - (power << (_DIGITS - 1))) << power


class _Sums(NamedTuple):
    """Running sums: `units + m·slope` each, one more than there are steps."""

    units: IntegerArray
    slope: IntegerArray

    def at(self, i: int, multiplier: int) -> int:
        """⌊units + m·slope⌋ after i steps."""
        return self.units.item(i) + (self.slope.item(i) * multiplier >> _SCALE)


class Spread:
    """The sorted knots of one box and one prior, and the categories that words fall into."""

    def __init__(self, box: Box, prior: Sequence[int]) -> None:
        self.box, self.prior, n = box, prior, len(prior)
        self.block = min(BLOCK, 4 << (n.bit_length() // 2))  # then both looks take about as long
        self.low, self.high, self.weight = (np.array(v, dtype=np.int64) for v in (box.low, box.high, prior))
        keys = np.array([*_knots(box.low, prior), *_knots(box.high, prior)], dtype=np.int64)
        order = _sorted(keys)
        rank = np.empty(2 * n, dtype=np.int64)
        rank[order] = _count(2 * n)
        self.leaves, self.fills = rank[:n], rank[n:]
        keys, places, full = keys[order], order % n, order >= n
        units = np.where(full, self.high[places], -self.low[places])
        slope = np.where(full, -self.weight[places], self.weight[places])

        self.limit = self._limit(keys, units, slope)
        kept = int(np.searchsorted(keys, self.limit))
        self.keys, units, slope = keys[:kept].copy(), units[:kept], slope[:kept]
        self.sums = _Sums(_running(units, sum(box.low)), _running(slope))

        block_of = places[:kept] // self.block
        by_block = _sorted(block_of)
        blocks = _count(-(-n // self.block))
        self.starts, self.ends = blocks * kept, np.minimum((blocks + 1) * self.block, n)
        self.ranks = block_of[by_block] * kept + by_block
        self.within = _Sums(_running(units[by_block]), _running(slope[by_block]))
        first = np.searchsorted(self.ranks, self.starts)
        floors = np.add.reduceat(self.low, blocks * self.block)
        self.idle = _Sums(floors - self.within.units[first], -self.within.slope[first])

    def _limit(self, keys: IntegerArray, units: IntegerArray, slope: IntegerArray) -> int:
        """The first key where the clip of all categories exceeds N: every user's m comes before it.

        At a user's m the clip of all is at most N, because the user's own categories hold no less than it.
        The knots from the limit on are never passed. Without them the caps that were reached add up to little
        more than N, and no sum leaves 64 bits; here, where they may, halves are added.
        """
        upper, lower = _running(units >> _HALF), _running(units & ((1 << _HALF) - 1), sum(self.box.low))
        slopes = _running(slope)

        def clip_of_all(key: np.int64) -> int:
            i = int(np.searchsorted(keys, key))
            line = int(slopes[i]) * multiplier_of(int(key)) >> _SCALE
            return (int(upper[i]) << _HALF) + int(lower[i]) + line

        over = bisect_right(keys, self.box.total, key=clip_of_all)
        return int(keys[over]) if over < len(keys) else int(keys[-1]) + 1

    def place(self, owned: Sequence[int], u: int) -> int | None:
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
        inner = _Sums(
            _running(inner_units, int(blocks.units[block])), _running(inner_slope, int(blocks.slope[block]))
        )
        inside = bisect_right(range(1, end - begin + 1), u, key=lambda i: inner.at(i, multiplier))
        if inside == end - begin:
            return None

        place, start, stop = begin + inside, inner.at(inside, multiplier), inner.at(inside + 1, multiplier)
        low, high = self.box.low[place], self.box.high[place]
        share = high if place in mine else min(max(multiplier * self.prior[place] >> _SCALE, low), high)
        if not low <= share <= high or not share <= stop - start <= share + 1:
            raise CertificateError("a law left its box; nothing is released")
        gap = abs(blocks.at(-1, multiplier) - total) + 1
        return place if start + gap + 1 + n // 2 <= u < stop - gap else None

    def _block_sums(self, own: IntegerArray, passed: int) -> _Sums:
        """The sums before every block and in all, with the user's own categories at their caps."""
        at = np.searchsorted(self.ranks, self.starts + passed)
        units = _running(self.idle.units + self.within.units[at])
        slope = _running(self.idle.slope + self.within.slope[at])
        if units[-1] != self.sums.units[passed] or slope[-1] != self.sums.slope[passed]:
            raise CertificateError("a law left its box; nothing is released")
        own_units, own_slope = self._clip(own, passed)
        before = np.searchsorted(own, self.ends)
        units[1:] += _running(self.high[own] - own_units)[before]
        slope[1:] -= _running(own_slope)[before]
        return _Sums(units, slope)

    def passed_by(self, key: int) -> int:
        """How many knots lie below the multiplier of a key, up to the limit."""
        return int(np.searchsorted(self.keys, key))

    def _clip(self, places: IntegerArray, passed: int) -> tuple[IntegerArray, IntegerArray]:
        """`units` and `slope` of some categories after the first `passed` knots."""
        floored, capped = self.leaves[places] >= passed, self.fills[places] < passed
        units = np.where(floored, self.low[places], np.where(capped, self.high[places], 0))
        return units, np.where(floored | capped, 0, self.weight[places])

    def _solve(self, own: IntegerArray) -> int:
        """The key of an m whose clip adds up to N, about: the proof does not rest on it, only the speed."""
        low, high, weight = self.low[own], self.high[own], self.weight[own]
        ranks = np.concatenate([self.leaves[own], self.fills[own]])
        order = np.argsort(ranks)
        ranks = ranks[order]
        order = order[: np.searchsorted(ranks, len(self.keys))]
        mine = ranks[: len(order)].tolist()
        units = _running(np.concatenate([-low, high])[order], int(low.sum())).tolist()
        slope = _running(np.concatenate([weight, -weight])[order]).tolist()
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


def _running(values: IntegerArray, start: int = 0) -> IntegerArray:
    """start, start + values_0, start + values_0 + values_1, …"""
    sums = np.empty(len(values) + 1, dtype=np.int64)
    sums[0] = start
    np.cumsum(values, out=sums[1:])
    if start:
        sums[1:] += start
    return sums
