"""`compare` on Spark: divergences measured by the workers, summarised group by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Unpack

import numpy as np

from ..divergences import TV, Distance, checked
from ..errors import ParameterError
from ..groups import Groups
from ..planning.compare import Comparison, make_row
from ..planning.limit import summarise
from ..planning.prior_check import made_from, moments
from ..samplers.base import Sampler
from ..tables.query import Columns
from ..tables.users import ReadingKeywords, ReadingOptions
from .cells import (
    REPORTED,
    STATISTICS,
    SUMS,
    Reading,
    Sums,
    cells_by_person,
    check_reported,
    in_batches,
    report_table,
    summaries,
)
from .session import translate_errors


def compare(
    frame: Any,
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: Distance | Sequence[Distance] = TV,
    *,
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str | None = None,
    as_text: bool = False,
    **options: Unpack[ReadingKeywords],
) -> Comparison:
    """`sottovoce.compare` for the users of a Spark DataFrame; `options` are those of `read_users`.

    With `as_text` items and users that are numbers count as text, as they do in a file.

    Guarantees
        The same numbers as in one process, up to the order of adding up; percentiles are exact. The table is
        read and shuffled once; what crosses the network after that is one number per user, sampler and
        divergence.
    """
    grouped = _by_group(samplers, by)
    measures = [divergences] if isinstance(divergences, Distance) else list(map(checked, divergences))
    if not measures:
        raise ParameterError("divergences must not be empty")
    priors = {name: chosen[0].prior for name, chosen in grouped.items()}
    options.setdefault("several_groups", "allow")  # a comparison publishes no user's groups
    reading = Reading(Columns(item, user, weight, by), priors, ReadingOptions(**options))

    def measure(batches: Iterator[Any]) -> Iterator[Any]:
        sums = Sums()
        for cells in batches:
            for name, users in reading.users(cells, sums).items():
                for what, values in zip(SUMS, moments(users), strict=True):
                    sums.add(name, what, values)
                if len(users):
                    pairs = enumerate(product(grouped[name], measures))
                    yield report_table([(name, k, s.divergence(users.p, f)) for k, (s, f) in pairs])
        yield sums.to_arrow()

    reported = translate_errors(
        lambda: summaries(
            in_batches(cells_by_person(frame, reading.columns, as_text=as_text), measure, REPORTED), summarise
        )
    )
    check_reported(reported, reading)
    parts = []
    for name in sorted({group for group, what in reported if what == 0}):
        sums = [np.array(reported[name, what]["values"]) for what in SUMS]
        gave = made_from(priors[name].probabilities, sums)
        for k, (sampler, f) in enumerate(product(grouped[name], measures)):
            row = reported[name, k]
            summary = {key: row[key] for key in STATISTICS}
            parts.append(make_row(name, sampler, f, row["users"], summary, gave))
    return Comparison(tuple(parts))


def _by_group(samplers: Any, by: str | None) -> dict[str, list[Sampler]]:
    grouped: Groups[Any] = Groups.of(samplers, by)
    listed = {name: [one] if isinstance(one, Sampler) else list(one) for name, one in grouped.items()}
    if not listed or not all(listed.values()):
        raise ParameterError("samplers must not be empty")
    if any(len({one.prior.digest for one in chosen}) > 1 for chosen in listed.values()):
        raise ParameterError("the samplers of a group must share its prior")
    return listed
