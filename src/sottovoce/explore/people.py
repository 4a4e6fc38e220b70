"""The people whom the page looks at, as they were counted: records per category, never rescaled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import FloatArray
from ..demo import demo_data
from ..errors import UserDataError
from ..prior import Prior
from ..users import Users

if TYPE_CHECKING:
    from scipy import sparse

INVENTED, RECORDS = 50, 20
"""People that are invented where none were given, and the records of each of them."""
MOST_MEASURED = 200
"""People on whom a recommendation is computed, spread evenly over all of them."""
MOST_RECORDS = 1e15


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Rows over the categories with each person's total; printing one shows no data."""

    p: sparse.csr_array[np.float64]
    totals: FloatArray
    given: bool

    def __len__(self) -> int:
        return len(self.totals)

    def counts(self, place: int) -> FloatArray:
        """One person's records per category, as they were counted."""
        row = self.p[[place]]
        out = np.zeros(row.shape[1])
        # A share times the total misses the count by a rounding or two; twelve digits are the count.
        out[row.indices] = [float(f"{x:.12g}") for x in (row.data * self.totals[place]).tolist()]
        return out

    @cached_property
    def some(self) -> sparse.csr_array[np.float64]:
        """At most `MOST_MEASURED` people, spread evenly, for numbers that must come fast."""
        if len(self) <= MOST_MEASURED:
            return self.p
        return self.p[np.linspace(0, len(self) - 1, MOST_MEASURED).astype(np.intp)]

    def crowd(self, size: int) -> sparse.csr_array[np.float64]:
        """So many simulated people: these ones, drawn again and again."""
        return self.p[np.random.default_rng(1).integers(0, len(self), size)]


@lru_cache(maxsize=64)
def of_users(users: Users) -> People:
    """The users of a file; the same value for every visit, so that what was computed on it is kept."""
    totals = np.ones(len(users)) if users.amounts is None else users.amounts
    return People(users.p, np.asarray(totals, dtype=np.float64), given=True)


def of_counts(counts: Any, *, given: bool) -> People:
    """People from a table of counts, one row each."""
    from scipy import sparse

    rows = np.asarray(counts, dtype=np.float64)
    totals = rows.sum(axis=1)
    return People(sparse.csr_array(rows / totals[:, None]), totals, given)


@cache
def of_demo() -> tuple[Mapping[str, Prior], Mapping[str, People]]:
    """The priors and the members of the demo."""
    data = demo_data()
    return data.priors, {group: of_counts(counts, given=True) for group, counts in data.members.items()}


@lru_cache(maxsize=16)
def invented(prior: Prior) -> People:
    """People for public data that came without any: draws around the prior, the same ones each time."""
    rng = np.random.default_rng(7)
    shares = rng.dirichlet(np.maximum(5 * prior.probabilities, 1e-3), size=INVENTED)
    return of_counts([rng.multinomial(RECORDS, share) for share in shares], given=False)


def shares(counts: FloatArray) -> FloatArray:
    """The distribution of a person's records."""
    p: FloatArray = counts / counts.sum()
    return p


def number(count: float) -> str:
    """A count as it is typed: whole numbers without a point, others with every digit they have."""
    return np.format_float_positional(count, trim="-")


def as_text(counts: FloatArray, prior: Prior) -> str:
    """A person as lines that can be edited; `typed` reads exactly the same counts back."""
    order = np.argsort(-counts, kind="stable")
    return "\n".join(f"{prior.categories[i]} {number(counts[i])}" for i in order.tolist() if counts[i])


def typed(text: str, prior: Prior) -> FloatArray:
    """A person from lines such as "Drama 3": a category and how often; the last word is the number."""
    counts = np.zeros(len(prior))
    places = {str(name).strip(): i for i, name in enumerate(prior.categories)}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = re.fullmatch(r"(.+?)\s*([0-9]+(?:\.[0-9]+)?)", line)
        names = [] if match is None else [match[1].strip(), match[1].strip().rstrip(":,=").strip()]
        place = next((places[name] for name in names if name in places), None)
        if match is None or place is None:
            raise UserDataError("each line is a category of the prior and a number, such as: Drama 3")
        counts[place] += float(match[2])
    if not 0 < counts.sum() < MOST_RECORDS:
        raise UserDataError("the user needs at least one record: write a category and a number")
    return counts


def changed(counts: FloatArray, place: int, by: float) -> FloatArray:
    """The counts with one category raised or lowered, never below nothing and never empty."""
    out = counts.copy()
    out[place] = max(out[place] + by, 0.0)
    return out if 0 < out.sum() < MOST_RECORDS else counts


def own_first(counts: FloatArray, prior: Prior) -> tuple[list[int], list[int]]:
    """The person's own categories, the largest first, and the others, the likeliest first."""
    own = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i] > 0]
    others = [int(i) for i in np.argsort(-prior.probabilities, kind="stable") if counts[i] == 0]
    return own, others
