"""Names of columns for the shell, from the header of the tables that stand on the command line already.

They are offered by the rule by which messages list them: something must tell that they are names, and not the
first row of a table without a header; of a private table, another column must be there by its name. Of a file
the first 64 KiB are looked at, of a pipe nothing; if anything goes wrong, nothing is offered, nothing said.
"""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

LOOKED_AT = 1 << 16
"""Bytes of a file that are looked at."""
TABLES = {
    "prior_file": ("item", "count", "by"),
    "users_file": ("user", "item", "weight", "by"),
    "public_users": ("user", "item", "weight", "by"),
    "table": ("user", "item", "weight", "count", "by", "top_by"),
    "reports": ("user", "item", "by"),
}
"""The tables of the commands, and the options that name their columns."""
PRIVATE = ("users_file", "table")
"""Of these, one of the other columns must be there by its name: their first row may be somebody's."""
_SAFE = re.compile(r"\w[\w.-]*")
"""Names that no shell takes for anything else: what is offered is pasted into a command line."""


def completes(option: str) -> Callable[[typer.Context, str], list[str]]:
    """What the shell offers for an option that names a column."""

    def offered(context: typer.Context, incomplete: str) -> list[str]:
        found: dict[str, None] = {}
        with suppress(Exception):
            given = _given(context)
            for table, columns in TABLES.items():
                if option in columns and given.get(table) is not None:
                    needed = [str(given[name]) for name in columns if name != option and given.get(name)]
                    private = table in PRIVATE and context.command.name != "prior"
                    with suppress(Exception):  # the other table may still tell
                        names = _listed(Path(str(given[table])), needed, given)
                        if not private or set(names) & set(needed):
                            found |= dict.fromkeys(names)
        return [name for name in found if name.startswith(incomplete) and _SAFE.fullmatch(name)]

    return offered


def _given(context: typer.Context) -> dict[str, Any]:
    """What stands on the command line; an option that lacks its value keeps the rest from being assigned."""
    given: dict[str, Any] = {one.name or "": one.get_default(context) for one in context.command.params}
    given |= {name: value for name, value in context.params.items() if value is not None}
    arguments = [one.name for one in context.command.params if one.param_type_name == "argument"]
    return given | dict(zip(arguments, context.args, strict=False))


def _listed(path: Path, needed: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """The names of the columns of a file, if they may be shown."""
    from ..tables.header import may_be_listed

    if not path.is_file():  # a pipe can be read once, and not by us
        return []
    rows = _beginning(path, given)
    names = [name.strip() for name in rows[0]]
    values = {name: [row[k] for row in rows[1:]] for k, name in enumerate(names)}
    distinct = len(set(names)) == len(names)
    return names if distinct and may_be_listed(names, needed, lambda: values) else []


def _beginning(path: Path, given: Mapping[str, Any]) -> list[list[Any]]:
    """The header and the whole rows in the first bytes of a table of text or of JSON."""
    from ..tables.dialect import Dialect, encoding_of, separator_of
    from ..tables.files import kind_of
    from ..tables.unpack import is_gzip

    kind = kind_of(path)
    dialect = Dialect(separator=given.get("separator"), encoding=given.get("encoding"))
    encoding = encoding_of(path, dialect)
    packed = is_gzip(path)
    content = _unpacked(path) if packed else _first_bytes(path)
    text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding, "ignore")
    whole = path.stat().st_size < LOOKED_AT and not packed
    if kind in (".jsonl", ".ndjson", ".json"):
        lines = text.splitlines()
        records = json.loads(text) if kind == ".json" else map(json.loads, lines if whole else lines[:-1])
        tidy = list(records)
        return [list(tidy[0]), *([record.get(name) for name in tidy[0]] for record in tidy)]
    if kind not in (".csv", ".tsv"):
        return [[]]
    lines = text.splitlines(keepends=True)
    found = csv.reader(lines if whole else lines[:-1], delimiter=separator_of(path, kind, dialect))
    header, *below = [row for row in found if row]
    return [header, *(row for row in below if len(row) == len(header))]


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LOOKED_AT)


def _unpacked(path: Path) -> bytes:
    """What the first bytes of a gzip file hold, and not more than as many."""
    return zlib.decompressobj(wbits=31).decompress(_first_bytes(path), LOOKED_AT)
