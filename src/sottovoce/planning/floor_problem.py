"""The convex program behind the limit: the best floor for given users.

A sampler is a choice of floor and nothing else: whatever it does, its laws lie in the box of its floor
c_i = inf_p Q(p)_i, and the clip is the best point of that box for every user. So for given users no ε-private
sampler has a smaller mean + tail·maximum of the divergence than

    min_c F(c),    F(c) = Σ_u s_u·h_u(c) + tail·max_u h_u(c),    h_u(c) = min { D_f(p_u‖x) : c ≤ x ≤ a·c },

over q/a ≤ c ≤ q if the prior is kept, else over c ≥ 0 with Σc ≤ 1 ≤ a·Σc; a = e^ε, and s_u is the share of
the users with the distribution p_u. D_f is jointly convex, so h_u and F are convex in c.

Where nobody has category i, a smaller c_i is better for everybody: it takes its smallest value, and all such
categories enter through the sum of their floors alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._validate import FloatArray, IntArray
from ..divergences import TV, FDivergence
from ..errors import ParameterError
from ..samplers import clip
from ..samplers.blocks import blocks

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False, repr=False)
class FloorProblem:
    """Users over the categories that somebody has, and the box in which their best floor is sought."""

    rows: sparse.csr_array[np.float64]
    share: FloatArray  # of the users who have the distribution of a row
    low: FloatArray
    high: FloatArray
    rest: float  # Σc of the categories that nobody has
    a: float
    tail: float
    divergence: FDivergence
    keep_prior: bool

    @cached_property
    def owner(self) -> IntArray:
        """The row of every entry."""
        return np.repeat(np.arange(self.rows.shape[0]), np.diff(self.rows.indptr))

    def settle(self, c: FloatArray) -> FloatArray:
        """The floor of the domain that a point near the domain stands for."""
        inside = np.clip(c, self.low, self.high)
        if self.keep_prior:
            return inside
        total = float(inside.sum())  # scaling into Σc ≤ 1 ≤ a·Σc makes no user's total variation larger
        factor = total if total > 1 else min(self.a * total, 1.0)
        return np.asarray(inside / max(factor, np.finfo(np.float64).tiny))

    def objective(self, values: FloatArray) -> float:
        """F from one value per row."""
        worst = self.tail * float(values.max()) if self.tail > 0 else 0.0  # 0·∞ is nothing
        return float(self.share @ values) + worst

    def values(self, c: FloatArray) -> FloatArray:
        """h_u(c) of every row."""
        return self.tangents(c)[0]

    def tangents(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """h_u(c), its subgradient for every entry, and for all categories that the user lacks."""
        return self._tangents_tv(c) if self.divergence == TV else self._tangents_of_clip(c)

    def _tangents_tv(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """h = max(Σ(p − a·c)₊, Σ(c − p)₊): slope −a where p > a·c, or 1 where c > p."""
        p, own, starts = self.rows.data, c[self.rows.indices], self.rows.indptr[:-1]
        over = np.add.reduceat(np.maximum(p - self.a * own, 0.0), starts)
        under = float(c.sum()) + self.rest - np.add.reduceat(np.minimum(own, p), starts)
        boosted = over >= under
        slopes = np.where(boosted[self.owner], -self.a * (p > self.a * own), 1.0 * (own > p))
        return np.maximum(np.maximum(over, under), 0.0), slopes, np.where(boosted, 0.0, 1.0)

    def _tangents_of_clip(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The envelope theorem over the clip x = clip(p/r; c, a·c).

        With g(t) = f(t) − t·f'(t), decreasing, the price of one unit of mass is −g(r). Raising the floor of a
        category that sits on it costs g(p/x) − g(r) ≥ 0; raising the cap of one that sits there gains
        g(r) − g(p/x), a times as fast as c grows. Between floor and cap nothing changes.
        """
        f, total = self.divergence, float(c.sum()) + self.rest
        slope = required_slope(f)
        values, outside = np.empty(self.rows.shape[0]), np.empty(self.rows.shape[0])
        inside = np.empty(self.rows.nnz)
        first = self.rows.indptr[:-1]
        for block in blocks(self.rows):
            held = block.p > 0
            low = block.gather(c)
            u = clip.multipliers(block.p, low, self.a, 1 - (total - low.sum(axis=1)))
            x = clip.clipped(block.p, low, self.a, u)
            everything = (np.count_nonzero(held, axis=1) == self.rows.shape[1]) & (self.rest == 0)
            rest = np.where(everything, 0.0, np.maximum(1 - x.sum(axis=1), np.finfo(np.float64).tiny))
            values[block.rows] = f.on_support(block.p, x, rest)
            ratio = np.divide(block.p, x, out=np.ones_like(x), where=held & (x > 0))
            spilt = np.isinf(u)  # mass is left with everything the user has at its cap
            own = slope(ratio)
            highest = own.max(axis=1) if math.isinf(f.at_zero) else np.full(len(u), f.at_zero)
            price = np.where(spilt, highest, slope(1 / np.where(spilt, 1.0, u)))
            steps = own - price[:, None]
            scaled = np.where(held, np.where(spilt, np.inf, u)[:, None] * np.where(held, block.p, 1.0), 0.0)
            at_floor, at_cap = scaled <= low, scaled >= self.a * low
            steps = np.where(
                at_cap, self.a * np.minimum(steps, 0), np.where(at_floor, np.maximum(steps, 0), 0.0)
            )
            outside[block.rows] = 0.0 if math.isinf(f.at_zero) else np.where(spilt, 0.0, f.at_zero - price)
            entry = first[block.rows][:, None] + np.arange(block.p.shape[1])
            inside[entry[held]] = steps[held]
        return values, inside, np.maximum(outside, 0.0)

    def gradient(self, weights: FloatArray, inside: FloatArray, outside: FloatArray) -> FloatArray:
        """Σ_u w_u·(subgradient of h_u), one number per category."""
        entries = (weights * outside)[self.owner]
        moved = np.bincount(
            self.rows.indices, weights[self.owner] * inside - entries, minlength=self.rows.shape[1]
        )
        return np.asarray(moved + float(weights @ outside))


def required_slope(f: FDivergence) -> Callable[[FloatArray], FloatArray]:
    """The slope of a divergence that knows it."""
    if f.slope is None:
        raise ParameterError(
            f"divergence {f.name!r} does not know its slope: FDivergence(…, slope=…), or take sottovoce.TV"
        )
    return f.slope


def rounding(*terms: FloatArray, depth: int) -> float:
    """What rounding may have added to a sum of these terms, each a sum of at most `depth` numbers."""
    size = sum(float(np.abs(one).sum()) for one in terms)
    return 4 * np.finfo(np.float64).eps * (depth + sum(one.size for one in terms)) * size
