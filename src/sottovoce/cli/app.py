"""The command as such, and the options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from .terminal import console

ORDER = (
    "prior",
    "choose",
    "compare",
    "samples",
    "design",
    "ledger",
    "release",
    "collect",
    "estimate",
    "audit",
    "amplify",
    "explore",
    "demo",
)


class _InOrder(TyperGroup):
    """The commands in the order in which one meets them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=_InOrder,
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
Wide = Annotated[
    bool,
    typer.Option(
        "--wide", help="A row per user and a column per category; all columns but user and group count."
    ),
]
User = Annotated[str, typer.Option(help="Column of the user.")]
Weight = Annotated[
    str | None, typer.Option(help="Column of the users' weights; default weight or count if there.")
]
Unknown = Annotated[
    str, typer.Option(help="Items that the prior does not know: error, drop their rows, or other.")
]
UnknownGroups = Annotated[str, typer.Option(help="Groups of users that have no prior: error, or drop them.")]
Other = Annotated[str, typer.Option(help="The category of --unknown other.")]
MinimumRows = Annotated[
    int, typer.Option(help="Leave out users with fewer rows in the whole table (all groups together).")
]
RowsOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Also write the rows (.csv, .parquet or .json).")
]
MechanismPath = Annotated[
    Path, typer.Argument(help="Made by: sottovoce design … -o mechanism.json", show_default=False)
]
MaxEpsilon = Annotated[float | None, typer.Option(help="Refuse a mechanism with a larger epsilon.")]
Digest = Annotated[
    str | None, typer.Option(help="Refuse any other file: the digest that `sottovoce design -o` printed.")
]
RequirePublicPrior = Annotated[
    bool,
    typer.Option(
        "--require-public-prior", help="Refuse a mechanism whose prior was made from the users it serves."
    ),
]


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
