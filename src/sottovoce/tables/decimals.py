"""Amounts that are written as text: with a decimal point or a decimal comma, perhaps with thousands apart.

1,500 is one and a half in one country and fifteen hundred in another, so a comma is read only where somebody
has said which mark is the decimal one; the other mark may then stand between thousands, in groups of three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_MARKS = {"point": (".", ","), "comma": (",", ".")}
LOOKED_AT = 10_000
"""Rows that are looked at where a mark is not said."""
_END = r"(?:[eE][+-]?[0-9]{1,3})?$"


def _form(decimal: str) -> str:
    """How a number looks: digits, or thousands apart, then perhaps the decimal mark and digits."""
    mark, apart = (f"\\{one}" for one in _MARKS[decimal])
    whole = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{apart}[0-9]{{3}})+)"
    return rf"^[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+){_END}"


def _parsed(name: str, decimal: str) -> pl.Expr:
    """A column of text as doubles: not a number (NaN) where it is none under this mark, null where empty."""
    import polars as pl

    mark, apart = _MARKS[decimal]
    text = pl.col(name).str.strip_chars()
    plain = text.str.replace_all(apart, "", literal=True).str.replace(mark, ".", literal=True)
    fits = text.str.contains(_form(decimal))
    return pl.when(fits).then(plain).when(text.is_not_null()).then(pl.lit("nan")).cast(pl.Float64)


def with_numbers(table: pl.LazyFrame, columns: Sequence[str], decimal: str | None) -> pl.LazyFrame:
    """The table with these columns as doubles, where they are text and the decimal mark was said."""
    import polars as pl

    if decimal is None:
        return table
    schema = table.collect_schema()
    texts = [name for name in columns if schema.get(name) == pl.String]
    return table.with_columns(_parsed(name, decimal).alias(name) for name in texts)


def advice(table: pl.LazyFrame, columns: Sequence[str]) -> str:
    """What to say where columns of text are no plain numbers: which decimal mark would make them some."""
    import polars as pl

    schema = table.collect_schema()
    texts = [name for name in columns if schema[name] == pl.String]
    fits = [decimal for decimal in _MARKS if texts and _fits(table, texts, decimal)]
    if fits == ["comma"]:
        return "; it has decimal commas: say --decimal comma"
    if fits == ["point"]:
        return "; it has commas between thousands: say --decimal point"
    if fits:
        return (
            "; its commas may be decimal or separate thousands: say --decimal comma (1,500 is one and a "
            "half) or --decimal point (1,500 is fifteen hundred)"
        )
    return ""


def may_be_thousands(table: pl.LazyFrame, columns: Sequence[str]) -> bool:
    """Whether there are points in the first rows of columns of text, and each stands before three digits."""
    import polars as pl

    schema = table.collect_schema()
    texts = [name for name in columns if schema[name] == pl.String]
    rows = table.select(texts).head(LOOKED_AT).collect()
    pointed = [column.filter(column.str.contains(".", literal=True)) for column in rows]
    thousands = r"^\s*[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]*)?\s*$"
    return any(map(len, pointed)) and all(bool(one.str.contains(thousands).all()) for one in pointed)


def _fits(table: pl.LazyFrame, columns: Sequence[str], decimal: str) -> bool:
    """Whether all these columns are numbers under this decimal mark."""
    import polars as pl

    wrong = [_parsed(name, decimal).is_nan().any() for name in columns]
    return not table.select(pl.any_horizontal(wrong)).collect(engine="streaming").item()


def as_doubles(column: pl.Series, decimal: str | None) -> pl.Series:
    """A column of text as doubles, to look at: null where it is no number; unsaid, either mark will do."""
    import polars as pl

    table = pl.DataFrame({"it": column.str.strip_chars().str.strip_suffix("%")})  # a share, to be asked about
    ways = [_parsed("it", one) for one in ([decimal] if decimal else _MARKS)]
    found = [table.select(way.fill_nan(None)).to_series() for way in ways]
    return min(found, key=lambda values: values.null_count())
