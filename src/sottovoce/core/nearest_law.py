"""The nearest law of a box for a geometry, in integers.

Every category i has low_i units. The units above them, up to high_i, are two *pieces* with slope 0: those up
to what the user has of the category, and those beyond. From the categories upwards, at every node v with an
edge of length w > 0: order the pieces of the categories below v by slope, then those beyond last, then by
category. Cut the order where P(v) − low(v) units are before the cut, P(v) being what the user has below v and
low(v) its floors; if there are not so many, behind all of them, and if that is below 0, before all of them. A
piece that is cut becomes two. Pieces before the cut get the slope − w, those behind it + w. At the root, the
first N − Σlow units in that order are released.

Why no other law of the box has a smaller W1: let F_v(m) be the least cost on and below the edge v of m units
below it. F_v is convex. Its slopes are those of the children, merged in ascending order, plus those of
w·|m − P(v)|, which takes w from the slopes before P(v) and adds it behind: the order stays. So the first
units at the root are the first ones at every node. That what lies beyond comes later is the same as an edge
above every category that is shorter than any length: of all laws that move the least, this is one that is
nearest in total variation, and a user whose law is in the box keeps it. All of it are integers, and ties have
one order: every client finds the same law.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from .constants import BITS, LENGTH_BITS
from .tree import IntegerTree

IntegerArray = npt.NDArray[np.int64]

_MASS = (1 << BITS) - 1
ENTRIES = 1 << 17  # users × categories of one batch
DEEP = 256  # work a category up to which a batch sorts at every node; beyond it users take turns


class _Pieces:
    """The pieces below a node, as a heap on each side of its cut, the piece next to the cut on top.

    A piece is one integer, key·2^62 + units, with key = slope·2n + (n if beyond) + category; before the cut
    keys are negated. All keys of a side are off by a shift, so that all slopes of a side change at once.
    """

    __slots__ = ("before", "behind", "down", "units", "up")

    def __init__(self, before: list[int], behind: list[int]) -> None:
        self.before, self.behind, self.down, self.up = before, behind, 0, 0
        self.units = sum([piece & _MASS for piece in before])
        heapify(before)
        heapify(behind)

    def add(self, key: int, units: int) -> None:
        """Put a piece on its side of the cut."""
        if self.behind and key >= self.up + (self.behind[0] >> BITS):
            heappush(self.behind, ((key - self.up) << BITS) + units)
        else:
            heappush(self.before, ((self.down - key) << BITS) + units)
            self.units += units

    def cut(self, goal: int) -> None:
        """Move the cut until `goal` units are before it, or as near as there are pieces."""
        before, behind, across = self.before, self.behind, self.down - self.up
        while self.units > goal and before:
            piece, over = before[0], self.units - goal
            units = piece & _MASS
            if units > over:
                before[0], units = piece - over, over  # units do not decide the order
            else:
                heappop(before)
            heappush(behind, ((across - (piece >> BITS)) << BITS) + units)
            self.units -= units
        while self.units < goal and behind:
            piece, short = behind[0], goal - self.units
            units = piece & _MASS
            if units > short:
                behind[0], units = piece - short, short
            else:
                heappop(behind)
            heappush(before, ((across - (piece >> BITS)) << BITS) + units)
            self.units += units

    def join(self, other: _Pieces) -> _Pieces:
        """Both together: the fewer are put among the more, all at once if they are not much fewer."""
        size, many = len(self.before) + len(self.behind), len(other.before) + len(other.behind)
        if size < many:
            return other.join(self)
        across, back = [], []  # pieces that change sides
        if 8 * many < size or not self.behind:
            across, back = other.before, other.behind
        else:
            end = self.up + (self.behind[0] >> BITS)  # the key of the first piece behind the cut
            least, shift = (other.down - end + 1) << BITS, (self.down - other.down) << BITS
            across = [piece for piece in other.before if piece < least]
            self.before += [piece + shift for piece in other.before if piece >= least]
            self.units += other.units - sum([piece & _MASS for piece in across])
            least, shift = (end - other.up) << BITS, (other.up - self.up) << BITS
            back = [piece for piece in other.behind if piece < least]
            self.behind += [piece + shift for piece in other.behind if piece >= least]
            heapify(self.before)
            heapify(self.behind)
        for piece in across:
            self.add(other.down - (piece >> BITS), piece & _MASS)
        for piece in back:
            self.add(other.up + (piece >> BITS), piece & _MASS)
        return self


def nearest_law(
    targets: Sequence[int], low: Sequence[int], high: Sequence[int], geometry: IntegerTree
) -> list[int]:
    """The law of the box low ≤ x ≤ high with Σx = Σtargets that is nearest to the targets."""
    n, root = len(targets), len(geometry.parents)
    parents, lengths = geometry.parents, geometry.lengths
    goals = [0] * (root + 1 - n)
    nodes: list[_Pieces | None] = [None] * (root + 1 - n)
    here = _Pieces([], [])
    for k, leaves in enumerate(geometry.leaves):
        goal, before, behind = goals[k], [], []
        for i in leaves:  # the units that the user has are those before its cut
            shift, units, own = lengths[i] * 2 * n, high[i] - low[i], targets[i] - low[i]
            goal += own
            if own > 0:
                before.append(((shift - i) << BITS) + (own if own < units else units))
                units -= own
            if units > 0:
                behind.append(((n + i + shift) << BITS) + units)
        below, here = nodes[k], _Pieces(before, behind)
        here = here if below is None else below.join(here)
        if n + k == root:
            here.cut(goal)
            break
        if lengths[n + k]:
            here.cut(goal)
            here.down -= lengths[n + k] * 2 * n
            here.up += lengths[n + k] * 2 * n
        parent = parents[n + k] - n
        goals[parent] += goal
        above, nodes[k] = nodes[parent], None
        nodes[parent] = here if above is None else above.join(here)
    law = list(low)
    for piece in here.before:
        law[(here.down - (piece >> BITS)) % n] += piece & _MASS
    return law


def nearest_laws(
    targets: IntegerArray, low: IntegerArray, high: IntegerArray, geometry: IntegerTree
) -> IntegerArray:
    """`nearest_law` for every row of the targets; low and high are the same for all, or a row each."""
    many, n = targets.shape
    lows, highs = np.broadcast_to(low, targets.shape), np.broadcast_to(high, targets.shape)
    out = np.empty_like(targets)
    slots = (2 * n + len(geometry.parents)).bit_length()  # two for each category, one for each cut
    if geometry.work > DEEP * n or many == 1 or LENGTH_BITS + 1 + n.bit_length() + slots > BITS:
        for i in range(many):
            out[i] = nearest_law(targets[i].tolist(), lows[i].tolist(), highs[i].tolist(), geometry)
        return out
    size = max(ENTRIES // n, 1)
    for begin in range(0, many, size):
        part = slice(begin, begin + size)
        out[part] = _side_by_side(targets[part], lows[part], highs[part], geometry, slots)
    return out


def _side_by_side(
    targets: IntegerArray, low: IntegerArray, high: IntegerArray, geometry: IntegerTree, slots: int
) -> IntegerArray:
    """The same for users in rows: at every node all pieces are sorted by slope, category and slot.

    A running sum of units may pass 2^63, but no goal does: as units are below 2^62, the sum then is negative,
    so that as an unsigned number it is above every goal; only the first of those that are is looked at.
    """
    many, n = targets.shape
    root = len(geometry.parents)
    mask, rows = (1 << slots) - 1, np.arange(many)
    goals: list[Any] = [targets[:, i] - low[:, i] for i in range(n)] + [0] * (root + 1 - n)
    nodes: list[list[tuple[IntegerArray, IntegerArray]]] = [[] for _ in range(root + 1)]
    for v in range(root + 1):
        if v < n:
            shift = geometry.lengths[v] * 2 * n
            keys = np.tile(np.array([v - shift, n + v + shift]) << slots, (many, 1))
            room = high[:, v] - low[:, v]
            own = np.minimum(np.maximum(goals[v], 0), room)
            units = np.stack([own, room - own], axis=1)
        else:
            keys, units = _sorted([*zip(*nodes[v], strict=True)], mask)
            nodes[v] = []
        if v == root:
            at, inside = _cut(units, goals[v])
            taken = np.where(np.arange(units.shape[1]) < at[:, None], units, 0)
            taken[rows, at] = inside
            law = low.copy()
            np.add.at(law, (rows[:, None], (keys >> slots) % n), taken)
            return law
        parent, length = geometry.parents[v], geometry.lengths[v]
        if length and v >= n:
            at, inside = _cut(units, goals[v])
            behind = units[rows, at] - inside
            units = np.concatenate([units, behind[:, None]], axis=1)
            units[rows, at] = inside
            step = (length * 2 * n) << slots
            more = keys[rows, at] + step
            keys = keys + np.where(np.arange(keys.shape[1]) <= at[:, None], -step, step)
            keys = np.concatenate([keys, more[:, None]], axis=1)
        goals[parent], goals[v] = goals[parent] + goals[v], None
        nodes[parent].append((keys, units))
    raise AssertionError


def _sorted(parts: list[Any], mask: int) -> tuple[IntegerArray, IntegerArray]:
    """The pieces of the children in order; a key's last digits are the slot of its units."""
    keys, units = (np.concatenate(part, axis=1) for part in parts)
    many, size = keys.shape
    keys &= ~mask
    keys |= np.arange(size)
    keys.sort(axis=1)
    return keys, units.take((keys & mask) + (np.arange(many) * size)[:, None])


def _cut(units: IntegerArray, goal: IntegerArray) -> tuple[IntegerArray, IntegerArray]:
    """The piece that a row's cut falls into, and how many of its units are before the cut."""
    rows = np.arange(len(units))
    ends = np.cumsum(units, axis=1)
    beyond = ends.view(np.uint64) > np.maximum(goal, 0).view(np.uint64)[:, None]
    at = beyond.argmax(axis=1)
    at[~beyond[rows, at]] = units.shape[1] - 1
    here = units[rows, at]
    return at, np.clip(goal - (ends[rows, at] - here), 0, here)
