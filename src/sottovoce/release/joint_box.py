"""The joint box of k-tuples, and the exact clip of one user's tuples into it.

The law of a user's k-tuples is a vector of whole units that add up to N^k. A tuple z has the floor
low(z) = Π low_{z_j}, and for every user low(z) ≤ w(z) ≤ A·low(z) with A ≤ e^ε. So w(z)/N^k ≤ e^ε·w'(z)/N^k:
the certificate of a box, on tuples. The n^k tuples are never written out: `classes` puts them together.

A class with the floor C = Σ low(z) gets T units, C ≤ T ≤ H. The units are dealt to its tuples in order, in
proportion to their floors: number v of the T belongs to the tuple that holds number ⌊v·C/T⌋ of the C. A tuple
gets t·low(z), t = T/C, rounded down or up. Rounding down stays at or above low(z) because t ≥ 1. Rounding up
stays at or below A·low(z) if t·low(z) ≤ ⌊A·low(z)⌋. Where all floors are the same number P, that is
t ≤ ⌊A·P⌋/P; else t ≤ A − 1/(least floor) will do. H is the largest such T. There is no float in this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import comb, prod
from typing import Any, NamedTuple

from ..errors import CertificateError
from ..samplers.joint import MOST_SAMPLES
from .box_engine import only_fields
from .classes import Classes, Group, classes, most_groups
from .exact import exact_clip, times_below, whole_numbers
from .weights import Weights

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
