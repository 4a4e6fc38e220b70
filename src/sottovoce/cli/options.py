"""The options that several commands share: columns and forms of tables, outputs, policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from shlex import quote
from typing import Any

import click

from ..errors import ParameterError
from ..records import Users
from ..tables import files
from ..tables.files import DETECTED, SEPARATORS, Dialect, kind_of
from ..tables.priors import NEAR_KEYS, Near, PublicData, read_priors
from ..tables.reader import RESHAPE
from ..tables.users import ReadingOptions, read_user_groups
from ..tables.workbook import KINDS
from .app import Option
from .terminal import print_note, step

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
SEPARATOR_NAMES = {character: name for name, character in SEPARATORS.items()}
PICTURES = (".png", ".pdf", ".svg")
JSON = (".json",)
PATH = click.Path(path_type=Path)


def option(*names: str, panel: str = "Options", **settings: Any) -> Decorator:
    """Declare an option in a panel of the help."""
    return click.option(*names, cls=Option, panel=panel, **settings)


def column(name: str, text: str, **settings: Any) -> Decorator:
    """Declare the name of a column."""
    return option(name, metavar="COLUMN", panel="Columns", help=text, **settings)


def path_argument(name: str, **settings: Any) -> Decorator:
    """Declare a file as argument."""
    return click.argument(name, type=PATH, **settings)


def together(*declared: Decorator) -> Decorator:
    """Declare several options, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for declare in reversed(declared):  # the lowest decorator comes first
            function = declare(function)
        return function

    return decorate


# ---------------------------------------------------------------- tables


def parse_near(text: str | None) -> Near | None:
    """position=year → its columns."""
    if text is None:
        return None
    parents: list[str] = []
    given: dict[str, str] = {}
    for pair in text.split(","):
        key, value = (part.strip() for part in pair.partition("=")[::2])
        if key not in NEAR_KEYS or not value:
            raise ParameterError(f"--near takes {'=COLUMN, '.join(NEAR_KEYS)}=COLUMN, got {pair!r}")
        if key in given:
            raise ParameterError(f"--near takes each key once, and only parent several times; got {text!r}")
        if key == "parent":
            parents.append(value)
        else:
            given[key] = value
    return Near(parents=tuple(parents), **given)


def parse_as(text: str, option_name: str, *others: str) -> tuple[str, str | None]:
    """as=NAME → ("as", NAME); one of the others → (it, None)."""
    kind, _, name = text.partition("=")
    if kind == "as" and name.strip():
        return "as", name.strip()
    if text not in others:
        raise ParameterError(f"{option_name} must be {', '.join(others)} or as=NAME, got {text!r}")
    return text, None


def reading_options(
    unknown: str,
    unknown_groups: str = "error",
    several_groups: str = "allow",
    empty: str = "skip",
    choices: tuple[str, ...] = ("error", "drop"),
) -> ReadingOptions:
    """Return what to do with rows that do not fit, where --unknown may be as=NAME."""
    kind, name = parse_as(unknown, "--unknown", *choices)
    unknown, other = (kind, "other") if name is None else ("other", name)
    return ReadingOptions(unknown, other, empty, unknown_groups, several_groups)


def left_out(unknown: str) -> ReadingOptions:
    """The same for a comparison: with --unknown drop, users and groups of which nothing is left go too."""
    groups, empty = ("drop", "skip") if unknown == "drop" else ("error", "error")
    return reading_options(unknown, unknown_groups=groups, empty=empty)


@dataclass(frozen=True)
class Columns:
    """The columns of a command's tables, and the texts of --read."""

    item: str = "item"
    user: str | None = None
    weight: str | None = None
    count: str | None = None
    by: str | None = None
    near: str | None = None
    read: tuple[str, ...] = ()

    @property
    def private(self) -> dict[str, Any]:
        """The columns of a table of users."""
        return {"user": self.user, "item": self.item, "weight": self.weight}

    def tables(self, *paths: Path | None) -> list[Table]:
        """How each table is written: separator=;,sheet=Survey/Members → one value for each of them."""
        tables = [path for path in paths if path is not None]
        allowed = [field.name for field in fields(Dialect)]
        settings: dict[str, list[str]] = {}
        for pair in (pair for text in self.read for pair in text.split(",")):
            key, _, value = pair.partition("=")
            key = key.strip()
            values = [value] if value == "/" else value.split("/")
            if key == "wide":
                raise ParameterError(RESHAPE)
            fits = key in allowed and key not in settings
            if not fits or not all(values) or len(values) not in (1, len(tables)):
                raise ParameterError(
                    f"--read takes {'=…, '.join(allowed)}=…, each once, with commas between them; got "
                    f"{pair!r} (write separator=comma for a comma, sheet=1/2 for the sheets of two tables)"
                )
            settings[key] = values * (len(tables) // len(values))
        workbooks = {"", *KINDS} & {kind_of(path) for path in tables}  # a pipe may hold anything
        if "sheet" in settings and not workbooks:
            raise ParameterError(f"--read sheet=… is for workbooks ({', '.join(KINDS)}): leave it out")
        return [
            Table(path, self, Dialect(**{key: values[k] for key, values in settings.items()}))
            for k, path in enumerate(tables)
        ]


@dataclass(frozen=True)
class Table:
    """One of a command's tables: its file, its columns, and how it is written."""

    path: Path
    columns: Columns
    dialect: Dialect

    def priors(self, **more: Any) -> PublicData:
        """Read the priors of a table of public data."""
        own = self.columns
        names: Any = {"item": own.item, "count": own.count, "by": own.by, "near": parse_near(own.near)}
        with step("reading", self.path.name):
            return read_priors(self.path, **names, dialect=self.dialect, ask=own.count != "none", **more)

    def users(self, public: PublicData, options: ReadingOptions) -> tuple[dict[str, Users], str]:
        """Read the users of every group, and how they were counted."""
        settings: Any = {"options": options, "dialect": self.dialect, "by": public.by}
        with step("reading", self.path.name):
            return read_user_groups(self.path, public.priors, **self.columns.private, **settings)

    @property
    def settings(self) -> str:
        """The settings of --read, as a user types them."""
        dialect = {k: v for k, v in asdict(self.dialect).items() if v != getattr(DETECTED, k)}
        return ",".join(f"{key}={SEPARATOR_NAMES.get(value, value)}" for key, value in dialect.items())

    def as_typed(self, *, near: bool) -> str:
        """The options that read this public table, as a user types them."""
        own = self.columns
        options = {
            "item": None if own.item == "item" else own.item,
            "count": own.count,
            "near": own.near if near else None,
            "read": self.settings,
        }
        return "".join(f" --{name} {quote(value)}" for name, value in options.items() if value)


item_option = column("--item", "The category.", default="item")
count_option = column(
    "--count", "Public amounts; default count, weight or probability if there. none: every row counts once."
)
by_option = column("--by", "Group: one prior per group. A user in two groups counts once in each.")
user_option = column("--user", "The user.", default="user")
weight_option = column("--weight", "The users' amounts; default weight or count if there.")
near_option = option(
    "--near", metavar="COLUMNS", panel="Columns",
    help="What is near what: position=COLUMN, parent=COLUMN (of each level), or latitude=…,longitude=…",
)  # fmt: skip
read_option = option(
    "--read", multiple=True, metavar="SETTINGS", panel="Columns",
    stands_for={key: f"{key}={{}}" for key in ("separator", "encoding", "decimal", "sheet", "missing")},
    help="How a table is written, such as separator=;,decimal=comma (keys: separator, encoding, decimal, "
    "sheet, missing; see sottovoce help tables). With two tables sheet=1/2 is one for each.",
)  # fmt: skip
private_columns = together(user_option, item_option, weight_option, read_option)
public_columns = together(item_option, count_option, by_option, read_option)
placed_columns = together(item_option, count_option, by_option, near_option, read_option)
all_columns = together(
    user_option, item_option, weight_option, count_option, by_option, near_option, read_option
)
unknown_option = option(
    "--unknown", default="error", metavar="WHAT", panel="Users",
    stands_for={"other": "as={}", "unknown_groups": "drop", "empty": "drop"},
    help="Items (and groups) that the prior lacks: error, drop their rows, or as=NAME, a category of it.",
)  # fmt: skip
prior_argument = path_argument("prior_file", metavar="PRIOR")

# ---------------------------------------------------------------- outputs and mechanism files


@dataclass(frozen=True)
class Output:
    """Where a result goes: into a file, a picture, or as JSON to standard output."""

    output: Path | None = None
    picture: Path | None = None
    force: bool = False
    as_json: bool = False

    def check(self, *inputs: Path | None, kinds: Sequence[str] = files.WRITTEN) -> None:
        """Refuse what cannot be written, before any work."""
        if self.as_json and files.is_standard(self.output):
            raise ParameterError("-o - and --json both write to standard output: choose one")
        read = [path for path in inputs if path is not None]
        for path, endings in ((self.output, kinds), (self.picture, PICTURES)):
            if path is not None:
                files.check_writable(path, *read, kinds=endings, force=self.force)

    def write_rows(self, rows: list[dict[str, Any]]) -> bool:
        """Write the rows where a file is named, and return whether standard output has them now."""
        if self.output is None:
            return False
        files.write_rows(rows, self.output, replace=self.force)
        if not files.is_standard(self.output):
            print_note(f"written to {self.output}")
        return files.is_standard(self.output)


force_option = option("--force", is_flag=True, panel="Output", help="Replace an output file that exists.")
json_option = option(
    "--json", "as_json", is_flag=True, panel="Output", help="Print JSON for programs; null is infinity."
)


def output_options(text: str = "Also write the rows (.csv, .parquet or .json).") -> Decorator:
    """Declare -o with this help, --force and --json."""
    file = option("--output", "-o", type=PATH, panel="Output", help=text)
    return together(file, force_option, json_option)


mechanism_argument = path_argument("mechanism_file", metavar="MECHANISM")
provenance_option = option(
    "--provenance", type=click.Choice(("public", "users")),
    help="What the table is about: public data, or the users to be served (for an experiment). Default: "
    "users if it has users.",
)  # fmt: skip


def _epoch_of(_context: click.Context, _option: click.Parameter, epoch: str | None) -> str | None:
    """The epoch; an empty one is an unset variable more often than intended."""
    if epoch is not None and not epoch.strip():
        raise ParameterError("--epoch is empty: leave it out, or name a period such as 2026-11")
    return epoch


epoch_option = option("--epoch", panel="Budget", callback=_epoch_of, help="The period, such as 2026-11.")
