"""How a category is drawn where some are near each other: the nearest law of the box, then one uniform word.

The certificate is that of the box: whatever the rule finds has to lie in it, and is looked at before it is
drawn from. A stream takes the same rule for the box of each step.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..errors import CertificateError, MechanismFileError, ParameterError
from .arrays import IntegerArray, scaled_product
from .box import BoxEngine
from .engine import Weights
from .nearest_law import nearest_law, nearest_laws
from .stream import StepLaw, StreamEngine
from .tree import IntegerTree

if TYPE_CHECKING:
    from scipy import sparse

    from ..release.file import Fields

ENTRIES = 1 << 20
"""Users × categories of a batch, whose laws are written out."""
MOST_CATEGORIES, MOST_STEPPED = 1 << 20, 1 << 14
"""Categories for each unit of A − 1; and those of a stream, whose box may be as narrow as it likes."""
GEOMETRY = frozenset({"parents", "lengths"})


def targets_of(weights: Weights, n: int, total: int) -> list[int]:
    """What a user has of every category, in units: the differences of ⌊E_i·N/E_n⌋, E the running sums."""
    out, size, reached, given = [0] * n, sum([k for _, k in weights]), 0, 0
    for i, k in weights:
        reached += k
        upto = reached * total // size
        out[i], given = upto - given, upto
    return out


def targets_of_rows(rows: sparse.csr_array[Any], bits: int, public: IntegerArray) -> IntegerArray:
    """The same for every row, all categories written out; a user without records has the public law."""
    counts = np.asarray(rows.toarray(), dtype=np.int64).T
    empty = np.diff(rows.indptr) == 0
    reached = np.cumsum(counts, axis=0)
    size = np.maximum(reached[-1], 1)
    targets = np.diff(scaled_product(reached, 1 << bits, size), axis=0, prepend=0).T
    targets[empty] = np.broadcast_to(public, targets.shape)[empty]
    return np.ascontiguousarray(targets)


def geometry_of(document: Fields) -> IntegerTree:
    """The geometry of a mechanism file."""
    parents, lengths = document.plain["parents"], document.plain["lengths"]
    if not isinstance(parents, list) or not isinstance(lengths, list) or len(parents) > 2 * document.size:
        raise MechanismFileError(f"{document.source} does not have the fields of a geometry")
    try:
        return IntegerTree(tuple(parents), tuple(lengths))
    except ParameterError as problem:
        raise MechanismFileError(f"{document.source} is refused: {problem}") from None


def check_geometry(geometry: IntegerTree, size: int, most: int) -> None:
    """Refuse a geometry of other categories, or of more than a device can be asked for.

    The tree itself was checked when it was made. A narrow box moves a cut across many pieces.
    """
    if type(geometry.parents) is not tuple or len(geometry) != size or len(geometry.parents) > 2 * size:
        raise CertificateError("the geometry does not fit the categories")
    if size > most:
        raise CertificateError(
            f"a geometry takes at most {most} categories here; a larger epsilon allows more"
        )


@dataclass(frozen=True, eq=False)
class NearestEngine(BoxEngine):
    """The law of the box that is nearest to the user's data, drawn with one word."""

    kind: ClassVar[str] = "nearest"
    own_fields: ClassVar[frozenset[str]] = BoxEngine.own_fields | GEOMETRY
    tables: ClassVar[tuple[str, ...]] = ("_public", "geometry.work", "geometry.leaves")
    tables_many: ClassVar[tuple[str, ...]] = ()  # every law is written out
    geometry: IntegerTree = IntegerTree((1,), (0,))  # noqa: RUF009

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """The certificate of the box, and a geometry of its categories."""
        super().check(ratio, size, bits)
        check_geometry(self.geometry, size, int((ratio - 1) * MOST_CATEGORIES))

    @property
    def batch(self) -> int:
        """Fewer users, as every law is written out."""
        return max(ENTRIES // len(self.prior), 1)

    def units(self, weights: Weights) -> list[int]:
        """The law in units. Outside the box nothing is released."""
        low, high, total = self.box.low, self.box.high, self.box.total
        targets = targets_of(weights, len(low), total) if weights else self._public
        law = nearest_law(targets, low, high, self.geometry)
        inside = all(a <= x <= b for a, x, b in zip(low, law, high, strict=True))
        if not inside or sum(law) != total:
            raise CertificateError("a law left its box; nothing is released")
        return law

    def position(self, weights: Weights, words: list[int]) -> int:
        """The category that the word falls into."""
        (word,) = words
        return bisect_right(list(accumulate(self.units(weights))), word)

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same for every row. If one law is outside its box, nothing is released."""
        (drawn,) = words
        low, high = (np.array(side, dtype=np.int64) for side in (self.box.low, self.box.high))
        bits, public = self.box.total.bit_length() - 1, np.array(self._public, dtype=np.int64)
        laws = nearest_laws(targets_of_rows(rows, bits, public), low, high, self.geometry)
        ends = np.cumsum(laws, axis=1)
        if not ((low <= laws) & (laws <= high)).all() or not (ends[:, -1] == self.box.total).all():
            raise CertificateError("a law left its box; nothing is released")
        return np.asarray((ends <= drawn[:, None]).sum(axis=1))

    def law(self, weights: Weights) -> list[Fraction]:
        """The units as fractions of N."""
        return [Fraction(unit, self.box.total) for unit in self.units(weights)]

    def fields(self) -> dict[str, Any]:
        """Prior, floor and geometry."""
        return super().fields() | self.geometry.plain()

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """The box above the floor, the prior and the geometry."""
        box = BoxEngine.read(fields, ratio)
        return cls(box.box, box.prior, geometry=geometry_of(fields))


@dataclass(frozen=True, eq=False)
class NearestStreamEngine(StreamEngine):
    """A stream whose steps take the nearest law of their box."""

    kind: ClassVar[str] = "nearest-stream"
    own_fields: ClassVar[frozenset[str]] = StreamEngine.own_fields | GEOMETRY
    tables: ClassVar[tuple[str, ...]] = (*StreamEngine.tables, "geometry.work", "geometry.leaves")
    geometry: IntegerTree = IntegerTree((1,), (0,))  # noqa: RUF009

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """The certificate of the stream, and a geometry of its categories."""
        super().check(ratio, size, bits)
        check_geometry(self.geometry, size, MOST_STEPPED)

    def step_law(self, weights: Weights, least: int, most: int, last: int | None = None) -> StepLaw:
        """The law of a user at a step with these ratios. Outside the box nothing is released."""
        last = last if self.persistence else None
        before = self._before_of(last)
        prior = [end - begin for begin, end in pairwise(before)]
        if last is not None:
            prior[last] += self.prior_total - before[-1]
        targets = [weight << self.ratio_bits for weight in prior]
        if weights:
            targets = targets_of(weights, len(prior), self.total)
        low = [least * weight for weight in prior]
        high = [min(most * weight, self.total) for weight in prior]
        units = nearest_law(targets, low, high, self.geometry)
        law = StepLaw(dict(enumerate(zip(prior, units, strict=True))), least, 0, before)
        self._inside(law, least, most)
        return law

    def fields(self) -> dict[str, Any]:
        """The stream and its geometry."""
        return super().fields() | self.geometry.plain()

    @classmethod
    def read(cls, document: Fields, ratio: Fraction) -> Self:
        """What `fields` wrote."""
        return cls(**vars(StreamEngine.read(document, ratio)), geometry=geometry_of(document))
