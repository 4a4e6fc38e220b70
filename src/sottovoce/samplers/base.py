"""What a sampler is: a floor and a rule. The rule is the clip, or a kernel.

Both kinds compute the law that is released for a user, its distance from the user's own, and the largest
such distance. Laws here are double-precision, for comparing and planning; `sottovoce.release` draws from
certified integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from .. import checks, listing
from ..checks import FloatArray
from ..divergences import KL, TV, Distance, FDivergence, checked, checked_f
from ..errors import NotLinearError, ParameterError
from ..geometry import Wasserstein
from ..prior import Prior
from ..records import Users, UsersLike, distributions, rows_for
from . import clip
from .blocks import Block, blocks, dense
from .kernels import Kernel, MatrixKernel, MinimaxKernel, ResponseKernel

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
        """Q(p), the law of the one category released; a vector for a vector, else (m, n).

        `check_sampler` and `compare` pass an array, a row per user, to a sampler of your own.
        """

    def divergence(self, p: UsersLike | Users, f: Distance) -> FloatArray:
        """D_f(p‖Q(p)) or W1(p, Q(p)), one number per user (a scalar array for a vector).

        A private probability below 1e-250 counts as zero.
        """

    def worst_case(self, f: Distance) -> float:
        """The supremum of the same over all users p; a ParameterError where it is not known."""

    def matrix(self) -> FloatArray:
        """K, for a linear sampler."""


SLACK = 1e-9
"""What rounding may add to a law, relative to its bounds."""
LOOKED_AT = 200
"""Users with one category that a check looks at; fewer over very many categories."""


def check_sampler(
    sampler: Sampler, users: UsersLike | Users | None = None, divergences: Sequence[Distance] = (TV, KL)
) -> None:
    """Check a sampler of your own against what it states, for a test: nothing is returned if it holds.

    Its laws must be distributions between c and e^ε·c, category by category; a sampler that says that it
    keeps the prior must release q as q; `divergence` must be the distance of a user from their law, and no
    user may be further than the worst case, if it is known. The users are the prior, at most 200 users with
    one category and all those given. `compare`, `certify`, `estimate` and `amplify` check every sampler
    whose class is not the library's in this way, `compare` with its users and divergences.

    Raises
        ParameterError: a member is missing, or what the sampler states does not hold.

    >>> from sottovoce import Prior, kernel_clip
    >>> check_sampler(kernel_clip(Prior(["a", "b", "c"], [0.5, 0.3, 0.2]), 1.0))
    """
    from scipy import sparse

    needed = [member for member in vars(Sampler) if member[0] != "_" and member != "matrix"]
    lacking = [member for member in needed if not hasattr(sampler, member)]
    if lacking:
        kind = type(sampler).__name__
        what = f"{kind} is not a sampler: it lacks {', '.join(lacking)}"
        raise ParameterError(f"{what}; see sottovoce.Sampler for what they are")
    prior = checked_prior(sampler.prior)
    n = len(prior)
    single = max(1, min(LOOKED_AT, 10**7 // n, n))
    parts: list[Any] = [prior.probabilities[None, :], sparse.eye_array(single, n)]
    if users is not None:
        parts.append(distributions(rows_for(users, prior), n))
    rows, outside = sparse.csr_array(sparse.vstack(parts)), 0
    caps = np.exp(checks.privacy(sampler.epsilon)) * np.asarray(sampler.floor)
    for part, p in dense(rows):
        laws = np.asarray(sampler.distribution(p))
        if laws.shape != p.shape or not np.allclose(laws.sum(axis=1), 1, rtol=0, atol=SLACK):
            raise ParameterError(f"{sampler.name} must give every user a law that adds up to 1")
        low, high = laws < sampler.floor * (1 - SLACK), laws > caps * (1 + SLACK)
        outside += int((low | high).any(axis=1).sum())
        if part.start == 0 and sampler.keeps_prior and not np.allclose(laws[0], p[0], rtol=0, atol=SLACK):
            raise ParameterError(f"{sampler.name} states that it keeps the prior, and does not")
        if not outside:
            for f in divergences:
                _check_distances(sampler, p, laws, checked(f))
    if outside:
        raise ParameterError(
            f"{sampler.name} is not private at epsilon {sampler.epsilon:g}: the laws of {outside} of "
            f"{rows.shape[0]} users (also the prior and some with one category) leave the box between its "
            f"floor c and e^ε·c"
        )


def _check_distances(sampler: Sampler, p: FloatArray, laws: FloatArray, f: Distance) -> None:
    distances, worst = f(p, laws), known_worst_case(sampler, f)
    if not np.allclose(sampler.divergence(p, f), distances, rtol=SLACK, atol=SLACK):
        raise ParameterError(f"{sampler.name}.divergence is not the {f.name} of a user and their law")
    furthest = float(np.max(distances))
    if worst is not None and furthest > worst * (1 + SLACK) + SLACK:
        raise ParameterError(f"{sampler.name} has a user at {furthest:.4g}, further than its worst case")


def known_worst_case(sampler: Sampler, f: Distance) -> float | None:
    """The worst case, or None where it is not known: of a clip in W1, of `nearest` in an f-divergence."""
    try:
        return sampler.worst_case(f)
    except ParameterError:
        return None


def is_ours(thing: object) -> bool:
    """Whether the class is the library's: what is derived from one may do something else."""
    return type(thing).__module__.partition(".")[0] == __name__.partition(".")[0]


def check_own(
    sampler: Sampler, users: UsersLike | Users | None = None, divergences: Sequence[Distance] = (TV, KL)
) -> None:
    """Check a sampler whose class is not one of the library's."""
    if not (isinstance(sampler, _Shared) and is_ours(sampler)):
        check_sampler(sampler, users, divergences)


class _Shared:
    """What the library's samplers share: rows are checked first, and then computed on."""

    prior: Prior

    def distribution(self, p: UsersLike | Users) -> FloatArray:
        """Q(p), one law per user."""
        return like(p, self._laws(checked_rows(p, self.prior)))

    def divergence(self, p: UsersLike | Users, f: Distance) -> FloatArray:
        """The distance of every user from the law released for them."""
        return like(p, self.divergence_of(checked_rows(p, self.prior), checked(f)))

    def divergence_of(self, rows: sparse.csr_array[np.float64], f: Distance) -> FloatArray:
        """The same for rows that `distributions` has checked; laws are written out for some at a time."""
        return np.concatenate([f(p, self._laws(rows[part])) for part, p in dense(rows)])

    def _laws(self, rows: sparse.csr_array[np.float64]) -> FloatArray:
        raise NotImplementedError

    @property
    def linear(self) -> bool:
        """Whether Q(p) = pK."""
        return isinstance(self, KernelSampler)

    def _worst_point_mass(self, f: Distance) -> float:
        """The largest distance of a user who holds one category."""
        return float(self.divergence_of(point_masses(len(self.prior)), f).max())

    def __repr__(self: Sampler) -> str:
        return f"<{label(self)} on {len(self.prior)} categories, epsilon={self.epsilon:g}>"

    def _repr_html_(self: Sampler) -> str:
        """What a notebook shows, from the prior and ε alone."""
        rows: list[tuple[str, object]] = [
            ("epsilon", f"{self.epsilon:g}"),
            *((name, f"{value:.4g}") for name, value in self.options.items()),
            ("categories", f"{len(self.prior):,}"),
            ("keeps the prior", "yes" if self.keeps_prior else "no"),
            ("one record is enough", "yes" if self.linear else "no"),
        ]
        if (worst := known_worst_case(self, TV)) is not None:
            rows.append(("distance from anybody, at most", f"{worst:.4f} (total variation)"))
        return listing.facts(f"Sampler {self.name}", [*rows, *prior_warning(self.prior)])


@dataclass(frozen=True, eq=False, repr=False)
class BoxSampler(_Shared):
    """Something that answers every user with a point of the box above a floor."""

    name: str
    prior: Prior
    epsilon: float
    floor: FloatArray
    options: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        floor = np.array(self.floor, dtype=np.float64)
        epsilon, n = checks.privacy(self.epsilon), len(self.prior)
        slack, total = _rounding(n), floor.sum()
        positive = floor.shape == (n,) and bool(np.all(floor > 0))
        if not positive or not total * (1 - slack) <= 1 <= math.exp(epsilon) * total * (1 + slack):
            raise ParameterError(
                "floor must hold one positive number per category with Σc ≤ 1 ≤ e^ε·Σc: no law fits above it"
            )
        floor.setflags(write=False)
        object.__setattr__(self, "floor", floor)

    @cached_property
    def _total(self) -> float:
        return float(self.floor.sum())

    @property
    def _a(self) -> float:
        return math.exp(self.epsilon)

    @property
    def keeps_prior(self) -> bool:
        """Whether Q(q) = q: q lies in the box, where it is left alone."""
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


@dataclass(frozen=True, eq=False, repr=False)
class ClipSampler(BoxSampler):
    """Answers every user with the best point of the box above a floor.

    Guarantees
        Every law lies in {x : c ≤ x ≤ e^ε·c}, so the sampler is ε-locally private for any floor c
        with Σc ≤ 1 ≤ e^ε·Σc. No sampler with the same floor is closer to any user in any
        f-divergence (Park, Asoodeh, Lee 2024, Prop. 3.4).
    """

    def _laws(self, rows: sparse.csr_array[np.float64]) -> FloatArray:
        """clip(p/r; c, e^ε·c) with r such that it sums to one."""
        return clip.laws(rows, self.prior.probabilities, self.floor, self._a, self._total)

    def divergence_of(self, rows: sparse.csr_array[np.float64], f: Distance) -> FloatArray:
        """min D_f(p‖x) over the box; total variation in one pass, without finding x."""
        if isinstance(f, Wasserstein):
            return super().divergence_of(rows, f)
        if f == TV:
            return clip.total_variation(rows, self.floor, self._a, self._total)
        return divergence_on_support(
            rows, f, lambda block: clip.on_support(block, self.floor, self._a, self._total), len(self.prior)
        )

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


@dataclass(frozen=True, init=False, eq=False, repr=False)
class KernelSampler(_Shared):
    """Answers every user with pK: draw one of the user's records, then the kernel's row for it.

    Guarantees
        ε-locally private because each column of K has max ≤ e^ε·min, whatever p is.

    `kernel` may be a matrix of your own, rows and columns in the prior's order: it is checked.

    >>> own = np.array([[0.6, 0.4], [0.2, 0.8]])
    >>> KernelSampler("own", Prior(["a", "b"], [0.3, 0.7]), 1.2, own).distribution([1, 0]).tolist()
    [0.6, 0.4]
    """

    name: str
    prior: Prior
    epsilon: float
    kernel: MinimaxKernel | ResponseKernel | MatrixKernel
    options: Mapping[str, float]

    def __init__(
        self,
        name: str,
        prior: Prior,
        epsilon: float,
        kernel: MinimaxKernel | ResponseKernel | MatrixKernel | FloatArray,
        options: Mapping[str, float] | None = None,
    ) -> None:
        if isinstance(kernel, np.ndarray):
            kernel = MatrixKernel(kernel, checks.privacy(epsilon))
        if not (isinstance(kernel, Kernel) and is_ours(kernel)):
            raise ParameterError("kernel must be a matrix, or the kernel of a sampler of the library")
        if len(kernel) != len(prior):
            raise ParameterError(f"kernel has {len(kernel)} categories, the prior {len(prior)}")
        if kernel.epsilon > checks.privacy(epsilon):
            raise ParameterError(
                f"kernel is not private at epsilon {epsilon:g}: it was made for {kernel.epsilon:g}"
            )
        if isinstance(kernel, MinimaxKernel) and not kernel.keeps(prior.probabilities):
            raise ParameterError("kernel was made for another prior")
        self.__dict__.update(name=name, prior=prior, epsilon=epsilon, kernel=kernel, options=options or {})

    @property
    def floor(self) -> FloatArray:
        """c with c_j ≤ K_ij ≤ e^ε·c_j in every column."""
        return self.kernel.floor

    @property
    def keeps_prior(self) -> bool:
        """Whether qK = q."""
        q = self.prior.probabilities
        return bool(np.all(np.abs(self.kernel.apply(q) - q) <= _rounding(len(q)) * q))

    def _laws(self, rows: sparse.csr_array[np.float64]) -> FloatArray:
        """pK."""
        return self.kernel.apply(rows.toarray())

    def divergence_of(self, rows: sparse.csr_array[np.float64], f: Distance) -> FloatArray:
        """D_f(p‖pK), evaluated on the user's own categories."""
        if isinstance(f, Wasserstein):
            return super().divergence_of(rows, f)
        released = int(np.count_nonzero(self.floor))  # how many categories are ever released
        return divergence_on_support(rows, f, self.kernel.on_support, released)

    def worst_case(self, f: Distance) -> float:
        """g(min_i K_ii), attained at a point mass (Zamanlooy et al. 2025, Lemma 1); so is the largest W1."""
        if isinstance(checked(f), Wasserstein):
            return self._worst_point_mass(f)
        return checked_f(f).of_point_mass(*self.kernel.least_kept())

    def matrix(self) -> FloatArray:
        """K as an n × n array, rows and columns in the prior's order."""
        return self.kernel.matrix()


def _rounding(n: int) -> float:
    """Relative slack for sums of n roundings: what keeps q in exact arithmetic may miss it by n units."""
    return KEPT + n * float(np.finfo(np.float64).eps)


def divergence_on_support(
    rows: sparse.csr_array[np.float64],
    divergence: FDivergence,
    law: Callable[[Block], FloatArray],
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


def point_masses(n: int) -> sparse.csr_array[np.float64]:
    """Every user with one category only."""
    from scipy import sparse

    return sparse.csr_array(sparse.eye_array(n, format="csr"))


def checked_prior(prior: Prior) -> Prior:
    """Refuse an array where a Prior is meant: bare numbers carry no categories."""
    if not isinstance(prior, Prior):
        kind = type(prior).__name__
        raise ParameterError(f"prior must be a Prior, got {kind}; use Prior(categories, probabilities)")
    return prior


def checked_rows(p: UsersLike | Users, prior: Prior) -> sparse.csr_array[np.float64]:
    """One checked row per user; `Users` must have been read with the prior's categories."""
    return distributions(rows_for(p, prior), len(prior))


def label(sampler: Sampler) -> str:
    """The sampler's name with its options, as tables show it.

    >>> from sottovoce import Prior, blend
    >>> label(blend(Prior.uniform(["a", "b"]), 1.0, weight=0.25))
    'blend(weight=0.25)'
    """
    options = ", ".join(f"{key}={value:.4g}" for key, value in sampler.options.items())
    return f"{sampler.name}({options})" if options else sampler.name


def prior_warning(prior: Prior) -> list[tuple[str, object]]:
    """The row for a prior that is not public; none for one that is."""
    return [("prior", "made from the users it serves: not public")] if prior.provenance == "users" else []


def like(p: UsersLike | Users, per_user: FloatArray) -> FloatArray:
    """Drop the user axis when the caller passed a single vector."""
    given: Any = p
    return per_user if isinstance(p, Users) or np.ndim(given) != 1 else per_user[0]
