"""A stream in integers: the bounds of the ratio R, the law of a step, and how a word draws from it.

The prior is integers Q_i ≥ 1 that add up to 2^40; a law is integers that add up to N = 2^62. So a ratio of
the two, x_i/Q_i, is a number in units of 2^-22.

**The state.** R is kept as two bounds R⁻ ≤ R ≤ R⁺, integers in units of 2^-s that stay below 2^62: s is 62
less the binary digits of ⌊A⌋, and in this file A stands for ⌊2^s·A⌋/2^s. They are rounded outwards after
every step and cut to [1, A]. They give the box of a step: V·Q_i ≤ x_i ≤ U·Q_i with V = ⌈2^22/R⁻⌉ and
U = ⌊2^22·A/R⁺⌋. Hence 1/R ≤ x_i/(2^22·Q_i) ≤ A/R, and R·x_i/(2^22·Q_i) is again between 1 and A: the theorem
of `samplers.stream`. V ≤ 2^22 ≤ U always holds, so x = 2^22·Q is in the box. Bounds of 1 and A, which is what
a device that lost its state takes, leave nothing but that, and it leaves R as it is.

**The law.** With p_i the user's shares in N units, m_i = ⌊p_i/Q_i⌋ cut to [V, U], V for what the user does
not have. If Σ m_i·Q_i exceeds N, the largest ratios are cut down to a level; else the smallest are raised to
one. The level is an integer; the units that it leaves over raise the ratio by one for the first prior units
at the level. So a law is a few weights of the user's own categories and one ratio for all others: the work
follows the user's categories, not their number in all.

There is no float in this file. Batches do the same operations on 64-bit integers; none of them overflows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import isqrt
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ..errors import CertificateError, ParameterError
from ..samplers.stream import MOST_STEPS, PACE, PERSISTENCE
from .arrays import IntegerArray, packs, scaled_product, shortened
from .box import Engine
from .exact import BITS, check_prior_weights, whole_numbers
from .weights import Weights

if TYPE_CHECKING:
    from scipy import sparse

    from .file import Fields

RATIO_BITS = 22  # a ratio is in units of 2^-22, and the prior in units of 2^-40
STATE_DIGITS = 62  # R has at most so many binary digits in its units
MOST_DIGITS = 40  # ⌊A⌋ has at most so many: with more, a ratio could leave 64 bits
HALF = 31  # R is multiplied in halves of so many digits
OCTAVE = 64  # a pace looks at log2 of a ratio in 64ths
SHARE_DIGITS = 41  # binary digits to which a user's weights are cut, all of them together


@dataclass(frozen=True, repr=False)
class StreamState:
    """What a device keeps between two releases of a stream. It is as private as the history itself.

    `low` and `high` enclose R, in units of the stream; `last` is the index of the last release.
    """

    epsilon: Fraction
    step: int
    low: int
    high: int
    last: int | None = None

    def __repr__(self) -> str:
        return f"<state of a stream after {self.step} releases>"

    def to_text(self) -> str:
        """The state as text, to be stored where only its owner can read it."""
        last = "-" if self.last is None else str(self.last)
        return (
            f"{self.epsilon.numerator}/{self.epsilon.denominator} {self.step} {self.low} {self.high} {last}"
        )

    @classmethod
    def from_text(cls, text: str) -> StreamState:
        """What `to_text` wrote."""
        if not isinstance(text, str):
            raise ParameterError("the state of a stream is a text")
        try:
            epsilon, step, low, high, last = text.split(" ")
            again = None if last == "-" else int(last)
            state = cls(Fraction(epsilon), int(step), int(low), int(high), again)
        except (ValueError, ZeroDivisionError):
            raise ParameterError("the state of a stream cannot be read") from None
        if min(state.step, state.low, state.high, state.last or 0) < 0 or state.to_text() != text:
            raise ParameterError("the state of a stream cannot be read")
        return state


@dataclass(frozen=True, eq=False, repr=False)
class StreamStates(Sequence[StreamState]):
    """The states of many users after the same number of releases, without an object for each."""

    epsilon: Fraction
    step: int
    bounds: IntegerArray  # a row of two each
    last: list[int | None]

    @classmethod
    def of(cls, states: Sequence[StreamState]) -> StreamStates:
        """States of one stream, all after as many releases."""
        if isinstance(states, StreamStates):
            return states
        kinds = {(state.epsilon, state.step) for state in states if isinstance(state, StreamState)}
        if len(kinds) != 1 or not all(isinstance(state, StreamState) for state in states):
            raise ParameterError("a stream needs a state for every row, all after as many releases")
        ((epsilon, step),) = kinds
        pairs = [(state.low, state.high) for state in states]
        if any(not 0 < one < 1 << STATE_DIGITS for pair in pairs for one in pair):
            raise ParameterError("the states are not those of a stream")
        return cls(epsilon, step, np.array(pairs, dtype=np.int64), [state.last for state in states])

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return StreamStates(self.epsilon, self.step, self.bounds[i], self.last[i])
        low, high = self.bounds[i].tolist()
        return StreamState(self.epsilon, self.step, low, high, self.last[i])

    def __repr__(self) -> str:
        return f"<states of {len(self)} streams after {self.step} releases>"


class StepLaw(NamedTuple):
    """The law of one step: the user's own categories one by one, and one ratio for all others."""

    own: list[tuple[int, int, int]]  # index, weight of the prior, units; ascending
    level: int  # the ratio of all other categories
    more: int  # so many of their prior units, the first ones, have one more
    others: int  # the prior units of all others
    before: tuple[int, ...]  # running sums of the prior's weights, without what persistence adds


@dataclass(frozen=True, eq=False)
class StreamEngine(Engine):
    """Streams: a mechanism carries the state from one release to the next."""

    kind: ClassVar[str] = "stream"
    version: ClassVar[int] = 2
    own_fields: ClassVar[frozenset[str]] = frozenset({"prior", "start", "pace", "persistence"})
    prior: tuple[int, ...]
    start: int
    pace: tuple[int, ...]
    persistence: int
    ratio: Fraction
    bits: int = BITS

    @property
    def ratio_bits(self) -> int:
        """22, and fewer where tests use fewer bits in all."""
        return RATIO_BITS * self.bits // BITS

    @property
    def total(self) -> int:
        """N."""
        return 1 << self.bits

    @property
    def prior_total(self) -> int:
        """The units of the prior, 2^40, and fewer in tests."""
        return 1 << (self.bits - self.ratio_bits)

    # --- the certificate -----------------------------------------------------------------------------

    def check(self, ratio: Fraction, size: int, bits: int) -> None:
        """A prior in whole units, a start between 1 and A, and settings within their ranges."""
        whole_numbers(self.prior, self.pace, (self.start, self.persistence, self.bits))
        if ratio != self.ratio or bits != self.bits:
            raise CertificateError("the stream is not the one of its ratio")
        check_prior_weights(self.prior, size, self.prior_total)
        if int(ratio).bit_length() > MOST_DIGITS:
            raise CertificateError("a stream takes a smaller epsilon: A must be below 2^40")
        if not self.one <= self.start <= self.most:
            raise CertificateError("the start of a stream must lie between 1 and A")
        if not 1 <= len(self.pace) <= MOST_STEPS or not all(0 <= one <= PACE for one in self.pace):
            raise CertificateError(f"the pace of a stream must be 1 to {MOST_STEPS} numbers from 0 to {PACE}")
        if not 0 <= self.persistence < PERSISTENCE:
            raise CertificateError("the persistence of a stream is out of range")

    def keeps_prior(self) -> bool:
        """2^22·Q is in every box, and nearest to a user equal to Q; with persistence Q is not the prior."""
        return self.persistence == 0

    # --- the state -----------------------------------------------------------------------------------

    @cached_property
    def one(self) -> int:
        """1 in the units of R."""
        return 1 << (STATE_DIGITS - int(self.ratio).bit_length())

    @cached_property
    def most(self) -> int:
        """A in the units of R, rounded down."""
        return int(self.ratio * self.one)

    def first(self) -> tuple[int, int]:
        """The bounds of R before the first release."""
        return self.start, self.start

    def lost(self) -> tuple[int, int]:
        """The bounds of R of a device that does not know it."""
        return self.one, self.most

    def moved(self, low: int, high: int, prior: int, units: int) -> tuple[int, int]:
        """The bounds after the release of a category with this weight of the prior and these units."""
        digits = self.ratio_bits
        least, most = units // prior, -(-units // prior)  # the ratio, rounded outwards
        return max(low * least >> digits, self.one), min(-(-high * most >> digits), self.most)

    @cached_property
    def _levels(self) -> list[int]:
        """⌊2^(22 + g/64)⌋ for g = 0, 1, … up to 2^62: roots by repeated square roots, which round down."""
        roots = []
        for j in range(OCTAVE):
            root = 1 << (OCTAVE * BITS + j)
            for _ in range(OCTAVE.bit_length() - 1):
                root = isqrt(root)
            roots.append(root)
        octaves = range(self.bits - self.ratio_bits)
        return [root >> (BITS - self.ratio_bits - octave) for octave in octaves for root in roots]

    def box(self, low: int, high: int) -> tuple[int, int]:
        """V and U: the least and the largest ratio that R allows."""
        least = -(-(self.one << self.ratio_bits) // low)
        return least, min((self.most << self.ratio_bits) // high, self.total)

    def ratios(self, low: int, high: int, step: int) -> tuple[int, int]:
        """The same with the largest one at the pace of this step."""
        least, most = self.box(low, high)
        pace = self.pace[min(step, len(self.pace) - 1)]
        if pace < PACE:
            levels = self._levels
            most = levels[(bisect_right(levels, most) - 1) * pace // PACE]
        return least, most

    # --- the law of one step -------------------------------------------------------------------------

    @cached_property
    def _before(self) -> tuple[int, ...]:
        """Running sums of the prior's weights."""
        return (0, *accumulate(self.prior))

    @cached_property
    def _before_again(self) -> tuple[int, ...]:
        """The same after a release, with persistence: a share of every weight, at least one unit."""
        share = PERSISTENCE - self.persistence
        return (0, *accumulate([max(weight * share // PERSISTENCE, 1) for weight in self.prior]))

    def _before_of(self, last: int | None) -> tuple[int, ...]:
        """The running sums of a step after the release of `last`; None without persistence or at first."""
        return self._before if last is None else self._before_again

    def step_law(self, weights: Weights, least: int, most: int, last: int | None = None) -> StepLaw:
        """The law of a user at a step with these ratios. Outside the box nothing is released."""
        last = last if self.persistence else None
        before, shares = self._before_of(last), dict(self._shares(weights))
        if last is not None:
            shares.setdefault(last, 0)
        own = sorted(shares)
        mine = [before[i + 1] - before[i] for i in own]
        if last is not None:
            mine[own.index(last)] += self.prior_total - before[-1]  # what the others do not have
        wanted = [min(max(shares[i] // q, least), most) for i, q in zip(own, mine, strict=True)]
        others = self.prior_total - sum(mine)
        level, left, raised = _level(wanted, mine, others, least, self.total)
        found = []
        for i, q, ratio in zip(own, mine, wanted, strict=True):
            at_level = ratio <= level if raised else ratio > level
            extra = min(left, q) if at_level else 0
            left -= extra
            found.append((i, q, (level if at_level else ratio) * q + extra))
        law = StepLaw(found, level if raised else least, left, others, before)
        self._inside(law, least, most)
        return law

    def next_law(self, weights: Weights, state: StreamState) -> StepLaw:
        """The law of the next release of a user with this state."""
        return self.step_law(weights, *self.ratios(state.low, state.high, state.step), state.last)

    def _shares(self, weights: Weights) -> Iterator[tuple[int, int]]:
        """The user's shares in N units, from their weights cut to 41 binary digits in all."""
        shift = max(sum([k for _, k in weights]).bit_length() - SHARE_DIGITS, 0)
        total = sum([k >> shift for _, k in weights])
        for i, k in weights:
            yield i, ((k >> shift) << self.bits) // total

    def _inside(self, law: StepLaw, least: int, most: int) -> None:
        """Raise unless every weight is between V·Q and U·Q, and all of them add up to N."""
        units = sum([w for _, _, w in law.own]) + law.level * law.others + law.more
        inside = all(least * q <= w <= most * q for _, q, w in law.own)
        above = law.level + (law.more > 0)
        if law.others and not least <= law.level <= above <= most:
            inside = False
        if not inside or units != self.total or not 0 <= law.more <= law.others:
            raise CertificateError("a law left its box; nothing is released")

    def drawn(self, law: StepLaw, word: int) -> tuple[int, int, int]:
        """The category that a word falls into, its weight of the prior and its units.

        The user's own categories come first, in order; then all others.
        """
        for i, q, units in law.own:
            if word < units:
                return i, q, units
            word -= units
        rich = law.more * (law.level + 1)
        at = word // (law.level + 1) if word < rich else law.more + (word - rich) // law.level
        return self._other(law, at)

    def _other(self, law: StepLaw, at: int) -> tuple[int, int, int]:
        """The category, not one of the user's own, that holds this prior unit, and what it has."""
        before, skipped = law.before, 0
        for i, _, _ in law.own:
            if at + skipped < before[i]:
                break
            skipped += before[i + 1] - before[i]
        i = bisect_right(before, at + skipped) - 1
        q, begin = before[i + 1] - before[i], before[i] - skipped
        return i, q, law.level * q + min(max(law.more - begin, 0), q)

    def units(self, law: StepLaw) -> list[int]:
        """The units of every category."""
        own, begin, out = {i: units for i, _, units in law.own}, 0, []
        for i, q in enumerate(b - a for a, b in pairwise(law.before)):
            if i in own:
                out.append(own[i])
                continue
            out.append(law.level * q + min(max(law.more - begin, 0), q))
            begin += q
        return out

    # --- as a mechanism ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Build every table now."""
        _ = self._before, self._before_again, self._levels, self.most

    def prepare_many(self) -> None:
        """Build the tables of a batch."""
        _ = self._tables

    def law(self, weights: Weights) -> list[Fraction]:
        """The law of the first release of a user."""
        return self.transcripts(weights, 1)

    def transcripts(self, weights: Weights, steps: int) -> list[Fraction]:
        """The law of the first releases of a user, all from the same data, in lexicographic order."""

        def continued(low: int, high: int, step: int, last: int | None) -> list[Fraction]:
            if step == steps:
                return [Fraction(1)]
            law = self.step_law(weights, *self.ratios(low, high, step), last)
            own, out = {i: q for i, q, _ in law.own}, []
            for i, units in enumerate(self.units(law)):
                prior = own.get(i, law.before[i + 1] - law.before[i])
                rest = continued(
                    *self.moved(low, high, prior, units), step + 1, i if self.persistence else None
                )
                out += [Fraction(units, self.total) * one for one in rest]
            return out

        return continued(*self.first(), 0, None)

    def prior_weights(self) -> Sequence[int]:
        """As they are stored."""
        return self.prior

    def fields(self) -> dict[str, Any]:
        """The prior in the order of the categories, and the settings."""
        return {
            "prior": list(map(str, self.prior)),
            "start": str(self.start),
            "pace": list(self.pace),
            "persistence": self.persistence,
        }

    @classmethod
    def read(cls, fields: Fields, ratio: Fraction) -> Self:
        """What `fields` wrote."""
        plain, prior = fields.plain, fields.wholes("prior")
        pace, start = plain["pace"], plain["start"]
        numbers = [plain["persistence"], *(pace if isinstance(pace, list) else [None])]
        whole = isinstance(start, str) and re.fullmatch("0|[1-9][0-9]{0,18}", start, re.ASCII)
        if ratio < 1 or not whole:
            raise CertificateError("the ratio A must be at least 1, and the start an integer")
        if not all(type(one) is int for one in numbers):
            raise CertificateError("the settings of a stream must be whole numbers")
        return cls(prior, int(start), tuple(pace), plain["persistence"], ratio, fields.bits)

    # --- many users at one step ----------------------------------------------------------------------

    @cached_property
    def _tables(self) -> tuple[IntegerArray, IntegerArray, IntegerArray]:
        """The prior with a zero behind it, its running sums, and the levels of a pace."""
        prior = np.array([*self.prior, 0], dtype=np.int64)
        return prior, np.array(self._before, dtype=np.int64), np.array(self._levels, dtype=np.int64)

    def step_many(
        self,
        rows: sparse.csr_array[Any],
        words: IntegerArray,
        bounds: IntegerArray,
        step: int,
        observe: Callable[[IntegerArray, IntegerArray, IntegerArray], object] | None = None,
    ) -> tuple[IntegerArray, IntegerArray]:
        """One step of a stream for every row: what is released, and the bounds of R that follow.

        `observe` is called with some users, their weights and the units of their categories, a column each.
        """
        least, most = self._many_ratios(bounds, step)
        out = np.empty(rows.shape[0], dtype=np.int64)
        units, prior = np.empty_like(out), self._tables[0]
        empty = np.diff(rows.indptr) == 0
        out[empty] = np.searchsorted(self._tables[1], words[empty] >> self.ratio_bits, side="right") - 1
        units[empty] = prior[out[empty]] << self.ratio_bits
        for users, indices, counts in packs(rows):
            law = self._many_laws(indices, counts, least[users], most[users])
            out[users], units[users] = self._many_drawn(law, indices, words[users])
            if observe is not None:
                observe(users, counts, law.units)
        return out, self._many_moved(bounds, prior[out], units)

    def first_many(self, users: int) -> IntegerArray:
        """The bounds of R of so many users before their first release."""
        return np.tile(np.array(self.first(), dtype=np.int64), (users, 1))

    def _many_moved(self, bounds: IntegerArray, prior: IntegerArray, units: IntegerArray) -> IntegerArray:
        """`moved` for every user."""
        least, digits = units // prior, self.ratio_bits
        low, _ = _times(bounds[:, 0], least, digits)
        high, more = _times(bounds[:, 1], least + (units > least * prior), digits)
        high += more
        return np.stack([np.maximum(low, self.one), np.minimum(high, self.most)], axis=1)

    def _many_ratios(self, bounds: IntegerArray, step: int) -> tuple[IntegerArray, IntegerArray]:
        """V and U of every user."""
        least, more = divided(np.full(len(bounds), self.one), bounds[:, 0], self.ratio_bits)
        most, _ = divided(np.full(len(bounds), self.most), bounds[:, 1], self.ratio_bits)
        least, most = least + more, np.minimum(most, self.total)
        levels = self._tables[2]
        pace = self.pace[min(step, len(self.pace) - 1)]
        if pace < PACE:
            most = levels[(np.searchsorted(levels, most, side="right") - 1) * pace // PACE]
        return least, most

    def _many_laws(
        self, indices: IntegerArray, counts: IntegerArray, least: IntegerArray, most: IntegerArray
    ) -> _ManyLaws:
        """`step_law` for users with a column each."""
        prior = self._tables[0].take(indices)
        held = prior > 0
        kept, _ = shortened(counts, SHARE_DIGITS)
        shares = scaled_product(kept, self.total, np.maximum(kept.sum(axis=0), 1))
        wanted = np.clip(shares // np.where(held, prior, 1), least, most)
        wanted[~held] = 0
        others = self.prior_total - prior.sum(axis=0)
        level, left, raised = _many_levels(wanted, prior, held, others, least, self.total)
        at_level = np.where(raised, wanted <= level, wanted > level) & held
        room = np.where(at_level, prior, 0)
        extra = np.clip(left - (np.cumsum(room, axis=0) - room), 0, room)
        units = np.where(at_level, level, wanted) * prior + extra
        more = left - extra.sum(axis=0)
        law = _ManyLaws(units, np.where(raised, level, least), more, prior)
        total = units.sum(axis=0) + law.level * others + more
        inside = ((units >= least * prior) & ((units - 1) // np.where(held, prior, 1) < most)) | ~held
        fine = (least <= law.level) & (law.level + (more > 0) <= most) | (others == 0)
        if not (inside.all() and fine.all() and (total == self.total).all()):
            raise CertificateError("a law left its box; nothing is released")
        return law

    def _many_drawn(
        self, law: _ManyLaws, indices: IntegerArray, words: IntegerArray
    ) -> tuple[IntegerArray, IntegerArray]:
        """`drawn` for users with a column each: the category and its units."""
        sums = np.cumsum(law.units, axis=0)
        column = (words >= sums).sum(axis=0)
        own = np.minimum(column, len(indices) - 1)[None]
        out = np.take_along_axis(indices, own, axis=0)[0]
        units = np.take_along_axis(law.units, own, axis=0)[0]
        other = np.flatnonzero(column == len(indices))
        if not len(other):
            return out, units
        prior, before, _ = self._tables
        level, more = law.level[other], law.more[other]
        word = words[other] - sums[-1, other]
        rich = more * (level + 1)
        at = np.where(word < rich, word // (level + 1), more + (word - rich) // np.maximum(level, 1))
        skipped = np.zeros_like(at)
        for row, weights in zip(indices[:, other], law.prior[:, other], strict=True):
            skipped += np.where(at + skipped >= before.take(row, mode="clip"), weights, 0)
        found = np.searchsorted(before, at + skipped, side="right") - 1
        weight = prior[found]
        extra = np.clip(more - (before[found] - skipped), 0, weight)
        out[other], units[other] = found, level * weight + extra
        return out, units


def _times(ratio: IntegerArray, factor: IntegerArray, digits: int) -> tuple[IntegerArray, Any]:
    """⌊ratio·factor/2^digits⌋ and whether it was rounded, for results and ratios below 2^62."""
    above, below = factor >> digits, factor & ((1 << digits) - 1)
    upper, lower = ratio >> HALF, (ratio & ((1 << HALF) - 1)) * below
    product = ratio * above + ((upper * below) << (HALF - digits)) + (lower >> digits)
    return product, (lower & ((1 << digits) - 1)) > 0


def divided(number: IntegerArray, divisor: IntegerArray, digits: int) -> tuple[IntegerArray, Any]:
    """⌊number·2^digits/divisor⌋ and whether it was rounded."""
    whole, rest = np.divmod(number, divisor)
    part = scaled_product(rest, 1 << digits, divisor)
    return (whole << digits) + part, (rest << digits) != part * divisor  # what is left is exact modulo 2^64


class _ManyLaws(NamedTuple):
    """`StepLaw` for users with a column each."""

    units: IntegerArray
    level: IntegerArray
    more: IntegerArray
    prior: IntegerArray


def _level(wanted: list[int], prior: list[int], others: int, least: int, total: int) -> tuple[int, int, bool]:
    """The level, the units that it leaves over, and whether ratios are raised to it or cut down to it."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    own = sum([m * q for m, q in zip(wanted, prior, strict=True)])
    raised = own + least * others <= total
    left, slope, sign = (total - own, others, 1) if raised else (total - least * others, sum(prior), -1)
    for i in order:
        if wanted[i] * slope > left:
            break
        left += sign * wanted[i] * prior[i]
        slope += sign * prior[i]
    return (*divmod(left, slope), raised)


def _many_levels(
    wanted: IntegerArray,
    prior: IntegerArray,
    held: Any,
    others: IntegerArray,
    least: IntegerArray,
    total: int,
) -> tuple[IntegerArray, IntegerArray, Any]:
    """`_level` for users with a column each."""
    order = np.argsort(np.where(held, wanted, np.iinfo(np.int64).max), axis=0, kind="stable")
    ratio, weight = np.take_along_axis(wanted, order, axis=0), np.take_along_axis(prior, order, axis=0)
    zero = np.zeros((1, wanted.shape[1]), dtype=np.int64)
    units = np.concatenate([zero, np.cumsum(ratio * weight, axis=0)])
    slopes = np.concatenate([zero, np.cumsum(weight, axis=0)])
    raised = units[-1] + least * others <= total
    left = np.where(raised, total - units[-1] + units, total - least * others - units)
    slope = np.where(raised, others + slopes, slopes[-1] - slopes)
    passed = (slope[:-1] == 0) | (ratio <= left[:-1] // np.maximum(slope[:-1], 1))
    count = (passed & np.take_along_axis(held, order, axis=0)).sum(axis=0)[None]
    left, slope = (np.take_along_axis(one, count, axis=0)[0] for one in (left, slope))
    level = left // slope
    return level, left - level * slope, raised
