"""The collector's side: what the population looks like, from one private category per user.

Reports z_1..z_m of a linear mechanism have the mean law p̄K, p̄ the average private law. With ŷ the share of
each category among the reports and W = K⁻¹,

    p̂ = ŷW,  p̂_j = (1/m) Σ_i W_{z_i j},  s_j² = (v_j + (2/m)·r_j²)/(m − 1),  v_j = Σ_z ŷ_z W_zj² − p̂_j²

is unbiased for p̄, a mean of m numbers per category, and costs O(n): the inverse is closed-form. The term
with r_j = max_z W_zj − min_z W_zj adds two reports that were not seen (after Agresti and Coull 1998; in an
interval half the square of its quantile): without it a category that nobody reported would look certain, and
so would those that it moves. A clip mechanism is not linear; its reports tell the average law that was
*released*, which is another thing, and is called so here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Unpack

import numpy as np

from .. import _html, _validate
from .._validate import FloatArray
from ..errors import EstimateError, ParameterError
from ..prior import Category
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler
from .counting import counted
from .model import Model, ReportColumns, model_of
from .nearer import maximum_likelihood, project, shrink
from .possible import floor_of, possible_shares

RARE = 2.0
"""Unseen reports that a standard error reckons with: half the square of the 95 % quantile, about."""


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Values with their standard errors, one per category, in the mechanism's order."""

    model: Model
    counts: FloatArray
    reports: float
    values: FloatArray
    variances: FloatArray  # of one report's contribution to each value
    reach: FloatArray  # per category, m times how far one report, changed at will, moves its value
    level: float

    @property
    def categories(self) -> Sequence[Category]:
        """The names."""
        return self.model.categories

    @property
    def unbiased(self) -> bool:
        """Whether the values are unbiased for the population, or only the law that was released."""
        return self.model.linear

    @property
    def bounded(self) -> bool:
        """Whether there is a range for the population: the reports are those of one clip mechanism."""
        return floor_of(self.model) is not None

    @property
    def bias_bound(self) -> float:
        """The largest distance (TV) of the expected values from the population: zero where unbiased."""
        return 0.0 if self.unbiased else self.model.worst_distance

    @cached_property
    def standard_errors(self) -> FloatArray:
        """One per category, with two unseen reports reckoned with."""
        return _errors(self.variances, self.reach, self.reports, RARE)

    def interval(self, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Normal intervals, nominally at the level: for each category alone, or for all (Bonferroni).

        The half widths around the shares, cut to what a share can be, from 0 to 1.
        """
        half = self.half_widths(simultaneous=simultaneous)
        return np.maximum(self.shares - half, 0), np.minimum(self.shares + half, 1)

    def half_widths(self, *, simultaneous: bool = False) -> FloatArray:
        """The ± of every value at the level: for each category alone, or for all (Bonferroni)."""
        z = quantile(self.level, len(self.values) if simultaneous else 1)
        return z * _errors(self.variances, self.reach, self.reports, z * z / 2)

    def possible(self, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """For a clip mechanism: where the population's average must lie, at the level of `interval`."""
        low, high = self.interval(simultaneous=simultaneous)
        return possible_shares(self.model, low, high)

    @cached_property
    def shares(self) -> FloatArray:
        """The values cut to what a share can be, from 0 to 1."""
        return np.clip(self.values, 0, 1)

    def marks(self) -> list[str]:
        """What each value tells: "more" or "fewer" than the prior (as a band), or "noise" if it may be 0."""
        low, high = self.interval(simultaneous=True)
        noise = self.interval()[0] <= 0
        more, fewer = low > self.model.prior, high < self.model.prior
        marks = np.select([more, fewer, noise], ["more", "fewer", "noise"], "")
        names: list[str] = marks.tolist()
        return names

    @cached_property
    def projected(self) -> FloatArray:
        """The nearest distribution to the values (Euclidean): never negative, no longer unbiased."""
        return project(self.values)

    @cached_property
    def shrunk(self) -> FloatArray:
        """The values pulled towards the public prior by as much as their errors explain; never negative.

        Biased towards the prior, and much closer than the unbiased values when the population is near it.
        """
        return shrink(self.values, self.model.prior, self.standard_errors)

    @cached_property
    def likeliest(self) -> FloatArray:
        """Towards the maximum-likelihood distribution, by EM from the prior: biased, often the smaller error.

        At most `LARGEST_STEPS` steps: at a small ε EM is slow and stops short of the maximum, nearer the
        prior.
        """
        if self.model.linear and self.model.kernel is None:
            raise EstimateError("several groups together have no likelihood of their own: ask each of them")
        if self.model.kernel is None:
            raise EstimateError("a clip mechanism has no likelihood of the population: it is not linear")
        return maximum_likelihood(self.model.kernel, self.counts / self.reports, self.model.prior)

    def moved_by(self, *, reports: int | None = None, share: float | None = None) -> float:
        """How far malicious reports, so many or such a share, can move the value of some category.

        Each of them replaces an honest one: (max_z W_zj − min_z W_zj)/m for the worst category j. A share
        cannot move by more than 1.
        """
        if (reports is None) == (share is None):
            raise ParameterError("moved_by takes either reports= or share=, one of them")
        if share is None:
            count = _validate.whole_at_least(0, reports=reports)
            if count > self.reports:
                raise ParameterError(
                    f"reports must be at most the {self.reports:,.0f} there are, got {count}"
                )
            share = count / self.reports
        return min(1.0, _validate.fraction(share=share) * float(self.reach.max()))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict per category."""
        low, high = self.interval()
        columns = {
            "category": list(self.categories),
            "reports": self.counts.tolist(),
            "prior": self.model.prior.tolist(),
            "estimate": self.values.tolist(),
            "share": self.shares.tolist(),
            "standard_error": self.standard_errors.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "projected": self.projected.tolist(),
            "shrunk": self.shrunk.tolist(),
            "mark": self.marks(),
        }
        if self.bounded:
            least, most = self.possible()
            columns |= {"possible_low": least.tolist(), "possible_high": most.tolist()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def words(self) -> str:
        """What the numbers are and how far they can be trusted, in plain words."""
        what = "Unbiased estimate of the average user's distribution"
        if not self.unbiased:
            what = (
                f"The average law that was released, not the users' own: it may be {self.bias_bound:.2g} "
                f"away from theirs (total variation), however many reports there are"
            )
        one, many = self.moved_by(reports=1), self.moved_by(share=0.01)
        return (
            f"{what}. {self.reports:,.0f} reports {self._samples()}of {self.model.name} at ε = "
            f"{self.model.epsilon:g}. One malicious report can move a value by {one:.2g}, one per cent of "
            f"malicious ones by {many:.2g}."
        )

    def _samples(self) -> str:
        return f"with {self.model.samples} samples each " if self.model.samples > 1 else ""

    def _repr_html_(self) -> str:
        """What a notebook shows: the largest shares with their intervals."""
        (low, high), marks = self.interval(), self.marks()
        order = np.argsort(-self.shares, kind="stable")[: _html.LISTED].tolist()
        most = max(float(self.shares[order[0]]), 1e-300)
        rows = [
            (self.categories[i], f"{self.shares[i]:.4f}", f"{low[i]:.4f} … {high[i]:.4f}", marks[i])
            for i in order
        ]
        head = ["category", "share", f"{100 * self.level:g}% interval", ""]
        widths = [float(self.shares[i]) / most for i in order]
        return _html.listed(self.words(), head, rows, widths, len(self.values) - len(order))

    def __repr__(self) -> str:
        return f"<Estimate over {len(self.values)} categories. {self.words()}>"


def estimate(
    mechanism: Mechanism | Sampler, reports: Any, *, level: float = 0.95, **columns: Unpack[ReportColumns]
) -> Estimate:
    """Estimate the population behind private reports.

    Guarantees
        For linear mechanisms (`minimax_kernel`, `randomized_response`, and `rr_with_prior` where it drops
        nothing) the values are unbiased for the average law of the population that the users are drawn from;
        for these very users, taken as fixed, the standard errors are on the safe side. For clip mechanisms
        the values are the released law: within `bias_bound` of the users' own in total variation, no better.

    Parameters
        mechanism: what the users released with: a mechanism or, in a simulation, a sampler.
        reports: a list of released categories (with several samples a list of tuples, one per user); how
            often each was released, as a mapping or as a numpy array in the order of the categories; or a
            table or path, with `item=` the column of the category and `user=` that of the user, where there
            is one, so that nobody counts twice.
        level: of intervals and bands.

    Raises
        EstimateError: fewer than two reports, unknown categories, counts that do not fit, a mechanism whose
            reports do not tell the population.

    >>> from sottovoce import Prior, minimax_kernel
    >>> sampler = minimax_kernel(Prior(["a", "b"], [0.25, 0.75]), 1.0)
    >>> found = estimate(sampler, {"a": 400, "b": 600})
    >>> found.values.round(3).tolist(), found.standard_errors.round(3).tolist()
    ([0.749, 0.251], [0.052, 0.052])
    """
    check_level(level)
    model = model_of(mechanism)
    counts, squares, total = counted(model, reports, columns)
    if total < 2:
        raise EstimateError(f"an estimate with its error needs at least 2 reports, there are {total:g}")
    y = counts / (total * model.samples)
    if model.kernel is None:
        values, variances = y, squares / total
        reach = np.full(len(y), 1.0 if len(y) > 1 else 0.0)
    else:
        values = model.kernel.inverse(y)
        variances, reach = model.kernel.inverse_columns(y)
    variances -= values**2
    np.maximum(variances, 0.0, out=variances)
    return Estimate(model, counts, total, values, variances, reach, level)


def _errors(variances: FloatArray, reach: FloatArray, reports: float, unseen: float) -> FloatArray:
    """√((v + (unseen/m)·r²)/(m − 1)), with as few copies as ten million categories need."""
    out = reach * reach
    out *= unseen / reports
    out += variances
    out /= reports - 1
    return np.sqrt(out, out=out)


def check_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not 0 < _validate.real(level=level) < 1:
        raise ParameterError(f"level must lie between 0 and 1, got {level}")


def quantile(level: float, comparisons: int) -> float:
    """The normal quantile of a level, for one interval or for several at once."""
    return -NormalDist().inv_cdf((1 - level) / comparisons / 2)
