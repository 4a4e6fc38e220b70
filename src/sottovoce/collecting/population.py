"""The whole population from estimates of its groups: each group weighs as many as report from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import EstimateError
from .estimation import Estimate
from .model import Model

EVERYBODY = "all groups together"
"""How the whole population is named beside its groups."""


@dataclass(frozen=True, eq=False)
class _Mixture(Model):
    """A model of several groups together; what can be undone is undone group by group."""

    undone: bool = True

    @property
    def linear(self) -> bool:
        """Whether the reports of every group can be undone."""
        return self.undone


def whole_population(groups: Mapping[str, Estimate]) -> Estimate:
    """One estimate of all groups together, over all their categories.

    value_j = Σ_g (m_g/m)·value_gj is a mean over all m reports. Its variance for one report is
    Σ_g (m_g/m)·v_gj, and one report moves it by at most max_g r_gj/m. The sizes of the groups are taken as
    they are.

    Raises
        EstimateError: there is no group, or levels differ.
    """
    found = list(groups.values())
    if not found or len({one.level for one in found}) > 1:
        raise EstimateError("estimates to put together must be some, and at one level")
    categories = list(dict.fromkeys(name for one in found for name in one.categories))
    places = {name: place for place, name in enumerate(categories)}
    reports = sum(one.reports for one in found)
    counts, prior, values, variances, reach = (np.zeros(len(categories)) for _ in range(5))
    for one in found:
        where = np.array([places[name] for name in one.categories], dtype=np.intp)
        share = one.reports / reports
        counts[where] += one.counts
        prior[where] += share * one.model.prior
        values[where] += share * one.values
        variances[where] += share * one.variances
        reach[where] = np.maximum(reach[where], one.reach)
    model = _Mixture(
        name=" and ".join(dict.fromkeys(one.model.name for one in found)),
        categories=categories,
        prior=prior,
        epsilon=max(one.model.epsilon for one in found),
        kernel=None,
        worst_distance=sum(one.reports / reports * one.bias_bound for one in found),
        undone=all(one.unbiased for one in found),
    )
    return Estimate(model, counts, reports, values, variances, reach, found[0].level)
