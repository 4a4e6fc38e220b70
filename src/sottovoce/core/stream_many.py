"""One step of the streams of many users at once, the same operations as `core.stream` in arrays.

Every user is a column. Weights of the prior are below 2^40, ratios and bounds of R below 2^62, and a product
of a ratio with a weight, or of a bound with a ratio, is below 2^62 as well, because a law adds up to N and R
stays below A. So nothing overflows, and nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import CertificateError
from .arrays import IntegerArray, packs, scaled_product
from .constants import PACE
from .stream import SHARE_DIGITS, StreamEngine, StreamState

if TYPE_CHECKING:
    from scipy import sparse

_HALF = 31  # R is multiplied in halves of so many digits


@dataclass(frozen=True, eq=False, repr=False)
class StreamStates(Sequence[StreamState]):
    """The states of many users of a stream without persistence, a column each instead of an object."""

    epsilon: Fraction
    columns: IntegerArray  # releases so far, and the two bounds of R

    @classmethod
    def of(cls, epsilon: Fraction, states: Sequence[StreamState]) -> StreamStates:
        """The same states, which were checked, as columns."""
        rows = [(state.step, state.low, state.high) for state in states]
        return cls(epsilon, np.array(rows, dtype=np.int64).reshape(-1, 3).T)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return StreamStates(self.epsilon, self.columns[:, i])
        return StreamState(self.epsilon, *self.columns[:, i].tolist())

    def __repr__(self) -> str:
        return f"<states of {len(self)} streams>"


class _Laws(NamedTuple):
    """`StepLaw` for users with a column each."""

    prior: IntegerArray
    units: IntegerArray
    level: IntegerArray
    more: IntegerArray


class Steps:
    """The tables of a stream for many users; the index behind the last category is for padding."""

    def __init__(self, engine: StreamEngine) -> None:
        self.engine, self.bits, self.digits = engine, engine.bits, engine.ratio_bits
        self.total, self.prior_total = engine.total, engine.prior_total
        self.prior = np.array([*engine.prior, 0], dtype=np.int64)
        self.before = np.cumsum([0, *engine.prior], dtype=np.int64)
        self.levels = np.array(engine.levels, dtype=np.int64)
        self.pace = np.array(engine.pace, dtype=np.int64)

    def step(
        self, rows: sparse.csr_array[Any], words: IntegerArray, columns: IntegerArray
    ) -> tuple[IntegerArray, IntegerArray]:
        """What each user's word releases, and the columns of the next states."""
        least, most = self._ratios(columns)
        index = np.searchsorted(self.before, words >> self.digits, side="right") - 1
        units = self.prior[index] << self.digits  # so far for users without records, who release the prior
        for users, indices, counts in packs(rows):
            laws = self._laws(indices, counts, least[users], most[users])
            index[users], units[users] = self._drawn(laws, indices, words[users])
        return index, np.stack([columns[0] + 1, *self._moved(columns, self.prior[index], units)])

    def _moved(self, columns: IntegerArray, prior: IntegerArray, units: IntegerArray) -> list[IntegerArray]:
        """The bounds of R after the release."""
        least = units // prior
        low, _ = _times(columns[1], least, self.digits)
        high, rounded = _times(columns[2], least + (units > least * prior), self.digits)
        return [np.maximum(low, self.engine.one), np.minimum(high + rounded, self.engine.most)]

    def _ratios(self, columns: IntegerArray) -> tuple[IntegerArray, IntegerArray]:
        """The least and the largest ratio of every user, with the pace of their step."""
        least, rounded = _divided(self.engine.one, columns[1], self.digits)
        most, _ = _divided(self.engine.most, columns[2], self.digits)
        most = np.minimum(most, self.total)
        pace = self.pace.take(columns[0], mode="clip")
        paced = self.levels[(np.searchsorted(self.levels, most, side="right") - 1) * pace // PACE]
        return least + rounded, np.where(pace < PACE, paced, most)

    def _laws(
        self, indices: IntegerArray, counts: IntegerArray, least: IntegerArray, most: IntegerArray
    ) -> _Laws:
        """The laws of users. Outside the box nothing is released."""
        prior = self.prior.take(indices)
        own = prior > 0
        weight = np.maximum(prior, 1)
        kept = counts >> np.searchsorted(1 << np.arange(SHARE_DIGITS, 63), counts.sum(axis=0), side="right")
        shares = scaled_product(kept, self.total, kept.sum(axis=0))
        wanted = np.where(own, np.clip(shares // weight, least, most), 0)
        others = self.prior_total - prior.sum(axis=0)
        level, left, raised = _levels(wanted, prior, own, others, least, self.total)
        room = np.where(own & np.where(raised, wanted <= level, wanted > level), prior, 0)
        extra = np.clip(left - (np.cumsum(room, axis=0) - room), 0, room)
        units = np.where(room > 0, level, wanted) * prior + extra
        more = left - extra.sum(axis=0)
        level = np.where(raised, level, least)
        everything = units.sum(axis=0) + level * others + more
        inside = (~own | (units >= least * prior) & ((units - 1) // weight < most)).all(axis=0)
        inside &= (others == 0) | (least <= level) & (level + (more > 0) <= most)
        if not (inside & (more >= 0) & (more <= others) & (everything == self.total)).all():
            raise CertificateError("a law left its box; nothing is released")
        return _Laws(prior, units, level, more)

    def _drawn(
        self, laws: _Laws, indices: IntegerArray, words: IntegerArray
    ) -> tuple[IntegerArray, IntegerArray]:
        """The category that each user's word falls into, and its units."""
        sums = np.cumsum(laws.units, axis=0)
        at = (words >= sums).sum(axis=0)
        own = np.minimum(at, len(indices) - 1)[None]
        index = np.take_along_axis(indices, own, axis=0)[0]
        units = np.take_along_axis(laws.units, own, axis=0)[0]
        other = np.flatnonzero(at == len(indices))
        level, more, word = laws.level[other], laws.more[other], words[other] - sums[-1, other]
        rich = more * (level + 1)
        unit = np.where(word < rich, word // (level + 1), more + (word - rich) // np.maximum(level, 1))
        passed = np.zeros_like(unit)  # from a number among the prior units of the others to one among all
        for row, weights in zip(indices[:, other], laws.prior[:, other], strict=True):
            passed += np.where(unit + passed >= self.before.take(row, mode="clip"), weights, 0)
        found = np.searchsorted(self.before, unit + passed, side="right") - 1
        extra = np.clip(more - (self.before[found] - passed), 0, self.prior[found])
        index[other], units[other] = found, level * self.prior[found] + extra
        return index, units


def _levels(
    wanted: IntegerArray, prior: IntegerArray, own: Any, others: IntegerArray, least: IntegerArray, total: int
) -> tuple[IntegerArray, IntegerArray, Any]:
    """Of every user the level, the units that it leaves over, and whether ratios are raised to it."""
    order = np.argsort(np.where(own, wanted, np.iinfo(np.int64).max), axis=0, kind="stable")
    ratio, weight = np.take_along_axis(wanted, order, axis=0), np.take_along_axis(prior, order, axis=0)
    zero = np.zeros((1, wanted.shape[1]), dtype=np.int64)
    units = np.concatenate([zero, np.cumsum(ratio * weight, axis=0)])
    slopes = np.concatenate([zero, np.cumsum(weight, axis=0)])
    raised = units[-1] + least * others <= total
    left = np.where(raised, total - units[-1] + units, total - least * others - units)
    slope = np.where(raised, others + slopes, slopes[-1] - slopes)
    passed = (slope[:-1] == 0) | (ratio <= left[:-1] // np.maximum(slope[:-1], 1))
    count = (passed & (weight > 0)).sum(axis=0)[None]
    left, slope = (np.take_along_axis(array, count, axis=0)[0] for array in (left, slope))
    level = left // slope
    return level, left - level * slope, raised


def _times(x: IntegerArray, y: IntegerArray, digits: int) -> tuple[IntegerArray, Any]:
    """⌊x·y/2^digits⌋ and whether it was rounded, for x and results below 2^62."""
    lowest = (1 << digits) - 1
    below = (x & ((1 << _HALF) - 1)) * (y & lowest)
    upper = ((x >> _HALF) * (y & lowest)) << (_HALF - digits)
    return x * (y >> digits) + upper + (below >> digits), (below & lowest) > 0


def _divided(number: int, divisor: IntegerArray, digits: int) -> tuple[IntegerArray, Any]:
    """⌊number·2^digits/divisor⌋ and whether it was rounded."""
    whole, rest = np.divmod(np.int64(number), divisor)
    part = scaled_product(rest, 1 << digits, divisor)
    return (whole << digits) + part, (rest << digits) != part * divisor  # what is left is exact modulo 2^64
