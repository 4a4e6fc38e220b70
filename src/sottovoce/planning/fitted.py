"""Power caps chosen for you, on invented users or on users declared public.

The choice is a grid over two parameters and nothing finer: floors with many free parameters, fitted to
public or invented users, serve other users worse. Everything that decides is computed in integers, or in
doubles that every machine rounds alike, so that the same prior and ε give the same floor, bit for bit.

Users are invented from a prior, or are blurred copies of public ones. A Dirichlet distribution with parameter
κ·b is a broken stick: weights v_1, (1−v_1)·v_2, … with v ~ Beta(1, κ), each put on a category drawn from b.
The part left over, 1 − v, is the largest of r uniform numbers, and its square root again and again, for κ =
r, 2r, 4r, …. So all that is needed are random words (a counter through the finaliser of SplitMix64, 64-bit
integer arithmetic), comparisons, products and shifts of integers, square roots of doubles, which every
machine rounds alike, and q·2^k rounded down: no logarithm, no gamma variate, no generator whose stream a
library may change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import checks
from ..checks import FloatArray
from ..errors import ParameterError, Setting
from ..prior import Prior
from ..records import Users, UsersLike, distributions
from ..samplers import floors
from ..samplers.base import ClipSampler, checked_prior
from ..samplers.catalogue import checked_promise, power_caps

if TYPE_CHECKING:
    from scipy import sparse

EXPONENTS = tuple(eighth / 8 for eighth in range(8, -1, -1))
HALVINGS = 5
"""Scales: the range halved five times in the logarithm, 31 values."""
TAIL_INVENTED, TAIL_PUBLIC = 0.1, 0.3
UNITS = 45
"""A distribution is integers that add up to 2^45."""
HALF = 30
"""Bits of a uniform number."""
CLOSENESS = (1, 3, 10)
"""κ of the invented users in units of √(1/Σq²), a third each: far from the prior, in between, near it.

1/Σq² is the number of categories that matter: for the 18 genres of MovieLens κ is about 3, 10 and 30.
"""
MOST = 512.0
"""κ is at most this: beyond it users are like the prior, and only the work grows."""
EACH = 400
BLUR = 7
"""κ of blurred public users, in the same units."""
COPIES = 1200
"""About how many blurred users are made, so that few public users count several times."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class PublicUsers:
    """Users whose data are public (a published data set) or invented (a simulation).

    A parameter chosen by looking at private users is a function of their data, released without any noise: a
    leak. So users have to be declared public before anything can be chosen on them: `source` says where they
    come from, in words a reviewer can check.

    >>> PublicUsers([[0.5, 0.5], [1.0, 0.0]], source="a published survey")
    PublicUsers(2 users, source='a published survey')
    """

    p: UsersLike
    source: str

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source.strip():
            raise ParameterError(
                Setting("source"), f" must say in words where the users come from, got {self.source!r}"
            )
        if isinstance(self.p, Users):
            raise ParameterError(
                "p must not come from read_users, which reads private users; if these really are public, "
                "pass their .p and say so in source"
            )

    def __repr__(self) -> str:
        rows: Any = self.p  # numpy says the shape of sparse rows too, but does not list them as array-like
        shape: tuple[int, ...] = np.shape(rows)
        return f"PublicUsers({shape[0] if len(shape) > 1 else 1} users, source={self.source!r})"


def check_public(users: PublicUsers | None) -> None:
    """Refuse users that were not declared public."""
    if users is not None and not isinstance(users, PublicUsers):
        raise ParameterError(
            f"users must be a PublicUsers, got {type(users).__name__}: parameters chosen on private "
            f"users leak; wrap public data as PublicUsers(p, source=...), or give no users"
        )


def fitted(
    prior: Prior,
    epsilon: float,
    users: PublicUsers | None = None,
    *,
    tail: float | None = None,
    promise: float | str | None = None,
) -> ClipSampler:
    """The sampler to begin with: good for typical users and for unusual ones, chosen for this prior and ε.

    Use it if nothing else decides; `choose` compares it with the others. It is `power_caps` with a scale and
    an exponent chosen from the prior alone or with public users; `certify` makes a mechanism of it.

    Of 9 exponents × 31 scales the one with the smallest mean + tail·(mean of the worst) total variation on
    1,200 users invented from the prior, a third each from the Dirichlet distributions with parameters κ·q,
    κ = k, 3k and 10k (rounded), k = √(1/Σq²); the worst are 1 % of them. With public users the mean is that
    of blurred copies of them, draws from the Dirichlet distribution with parameter (κ − 1)·p + q, κ = 7k; the
    worst are still invented, because published data hold too few unusual users.

    Guarantees
        ε-locally private and keeps the prior, like every `power_caps`. The same prior, ε and tail give the
        same floor, bit for bit, on every machine, in whatever order the categories are (with public users, as
        far as machines add up their rows alike). Choosing costs no privacy if the users really are public.

    Parameters
        prior: the public distribution over the categories.
        epsilon: the privacy parameter: no release is more than e^ε times likelier from one user than from
            another. Larger is less private and nearer to the user's own data; from 0 to 100.
        users: a `PublicUsers`. A user who should count several times is repeated.
        tail: the weight of the worst users, 0 or more; by default 0.1 for invented users and 0.3 with
            public ones. More lowers the maximum and raises the mean.
        promise: t, and no possible user is further than 1 − t from their own data (total variation); "best"
            is the largest t of any sampler that keeps the prior, that of `prior_minimax`.

    Raises
        ParameterError: users is not a PublicUsers, an option is out of range, or no sampler that keeps the
            prior can keep the promise.

    >>> sampler = fitted(Prior.from_counts({"a": 70, "b": 25, "c": 5}), 2.0)
    >>> sampler.distribution([0.0, 0.1, 0.9]).round(3).tolist()  # of a user who has mostly c
    [0.122, 0.509, 0.369]
    """
    epsilon, q = checks.privacy(epsilon), checked_prior(prior).probabilities
    check_public(users)
    order = np.argsort(-q, kind="stable")
    ranked = q[order]
    crowd = _crowd(ranked.tobytes())
    if users is None:
        typical, weight = crowd, TAIL_INVENTED
    else:
        typical, weight = blurred(distributions(users.p, len(prior))[:, order], ranked), TAIL_PUBLIC
    if tail is not None:
        weight = checks.at_least(0, tail=tail)
    kept = None if promise is None else checked_promise(q, epsilon, promise)
    reference = floors.prior_minimax(ranked, epsilon)
    best, chosen = math.inf, (1.0, 1.0)
    for exponent, scale in _grid(ranked, epsilon):
        floor = floors.power_caps(ranked, epsilon, scale, exponent)
        if kept is not None:
            floor = floors.promised(floor, reference, epsilon, kept)
        score = _score(floor, epsilon, typical, crowd, weight)
        if score < best:
            best, chosen = score, (exponent, scale)
    exponent, scale = chosen
    made = power_caps(prior, epsilon, scale=scale, exponent=exponent, promise=kept)
    return ClipSampler("fitted", prior, epsilon, made.floor, made.options)


@lru_cache(maxsize=1)
def _crowd(ranked: bytes) -> sparse.csr_array[np.int64]:
    """The invented users of a prior, which do not depend on ε: they are the same for all of a comparison."""
    return invented(np.frombuffer(ranked))


def _grid(q: FloatArray, epsilon: float) -> Iterator[tuple[float, float]]:
    """Exponents and scales; geometric means by square roots, which every machine rounds alike."""
    for exponent in EXPONENTS:
        scales = list(floors.power_range(q, epsilon, exponent))
        for _ in range(HALVINGS):
            between = [math.sqrt(left) * math.sqrt(right) for left, right in pairwise(scales)]
            scales = [*(scale for pair in zip(scales, between, strict=False) for scale in pair), scales[-1]]
        for scale in scales[1:-1]:
            yield exponent, scale


def _score(
    floor: FloatArray,
    epsilon: float,
    typical: sparse.csr_array[np.int64],
    crowd: sparse.csr_array[np.int64],
    tail: float,
) -> float:
    """Mean over `typical` + tail·(mean of the worst hundredth of `crowd`), from exact sums."""
    low = (floor * 2.0**UNITS).astype(np.int64)
    high = (floor * floors.exactly_rounded_exp(epsilon) * 2.0**UNITS).astype(np.int64)
    middle = _distances(typical, low, high)
    far = middle if typical is crowd else _distances(crowd, low, high)
    count = -(-len(far) // 100)
    worst = int(np.sort(far)[-count:].sum())
    return int(middle.sum()) / len(middle) + tail * (worst / count)


def _distances(rows: sparse.csr_array[np.int64], low: Integers, high: Integers) -> Integers:
    """Total variation to the box in integer units: max( Σ(p − high)₊ , Σlow − Σ_{p>0} min(low, p) )."""
    starts = rows.indptr[:-1]
    amounts = high[rows.indices]
    np.maximum(np.subtract(rows.data, amounts, out=amounts), 0, out=amounts)
    over = np.add.reduceat(amounts, starts)
    low.take(rows.indices, out=amounts, mode="clip")  # in place: no index is out of range
    kept = np.add.reduceat(np.minimum(amounts, rows.data, out=amounts), starts)
    return np.asarray(np.maximum(over, int(low.sum()) - kept))


def random_words(stream: int, count: int) -> npt.NDArray[np.uint64]:
    """The random words of one stream: SplitMix64's finaliser of a counter (Steele, Lea, Flood 2014)."""
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(stream << 40)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _uniform(stream: int, count: int) -> Integers:
    """Numbers below 2^30."""
    return (random_words(stream, count) >> np.uint64(64 - HALF)).astype(np.int64)


def closeness(q: FloatArray, times: int) -> tuple[int, int]:
    """`times`·√(1/Σq²), rounded to r·2^j with 1 ≤ r ≤ 8: the pair r, j."""
    matter = 1 / math.fsum((q * q).tolist())  # an exact sum: no order of adding up decides
    wanted = min(times * math.sqrt(matter), MOST)
    doublings = 0
    while wanted > 8:
        wanted, doublings = wanted / 2, doublings + 1
    return max(1, math.floor(wanted + 0.5)), doublings


@lru_cache(maxsize=8)
def _order(stream: int, count: int) -> npt.NDArray[np.intp]:
    return np.argsort(random_words(stream, count), kind="stable")


@lru_cache(maxsize=8)
def _sticks(users: int, largest: int, doublings: int, stream: int) -> Integers:
    """Broken sticks, one a row: 7·κ pieces and one for what is left (e^-7 of it); κ = largest·2^doublings."""
    pieces = 7 * (largest << doublings)
    left = np.zeros((users, pieces), dtype=np.int64)
    for k in range(largest):
        left = np.maximum(left, _uniform(stream + k, users * pieces).reshape(users, pieces))
    if doublings:
        share = left * 2.0**-HALF
        for _ in range(doublings):
            share = np.sqrt(share)
        left = (share * 2.0**HALF).astype(np.int64)
    out = np.empty((users, pieces + 1), dtype=np.int64)
    stick = np.full(users, 1 << UNITS, dtype=np.int64)
    for j in range(pieces):
        shorter = ((stick >> (UNITS - HALF)) * left[:, j]) >> (2 * HALF - UNITS)
        out[:, j] = stick - shorter
        stick = shorter
    out[:, pieces] = stick
    out.setflags(write=False)
    return out


def _rows(sticks: Integers, categories: npt.NDArray[np.intp], n: int) -> sparse.csr_array[np.int64]:
    """Sparse users: what the pieces of a stick put on each category."""
    from scipy import sparse

    owner = np.repeat(np.arange(len(sticks)), sticks.shape[1])
    made = sparse.coo_array((sticks.ravel(), (owner, categories.ravel())), shape=(len(sticks), n))
    rows: sparse.csr_array[np.int64] = sparse.csr_array(made)
    rows.eliminate_zeros()
    return rows


def invented(q: FloatArray, *, crowd: int = 0) -> sparse.csr_array[np.int64]:
    """400 users each from three Dirichlet distributions; other crowds are drawn from other random words.

    The categories are spread evenly: over all users of one kind each has its share q to within one piece.
    """
    from scipy import sparse

    ends = np.cumsum((q * 2.0**38).astype(np.int64) + 1)
    kinds = []
    for kind, times in enumerate(CLOSENESS):
        stream = 10_000 * crowd + 100 * kind
        sticks = _sticks(EACH, *closeness(q, times), stream + 1)
        even = ((2 * np.arange(sticks.size, dtype=np.int64) + 1) * int(ends[-1])) // (2 * sticks.size)
        shuffled = np.searchsorted(ends, even, side="right")[_order(stream, sticks.size)]
        kinds.append(_rows(sticks, shuffled, len(q)))
    return sparse.csr_array(sparse.vstack(kinds))


def blurred(rows: sparse.csr_array[np.float64], q: FloatArray) -> sparse.csr_array[np.int64]:
    """About 1,200 draws from the Dirichlet distributions with parameters (κ − 1)·p + q, p public users."""
    m = rows.shape[0]
    chosen = np.arange(m * max(1, COPIES // m)) % m if m <= COPIES else np.arange(COPIES) * m // COPIES
    largest, doublings = closeness(q, BLUR)
    sticks = _sticks(len(chosen), largest, doublings, 1001)
    ends = np.cumsum(np.maximum((rows.data * 2.0**HALF).astype(np.int64), 1))
    last = ends[rows.indptr[1:] - 1]
    before = np.concatenate([[0], last[:-1]])
    size = (last - before)[chosen][:, None]
    word, another = (_uniform(stream, sticks.size).reshape(sticks.shape) for stream in (1101, 1102))
    own = np.searchsorted(ends, before[chosen][:, None] + ((word * size) >> HALF), side="right")
    every = np.cumsum((q * 2.0**HALF).astype(np.int64) + 1)
    other = np.searchsorted(every, (another * int(every[-1])) >> HALF, side="right")
    from_prior = random_words(1103, sticks.size) % np.uint64(largest << doublings) == 0
    categories = np.where(from_prior.reshape(sticks.shape), other, rows.indices[own])
    return _rows(sticks, categories, len(q))
