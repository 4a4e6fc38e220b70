"""How a linear mechanism draws: choose one of the user's records, then draw the row of that record.

Each record is as likely as any other. Privacy rests on the row alone; the record only decides what is
released.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..errors import CertificateError
from .arithmetic import (
    IntegerKernel,
    check_kernel,
    check_prior_weights,
    check_response,
    shares,
    whole_numbers,
)
from .arrays import IntegerArray, packs, running_sums, shifted_product
from .engine import Engine, Weights

if TYPE_CHECKING:
    from scipy import sparse

    from ..release.file import Fields


def choose_record(weights: Weights, word: int, bits: int, public: IntegerArray) -> int:
    """The position of one of the user's records: record number ⌊word·K/2^bits⌋ of K.

    A user without records has those of the prior, whose running sums are `public`: K = 2^bits, number `word`.
    """
    if not weights:
        return int(np.searchsorted(public, word, side="right")) - 1
    ends = list(accumulate([weight for _, weight in weights]))
    return weights[bisect_right(ends, word * ends[-1] >> bits)][0]


def choose_records(
    rows: sparse.csr_array[Any], word: IntegerArray, bits: int, public: IntegerArray
) -> IntegerArray:
    """The same for every row."""
    out = np.empty(rows.shape[0], dtype=np.int64)
    empty = np.diff(rows.indptr) == 0
    out[empty] = np.searchsorted(public, word[empty], side="right") - 1
    for users, indices, counts in packs(rows):
        reached = np.cumsum(counts, axis=0)
        number = shifted_product(word[users], reached[-1], bits)
        chosen = np.count_nonzero(reached <= number, axis=0)
        out[users] = indices[chosen, np.arange(len(users))]
    return out


def record_law(weights: Weights, bits: int) -> list[tuple[int, Fraction]]:
    """The exact probability with which each of the user's categories is chosen."""
    words = shares([weight for _, weight in weights], 1 << bits)
    return [(index, Fraction(count, 1 << bits)) for (index, _), count in zip(weights, words, strict=True)]


class LinearEngine(Engine):
    """What the linear engines have in common: one random record of the user is all that they look at."""

    bits: int

    @cached_property
    def _public(self) -> IntegerArray:
        """The running sums of the prior, in the order of the categories."""
        return running_sums(self.prior_weights())

    def law(self, weights: Weights) -> list[Fraction]:
        """The mixture of the rows of the user's records."""
        held = record_law(weights or list(enumerate(self.prior_weights())), self.bits)
        rows = [(share, self.row(index)) for index, share in held]
        return [sum((share * row[i] for share, row in rows), Fraction(0)) for i in range(len(rows[0][1]))]

    @abstractmethod
    def row(self, index: int) -> list[Fraction]:
        """The exact law of one record."""


@dataclass(frozen=True, eq=False)
class KernelEngine(LinearEngine):
    """The paper's kernel: choose a record, then draw its row with two more words, in O(log n)."""

    kind: ClassVar[str] = "kernel"
    own_fields: ClassVar[frozenset[str]] = frozenset({"prior", "low", "own", "order"})
    tables: ClassVar[tuple[str, ...]] = ("_views", "_public")
    kernel: IntegerKernel
    order: tuple[int, ...]
    bits: int
    words = 3

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """Every column of the kernel, and an order that is one."""
        kernel = self.kernel
        whole_numbers(kernel.prior, kernel.low, kernel.own, self.order)
        if kernel.total != 1 << bits or self.bits != bits or len(kernel.prior) != size:
            raise CertificateError("the kernel does not fit the categories")
        order = set(self.order)
        if not len(self.order) == len(order) == size or min(order) != 0 or max(order) != size - 1:
            raise CertificateError("the order of the categories is not a permutation")
        check_kernel(kernel, ratio)

    def keeps_prior(self) -> bool:
        """The paper's kernel keeps its own prior, up to the units of the rounding."""
        return True

    @cached_property
    def _arrays(self) -> tuple[IntegerArray, ...]:
        """order, rank, floors before a rank, own, prior before a rank."""
        order = np.array(self.order, dtype=np.int64)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        before, passed = running_sums(self.kernel.low), running_sums(self.kernel.prior)
        return order, rank, before, np.array(self.kernel.own, dtype=np.int64), passed

    def position(self, weights: Weights, words: list[int]) -> int:
        """Floors of the lower ranks, then the category itself, then the tail in proportion to the prior."""
        order, rank, before, own, passed = self._views
        chosen, u, v = words
        index = choose_record(weights, chosen, self.bits, self._public)
        r = rank[index]
        start = before[r]
        if u < start:
            return int(order[bisect_right(before, u) - 1])
        if u < start + own[r]:
            return index
        behind = passed[r + 1]
        return int(order[bisect_right(passed, behind + (v * (self.kernel.total - behind) >> self.bits)) - 1])

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same, for all rows at once."""
        order, rank, before, own, passed = self._arrays
        chosen, u, v = words
        index = choose_records(rows, chosen, self.bits, self._public)
        r = rank[index]
        start = before[r]
        lower = u < start
        beyond = u >= start + own[r]
        index[lower] = order[np.searchsorted(before, u[lower], side="right") - 1]
        behind = passed[r[beyond] + 1]
        at = behind + shifted_product(v[beyond], self.kernel.total - behind, self.bits)
        index[beyond] = order[np.searchsorted(passed, at, side="right") - 1]
        return index

    def row(self, index: int) -> list[Fraction]:
        """The exact law of one record."""
        kernel, total = self.kernel, self.kernel.total
        r = self.order.index(index)
        out = [Fraction(0)] * len(self.order)
        for j in range(r):
            out[self.order[j]] = Fraction(kernel.low[j], total)
        out[index] = Fraction(kernel.own[r], total)
        tail = Fraction(total - sum(kernel.low[:r]) - kernel.own[r], total)
        words = shares(kernel.prior[r + 1 :], total)
        for place, count in zip(self.order[r + 1 :], words, strict=True):
            out[place] = tail * Fraction(count, total)
        return out

    def prior_weights(self) -> Sequence[int]:
        """Put back from ascending order."""
        weights = [0] * len(self.order)
        for index, weight in zip(self.order, self.kernel.prior, strict=True):
            weights[index] = weight
        return weights

    def fields(self) -> dict[str, Any]:
        """The vectors in ascending order of the prior, and that order."""
        units = {"prior": self.kernel.prior, "low": self.kernel.low, "own": self.kernel.own}
        return {"order": list(self.order)} | {key: list(map(str, v)) for key, v in units.items()}

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """The three vectors and their order."""
        prior, low, own = (fields.wholes(name) for name in ("prior", "low", "own"))
        return cls(IntegerKernel(prior, low, own, 1 << fields.bits), fields.positions("order"), fields.bits)


@dataclass(frozen=True, eq=False)
class ResponseEngine(LinearEngine):
    """Randomized response on the kept positions: choose a record, then one word, in O(1)."""

    kind: ClassVar[str] = "response"
    own_fields: ClassVar[frozenset[str]] = frozenset({"kept", "own", "other", "prior"})
    tables: ClassVar[tuple[str, ...]] = ("_arrays", "_public")
    kept: tuple[int, ...]
    own: int
    other: int
    categories: int
    prior: tuple[int, ...]
    bits: int
    words = 2

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """The two weights of a row, kept categories that are some, and weights of the prior."""
        whole_numbers(self.kept, self.prior, [self.own, self.other])
        if self.bits != bits or self.categories != size or not self.kept:
            raise CertificateError("the response does not fit the categories")
        if len(set(self.kept)) != len(self.kept) or not all(0 <= index < size for index in self.kept):
            raise CertificateError("the kept categories are not distinct categories")
        check_response(self.own, self.other, len(self.kept), ratio, 1 << bits)
        check_prior_weights(self.prior, size, 1 << bits)

    def keeps_prior(self) -> bool:
        """Only the uniform prior, and only if nothing is dropped."""
        return len(self.kept) == self.categories and max(self.prior) - min(self.prior) <= 1

    @cached_property
    def _arrays(self) -> tuple[IntegerArray, IntegerArray]:
        """The kept categories, and the index of each category among them; -1 for those that are not kept."""
        kept = np.array(self.kept, dtype=np.int64)
        slot = np.full(self.categories, -1, dtype=np.int64)
        slot[kept] = np.arange(len(kept))
        return kept, slot

    def position(self, weights: Weights, words: list[int]) -> int:
        """The record itself with `own` units, each other kept category with `other`."""
        chosen, u = words
        index = choose_record(weights, chosen, self.bits, self._public)
        slot = int(self._arrays[1][index])
        if slot < 0:
            return self.kept[u * len(self.kept) >> self.bits]
        if u < self.own:
            return index
        step = (u - self.own) // self.other
        return self.kept[step + (step >= slot)]

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same, for all rows at once."""
        kept, slots = self._arrays
        chosen, u = words
        index = choose_records(rows, chosen, self.bits, self._public)
        slot = slots[index]
        outside = slot < 0
        changed = ~outside & (u >= self.own)
        step = (u[changed] - self.own) // max(self.other, 1)
        index[changed] = kept[step + (step >= slot[changed])]
        size = np.full(int(outside.sum()), len(kept), dtype=np.int64)
        index[outside] = kept[shifted_product(u[outside], size, self.bits)]
        return index

    def row(self, index: int) -> list[Fraction]:
        """The exact law of one record."""
        total = 1 << self.bits
        out = [Fraction(0)] * self.categories
        if index in self.kept:
            for other in self.kept:
                out[other] = Fraction(self.other, total)
            out[index] = Fraction(self.own, total)
            return out
        for member, share in record_law([(index, 1) for index in self.kept], self.bits):
            out[member] = share
        return out

    def fields(self) -> dict[str, Any]:
        """The kept positions and the two weights."""
        units = {"own": str(self.own), "other": str(self.other), "prior": list(map(str, self.prior))}
        return {"kept": list(self.kept), **units}

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """The kept positions, the two weights and the prior."""
        own, other, prior = fields.whole("own"), fields.whole("other"), fields.wholes("prior")
        return cls(fields.positions("kept"), own, other, fields.size, prior, fields.bits)
