"""How a category is drawn from a box: the exact clip, then one uniform word.

Each engine holds certified integers, needs a fixed number of uniform words below N = 2^bits whatever the
user's data are, and can state its law as exact fractions. There is no float in this file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from ..errors import CertificateError
from .box_fast import MOST, Descent, Filter, IntegerArray, Spread, decided
from .exact import Box, certified_box, check_prior_weights, exact_clip, whole_numbers
from .weights import Weights

if TYPE_CHECKING:
    from scipy import sparse

    from .file import Fields

WALKED = 256
"""With so many categories or fewer, what a capped user leaves over is spread by a walk over all of them."""


class Engine(Protocol):
    """Something that turns a user's integers and some uniform words into a position."""

    kind: ClassVar[str]
    """What a mechanism file calls it."""
    version: ClassVar[int]
    """The version of the format that has this kind first."""
    own_fields: ClassVar[frozenset[str]]
    """What its mechanism file has besides the fields of every document."""
    linear: ClassVar[bool]
    """Whether one random record of the user is all that is looked at."""

    @property
    def words(self) -> int:
        """How many uniform words one release needs, always."""

    @property
    def samples(self) -> int:
        """How many categories one release gives."""

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """Check its whole certificate in exact arithmetic; raise CertificateError if anything is off."""

    def keeps_prior(self) -> bool:
        """Whether a user equal to the prior releases exactly the prior, decided on the integers."""

    def prepare(self) -> None:
        """Build every table now, so that no user has to wait for it."""

    def prepare_many(self) -> None:
        """Build now what only a batch needs; `prepare` leaves it out, because a device never needs it."""

    def position(self, weights: Weights, words: list[int]) -> Any:
        """The released category's position; with several samples, a tuple of them."""

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same for every row, with one array per word; with several samples a row of positions each."""

    def law(self, weights: Weights) -> list[Fraction]:
        """The exact probability of every category; with several samples, of every tuple in order."""

    def prior_weights(self) -> Sequence[int]:
        """The prior in units, in the order of the categories."""

    def fields(self) -> dict[str, Any]:
        """Its integers as plain values for a mechanism file."""

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """What `fields` wrote, read again; the certificate is not checked yet."""


@dataclass(frozen=True, eq=False)
class BoxEngine:
    """Clip samplers: the exact clip of the user's integers into the box, drawn with one word."""

    kind: ClassVar[str] = "box"
    version: ClassVar[int] = 1
    samples: ClassVar[int] = 1
    own_fields: ClassVar[frozenset[str]] = frozenset({"prior", "low"})
    linear: ClassVar[bool] = False
    box: Box
    prior: tuple[int, ...]
    words: int = 1

    def __getstate__(self) -> dict[str, Any]:
        return only_fields(self)

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
    def _before(self) -> tuple[int, ...]:
        """Σ_{j<i} low_j, with Σlow at the end."""
        return (0, *accumulate(self.box.low))

    @cached_property
    def _public(self) -> IntegerArray:
        """The running sums of what a user without records releases: the clip of the prior's own weights."""
        if self.keeps_prior():  # then the clip is the prior
            return running_sums(self.prior)
        return running_sums(exact_clip(self.prior, self.box.low, self.box.high, self.box.total))

    @cached_property
    def _spread(self) -> Spread | None:
        """The tables for capped users; whether there are any depends on public numbers alone."""
        return Spread(self.box, self.prior) if len(self.prior) > WALKED else None

    @cached_property
    def _filter(self) -> Filter:
        """The coarse tables for batches."""
        return Filter(self.box)

    @cached_property
    def _descent(self) -> Descent | None:
        """The tables for capped users in batches."""
        return Descent(self.box, self.prior) if len(self.prior) <= MOST else None

    def prepare_many(self) -> None:
        """Build the tables that only a batch needs."""
        _ = self._filter, self._descent

    def prepare(self) -> None:
        """Build every table now: neither the first user nor the first capped one should wait for them."""
        _ = self._before, self._public, self._spread

    def _capped(self, weights: Weights) -> bool:
        """Whether everything the user has sits at its cap and units are still left."""
        low, high = self.box.low, self.box.high
        return sum([high[i] - low[i] for i, _ in weights]) < self.box.total - self._before[-1]

    def clipped(self, weights: Weights) -> Weights:
        """The units that differ from the floor: those of the user's categories, or all when these are capped.

        They are checked once more: outside the box nothing is released.
        """
        low, high = self.box.low, self.box.high
        units = self._clipped(weights or list(enumerate(self.prior)))
        over = sum([unit - low[i] for i, unit in units])
        inside = all(low[i] <= unit <= high[i] for i, unit in units)
        if not inside or self._before[-1] + over != self.box.total:
            raise CertificateError("a law left its box; nothing is released")
        return units

    def _clipped(self, weights: Weights) -> Weights:
        """The exact clip of the user's integers."""
        low, high, total = self.box.low, self.box.high, self.box.total
        own = [i for i, _ in weights]
        own_low = [low[i] for i in own]
        own_high = [high[i] for i in own]
        if not self._capped(weights):
            target = total - self._before[-1] + sum(own_low)
            clipped = exact_clip([k for _, k in weights], own_low, own_high, target)
            return list(zip(own, clipped, strict=True))
        owned = set(own)
        others = [i for i in range(len(low)) if i not in owned]
        rest = exact_clip(
            [self.prior[i] for i in others],
            [low[i] for i in others],
            [high[i] for i in others],
            total - sum(own_high),
        )
        return sorted([*zip(own, own_high, strict=True), *zip(others, rest, strict=True)])

    def position(self, weights: Weights, words: list[int]) -> int:
        """Walk over the categories that differ from their floor; between them, search the floors.

        For a capped user that would be all categories: the tables answer almost every word without a walk.
        """
        before, low = self._before, self.box.low
        (u,) = words
        if not weights:
            return int(np.searchsorted(self._public, u, side="right"))
        if self._spread is not None and self._capped(weights):
            category = self._spread.locate([i for i, _ in weights], u)
            if category is not None:
                return category
        shift = 0
        for i, weight in self.clipped(weights):
            start = before[i] + shift
            if u < start:
                break
            if u < start + weight:
                return i
            shift += weight - low[i]
        return bisect_right(before, u - shift) - 1

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same for all rows at once where that is proved, and row by row for the few words in doubt."""
        (drawn,) = words
        out, sure = decided(rows, drawn, self._filter, self._descent)
        empty = np.diff(rows.indptr) == 0
        out[empty], sure[empty] = np.searchsorted(self._public, drawn[empty], side="right"), True
        for i in np.flatnonzero(~sure).tolist():
            out[i] = self.position(row_weights(rows, i), [int(drawn[i])])
        return out

    def law(self, weights: Weights) -> list[Fraction]:
        """Floors, except where the clip put more."""
        units = list(self.box.low)
        for i, weight in self.clipped(weights):
            units[i] = weight
        return [Fraction(unit, self.box.total) for unit in units]

    def prior_weights(self) -> Sequence[int]:
        """As they are stored."""
        return self.prior

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


def running_sums(weights: Sequence[int]) -> IntegerArray:
    """The running sums of weights that add up to 2^bits."""
    return np.cumsum(np.array(weights, dtype=np.int64))


def row_weights(rows: sparse.csr_array[Any], i: int) -> Weights:
    """One user's integers from a row of many."""
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return list(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True))


def only_fields(value: Any) -> dict[str, Any]:
    """The state to pickle: the fields of a frozen value, without what it has cached."""
    return {field.name: getattr(value, field.name) for field in fields(value)}
