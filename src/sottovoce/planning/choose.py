"""Choosing a sampler and, for a target, ε: every sampler is measured on public or invented users."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import checks
from ..collecting.estimate import how_many, reports_or_none
from ..divergences import TV, Distance
from ..errors import ParameterError, Setting, TargetError
from ..geometry import Geometry, Wasserstein, checked_geometry, wasserstein
from ..prior import FROM_USERS, Prior
from ..records import distributions
from ..release.certify import certify
from ..samplers.base import Sampler, checked_prior, label
from ..samplers.catalogue import SAMPLERS, prior_minimax
from ..samplers.nearest import nearest
from ..samplers.survey import survey
from .compare import Comparison, ComparisonRow, compare
from .fitted import UNITS, PublicUsers, check_public, fitted, invented
from .limit import TAIL, Limit
from .limit import limit as best_possible
from .statistics import weighed

if TYPE_CHECKING:
    from scipy import sparse

GRID = (*(quarter / 4 for quarter in range(1, 9)), *(half / 2 for half in range(5, 21)))
"""Epsilons tried for a target: 0.25 to 2 in quarters, then to 10 in halves."""
GAP = 0.02
"""Relative gap of the limit: two hundredths are enough for choosing and save most of the work."""
FREE = ("global_minimax", "randomized_response", "rr_with_prior")
"""Samplers that do not keep the prior."""
SHARES = (0.4, 0.5, 0.6)
"""Shares of `nearest` that are considered."""
ROUNDING = 1e-12
"""Added to a promise, so that its worst case is not above the target by rounding."""
OBJECTIVE = f"mean + {TAIL:g}·maximum"
MEASURES = {"mean": "mean", "p99": "99th percentile", "maximum": "maximum", "worst_case": "worst case"}


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """What `choose` recommends, and why.

    `table` holds the numbers of every sampler considered at this ε, on the users named in `measured_on`.
    `cheaper` says why the next smaller ε does not do. `limit` is the best that any ε-private sampler could do
    for these users.
    """

    sampler: Sampler
    row: ComparisonRow
    runner_up: ComparisonRow | None
    table: Comparison
    limit: Limit | None
    measured_on: str
    from_public_users: bool
    targets: tuple[str, ...]
    reason: str
    cheaper: str | None
    survey: str | None = None  # what a survey needs instead, where shares are asked for

    @property
    def epsilon(self) -> float:
        """The privacy parameter of the choice."""
        return self.sampler.epsilon

    @property
    def above_limit(self) -> float | None:
        """mean + 0.3·maximum of the choice minus the proven lower bound of the limit."""
        return None if self.limit is None else _score(self.row) - self.limit.lower_bound

    @property
    def as_typed(self) -> str:
        """The sampler as the command line takes it, bit for bit: fitted, or power-caps:scale=…,exponent=…"""
        name, options = self.sampler.name, dict(self.sampler.options)
        if name == "fitted":
            if not self.from_public_users:
                promise = options.get("promise")
                return name if promise is None else f"{name}:promise={promise!r}"
            name = "power_caps"  # which takes the parameters that were found on them
        given = ",".join(f"{key}={value!r}" for key, value in options.items())
        return name.replace("_", "-") + (f":{given}" if given else "")

    def command(self, prior: str = "PRIOR", output: str = "mechanism.json") -> str:
        """The command that designs and certifies this choice."""
        short = f"{self.epsilon:g}"
        epsilon = short if float(short) == self.epsilon else repr(self.epsilon)
        return f"sottovoce design {quote(prior)} -e {epsilon} -s {self.as_typed} -o {quote(output)}"

    def words(self) -> str:
        """The recommendation, its reason, the runner-up, the limit: a sentence a line."""
        lines = [f"Take {label(self.sampler)} at epsilon {self.epsilon:g}.", self.reason]
        lines += [f"It meets: {target}." for target in self.targets]
        lines += [line for line in (self.cheaper, self.survey) if line is not None]
        row = self.row
        what = "total variation" if row.divergence == TV.name else "W1, in the units of the geometry"
        worst = "" if row.worst_case is None else f"; for any possible user at most {row.worst_case:.4f}"
        lines.append(
            f"Distance to the user's own data ({what}): mean {row.mean:.4f}, 99th percentile "
            f"{row.p99:.4f}, maximum {row.maximum:.4f}{worst}."
        )
        if self.runner_up is not None:
            lines.append(f"Runner-up: {self.runner_up.sampler}, {_wins(self.runner_up, row)}.")
        if self.limit is not None:
            kept = " that keeps the prior" if self.limit.keep_prior else ""
            lines.append(
                f"The limit: the best private sampler{kept} has a {OBJECTIVE} between "
                f"{self.limit.lower_bound:.4f} and {self.limit.objective:.4f} for these users; "
                f"this one has {_score(row):.4f}."
            )
        lines.append(f"Measured on {self.measured_on}. Your users may differ.")
        if self.sampler.prior.provenance == "users":
            lines.append(FROM_USERS)
        return "\n".join(lines)

    __repr__ = words

    def _repr_html_(self) -> str:
        """What a notebook shows: the words, and the table below them."""
        words = "<br>".join(map(html.escape, self.words().splitlines()))
        return f"<p>{words}</p><pre>{html.escape(self.command())}</pre>{self.table._repr_html_()}"


class _Target(NamedTuple):
    """A target: in words, as a number of each candidate, and the upper bound on that number."""

    words: str
    number: Callable[[_Candidate], float]
    most: float


class _Candidate(NamedTuple):
    """A sampler with its numbers on the users of the choice."""

    sampler: Sampler
    row: ComparisonRow

    @property
    def worst(self) -> float:
        """The worst case over all possible users, infinite where it is not known."""
        return math.inf if self.row.worst_case is None else self.row.worst_case


def choose(
    prior: Prior,
    epsilon: float | None = None,
    users: PublicUsers | None = None,
    *,
    mean_at_most: float | None = None,
    nobody_above: float | None = None,
    share_within: float | None = None,
    reports: int | None = None,
    one_record: bool = False,
    same_for_everybody: bool = False,
    keep_prior: bool = True,
    limit: bool = True,
    geometry: Geometry | None = None,
    progress: Callable[[float], object] | None = None,
) -> Choice:
    """One sampler for this prior and, without `epsilon`, the smallest ε up to 10 that meets the targets.

    Every sampler of the catalogue and `fitted`, also with the promise that a target asks for, is measured in
    total variation on the public users or, without them, on 1,200 users invented from the prior (others than
    those `fitted` looks at). Of those that meet the targets the smallest mean + 0.3·maximum is taken.

    Guarantees
        Only a `PublicUsers` is accepted and nothing private looked at: choosing costs no privacy. Without
        users the answer is the same on every machine. At a smaller ε of the grid no sampler considered meets
        the targets. What is said about all possible users (`nobody_above`) holds for everybody, the mean for
        the users measured.

    Parameters
        mean_at_most: the mean distance over the users measured may be at most this.
        nobody_above: no possible user may be further from their own data than this.
        share_within, reports: from so many reports each share of the population must be estimated within
            ± this (95 %), if users are like the prior. Only linear samplers can.
        one_record: the device may look at one random record only, so the sampler must be linear.
        same_for_everybody: take the smallest worst case over all possible users, not the best average.
        keep_prior: only samplers with Q(q) = q.
        limit: also compute how much better any sampler could be; not in W1, where that takes long.
        geometry: a `Line` or a `Tree`: every distance is W1 then, in its units, and `nearest` is considered.
        progress: called with the part of the way, between 0 and 1; a target that is met early skips some.

    Raises
        TargetError: no sampler considered meets the targets; the message says the best that can be had.
        ParameterError: an option is out of range, users is no PublicUsers, or there is neither ε nor target.

    >>> from sottovoce import Prior
    >>> prior = Prior.from_counts({"comedy": 500, "drama": 300, "horror": 150, "western": 50})
    >>> choice = choose(prior, mean_at_most=0.05)
    >>> choice.row.mean <= 0.05, choice.sampler.keeps_prior
    (True, True)
    """
    measure: Distance = TV if geometry is None else wasserstein(checked_geometry(geometry, len(prior)))
    targets = _targets(mean_at_most, nobody_above, share_within, reports)
    if epsilon is None and not targets:
        raise ParameterError(
            "pass ", Setting("epsilon"), ", or a target to find it by: ", Setting("mean_at_most"), ", ",
            Setting("nobody_above"), ", or ", Setting("share_within"), " with ", Setting("reports"),
        )  # fmt: skip
    tried = GRID if epsilon is None else (checks.privacy(epsilon),)
    measured, measured_on = people(prior, users)
    by_survey = _by_survey(prior, tried, share_within, reports)
    report = progress or (lambda part: None)
    bounded, linear = limit and geometry is None, bool(one_record or reports)
    half = 0.5 if bounded else 1.0
    most = 0.0 if same_for_everybody and nobody_above is None else nobody_above
    before: list[_Candidate] = []
    for k, settled in enumerate(tried):
        considered = _candidates(prior, settled, users, measured, keep_prior, most, measure)
        report(half * (k + 1) / len(tried))
        allowed = [each for each in considered if each.sampler.linear or not linear]
        meeting = [each for each in allowed if all(t.number(each) <= t.most for t in targets)]
        if meeting:
            break
        before = allowed
    else:
        raise TargetError(_unmet(targets, before, tried) + ("" if by_survey is None else f". {by_survey}"))

    def rank(each: _Candidate) -> tuple[float, ...]:  # equal to nine digits is equal; then keep the prior
        first = (round(each.worst, 9),) if same_for_everybody else ()
        return *first, round(_score(each.row), 9), not each.sampler.keeps_prior

    best, *others = sorted(meeting, key=rank)
    bound = None
    if bounded:
        more: Any = {"relative_gap": GAP, "progress": lambda part: report(half + (1 - half) * part)}
        bound = best_possible(prior, settled, measured, keep_prior=keep_prior, **more)
    what = "smallest worst case over all possible users" if same_for_everybody else f"smallest {OBJECTIVE}"
    which = "linear samplers, which need one record of the user only" if linear else "samplers"
    reason = f"It has the {what} of the {len(meeting)} {which} (of {len(considered)}) that will do."
    if not others:
        reason = f"It is the only one of {len(considered)} samplers that will do."
    return Choice(
        sampler=best.sampler,
        row=best.row,
        runner_up=others[0].row if others else None,
        table=Comparison(tuple(each.row for each in considered)),
        limit=bound,
        measured_on=measured_on,
        from_public_users=users is not None,
        targets=tuple(target.words for target in targets),
        reason=reason,
        cheaper=f"Epsilon {tried[k - 1]:g} is too small: {_nearest(targets, before)}." if before else None,
        survey=by_survey,
    )


def _score(row: ComparisonRow) -> float:
    return weighed(row.mean, row.maximum, TAIL)


def _by_survey(
    prior: Prior, tried: Sequence[float], share_within: float | None, reports: int | None
) -> str | None:
    """The smallest ε at which a survey estimates the shares as well as requested."""
    if share_within is None or reports is None:
        return None
    for epsilon in tried:
        asked = certify(survey(prior.categories, epsilon))
        if how_many(asked, share_within, prior=prior) <= reports:
            return (
                f"If the shares are all that is wanted, a survey meets that target at epsilon {epsilon:g} "
                f"(sottovoce survey); its reports are numbers, not categories."
            )
    return None


def _targets(
    mean_at_most: float | None,
    nobody_above: float | None,
    share_within: float | None,
    reports: int | None,
) -> list[_Target]:
    targets = []
    if mean_at_most is not None:
        most = checks.at_least(0, mean_at_most=mean_at_most)
        targets.append(_Target(f"mean distance at most {most:g}", lambda each: each.row.mean, most))
    if nobody_above is not None:
        most = checks.at_least(0, nobody_above=nobody_above)
        targets.append(_Target(f"no possible user above {most:g}", lambda each: each.worst, most))
    if (share_within is None) != (reports is None):
        raise ParameterError("share_within and reports belong together: give both, or none")
    if share_within is not None and reports is not None:
        error = checks.positive(share_within=share_within)
        count = checks.whole_at_least(2, reports=reports)
        words = f"each share within ± {error:g} from {count:,} reports (95 %, users like the prior)"
        targets.append(_Target(words, lambda each: reports_or_none(each.sampler, error) or math.inf, count))
    return targets


def people(prior: Prior, users: PublicUsers | None) -> tuple[sparse.csr_array[np.float64], str]:
    """The users that the samplers are measured on, and a description of them."""
    q = checked_prior(prior).probabilities
    if users is None:
        order = np.argsort(-q, kind="stable")
        back = np.argsort(order, kind="stable")
        made = invented(q[order], crowd=1).astype(np.float64)
        made.data *= 2.0**-UNITS
        rows = distributions(made[:, back], len(prior))
        return rows, f"invented users, {rows.shape[0]:,} of them around the prior"
    check_public(users)
    rows = distributions(users.p, len(prior))
    return rows, f"{rows.shape[0]:,} public users ({users.source})"


def _candidates(
    prior: Prior,
    epsilon: float,
    users: PublicUsers | None,
    measured: sparse.csr_array[np.float64],
    keep_prior: bool,
    nobody_above: float | None,
    measure: Distance,
) -> list[_Candidate]:
    """Every sampler that may be considered, measured.

    With `nobody_above` also `fitted` with that promise, or with the best one where nobody can promise more.
    """
    names = [name for name in SAMPLERS if not (keep_prior and name in FREE)]
    made = [fitted(prior, epsilon, users), *(SAMPLERS[name](prior, epsilon) for name in names)]
    if isinstance(measure, Wasserstein):
        made = [*(nearest(prior, epsilon, measure.geometry, share=share) for share in SHARES), *made]
    elif nobody_above is not None:
        best = prior_minimax(prior, epsilon).worst_case(TV)
        promise = max(0.0, 1 - nobody_above + ROUNDING) if best < nobody_above - 2 * ROUNDING else "best"
        made.insert(1, fitted(prior, epsilon, users, promise=promise))
    made = [sampler for sampler in made if sampler.keeps_prior or not keep_prior]
    return list(map(_Candidate, made, compare(measured, made, measure)))


def _unmet(targets: Sequence[_Target], last: Sequence[_Candidate], tried: Sequence[float]) -> str:
    asked = " and ".join(target.words for target in targets)
    up_to = f"epsilon {tried[-1]:g}" if len(tried) == 1 else f"any epsilon up to {tried[-1]:g}"
    larger = "allow a larger epsilon, " if len(tried) == 1 else ""
    return (
        f"no sampler meets the target ({asked}) at {up_to}; there {_nearest(targets, last)}; "
        f"ask for less, {larger}or merge rare categories of the prior"
    )


def _nearest(targets: Sequence[_Target], candidates: Sequence[_Candidate]) -> str:
    """The best value of each target that is missed, or that no sampler meets all of them at once."""
    missed = []
    for target in targets:
        best = min(candidates, key=target.number)
        value = target.number(best)
        if value > target.most:
            number = f"{value:,.0f} reports" if target.most >= 2 else f"{value:.4g}"
            missed.append(f"for {target.words!r} the best is {number} with {label(best.sampler)}")
    return " and ".join(missed) or "each target can be met, but not all of them by one sampler"


def _wins(second: ComparisonRow, first: ComparisonRow) -> str:
    """In which numbers the second is better than the first."""
    better = [
        f"a lower {words}, {theirs:.4f} against {ours:.4f}"
        for name, words in MEASURES.items()
        if None not in (theirs := getattr(second, name), ours := getattr(first, name))
        and round(theirs, 4) < round(ours, 4)
    ]
    return "with " + ", and ".join(better) if better else "not better on any measure"
