"""What commands are told about tables, as values: how files are written, and what becomes of rare items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from ..errors import ParameterError
from ..tables.files import Dialect, kind_of
from ..tables.priors import PriorOptions, PublicData, read_priors
from ..tables.users import ReadingOptions
from ..tables.workbook import KINDS
from .progress import reading_of


def dialects_said(
    tables: Sequence[Path],
    separator: str | None,
    encoding: str | None,
    missing: str,
    decimal: str | None,
    sheets: Sequence[str] | None,
) -> list[Dialect]:
    """How each of the command's tables is written; one sheet is for all of them, several for one each."""
    given = list(sheets or [])
    if given and not {"", *KINDS} & {kind_of(path) for path in tables}:  # a pipe may hold anything
        raise ParameterError(f"--sheet is for workbooks ({', '.join(KINDS)}): leave it out")
    if len(given) not in (0, 1, len(tables)):
        number = "one table" if len(tables) == 1 else f"{len(tables)} tables"
        raise ParameterError(
            f"--sheet was said {len(given)} times, and this command reads {number}: say it once, or for each"
        )
    chosen = given if len(given) == len(tables) else [*given, None][:1] * len(tables)
    return [
        Dialect(separator=separator, encoding=encoding, missing=missing, decimal=decimal, sheet=sheet)
        for sheet in chosen
    ]


def read_public(
    path: Path,
    *,
    item: str,
    count: str | None,
    by: str | None,
    smoothing: float,
    merge: str | None,
    rare_below: float | None,
    dialect: Dialect,
    no_count: bool,
) -> PublicData:
    """The priors of a command's public table, counted as its options say."""
    options = PriorOptions(smoothing=smoothing, merge_rare=merged_name(merge), rare_below=rare_below)
    with reading_of(path):
        return read_priors(
            path, item=item, count=count, by=by, options=options, dialect=dialect, ask=not no_count
        )


def said_again(**options: str | float | bool | None) -> str:
    """The options that were said, as one types them, for a command that is to read the same table."""
    words = []
    for name, value in options.items():
        if value:
            flag = f"--{name.replace('_', '-')}"
            words += [flag] if value is True else [flag, quote(str(value))]
    return "".join(f" {word}" for word in words)


def merged_name(merge: str | None) -> str | None:
    """rare=NAME → NAME."""
    if merge is None:
        return None
    kind, equals, name = merge.partition("=")
    if kind.strip() != "rare" or not equals or not name.strip():
        raise ParameterError(f"--merge must look like rare=NAME, with the name of a category, got {merge!r}")
    return name.strip()


def reading_said(merge: str | None, unknown: str, other: str = "other", **more: object) -> ReadingOptions:
    """What to do with what does not fit; --merge says what unknown items are counted as."""
    name = merged_name(merge)
    if name is None:
        return ReadingOptions(unknown=unknown, other=other, **more)  # type: ignore[arg-type]  # as they are named there
    if unknown == "drop" or other not in ("other", name):
        raise ParameterError("--merge says what becomes of unknown items: leave --unknown and --other out")
    return ReadingOptions(unknown="other", other=name, **more)  # type: ignore[arg-type]  # the same
