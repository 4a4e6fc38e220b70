"""Several samples for one ε: the tuples of one user in classes, the joint box, and how k words draw a tuple.

Classes. Each of a user's own categories is a group; all categories that the user does not have are one more
group, the last. A class is a multiset of k groups: all its tuples have the same law up to their floor. They
are ordered: first by the order of the groups (lexicographic), then category by category.

The box. The law of a user's k-tuples is a vector of whole units that add up to N^k. A tuple z has the floor
low(z) = Π low_{z_j}, and for every user low(z) ≤ w(z) ≤ A·low(z) with A ≤ e^ε. So w(z)/N^k ≤ e^ε·w'(z)/N^k:
the certificate of a box, on tuples. The n^k tuples are never written out.

A class with the floor C = Σ low(z) gets T units, C ≤ T ≤ H. The units are dealt to its tuples in order, in
proportion to their floors: number v of the T belongs to the tuple that holds number ⌊v·C/T⌋ of the C. A tuple
gets t·low(z), t = T/C, rounded down or up. Rounding down stays at or above low(z) because t ≥ 1. Rounding up
stays at or below A·low(z) if t·low(z) ≤ ⌊A·low(z)⌋. Where all floors are the same number P, that is
t ≤ ⌊A·P⌋/P; else t ≤ A − 1/(least floor) will do. H is the largest such T.

The draw. Nothing is tried and thrown away: a release takes k words, whoever the user is, and they are one
uniform integer below N^k. There is no float in this file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from math import comb, factorial, prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ..errors import CertificateError, ParameterError
from ..samplers.joint import MOST_SAMPLES
from .box import BoxEngine, only_fields, row_weights
from .box_fast import IntegerArray
from .exact import certified_box, check_prior_weights, exact_clip, times_below, whole_numbers
from .weights import Weights

if TYPE_CHECKING:
    from scipy import sparse

    from .file import Fields

MOST_CLASSES = 1 << 15
"""Classes of one release at most: public, and the reason why a release ends in time for every user."""


@cache
def most_groups(samples: int) -> int:
    """How many categories a user can have so that, with the last group, there are few enough classes."""
    groups = 1
    while comb(groups + 1 + samples, samples) <= MOST_CLASSES:
        groups += 1
    return groups


@dataclass(frozen=True)
class Group:
    """One category of a user: its place, what the user has there, its floor; or all that the user lacks."""

    place: int | None  # None for the categories that the user does not have
    weight: int
    low: int  # of all of them together
    least: int  # no lower floor is among them


class Classes(NamedTuple):
    """All multisets of k groups, in lexicographic order, and the products over each."""

    groups: list[tuple[int, ...]]  # which, ascending
    orders: list[int]  # in how many orders they can stand
    low: list[int]  # the floors of all its tuples together
    least: list[int]  # no tuple of it has a lower floor; if all have the same one, low = orders·least
    weight: list[int]  # what the user has there; 0 with a group of which the user has nothing


def classes(groups: Sequence[Group], samples: int) -> Classes:
    """The classes of a user's tuples. Each product is one of a shorter multiset, times one group more."""
    shape = _shape(len(groups), samples)
    found = []
    for values in (
        [one.low for one in groups],
        [one.least for one in groups],
        [one.weight for one in groups],
    ):
        products = [1]
        for parents, added in shape.steps:
            products = [products[i] * values[g] for i, g in zip(parents, added, strict=True)]
        found.append(products)
    low, least, weight = found
    return Classes(
        shape.groups,
        shape.orders,
        [a * b for a, b in zip(low, shape.orders, strict=True)],
        least,
        [a * b for a, b in zip(weight, shape.orders, strict=True)],
    )


class _Shape(NamedTuple):
    """What the classes of so many groups have in common for all users: nothing private."""

    steps: list[
        tuple[list[int], list[int]]
    ]  # from multisets of j groups to those of j + 1: of which, and what
    groups: list[tuple[int, ...]]
    orders: list[int]


@lru_cache(maxsize=32)
def _shape(groups: int, samples: int) -> _Shape:
    members: list[tuple[int, ...]] = [()]
    steps = []
    for _ in range(samples):
        grown = [(i, g) for i, one in enumerate(members) for g in range(one[-1] if one else 0, groups)]
        steps.append(([i for i, _ in grown], [g for _, g in grown]))
        members = [(*members[i], g) for i, g in grown]
    return _Shape(steps, members, [orders_of(one) for one in members])


def order_number(groups: tuple[int, ...], number: int) -> list[int]:
    """The order with this number, in lexicographic order, of a multiset that is given ascending."""
    left, out = list(groups), []
    while left:
        for one in sorted(set(left)):
            rest = left.copy()
            rest.remove(one)
            here = orders_of(rest)
            if number < here:
                break
            number -= here
        out.append(one)
        left = rest
    return out


def orders_of(groups: Sequence[int]) -> int:
    """How many orders a multiset has."""
    number = factorial(len(groups))
    for one in set(groups):
        number //= factorial(groups.count(one))
    return number


_SCALE = 64


class JointLaw(NamedTuple):
    """The law of one user's tuples, class by class."""

    groups: list[Group]  # the last holds what the user has nothing of, if there is anything
    classes: Classes
    units: list[int]  # of each class, N^k in all


@dataclass(frozen=True)
class JointBox:
    """The tuples' floors low(z) = Π low_{z_j} and caps A·low(z), in units of 1/N^k."""

    low: tuple[int, ...]
    samples: int
    ratio: Fraction  # A, for all samples together
    total: int

    def __getstate__(self) -> dict[str, Any]:
        return only_fields(self)

    def check(self) -> None:
        """Floors of at least a unit, and room for N^k units above them, however a user's tuples are classed.

        Σ_classes H ≥ A·(Σlow)^k − (Σlow/least)^k − classes, because H ≥ C·(A − 1/least floor) − 1.
        """
        k = self.samples
        if type(k) is not int or not 2 <= k <= MOST_SAMPLES:
            raise CertificateError(f"samples must be a whole number from 2 to {MOST_SAMPLES}")
        whole_numbers(self.low, [self.total])
        least, floors = min(self.low), sum(self.low)
        if least < 1 or floors > self.total:
            raise CertificateError("the floor leaves no law: every floor must be positive, Σlow ≤ N")
        up, down = self.ratio.numerator, self.ratio.denominator
        most = comb(min(len(self.low), most_groups(k)) + k, k)
        if (up * floors**k - down * (self.total**k + most)) * least**k < down * floors**k:
            raise CertificateError(
                "the floor leaves no law: the caps of all tuples must have room for N^k units; merge rare "
                "categories, or take fewer samples or a larger epsilon"
            )

    def holds_power(self, law: Sequence[int]) -> bool:
        """Whether law^⊗k lies in the box: one category k times is the tuple nearest to its cap."""
        up, down, k = self.ratio.numerator, self.ratio.denominator, self.samples
        return all(low <= w and down * w**k <= up * low**k for low, w in zip(self.low, law, strict=True))

    @cached_property
    def before(self) -> tuple[int, ...]:
        """Σ_{j<i} low_j, with Σlow at the end."""
        return (0, *accumulate(self.low))

    @cached_property
    def least(self) -> int:
        """The lowest floor."""
        return min(self.low)

    @cached_property
    def single_ratio(self) -> Fraction:
        """A^(1/k) from below: it guides what is left over, privacy does not rest on it."""
        up, down = self.ratio.numerator << _SCALE * self.samples, self.ratio.denominator
        return Fraction(whole_root(up // down, self.samples), 1 << _SCALE)

    def inside(self, weights: Weights) -> list[int] | None:
        """The user's own law in whole units if its k-th power lies in the box: then it is released as it is.

        ⌊N·k_i/K⌋, and the units that are left go one each to the first fractions.
        """
        if len(weights) < len(self.low):
            return None
        counts = [weight for _, weight in weights]
        own = exact_clip(counts, [0] * len(counts), [self.total] * len(counts), self.total)
        return own if self.holds_power(own) else None

    def groups(self, weights: Weights) -> list[Group]:
        """The user's own categories, and behind them everything else, which needs no list."""
        low = self.low
        groups = [Group(place, weight, low[place], low[place]) for place, weight in weights]
        if len(weights) == len(low):
            return groups
        rest = self.before[-1] - sum([low[place] for place, _ in weights])
        return [*groups, Group(None, 0, rest, self.least)]

    def law(self, weights: Weights) -> JointLaw:
        """The exact clip of the user's tuples, class by class; looked at once more before it is used."""
        groups = self.groups(weights)
        found = classes(groups, self.samples)
        highs = self._caps(found)
        units = self._clipped(groups, found, highs)
        inside = all(a <= w <= b for a, w, b in zip(found.low, units, highs, strict=True))
        if not inside or sum(units) != self.total**self.samples:
            raise CertificateError("a law left its box; nothing is released")
        return JointLaw(groups, found, units)

    def single_units(self, law: JointLaw) -> list[int]:
        """How often one of the samples, taken at random, falls into each group: units of 1/(k·N^k)."""
        units = [0] * len(law.groups)
        for groups, here in zip(law.classes.groups, law.units, strict=True):
            for g in groups:
                units[g] += here
        return units

    def _caps(self, found: Classes) -> list[int]:
        """The most units of each class: no tuple of it is rounded up beyond its own cap."""
        up, down = self.ratio.numerator, self.ratio.denominator
        return [
            orders * (up * least // down)
            if low == orders * least
            else max(low, low * (up * least - down) // (down * least))
            for orders, low, least in zip(found.orders, found.low, found.least, strict=True)
        ]

    def _clipped(self, groups: list[Group], found: Classes, highs: list[int]) -> list[int]:
        """What the user has is clipped; where all of it is at its cap, the rest is spread over the others."""
        own = [i for i, weight in enumerate(found.weight) if weight]
        others = [i for i, weight in enumerate(found.weight) if not weight]
        lows, units = found.low, found.low.copy()
        target, most = self.total**self.samples, sum([highs[i] for i in own])
        room = target - sum([lows[i] for i in others])
        if most >= room:
            which, weights, left = own, [found.weight[i] for i in own], room
        else:
            for i in own:
                units[i] = highs[i]
            guide = self._guide(groups)
            weights = [found.orders[i] * prod([guide[g] for g in found.groups[i]]) for i in others]
            which, left = others, target - most
        clipped = exact_clip(weights, [lows[i] for i in which], [highs[i] for i in which], left)
        for i, unit in zip(which, clipped, strict=True):
            units[i] = unit
        return units

    def _guide(self, groups: list[Group]) -> list[int]:
        """The law of one release at ε/k on the groups, in units: what is left over is spread along its power.

        Every spread is as near to the user's tuples as any other; this one favours those that are right in
        part, so that each single sample is right more often.
        """
        own, rest = groups[:-1], groups[-1]
        lows = [one.low for one in own]
        highs = [min(times_below(self.single_ratio, low), self.total) for low in lows]
        room = self.total - rest.low
        guide = highs if sum(highs) < room else exact_clip([one.weight for one in own], lows, highs, room)
        return [*guide, self.total - sum(guide)]


def whole_root(value: int, degree: int) -> int:
    """⌊value^(1/degree)⌋, by Newton's steps from above."""
    root = 1 << -(-value.bit_length() // degree)
    while value:
        lower = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if lower >= root:
            return root
        root = lower
    return 0


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
            weights = row_weights(rows, i) or list(enumerate(self.prior))
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
            "prior": list(map(str, self.prior)),
            "low": list(map(str, self.box.low)),
            "samples": self.samples,
        }

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """The joint box above the floor, and the prior."""
        samples = fields.plain["samples"]
        if ratio < 1 or type(samples) is not int:
            raise CertificateError("the ratio A must be at least 1, and samples a whole number")
        return cls(JointBox(fields.wholes("low"), samples, ratio, 1 << fields.bits), fields.wholes("prior"))
