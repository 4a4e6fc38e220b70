"""The best point of a box, for every f-divergence at once.

For a floor c and a = e^ε let x = clip(u·p; c, a·c), with the multiplier u > 0 that makes Σx = 1. Then x
minimises D_f(p‖·) over the box for *every* f (Park, Asoodeh, Lee 2024, Prop. 3.4): there is no
separate "TV projection" and "KL projection", and a p already in the box is left alone.

When p has zeros there may be no such u: with everything the user has at its cap, mass is still left.
It then goes to the categories the user lacks. Every split has the same D_f; this one is c + λ(t − c), where
t is the public law, the clip of the prior itself. t and the user's caps add up to at least 1, so that
Σ(t − c) over these categories is at least what is left: 0 < λ ≤ 1, and c + λ(t − c) lies in the box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..checks import FloatArray
from .blocks import Block, blocks, chunks, dense

if TYPE_CHECKING:
    from scipy import sparse


NEWTON_STEPS = (4, 12)
"""Four steps are enough for most users; the others get twelve, and then the search among their knots."""

CACHED = 1 << 15
"""Entries that are worked on at a time, so that a dozen arrays of them stay in the processor's cache."""


def multipliers(p: FloatArray, low: FloatArray, a: float, target: FloatArray) -> FloatArray:
    """For each row the u with Σ clip(u·p; low, a·low) = target; ∞ where even the caps fall short.

    The sum is increasing in u and linear between the knots low/p and a·low/p. A few Newton steps find the
    segment of the root for almost every row, a binary search over the sorted knots for the others; on the
    segment the root is one division. Entries with p = 0 must have low = 0: they are padding.
    """
    u = np.full(len(p), np.inf)
    # A few ulps short is a rounding of floor or cap, not mass to be found: chasing it would move rare
    # categories by orders of magnitude.
    reached = target * (1 - 4 * np.finfo(np.float64).eps)
    left = np.arange(len(p))
    size = max(1, CACHED // p.shape[1])
    for steps in NEWTON_STEPS:
        solved = np.zeros(len(left), dtype=np.bool_)
        for begin in range(0, len(left), size):
            part = slice(begin, begin + size) if len(left) == len(p) else left[begin : begin + size]
            u[part], solved[begin : begin + size] = _by_newton(
                p[part], low[part], a, target[part], reached[part], steps
            )
        left = left[~solved]
    for begin in range(0, len(left), size):
        part = left[begin : begin + size]
        u[part] = _by_search(p[part], low[part], a, target[part], reached[part])
    return u


def _by_newton(
    p: FloatArray, low: FloatArray, a: float, target: FloatArray, reached: FloatArray, steps: int
) -> tuple[FloatArray, np.typing.NDArray[np.bool_]]:
    """The root on the segment where Newton steps end, and whether that segment is the right one.

    It is if no knot lies between the places where the sum passes `reached` and `target`: the sum grows, so no
    other segment can hold the root. Users stand in columns here, which numpy adds up several times faster.
    """
    high = a * low
    capped = high.sum(axis=1) < reached
    if capped.all():
        return np.full(len(p), np.inf), capped
    columns, floor = np.ascontiguousarray(p.T), np.ascontiguousarray(low.T)
    ratio = np.divide(floor, columns, out=np.full_like(columns, np.inf), where=columns > 0)
    cap = a * ratio
    u = _near_root(columns, floor, a, ratio, target, steps)
    at_cap, at_floor = np.ascontiguousarray((cap <= u).T), np.ascontiguousarray((ratio >= u).T)
    fixed = (high * at_cap).sum(axis=1) + (low * at_floor).sum(axis=1)
    slope = np.where(at_cap | at_floor, 0.0, p).sum(axis=1)
    sloping = slope > 0
    root = np.divide(target - fixed, slope, out=u.copy(), where=sloping)
    first = np.minimum(np.divide(reached - fixed, slope, out=u.copy(), where=sloping), u)
    last = np.maximum(root, u)
    clear = ((ratio < first) | (ratio > last)) & ((cap < first) | (cap > last))
    root[capped] = np.inf
    return root, capped | (sloping & clear.all(axis=0))


def _near_root(
    p: FloatArray, low: FloatArray, a: float, ratio: FloatArray, target: FloatArray, steps: int
) -> FloatArray:
    """Newton steps u ← u + (target − g(u))/g'(u) in a bracket; where they leave it, its geometric middle."""
    high = a * low
    least = ratio.min(axis=0)
    most = a * np.where(p > 0, ratio, 0.0).max(axis=0)
    u: FloatArray = np.minimum(np.maximum(target / p.sum(axis=0), least), most)
    for _ in range(steps):
        x = u * p
        clipped = np.minimum(np.maximum(x, low), high)
        slope = (p * (clipped == x)).sum(axis=0)
        off = target - clipped.sum(axis=0)
        short = off > 0
        least, most = np.where(short, u, least), np.where(short, most, u)
        u = u + np.divide(off, slope, out=np.full_like(u, np.inf), where=slope > 0)
        u = np.where((least <= u) & (u <= most), u, np.sqrt(least) * np.sqrt(most))
    return u


def _by_search(
    p: FloatArray, low: FloatArray, a: float, target: FloatArray, reached: FloatArray
) -> FloatArray:
    """The root by a binary search over the sorted knots.

    It evaluates the sum itself: prefix sums would cancel when p spans many orders of magnitude.
    """
    high = a * low
    ratio = np.divide(low, p, out=np.full_like(p, np.inf), where=p > 0)
    knots = np.sort(np.concatenate([ratio, a * ratio], axis=1), axis=1)
    count = 2 * np.count_nonzero(p > 0, axis=1)
    rows = np.arange(len(p))

    first, last = np.zeros(len(p), dtype=np.intp), count - 1
    for _ in range(int(2 * p.shape[1]).bit_length()):
        middle = (first + last) // 2
        u = knots[rows, middle]
        enough = np.clip(u[:, None] * p, low, high).sum(axis=1) >= reached
        last = np.where(enough, middle, last)
        first = np.where(enough, first, np.minimum(middle + 1, last))

    right = knots[rows, first]
    left = np.where(first > 0, knots[rows, first - 1], 0.0)
    at_cap = a * ratio <= left[:, None]
    at_floor = ratio >= right[:, None]
    between = ~(at_cap | at_floor)
    fixed = np.where(at_cap, high, 0.0).sum(axis=1) + np.where(at_floor, low, 0.0).sum(axis=1)
    slope = np.where(between, p, 0.0).sum(axis=1)
    root = np.divide(target - fixed, slope, out=right.copy(), where=slope > 0)
    return np.where(high.sum(axis=1) < reached, np.inf, np.clip(root, left, right))


def on_support(block: Block, floor: FloatArray, a: float, total: float) -> FloatArray:
    """The clip on the categories the users have; `total` is Σc over all categories."""
    low = block.gather(floor)
    u = multipliers(block.p, low, a, 1 - (total - low.sum(axis=1)))
    return clipped(block.p, low, a, u)


def clipped(p: FloatArray, low: FloatArray, a: float, u: FloatArray) -> FloatArray:
    """clip(u·p; low, a·low) row by row, with ∞·p = ∞ for p > 0."""
    capped = np.isinf(u)
    scaled = np.where(capped, 0.0, u)[:, None] * p
    return np.where(capped[:, None], a * low, np.clip(scaled, low, a * low))


def laws(
    rows: sparse.csr_array[np.float64], q: FloatArray, floor: FloatArray, a: float, total: float
) -> FloatArray:
    """The released law of every user over all categories, as a dense (m, n) array."""
    m, n = rows.shape
    u = np.empty(m)
    for block in blocks(rows):
        low = block.gather(floor)
        u[block.rows] = multipliers(block.p, low, a, 1 - (total - low.sum(axis=1)))
    capped = np.isinf(u)
    room = public_law(q, floor, a) - floor if capped.any() else np.zeros(n)
    out = np.empty((m, n))
    for part, p in dense(rows):
        low = np.broadcast_to(floor, p.shape)
        x = np.where(p > 0, clipped(p, low, a, u[part]), low)
        short = np.flatnonzero(capped[part])
        x[short] += _left(p[short] > 0, x[short], room)
        out[part] = x
    return out


def public_law(q: FloatArray, floor: FloatArray, a: float) -> FloatArray:
    """The clip of the prior."""
    low = floor[None, :]
    law: FloatArray = clipped(q[None, :], low, a, multipliers(q[None, :], low, a, np.ones(1)))[0]
    return law


def _left(owned: np.typing.NDArray[np.bool_], x: FloatArray, room: FloatArray) -> FloatArray:
    """What capped users leave over, for the categories that they lack in proportion to their rooms t − c."""
    rooms = np.where(owned, 0.0, room)
    left, sums = np.maximum(1 - x.sum(axis=1), 0.0), rooms.sum(axis=1)
    # A user who owns everything leaves nothing to share but a rounding error.
    part = np.divide(left, sums, out=np.zeros_like(left), where=sums > 0)
    more: FloatArray = rooms * np.minimum(part, 1.0)[:, None]
    return more


def total_variation(
    rows: sparse.csr_array[np.float64], floor: FloatArray, a: float, total: float
) -> FloatArray:
    """TV between every user and the best point of the box, in one pass over the non-zeros.

    min TV = max( Σ(p − a·c)₊ , Σ(c − p)₊ ), and the second sum is Σc − Σ_{p>0} min(c, p).
    """
    values = np.empty(rows.shape[0])
    for part, columns, p, starts in chunks(rows):
        c = floor[columns]
        over = np.add.reduceat(np.maximum(p - a * c, 0.0), starts)
        kept = np.add.reduceat(np.minimum(c, p), starts)
        values[part] = np.maximum(np.maximum(over, total - kept), 0.0)
    return values
