"""Commands before any release: compare, design, demo. They parse, call and print; no mathematics here."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from . import __version__, catalogue, files
from ._parsing import parse_divergence, parse_sampler
from ._terminal import (
    NOT_PRIVATE,
    console,
    errors,
    print_averages,
    print_card,
    print_comparison,
    print_json,
    print_note,
)
from .cards import card
from .certify import certify
from .comparison import Comparison, compare
from .demo import GENRES, GROUPS, demo_comparison, demo_data, write_tables
from .errors import ParameterError
from .mechanism_file import save_mechanisms

app = typer.Typer(
    help="Locally private sampling with public data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

PriorFile = Annotated[
    Path,
    typer.Argument(
        help="Public data (CSV, gzip, Parquet, JSON): a column of items and one of counts. Rows of the same "
        "item add up. JSON may also be {item: count}.",
        show_default=False,
    ),
]
Epsilons = Annotated[
    list[float], typer.Option("--epsilon", "-e", help="Privacy parameter; repeat for several.")
]
Item = Annotated[str, typer.Option(help="Column of the category.")]
Count = Annotated[
    str | None,
    typer.Option(help="Column of public amounts; default count, weight or probability if there."),
]
By = Annotated[
    str | None,
    typer.Option(help="Group column: one prior per group. A user in two groups counts once in each."),
]
Smoothing = Annotated[float, typer.Option(help="Added to every public count, so that none is zero.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs; null stands for infinity.")]


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"sottovoce {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Locally private sampling with public data."""


@app.command("compare")
def compare_command(
    prior_file: PriorFile,
    users_file: Annotated[
        Path,
        typer.Argument(
            help="Private histories: a row per user and item, a weight or count column if there is one.",
            show_default=False,
        ),
    ],
    epsilon: Epsilons,
    sampler: Annotated[
        list[str] | None,
        typer.Option("--sampler", "-s", help="Such as kernel-clip or blend:weight=0.3; default all of them."),
    ] = None,
    divergence: Annotated[
        list[str] | None,
        typer.Option(
            "--divergence", "-d", help="tv, kl, …, alpha:order=2, hockey-stick:gamma=2; default tv."
        ),
    ] = None,
    user: Annotated[str, typer.Option(help="Column of the user.")] = "user",
    item: Item = "item",
    weight: Annotated[
        str | None,
        typer.Option(help="Column of weights in the users file; default weight or count if there."),
    ] = None,
    count: Count = None,
    by: By = None,
    smoothing: Smoothing = 0.0,
    unknown: Annotated[
        str, typer.Option(help="Items that the prior does not know: error, or drop their rows.")
    ] = "error",
    as_json: AsJson = False,
) -> None:
    """How far each sampler's release is from each user's own data.

    \b
    Examples:
      sottovoce compare survey.csv members.csv -e 1 -e 4
      sottovoce compare survey.csv members.csv -e 2 --by group \\
          -s kernel-clip -s blend:weight=0.3
      sottovoce compare survey.csv members.csv -e 2 -d tv -d kl --json
    """
    makers = [parse_sampler(text) for text in sampler or list(catalogue.SAMPLERS)]
    measures = [parse_divergence(text) for text in divergence or ["tv"]]
    priors, public = files.read_priors(prior_file, item=item, count=count, by=by, smoothing=smoothing)
    samplers = {
        group: [make(prior, e, **options) for e in epsilon for make, options in makers]
        for group, prior in priors.items()
    }
    groups, private = files.read_user_groups(
        users_file, priors, user=user, item=item, weight=weight, by=by, unknown=unknown
    )
    print_note(f"{prior_file.name}: {public}. {users_file.name}: {private}.")
    work = [(group, users.p, one) for group, users in groups.items() for one in samplers[group]]
    quiet = as_json or not errors.is_terminal
    shown = track(work, "comparing", console=errors, transient=True, disable=quiet)
    rows = [row for group, p, one in shown for row in compare(p, one, measures, group=group)]
    table = Comparison(tuple(rows))
    if as_json:
        print_json({"rows": table.to_dicts(), "note": NOT_PRIVATE})
    else:
        print_comparison(table)
        print_note(NOT_PRIVATE)


@app.command()
def design(
    prior_file: PriorFile,
    epsilon: Epsilons,
    sampler: Annotated[
        str, typer.Option("--sampler", "-s", help="Such as kernel-clip or blend:weight=0.3.")
    ] = "kernel-clip",
    item: Item = "item",
    count: Count = None,
    by: By = None,
    smoothing: Smoothing = 0.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Certify, and write the mechanism to this JSON file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A card for one sampler: what it keeps and how bad it can get; with -o also a certified mechanism.

    \b
    Examples:
      sottovoce design survey.csv --epsilon 2
      sottovoce design survey.csv -e 2 -e 4 -s prior-minimax --by group
      sottovoce design survey.csv -e 2 --by group -o mechanism.json
    """
    make, options = parse_sampler(sampler)
    if output is not None and len(epsilon) != 1:
        raise ParameterError(f"a mechanism has one epsilon: with --output give one, not {len(epsilon)}")
    priors, public = files.read_priors(prior_file, item=item, count=count, by=by, smoothing=smoothing)
    samplers = {
        (group, one): make(prior, one, **options) for group, prior in priors.items() for one in epsilon
    }
    made = [card(one, group=group) for (group, _), one in samplers.items()]
    print_note(f"{prior_file.name}: {public}. It must be public data, not counts of the users to be served.")
    if output is not None:
        mechanisms = {group: certify(one) for (group, _), one in samplers.items()}
        save_mechanisms(mechanisms, by, output)
        print_note(
            f"certified and written to {output}: {', '.join(m.digest[:16] for m in mechanisms.values())}"
        )
    if as_json:
        print_json([asdict(one) for one in made])
        return
    for one in made:
        print_card(one)


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the tables and the picture.")
    ] = Path("sottovoce-demo"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON and write no file.")
    ] = False,
) -> None:
    """Two thousand invented film lovers: a prior, a comparison, a card and a picture.

    \b
    Examples:
      sottovoce demo
      sottovoce demo --output my-demo
    """
    from . import plots

    data = demo_data()
    table = demo_comparison(data)
    if as_json:
        print_json({"rows": table.to_dicts()})
        return
    output.mkdir(parents=True, exist_ok=True)
    prior_path, users_path = write_tables(data, output)
    picture = plots.demo_picture(data, table, output / "comparison.png")
    members = sum(map(len, data.members.values()))
    console.print(
        f"\n[bold]A film club[/bold]: {members:,} members, {len(GENRES)} genres, {len(GROUPS)} age groups. "
        f"A public survey\ngives each group a prior q; each member releases one genre that looks like\n"
        f"their own history.\n"
    )
    print_averages(table)
    console.print(
        "\nTV is the least chance that the released genre differs from an honest draw of\n"
        "the member's own. Mean and maximum over a group's members, averaged over the\n"
        "three groups.\n"
    )
    print_card(card(catalogue.kernel_clip(data.priors["25 to 44"], 2.0), group="25 to 44"))
    console.print(f"Tables   {prior_path}, {users_path}\nPicture  {picture}\n", markup=False)
    console.print("Try it yourself:", style="bold")
    command = ["sottovoce", "compare", str(prior_path), str(users_path), "--by", "group"]
    line = f"  {shlex.join([*command, '-e', '2', '-d', 'tv', '-d', 'kl'])}"
    console.print(line, soft_wrap=True, markup=False)
