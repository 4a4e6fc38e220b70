"""Many samplers × many users × many divergences, as one tidy table.

A comparison looks at the users' true data. Its numbers are for choosing a sampler on data you may look at;
they are not themselves private and must not be published about private users.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import checks
from ..checks import FloatArray
from ..divergences import TV, Distance, checked
from ..errors import ParameterError
from ..groups import EVERYBODY
from ..listing import Listed, Listing, number
from ..prior import FROM_USERS, PROVENANCES
from ..records import Users, UsersLike, distributions, rows_for
from ..samplers.base import Sampler, check_own, is_ours, known_worst_case, label
from ..samplers.blocks import dense
from .limit import Limit
from .limit import limit as best_possible
from .prior_check import made_from
from .statistics import STATISTICS, summarise, weighed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST_POSSIBLE = "best possible"
"""The sampler's name in a row of the limit: what no ε-private sampler that keeps the prior can beat."""
ALL_GROUPS = "all groups"
"""The group's name in a row about the users of all groups together."""

_Measured: TypeAlias = "tuple[ComparisonRow, FloatArray]"


@dataclass(frozen=True)
class ComparisonRow:
    """How one sampler serves one group of users in one divergence.

    `worst_case` is None where it is not known, as in the row of the limit. `above_limit` is how far
    mean + tail·maximum is above the proven lower bound of the limit, if requested; it can be negative where
    the prior is not kept.
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


@dataclass(frozen=True, repr=False)
class Comparison(Listed):
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
        checks.one_of(STATISTICS, statistic=statistic)

        def value(row: ComparisonRow) -> float:
            number = getattr(row, statistic)
            return math.inf if number is None else float(number)

        def first(block: list[ComparisonRow]) -> list[ComparisonRow]:
            allowed = [row for row in block if row.keeps_prior or not keeps_prior]
            rivals = [row for row in allowed if row.sampler != BEST_POSSIBLE]
            return [min(rivals, key=value)] if rivals else []

        return self._by_block(first)

    def sorted(self) -> Comparison:
        """The same rows: in each group, ε and divergence the smallest mean first, the limit before all."""

        def order(row: ComparisonRow) -> tuple[bool, float]:
            return row.sampler != BEST_POSSIBLE, row.mean

        return self._by_block(lambda block: sorted(block, key=order))

    def _by_block(self, change: Callable[[list[ComparisonRow]], list[ComparisonRow]]) -> Comparison:
        """The rows of each block after a change; blocks stay in the order in which they first appear."""

        def changed(rows: tuple[ComparisonRow, ...]) -> tuple[ComparisonRow, ...]:
            blocks: dict[tuple[str, float, str], list[ComparisonRow]] = {}
            for row in rows:
                blocks.setdefault(_block(row), []).append(row)
            return tuple(row for block in blocks.values() for row in change(block))

        return Comparison(changed(self.rows), changed(self.all_groups))

    def listing(self) -> Listing:
        """The table that is printed: sorted by the mean, the best in bold."""
        ordered, best = self.sorted(), self.best()
        rows = ordered.rows + ordered.all_groups
        rivals = Counter(_block(row) for row in rows if row.sampler != BEST_POSSIBLE)
        marked = {row for row in best.rows + best.all_groups if rivals[_block(row)] > 1}
        names = ["group", "epsilon", "sampler", "divergence", "users", *STATISTICS, "keeps_prior"]
        names += ["above_limit"] * any(row.above_limit is not None for row in rows)

        def cells(row: ComparisonRow) -> list[str]:
            numbers = [_cell(getattr(row, name)) for name in names[2:]]
            return [row.group, f"{row.epsilon:g}", *numbers, "lowest mean" if row in marked else ""]

        return Listing(
            [*names, "mark"],
            list(map(cells, rows)),
            note=FROM_USERS if self.provenance == "users" else "",
            bold=[row in marked for row in rows],
        )

    @property
    def provenance(self) -> str:
        """Where the prior comes from; with several priors the least public of them."""
        return _least_public(self.rows)


def compare(
    users: UsersLike | Users | Mapping[str, UsersLike | Users],
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: Distance | Sequence[Distance] = TV,
    *,
    group: str = EVERYBODY,
    limit: bool = False,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """How far each sampler's release is from each user, summarised over the users.

    `users` come from `read_users`, or are a vector, an (m, n) array or scipy.sparse in the samplers' order.
    Users in groups (a dict) need the samplers of each group (a dict too); if every group has the same
    samplers, `all_groups` holds the numbers over all users, each counted once per group. Memory is bounded by
    the non-zeros of the users plus one block, and one number per user.

    With `limit` every group and ε gets a row "best possible", the `limit` that no ε-private sampler that
    keeps the prior can beat in mean + 0.3·maximum, and every row says how far it is above. `progress` is
    called after every sampler and after every such row.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["A", "B"], [0.3, 0.7])
    >>> table = sv.compare([[0.3, 0.7], [0.5, 0.5]], sv.kernel_clip(prior, 1.0), [sv.TV, sv.KL])
    >>> [(row.divergence, row.users, row.keeps_prior) for row in table]
    [('tv', 2, True), ('kl', 2, True)]
    """
    people, chosen = _in_groups(users, samplers, group)
    measures = [divergences] if isinstance(divergences, Distance) else list(map(checked, divergences))
    for name, listed in chosen.items():
        for sampler in listed:
            check_own(sampler, people[name], measures)
            rows_for(people[name], sampler.prior)  # refused if they were read against other categories
    if not all(chosen.values()) or not measures:
        raise ParameterError("samplers and divergences must not be empty")
    if len({f.name for f in measures}) < len(set(measures)):
        raise ParameterError("divergences must have different names: rows are told apart by them")
    if limit and any(len({sampler.prior.digest for sampler in listed}) > 1 for listed in chosen.values()):
        raise ParameterError("limit=True needs samplers that share one prior, group by group")
    priors = {sampler.prior.digest: sampler.prior for listed in chosen.values() for sampler in listed}
    read = [given for given in people.values() if isinstance(given, Users)]
    one = len(people) > 1 and len(priors) == 1 and len(read) == len(people)
    from_all = one and made_from(next(iter(priors.values())).probabilities, read)
    groups = {name: _Group(name, people[name], listed, from_all) for name, listed in chosen.items()}
    rows: dict[str, list[ComparisonRow]] = {name: [] for name in groups}
    together: list[ComparisonRow] = []
    report = progress or (lambda: None)
    kinds = {tuple((shown(each), each.epsilon) for each in listed) for listed in chosen.values()}
    alike = len(groups) > 1 and len(kinds) == 1
    for k in range(max(map(len, chosen.values()))):
        measured: list[list[_Measured]] = []
        for name, listed in chosen.items():
            if k < len(listed):
                measured.append([groups[name].measure(listed[k], f) for f in measures])
                rows[name] += [row for row, _ in measured[-1]]
                report()
        if alike:
            together += [_pooled(same) for same in zip(*measured, strict=True)]
    for name, listed in chosen.items() if limit else ():
        for epsilon in dict.fromkeys(sampler.epsilon for sampler in listed):
            for f in measures:
                bound = best_possible(listed[0].prior, epsilon, people[name], divergence=f)
                _add_limit(rows[name], bound)
            report()
    return Comparison(tuple(row for block in rows.values() for row in block), tuple(together))


def _in_groups(
    users: UsersLike | Users | Mapping[str, UsersLike | Users],
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    group: str,
) -> tuple[dict[str, UsersLike | Users], dict[str, list[Sampler]]]:
    """Users and samplers by group; without groups there is one."""
    if not isinstance(users, Mapping) and not isinstance(samplers, Mapping):
        users, samplers = {group: users}, {group: samplers}
    if not isinstance(users, Mapping) or not isinstance(samplers, Mapping):
        raise ParameterError("users in groups need samplers in groups, one dict each")
    missing = len(set(users) - set(samplers))
    if missing or not users:
        raise ParameterError(f"{missing} of {len(users)} groups of users have no samplers")
    given = {name: samplers[name] for name in users}
    return dict(users), {
        name: list(one) if isinstance(one, Iterable) else [one] for name, one in given.items()
    }


class _Group:
    """The users of a group, validated and compared with each prior once for all samplers."""

    def __init__(
        self, name: str, users: UsersLike | Users, samplers: Sequence[Sampler], from_all: bool
    ) -> None:
        self._name, given = name, users.p if isinstance(users, Users) else users
        priors = {sampler.prior.digest: sampler.prior for sampler in samplers}
        self._rows = {n: distributions(given, n) for n in map(len, priors.values())}
        self._gave = {
            digest: from_all or (isinstance(users, Users) and made_from(prior.probabilities, [users]))
            for digest, prior in priors.items()
        }

    def measure(self, sampler: Sampler, measure: Distance) -> _Measured:
        """The row of a sampler, with the digest of its prior if there are several; one number per user."""
        own: Any = sampler
        rows, digest = self._rows[len(sampler.prior)], sampler.prior.digest
        if is_ours(own):
            values: FloatArray = own.divergence_of(rows, measure)
        else:  # a caller's own gets arrays
            values = np.concatenate([sampler.divergence(p, measure) for _, p in dense(rows)])
        row = make_row(self._name, sampler, measure, values, self._gave[digest])
        if len(self._gave) > 1:
            row = replace(row, sampler=f"{row.sampler} [{digest[:8]}]")
        return row, values


def _pooled(same: Sequence[_Measured]) -> ComparisonRow:
    """One row over the users of all groups, from the rows and values of each."""
    rows, values = [row for row, _ in same], np.concatenate([values for _, values in same])
    changed: dict[str, Any] = {"group": ALL_GROUPS, "users": len(values), **summarise(values)}
    return replace(
        rows[0],
        **changed,
        worst_case=max((row.worst_case for row in rows if row.worst_case is not None), default=None),
        keeps_prior=all(row.keeps_prior for row in rows),
        provenance=_least_public(rows),
    )


def _add_limit(rows: list[ComparisonRow], bound: Limit) -> None:
    """Set in each row how far above the limit it is, and add the row of the limit itself."""
    about = (bound.epsilon, bound.divergence)
    mine = [k for k, row in enumerate(rows) if (row.epsilon, row.divergence) == about]
    numbers = {name: getattr(bound, name) for name in STATISTICS if name != "worst_case"}
    first = rows[mine[0]]
    rows.append(replace(first, **numbers, sampler=BEST_POSSIBLE, worst_case=None, keeps_prior=True))
    for k in (*mine, -1):
        above = weighed(rows[k].mean, rows[k].maximum, bound.tail) - bound.lower_bound
        rows[k] = replace(rows[k], above_limit=above)


def _least_public(rows: Sequence[ComparisonRow]) -> str:
    """The provenance of several rows: users before learned before public."""
    return max((row.provenance for row in rows), key=PROVENANCES.index, default="public")


def shown(sampler: Sampler) -> str:
    """The sampler as rows name it: with its options, unless they were chosen for this prior and ε."""
    if sampler.name != "fitted":
        return label(sampler)
    promise = sampler.options.get("promise")
    return sampler.name if promise is None else f"{sampler.name}(promise={promise:.4g})"


def make_row(
    group: str,
    sampler: Sampler,
    measure: Distance,
    values: FloatArray,
    gave_prior: bool = False,
) -> ComparisonRow:
    """The row for one sampler from one number per user; its worst case where that is known."""
    return ComparisonRow(
        group=group,
        epsilon=sampler.epsilon,
        sampler=shown(sampler),
        divergence=measure.name,
        users=len(values),
        **summarise(values),
        worst_case=known_worst_case(sampler, measure),
        keeps_prior=sampler.keeps_prior,
        provenance="users" if gave_prior else sampler.prior.provenance,
    )


def _block(row: ComparisonRow) -> tuple[str, float, str]:
    """What rows that are compared with each other share."""
    return row.group, row.epsilon, row.divergence


def _cell(value: bool | float | str | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else number(value)
