"""The same comparison and the same release on a Spark DataFrame, for tables that need a cluster.

Spark counts the rows and brings all counts of a user to one place; there Arrow batches go into the very
functions that run in one process (`tally`, the samplers, the mechanisms). Nothing is computed twice over.

    from sottovoce import spark
    table = spark.compare(frame, samplers, [sv.TV], user="device", item="site")
    spark.release(frame, mechanism, "reports.parquet", user="device", item="site")

Needs pyspark 4 and Java 17, and sottovoce installed wherever Spark runs Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from .collecting.model import model_prior
from .divergences import TV, FDivergence, checked
from .errors import ParameterError, PriorError
from .planning.comparison import Comparison, make_row, summarise
from .planning.prior_check import check_public, doubt, moments
from .prior import FROM_USERS
from .release.mechanism import Mechanism
from .samplers.base import Sampler
from .tables.options import ReadingKeywords, ReadingOptions
from .tables.spark_engine import (
    FOUND,
    SUMS,
    Found,
    Reading,
    check_left_out,
    columns_named,
    counted_cells,
    in_batches,
    summaries,
    to_arrow,
)
from .tables.spark_session import translate_errors, write_for_owner
from .users import Users


def compare(
    frame: Any,
    samplers: Sampler | Iterable[Sampler] | Mapping[str, Sampler | Iterable[Sampler]],
    divergences: FDivergence | Sequence[FDivergence] = TV,
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
        The same numbers as in one process, up to the order of adding up; percentiles are exact. What crosses
        the network is one number per user, sampler and divergence.
    """
    grouped = _by_group(samplers, by)
    measures = [divergences] if isinstance(divergences, FDivergence) else list(map(checked, divergences))
    if not measures:
        raise ParameterError("divergences must not be empty")
    priors = {name: chosen[0].prior for name, chosen in grouped.items()}
    options.setdefault("several_groups", "allow")  # a comparison publishes no user's groups
    reading = Reading(columns_named(item, user, weight, by), priors, ReadingOptions(**options), as_text)

    def measure(cells: Any) -> Any:
        groups, found = _read(reading, cells)
        for name, users in groups.items():
            pairs = [(sampler, f) for sampler in grouped[name] for f in measures]
            if len(users):
                found += [(name, k, s.divergence(users.p, f)) for k, (s, f) in enumerate(pairs)]
        return to_arrow(found)

    with counted_cells(frame, reading) as (cells, rows):
        found = translate_errors(lambda: summaries(in_batches(cells, measure, FOUND), summarise))
    check_left_out(found, reading, rows)
    parts = []
    for name in sorted({group for group, what in found if what == 0}):
        pairs = [(sampler, f) for sampler in grouped[name] for f in measures]
        sums = [np.array(found[name, what]["values"]) for what in SUMS]
        seen = doubt(priors[name].probabilities, sums)
        gave = seen is not None and seen.certain
        for k, (sampler, f) in enumerate(pairs):
            row = found[name, k]
            summary = {key: row[key] for key in ("mean", "median", "p90", "p99", "maximum")}
            parts.append(make_row(name, sampler, f, row["users"], summary, gave))
    return Comparison(tuple(parts))


def release(
    frame: Any,
    mechanism: Mechanism | Mapping[str, Mechanism],
    output: str,
    *,
    user: str,
    item: str | Sequence[str],
    weight: str | None = None,
    by: str | None = None,
    prior_is_public: bool = False,
    accept_prior_from_users: bool = False,
    as_text: bool = False,
    **options: Unpack[ReadingKeywords],
) -> int:
    """Release one category per user into a new Parquet folder, drawn by the workers; returns how many.

    `options` are those of `read_users`, and `as_text` is as for `compare`. With `by`, the group of every user
    is published in clear, and a user in several groups is refused unless several_groups="allow". A prior that
    cannot be told from these users' average is refused unless `prior_is_public` says that it is public all
    the same; a mechanism that says so itself is refused unless `accept_prior_from_users`.

    Guarantees
        The certified mechanism and the operating system's randomness, as in one process; all data are checked
        before anything is drawn. The releases are written at once, and no DataFrame of them is returned: it
        would be computed again, and draw again, each time somebody looked at it. When Spark repeats a task,
        one attempt is committed. There is no ledger here: charge the users before you call.
    """
    if isinstance(mechanism, Mapping) != (by is not None):
        raise ParameterError("a mechanism per group needs the group column by=, and only then")
    known = dict(mechanism) if isinstance(mechanism, Mapping) else {"all": mechanism}
    if any(one.prior_from_users for one in known.values()) and not accept_prior_from_users:
        raise PriorError(f"{FROM_USERS} For an experiment say accept_prior_from_users=True")
    answer = item if isinstance(item, str) else "item"
    names = [user, *([by] if by is not None else []), answer, "epsilon", "mechanism"]
    if len(set(names)) < len(names):
        raise ParameterError("user, item and by must differ, and not be named epsilon or mechanism")
    reading = Reading(columns_named(item, user, weight, by), known, ReadingOptions(**options), as_text)

    def inspect(cells: Any) -> Any:
        return to_arrow(_read(reading, cells)[1])

    def draw(cells: Any) -> Any:
        parts = [pa.schema([(name, pa.string()) for name in names]).empty_table()]
        for name, users in reading.users(cells)[0].items():
            if len(users):
                drawn = [str(category) for category in known[name].release_many(users.p)]
                about = (str(known[name].epsilon), known[name].digest)
                fixed = [[name] * len(drawn)] if by is not None else []
                values = [list(map(str, users.ids)), *fixed, drawn, *([one] * len(drawn) for one in about)]
                parts.append(pa.table(dict(zip(names, values, strict=True))))
        return pa.concat_tables(parts)

    with counted_cells(frame, reading) as (cells, rows):
        found = translate_errors(lambda: summaries(in_batches(cells, inspect, FOUND), summarise))
        people = check_left_out(found, reading, rows)
        _check_public(found, known, prior_is_public)
        written = in_batches(cells, draw, ", ".join(f"`{name}` string" for name in names))
        write_for_owner(written, output)
    return people


def _read(reading: Reading, cells: Any) -> tuple[dict[str, Users], Found]:
    """The users of a batch, and what the driver has to know of them: counters, and moments for the prior."""
    groups, found = reading.users(cells)
    for name, users in groups.items():
        found += [(name, what, values) for what, values in zip(SUMS, moments(users), strict=True)]
    return groups, found


def _by_group(samplers: Any, by: str | None) -> dict[str, list[Sampler]]:
    if isinstance(samplers, Mapping) != (by is not None):
        raise ParameterError("samplers per group need the group column by=, and only then")
    grouped = samplers if isinstance(samplers, Mapping) else {"all": samplers}
    listed = {name: [one] if isinstance(one, Sampler) else list(one) for name, one in grouped.items()}
    if not listed or not all(listed.values()):
        raise ParameterError("samplers must not be empty")
    if any(len({one.prior.digest for one in chosen}) > 1 for chosen in listed.values()):
        raise ParameterError("the samplers of a group must share its prior")
    return listed


def _check_public(
    found: Mapping[tuple[str, int], Mapping[str, Any]], known: Mapping[str, Mechanism], accepted: bool
) -> None:
    """Refuse a prior that seems to be made from these users, as the command does."""
    everyone = sorted({name for name, what in found if what == SUMS[0]})
    groups = [name for name in everyone if not known[name].prior_from_users]
    if len(groups) < len(everyone):
        warnings.warn(FROM_USERS, stacklevel=3)
    together = {
        name: tuple(np.array(found[name, what]["values"]) for what in SUMS)
        for name in groups
        if found[name, SUMS[0]]["values"][0]
    }
    if not accepted:
        priors = {name: model_prior(known[name]) for name in groups}
        doubtful = check_public(priors, together, "prior_is_public=True")
        if doubtful:
            warnings.warn(doubtful, stacklevel=3)
