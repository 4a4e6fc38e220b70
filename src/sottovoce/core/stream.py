"""A stream in integers: the bounds of the ratio R, the law of a step, and how a word draws from it.

The prior is integers Q_i ≥ 1 that add up to 2^40; a law is integers that add up to N = 2^62. So a ratio of
the two, x_i/Q_i, is a number in units of 2^-22.

**The state.** R is kept as two bounds R⁻ ≤ R ≤ R⁺, integers in units of 2^-s that stay below 2^62: s is 62
less the binary digits of ⌊A⌋, and in this file A stands for ⌊2^s·A⌋/2^s. They are rounded outwards after
every step and cut to [1, A]. They give the box of a step: V·Q_i ≤ x_i ≤ U·Q_i with V = ⌈2^22/R⁻⌉ and
U = ⌊2^22·A/R⁺⌋. Hence 1/R ≤ x_i/(2^22·Q_i) ≤ A/R, and R·x_i/(2^22·Q_i) is again between 1 and A: the theorem
of `samplers.stream`. V ≤ 2^22 ≤ U always holds, so x = 2^22·Q is in the box. Bounds of 1 and A, which is what
a device that lost R takes, leave nothing but that, and it leaves R as it is. With persistence Q depends on
the last release, so a device that lost R still has to know that one.

**The law.** With p_i the user's shares in N units, m_i = ⌊p_i/Q_i⌋ cut to [V, U], V for what the user does
not have. If Σ m_i·Q_i exceeds N, the largest ratios are cut down to a level; else the smallest are raised to
one. The level is an integer; the units that it leaves over raise the ratio by one for the first prior units
at the level. So a law is a few weights of the user's own categories and one ratio for all others: the work
follows the user's categories, not their number in all.

`stream_many` does the same for many users in arrays.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from ..errors import CertificateError, ParameterError
from .arithmetic import check_prior_weights, square_root_below, whole_numbers
from .constants import BITS, MOST_STEPS, PACE, PERSISTENCE
from .engine import Engine, Weights

if TYPE_CHECKING:
    from ..release.file import Fields

RATIO_BITS = 22  # a ratio is in units of 2^-22, and the prior in units of 2^-40
STATE_DIGITS = 62  # R has at most so many binary digits in its units
MOST_DIGITS = 40  # ⌊A⌋ has at most so many: with more, a ratio could leave 64 bits
OCTAVE = 64  # a pace looks at log2 of a ratio in 64ths
SHARE_DIGITS = 41  # binary digits to which a user's weights are cut, all of them together

_COUNT = "(?:0|[1-9][0-9]{0,18})"
_RECORD = re.compile(
    f"((?P<epsilon>[1-9][0-9]{{0,79}}/[1-9][0-9]{{0,399}}) (?P<step>{_COUNT}) (?P<low>{_COUNT}) "
    f"(?P<high>{_COUNT}) (?P<last>-|{_COUNT})) (?P<checksum>[0-9a-f]{{8}})",
    re.ASCII,
)
"""A state as text. Its form is checked before any number is computed: 1e99999999 would take minutes."""


@dataclass(frozen=True, repr=False)
class StreamState:
    """What a device keeps between two releases of a stream. It is as private as the history itself.

    `low` and `high` enclose R, in units of the stream; `last` is the index of the last release. They belong
    together: store the state as a whole, as `to_text` writes it, never a part of it.
    """

    epsilon: Fraction
    step: int
    low: int
    high: int
    last: int | None = None

    def __repr__(self) -> str:
        return f"<state of a stream after {self.step} releases>"

    def to_text(self) -> str:
        """The state as one record, to be stored where only its owner can read and write it.

        Its checksum shows a damaged record, or one put together from two. It is no signature: whoever can
        write the record can make another.
        """
        last = "-" if self.last is None else str(self.last)
        record = (
            f"{self.epsilon.numerator}/{self.epsilon.denominator} {self.step} {self.low} {self.high} {last}"
        )
        return f"{record} {_checksum(record)}"

    @classmethod
    def from_text(cls, text: str) -> StreamState:
        """What `to_text` wrote, whole: cut behind a digit of its last release, it would name another one."""
        match = _RECORD.fullmatch(text) if isinstance(text, str) else None
        if match is None or match["checksum"] != _checksum(match[1]):
            raise ParameterError("the state of a stream cannot be read")
        last = None if match["last"] == "-" else int(match["last"])
        epsilon = Fraction(match["epsilon"])
        if f"{epsilon.numerator}/{epsilon.denominator}" != match["epsilon"]:  # not in lowest terms
            raise ParameterError("the state of a stream cannot be read")
        return cls(epsilon, int(match["step"]), int(match["low"]), int(match["high"]), last)

    def is_well_formed(self) -> bool:
        """Whether every field is of its type; a stream decides whether the numbers can be its own."""
        whole = all(type(number) is int for number in (self.step, self.low, self.high))
        return whole and type(self.epsilon) is Fraction and type(self.last) in (int, type(None))


def _checksum(record: str) -> str:
    """CRC-32 in hexadecimal, as every language has it."""
    return f"{zlib.crc32(record.encode('ascii')):08x}"


class StepLaw(NamedTuple):
    """The law of one step: the user's own categories one by one, and one ratio for all others."""

    own: dict[int, tuple[int, int]]  # weight of the prior and units, by index; ascending
    level: int  # the ratio of all other categories
    more: int  # so many of their prior units, the first ones, have one more
    before: tuple[int, ...]  # running sums of the prior's weights, without what persistence adds

    def weight(self, i: int) -> tuple[int, int]:
        """The weight of the prior and the units of a category."""
        if i in self.own:
            return self.own[i]
        q, begin = self.prior(i), self.before[i] - sum([self.prior(k) for k in self.own if k < i])
        return q, self.level * q + min(max(self.more - begin, 0), q)

    def prior(self, i: int) -> int:
        """The weight of the prior, without what persistence adds."""
        return self.before[i + 1] - self.before[i]


@dataclass(frozen=True, eq=False)
class StreamEngine(Engine):
    """Streams: a mechanism carries the state from one release to the next."""

    kind: ClassVar[str] = "stream"
    version: ClassVar[int] = 2
    own_fields: ClassVar[frozenset[str]] = frozenset({"prior", "start", "pace", "persistence"})
    tables: ClassVar[tuple[str, ...]] = ("_before", "_before_again", "levels", "most")
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

    def moved(self, low: int, high: int, prior: int, units: int) -> tuple[int, int]:
        """The bounds after the release of a category with this weight of the prior and these units."""
        digits = self.ratio_bits
        least, most = units // prior, -(-units // prior)  # the ratio, rounded outwards
        return max(low * least >> digits, self.one), min(-(-high * most >> digits), self.most)

    @cached_property
    def levels(self) -> list[int]:
        """⌊2^(22 + g/64)⌋ for g = 0, 1, … up to 2^62: roots by repeated square roots, which round down."""
        roots = []
        for j in range(OCTAVE):
            root = 1 << (OCTAVE * BITS + j)
            for _ in range(OCTAVE.bit_length() - 1):
                root = square_root_below(root)
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
            levels = self.levels
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
        before, shares = self._before_of(last), self._shares(weights)
        if last is not None:
            shares.setdefault(last, 0)
        own = sorted(shares)
        mine = [before[i + 1] - before[i] for i in own]
        if last is not None:
            mine[own.index(last)] += self.prior_total - before[-1]  # what the others do not have
        wanted = [min(max(shares[i] // q, least), most) for i, q in zip(own, mine, strict=True)]
        others = self.prior_total - sum(mine)
        level, left, raised = _level(wanted, mine, others, least, self.total)
        weighed = {}
        for i, q, ratio in zip(own, mine, wanted, strict=True):
            at_level = ratio <= level if raised else ratio > level
            extra = min(left, q) if at_level else 0
            left -= extra
            weighed[i] = q, (level if at_level else ratio) * q + extra
        law = StepLaw(weighed, level if raised else least, left, before)
        self._inside(law, least, most)
        return law

    def next_law(self, weights: Weights, state: StreamState) -> StepLaw:
        """The law of the next release of a user with this state."""
        return self.step_law(weights, *self.ratios(state.low, state.high, state.step), state.last)

    def _shares(self, weights: Weights) -> dict[int, int]:
        """The user's shares in N units, from their weights cut to 41 binary digits in all."""
        shift = max(sum([k for _, k in weights]).bit_length() - SHARE_DIGITS, 0)
        total = sum([k >> shift for _, k in weights])
        return {i: ((k >> shift) << self.bits) // total for i, k in weights}

    def _inside(self, law: StepLaw, least: int, most: int) -> None:
        """Raise unless every weight is between V·Q and U·Q, and all of them add up to N."""
        others = self.prior_total - sum([q for q, _ in law.own.values()])
        units = sum([w for _, w in law.own.values()]) + law.level * others + law.more
        inside = all(least * q <= w <= most * q for q, w in law.own.values())
        above = law.level + (law.more > 0)
        if others and not least <= law.level <= above <= most:
            inside = False
        if not inside or units != self.total or not 0 <= law.more <= others:
            raise CertificateError("a law left its box; nothing is released")

    def drawn(self, law: StepLaw, word: int) -> tuple[int, int, int]:
        """The category that a word falls into, its weight of the prior and its units.

        The user's own categories come first, in order; then all others.
        """
        for i, (q, units) in law.own.items():
            if word < units:
                return i, q, units
            word -= units
        rich = law.more * (law.level + 1)
        at = word // (law.level + 1) if word < rich else law.more + (word - rich) // law.level
        for i in law.own:  # from a number among the prior units of the others to one among all
            if at < law.before[i]:
                break
            at += law.prior(i)
        i = bisect_right(law.before, at) - 1
        return i, *law.weight(i)

    def units(self, law: StepLaw) -> list[int]:
        """The units of every category."""
        return [law.weight(i)[1] for i in range(len(self.prior))]

    # --- as a mechanism ------------------------------------------------------------------------------

    def law(self, weights: Weights) -> list[Fraction]:
        """The law of the first release of a user."""
        return self.transcripts(weights, 1)

    def transcripts(self, weights: Weights, steps: int) -> list[Fraction]:
        """The law of the first releases of a user, all from the same data, in lexicographic order."""

        def continued(low: int, high: int, step: int, last: int | None) -> list[Fraction]:
            if step == steps:
                return [Fraction(1)]
            law = self.step_law(weights, *self.ratios(low, high, step), last)
            out = []
            for i in range(len(self.prior)):
                prior, units = law.weight(i)
                after = self.moved(low, high, prior, units)
                rest = continued(*after, step + 1, i if self.persistence else None)
                out += [Fraction(units, self.total) * chance for chance in rest]
            return out

        return continued(*self.first(), 0, None)

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
        prior, persistence = fields.wholes("prior"), fields.plain["persistence"]
        start = fields.whole("start", STATE_DIGITS)  # in units of its own, whatever the weights are in
        pace: list[Any] = fields.plain["pace"] if isinstance(fields.plain["pace"], list) else [None]
        if ratio < 1:
            raise CertificateError("the ratio A must be at least 1")
        if not all(type(one) is int for one in (persistence, *pace)):
            raise CertificateError("the settings of a stream must be whole numbers")
        return cls(prior, start, tuple(pace), persistence, ratio, fields.bits)


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
