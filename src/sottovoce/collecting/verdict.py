"""What a collection of reports is good for, before its numbers are looked at.

How many reports there are, how many the wanted precision needs, and whether they could as well come from
users who are like the public prior. For the last, with y the law of a report of a user like the prior,
Pearson's T = Σ_g Σ_z (count − m·y)²/(m·y), over groups g and categories z, is compared with what chance
gives. Its mean is Σ(n − 1) and its variance Σ 2(n − 1) + (Σ_z 1/y_z − n² − 2n + 2)/m, both exact for every m.
A gamma law with these two moments gives the chance of a larger T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _html, _validate
from .estimate import Estimate, at_prior, reports_needed
from .model import SurveyKernel


@dataclass(frozen=True)
class Verdict:
    """How far reports go."""

    reports: float
    error: float  # the precision that was wanted, ± in every category
    needed: int | None  # reports that it needs; None if no number will do
    chance: float  # of reports that differ as much from the prior's, if users are like the prior
    standing_out: int  # categories that differ from the prior, all at once at the level
    level: float
    unbiased: bool
    reference: str = "the public prior"  # what users are compared with

    @property
    def enough(self) -> bool:
        """Whether there are as many reports as the wanted precision needs."""
        return self.needed is not None and self.reports >= self.needed

    @property
    def learnt(self) -> bool:
        """Whether the reports tell more than the prior."""
        return self.chance < 1 - self.level

    def summary(self) -> str:
        """The verdict in plain words."""
        what = "" if self.unbiased else " for the released law"
        need = f"± {self.error:g} in every category{what}"
        if self.needed is None:
            number = f"no number of them gives {need}"
        elif self.enough:
            number = f"enough for {need}, which needs {self.needed:,}"
        else:
            number = f"{need} needs {self.needed:,}"
        chance = f"{self.chance:.2g}" if self.chance >= 1e-6 else "below 0.000001"
        if not self.learnt:
            lesson = (
                f"Users like {self.reference} would report like this (chance {chance}): nothing was learnt "
                f"beyond the prior"
            )
        else:
            who = {0: "no category stands out alone", 1: "1 category stands out"}
            out = who.get(self.standing_out, f"{self.standing_out} categories stand out")
            lesson = f"The users differ from {self.reference} (by chance: {chance}); {out}"
        return f"{self.reports:,.0f} reports; {number}. {lesson}."

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return _html.facts(
            "Verdict", [("in words", self.summary()), ("confidence", f"{100 * self.level:g} %")]
        )


def verdict(found: Estimate, *, error: float = 0.01) -> Verdict:
    """Return the verdict on an estimate, also on one that was put together from groups.

    >>> from sottovoce import Prior, estimate, minimax_kernel
    >>> sampler = minimax_kernel(Prior(["a", "b"], [0.25, 0.75]), 1.0)
    >>> print(estimate(sampler, {"a": 310, "b": 690}).verdict().summary())
    1,000 reports; ± 0.01 in every category needs 79,781. The users differ from the public prior (by chance: \
1.2e-05); 2 categories stand out.
    """
    _validate.positive(error=error)
    groups = list(found.parts) or [found]
    index = {name: i for i, name in enumerate(found.categories)}
    variance, reach = np.zeros(len(index)), np.zeros(len(index))
    for group in groups:
        where = [index[name] for name in group.categories] if found.parts else slice(None)
        own, far = at_prior(group.model)
        variance[where] += group.reports / found.reports * own
        reach[where] = np.maximum(reach[where], far)
    marks = found.marks()
    return Verdict(
        reports=found.reports,
        error=error,
        needed=reports_needed(variance, reach, error, found.level),
        chance=_chance(groups),
        standing_out=marks.count("more") + marks.count("fewer"),
        level=found.level,
        unbiased=found.unbiased,
        reference="an even spread" if found.model.name == "survey" else "the public prior",
    )


def _chance(groups: Sequence[Estimate]) -> float:
    """The chance of a T at least as large as the one seen, if every user is like the prior of its group."""
    from scipy.special import erfc, gammaincc

    if any(isinstance(group.model.kernel, SurveyKernel) for group in groups):  # by its largest deviation
        off = [np.abs(group.values - group.model.prior) / group.standard_errors for group in groups]
        largest = max(float(each.max()) for each in off)
        return min(1.0, sum(map(len, off)) * float(erfc(largest / math.sqrt(2))))
    distance = mean = spread = 0.0
    for group in groups:
        y, n = group.model.of_prior(), len(group.counts)
        m = group.reports * group.model.independent_samples
        counts = group.counts * (m / (group.reports * group.model.samples))
        distance += float(((counts - m * y) ** 2 / (m * y)).sum())
        mean += n - 1
        spread += 2 * (n - 1) + (float((1 / y).sum()) - n * n - 2 * n + 2) / m
    if mean == 0 or spread <= 0:  # one category: there is nothing to learn
        return 1.0
    return float(gammaincc(mean**2 / spread, distance * mean / spread))
