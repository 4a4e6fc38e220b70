"""Power caps chosen for you, on invented users or on users declared public.

The choice is a grid over two parameters and nothing finer: floors with many free parameters, fitted to
public or invented users, serve other users worse. Everything that decides is computed in whole numbers, or
in doubles that every machine rounds alike, so that the same prior and ε give the same floor, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .. import _validate
from .._validate import FloatArray
from ..errors import ParameterError
from ..prior import Prior
from ..samplers import floors
from ..samplers.base import ClipSampler
from .invented import UNITS, Whole, blurred, invented
from .public_users import PublicUsers

if TYPE_CHECKING:
    from scipy import sparse

EXPONENTS = tuple(eighth / 8 for eighth in range(8, -1, -1))
HALVINGS = 5
"""Scales: the range halved five times in the logarithm, 31 values."""
TAIL_INVENTED, TAIL_PUBLIC = 0.1, 0.3
WORST = 100
"""The tail is the mean of the worst hundredth of the invented users."""


def fitted(
    prior: Prior, epsilon: float, users: PublicUsers | None = None, *, tail: float | None = None
) -> ClipSampler:
    """`power_caps` with scale and exponent chosen for you, from the prior alone or with public users.

    Of 9 exponents × 31 scales the one with the smallest mean + tail·(mean of the worst) total variation.
    Without users, on 1,200 users invented from the prior, a third each from the Dirichlet distributions with
    parameters κ·q, κ = k, 3k and 10k (rounded), k = √(1/Σq²); the worst are 1 % of them. With public users
    the mean is that of blurred copies of them, draws from the Dirichlet distribution with parameter (κ −
    1)·p + q, κ = 7k. The worst are still those of the invented users: published data hold too few unusual
    users to tell.

    Guarantees
        ε-locally private and keeps the prior, like every `power_caps`. Deterministic: the same prior, ε
        and tail give the same floor, bit for bit, on every machine, in whatever order the categories are
        (with public users, too, as far as machines add up their rows alike). Choosing costs no privacy as
        long as the users really are public: only a `PublicUsers` is accepted, never a bare array.

    Parameters
        users: a `PublicUsers`. A user who should count several times is repeated.
        tail: the weight of the worst users, 0 or more; by default 0.1 for invented users and 0.3 with
            public ones. More lowers the maximum and raises the mean.

    Raises
        ParameterError: users is not a PublicUsers, or an option is out of range.

    >>> sampler = fitted(Prior.from_counts({"a": 70, "b": 25, "c": 5}), 2.0)
    >>> sampler.keeps_prior, sorted(sampler.options)
    (True, ['exponent', 'scale'])
    """
    if not isinstance(prior, Prior):
        raise ParameterError(
            f"prior must be a Prior, got {type(prior).__name__}; use Prior(categories, probabilities)"
        )
    epsilon, q = _validate.privacy(epsilon), prior.probabilities
    if users is not None and not isinstance(users, PublicUsers):
        raise ParameterError(
            f"users must be a PublicUsers, got {type(users).__name__}: parameters chosen on private "
            f"users leak; wrap public data as PublicUsers(p, source=...), or give no users"
        )
    order = np.argsort(-q, kind="stable")
    ranked = q[order]
    crowd = _crowd(ranked.tobytes())
    if users is None:
        typical, weight = crowd, TAIL_INVENTED
    else:
        typical, weight = blurred(_validate.users(users.p, len(prior))[:, order], ranked), TAIL_PUBLIC
    if tail is not None:
        weight = _validate.at_least(0, tail=tail)
    best, chosen = math.inf, (1.0, 1.0)
    for exponent, scale in _grid(ranked, epsilon):
        floor = floors.power_caps(ranked, epsilon, scale, exponent)
        score = _score(floor, epsilon, typical, crowd, weight)
        if score < best:
            best, chosen = score, (exponent, scale)
    exponent, scale = chosen
    floor = floors.power_caps(q, epsilon, scale, exponent)
    return ClipSampler("fitted", prior, epsilon, floor, {"scale": scale, "exponent": exponent})


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
            scales = [*(one for pair in zip(scales, between, strict=False) for one in pair), scales[-1]]
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
    count = -(-len(far) // WORST)
    worst = int(np.sort(far)[-count:].sum())
    return int(middle.sum()) / len(middle) + tail * (worst / count)


def _distances(rows: sparse.csr_array[np.int64], low: Whole, high: Whole) -> Whole:
    """Total variation to the box in whole units: max( Σ(p − high)₊ , Σlow − Σ_{p>0} min(low, p) )."""
    starts = rows.indptr[:-1]
    amounts = high[rows.indices]
    np.maximum(np.subtract(rows.data, amounts, out=amounts), 0, out=amounts)
    over = np.add.reduceat(amounts, starts)
    low.take(rows.indices, out=amounts, mode="clip")  # in place: no index is out of range
    kept = np.add.reduceat(np.minimum(amounts, rows.data, out=amounts), starts)
    return np.asarray(np.maximum(over, int(low.sum()) - kept))
