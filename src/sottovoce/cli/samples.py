"""The command samples: what several samples of one budget are worth. It parses, calls and prints."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from .. import _validate
from ..errors import ParameterError
from ..planning.several import SamplesRow, compare_samples
from ..tables import files
from ..tables.users import read_user_groups
from .app import (
    AsJson,
    By,
    Count,
    Decimal,
    Encoding,
    Epsilons,
    Force,
    Item,
    Merge,
    Missing,
    NoCount,
    PriorFile,
    RareBelow,
    RowsOutput,
    Separator,
    Sheets,
    Smoothing,
    Unknown,
    User,
    Weight,
    Wide,
    app,
)
from .parsing import (
    DIVERGENCE_NAMES,
    SAMPLER_NAMES,
    check_one_result,
    check_picture,
    complete_divergence,
    complete_sampler,
    parse_divergence,
    parse_epsilons,
    parse_sampler,
)
from .progress import reading_of, step
from .tables import dialects_said, read_public, reading_said
from .terminal import (
    NOT_PRIVATE,
    console,
    number,
    plain,
    print_json,
    print_note,
    shown_text,
)


@app.command("samples")
def samples_command(
    prior_file: PriorFile,
    users_file: Annotated[
        Path,
        typer.Argument(
            help="Private histories you may look at: a row per user and item.", show_default=False
        ),
    ],
    epsilon: Epsilons,
    samples: Annotated[
        list[int] | None,
        typer.Option(
            "--samples",
            "-k",
            metavar="NUMBER",
            help="Samples per user; repeat for several. Default 1, 2 and 4.",
        ),
    ] = None,
    sampler: Annotated[
        str,
        typer.Option(
            "--sampler",
            "-s",
            help=f"A clip sampler. {SAMPLER_NAMES}.",
            autocompletion=complete_sampler,
        ),
    ] = "fitted",
    divergence: Annotated[
        str,
        typer.Option("--divergence", "-d", help=f"{DIVERGENCE_NAMES}.", autocompletion=complete_divergence),
    ] = "tv",
    users: Annotated[
        int, typer.Option(help="Look at so many users of each group at most, evenly spread over the file.")
    ] = 200,
    user: User = "user",
    item: Item = "item",
    weight: Weight = None,
    count: Count = None,
    no_count: NoCount = False,
    by: By = None,
    wide: Wide = False,
    smoothing: Smoothing = 0.0,
    merge: Merge = None,
    rare_below: RareBelow = None,
    unknown: Unknown = "error",
    output: RowsOutput = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw it into this file (.png, .pdf, .svg), for one epsilon.")
    ] = None,
    separator: Separator = None,
    encoding: Encoding = None,
    missing: Missing = "error",
    decimal: Decimal = None,
    sheet: Sheets = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """What several samples per user are worth: released together, separately, or one alone, for the same ε.

    \b
    Examples:
      sottovoce samples survey.csv members.csv -e 4
      sottovoce samples survey.csv members.csv -e 8 -k 1 -k 4 -k 10 \\
          --picture samples.png
    """
    make, options = parse_sampler(sampler)
    measure = parse_divergence(divergence)
    most = _validate.whole_at_least(1, users=users)
    check_one_result(output, as_json)
    if output is not None:
        files.check_writable(output, prior_file, users_file, force=force)
    check_picture(picture, force)
    epsilons = parse_epsilons(epsilon)
    if picture is not None and len(epsilons) > 1:
        raise ParameterError("--picture takes one epsilon")
    numbers = list(dict.fromkeys(samples or (1, 2, 4)))
    written = dialects_said([prior_file, users_file], separator, encoding, missing, decimal, sheet)
    public = read_public(
        prior_file, item=item, count=count, by=by, smoothing=smoothing, merge=merge, rare_below=rare_below,
        dialect=written[0], no_count=no_count,
    )  # fmt: skip
    with reading_of(users_file):
        reading = reading_said(merge, unknown, empty="skip", several_groups="allow")
        groups, how = read_user_groups(
            users_file,
            public.priors,
            user=user,
            item=item,
            weight=weight,
            by=public.by,
            wide=wide,
            options=reading,
            dialect=written[1],
        )
    print_note(f"{prior_file.name}: {plain(public.how)}. {users_file.name}: {how}.")
    found: list[tuple[str, SamplesRow]] = []
    parts = len(groups) * len(epsilons) * sum(1 + (k > 1) for k in numbers)
    with step("comparing", users_file.name, total=parts, unit="rows") as going:
        for group, people in groups.items():
            chosen = np.unique(np.linspace(0, len(people) - 1, min(most, len(people))).astype(np.intp))
            for one in epsilons:
                rows = compare_samples(
                    people.p[chosen],
                    public.priors[group],
                    one,
                    samples=numbers,
                    sampler=make,
                    divergence=measure,
                    accept_prior_from_users=True,  # nothing is released
                    progress=going.advance,
                    **options,
                )
                found += [(group, row) for row in rows]
    told = [{"group": group, **asdict(row)} for group, row in found]
    if output is not None:
        files.write_rows(told, output, replace=force)
        if not files.is_standard(output):
            print_note(f"written to {output}")
    if picture is not None:
        _draw(found, picture)
        print_note(f"drawn into {picture}")
    if as_json:
        print_json({"rows": told, "note": NOT_PRIVATE})
        return
    if files.is_standard(output):
        return
    _print(found, grouped=public.by is not None)
    print_note(NOT_PRIVATE)


def _print(found: list[tuple[str, SamplesRow]], *, grouped: bool) -> None:
    shown = Table(box=None, header_style="bold")
    head = ["ε", "samples", "released", "users", "each: mean", "p99", "jointly: mean", "p99"]
    for column in [*(["group"] if grouped else []), *head]:
        shown.add_column(column, justify="left" if column in ("group", "released") else "right", no_wrap=True)
    for group, row in found:
        joint = [row.joint_mean, row.joint_p99]
        shown.add_row(
            *([shown_text(group)] if grouped else []),
            f"{row.epsilon:g}",
            str(row.samples),
            row.way if row.samples > 1 else "one alone",
            f"{row.users:,}",
            number(row.single_mean),
            number(row.single_p99),
            *("–" if value is None else number(value) for value in joint),
        )
    console.print(shown)
    print_note(
        "Each: one of the samples beside one draw of the user. Jointly: all samples beside as many "
        "independent draws. Separately: every sample at epsilon/samples."
    )
    left_out = max(row.users - row.joint_users for _, row in found)
    if left_out:
        print_note(f"Jointly leaves out {left_out:,} users with more categories than can be told apart.")


def _draw(found: list[tuple[str, SamplesRow]], path: Path) -> None:
    from ..pictures import plots
    from ..pictures.plots import plot_samples

    groups = list(dict.fromkeys(group for group, _ in found))
    figure: Any = plots.new_figure(7, 3.6 * len(groups))
    for axes, group in zip(figure.subplots(len(groups), 1, squeeze=False).flat, groups, strict=True):
        plot_samples([row for name, row in found if name == group], axes)
        if group != "all":
            axes.set_title(f"{group}: {axes.get_title()}")
    plots.save_figure(figure, path)
