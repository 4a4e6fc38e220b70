"""The collector's side: what the population looks like, from one private category per user.

Reports z_1..z_m of a linear mechanism have the mean law p̄K, p̄ the average private law. With ŷ the share of
each category among the reports and W = K⁻¹,

    p̂ = ŷW,  p̂_j = (1/m) Σ_i W_{z_i j},  s_j² = (v_j + (2/m)·r_j²)/(m − 1),  v_j = Σ_z ŷ_z W_zj² − p̂_j²

is unbiased for p̄, a mean of m numbers per category, and costs O(n): the inverse is closed-form. The term
with r_j = max_z W_zj − min_z W_zj adds two reports that were not seen (after Agresti and Coull 1998; in an
interval half the square of its quantile): without it a category that nobody reported would look certain, and
so would those that it moves.

A verdict says what reports are good for. Whether they could as well come from users who are like the prior is
Pearson's T = Σ_g Σ_z (count − m·y)²/(m·y), over groups g and answers z, with y the law of a report of a user
like the prior. Its mean is Σ(n − 1) and its variance Σ 2(n − 1) + (Σ_z 1/y_z − n² − 2n + 2)/m, both exact for
every m; a gamma law with these two moments gives the chance of a larger T.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks, listing
from ..checks import FloatArray
from ..errors import EstimateError, ParameterError, Setting
from ..prior import Learned, Prior
from ..records import LARGEST_COUNT, Category
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler
from ..tables.files import DETECTED, Dialect
from .learning import SPREAD, largest_epsilon, posterior_mean, reports_for_prior, starting_law
from .model import AsReleased, Model, SurveyKernel, model_of
from .reports import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOGETHER = "all groups together"
"""How the whole population is named beside its groups."""
RARE = 2.0
"""Unseen reports that a standard error reckons with: half the square of the 95 % quantile, about."""
ROUNDING = 1e-12
"""Added to every range for the integers of a mechanism, which differ from a law by 2^-62 a category."""


@dataclass(frozen=True, repr=False)
class Verdict(listing.Described):
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
        """Whether the reports tell more about the users than the prior."""
        return self.chance < 1 - self.level if self.unbiased else self.standing_out > 0

    def summary(self) -> str:
        """The verdict in plain words."""
        need = f"± {self.error:g} in every category{'' if self.unbiased else ' for the released law'}"
        if self.needed is None:
            number = f"no number of them gives {need}"
        elif self.enough:
            number = f"enough for {need}, which needs {self.needed:,}"
        else:
            number = f"{need} needs {self.needed:,}"
        who = {0: "no category stands out alone", 1: "1 category stands out"}
        out = who.get(self.standing_out, f"{self.standing_out} categories stand out")
        chance = f"{self.chance:.2g}" if self.chance >= 1e-6 else "below 0.000001"
        why = f": a difference this large or larger has probability {chance} if they are like it"
        if not self.unbiased:
            why = "" if self.learnt else ": the shares are those of what was released, not the users' own"
        lesson = f"Nothing was learnt about the users beyond {self.reference}{why}"
        if self.learnt:
            lesson = f"The users differ from {self.reference}{why}{';' if why else ':'} {out}"
        return f"{self.reports:,.0f} reports; {number}. {lesson}."

    def facts(self) -> tuple[str, list[tuple[str, object]]]:
        """What is shown."""
        return "Verdict", [("in words", self.summary()), ("confidence", f"{100 * self.level:g} %")]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(listing.Listed):
    """Values with their standard errors, one per category, in the mechanism's order."""

    model: Model
    counts: FloatArray  # of every answer
    reports: float
    values: FloatArray
    variances: FloatArray  # of one report's contribution to each value
    reach: FloatArray  # per category, m times how far one report, changed at will, moves its value
    level: float
    parts: tuple[Estimate, ...] = ()  # the groups that it was put together from, if it was

    @property
    def categories(self) -> Sequence[Category]:
        """The names."""
        return self.model.categories

    @cached_property
    def support(self) -> FloatArray:
        """How many reports name each category; of a survey, how many support it."""
        kernel = self.model.kernel
        return kernel.support(self.counts).round() + 0.0 if isinstance(kernel, SurveyKernel) else self.counts

    @property
    def unbiased(self) -> bool:
        """Whether the values are unbiased for the population, or only the law that was released."""
        return self.model.linear

    @property
    def value_name(self) -> str:
        """What a table calls the values: shares of the users, or of what was released."""
        return "share" if self.unbiased else "released"

    @property
    def bounded(self) -> bool:
        """Whether there is a range for the population: the reports are those of one clip mechanism."""
        return self.model.floor is not None

    @property
    def bias_bound(self) -> float:
        """The largest distance (TV) of the expected values from the population: zero where unbiased."""
        return 0.0 if self.unbiased else self.model.worst_distance

    @cached_property
    def standard_errors(self) -> FloatArray:
        """One per category, with two unseen reports reckoned with."""
        return self._errors(RARE)

    def _errors(self, unseen: float) -> FloatArray:
        """√((v + (unseen/m)·r²)/(m − 1)), with as few copies as ten million categories need."""
        out = self.reach * self.reach
        out *= unseen / self.reports
        out += self.variances
        out /= self.reports - 1
        return np.sqrt(out, out=out)

    def interval(self, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Normal intervals around the shares, cut to 0 … 1: for each category alone, or for all at once."""
        half = self.half_widths(simultaneous=simultaneous)
        return np.maximum(self.shares - half, 0), np.minimum(self.shares + half, 1)

    def half_widths(self, *, simultaneous: bool = False) -> FloatArray:
        """The ± of every value at the level: for each category alone, or for all (Bonferroni)."""
        z = _quantile(self.level, len(self.values) if simultaneous else 1)
        return z * self._errors(z * z / 2)

    def possible(self, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """For a clip mechanism: where the population's average must lie, at the level of `interval`."""
        low, high = self.interval(simultaneous=simultaneous)
        return possible_shares(self.model, low, high)

    @cached_property
    def shares(self) -> FloatArray:
        """The values cut to what a share can be, from 0 to 1."""
        return np.clip(self.values, 0, 1)

    def as_prior(
        self, *, older: Prior | None = None, mixture: float | None = None, force: bool = False
    ) -> Prior:
        """A prior learned from these reports: as private as they are, so it can be published and used.

        Guarantees
            Positive everywhere: every category has at least `mixture` times its probability in the older
            prior, whatever the reports say, and however many of them lie. Its provenance is "learned", with
            the number of reports, the digest of the mechanism and the largest ε of all reports behind it,
            those of an older learned prior included; every mechanism made from it states them.

        Parameters
            older: an earlier prior with the same categories, from which the reports may lead away; by default
                the prior of the mechanism, for a survey the uniform one.
            mixture: the share of the older prior that stays, by default 0.05 if one is given, else 0.001.
            force: also from fewer reports than `reports_for_prior` asks for.

        Raises
            EstimateError: too few reports (how many are needed), biased ones, or not those of one certified
                mechanism.
            PriorError: the older prior, or that of the mechanism, was made from its users, or was learned
                and does not state its ε; the older prior has other categories.
        """
        model = self.model
        if model.digest is None:
            raise EstimateError(
                "a prior is learned from the reports of one certified mechanism: estimate with that "
                "mechanism, not with a sampler, and each group alone"
            )
        if not self.unbiased and not force:
            raise EstimateError(
                f"reports of {model.name} tell the law that was released, which is drawn towards the old "
                f"prior: collect with a survey or a linear mechanism, or learn from them all the same "
                f"(in Python, force=True)"
            )
        needed = reports_for_prior(model)
        if self.reports < needed and not force:
            raise EstimateError(
                f"{self.reports:,.0f} reports are too few to learn a prior of {len(model.prior):,} "
                f"categories at epsilon {model.epsilon:g}, which takes {needed:,}: collect more, take a "
                f"larger epsilon or fewer categories; or learn from few all the same (in Python, force=True)"
            )
        centre = starting_law(older, model)
        usual = SPREAD if older is None else 0.05
        kept = usual if mixture is None else checks.fraction(mixture=mixture)
        q = posterior_mean(self.values, self.standard_errors, centre)
        q = (1 - kept) * q / q.sum() + kept * centre
        source = Learned(int(self.reports), largest_epsilon(older, model), model.digest)
        return Prior(model.categories, q / q.sum(), learned=source)

    def verdict(self, *, error: float = 0.01) -> Verdict:
        """Whether the reports suffice for ± `error` in every category, and whether they tell anything.

        >>> from sottovoce import Prior, estimate, minimax_kernel
        >>> sampler = minimax_kernel(Prior(["a", "b"], [0.25, 0.75]), 1.0)
        >>> print(estimate(sampler, {"a": 310, "b": 690}).verdict().summary())
        1,000 reports; ± 0.01 in every category needs 91,011. The users differ from the public prior: a \
difference this large or larger has probability 1.2e-05 if they are like it; 2 categories stand out.
        """
        checks.positive(error=error)
        marks = self.marks()
        return Verdict(
            reports=self.reports,
            error=error,
            needed=_reports_needed(self.variances, self.reach, error, self.level),
            chance=_chance(self.parts or (self,)),
            standing_out=marks.count("more") + marks.count("fewer"),
            level=self.level,
            unbiased=self.unbiased,
            reference="an even spread" if self.model.name == "survey" else "the public prior",
        )

    def plot(self, axes: Axes | None = None, *, truth: Any = None) -> Axes:
        """Draw the prior, the estimate, its interval and, if known, the truth of the largest categories."""
        from ..pictures.plots import plot_estimate

        return plot_estimate(self, axes, truth=truth)

    def marks(self) -> list[str]:
        """What each value tells of the users: "more" or "fewer" than the prior, or "noise" if it may be 0.

        More and fewer hold for all categories at once. Values of the released law are marked where the range
        of the population (`possible`) does not contain the prior, and not at all where there is no range.
        """
        if not self.unbiased and not self.bounded:
            return [""] * len(self.values)
        low, high = self.interval(simultaneous=True) if self.unbiased else self.possible(simultaneous=True)
        noise = (self.interval()[0] <= 0) & self.unbiased
        more, fewer = low > self.model.prior, high < self.model.prior
        return list(np.select([more, fewer, noise], ["more", "fewer", "noise"], "").tolist())

    @cached_property
    def projected(self) -> FloatArray:
        """The nearest distribution to the values (Euclidean): never negative, no longer unbiased."""
        return project(self.values)

    @cached_property
    def shrunk(self) -> FloatArray:
        """The values pulled towards the public prior by as much as their errors explain (James and Stein).

        q + w·(p̂ − q) with w = max(0, 1 − (1 − 2/(n−1))·Σs_j²/Σ(p̂_j − q_j)²); for n ≤ 3 w is 1. Where that is
        negative somewhere, the nearest distribution, which is no farther from any distribution. Biased
        towards the prior, and much closer than the unbiased values when the population is near it.
        """
        off, errors = self.values - self.model.prior, self.standard_errors
        spread = float(off @ off)
        free = max(0.0, 1 - 2 / max(len(off) - 1, 1))
        kept = max(0.0, 1 - free * float(errors @ errors) / spread) if spread > 0 else 0.0
        return project(self.model.prior + kept * off)  # a distribution stays as it is

    def moved_by(self, share: float) -> float:
        """How far such a share of malicious reports can move the value of some category.

        Each of them replaces an honest one: (max_z W_zj − min_z W_zj)/m for the worst category j, at most 1.
        """
        return min(1.0, checks.fraction(share=share) * float(self.reach.max()))

    def to_dicts(self, *, simultaneous: bool = False) -> list[dict[str, Any]]:
        """One plain dict per category, with intervals for each alone or for all at once."""
        low, high = self.interval(simultaneous=simultaneous)
        columns = {
            "reports": self.support,
            "prior": self.model.prior,
            "estimate": self.values,
            "share": self.shares,
            "standard_error": self.standard_errors,
            "low": low,
            "high": high,
            "projected": self.projected,
            "shrunk": self.shrunk,
            "mark": np.array(self.marks()),
        }
        if self.bounded:
            columns["possible_low"], columns["possible_high"] = self.possible(simultaneous=simultaneous)
        rows = zip(self.categories, *(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(("category", *columns), row, strict=True)) for row in rows]

    def summary(self) -> str:
        """What the numbers are and how far they can be trusted, in plain words."""
        what = "Unbiased estimate of the average user's distribution"
        if not self.unbiased:
            what = (
                f"The average law that was released, not the users' own: it may be {self.bias_bound:.2g} "
                f"away from theirs (total variation), however many reports there are"
            )
        return (
            f"{what}. {self.reports:,.0f} reports of {self.model.name} at "
            f"ε = {self.model.epsilon:g}. One malicious report can move a value by "
            f"{self.moved_by(1 / self.reports):.2g}, one per cent of malicious ones by "
            f"{self.moved_by(0.01):.2g}."
        )

    def listing(self) -> listing.Listing:
        """What is shown: the largest shares with their intervals."""
        (low, high), marks = self.interval(), self.marks()
        order = np.argsort(-self.shares, kind="stable")[: listing.LISTED].tolist()
        rows = [
            (str(self.categories[i]), f"{self.shares[i]:.4f}", f"{low[i]:.4f} … {high[i]:.4f}", marks[i])
            for i in order
        ]
        head = ("category", self.value_name, f"{100 * self.level:g}% interval", "")
        return listing.Listing(head, rows, self.summary(), more=len(self.values) - len(order))


def estimate(
    mechanism: Mechanism | Sampler,
    reports: Any,
    *,
    level: float = 0.95,
    item: str = "item",
    user: str | None = None,
    dialect: Dialect = DETECTED,
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
            in the order of the categories; a table or path; or a list of `Path` of stores and exports, in
            which a report that stands several times counts once, by its id, as the first source has it.
        level: of intervals and bands.
        item, user, dialect: of a table: the column of the category, that of the user, where there is one, so
            that nobody counts twice, and how its file is written.

    Raises
        EstimateError: fewer than two reports, unknown categories, counts that do not fit, a mechanism whose
            reports do not tell the population.

    >>> from sottovoce import Prior, minimax_kernel
    >>> sampler = minimax_kernel(Prior(["a", "b"], [0.25, 0.75]), 1.0)
    >>> shares = estimate(sampler, {"a": 400, "b": 600})
    >>> shares.values.round(3).tolist(), shares.standard_errors.round(3).tolist()
    ([0.749, 0.251], [0.052, 0.052])
    """
    _check_level(level)
    model = model_of(mechanism)
    counts = counted(model, reports, item, user, dialect)
    total = float(counts.sum())
    if total < 2:
        raise EstimateError(f"an estimate with its error needs at least 2 reports, there are {total:g}")
    y = counts / total
    values = model.kernel.inverse(y)
    variances, reach = model.kernel.inverse_columns(y)
    variances -= values**2
    np.maximum(variances, 0.0, out=variances)
    return Estimate(model, counts, total, values, variances, reach, level)


def _check_level(level: float) -> None:
    if not 0 < checks.real(level=level) < 1:
        raise ParameterError(Setting("level"), f" must lie between 0 and 1, got {level}")


def _quantile(level: float, comparisons: int = 1) -> float:
    """The normal quantile of a level, for one interval or for several at once."""
    return -NormalDist().inv_cdf((1 - level) / comparisons / 2)


def whole_population(groups: Mapping[str, Estimate]) -> Estimate:
    """One estimate of all groups together, over all their categories.

    value_j = Σ_g (m_g/m)·value_gj is a mean over all m reports. Its variance for one report is
    Σ_g (m_g/m)·v_gj, and one report moves it by at most max_g r_gj/m. The sizes of the groups are taken as
    they are.

    Raises
        EstimateError: there is no group, or levels differ.
    """
    estimates = list(groups.values())
    if not estimates or len({group.level for group in estimates}) > 1:
        raise EstimateError("estimates to put together must be some, and at one level")
    categories = list(dict.fromkeys(name for group in estimates for name in group.categories))
    reports = sum(group.reports for group in estimates)
    counts, prior, values, variances, reach = (np.zeros(len(categories)) for _ in range(5))
    index = {name: i for i, name in enumerate(categories)}
    for group in estimates:
        where, share = [index[name] for name in group.categories], group.reports / reports
        counts[where] += group.support
        prior[where] += share * group.model.prior
        values[where] += share * group.values
        variances[where] += share * group.variances
        reach[where] = np.maximum(reach[where], group.reach)
    model = Model(
        name=" and ".join(dict.fromkeys(group.model.name for group in estimates)),
        categories=categories,
        prior=prior,
        epsilon=max(group.model.epsilon for group in estimates),
        kernel=AsReleased(),
        linear=all(group.unbiased for group in estimates),
        worst_distance=sum(group.reports / reports * group.bias_bound for group in estimates),
    )
    return Estimate(model, counts, reports, values, variances, reach, estimates[0].level, tuple(estimates))


def how_many(
    mechanism: Mechanism | Sampler, error: float, level: float = 0.95, *, prior: Prior | None = None
) -> int:
    """Reports needed until the interval of every category is at most ± `error`, if users are like the prior.

    The least m with z²·(v_j + z²·r_j²/(2m))/m ≤ error² for every j, where v_j = Σ_z y_z W_zj² − q_j², y = qK,
    is the exact variance of one report's contribution and z the normal quantile of the level. A survey has no
    prior of its own: pass what is expected of its users as `prior`, or it is an even spread.

    >>> from sottovoce import Prior, minimax_kernel
    >>> how_many(minimax_kernel(Prior(["a", "b"], [0.25, 0.75]), 1.0), error=0.01)
    79781
    """
    checks.positive(error=error)
    _check_level(level)
    model = model_of(mechanism)
    if not model.linear:
        raise EstimateError(
            f"{model.name} is not linear: its reports tell the released law, and no number of them "
            f"brings that nearer to the population; use minimax_kernel or randomized_response"
        )
    expected = model.prior
    if prior is not None:
        if tuple(prior.categories) != tuple(model.categories):
            raise EstimateError("prior must have the categories of the mechanism, in the same order")
        expected = prior.probabilities
    needed = _reports_needed(*model.at(expected), error, level)
    if needed is None:
        raise EstimateError("no number of reports will do: the error or epsilon is too small")
    return needed


def reports_or_none(mechanism: Mechanism | Sampler, error: float) -> int | None:
    """`how_many`, or None where no number of reports will do."""
    try:
        return how_many(mechanism, error)
    except EstimateError:
        return None


def _reports_needed(variance: FloatArray, reach: FloatArray, error: float, level: float) -> int | None:
    """The least m with z²·(v_j + z²·r_j²/(2m))/m ≤ error² for every j; None if that is beyond all counts."""
    with np.errstate(all="ignore"):
        z = _quantile(level)
        step = (error / z) ** 2 if z > 0 else math.inf
        needed = float(((variance + np.sqrt(variance**2 + 2 * z * z * step * reach**2)) / (2 * step)).max())
    return max(2, math.ceil(needed)) if needed < LARGEST_COUNT else None


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
        m = group.reports
        distance += float(((group.counts - m * y) ** 2 / (m * y)).sum())
        mean += n - 1
        spread += 2 * (n - 1) + (float((1 / y).sum()) - n * n - 2 * n + 2) / m
    if mean == 0 or spread <= 0:  # one category: there is nothing to learn
        return 1.0
    return float(gammaincc(mean**2 / spread, distance * mean / spread))


def project(values: FloatArray) -> FloatArray:
    """The distribution nearest to the values in Euclidean distance: max(v − t, 0) for the right t."""
    descending = np.sort(values)[::-1]
    excess = np.cumsum(descending) - 1
    rank = np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(descending * rank > excess)[-1])
    return np.asarray(np.maximum(values - excess[last] / (last + 1), 0.0))


def possible_shares(model: Model, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The range of each p̄_i, if the average law that was released lies between `low` and `high`.

    A clip mechanism is not linear, so that its reports do not give the population's average p̄ back; but
    they leave a range for it. Let c be the floor, C its sum, e = 1 − C, a = e^ε, κ = (a − 1)/a, and S a set
    of categories, c_m its smallest floor. For a user with p(S) = t > 0 and law x,

        x(S) − c(S) ≥ g(t) = min( (a − 1)·c_m , (e + c(S))·t/(t + κ(1 − t)) − c(S) )₊ .

    Proof. If everything the user has is capped, some category of S is at a·c_j: x(S) − c(S) ≥ (a − 1)·c_m.
    Else x_j = clip(p_j/r; c_j, a·c_j) with one r > 0. Outside S, clip(y; c, a·c) ≤ c + κ·y for every y ≥ 0,
    so x(S) − c(S) ≥ e − κ(1 − t)/r. Inside S, x(S) − c(S) is at least (a − 1)·c_m if a category is capped,
    and otherwise at least Σ_S (p_j/r − c_j) = t/r − c(S). The first bound falls and the second rises in
    1/r; where they meet is g(t).

    On [t₀, 1], t₀ = κ·c(S)/(e + κ·c(S)), g is concave, and before it is 0; so it lies above the line from
    (t₀, 0) to (1, g(1)). The line, cut at 0, is convex, and averaging over the users (Jensen) gives

        p̄(S) ≤ t₀ + (1 − t₀)·(x̄(S) − c(S))/g(1),   g(1) = min((a − 1)·c_m, e).

    With S = {i} this bounds p̄_i from above, with S = everything but i from below. The two are closed over
    Σp̄ = 1, which is what a linear program over these inequalities would do.
    """
    floor = model.floor
    if floor is None:
        raise EstimateError("a range is for clip mechanisms; where reports can be undone, take the interval")
    if len(floor) == 1:
        return np.ones(1), np.ones(1)
    total = float(floor.sum())
    most = _at_most(high, floor, floor, total, model.epsilon)
    alone = np.arange(len(floor)) == floor.argmin()
    smallest_other = np.where(alone, np.partition(floor, 1)[1], floor.min())
    least = 1 - _at_most(1 - low, total - floor, smallest_other, total, model.epsilon)
    far = model.worst_distance  # no user's law is further from their own than this
    most = np.minimum(most, high + far) + ROUNDING
    least = np.maximum(least, low - far) - ROUNDING
    least, most = np.clip(least, 0, 1), np.clip(most, 0, 1)
    together = np.maximum(least, 1 - (most.sum() - most)), np.minimum(most, 1 - (least.sum() - least))
    return np.clip(together[0], 0, 1), np.clip(together[1], 0, 1)


def _at_most(
    released: FloatArray, floor: FloatArray, smallest: FloatArray, total: float, epsilon: float
) -> FloatArray:
    """t₀ + (1 − t₀)·(x̄(S) − c(S))/g(1) for each set, from x̄(S), c(S) and c_m; 1 where nothing is told."""
    spare = max(1 - total, 0.0)
    kept = -math.expm1(-epsilon)
    top = np.minimum(math.expm1(epsilon) * smallest, spare)
    start = kept * floor / (spare + kept * floor)
    above = np.maximum(released - floor, 0) + 16 * np.finfo(np.float64).eps  # sums are rounded, top is small
    part = np.divide(above, top, out=np.ones_like(top), where=top > 0)
    return np.minimum(start + (1 - start) * np.minimum(part, 1), 1)
