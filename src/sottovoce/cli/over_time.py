"""Several releases of a user: numbers of samples, and a stream beside epsilon split, for `compare`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..divergences import FDivergence
from ..planning.compare import SamplesRow, StepRow, compare_over_time, compare_samples
from ..prior import Prior
from ..samplers.base import Sampler
from ..samplers.stream import MOST_STEPS, stream
from ..tables.files import at_hand, prefix_errors
from ..tables.priors import PublicData
from ..tables.query import opened, tally_of
from ..tables.users import ReadingOptions, private_columns, users_of_tally
from ..users import Users
from .options import Columns, Output, Reading
from .terminal import NOT_PRIVATE, number, print_json, print_note, print_table, reading_of, shown_text, step


def compare_weeks(
    path: Path,
    columns: Columns,
    reading: Reading,
    options: ReadingOptions,
    asked: tuple[Prior, float, Callable[..., Sampler], FDivergence],
    output: Output,
) -> None:
    """Compare a stream with epsilon split over the releases that the column `by` distinguishes."""
    prior, epsilon, split, divergence = asked
    with reading_of(path), at_hand(path) as table, prefix_errors(table):
        steps, how = _steps(table, columns, prior, reading, options)
    print_note(f"{path.name}: {how}.")
    made = stream(prior, epsilon, horizon=len(steps) if len(steps) <= MOST_STEPS else None)
    with step("simulating", f"{len(steps)} releases"):
        rows = compare_over_time(list(steps.values()), prior, made, split=split, divergence=divergence)
    _show_over_time(rows, list(steps), epsilon, output)


def _steps(
    path: Path, columns: Columns, prior: Prior, reading: Reading, options: ReadingOptions
) -> tuple[dict[str, Any], str]:
    """The users' distributions at every value of a column: a row per user, empty where a user is absent."""
    with opened(path, reading.dialect) as source:
        read, how = private_columns(list(source.types), **columns.private, by=columns.by, wide=reading.wide)
        counted = tally_of(source, read)
    names = sorted(counted.filled, key=_naturally)
    lenient = ReadingOptions(options.unknown, options.other, empty="skip", several_groups="allow")
    groups = users_of_tally(counted, dict.fromkeys(names, prior), lenient)
    people = {user: i for i, user in enumerate(dict.fromkeys(u for name in names for u in groups[name].ids))}
    steps = {}
    for name in names:
        present = groups[name].p.tocoo()
        who = np.array([people[user] for user in groups[name].ids], dtype=np.intp)
        steps[name] = sparse.csr_array(
            (present.data, (who[present.row], present.col)), shape=(len(people), len(prior))
        )
    return steps, how


def _naturally(name: str) -> list[tuple[int, int, str]]:
    """W2 before W10: runs of digits are compared as numbers."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _show_over_time(rows: Sequence[StepRow], names: list[str], epsilon: float, output: Output) -> None:
    """Print, write or draw a stream beside epsilon split."""
    if output.picture is not None:
        from ..pictures import plots

        plots.over_time_picture(rows, epsilon, output.picture)
        print_note(f"drawn into {output.picture}")
    if _wrote([{"name": names[row.step - 1], **asdict(row)} for row in rows], output):
        return
    cells = [
        [shown_text(names[ours.step - 1]), f"{ours.users:,}", number(ours.mean), number(ours.p99),
         f"{ours.left:.0%}", number(split.mean), number(split.p99)]
        for ours, split in zip(rows[::2], rows[1::2], strict=True)
    ]  # fmt: skip
    head = ["release", "users", "stream: mean", "p99", "left", "split: mean", "p99"]
    print_table(head, cells, left=("release",))
    stream_mean, split_mean = (float(np.mean([row.mean for row in rows[k::2]])) for k in (0, 1))
    print_note(
        f"One epsilon of {epsilon:g} for all {len(names)} releases: mean distance {stream_mean:.3f} as a "
        f"stream, {split_mean:.3f} at {epsilon / len(names):.3g} each. Left: at 0 only the public law can be "
        "released."
    )
    print_note(NOT_PRIVATE)


def _wrote(rows: list[dict[str, Any]], output: Output) -> bool:
    """Write the rows, and return whether they were the result: on standard output, or as JSON."""
    if output.write_rows(rows):
        return True
    if output.as_json:
        print_json({"rows": rows, "note": NOT_PRIVATE})
    return output.as_json


def compare_numbers(
    groups: Mapping[str, Users],
    public: PublicData,
    epsilons: list[float],
    numbers: list[int],
    make: Callable[..., Sampler],
    measure: FDivergence,
    output: Output,
) -> None:
    """Compare numbers of samples, together and separately, in every group and at every epsilon."""
    rows: list[tuple[str, SamplesRow]] = []
    parts = len(groups) * len(epsilons) * sum(1 + (k > 1) for k in numbers)
    shared: Any = {"sampler": make, "divergence": measure}
    with step("comparing", "numbers of samples", total=parts, unit="rows") as going:
        for group, epsilon in product(groups, epsilons):
            people, prior = groups[group].p, public.priors[group]
            compared = compare_samples(
                people, prior, epsilon, samples=numbers, **shared, progress=going.advance
            )
            rows += [(group, row) for row in compared]
    _show_samples(rows, output, grouped=public.by is not None)


def _show_samples(rows: list[tuple[str, SamplesRow]], output: Output, *, grouped: bool) -> None:
    """Write and print what several samples are worth."""
    if _wrote([{"group": group, **asdict(row)} for group, row in rows], output):
        return
    head = ["group", "ε", "samples", "released", "users", "mean", "p99", "maximum"]
    cells = [
        [
            shown_text(group),
            f"{row.epsilon:g}",
            str(row.samples),
            row.way if row.samples > 1 else "one alone",
            f"{row.users:,}",
            *map(number, (row.mean, row.p99, row.maximum)),
        ]
        for group, row in rows
    ]
    first = 0 if grouped else 1
    print_table(head[first:], [row[first:] for row in cells], left=("group", "released"))
    print_note(
        "The distance of one sample, averaged over a user's samples. Together: one release of all samples, "
        "simulated. Separately: every sample at epsilon/samples."
    )
    print_note(NOT_PRIVATE)
