"""Many samplers × many users × many divergences, as one tidy table.

A comparison looks at the users' true data. Its numbers are for choosing a sampler on data you may
look at; they are not themselves private and must not be published about private users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _validate
from .._validate import FloatArray
from ..divergences import TV, FDivergence, checked
from ..errors import ParameterError
from ..prior import Prior
from ..samplers.base import ClipSampler, KernelSampler, Sampler, label
from ..users import Users, UsersLike, rows_for
from .comparison import BEST_POSSIBLE, Comparison, ComparisonRow
from .limit import TAIL
from .limit import limit as best_possible
from .prior_check import add_up, doubt, moments
from .summary import summarise

FITTED = "fitted"
"""The sampler whose options differ with the prior and ε: rows show its name alone."""
ALL_GROUPS = "all groups"
"""The group's name in a row about the users of all groups together."""


def compare(
    users: UsersLike | Users | Mapping[str, UsersLike | Users],
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: FDivergence | Sequence[FDivergence] = TV,
    *,
    group: str = "all",
    limit: bool = False,
    tail: float = TAIL,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """How far each sampler's release is from each user, summarised over the users.

    `users` come from `read_users`, or are a vector, an (m, n) array or scipy.sparse in the samplers' order.
    Users in groups (a dict) need the samplers of each group (a dict too); if every group has the same
    samplers, `all_groups` holds the numbers over everybody, who counts once in each of their groups. Memory
    is bounded by the non-zeros of the users plus one block, and one number per user.

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
    if not all(isinstance(one, Sampler) for listed in chosen.values() for one in listed):
        raise ParameterError("samplers must be samplers, such as sottovoce.kernel_clip(prior, epsilon)")
    if not all(chosen.values()) or not measures:
        raise ParameterError("samplers and divergences must not be empty")
    weight = _validate.at_least(0, tail=tail)
    if limit and any(len({one.prior.digest for one in listed}) > 1 for listed in chosen.values()):
        raise ParameterError("limit=True needs samplers that share one prior, group by group")
    known = {name: _Once(one) for name, one in people.items()}
    rows: dict[str, list[ComparisonRow]] = {name: [] for name in known}
    together: list[ComparisonRow] = []
    alike = len(known) > 1 and len({_kinds(listed) for listed in chosen.values()}) == 1
    for k in range(max(map(len, chosen.values()))):
        held: list[list[FloatArray]] = [[] for _ in measures]
        for name, once in known.items():
            if k >= len(chosen[name]):
                continue
            sampler = chosen[name][k]
            gave = once.gave(sampler.prior)
            for measure, values in zip(measures, held, strict=True):
                found = once.divergence(sampler, measure)
                rows[name].append(make_row(name, sampler, measure, len(found), summarise(found), gave))
                if alike:
                    values.append(found)
            if progress is not None:
                progress()
        if alike:
            blocks = list(rows.values())
            together += [_pooled(blocks, *pair) for pair in zip(measures, held, strict=True)]
    if limit:
        for name, listed in chosen.items():
            for epsilon in dict.fromkeys(one.epsilon for one in listed):
                for measure in measures:
                    _add_limit(rows[name], listed[0].prior, epsilon, people[name], measure, weight)
                if progress is not None:
                    progress()
    everything = [row for block in rows.values() for row in block]
    if _one_prior_from_all(people, chosen):
        everything = [replace(row, prior_from_users=True) for row in everything]
        together = [replace(row, prior_from_users=True) for row in together]
    return Comparison(tuple(everything), tuple(together))


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


def _kinds(samplers: Sequence[Sampler]) -> tuple[tuple[str, float], ...]:
    """What has to be alike for samplers of two groups to be one line of all groups."""
    return tuple((shown(one), one.epsilon) for one in samplers)


def _pooled(
    blocks: Sequence[Sequence[ComparisonRow]], measure: FDivergence, values: Sequence[FloatArray]
) -> ComparisonRow:
    """One row over the users of all groups, from the last row of this divergence in each."""
    last = [next(row for row in reversed(block) if row.divergence == measure.name) for block in blocks]
    found = np.concatenate(values)
    summary: dict[str, Any] = dict(summarise(found))
    return replace(
        last[0],
        **summary,
        group=ALL_GROUPS,
        users=len(found),
        worst_case=max(row.worst_case for row in last if row.worst_case is not None),
        keeps_prior=all(row.keeps_prior for row in last),
        prior_from_users=any(row.prior_from_users for row in last),
    )


def _add_limit(
    rows: list[ComparisonRow],
    prior: Prior,
    epsilon: float,
    users: UsersLike | Users,
    measure: FDivergence,
    tail: float,
) -> None:
    """Say of each row how far above the limit it is, and add the row of the limit itself."""
    found = best_possible(prior, epsilon, users, divergence=measure, tail=tail)

    def above(row: ComparisonRow) -> float:
        return row.mean + (tail * row.maximum if tail else 0.0) - found.lower_bound

    mine = [k for k, row in enumerate(rows) if (row.epsilon, row.divergence) == (epsilon, measure.name)]
    best = replace(
        rows[mine[0]],
        sampler=BEST_POSSIBLE,
        mean=found.mean,
        median=found.median,
        p90=found.p90,
        p99=found.p99,
        maximum=found.maximum,
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
    priors = {one.prior.digest: one.prior for listed in samplers.values() for one in listed}
    read = [one for one in users.values() if isinstance(one, Users)]
    if len(users) < 2 or len(priors) > 1 or len(read) < len(users):
        return False
    (prior,) = priors.values()
    return gave_prior(prior, read)


def _listed(samplers: Sampler | Iterable[Sampler]) -> list[Sampler]:
    return [samplers] if isinstance(samplers, Sampler) else list(samplers)


def gave_prior(prior: Prior, users: Sequence[Users]) -> bool:
    """Whether these users together are where the prior came from, as far as it can be told."""
    if len(users[0].categories) != len(prior) or not sum(map(len, users)):
        return False
    found = doubt(prior.probabilities, add_up([moments(one) for one in users]))
    return found is not None and found.certain


def shown(sampler: Sampler) -> str:
    """The sampler as rows name it: with its options, unless they were chosen for this prior and ε."""
    return sampler.name if sampler.name == FITTED else label(sampler)


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
        prior_from_users=gave_prior or sampler.prior.made_from_users,
    )
