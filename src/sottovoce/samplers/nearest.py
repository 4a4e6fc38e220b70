"""The rule for categories of which some are near each other: the law of the box that moves the least mass.

The certificate is about the box, so any point of it may be released. The clip is the best one for every
f-divergence, which counts all mistakes alike; here it is the one with the smallest W1 (`sottovoce.geometry`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import checks
from ..checks import FloatArray
from ..core.constants import BITS
from ..core.nearest_law import IntegerArray, nearest_laws
from ..divergences import Distance, checked
from ..errors import ParameterError
from ..geometry import Geometry, Wasserstein, checked_geometry
from ..prior import Prior
from . import floors
from .base import BoxSampler, checked_prior

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False, repr=False)
class NearestSampler(BoxSampler):
    """Answers every user with the point of the box above a floor that moves the least mass.

    Guarantees
        Every law lies in {x : c ≤ x ≤ e^ε·c}, so the sampler is ε-locally private. No sampler with the same
        floor has a smaller W1 to any user.
    """

    geometry: Geometry = field(default_factory=lambda: Geometry((1,), (0,)))

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_geometry(self.geometry, len(self.prior))

    @cached_property
    def _box(self) -> tuple[IntegerArray, IntegerArray]:
        """Floors and caps in units of 2^-62."""
        unit = 2.0**BITS
        low = np.maximum((self.floor * unit).astype(np.int64), 1)
        high = np.minimum(self.floor * math.exp(self.epsilon), 1.0) * unit
        missing = (1 << BITS) - sum(high.astype(np.int64).tolist())
        if missing > 0:  # rounding may have closed the box by some units
            high += 2.0 * missing / len(low)
        return low, np.maximum(high.astype(np.int64), low)

    def _laws(self, rows: sparse.csr_array[np.float64]) -> FloatArray:
        """The x of the box with the smallest W1(p, x)."""
        low, high = self._box
        sums = np.cumsum(rows.toarray(), axis=1)
        ends: IntegerArray = (sums / sums[:, -1:] * 2.0**52).astype(np.int64) << (BITS - 52)
        return nearest_laws(np.diff(ends, axis=1, prepend=0), low, high, self.geometry) / 2.0**BITS

    def worst_case(self, f: Distance) -> float:
        """The largest W1 of a point mass: the least W1 to the box is convex in p.

        Raises
            ParameterError: f is an f-divergence, for which the worst case of this rule is not known.
        """
        if not isinstance(checked(f), Wasserstein):
            raise ParameterError(f"the worst case of {self.name} is known for W1 alone (wasserstein)")
        return self._worst_point_mass(f)


def nearest(prior: Prior, epsilon: float, geometry: Geometry, *, share: float = 0.5) -> NearestSampler:
    """Near is better than far: for categories on a line, in a tree or on a map.

    Releases the law x of the box c ≤ x ≤ e^ε·c with the smallest W1(p, x) for the geometry: a user who likes
    films of 1994 is rather released as 1995 than as 1931. The floor is c = e^(−share·ε)·q.

    Guarantees
        ε-locally private between any two users, however far apart they are: this is no privacy per kilometre.
        Keeps the prior. No sampler with this floor has a smaller W1 to any user.

    Parameters
        geometry: a `Line` or a `Tree` over the prior's categories, in their order. It is public.
        share: which part of ε lowers the floor; the rest raises the caps. docs/places.md has the measurements
            behind 1/2.

    Raises
        ParameterError: the geometry has another number of categories, or an option is out of range.

    >>> from sottovoce import Line, wasserstein, relative_mollifier
    >>> prior, years = Prior.uniform([1990, 1991, 1992, 1993]), Line([1990, 1991, 1992, 1993])
    >>> near, user = nearest(prior, 2.0, years), [1, 0, 0, 0]
    >>> near.distribution(user).round(3).tolist()
    [0.68, 0.136, 0.092, 0.092]
    >>> bool(near.divergence(user, wasserstein(years))
    ...      < relative_mollifier(prior, 2.0).divergence(user, wasserstein(years)))
    True
    """
    epsilon = checks.privacy(epsilon)
    part = checks.fraction(share=share)
    if part in (0.0, 1.0):
        raise ParameterError(f"share must lie between 0 and 1, got {part:g}: everybody would get the prior")
    q = checked_prior(prior).probabilities
    options = {} if share == 0.5 else {"share": part}
    floor = q * floors.exactly_rounded_exp(-part * epsilon)
    return NearestSampler("nearest", prior, epsilon, floor, options, checked_geometry(geometry, len(prior)))
