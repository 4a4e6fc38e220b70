"""What several samples of one budget are worth: their joint and their single law, beside separate releases.

The joint distance is D_f(p^⊗k ‖ law of the k samples), the single one D_f(p ‖ law of one of the k samples,
chosen at random). Both are taken from the exact law that a mechanism draws from. For looking at data you may
look at: the numbers are not private. The card of a design says what it promises before any user is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np

from .. import _validate
from .._validate import FloatArray
from ..divergences import TV, FDivergence, checked
from ..errors import ParameterError
from ..groups import EVERYBODY
from ..prior import Prior
from ..release.certify import certify
from ..release.joint import JointEngine, most_groups
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler, label
from ..samplers.catalogue import kernel_clip
from ..samplers.joint import JointSampler, several
from ..users import Users, UsersLike, rows_for
from .cards import Shuffled, what_shuffling_adds
from .limit import summarise

TOGETHER, SEPARATELY = "together", "separately"


@dataclass(frozen=True)
class SamplesRow:
    """One way to spend ε on so many samples, summarised over the users."""

    samples: int
    way: str  # "together": one release of all samples; "separately": each at ε/samples
    epsilon: float  # for all samples together
    divergence: str
    users: int
    single_mean: float
    single_p99: float
    single_maximum: float
    joint_users: int  # users with few enough categories that the joint distance is computed
    joint_mean: float | None
    joint_p99: float | None
    joint_maximum: float | None


class Distances(NamedTuple):
    """One number per user; the joint one is NaN for a user with too many categories."""

    joint: FloatArray
    single: FloatArray


def compare_samples(
    users: UsersLike | Users,
    prior: Prior,
    epsilon: float,
    *,
    samples: int | Iterable[int] = (1, 2, 4),
    sampler: Callable[..., Sampler] = kernel_clip,
    divergence: FDivergence = TV,
    provenance: str = "public",
    progress: Callable[[], object] | None = None,
    **options: float,
) -> tuple[SamplesRow, ...]:
    """How far several samples are from independent draws of each user, together and separately.

    One row for one sample; two for more: all samples together for ε, and each separately for ε/samples.
    `sampler` and `options` are those of `several`. `progress` is called after every row.

    >>> import sottovoce as sv
    >>> rows = sv.compare_samples([[0.5, 0.3, 0.2]], sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5]), 2.0,
    ...                           samples=[1, 2])
    >>> [(row.samples, row.way) for row in rows]
    [(1, 'together'), (2, 'together'), (2, 'separately')]
    >>> rows[1].joint_mean < rows[2].joint_mean
    True
    """
    held = _validate.users(rows_for(users, prior), len(prior))
    f, out = checked(divergence), []
    for k in [samples] if isinstance(samples, int) else samples:
        many = _validate.whole_at_least(1, samples=k)
        single = sampler(prior, _validate.privacy(epsilon) / many, **options)
        apart = _separate(single, held, f, many)
        if many > 1:
            joint = several(prior, epsilon, samples=many, sampler=sampler, **options)
            mechanism = certify(joint, provenance=provenance)
            found = joint_distances(mechanism, held, f)
            out.append(_row(many, TOGETHER, epsilon, f, found))
            if progress is not None:
                progress()
        out.append(_row(many, SEPARATELY if many > 1 else TOGETHER, epsilon, f, apart))
        if progress is not None:
            progress()
    return tuple(out)


def joint_distances(mechanism: Mechanism, users: UsersLike, f: FDivergence) -> Distances:
    """The distances of every user from the exact law of a mechanism with several samples."""
    engine = mechanism.engine
    if not isinstance(engine, JointEngine):
        raise ParameterError("mechanism must be one with several samples, made from `several`")
    laws = _validate.users(users, len(mechanism.categories))
    whole = mechanism.prepare(laws)
    joint, single = np.empty(laws.shape[0]), np.empty(laws.shape[0])
    for i in range(laws.shape[0]):
        part, counted = (slice(rows.indptr[i], rows.indptr[i + 1]) for rows in (laws, whole))
        p = dict(zip(laws.indices[part].tolist(), laws.data[part].tolist(), strict=True))
        weights = list(zip(whole.indices[counted].tolist(), whole.data[counted].tolist(), strict=True))
        joint[i], single[i] = _of_one(engine, p, weights, f)
    return Distances(joint, single)


def _of_one(
    engine: JointEngine, p: dict[int, float], weights: list[tuple[int, int]], f: FDivergence
) -> tuple[float, float]:
    """Joint and single distance of one user, whose own law is p."""
    law = np.array([float(share) for share in engine.single_law(weights, list(p))])
    others = 0.0 if len(weights) == len(engine.prior) else max(1 - float(law.sum()), 0.0)
    single = float(f.on_support(np.array(list(p.values())), law, np.asarray(others)))
    if engine.alone(weights) is not None:
        own = engine.box.inside(weights) is not None  # the user's own law, but for rounding to whole units
        return (0.0, 0.0) if own else (np.nan, single)
    found = engine.box.law(weights)
    whole = engine.box.total**engine.samples
    owned = [0.0 if group.place is None else p.get(group.place, 0.0) for group in found.groups]
    private, released, rest = [], [], 0.0
    for members, orders, units in zip(found.classes.groups, found.classes.orders, found.units, strict=True):
        chance = orders * prod(owned[g] for g in members)
        if chance > 0:
            private.append(chance)
            released.append(units / whole)
        else:
            rest += units / whole
    return float(f.on_support(np.array(private), np.array(released), np.asarray(rest))), single


def _separate(sampler: Sampler, laws: Any, f: FDivergence, samples: int) -> Distances:
    """The same for `samples` separate releases of a sampler, whose joint law is a product."""
    single = np.atleast_1d(sampler.divergence(laws, f))
    if samples == 1:
        return Distances(single, single)
    joint = np.empty(laws.shape[0])
    for i in range(laws.shape[0]):
        p = laws.data[laws.indptr[i] : laws.indptr[i + 1]]
        places = laws.indices[laws.indptr[i] : laws.indptr[i + 1]]
        if len(p) > most_groups(samples):
            joint[i] = np.nan
            continue
        x = sampler.distribution(laws[[i]])[0][places]
        orders, chosen = _multisets(len(p), samples)
        private, released = orders * p[chosen].prod(axis=1), orders * x[chosen].prod(axis=1)
        rest = 0.0 if len(p) == laws.shape[1] else max(1 - float(x.sum()) ** samples, 0.0)
        joint[i] = float(f.on_support(private, released, np.asarray(rest)))
    return Distances(joint, single)


def _multisets(n: int, samples: int) -> tuple[FloatArray, Any]:
    """How many orders each multiset of k out of n has, and its members."""
    members = np.array(list(combinations_with_replacement(range(n), samples)), dtype=np.intp)
    first = np.ones_like(members, dtype=bool)
    first[:, 1:] = np.diff(members, axis=1) != 0
    orders = np.full(len(members), float(factorial(samples)))
    run = np.zeros(len(members), dtype=np.int64)
    for column in range(samples):
        run = np.where(first[:, column], 1, run + 1)
        orders /= run
    return orders, members


def _row(samples: int, way: str, epsilon: float, f: FDivergence, found: Distances) -> SamplesRow:
    told = found.joint[~np.isnan(found.joint)]
    single, joint = summarise(found.single), summarise(told) if len(told) else {}
    return SamplesRow(
        samples=samples,
        way=way,
        epsilon=epsilon,
        divergence=f.name,
        users=len(found.single),
        single_mean=single["mean"],
        single_p99=single["p99"],
        single_maximum=single["maximum"],
        joint_users=len(told),
        joint_mean=joint.get("mean"),
        joint_p99=joint.get("p99"),
        joint_maximum=joint.get("maximum"),
    )


@dataclass(frozen=True)
class JointCard:
    """The facts about a design with several samples that follow from its prior alone."""

    group: str
    sampler: str
    samples: int
    epsilon: float  # for all samples together
    categories: int
    keeps_prior: bool
    prior_digest: str
    provenance: str
    worst_together: float  # the largest total variation between k draws of a user and the k samples
    worst_separately: float  # the same for k releases at ε/k
    told_apart: int  # categories of one user; the samples of a user who has more are drawn separately
    shuffled: tuple[Shuffled, ...] = ()


def joint_card(sampler: JointSampler, *, group: str = EVERYBODY, shuffled: bool = False) -> JointCard:
    """Collect the facts; with `shuffled` what shuffling whole tuples adds.

    Both worst cases are those of a user who has only the category of the lowest floor c; γ is the sum of all
    floors. Together, its tuple gets min(e^ε·c^k, 1 − γ^k + c^k); separately min(e^(ε/k)·c, 1 − γ + c)^k.
    Where the first terms decide, they are the same: it is other users for whom together is nearer.

    >>> from sottovoce import Prior, several
    >>> facts = joint_card(several(Prior(["A", "B"], [0.2, 0.8]), 4.0, samples=2))
    >>> round(facts.worst_together, 3), round(facts.worst_separately, 3)
    (0.579, 0.579)
    """
    single, k, prior = sampler.single, sampler.samples, sampler.prior
    least, total = float(single.floor.min()), float(single.floor.sum())
    together = min(math.exp(sampler.epsilon) * least**k, 1 - total**k + least**k)
    separately = min(math.exp(sampler.epsilon / k) * least, 1 - total + least) ** k
    mechanism = certify(sampler, provenance="users") if shuffled else None
    return JointCard(
        group=group,
        sampler=label(single),
        samples=k,
        epsilon=sampler.epsilon,
        categories=len(prior),
        keeps_prior=sampler.keeps_prior,
        prior_digest=prior.digest,
        provenance=prior.provenance,
        worst_together=1 - together,
        worst_separately=1 - separately,
        told_apart=min(most_groups(k), len(prior)),
        shuffled=() if mechanism is None else what_shuffling_adds(mechanism),
    )
