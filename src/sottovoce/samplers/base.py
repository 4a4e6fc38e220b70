"""What a sampler is: a floor and a rule. The rule is the clip, or a kernel.

Both kinds compute the law that is released for a user, its distance from the user's own, and the largest
such distance. Laws here are double-precision, for comparing and planning; `sottovoce.release` draws from
certified integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from .. import _html, _validate
from .._validate import FloatArray
from ..divergences import TV, Distance, FDivergence, checked, checked_f
from ..errors import NotLinearError, ParameterError
from ..geometry import Wasserstein
from ..prior import Prior
from ..users import Users, UsersLike, rows_for
from . import clip
from .blocks import BLOCK_ENTRIES, Block, blocks

if TYPE_CHECKING:
    from scipy import sparse

KEPT = 1e-12
"""The prior counts as kept when Q(q) is within this relative distance of q, plus one unit per category."""


@runtime_checkable
class Sampler(Protocol):
    """An ε-locally private sampler, Q(p)_i ≤ e^ε·Q(p')_i for all users p, p' and categories i."""

    @property
    def name(self) -> str:
        """The constructor's name."""

    @property
    def options(self) -> Mapping[str, float]:
        """The constructor's options, such as gamma or weight."""

    @property
    def prior(self) -> Prior:
        """The public distribution q."""

    @property
    def epsilon(self) -> float:
        """The privacy parameter ε."""

    @property
    def floor(self) -> FloatArray:
        """c: every user's law lies between c and e^ε·c, category by category."""

    @property
    def linear(self) -> bool:
        """Whether Q(p) = pK for a matrix K, so that one random record of the user is enough."""

    @property
    def keeps_prior(self) -> bool:
        """Whether Q(q) = q: for data equal to the public data the release follows them exactly."""

    def distribution(self, p: UsersLike | Users) -> FloatArray:
        """Q(p), the law of the one category released; a vector for a vector, else (m, n)."""

    def divergence(self, p: UsersLike | Users, f: Distance) -> FloatArray:
        """D_f(p‖Q(p)) or W1(p, Q(p)), one number per user (a scalar array for a vector).

        A private probability below 1e-250 counts as zero.
        """

    def worst_case(self, f: Distance) -> float:
        """The supremum of the same over all users p; a ParameterError where it is not known."""

    def matrix(self) -> FloatArray:
        """K, for a linear sampler."""


class Kernel(Protocol):
    """A row-stochastic matrix that is never written out unless asked."""

    @property
    def floor(self) -> FloatArray:
        """c with c_j ≤ K_ij ≤ e^ε·c_j."""

    @property
    def diagonal(self) -> FloatArray:
        """K_ii."""

    def least_kept(self) -> tuple[float, float]:
        """The smallest K_ii, and 1 − K_ii without cancellation."""

    def apply(self, p: FloatArray) -> FloatArray:
        """pK along the last axis."""

    def on_support(self, block: Block[np.float64]) -> FloatArray:
        """pK on the users' own categories."""

    def row(self, i: int) -> FloatArray:
        """Row i."""

    def matrix(self) -> FloatArray:
        """All rows."""


@dataclass(frozen=True, eq=False, repr=False)
class BoxSampler:
    """Something that answers every user with a point of the box above a floor."""

    name: str
    prior: Prior
    epsilon: float
    floor: FloatArray
    options: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        floor = np.array(self.floor, dtype=np.float64)
        epsilon, n = _validate.privacy(self.epsilon), len(self.prior)
        slack, total = _rounding(n), floor.sum()
        positive = floor.shape == (n,) and bool(np.all(floor > 0))
        if not positive or not total * (1 - slack) <= 1 <= math.exp(epsilon) * total * (1 + slack):
            raise ParameterError(
                "floor must hold one positive number per category with Σc ≤ 1 ≤ e^ε·Σc: no law fits above it"
            )
        floor.setflags(write=False)
        object.__setattr__(self, "floor", floor)

    @property
    def linear(self) -> bool:
        """A point of the box is not linear in p."""
        return False

    @cached_property
    def _total(self) -> float:
        return float(self.floor.sum())

    @property
    def _a(self) -> float:
        return math.exp(self.epsilon)

    @cached_property
    def keeps_prior(self) -> bool:
        """Whether q lies in the box, where it is left alone."""
        q = self.prior.probabilities
        slack = _rounding(len(q))
        low, high = self.floor * (1 - slack), self._a * self.floor * (1 + slack)
        return bool(np.all((low <= q) & (q <= high)))

    def matrix(self) -> FloatArray:
        """Refused: there is no matrix."""
        raise NotLinearError(
            f"matrix needs a linear sampler and {self.name} is not one; "
            f"use minimax_kernel, randomized_response or rr_with_prior"
        )

    def __repr__(self: Sampler) -> str:
        return _describe(self)

    def _repr_html_(self: Sampler) -> str:
        return sampler_html(self)


@dataclass(frozen=True, eq=False, repr=False)
class ClipSampler(BoxSampler):
    """Answers every user with the best point of the box above a floor.

    Guarantees
        Every law lies in {x : c ≤ x ≤ e^ε·c}, so the sampler is ε-locally private for any floor c
        with Σc ≤ 1 ≤ e^ε·Σc. No sampler with the same floor is closer to any user in any
        f-divergence (Park, Asoodeh, Lee 2024, Prop. 3.4).
    """

    def distribution(self, p: UsersLike | Users) -> FloatArray:
        """clip(p/r; c, e^ε·c) with r such that it sums to one."""
        return like(p, self._laws(checked_rows(p, self.prior)))

    def _laws(self, rows: sparse.csr_array[np.float64]) -> FloatArray:
        return clip.laws(rows, self.prior.probabilities, self.floor, self._a, self._total)

    def _on_support(self, block: Block[np.float64]) -> FloatArray:
        return clip.on_support(block, self.floor, self._a, self._total)

    def divergence(self, p: UsersLike | Users, f: Distance) -> FloatArray:
        """min D_f(p‖x) over the box; total variation in one pass, without finding x."""
        return like(p, self.divergence_of(checked_rows(p, self.prior), checked(f)))

    def divergence_of(self, rows: sparse.csr_array[np.float64], f: Distance) -> FloatArray:
        """The same for rows that `_validate.users` has checked."""
        if isinstance(f, Wasserstein):
            return distance_of_laws(rows, f, self._laws)
        if f == TV:
            return clip.total_variation(rows, self.floor, self._a, self._total)
        return divergence_on_support(rows, f, self._on_support, len(self.prior))

    def worst_case(self, f: Distance) -> float:
        """g(min_i t_i), t_i = min(a·c_i, 1 − Σc + c_i), at a point mass (the minimum is convex in p).

        Raises
            ParameterError: f is W1, for which the worst case of the clip is not known.
        """
        if isinstance(checked(f), Wasserstein):
            raise ParameterError(f"the worst case of {self.name} in W1 is not known; that of nearest is")
        own = np.minimum(self._a * self.floor, 1 - self._total + self.floor)
        i = int(own.argmin())
        others = float(self.floor[:i].sum() + self.floor[i + 1 :].sum())
        return checked_f(f).of_point_mass(own[i], max(1 - self._a * self.floor[i], others))


@dataclass(frozen=True, eq=False, repr=False)
class KernelSampler:
    """Answers every user with pK: draw one of the user's records, then the kernel's row for it.

    Guarantees
        ε-locally private because each column of K has max ≤ e^ε·min, whatever p is.
    """

    name: str
    prior: Prior
    epsilon: float
    kernel: Kernel
    options: Mapping[str, float] = field(default_factory=dict)

    @property
    def linear(self) -> bool:
        """pK is linear in p."""
        return True

    @property
    def floor(self) -> FloatArray:
        """c with c_j ≤ K_ij ≤ e^ε·c_j in every column."""
        return self.kernel.floor

    @cached_property
    def _released(self) -> int:
        """How many categories are ever released."""
        return int(np.count_nonzero(self.floor))

    @cached_property
    def keeps_prior(self) -> bool:
        """Whether qK = q."""
        q = self.prior.probabilities
        return bool(np.all(np.abs(self.kernel.apply(q) - q) <= _rounding(len(q)) * q))

    def distribution(self, p: UsersLike | Users) -> FloatArray:
        """pK."""
        rows = checked_rows(p, self.prior)
        out = np.empty(rows.shape)
        step = max(1, 8 * BLOCK_ENTRIES // rows.shape[1])
        for begin in range(0, len(out), step):
            out[begin : begin + step] = self.kernel.apply(rows[begin : begin + step].toarray())
        return like(p, out)

    def divergence(self, p: UsersLike | Users, f: Distance) -> FloatArray:
        """D_f(p‖pK), evaluated on the user's own categories."""
        return like(p, self.divergence_of(checked_rows(p, self.prior), checked(f)))

    def divergence_of(self, rows: sparse.csr_array[np.float64], f: Distance) -> FloatArray:
        """The same for rows that `_validate.users` has checked."""
        if isinstance(f, Wasserstein):
            return distance_of_laws(rows, f, lambda part: self.kernel.apply(part.toarray()))
        return divergence_on_support(rows, f, self.kernel.on_support, self._released)

    def worst_case(self, f: Distance) -> float:
        """g(min_i K_ii), attained at a point mass (Zamanlooy et al. 2025, Lemma 1); so is the largest W1."""
        if isinstance(checked(f), Wasserstein):
            return float(self.divergence_of(point_masses(len(self.prior)), f).max())
        return checked_f(f).of_point_mass(*self.kernel.least_kept())

    def matrix(self) -> FloatArray:
        """K as an n × n array, rows and columns in the prior's order."""
        return self.kernel.matrix()

    def __repr__(self) -> str:
        return _describe(self)

    def _repr_html_(self) -> str:
        return sampler_html(self)


def _rounding(n: int) -> float:
    """Relative slack for sums of n roundings: what keeps q in exact arithmetic may miss it by n units."""
    return KEPT + n * float(np.finfo(np.float64).eps)


def divergence_on_support(
    rows: sparse.csr_array[np.float64],
    divergence: FDivergence,
    law: Callable[[Block[np.float64]], FloatArray],
    released: int,
) -> FloatArray:
    """D_f(p‖x) of every user, from the released law x on the user's own categories.

    D_f(p‖x) = Σ_{p_i>0} x_i f(p_i/x_i) + f(0)·(1 − Σ_{p_i>0} x_i): the categories a user does not
    have enter only through their total probability. That total is zero only for a user who has all
    the categories that are ever `released`; counting decides it, since 1 − Σx is blurred by rounding.
    """
    values = np.empty(rows.shape[0])
    for block in blocks(rows):
        x = law(block)
        nothing_else = np.count_nonzero(x, axis=1) == released
        rest = np.where(nothing_else, 0.0, np.maximum(1 - x.sum(axis=1), np.finfo(np.float64).tiny))
        values[block.rows] = divergence.on_support(block.p, x, rest)
    return values


def distance_of_laws(
    rows: sparse.csr_array[np.float64],
    distance: Distance,
    laws: Callable[[sparse.csr_array[np.float64]], FloatArray],
) -> FloatArray:
    """The distance of every user from the released law, which is written out for some users at a time."""
    values, step = np.empty(rows.shape[0]), max(1, 8 * BLOCK_ENTRIES // rows.shape[1])
    for begin in range(0, rows.shape[0], step):
        part = rows[begin : begin + step]
        values[begin : begin + step] = distance(part.toarray(), laws(part))
    return values


def point_masses(n: int) -> sparse.csr_array[np.float64]:
    """Every user with one category only."""
    from scipy import sparse

    return sparse.csr_array(sparse.eye_array(n, format="csr"))


def checked_prior(prior: Prior) -> Prior:
    """Refuse an array where a Prior is meant: bare numbers carry no categories."""
    if not isinstance(prior, Prior):
        raise ParameterError(
            f"prior must be a Prior, got {type(prior).__name__}; use Prior(categories, probabilities)"
        )
    return prior


def checked_rows(p: UsersLike | Users, prior: Prior) -> sparse.csr_array[np.float64]:
    """One checked row per user; `Users` must have been read with the prior's categories."""
    return _validate.users(rows_for(p, prior), len(prior))


def label(sampler: Sampler) -> str:
    """The sampler's name with its options, as tables show it.

    >>> from sottovoce import Prior, blend
    >>> label(blend(Prior.uniform(["a", "b"]), 1.0, weight=0.25))
    'blend(weight=0.25)'
    """
    options = ", ".join(f"{key}={value:.4g}" for key, value in sampler.options.items())
    return f"{sampler.name}({options})" if options else sampler.name


def _describe(sampler: Sampler) -> str:
    return f"<{label(sampler)} on {len(sampler.prior)} categories, epsilon={sampler.epsilon:g}>"


def sampler_html(sampler: Sampler) -> str:
    """What a notebook shows of a sampler, from its prior and ε alone."""
    rows: list[tuple[str, object]] = [
        ("epsilon", f"{sampler.epsilon:g}"),
        *((name, f"{value:.4g}") for name, value in sampler.options.items()),
        ("categories", f"{len(sampler.prior):,}"),
        ("keeps the prior", "yes" if sampler.keeps_prior else "no"),
        ("one record is enough", "yes" if sampler.linear else "no"),
    ]
    with suppress(ParameterError):  # it is not known for every rule
        rows.append(("distance from anybody, at most", f"{sampler.worst_case(TV):.4f} (total variation)"))
    return _html.facts(f"Sampler {sampler.name}", [*rows, *prior_warning(sampler.prior)])


def prior_warning(prior: Prior) -> list[tuple[str, object]]:
    """The row for a prior that is not public; none for one that is."""
    return [("prior", "made from the users it serves: not public")] if prior.provenance == "users" else []


def like(p: UsersLike | Users, per_user: FloatArray) -> FloatArray:
    """Drop the user axis when the caller passed a single vector."""
    if isinstance(p, Users):
        return per_user
    ndim: Any = getattr(p, "ndim", None)
    single = (np.asarray(p).ndim if ndim is None else ndim) == 1
    return per_user[0] if single else per_user
