"""The command line: parse, call, print. No mathematics here."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from . import catalogue, divergences, frames
from ._terminal import NOT_PRIVATE, console, print_averages, print_card, print_comparison, print_json
from .cards import card
from .comparison import Comparison, compare
from .demo import GENRES, GROUPS, demo_comparison, demo_data, write_tables
from .divergences import DIVERGENCES, FDivergence
from .errors import ParameterError, SottovoceError

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
        help="Public data: CSV, Parquet or JSON with an item column and an optional count column.",
        show_default=False,
    ),
]
Epsilons = Annotated[
    list[float], typer.Option("--epsilon", "-e", help="Privacy parameter; repeat for several.")
]
Item = Annotated[str, typer.Option(help="Column of the category, in both files.")]
Count = Annotated[
    str | None,
    typer.Option(help="Column of public amounts; default count, weight or probability if there."),
]
By = Annotated[str | None, typer.Option(help="Group column, in both files: one prior per group.")]
Smoothing = Annotated[float, typer.Option(help="Added to every public count, so that none is zero.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs; null stands for infinity.")]


@app.command("compare")
def compare_command(
    prior_file: PriorFile,
    users_file: Annotated[
        Path,
        typer.Argument(help="Private histories: a row per user and item.", show_default=False),
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
        str | None, typer.Option(help="Column of weights in the users file; default: a row is one.")
    ] = None,
    count: Count = None,
    by: By = None,
    smoothing: Smoothing = 0.0,
    unknown: Annotated[
        str, typer.Option(help="Items that the prior does not know: error or drop.")
    ] = "error",
    as_json: AsJson = False,
) -> None:
    """How far each sampler's release is from each user's own data.

    \b
    Examples:
      sottovoce compare survey.csv members.csv -e 1 -e 4
      sottovoce compare survey.csv members.csv -e 2 -s kernel-clip -s blend:weight=0.3 --by group
      sottovoce compare survey.csv members.csv -e 2 -d tv -d kl --weight weight --json
    """
    makers = [_parse_sampler(text) for text in sampler or list(catalogue.SAMPLERS)]
    measures = [_parse_divergence(text) for text in divergence or ["tv"]]
    priors = frames.read_priors(prior_file, item=item, count=count, by=by, smoothing=smoothing)
    samplers = {
        group: [make(prior, e, **options) for e in epsilon for make, options in makers]
        for group, prior in priors.items()
    }
    groups = frames.read_user_groups(
        users_file, priors, user=user, item=item, weight=weight, by=by, unknown=unknown
    )
    work = [(group, users.p, one) for group, users in groups.items() for one in samplers[group]]
    shown = track(work, "comparing", console=Console(stderr=True), transient=True, disable=as_json)
    rows = [row for group, p, one in shown for row in compare(p, one, measures, group=group)]
    table = Comparison(tuple(rows))
    if as_json:
        print_json({"rows": table.to_dicts(), "note": NOT_PRIVATE})
    else:
        print_comparison(table)
        console.print(f"[dim]{NOT_PRIVATE}[/dim]")


@app.command()
def design(
    prior_file: PriorFile,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Privacy parameter.")],
    sampler: Annotated[
        str, typer.Option("--sampler", "-s", help="Such as kernel-clip or blend:weight=0.3.")
    ] = "kernel-clip",
    item: Item = "item",
    count: Count = None,
    by: By = None,
    smoothing: Smoothing = 0.0,
    as_json: AsJson = False,
) -> None:
    """A card for one sampler: what it keeps and how bad it can get, beside the alternatives.

    \b
    Examples:
      sottovoce design survey.csv --epsilon 2
      sottovoce design survey.csv -e 4 -s prior-minimax --by group
    """
    make, options = _parse_sampler(sampler)
    priors = frames.read_priors(prior_file, item=item, count=count, by=by, smoothing=smoothing)
    made = [card(make(prior, epsilon, **options), group=group) for group, prior in priors.items()]
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
    as_json: AsJson = False,
) -> None:
    """Two thousand invented film lovers: a prior, a comparison, a card and a picture.

    \b
    Examples:
      sottovoce demo
      sottovoce demo --output /tmp/demo --json
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
        "the member's own. Each figure is the average over the three groups.\n"
    )
    prior = data.priors["25 to 44"]
    print_card(card(catalogue.kernel_clip(prior, 2.0), group="25 to 44"))
    console.print(f"Tables   {prior_path}, {users_path}\nPicture  {picture}\n")
    console.print("Try it yourself:", style="bold")
    console.print(
        f"  sottovoce compare {prior_path} {users_path} --by group --weight weight -e 2 -d tv -d kl",
        soft_wrap=True,
    )


def run() -> None:
    """Run the command; a bad input is one line on standard error and exit code 2."""
    try:
        app(standalone_mode=True)
    except SottovoceError as problem:
        _stop(str(problem))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as problem:
        _stop(f"{problem.filename or 'file'}: {problem.strerror or type(problem).__name__}")


def _stop(message: str) -> None:
    Console(stderr=True).print("error:", message, style="red", markup=False, soft_wrap=True)
    raise SystemExit(2) from None


def _parse(text: str, what: str, known: list[str]) -> tuple[str, dict[str, float]]:
    """Split name:key=value,key=value; hyphens and underscores are the same."""
    head, _, tail = text.partition(":")
    name = head.strip().replace("-", "_")
    if name not in known:
        names = ", ".join(k.replace("_", "-") for k in known)
        raise ParameterError(f"{what} must be one of {names}, got {head!r}")
    options = {}
    for pair in filter(None, tail.split(",")):
        key, equals, value = pair.partition("=")
        try:
            options[key.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ParameterError(f"{what} options look like {head}:name=number, got {pair!r}")
    return name, options


def _parse_sampler(text: str) -> tuple[Any, dict[str, float]]:
    name, options = _parse(text, "sampler", list(catalogue.SAMPLERS))
    allowed = {"blend": ["weight"], "local_minimax": ["gamma"]}.get(name, [])
    for key in options:
        if key not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no option"
            raise ParameterError(f"sampler {name.replace('_', '-')} {takes}, got {key!r}")
    return catalogue.SAMPLERS[name], options


def _parse_divergence(text: str) -> FDivergence:
    takes = {"alpha": "order", "hockey_stick": "gamma"}
    name, options = _parse(text, "divergence", [*DIVERGENCES, *takes])
    if list(options) != ([takes[name]] if name in takes else []):
        form = f"{name}:{takes[name]}=2" if name in takes else name
        raise ParameterError(f"divergence must be written {form.replace('_', '-')}, got {text!r}")
    if name in DIVERGENCES:
        return DIVERGENCES[name]
    made: FDivergence = getattr(divergences, name)(*options.values())
    return made
