"""Planning without public data: how many users should answer a survey so that the others are served well.

A survey of m users gives a learned prior; the other users release with a sampler on it. A user who answered
has spent ε and is served by draws of the learned prior, which cost nothing. So a share s of the users costs

    s·E TV(p, q̂) + (1 − s)·E TV(p, Q(p)),   Q = `fitted` on the learned prior q̂,

which is simulated on invented users before anything is collected: nothing of it depends on private data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .. import checks
from ..collecting.estimate import estimate
from ..collecting.learning import ranked, reports_for_prior
from ..collecting.model import model_of
from ..divergences import TV
from ..errors import ParameterError, Setting
from ..listing import Listed, Listing
from ..prior import Prior
from ..records import LARGEST_COUNT, Category
from ..release.certify import certify
from ..samplers.base import ClipSampler
from ..samplers.catalogue import global_minimax
from ..samplers.survey import survey
from .fitted import UNITS, fitted, invented

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""The shares of the users that are tried."""
CROWD = 7
"""The invented users that are measured: others than those on which `fitted` and `choose` look."""


@dataclass(frozen=True)
class PlanRow:
    """One size of the survey: the mean total variation of the users who did not answer, and of all."""

    share: float
    reports: int
    others: float
    everybody: float
    enough: bool  # whether the reports suffice to call the result a prior


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Listed):
    """Sizes of a survey and what each brings; total variation on invented users."""

    categories: int
    users: int
    epsilon: float
    needed: int  # reports without which `Estimate.as_prior` refuses
    rows: tuple[PlanRow, ...]
    known: float  # the mean if the population were public
    uniform: float  # `fitted` on the uniform prior
    without: float  # `global_minimax`, the best without any prior

    @property
    def best(self) -> PlanRow:
        """The row with the smallest mean of all users, among those with enough reports if there are any."""
        sufficient = [row for row in self.rows if row.enough]
        return min(sufficient or self.rows, key=lambda row: row.everybody)

    @property
    def pays(self) -> bool:
        """Whether a survey serves all users together better than a uniform prior does."""
        return self.best.enough and self.best.everybody < self.uniform

    def summary(self) -> str:
        """The plan in words."""
        best = self.best
        if not best.enough:
            return (
                f"{self.users:,} users are too few to learn a prior of {self.categories:,} categories at "
                f"epsilon {self.epsilon:g}: {self.needed:,} reports are needed. Merge categories, take a "
                f"larger epsilon, or look for public data."
            )
        if not self.pays:
            return (
                f"No survey pays for {self.users:,} users at epsilon {self.epsilon:g}: with a uniform prior "
                f"all are {self.uniform:.3f} away from their own data on average (total variation), with the "
                f"best survey, of {best.reports:,} users, {best.everybody:.3f}."
            )
        return (
            f"Let {best.share:.1%} of the users, {best.reports:,}, answer a survey at epsilon "
            f"{self.epsilon:g}. All users are then {best.everybody:.3f} away from their own data on average "
            f"(total variation), those who did not answer {best.others:.3f}; with a uniform prior all are "
            f"{self.uniform:.3f} away, with the best sampler without a prior {self.without:.3f}, and if the "
            f"population were public {self.known:.3f}."
        )

    def listing(self) -> Listing:
        """The table that is printed, below the plan in words."""
        rows = []
        for row in self.rows:
            mark = "too few reports" if not row.enough else "best" if row is self.best else ""
            means = (f"{row.others:.4f}", f"{row.everybody:.4f}")
            rows.append((f"{row.share:.1%}", f"{row.reports:,}", *means, mark))
        head = ("share", "reports", "mean of the others", "mean of all", "")
        return Listing(head, rows, self.summary())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self) | {"best": asdict(self.best)}


def plan(
    categories: Iterable[Category] | Prior,
    users: int,
    epsilon: float,
    *,
    progress: Callable[[float], object] | None = None,
) -> Plan:
    """Plan a survey for users of whom nothing is public: how many should answer, and what the others gain.

    Parameters
        categories: their names; the population is then taken to fall off like rank^-0.9. Or a guess at the
            population, as a prior.
        users: how many there are in all.
        epsilon: what each of them spends, on the survey or on a release.

    >>> made = plan(range(18), 20_000, 2.0)
    >>> made.best.others < made.uniform < made.without
    True
    """
    total = checks.whole_at_least(4, users=users)
    if total >= LARGEST_COUNT:
        raise ParameterError(Setting("users"), f" must be below 2^53, got {users}")
    truth = categories
    if not isinstance(truth, Prior):
        even = Prior.uniform(truth)
        truth = Prior(even.categories, ranked(len(even)))
    mechanism, rng = certify(survey(truth.categories, epsilon)), np.random.default_rng(0)
    model = model_of(mechanism)
    needed, law = reports_for_prior(model), np.maximum(model.kernel.apply(truth.probabilities), 0)
    law /= law.sum()
    people: Any = invented(truth.probabilities, crowd=CROWD) / 2.0**UNITS  # sparse rows

    def mean(sampler: ClipSampler) -> float:
        return float(np.mean(sampler.divergence(people, TV)))

    sizes = {max(2, round(share * total)) for share in SHARES} | ({needed} if 2 * needed <= total else set())
    rows = []
    for k, reports in enumerate(sorted(sizes), start=1):
        served, public = [], []  # with the prior that such a survey taught, and by draws of it
        for _ in range(max(2, min(12, 2000 // len(truth)))):  # fewer for many categories
            counts = rng.multinomial(reports, law).astype(np.float64)
            learned = estimate(mechanism, counts).as_prior(force=True)
            served.append(mean(fitted(learned, float(mechanism.epsilon))))
            common = np.minimum(people.data, learned.probabilities[people.indices]).sum()
            public.append(1 - common / people.shape[0])  # TV(p, q) = 1 − Σ min(p, q)
        share, others = min(1.0, reports / total), float(np.mean(served))
        everybody = share * float(np.mean(public)) + (1 - share) * others
        rows.append(PlanRow(share, reports, others, everybody, reports >= needed))
        if progress is not None:
            progress(k / len(sizes))
    uniform = Prior.uniform(truth.categories)
    return Plan(
        categories=len(truth),
        users=total,
        epsilon=float(epsilon),
        needed=needed,
        rows=tuple(rows),
        known=mean(fitted(truth, epsilon)),
        uniform=mean(fitted(uniform, epsilon)),
        without=mean(global_minimax(uniform, epsilon)),
    )
