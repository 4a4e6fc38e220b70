"""Many samplers × many users × many divergences, as one tidy table.

A comparison looks at the users' true data. Its numbers are for choosing a sampler on data you may
look at; they are not themselves private and must not be published about private users.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _validate
from .._html import bar
from .._validate import FloatArray
from ..divergences import TV, FDivergence, checked
from ..errors import ParameterError
from ..groups import EVERYBODY
from ..prior import FROM_USERS, PROVENANCES, Prior
from ..samplers.base import ClipSampler, KernelSampler, Sampler, label
from ..users import Users, UsersLike, rows_for
from .limit import TAIL, summarise, weighed
from .limit import limit as best_possible
from .prior_check import add_up, doubt, moments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATISTICS = ("mean", "median", "p90", "p99", "maximum", "worst_case")
BEST_POSSIBLE = "best possible"
"""The sampler's name in a row of the limit: what no ε-private sampler that keeps the prior can beat."""
FITTED = "fitted"
"""The sampler whose options differ with the prior and ε: rows show its name alone."""
ALL_GROUPS = "all groups"
"""The group's name in a row about the users of all groups together."""

_Measured: TypeAlias = "tuple[ComparisonRow, FloatArray]"
_Block: TypeAlias = tuple[str, float, str]


@dataclass(frozen=True)
class ComparisonRow:
    """How one sampler serves one group of users in one divergence.

    `worst_case` is None in the row of the limit, which knows these users only. `above_limit` is how far
    mean + tail·maximum is above the proven lower bound of the limit, where the limit was requested; it can
    be negative for a sampler that does not keep the prior.
    """

    group: str
    epsilon: float
    sampler: str
    divergence: str
    users: int
    mean: float
    median: float
    p90: float
    p99: float
    maximum: float
    worst_case: float | None
    keeps_prior: bool
    provenance: str = "public"  # of the prior; see `prior.PROVENANCES`
    above_limit: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A tidy table: one row per group × epsilon × sampler × divergence. Tables add up with ``+``.

    `rows` are in the order of the arguments. `all_groups` holds the same numbers over the users of all groups
    together, if there are several. What is printed is sorted by the mean, with the best marked.
    """

    rows: tuple[ComparisonRow, ...]
    all_groups: tuple[ComparisonRow, ...] = ()

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.rows + other.rows, self.all_groups + other.all_groups)

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def plot(self, axes: Axes | None = None, *, statistic: str = "mean", divergence: str = "tv") -> Axes:
        """Draw one statistic of every sampler against epsilon, averaged over groups."""
        from ..pictures.plots import plot_comparison

        return plot_comparison(self, axes, statistic=statistic, divergence=divergence)

    def best(self, statistic: str = "mean", *, keeps_prior: bool = True) -> Comparison:
        """The best sampler of every group, ε and divergence; by default among those that keep the prior.

        A group in which no sampler keeps the prior is missing from the answer.
        """
        _validate.one_of(STATISTICS, statistic=statistic)
        return Comparison(
            tuple(_best(self.rows, statistic, keeps_prior).values()),
            tuple(_best(self.all_groups, statistic, keeps_prior).values()),
        )

    def sorted(self, statistic: str = "mean") -> Comparison:
        """The same rows: within each group, ε and divergence the smallest first, the limit before all."""
        _validate.one_of(STATISTICS, statistic=statistic)
        return Comparison(_sorted(self.rows, statistic), _sorted(self.all_groups, statistic))

    def marks(self, statistic: str = "mean") -> dict[ComparisonRow, str]:
        """`best` for the best row that keeps the prior, `best without q` where another one is better.

        Where only one sampler was compared, nothing is marked.
        """
        _validate.one_of(STATISTICS, statistic=statistic)
        marks: dict[ComparisonRow, str] = {}
        for rows in (self.rows, self.all_groups):
            entered = Counter(_key(row) for row in rows if row.sampler != BEST_POSSIBLE)
            rivals = [row for row in rows if entered[_key(row)] > 1]
            keeping = _best(rivals, statistic, True)
            for key, row in _best(rivals, statistic, False).items():
                if key not in keeping or _value(row, statistic) < _value(keeping[key], statistic):
                    marks[row] = "best without q"
            marks |= dict.fromkeys(keeping.values(), "best")
        return marks

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict per row."""
        return [asdict(row) for row in self.rows]

    def to_polars(self) -> Any:
        """The table as a polars DataFrame (needs polars)."""
        import polars

        return polars.DataFrame(self.to_dicts(), infer_schema_length=None)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame (needs pandas)."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def __str__(self) -> str:
        names, lines = self._shown()
        table = [names, *lines]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        return "\n".join([*text, *([FROM_USERS] if self.provenance == "users" else [])])

    def _repr_html_(self) -> str:
        """What a notebook shows: the same table, with a bar under the mean and the maximum."""
        names, lines = self._shown()
        ordered = self.sorted()
        style = "text-align:right;padding:.15em .6em;white-space:nowrap"
        head = "".join(f'<th style="{style}">{html.escape(name)}</th>' for name in names)
        body = []
        for row, line in zip(ordered.rows + ordered.all_groups, lines, strict=True):
            bold = ";font-weight:bold" if line[-1] else ""
            cells = [
                f'<td style="{style}{bold}{bar(getattr(row, name)) if name in ("mean", "maximum") else ""}">'
                f"{html.escape(cell)}</td>"
                for name, cell in zip(names, line, strict=True)
            ]
            body.append(f"<tr>{''.join(cells)}</tr>")
        warning = f"<p><strong>{html.escape(FROM_USERS)}</strong></p>" if self.provenance == "users" else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{warning}"

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """The columns that are printed, and the cells, sorted and marked."""
        ordered, marks = self.sorted(), self.marks()
        rows = ordered.rows + ordered.all_groups
        limited = any(row.above_limit is not None for row in rows)
        names = ["group", "epsilon", "sampler", "divergence", "users", *STATISTICS, "keeps_prior"]
        names += ["above_limit"] * limited
        lines = [[*(_cell(getattr(row, name)) for name in names), marks.get(row, "")] for row in rows]
        return [*names, "best"], lines

    @property
    def provenance(self) -> str:
        """Where the prior comes from; with several priors the least public of them."""
        return _least_public(self.rows)


def compare(
    users: UsersLike | Users | Mapping[str, UsersLike | Users],
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: FDivergence | Sequence[FDivergence] = TV,
    *,
    group: str = EVERYBODY,
    limit: bool = False,
    tail: float = TAIL,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """How far each sampler's release is from each user, summarised over the users.

    `users` come from `read_users`, or are a vector, an (m, n) array or scipy.sparse in the samplers' order.
    Users in groups (a dict) need the samplers of each group (a dict too); if every group has the same
    samplers, `all_groups` holds the numbers over all users, each counted once per group. Memory is bounded by
    the non-zeros of the users plus one block, and one number per user.

    With `limit` every group and ε gets a row "best possible", the `limit` that no ε-private sampler that
    keeps the prior can beat in mean + tail·maximum, and every row says how far it is above. `progress` is
    called after every sampler and after every such row.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["A", "B"], [0.3, 0.7])
    >>> table = sv.compare([[0.3, 0.7], [0.5, 0.5]], sv.kernel_clip(prior, 1.0), [sv.TV, sv.KL])
    >>> [(row.divergence, row.users, row.keeps_prior) for row in table]
    [('tv', 2, True), ('kl', 2, True)]
    """
    people, chosen = _in_groups(users, samplers, group)
    measures = [divergences] if isinstance(divergences, FDivergence) else list(map(checked, divergences))
    _check(chosen, measures, limit)
    weight = _validate.at_least(0, tail=tail)
    known = {name: _CheckedUsers(given) for name, given in people.items()}
    rows: dict[str, list[ComparisonRow]] = {name: [] for name in known}
    together: list[ComparisonRow] = []
    report = progress or (lambda: None)
    alike = len(known) > 1 and len({_kinds(listed) for listed in chosen.values()}) == 1
    for k in range(max(map(len, chosen.values()))):
        measured: list[list[_Measured]] = []
        for name, listed in chosen.items():
            if k < len(listed):
                measured.append(_measure(name, known[name], listed[k], measures))
                rows[name] += [row for row, _ in measured[-1]]
                report()
        if alike:
            together += [_pooled(same) for same in zip(*measured, strict=True)]
    if limit:
        for name, listed in chosen.items():
            for epsilon in dict.fromkeys(sampler.epsilon for sampler in listed):
                for measure in measures:
                    _add_limit(rows[name], listed[0].prior, epsilon, people[name], measure, weight)
                report()
    table = Comparison(tuple(row for block in rows.values() for row in block), tuple(together))
    return _marked(table) if _one_prior_from_all(people, chosen) else table


def _in_groups(
    users: UsersLike | Users | Mapping[str, UsersLike | Users],
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    group: str,
) -> tuple[dict[str, UsersLike | Users], dict[str, list[Sampler]]]:
    """Users and samplers by group; without groups there is one."""
    if not isinstance(users, Mapping) and not isinstance(samplers, Mapping):
        return {group: users}, {group: _listed(samplers)}
    if not isinstance(users, Mapping) or not isinstance(samplers, Mapping):
        raise ParameterError("users in groups need samplers in groups, one dict each")
    missing = len(set(users) - set(samplers))
    if missing or not users:
        raise ParameterError(f"{missing} of {len(users)} groups of users have no samplers")
    return dict(users), {name: _listed(samplers[name]) for name in users}


def _listed(samplers: Sampler | Iterable[Sampler]) -> list[Sampler]:
    return [samplers] if isinstance(samplers, Sampler) else list(samplers)


def _check(chosen: Mapping[str, Sequence[Sampler]], measures: Sequence[FDivergence], limit: bool) -> None:
    if not all(isinstance(sampler, Sampler) for listed in chosen.values() for sampler in listed):
        raise ParameterError("samplers must be samplers, such as sottovoce.kernel_clip(prior, epsilon)")
    if not all(chosen.values()) or not measures:
        raise ParameterError("samplers and divergences must not be empty")
    if limit and any(len({sampler.prior.digest for sampler in listed}) > 1 for listed in chosen.values()):
        raise ParameterError("limit=True needs samplers that share one prior, group by group")


class _CheckedUsers:
    """The users of a group, validated and compared with each prior once for all samplers."""

    def __init__(self, users: UsersLike | Users) -> None:
        self._users = users
        self._checked: dict[int, Any] = {}
        self._priors: dict[int, tuple[Prior, bool]] = {}  # with the prior, so that its id is not used again

    def gave(self, prior: Prior) -> bool:
        """Whether the prior came from the users; refused if they were read against other categories."""
        if id(prior) not in self._priors:
            rows_for(self._users, prior)
            gave = isinstance(self._users, Users) and gave_prior(prior, [self._users])
            self._priors[id(prior)] = prior, gave
        return self._priors[id(prior)][1]

    def divergence(self, sampler: Sampler, measure: FDivergence) -> FloatArray:
        """One number per user."""
        given = self._users.p if isinstance(self._users, Users) else self._users
        if type(sampler) not in (ClipSampler, KernelSampler):  # a caller's own sampler checks for itself
            return np.atleast_1d(sampler.divergence(given, measure))
        n = len(sampler.prior)
        if n not in self._checked:
            self._checked[n] = _validate.users(given, n)
        own: Any = sampler
        values: FloatArray = own.divergence_of(self._checked[n], measure)
        return values


def _kinds(samplers: Sequence[Sampler]) -> tuple[tuple[str, float], ...]:
    """What has to be alike for samplers of two groups to be one line of all groups."""
    return tuple((shown(sampler), sampler.epsilon) for sampler in samplers)


def _measure(
    group: str, users: _CheckedUsers, sampler: Sampler, measures: Sequence[FDivergence]
) -> list[_Measured]:
    """For each divergence the row of this sampler, and its one number per user."""
    gave, measured = users.gave(sampler.prior), []
    for measure in measures:
        values = users.divergence(sampler, measure)
        measured.append((make_row(group, sampler, measure, len(values), summarise(values), gave), values))
    return measured


def _pooled(same: Sequence[_Measured]) -> ComparisonRow:
    """One row over the users of all groups, from the rows and values of each."""
    rows, values = [row for row, _ in same], np.concatenate([values for _, values in same])
    summary: dict[str, Any] = dict(summarise(values))
    return replace(
        rows[0],
        **summary,
        group=ALL_GROUPS,
        users=len(values),
        worst_case=max(row.worst_case for row in rows if row.worst_case is not None),
        keeps_prior=all(row.keeps_prior for row in rows),
        provenance=_least_public(rows),
    )


def _add_limit(
    rows: list[ComparisonRow],
    prior: Prior,
    epsilon: float,
    users: UsersLike | Users,
    measure: FDivergence,
    tail: float,
) -> None:
    """Set in each row how far above the limit it is, and add the row of the limit itself."""
    bound = best_possible(prior, epsilon, users, divergence=measure, tail=tail)

    def above(row: ComparisonRow) -> float:
        return weighed(row.mean, row.maximum, tail) - bound.lower_bound

    mine = [k for k, row in enumerate(rows) if (row.epsilon, row.divergence) == (epsilon, measure.name)]
    best = replace(
        rows[mine[0]],
        sampler=BEST_POSSIBLE,
        mean=bound.mean,
        median=bound.median,
        p90=bound.p90,
        p99=bound.p99,
        maximum=bound.maximum,
        worst_case=None,
        keeps_prior=True,
    )
    for k in mine:
        rows[k] = replace(rows[k], above_limit=above(rows[k]))
    rows.append(replace(best, above_limit=above(best)))


def _one_prior_from_all(
    users: Mapping[str, UsersLike | Users], samplers: Mapping[str, Sequence[Sampler]]
) -> bool:
    """Whether one prior serves all groups and came from all of them together."""
    priors = {sampler.prior.digest: sampler.prior for listed in samplers.values() for sampler in listed}
    read = [given for given in users.values() if isinstance(given, Users)]
    if len(users) < 2 or len(priors) > 1 or len(read) < len(users):
        return False
    (prior,) = priors.values()
    return gave_prior(prior, read)


def _least_public(rows: Sequence[ComparisonRow]) -> str:
    """The provenance of several rows: users before learned before public."""
    return max((row.provenance for row in rows), key=PROVENANCES.index, default="public")


def _marked(table: Comparison) -> Comparison:
    """The table with every row marked: its prior came from the users."""
    return Comparison(
        tuple(replace(row, provenance="users") for row in table.rows),
        tuple(replace(row, provenance="users") for row in table.all_groups),
    )


def gave_prior(prior: Prior, users: Sequence[Users]) -> bool:
    """Whether these users together are where the prior came from, as far as numbers show it."""
    if len(users[0].categories) != len(prior) or not sum(map(len, users)):
        return False
    verdict = doubt(prior.probabilities, add_up([moments(given) for given in users]))
    return verdict is not None and verdict.certain


def shown(sampler: Sampler) -> str:
    """The sampler as rows name it: with its options, unless they were chosen for this prior and ε."""
    if sampler.name != FITTED:
        return label(sampler)
    promise = sampler.options.get("promise")
    return sampler.name if promise is None else f"{sampler.name}(promise={promise:.4g})"


def make_row(
    group: str,
    sampler: Sampler,
    measure: FDivergence,
    users: int,
    summary: Mapping[str, float],
    gave_prior: bool,
) -> ComparisonRow:
    """The row for one sampler from the summary of one number per user."""
    return ComparisonRow(
        group=group,
        epsilon=sampler.epsilon,
        sampler=shown(sampler),
        divergence=measure.name,
        users=users,
        **summary,
        worst_case=sampler.worst_case(measure),
        keeps_prior=sampler.keeps_prior,
        provenance="users" if gave_prior else sampler.prior.provenance,
    )


def _key(row: ComparisonRow) -> _Block:
    return row.group, row.epsilon, row.divergence


def _value(row: ComparisonRow, statistic: str) -> float:
    value = getattr(row, statistic)
    return math.inf if value is None else float(value)


def _best(rows: Iterable[ComparisonRow], statistic: str, keeps_prior: bool) -> dict[_Block, ComparisonRow]:
    best: dict[_Block, ComparisonRow] = {}
    for row in rows:
        if row.sampler == BEST_POSSIBLE or (keeps_prior and not row.keeps_prior):
            continue
        rival = best.get(_key(row))
        if rival is None or _value(row, statistic) < _value(rival, statistic):
            best[_key(row)] = row
    return best


def _sorted(rows: Iterable[ComparisonRow], statistic: str) -> tuple[ComparisonRow, ...]:
    """Groups, epsilons and divergences stay in the order in which they first appear."""
    blocks: dict[_Block, list[ComparisonRow]] = {}
    for row in rows:
        blocks.setdefault(_key(row), []).append(row)
    ordered = (
        sorted(block, key=lambda row: (row.sampler != BEST_POSSIBLE, _value(row, statistic)))
        for block in blocks.values()
    )
    return tuple(row for block in ordered for row in block)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:.4g}"
    return str(value)
