"""A card: what one sampler promises, beside the alternatives, before any user is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bounds import optimal_utility, released_as_itself
from ..collecting.estimate import reports_or_none
from ..core.constants import PACE
from ..divergences import DIVERGENCES
from ..groups import EVERYBODY
from ..records import Category
from ..release.certify import certify
from ..samplers.base import Sampler, label, point_masses
from ..samplers.catalogue import prior_minimax, randomized_response, relative_mollifier
from ..samplers.nearest import NearestSampler
from ..samplers.stream import Stream

LISTED, DRAWN = 1000, 400
"""Categories up to which a card looks at all of them, and how many it draws from the prior else."""


@dataclass(frozen=True)
class WorstCase:
    """The largest possible divergence of one user, for a sampler and its rivals.

    `paper_bound` is the best of any linear sampler that keeps the prior, `prior_minimax` the best of any
    sampler at all that keeps it.
    """

    divergence: str
    this: float
    randomized_response: float
    relative_mollifier: float
    paper_bound: float
    prior_minimax: float


@dataclass(frozen=True)
class Kept:
    """How often a draw of one category is released as itself, at least."""

    category: Category
    probability: float
    at_least: float


@dataclass(frozen=True, kw_only=True)
class AnyCard:
    """What every card says."""

    group: str
    epsilon: float  # of a stream, for all releases together
    categories: int
    keeps_prior: bool
    prior_digest: str
    provenance: str  # of the prior; see `prior.PROVENANCES`


@dataclass(frozen=True, kw_only=True)
class Card(AnyCard):
    """The facts about a sampler that follow from its prior alone: public, if the prior is."""

    sampler: str
    smallest_probability: float
    rarest_category: Category
    linear: bool
    released_as_another: float  # Pr(X ≠ Z) at most, X a draw from any user's p, Z the release
    released_as_itself: tuple[Kept, ...]  # from the rarest category to the likeliest, at most five
    reports_needed: int | None  # for ± 0.01 in every category at 95 %, if users are like the prior
    worst_cases: tuple[WorstCase, ...]


@dataclass(frozen=True, kw_only=True)
class NearCard(AnyCard):
    """The facts about `nearest` that follow from its prior and geometry alone, in the units of the geometry.

    They are about users with one category, drawn from the prior: how far the release is from it. Of more than
    1,000 categories 400 are drawn.
    """

    sampler: str
    half_within: float
    nine_tenths_within: float
    mean: float
    worst_w1: float | None  # of the worst-served category, and of any possible user; for few categories
    as_itself: float  # how often the release is the category itself


@dataclass(frozen=True, kw_only=True)
class StreamCard(AnyCard):
    """The facts about a stream that follow from its prior alone."""

    horizon: int | None  # releases that the pace is planned for
    released_as_another: float | None  # at most, at the first step: Pr(X ≠ Z); not known with a geometry


def any_card(made: Any, group: str) -> Card | NearCard | StreamCard:
    """The card of a sampler, a stream or `nearest`."""
    if isinstance(made, Stream):
        return stream_card(made, group)
    return near_card(made, group) if isinstance(made, NearestSampler) else card(made, group)


def card(sampler: Sampler, group: str = EVERYBODY) -> Card:
    """Collect the worst case for every divergence against its rivals."""
    prior, epsilon = sampler.prior, sampler.epsilon
    response, mollifier = randomized_response(prior, epsilon), relative_mollifier(prior, epsilon)
    best = prior_minimax(prior, epsilon)
    return Card(
        **_of_any(sampler, group),
        sampler=label(sampler),
        smallest_probability=prior.smallest,
        rarest_category=prior.categories[int(prior.probabilities.argmin())],
        linear=sampler.linear,
        released_as_another=sampler.worst_case(DIVERGENCES["tv"]),
        released_as_itself=_kept(sampler),
        reports_needed=reports_or_none(sampler, 0.01),
        worst_cases=tuple(
            WorstCase(
                divergence=name,
                this=sampler.worst_case(f),
                randomized_response=response.worst_case(f),
                relative_mollifier=mollifier.worst_case(f),
                paper_bound=optimal_utility(prior, epsilon, f),
                prior_minimax=best.worst_case(f),
            )
            for name, f in DIVERGENCES.items()
        ),
    )


def near_card(sampler: NearestSampler, group: str = EVERYBODY) -> NearCard:
    """Collect the facts: the distances of pairs of a category and its release, weighed by their chance."""
    q, n = sampler.prior.probabilities, len(sampler.prior)
    few = n <= LISTED  # all categories, or as many as are drawn from the prior, evenly
    chosen = np.arange(n) if few else np.searchsorted(np.cumsum(q), (np.arange(DRAWN) + 0.5) / DRAWN)
    weights = q if few else np.full(DRAWN, 1 / DRAWN)
    laws = sampler.distribution(point_masses(n)[chosen])
    far = np.array([sampler.geometry.distances(int(i)) for i in chosen])
    joint, means = weights[:, None] * laws, (far * laws).sum(axis=1)
    order = np.argsort(far, axis=None)
    reached = np.cumsum(joint.ravel()[order])

    def within(share: float) -> float:
        return float(far.ravel()[order[min(int(np.searchsorted(reached, share)), len(order) - 1)]])

    return NearCard(
        **_of_any(sampler, group),
        sampler=label(sampler),
        half_within=within(0.5),
        nine_tenths_within=within(0.9),
        mean=float(weights @ means),
        worst_w1=float(means.max()) if few else None,
        as_itself=float(joint[np.arange(len(chosen)), chosen].sum()),
    )


def stream_card(sampler: Stream, group: str = EVERYBODY) -> StreamCard:
    """Collect the facts; the furthest user is a point mass on the rarest category."""
    engine: Any = certify(sampler, provenance="users").engine  # nothing is released
    rarest, (least, most) = min(engine.prior), engine.ratios(*engine.first(), 0)
    kept = min(most * rarest, engine.total - least * (sum(engine.prior) - rarest)) / engine.total
    return StreamCard(
        **_of_any(sampler, group),
        horizon=len(sampler.pace) if sampler.pace[-1] == PACE and not sampler.persistence else None,
        released_as_another=None if sampler.geometry else 1 - kept,
    )


def _of_any(sampler: Sampler | Stream, group: str) -> dict[str, Any]:
    return {
        "group": group,
        "epsilon": sampler.epsilon,
        "categories": len(sampler.prior),
        "keeps_prior": sampler.keeps_prior,
        "prior_digest": sampler.prior.digest,
        "provenance": sampler.prior.provenance,
    }


def _kept(sampler: Sampler) -> tuple[Kept, ...]:
    """The promise for the rarest category, the likeliest, and three between them."""
    prior = sampler.prior
    at_least = released_as_itself(sampler)
    order = prior.probabilities.argsort(kind="stable").tolist()
    ranks = dict.fromkeys(round(part * (len(order) - 1) / 4) for part in range(5))
    q, chosen = prior.probabilities, [order[rank] for rank in ranks]
    return tuple(Kept(prior.categories[i], float(q[i]), float(at_least[i])) for i in chosen)
