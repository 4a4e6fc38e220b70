"""The rows of a file with those of a user beside each other, for the reader's process: cheaper than grouping.

Grouping by user and item writes both names once a cell, and whoever takes the cells looks all of them up
again. Here the rows are sorted by a hash of the user, and neighbours with the same user become a run, which
has the user's name once; items and groups of text become codes. `run_cells` counts them. The hash only brings
rows together: where two users share one, their rows make more runs, and the counts are the same.

All rows are in memory then, 40 to 140 bytes each, where groups take memory by the cell. So `suits` looks at
the table first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .files import kind_of
from .unpack import is_gzip

if TYPE_CHECKING:
    import polars as pl

_BITS = 32
"""Bits of the hash: fewer sort faster, and of ten million users one in several hundred shares one."""
MOST_ROWS = 50_000_000
"""Rows of a Parquet or JSON file from which on it is grouped: they would take 2 to 7 GiB."""
MOST_BYTES = 1 << 30
"""Bytes of a CSV file from which on it is grouped; its rows are not known before they are read."""
SAMPLE = 1 << 18
"""Rows that tell whether most rows of a table are cells of their own."""


def suits(records: pl.LazyFrame, path: Path) -> bool:
    """Whether runs are the better way: the table is not too large, and few rows fall into one cell."""
    import polars as pl

    if kind_of(path) in (".csv", ".tsv"):
        small = path.stat().st_size <= MOST_BYTES and not is_gzip(path)
    else:
        small = records.select(pl.len()).collect().item() <= MOST_ROWS
    if not small:
        return False
    cells, rows = records.head(SAMPLE).select(pl.struct(pl.all()).n_unique(), rows=pl.len()).collect().row(0)
    return bool(2 * cells >= rows)


def sorted_runs(records: pl.LazyFrame, options: dict[str, Any]) -> tuple[pl.DataFrame, ...]:
    """Three kinds of tables: runs, records, and for each column of text its names.

    Runs have the columns key_user and rows; records, in the same order, key_item and maybe key_group, each
    the name itself or its code. Names have code_item and name_item, or those of the group, a row per name
    that is there. `records` has the keys alone, `options` say how polars computes.
    """
    import polars as pl

    kinds = records.collect_schema()
    keys = [name for name in kinds.names() if name != "key_user"]
    coded = [name for name in keys if kinds[name] in (pl.String, pl.Categorical, pl.Enum)]
    place = (pl.col("key_user").hash() % (1 << _BITS)).cast(pl.UInt32)
    texts = [pl.col(name).cast(pl.Categorical) for name in coded if kinds[name] == pl.String]
    table = records.with_columns(*texts, place=place).sort("place").collect(**options)
    runs = table["key_user"].rle().struct.unnest().select(key_user="value", rows="len")
    if kinds["key_user"] in (pl.Categorical, pl.Enum):  # each part of it would have all names
        runs = runs.with_columns(pl.col("key_user").cast(pl.String))
    names = [_names(table[name], name.removeprefix("key_")) for name in coded]
    return runs, table.select(keys).with_columns(pl.col(coded).to_physical()), *names


def _names(column: pl.Series, key: str) -> pl.DataFrame:
    """The distinct names of a column of categories, and their codes."""
    import polars as pl

    names = column.unique()
    codes = names.to_physical().cast(pl.UInt32)
    return pl.DataFrame({f"code_{key}": codes, f"name_{key}": names.cast(pl.String)})
