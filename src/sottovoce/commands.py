"""Commands before any release: design and demo. They parse, call and print; no mathematics here."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from . import __version__, catalogue, files
from ._parsing import parse_sampler
from ._terminal import console, plain, print_averages, print_card, print_json, print_note, working
from .cards import card
from .certify import certify
from .demo import GENRES, GROUPS, DemoRelease, demo_comparison, demo_data, demo_release, write_tables
from .errors import ParameterError, PriorError
from .inputs import PublicData, read_priors
from .mechanism_file import save_mechanisms
from .prior import FROM_USERS

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
        "item add up. JSON may also be {item: count}, or what `sottovoce prior -o` wrote.",
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
Force = Annotated[bool, typer.Option("--force", help="Replace an output file that is there already.")]
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


def public_data(path: Path, **options: object) -> PublicData:
    """The priors of a file, with a sign of life while it is read."""
    with working(f"reading {path.name}"):
        return read_priors(path, **options)  # type: ignore[arg-type]


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
    accept_prior_from_users: Annotated[
        bool,
        typer.Option("--accept-prior-from-users", help="Certify on a prior made from the users it serves."),
    ] = False,
    force: Force = False,
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
    if output is not None:
        files.check_writable(output, prior_file, force=force)
        if output.suffix.lower() != ".json":
            raise ParameterError(f"{output} cannot be written: a mechanism file ends in .json")
    public = public_data(prior_file, item=item, count=count, by=by, smoothing=smoothing)
    samplers = {
        (group, one): make(prior, one, **options) for group, prior in public.priors.items() for one in epsilon
    }
    if output is not None:
        if any(prior.made_from_users for prior in public.priors.values()) and not accept_prior_from_users:
            raise PriorError(
                f"{prior_file}: {FROM_USERS} If it is about other people, make it with: sottovoce prior "
                f"--public -o prior.json; for an experiment say --accept-prior-from-users"
            )
        mechanisms = {
            group: certify(one, accept_prior_from_users=accept_prior_from_users)
            for (group, _), one in samplers.items()
        }
        digest = save_mechanisms(mechanisms, public.by, output, replace=force)
        print_note(f"certified and written to {output}; whoever releases can pin it: --digest {digest}")
        if public.by is not None:
            print_note(f"Who releases with it publishes each user's {plain(public.by)!r} in clear.")
    made = [card(one, group=group) for (group, _), one in samplers.items()]
    print_note(
        f"{prior_file.name}: {plain(public.how)}. It must be public data, not counts of the users to be "
        f"served."
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
    """Two thousand invented film lovers: a prior, a comparison, releases, an estimate and a page of it all.

    \b
    Examples:
      sottovoce demo
      sottovoce demo --output my-demo
    """
    from . import plots
    from .report import demo_report

    data = demo_data()
    table = demo_comparison(data)
    if as_json:
        print_json({"rows": table.to_dicts()})
        return
    output.mkdir(parents=True, exist_ok=True)
    prior_path, users_path = write_tables(data, output)
    picture = plots.demo_picture(data, table, output / "comparison.png")
    released = demo_release(data)
    estimated = plots.demo_estimate(released, output / "estimate.png")
    facts = card(catalogue.kernel_clip(data.priors[released.group], 2.0), group=released.group)
    drawn = [(picture, "one member's box, and every sampler against epsilon"), (estimated, "the estimate")]
    page = demo_report(data, table, facts, released, drawn, output / "report.html")
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
    print_card(facts)
    _print_released(released)
    console.print(f"Page     {page}\nPictures {picture}, {estimated}", markup=False)
    console.print(f"Tables   {prior_path}, {users_path}\n", markup=False)
    console.print("Try it yourself:", style="bold")
    program = "sottovoce" if shutil.which("sottovoce") else f"{Path(sys.executable).parent / 'sottovoce'}"
    command = [program, "compare", str(prior_path), str(users_path), "--by", "group"]
    line = f"  {shlex.join([*command, '-e', '2', '-d', 'tv', '-d', 'kl'])}"
    console.print(line, soft_wrap=True, markup=False)


def _print_released(released: DemoRelease) -> None:
    """The releases and their rate, then what the collector learns beside the truth."""
    total = sum(map(len, released.answers.values()))
    rate = total / released.seconds
    digest = released.mechanisms[released.group].digest[:16]
    console.print(
        f"Certified ({digest}) and released: {total:,} members in {released.seconds * 1e3:.0f} ms, "
        f"{rate:,.0f} a second.\n",
        highlight=False,
    )
    found = released.found
    low, high = found.interval()
    shown = Table(title=f"what the collector learns about {released.group}", box=None, header_style="bold")
    for column in ("genre", "prior", "truth", "estimate", "95 % interval"):
        shown.add_column(column, justify="left" if column == "genre" else "right", no_wrap=True)
    for i in (-found.model.prior).argsort(kind="stable")[:8].tolist():
        values = (found.model.prior[i], released.truth[i], found.values[i])
        interval = f"{low[i]:.3f} … {high[i]:.3f}"
        shown.add_row(str(found.categories[i]), *(f"{value:.3f}" for value in values), interval)
    console.print(shown)
    print_note(found.words())
    console.print()
