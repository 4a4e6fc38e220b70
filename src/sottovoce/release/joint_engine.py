"""How k categories are drawn for one ε: the exact clip of p^⊗k into the joint box, then k words as one.

Nothing is tried and thrown away: a release takes k words, whoever the user is, and they are one uniform whole
number below N^k. There is no float in this file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ..errors import CertificateError, ParameterError
from .box_engine import BoxEngine, IntegerArray, only_fields
from .classes import MOST_CLASSES, most_groups, order_number
from .document import Fields, whole_texts
from .exact import certified_box, check_prior_weights, whole_numbers
from .joint_box import JointBox, JointLaw
from .weights import Weights

if TYPE_CHECKING:
    from scipy import sparse

LISTED = 1_000_000
"""Tuples that `law` writes out at most."""


REMEMBERED = 2 * MOST_CLASSES
"""Classes of all the laws that a batch keeps at hand: some tens of megabytes."""


class _Ready(NamedTuple):
    """The units of a law added up: of single categories if samples are independent, else of classes."""

    reached: list[int]
    law: JointLaw | None


@dataclass(frozen=True, eq=False)
class JointEngine:
    """Several samples of a clip sampler: the exact clip into the joint box, drawn with a word per sample."""

    kind: ClassVar[str] = "joint"
    version: ClassVar[int] = 2
    own_fields: ClassVar[frozenset[str]] = frozenset({"prior", "low", "samples"})
    linear: ClassVar[bool] = False
    box: JointBox
    prior: tuple[int, ...]

    def __getstate__(self) -> dict[str, Any]:
        return only_fields(self)

    @property
    def samples(self) -> int:
        """How many categories one release gives."""
        return self.box.samples

    @property
    def words(self) -> int:
        """One for each sample."""
        return self.box.samples

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """The joint box above its floor, and weights of the prior."""
        whole_numbers(self.prior)
        if type(self.box) is not JointBox or len(self.box.low) != size:
            raise CertificateError("the joint box does not have one floor per category")
        if self.box.ratio != ratio or self.box.total != 1 << bits:
            raise CertificateError("the joint box is not the one above its floor")
        self.box.check()
        check_prior_weights(self.prior, size, 1 << bits)
        if size > most_groups(self.samples):
            certified_box(self.box.low, self.box.single_ratio, 1 << bits)  # for users with many categories

    def keeps_prior(self) -> bool:
        """k independent draws from the prior have a law in the joint box."""
        return self.box.holds_power(self.prior)

    def prepare(self) -> None:
        """Build every table now."""
        _ = self.box.before, self.box.least, self.box.single_ratio
        if len(self.prior) > most_groups(self.samples):
            self._single.prepare()

    def prepare_many(self) -> None:
        """A batch needs nothing besides."""

    def position(self, weights: Weights, words: list[int]) -> tuple[int, ...]:
        """The released categories' positions."""
        return self._drawn(self._ready(weights or list(enumerate(self.prior))), words)

    def positions(self, rows: sparse.csr_array[Any], words: list[IntegerArray]) -> IntegerArray:
        """The same for every row, a row of k positions each; users with the same data share one law."""
        out = np.empty((rows.shape[0], self.samples), dtype=np.int64)
        drawn = np.stack(words, axis=1).tolist()
        known: dict[tuple[tuple[int, int], ...], _Ready] = {}
        held = 0
        for i, mine in enumerate(drawn):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            weights = list(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True))
            weights = weights or list(enumerate(self.prior))
            key = tuple(weights)
            if key not in known:
                if held > REMEMBERED:
                    known.clear()
                    held = 0
                known[key] = self._ready(weights)
                held += len(known[key].reached)
            out[i] = self._drawn(known[key], mine)
        return out

    def _ready(self, weights: Weights) -> _Ready:
        """The law of a user, with the units added up."""
        alone = self.alone(weights)
        if alone is not None:
            return _Ready(list(accumulate(alone)), None)
        law = self.box.law(weights)
        return _Ready(list(accumulate(law.units)), law)

    def alone(self, weights: Weights) -> list[int] | None:
        """The law of one sample in units of N, if the samples of this user are drawn independently.

        That is the user's own law, if its k-th power lies in the box. For a user with more categories than
        can be told apart it is the law of a single release with the k-th root of the ratio: k of them are a
        point of the box, too.
        """
        inside = self.box.inside(weights)
        if inside is not None or len(weights) <= most_groups(self.samples):
            return inside
        units = list(self.box.low)
        for place, unit in self._single.clipped(weights):
            units[place] = unit
        return units

    @cached_property
    def _single(self) -> BoxEngine:
        """One release for the k-th root of the ratio."""
        box = certified_box(self.box.low, self.box.single_ratio, self.box.total)
        return BoxEngine(box, self.prior)

    def _drawn(self, ready: _Ready, words: list[int]) -> tuple[int, ...]:
        """What the words stand for: k draws of the user's own law, or one number below N^k."""
        reached, law = ready
        if law is None:
            return tuple(bisect_right(reached, word) for word in words)
        number = 0
        for word in words:
            number = number * self.box.total + word
        at = bisect_right(reached, number)
        unit = number - reached[at] + law.units[at]
        return self._tuple(law, at, unit * law.classes.low[at] // law.units[at])

    def _tuple(self, law: JointLaw, at: int, held: int) -> tuple[int, ...]:
        """The tuple that holds this number of the floors of a class: its order first, then place by place."""
        behind, before, out = law.classes.low[at] // law.classes.orders[at], 1, []
        order, held = divmod(held, behind)
        own = [group.place for group in law.groups if group.place is not None]
        for group in (law.groups[g] for g in order_number(law.classes.groups[at], order)):
            behind //= group.low
            number = held // (before * behind)
            place, start = (group.place, 0) if group.place is not None else self._but(own, number)
            held -= start * before * behind
            before *= self.box.low[place]
            out.append(place)
        return tuple(out)

    def _but(self, own: Sequence[int], number: int) -> tuple[int, int]:
        """Which of all categories but these holds this number of their floors, and the floors before it."""
        before, skipped = self.box.before, 0
        for place in own:
            if number + skipped < before[place]:
                break
            skipped += self.box.low[place]
        at = bisect_right(before, number + skipped) - 1
        return at, before[at] - skipped

    def law(self, weights: Weights) -> list[Fraction]:
        """The exact probability of every tuple, in lexicographic order of the positions."""
        n, k, whole = len(self.prior), self.samples, self.box.total**self.samples
        if n**k > LISTED:
            raise ParameterError(
                f"the law of {k} samples of {n} categories has {n}^{k} entries; at most {LISTED:,} are "
                f"written out"
            )
        weights = weights or list(enumerate(self.prior))
        alone = self.alone(weights)
        if alone is not None:
            powers = [n**j for j in range(k)]
            each = (prod([alone[number // power % n] for power in powers]) for number in range(n**k))
            return [Fraction(unit, whole) for unit in each]
        out = [Fraction(0)] * n**k
        law = self.box.law(weights)
        for at, (low, unit) in enumerate(zip(law.classes.low, law.units, strict=True)):
            held = 0
            while held < low:
                places = self._tuple(law, at, held)
                number, floor = 0, 1
                for place in places:
                    number, floor = number * n + place, floor * self.box.low[place]
                first, last = -(-held * unit // low), -(-(held + floor) * unit // low)
                out[number] = Fraction(last - first, whole)
                held += floor
        return out

    def single_law(self, weights: Weights, places: Sequence[int] | None = None) -> list[Fraction]:
        """The law of one of the samples, taken at random, up to a unit of 1/N^k for each tuple.

        Of all categories, or of those at some places.
        """
        wanted = range(len(self.prior)) if places is None else places
        alone = self.alone(weights)
        if alone is not None:
            return [Fraction(alone[place], self.box.total) for place in wanted]
        law, whole = self.box.law(weights), self.samples * self.box.total**self.samples
        units = self.box.single_units(law)
        group_of = {one.place: g for g, one in enumerate(law.groups)}
        found = []
        for place in wanted:
            g = group_of.get(place, -1)
            found.append(Fraction(units[g] * self.box.low[place], law.groups[g].low * whole))
        return found

    def prior_weights(self) -> Sequence[int]:
        """As they are stored."""
        return self.prior

    def fields(self) -> dict[str, Any]:
        """Prior and floor, in the order of the categories, and how many samples."""
        return {
            "prior": whole_texts(self.prior),
            "low": whole_texts(self.box.low),
            "samples": self.samples,
        }

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """The joint box above the floor, and the prior."""
        samples = fields.plain["samples"]
        if ratio < 1 or type(samples) is not int:
            raise CertificateError("the ratio A must be at least 1, and samples a whole number")
        return cls(JointBox(fields.wholes("low"), samples, ratio, 1 << fields.bits), fields.wholes("prior"))
