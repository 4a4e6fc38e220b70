"""How a survey draws: one of the user's records, a random question, and randomized response on its answer.

The question does not depend on the user, and the answer goes through randomized response on f values: the
certificate is that of the response. Nothing is stored for a category.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..errors import CertificateError
from .arithmetic import check_response, shares, whole_numbers
from .arrays import IntegerArray, shifted_product
from .constants import LARGEST_BASE, LARGEST_INTEGER
from .engine import Weights
from .kernel import LinearEngine, choose_record, choose_records

if TYPE_CHECKING:
    from scipy import sparse

    from ..release.file import Fields

NOTHING = np.zeros(0, dtype=np.int64)


class Numbers(Mapping[Any, int]):
    """The reports of a survey as an index of themselves: 0 to size − 1."""

    def __init__(self, size: int) -> None:
        self._all = range(size)

    def __getitem__(self, answer: Any) -> int:
        if isinstance(answer, bool) or not isinstance(answer, int | np.integer) or answer not in self._all:
            raise KeyError
        return int(answer)

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


@dataclass(frozen=True, eq=False)
class SurveyEngine(LinearEngine):
    """Randomized response on the answer to a random question; `samplers.survey` has the definitions."""

    kind: ClassVar[str] = "survey"
    own_fields: ClassVar[frozenset[str]] = frozenset({"base", "own", "other"})
    tables: ClassVar[tuple[str, ...]] = ("_levels",)
    tables_many: ClassVar[tuple[str, ...]] = ("_public",)
    base: int
    own: int
    other: int
    categories: int
    bits: int
    words = 3

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """The two weights of the response, and a base for which estimates can be made."""
        whole_numbers([self.base, self.own, self.other])
        if self.bits != bits or self.categories != size:
            raise CertificateError("the survey does not fit the categories")
        if not 2 <= self.base < LARGEST_BASE or any(
            self.base % f == 0 for f in range(2, 256) if f < self.base
        ):
            raise CertificateError(f"the base of a survey must be a prime below {LARGEST_BASE}")
        if self.reports >= LARGEST_INTEGER:
            raise CertificateError("a report of the survey would not stay below 2^53")
        check_response(self.own, self.other, self.base, ratio, 1 << bits)

    def keeps_prior(self) -> bool:
        """A report is not a category."""
        return False

    @cached_property
    def digits(self) -> int:
        """d, the digits of a category and of a question."""
        return digits_of(self.categories, self.base)

    @property
    def questions(self) -> int:
        """σ = (f^d − 1)/(f − 1)."""
        return int((self.base**self.digits - 1) // (self.base - 1))

    @property
    def reports(self) -> int:
        """How many different reports there are."""
        return self.questions * self.base

    @cached_property
    def _levels(self) -> tuple[tuple[int, int], ...]:
        """(first question, f^k) of those with k digits behind their leading 1, for k = 0 … d − 1."""
        return tuple(((self.base**k - 1) // (self.base - 1), self.base**k) for k in range(self.digits))

    def vector(self, question: int) -> int:
        """The vector of a question as one integer: its digits in base f, the first of which is 1."""
        first, power = next(level for level in reversed(self._levels) if level[0] <= question)
        return power + question - first

    def vectors(self, questions: IntegerArray) -> IntegerArray:
        """The same for many."""
        first, power = np.array(self._levels, dtype=np.int64).T
        level = np.searchsorted(first, questions, side="right") - 1
        return np.asarray(power[level] + questions - first[level])

    def answer(self, vector: int, category: int) -> int:
        """h_s(i): the sum of the products of their digits, modulo f."""
        total = 0
        for _ in range(self.digits):  # as many steps for every category
            vector, v = divmod(vector, self.base)
            category, w = divmod(category, self.base)
            total += v * w
        return total % self.base

    def position(self, weights: Weights, words: list[int]) -> int:
        """Choose a record and a question, and answer it: the right answer with `own` units."""
        chosen, asked, u = words
        if weights:
            index = choose_record(weights, chosen, self.bits, NOTHING)
        else:
            index = chosen * self.categories >> self.bits
        question = asked * self.questions >> self.bits
        right = self.answer(self.vector(question), index)
        if u < self.own:
            return question * self.base + right
        step = (u - self.own) // self.other
        return question * self.base + step + (step >= right)

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same, for all rows at once."""
        chosen, asked, u = words
        category = choose_records(rows, chosen, self.bits, self._public)
        question = shifted_product(asked, np.full(len(asked), self.questions, dtype=np.int64), self.bits)
        vector, right = self.vectors(question), np.zeros(len(asked), dtype=np.int64)
        for _ in range(self.digits):
            vector, v = np.divmod(vector, self.base)
            category, w = np.divmod(category, self.base)
            right += v * w
        right %= self.base
        step = (u - self.own) // self.other
        return np.asarray(question * self.base + np.where(u < self.own, right, step + (step >= right)))

    def row(self, index: int) -> list[Fraction]:
        """The exact law of one record."""
        total, out = 1 << self.bits, []
        for s, words in enumerate(shares([1] * self.questions, total)):
            right = self.answer(self.vector(s), index)
            weights = (self.own if value == right else self.other for value in range(self.base))
            out += [Fraction(words * weight, total * total) for weight in weights]
        return out

    def prior_weights(self) -> Sequence[int]:
        """The uniform prior: category i has the words with ⌊word·n/N⌋ = i."""
        return shares([1] * self.categories, 1 << self.bits)

    def fields(self) -> dict[str, Any]:
        """The base and the two weights."""
        return {"base": self.base, "own": str(self.own), "other": str(self.other)}

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """The base and the two weights."""
        own, other = fields.whole("own"), fields.whole("other")
        return cls(fields.plain["base"], own, other, fields.size, fields.bits)


def digits_of(categories: int, base: int) -> int:
    """d, the digits that number so many categories in this base."""
    digits, reach = 1, base
    while reach < categories:
        digits, reach = digits + 1, reach * base
    return digits
