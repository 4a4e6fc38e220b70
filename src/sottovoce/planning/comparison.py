"""Many samplers × many users × many divergences, as one tidy table.

A comparison looks at the users' true data. Its numbers are for choosing a sampler on data you may
look at; they are not themselves private and must not be published about private users.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from .. import _validate
from .._validate import FloatArray
from ..divergences import TV, FDivergence, checked
from ..errors import ParameterError
from ..prior import FROM_USERS, Prior
from ..samplers.base import ClipSampler, KernelSampler, Sampler, label
from ..users import Users, UsersLike, rows_for
from .prior_check import add_up, doubt, moments


@dataclass(frozen=True)
class ComparisonRow:
    """How one sampler serves one group of users in one divergence."""

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
    worst_case: float
    keeps_prior: bool
    prior_from_users: bool = False  # then the prior is not public: see `prior.FROM_USERS`


@dataclass(frozen=True)
class Comparison:
    """A tidy table: one row per group × epsilon × sampler × divergence. Tables add up with ``+``."""

    rows: tuple[ComparisonRow, ...]

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.rows + other.rows)

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict per row."""
        return [asdict(row) for row in self.rows]

    def to_polars(self) -> Any:
        """The table as a polars DataFrame (needs polars)."""
        import polars

        return polars.DataFrame(self.to_dicts())

    def __str__(self) -> str:
        names = [field.name for field in fields(ComparisonRow) if field.name != "prior_from_users"]
        table = [names, *([_cell(getattr(row, name)) for name in names] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        return "\n".join([*lines, *([FROM_USERS] if self.prior_from_users else [])])

    @property
    def prior_from_users(self) -> bool:
        """Whether any row was measured against a prior made from the users it serves."""
        return any(row.prior_from_users for row in self.rows)


def compare(
    users: UsersLike | Users | Mapping[str, UsersLike | Users],
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: FDivergence | Sequence[FDivergence] = TV,
    *,
    group: str = "all",
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """How far each sampler's release is from each user, summarised over the users.

    `users` come from `read_users`, or are a vector, an (m, n) array or scipy.sparse in the samplers' order.
    Users in groups (a dict) need the samplers of each group (a dict too). Memory is bounded by the non-zeros
    of the users plus one block. `progress` is called after every sampler.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["A", "B"], [0.3, 0.7])
    >>> table = sv.compare([[0.3, 0.7], [0.5, 0.5]], sv.kernel_clip(prior, 1.0), [sv.TV, sv.KL])
    >>> [(row.divergence, row.users, row.keeps_prior) for row in table]
    [('tv', 2, True), ('kl', 2, True)]
    """
    if isinstance(users, Mapping) or isinstance(samplers, Mapping):
        return _compare_groups(users, samplers, divergences, progress)
    chosen = _listed(samplers)
    measures = [divergences] if isinstance(divergences, FDivergence) else list(map(checked, divergences))
    if not all(isinstance(one, Sampler) for one in chosen):
        raise ParameterError("samplers must be samplers, such as sottovoce.kernel_clip(prior, epsilon)")
    if not chosen or not measures:
        raise ParameterError("samplers and divergences must not be empty")
    rows = []
    once = _Once(users)
    for sampler in chosen:
        gave = once.gave(sampler.prior)
        for measure in measures:
            values = once.divergence(sampler, measure)
            rows.append(make_row(group, sampler, measure, len(values), summarise(values), gave))
        if progress is not None:
            progress()
    return Comparison(tuple(rows))


class _Once:
    """What a comparison does once for all samplers: checking the users, and holding them against a prior."""

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
        if type(sampler) not in (ClipSampler, KernelSampler):  # somebody else's sampler checks for itself
            return np.atleast_1d(sampler.divergence(given, measure))
        n = len(sampler.prior)
        if n not in self._checked:
            self._checked[n] = _validate.users(given, n)
        own: Any = sampler
        values: FloatArray = own.divergence_of(self._checked[n], measure)
        return values


def _compare_groups(
    users: UsersLike | Users | Mapping[str, UsersLike | Users],
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: FDivergence | Sequence[FDivergence],
    progress: Callable[[], object] | None,
) -> Comparison:
    if not isinstance(users, Mapping) or not isinstance(samplers, Mapping):
        raise ParameterError("users in groups need samplers in groups, one dict each")
    missing = len(set(users) - set(samplers))
    if missing or not users:
        raise ParameterError(f"{missing} of {len(users)} groups of users have no samplers")
    parts = [
        compare(one, samplers[name], divergences, group=name, progress=progress)
        for name, one in users.items()
    ]
    rows = tuple(row for part in parts for row in part)
    priors = {one.prior.digest: one.prior for name in users for one in _listed(samplers[name])}
    read = [one for one in users.values() if isinstance(one, Users)]
    if len(priors) == 1 and len(read) == len(users):
        (prior,) = priors.values()  # one prior for all groups: it may be the average of all of them together
        if gave_prior(prior, read):
            rows = tuple(replace(row, prior_from_users=True) for row in rows)
    return Comparison(rows)


def _listed(samplers: Sampler | Iterable[Sampler]) -> list[Sampler]:
    return [samplers] if isinstance(samplers, Sampler) else list(samplers)


def gave_prior(prior: Prior, users: Sequence[Users]) -> bool:
    """Whether these users together are where the prior came from, as far as it can be told."""
    if len(users[0].categories) != len(prior) or not sum(map(len, users)):
        return False
    found = doubt(prior.probabilities, add_up([moments(one) for one in users]))
    return found is not None and found.certain


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
        sampler=label(sampler),
        divergence=measure.name,
        users=users,
        **summary,
        worst_case=sampler.worst_case(measure),
        keeps_prior=sampler.keeps_prior,
        prior_from_users=gave_prior or sampler.prior.made_from_users,
    )


def summarise(values: FloatArray) -> dict[str, float]:
    """Mean, median, 90th and 99th percentile and maximum of one number per user.

    Percentiles interpolate linearly, except that with infinite values among the users they are order
    statistics (the next larger value): between a number and infinity there is nothing to interpolate.
    """
    method: Literal["linear", "higher"] = "linear" if np.all(np.isfinite(values)) else "higher"
    median, p90, p99 = np.quantile(values, np.array([0.5, 0.9, 0.99]), method=method)
    return {
        "mean": float(values.mean()),
        "median": float(median),
        "p90": float(p90),
        "p99": float(p99),
        "maximum": float(values.max()),
    }


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:.4g}"
    return str(value)
