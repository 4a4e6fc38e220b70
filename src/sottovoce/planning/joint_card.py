"""The card of a design with several samples: what it promises before any user is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..release.certify import certify
from ..release.classes import most_groups
from ..samplers.base import label
from ..samplers.joint import JointSampler
from .cards import Shuffled, what_shuffling_adds


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
    prior_from_users: bool
    worst_together: float  # the largest total variation between k draws of a user and the k samples
    worst_separately: float  # the same for k releases at ε/k
    told_apart: int  # categories of one user; the samples of a user who has more are drawn separately
    shuffled: tuple[Shuffled, ...] = ()


def joint_card(sampler: JointSampler, *, group: str = "all", shuffled: bool = False) -> JointCard:
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
    mechanism = certify(sampler, accept_prior_from_users=True) if shuffled else None
    return JointCard(
        group=group,
        sampler=label(single),
        samples=k,
        epsilon=sampler.epsilon,
        categories=len(prior),
        keeps_prior=sampler.keeps_prior,
        prior_digest=prior.digest,
        prior_from_users=prior.made_from_users,
        worst_together=1 - together,
        worst_separately=1 - separately,
        told_apart=min(most_groups(k), len(prior)),
        shuffled=() if mechanism is None else what_shuffling_adds(mechanism),
    )
