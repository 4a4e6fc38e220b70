"""The command as such, and the options that several commands share."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from .lazily import Lazily
from .terminal import console

app = typer.Typer(
    cls=Lazily,
    help="Locally private sampling with public data.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

PriorFile = Annotated[
    Path,
    typer.Argument(
        help="Public data (CSV, gzip, Parquet, JSON, Excel): a column of items and one of counts. Rows of "
        "the same item add up. JSON may also be {item: count}, or what `sottovoce prior -o` wrote.",
        show_default=False,
    ),
]
Epsilons = Annotated[
    list[str],
    typer.Option(
        "--epsilon", "-e", metavar="NUMBERS", help="Privacy parameter; several as 1,2,4 or 1:8 or 1:8:0.5."
    ),
]
Item = Annotated[str, typer.Option(help="Column of the category.")]
Count = Annotated[
    str | None,
    typer.Option(
        help="Column of public amounts; default count, weight or probability if there.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        help="Group column: one prior per group. A user in two groups counts once in each.",
    ),
]
Smoothing = Annotated[float, typer.Option(help="Added to every public count, so that none is zero.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an output file that is there already.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs; null stands for infinity.")]
Wide = Annotated[
    bool,
    typer.Option(
        "--wide", help="A row per user, a column per category: every column but user and group is one."
    ),
]
User = Annotated[str, typer.Option(help="Column of the user.")]
Weight = Annotated[
    str | None,
    typer.Option(
        help="Column of the users' weights; default weight or count if there.",
    ),
]
NoCount = Annotated[
    bool, typer.Option("--no-count", help="Count every row of the public table once, whatever its columns.")
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Between the fields of a text table: comma, semicolon, tab, pipe or a character; default found."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Of a text table: utf-8, utf-16, latin-1, cp1252; default found, else utf-8."),
]
Missing = Annotated[
    str, typer.Option(help="Rows without a user, item or group: error, or drop them and say how many.")
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Mark in amounts written as text: point or comma; a comma has to be said."),
]
Sheets = Annotated[
    list[str] | None,
    typer.Option(
        "--sheet",
        help="Sheet of a workbook, by name or number; default the first. Twice: that of each file.",
    ),
]
Merge = Annotated[
    str | None,
    typer.Option(
        metavar="rare=NAME",
        help="Count rare public categories, and users' items that the prior lacks, as category NAME.",
    ),
]
RareBelow = Annotated[
    float | None,
    typer.Option(help="Public categories below this are rare for --merge; default those without a count."),
]
PublicMerge = Annotated[
    str | None,
    typer.Option(
        "--merge",
        metavar="rare=NAME",
        help="Add up rare public categories into category NAME, which may be there already.",
    ),
]
UsersMerge = Annotated[
    str | None,
    typer.Option(
        "--merge",
        metavar="rare=NAME",
        help="Count items that the prior lacks as its category NAME.",
    ),
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


MATTERS = ("numpy", "scipy", "polars", "narwhals", "pyarrow")
"""What a result may depend on."""


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"sottovoce {__version__}", highlight=False)
        versions = [f"python {platform.python_version()}", *map(_found, MATTERS)]
        console.print(f"{', '.join(versions)}; {platform.system()} {platform.machine()}", highlight=False)
        raise typer.Exit


def _found(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"no {name}"


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the version, and those of what results depend on.",
        ),
    ] = False,
) -> None:
    """Locally private sampling with public data."""
