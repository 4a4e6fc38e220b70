"""What draws: certified integers, a fixed number of uniform words, and a law that can be stated.

Every engine needs as many uniform words below N = 2^bits for one user as for any other, whatever their data
are, and can state its law as exact fractions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from .arrays import IntegerArray

if TYPE_CHECKING:
    from scipy import sparse

    from ..release.file import Fields

Weights: TypeAlias = list[tuple[int, int]]
"""(position, weight ≥ 1) of the categories a user has, by position."""

BATCH = 1 << 17


class Engine(ABC):
    """Something that turns a user's integers and some uniform words into a position."""

    kind: ClassVar[str]
    """What a mechanism file calls it."""
    version: ClassVar[int] = 1
    """The version of the format that has this kind first."""
    own_fields: ClassVar[frozenset[str]]
    """What its mechanism file has besides the fields of every document."""
    tables: ClassVar[tuple[str, ...]] = ()
    """What every release looks things up in."""
    tables_many: ClassVar[tuple[str, ...]] = ()
    """What only a batch needs: `prepare` leaves it out, because a device never needs it."""
    words: ClassVar[int] = 1
    """How many uniform words one release needs, always."""
    prior: tuple[int, ...]
    _arrays: Any  # cached, of an engine that has views of them

    @property
    def batch(self) -> int:
        """Users of one batch: it bounds the randomness in flight, and is the work of one thread."""
        return BATCH

    def __getstate__(self) -> dict[str, Any]:
        return only_fields(self)

    @abstractmethod
    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """Check its whole certificate in exact arithmetic; raise CertificateError if anything is off."""

    @abstractmethod
    def keeps_prior(self) -> bool:
        """Whether a user equal to the prior releases exactly the prior, decided on the integers."""

    def prepare(self, *, many: bool = False) -> None:
        """Build every table now, so that no user has to wait for it; with `many` those of a batch."""
        for table in self.tables_many if many else self.tables:
            attrgetter(table)(self)

    def position(self, weights: Weights, words: list[int]) -> int:
        """The released category's position; a stream has `next_law` and `drawn` instead."""
        raise NotImplementedError

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same for every row, with one array per word."""
        raise NotImplementedError

    @cached_property
    def _views(self) -> tuple[memoryview, ...]:
        """The arrays as memory views, which hand out plain integers quickly."""
        return tuple(array.data for array in self._arrays)

    @abstractmethod
    def law(self, weights: Weights) -> list[Fraction]:
        """The exact probability of every category; of a stream that of the first release."""

    def prior_weights(self) -> Sequence[int]:
        """The prior in units, in the order of the categories."""
        return self.prior

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Its integers as plain values for a mechanism file."""

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """What `fields` wrote, read again; the certificate is not checked yet."""


def row_weights(rows: sparse.csr_array[Any], i: int) -> Weights:
    """One user's integers from a row of many."""
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return list(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True))


def only_fields(value: Any) -> dict[str, Any]:
    """The state to pickle: the fields of a frozen value, without what it has cached."""
    return {field.name: getattr(value, field.name) for field in fields(value)}
