"""Public data: a strictly positive distribution over named categories."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import checks, listing
from .checks import FloatArray
from .core.constants import LARGEST_INTEGER
from .errors import PriorError, Setting
from .records import indices_of

Category: TypeAlias = str | int


SMALLEST_PROBABILITY = 1e-100
"""Below this a floor times e^-epsilon could leave double precision."""

PROVENANCES = ("public", "learned", "users")
"""Where a prior comes from: public data, private reports, or the very users that it serves."""
ORIGINS = {
    "public": "stated to be public",
    "learned": "learned from private reports",
    "users": "made from the users it serves",
}
"""The same in words."""
FROM_USERS = (
    "The prior was made from the very users it serves, as far as can be told: good for a comparison, not for "
    "a private release, because the prior itself tells about them. If only its table looks so, state "
    "what that is where the prior is made (its provenance, 'public'); a prior as "
    "close to the users' average as one that was made from them is marked whatever is stated."
)
"""What every card, comparison and mechanism made from such a prior says."""


@dataclass(frozen=True)
class Learned:
    """What a prior was learned from: so many private reports of the mechanism with this digest.

    `epsilon` is the largest ε of these reports and of those behind the prior that they started from.
    """

    reports: int
    epsilon: float
    mechanism: str

    def __post_init__(self) -> None:
        counted = isinstance(self.reports, int) and 0 < self.reports < LARGEST_INTEGER
        named = re.fullmatch("[0-9a-f]{64}", self.mechanism, re.ASCII)
        if not counted or not 0 < self.epsilon <= 100 or not named:
            raise PriorError("a prior is learned from reports, at an epsilon, of a mechanism's digest")

    def __str__(self) -> str:
        return learned_from(self.reports, shortest_text(self.epsilon), self.mechanism)


def shortest_text(epsilon: float) -> str:
    """An ε as short as can be, and still the same double when it is read."""
    short = f"{epsilon:g}"
    return short if float(short) == epsilon else repr(float(epsilon))


def learned_from(reports: int, epsilon: str, mechanism: str) -> str:
    """What a prior was learned from, in words."""
    return f"learned from {reports:,} private reports at ε = {epsilon} (mechanism {mechanism[:16]}…)"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Prior:
    """A public distribution q over n named categories, q_i > 0 and Σq = 1.

    The order of the categories is the caller's and stays so: every law, floor and user vector of the
    library uses it.

    Guarantees
        ``probabilities`` is strictly positive, read-only and sums to one up to rounding. A category with
        probability zero could never be released privately: remove it, merge it, or smooth with
        ``Prior.from_counts(..., smoothing=0.5)``.

    Parameters
        categories: distinct names, all strings or all integers; a ``range`` is kept as it is.
        probabilities: one number per category; must sum to one within 1e-9 (then normalised).
        provenance: "public" data, "learned" from private reports, or counted from the very "users" it will
            serve. The last is not public, and everything made from it says so.
        learned: the reports that a learned prior comes from.

    Raises
        PriorError: zero, negative or non-finite probability, duplicate category, wrong length.

    >>> prior = Prior(["Drama", "War", "Comedy"], [0.6, 0.1, 0.3])
    >>> len(prior), prior.smallest, prior.categories[1]
    (3, 0.1, 'War')
    """

    categories: Sequence[Category]
    probabilities: FloatArray
    provenance: str
    learned: Learned | None

    def __init__(
        self,
        categories: Iterable[Category],
        probabilities: npt.ArrayLike | Iterable[float],
        *,
        provenance: str = "public",
        learned: Learned | None = None,
    ) -> None:
        names = _names(categories)
        q = _weights(probabilities, "probabilities")
        _check_against(names, q, "probabilities")
        total = exact_sum(q)  # exact, so that the result does not depend on the order
        if not abs(total - 1) <= checks.SUM_TOLERANCE:
            advice = "use Prior.from_counts to normalise counts"
            raise PriorError(f"probabilities must sum to 1, they sum to {total:.12g}; {advice}")
        q /= total
        if q.min() < SMALLEST_PROBABILITY:
            i = int(q.argmin())
            has = f"category {names[i]!r} has {q[i]:g}"
            raise PriorError(f"probabilities must be at least {SMALLEST_PROBABILITY:g}: {has}")
        chosen = checks.one_of(PROVENANCES, provenance=provenance)
        if learned is not None:
            if chosen == "users":
                raise PriorError("a prior made from the users it serves is not learned from private reports")
            chosen = "learned"
        self.__setstate__({"categories": names, "probabilities": q, "provenance": chosen, "learned": learned})

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[Any, float] | Iterable[float],
        categories: Iterable[Category] | None = None,
        *,
        smoothing: float = 0.0,
        provenance: str = "public",
    ) -> Prior:
        """Normalise public counts, adding `smoothing` to each first: q_i ∝ count_i + smoothing.

        `counts` is a mapping from category to count, or a sequence beside `categories`.

        >>> Prior.from_counts({"Drama": 30, "War": 0}, smoothing=5).probabilities.tolist()
        [0.875, 0.125]
        """
        extra = checks.at_least(0, smoothing=smoothing)
        if isinstance(counts, Mapping):
            if categories is not None:
                raise PriorError("categories must be left out when counts is a mapping")
            names, weights = _names(counts.keys()), _weights(counts.values(), "counts")
        else:
            weights = _weights(counts, "counts")
            names = range(len(weights)) if categories is None else _names(categories)
        if np.any(weights < 0):
            _check_against(names, weights, "counts")
        weights += extra
        _check_against(names, weights, "counts", "drop it, merge it or smooth: ", Setting("smoothing"))
        try:
            total = exact_sum(weights)
        except OverflowError:
            raise PriorError("counts must have a finite sum; divide them by a constant first") from None
        return cls(names, weights / total, provenance=provenance)

    @classmethod
    def uniform(cls, categories: Iterable[Category]) -> Prior:
        """The prior that favours nothing: q_i = 1/n.

        >>> Prior.uniform(["a", "b"]).smallest
        0.5
        """
        names = _names(categories)
        return cls(names, np.full(len(names), 1 / len(names)))

    @property
    def origin(self) -> str:
        """The provenance in words."""
        return str(self.learned) if self.learned is not None else ORIGINS[self.provenance]

    @property
    def smallest(self) -> float:
        """q_min, the only feature of the prior that the paper's optimal utility depends on."""
        return float(self.probabilities.min())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the categories with their probabilities; not of their order, which ``==`` compares."""
        order = sorted(range(len(self)), key=self.categories.__getitem__)
        names = list(map(str, map(self.categories.__getitem__, order)))
        kind = type(self.categories[0]).__name__
        state = hashlib.sha256(f"sottovoce prior 1 {kind} {len(names)}\n".encode())
        text = "".join(names)
        sizes = map(len, names if text.isascii() else (name.encode() for name in names))
        state.update(np.fromiter(sizes, dtype="<u8", count=len(names)).tobytes())
        state.update(text.encode())
        state.update(self.probabilities[order].astype("<f8").tobytes())
        return state.hexdigest()

    @cached_property
    def index(self) -> Mapping[Category, int]:
        """Where each category stands: its position in every vector of the library."""
        return MappingProxyType({name: i for i, name in enumerate(self.categories)})

    def frequencies(self, records: Iterable[Category]) -> FloatArray:
        """One user's p: the share of their records in each category.

        Raises
            UserDataError: a record is in no category (how many, never which), or there is none.

        >>> Prior.uniform(["Drama", "War"]).frequencies(["War", "Drama", "War", "War"]).tolist()
        [0.25, 0.75]
        """
        advice = "drop them, or add the category to the prior"
        where = indices_of(records, self.index, "prior", advice)
        return np.bincount(where, minlength=len(self)) / len(where)

    def __len__(self) -> int:
        return len(self.probabilities)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        return self is other or (
            len(self) == len(other)
            and (self.provenance, self.learned) == (other.provenance, other.learned)
            and bool(np.array_equal(self.probabilities, other.probabilities))
            and tuple(self.categories) == tuple(other.categories)
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # not what is cached

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.probabilities.setflags(write=False)

    def __repr__(self) -> str:
        mark = "" if self.provenance == "public" else f", {self.origin}"
        return f"Prior({len(self)} categories, smallest {self.smallest:.3g}{mark})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the likeliest categories."""
        q = self.probabilities
        order = np.argsort(-q, kind="stable")[: listing.LISTED].tolist()
        rows = [(str(self.categories[i]), f"{q[i]:.4f}") for i in order]
        head = ("category", "probability")
        return listing.Listing(head, rows, repr(self), more=len(self) - len(order)).html()


def _names(categories: Iterable[Category]) -> Sequence[Category]:
    """Category names as a tuple of plain str or int (or the range given), all distinct."""
    if isinstance(categories, range) and len(categories) > 0:
        return categories
    if isinstance(categories, str | bytes):
        raise PriorError(f"categories must be a sequence of names, got {categories!r}")
    try:
        listed = tuple(categories.tolist() if isinstance(categories, np.ndarray) else categories)
    except TypeError:
        raise PriorError(f"categories must be a sequence of names, got {categories!r}") from None
    if not listed:
        raise PriorError("categories must not be empty")
    types = list(map(type, listed))  # counted, which is faster than a set
    kinds = {types[0]} if types.count(types[0]) == len(types) else set(types)
    if kinds not in ({str}, {int}):
        listed = tuple([name.item() if isinstance(name, np.generic) else name for name in listed])
        kinds = set(map(type, listed))
    if kinds not in ({str}, {int}):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise PriorError(f"categories must be all strings or all integers, got {found}")
    if kinds == {int} and max(abs(int(name)) for name in listed) >= LARGEST_INTEGER:
        raise PriorError("integer categories must be below 2^53 in size; use strings")
    if kinds == {str} and not checks.is_text("".join(listed)):
        raise PriorError("categories must be text that a file can hold: half a surrogate pair is not")
    if len(set(listed)) != len(listed):
        first = {name: i for i, name in reversed([*enumerate(listed)])}
        twice = next(name for i, name in enumerate(listed) if first[name] != i)
        raise PriorError(f"categories must be distinct: {twice!r} appears more than once")
    return listed


CHUNK = 1 << 14
"""Terms that are added up at a time, so that they stay in the cache."""


def exact_sum(values: FloatArray) -> float:
    """What `math.fsum` gives, a few times faster: sums of leading digits, which are exact, rounded once."""
    sums: list[float] = []
    for begin in range(0, len(values), CHUNK):
        rest = values[begin : begin + CHUNK]
        while (top := float(np.abs(rest).max())) > 0:
            if top > 2.0**900:
                return math.fsum(values.data)
            coarse = math.ldexp(2 * CHUNK, math.frexp(top)[1])
            leading = (rest + coarse) - coarse  # 38 digits of each, so that 2^14 of them add up within 53
            sums.append(float(leading.sum()))
            rest = rest - leading
    return math.fsum(sums)


def _weights(values: Any, what: str) -> FloatArray:
    """A fresh one-dimensional array of doubles."""
    if isinstance(values, np.ma.MaskedArray):
        raise PriorError(f"{what} must not be a masked array: fill or drop what is masked")
    try:
        given = np.array(values if isinstance(values, np.ndarray | Sequence) else list(values))
        if given.dtype.kind not in "biufO":
            raise TypeError
        weights: FloatArray = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise PriorError(f"{what} must be numbers") from None
    if weights.ndim != 1:
        raise PriorError(f"{what} must be one number per category, got {weights.ndim} dimensions")
    return weights


def _check_against(names: Sequence[Category], weights: FloatArray, what: str, *advice: object) -> None:
    """Refuse lengths that differ and weights that are not strictly positive, naming the category.

    `advice` says what to do with a category of weight zero.
    """
    if len(names) != len(weights):
        sizes = f"{len(names)} categories, {len(weights)} {what}"
        raise PriorError(f"{what} must have one value per category: {sizes}")
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        i = int(np.argmax(bad))
        others = f" (and {int(bad.sum()) - 1} more)" if bad.sum() > 1 else ""
        has = f"category {names[i]!r} has {weights[i]:g}{others}"
        ending = ("; ", *(advice or ("drop it or merge it",))) if weights[i] == 0 else ()
        raise PriorError(f"{what} must be finite and greater than 0: {has}", *ending)
