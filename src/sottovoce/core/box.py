"""How a category is drawn from a box: the exact clip, then one uniform word."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..errors import CertificateError
from .arithmetic import Box, certified_box, check_prior_weights, exact_clip, shares, whole_numbers
from .arrays import IntegerArray, running_sums
from .box_many import Capped, Filter, decided
from .engine import Engine, Weights, row_weights

if TYPE_CHECKING:
    from scipy import sparse

    from ..release.file import Fields


@dataclass(frozen=True, eq=False)
class BoxEngine(Engine):
    """Clip samplers: the exact clip of the user's integers into the box, drawn with one word."""

    kind: ClassVar[str] = "box"
    own_fields: ClassVar[frozenset[str]] = frozenset({"prior", "low"})
    tables: ClassVar[tuple[str, ...]] = ("_views",)
    tables_many: ClassVar[tuple[str, ...]] = ("_filter", "_capped_many")
    box: Box
    prior: tuple[int, ...]

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """The box above its floor, and weights of the prior."""
        total = 1 << bits
        whole_numbers(self.box.low, self.box.high, self.prior)
        box = certified_box(self.box.low, ratio, total)
        if box != self.box or len(box.low) != size:
            raise CertificateError("the box is not the one above its floor")
        check_prior_weights(self.prior, size, total)

    def keeps_prior(self) -> bool:
        """The prior lies in the box."""
        box = self.box
        return all(a <= w <= b for a, w, b in zip(box.low, self.prior, box.high, strict=True))

    @cached_property
    def _public(self) -> tuple[int, ...]:
        """What a user without records releases, in units: the clip of the prior's own weights."""
        if self.keeps_prior():  # then the clip is the prior
            return self.prior
        return tuple(exact_clip(self.prior, self.box.low, self.box.high, self.box.total))

    @cached_property
    def _arrays(self) -> tuple[IntegerArray, IntegerArray, IntegerArray]:
        """Running sums of the floors, of what the public law has above them, and of the public law.

        Each has one more entry than there are categories. Outside the box nothing is released.
        """
        low, public = self.box.low, self._public
        inside = all(a <= t <= b for a, t, b in zip(low, public, self.box.high, strict=True))
        if not inside or sum(public) != self.box.total:
            raise CertificateError("the public law left its box; nothing is released")
        floors, ends = running_sums(low), running_sums(public)
        return floors, ends - floors, ends

    @cached_property
    def _filter(self) -> Filter:
        """The coarse tables for batches."""
        return Filter(self.box)

    @cached_property
    def _capped_many(self) -> Capped:
        """The tables for capped users in batches."""
        return Capped(self.box, *self._arrays[:2])

    def clipped(self, weights: Weights) -> Weights:
        """The exact clip of the weights, in units; a capped user's are all at their caps, with units left."""
        low, high = self.box.low, self.box.high
        own = [i for i, _ in weights]
        own_low, own_high = [low[i] for i in own], [high[i] for i in own]
        target = min(self.box.total - self._views[0][-1] + sum(own_low), sum(own_high))
        return list(zip(own, exact_clip([k for _, k in weights], own_low, own_high, target), strict=True))

    def _left(self, units: Weights) -> tuple[int, int]:
        """How many units are left for the categories that a user lacks, and how many these have room for.

        The room of a category is what the public law has above its floor. Units that are not in the box, or
        more of them left than there is room for, are a law outside the box: nothing is released.
        """
        low, high = self.box.low, self.box.high
        floors, above, _ = self._views
        left = self.box.total - floors[-1] - sum([unit - low[i] for i, unit in units])
        room = above[-1] - sum([above[i + 1] - above[i] for i, _ in units])
        if not all(low[i] <= unit <= high[i] for i, unit in units) or not 0 <= left <= room:
            raise CertificateError("a law left its box; nothing is released")
        return left, room

    def position(self, weights: Weights, words: list[int]) -> int:
        """Own categories and floors first, in the order of the categories; then what a capped user leaves.

        That is shared among the categories that the user lacks, in proportion to their rooms.
        """
        floors, above, public = self._views
        (u,) = words
        if not weights:
            return bisect_right(public, u) - 1
        units = self.clipped(weights)
        left, room = self._left(units)
        number = u - (self.box.total - left)  # of the units that are left
        if number < 0:
            return walk(floors, units, u)
        return walk(above, [(i, 0) for i, _ in units], number * room // left)

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same for all rows at once where that is proved, and row by row for the few words in doubt."""
        (drawn,) = words
        out, sure = decided(rows, drawn, self._filter, self._capped_many)
        empty = np.diff(rows.indptr) == 0
        out[empty] = np.searchsorted(self._arrays[2], drawn[empty], side="right") - 1
        for i in np.flatnonzero(~(sure | empty)).tolist():
            out[i] = self.position(row_weights(rows, i), [int(drawn[i])])
        return out

    def law(self, weights: Weights) -> list[Fraction]:
        """Floors, the units of the user's own categories, and what is left in proportion to the rooms."""
        low, total = self.box.low, self.box.total
        if not weights:
            return [Fraction(unit, total) for unit in self._public]
        own = dict(self.clipped(weights))
        left, _ = self._left(list(own.items()))
        more = shares([0 if i in own else t - low[i] for i, t in enumerate(self._public)], left)
        return [Fraction(own.get(i, a) + b, total) for i, (a, b) in enumerate(zip(low, more, strict=True))]

    def fields(self) -> dict[str, Any]:
        """Prior and floor, in the order of the categories."""
        return {"prior": list(map(str, self.prior)), "low": list(map(str, self.box.low))}

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """The box above the floor, and the prior."""
        prior, low = fields.wholes("prior"), fields.wholes("low")
        if ratio < 1:
            raise CertificateError("the ratio A must be at least 1")
        return cls(certified_box(low, ratio, 1 << fields.bits), prior)


def walk(before: Sequence[int], units: Weights, number: int) -> int:
    """The category of a number below the sum of the weights: `units`, and for the others those of `before`.

    `before` are running sums over all categories. O(units + log n).
    """
    shift = 0
    for i, unit in units:
        start = before[i] + shift
        if number < start:
            break
        if number < start + unit:
            return i
        shift += unit - (before[i + 1] - before[i])
    return bisect_right(before, number - shift) - 1
