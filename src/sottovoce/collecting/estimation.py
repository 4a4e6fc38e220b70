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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from .. import _validate
from .._validate import FloatArray
from ..errors import EstimateError, ParameterError
from ..prior import Category
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler
from .model import Invertible, Model, ReportColumns, model_of

RARE = 2.0
"""Unseen reports that a standard error reckons with: half the square of the 95 % quantile, about."""

LARGEST_STEPS = 5000
"""Steps of expectation maximisation at most; it gains slowly when ε is small."""


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
        return self.model.kernel is not None

    @property
    def bias_bound(self) -> float:
        """The largest distance (TV) of the expected values from the population: zero where unbiased."""
        return 0.0 if self.unbiased else self.model.worst_distance

    @cached_property
    def standard_errors(self) -> FloatArray:
        """One per category, with two unseen reports reckoned with."""
        return _errors(self.variances, self.reach, self.reports, RARE)

    def interval(self, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Normal intervals, nominally at the level: for each category alone, or for all (Bonferroni)."""
        z = _quantile(self.level, len(self.values) if simultaneous else 1)
        half = z * _errors(self.variances, self.reach, self.reports, z * z / 2)
        return self.values - half, self.values + half

    @cached_property
    def projected(self) -> FloatArray:
        """The nearest distribution to the values (Euclidean): never negative, no longer unbiased."""
        return project(self.values)

    @cached_property
    def shrunk(self) -> FloatArray:
        """The values pulled towards the public prior by as much as their errors explain (James and Stein).

        q + w·(p̂ − q) with w = max(0, 1 − (1 − 2/(n−1))·Σs_j²/Σ(p̂_j − q_j)²): biased towards the prior, and
        much closer than the unbiased values when the population is near it. For n ≤ 3: the values.
        """
        off = self.values - self.model.prior
        spread = float(off @ off)
        free = max(0.0, 1 - 2 / max(len(off) - 1, 1))
        noise = free * float(self.standard_errors @ self.standard_errors)
        kept = max(0.0, 1 - noise / spread) if spread > 0 else 0.0
        return self.model.prior + kept * off

    @cached_property
    def likeliest(self) -> FloatArray:
        """Towards the maximum-likelihood distribution, by EM from the prior: biased, often the smaller error.

        At most `LARGEST_STEPS` steps: at a small ε EM is slow and stops short of the maximum, nearer the
        prior.
        """
        if self.model.kernel is None:
            raise EstimateError("a clip mechanism has no likelihood of the population: it is not linear")
        return maximum_likelihood(self.model.kernel, self.counts / self.reports, self.model.prior)

    def moved_by(self, *, reports: int | None = None, share: float | None = None) -> float:
        """How far malicious reports, so many or such a share, can move the value of some category.

        Each of them replaces an honest one: (max_z W_zj − min_z W_zj)/m for the worst category j.
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
        return _validate.fraction(share=share) * float(self.reach.max())

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict per category."""
        low, high = self.interval()
        columns = {
            "category": list(self.categories),
            "reports": self.counts.tolist(),
            "prior": self.model.prior.tolist(),
            "estimate": self.values.tolist(),
            "standard_error": self.standard_errors.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "projected": self.projected.tolist(),
            "shrunk": self.shrunk.tolist(),
        }
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
            f"{what}. {self.reports:,.0f} reports of {self.model.name} at ε = {self.model.epsilon:g}. One "
            f"malicious report can move a value by {one:.2g}, one per cent of malicious ones by {many:.2g}."
        )

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
        reports: a list of released categories; how often each was released, as a mapping or as a numpy array
            in the order of the categories; or a table or path, with `item=` the column of the category and
            `user=` that of the user, where there is one, so that nobody counts twice.
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
    _check_level(level)
    model = model_of(mechanism)
    counts = _counts(model, reports, columns)
    total = float(counts.sum())
    if total < 2:
        raise EstimateError(f"an estimate with its error needs at least 2 reports, there are {total:g}")
    y = counts / total
    if model.kernel is None:
        values, variances = y, y.copy()
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


def how_many(
    mechanism: Mechanism | Sampler, error: float, level: float = 0.95, *, simultaneous: bool = False
) -> int:
    """Reports needed until the interval of every category is at most ± `error`, if users are like the prior.

    The least m with z²·(v_j + z²·r_j²/(2m))/m ≤ error² for every j, where v_j = Σ_z y_z W_zj² − q_j², y = qK,
    is the exact variance of one report's contribution and z the normal quantile of the level (for all
    categories at once with `simultaneous`).

    >>> from sottovoce import Prior, minimax_kernel
    >>> how_many(minimax_kernel(Prior(["a", "b"], [0.25, 0.75]), 1.0), error=0.01)
    79781
    """
    _validate.positive(error=error)
    _check_level(level)
    model = model_of(mechanism)
    if model.kernel is None:
        raise EstimateError(
            f"{model.name} is a clip mechanism: its reports tell the released law, and no number of them "
            f"brings that nearer to the population; use minimax_kernel or randomized_response"
        )
    with np.errstate(all="ignore"):
        second, reach = model.kernel.inverse_columns(model.kernel.apply(model.prior))
        variance = np.maximum(second - model.prior**2, 0.0)
        z = _quantile(level, len(second) if simultaneous else 1)
        step = (error / z) ** 2 if z > 0 else math.inf
        needed = float(((variance + np.sqrt(variance**2 + 2 * z * z * step * reach**2)) / (2 * step)).max())
    if not needed < _validate.LARGEST_COUNT:
        raise EstimateError("no number of reports will do: the error or epsilon is too small")
    return max(2, math.ceil(needed))


def project(values: FloatArray) -> FloatArray:
    """The distribution nearest to the values in Euclidean distance: max(v − t, 0) for the right t."""
    descending = np.sort(values)[::-1]
    excess = np.cumsum(descending) - 1
    rank = np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(descending * rank > excess)[-1])
    nearest: FloatArray = np.maximum(values - excess[last] / (last + 1), 0.0)
    return nearest


def maximum_likelihood(
    kernel: Invertible, y: FloatArray, start: FloatArray, *, tolerance: float = 1e-12
) -> FloatArray:
    """The p that makes shares y likeliest, by expectation maximisation: p_i ← p_i·Σ_z K_iz y_z/(pK)_z.

    The log-likelihood per report is within max_i Σ_z K_iz y_z/(pK)_z − 1 of the best; stops when that is
    below the tolerance, or after `LARGEST_STEPS`.
    """
    p = start.copy()
    for _ in range(LARGEST_STEPS):
        x = kernel.apply(p)
        gain = kernel.back(np.divide(y, x, out=np.zeros_like(y), where=y > 0))
        p *= gain
        if gain.max() - 1 < tolerance:
            break
    p /= p.sum()
    return p


def _counts(model: Model, reports: Any, columns: ReportColumns) -> FloatArray:
    """How often each category was reported, from any form the reports come in."""
    if isinstance(reports, str | Path) or hasattr(type(reports), "columns"):  # a path, or any dataframe
        from .reports import count_reports

        return count_reports(reports, model, **columns)["all"]
    if columns:
        raise ParameterError(f"{', '.join(columns)} is for a table of reports")
    if isinstance(reports, np.ma.MaskedArray):
        raise EstimateError("counts must not be a masked array: fill or drop what is masked")
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iuf":
        return _checked(reports, len(model.categories))
    index = {name: i for i, name in enumerate(model.categories)}
    if isinstance(reports, Mapping):
        names, amounts = list(reports), _checked(np.array(list(reports.values())), len(reports))
    else:
        try:
            names = list(reports)
        except TypeError:
            raise EstimateError("reports must be a list of categories, counts, or a table") from None
        amounts = np.ones(len(names))
    try:
        places = np.array([index.get(name, -1) for name in names], dtype=np.intp)
    except TypeError:
        raise EstimateError("reports must be categories of the mechanism, or a table of them") from None
    strange = amounts[places < 0].sum()
    names_known = places >= 0
    if strange:
        raise EstimateError(
            f"reports must be categories of the mechanism: {strange:g} of {amounts.sum():g} are not; is "
            f"it the mechanism they were released with?"
        )
    return np.bincount(places[names_known], amounts[names_known], minlength=len(index)).astype(np.float64)


def _checked(counts: npt.NDArray[Any], size: int) -> FloatArray:
    """Counts, one per category; fractions are welcome: an expected count is one."""
    if counts.shape != (size,):
        raise EstimateError(
            f"counts must have one number per category: {size} categories, got {counts.shape}"
        )
    fine = counts.dtype.kind in "iuf" and bool(np.all(np.isfinite(counts)) and np.all(counts >= 0))
    if not fine or float(counts.sum(dtype=np.float64)) >= _validate.LARGEST_COUNT:
        raise EstimateError("counts must be finite numbers of at least 0, below 2^53 together")
    return counts.astype(np.float64)


def _check_level(level: float) -> None:
    if not 0 < _validate.real(level=level) < 1:
        raise ParameterError(f"level must lie between 0 and 1, got {level}")


def _quantile(level: float, comparisons: int) -> float:
    return -NormalDist().inv_cdf((1 - level) / comparisons / 2)
