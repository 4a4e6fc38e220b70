"""Which categories of a public table are near each other: columns of positions, parents or coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ParameterError, TableError
from ..geometry import Geometry, Line, Tree
from ..prior import Prior
from .query import LOOKED_AT, Source, name_as_text, quoted, require

KEYS = ("position", "parent", "latitude", "longitude")


@dataclass(frozen=True)
class Near:
    """The columns: one position, or a parent and its parents, or latitude and longitude."""

    position: str | None = None
    parents: tuple[str, ...] = ()
    latitude: str | None = None
    longitude: str | None = None

    def __post_init__(self) -> None:
        kinds = [self.position is not None, bool(self.parents), self.latitude is not None]
        if sum(kinds) != 1 or (self.latitude is None) != (self.longitude is None):
            raise ParameterError(
                "near takes position=COLUMN, or parent=COLUMN (once for each level, the lowest first), or "
                "latitude=COLUMN,longitude=COLUMN"
            )

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return tuple(name for name in (self.position, self.latitude, self.longitude) if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.numbers, *self.parents)


def read_near(source: Source, item: str, near: Near) -> dict[str, dict[str, object]]:
    """The value of every category, as text, in each column; one value for each."""
    require(near.columns, list(source.types), lambda: source.rows(f"SELECT * FROM source LIMIT {LOOKED_AT}"))
    found = {}
    for name in near.columns:
        kind, value = "VARCHAR", f"CAST({quoted(name)} AS VARCHAR)"
        if name in near.numbers:
            comma = source.dialect.decimal == "comma"
            text = f"replace({value}, ',', '.')" if comma else value
            kind, value = "DOUBLE", f"nullif(TRY_CAST({text} AS DOUBLE), 'NaN'::DOUBLE)"
        rows = source.rows(
            f"SELECT {name_as_text(source, item)} AS i, min({value}), max({value}), "
            f"count(*) FILTER ({value} IS NULL) FROM source WHERE {quoted(item)} IS NOT NULL GROUP BY i"
        )
        several = sum(least != most for _, least, most, _ in rows)
        missing = sum(bool(lacking) for _, _, _, lacking in rows)
        if several or missing:
            what = "no number" if kind == "DOUBLE" else "no value"
            raise TableError(
                f"column {name!r} must hold one value for each category: {missing} have {what} in some row, "
                f"{several} have several"
            )
        found[name] = {str(category): value for category, value, _, _ in rows}
    return found


def geometry_of(prior: Prior, near: Near, values: Mapping[str, Mapping[str, object]], item: str) -> Geometry:
    """The geometry of the categories of a prior; a position may be the category itself."""

    def column(name: str) -> list[object]:
        if name == item and name not in values:
            return list(prior.categories)
        known = values.get(name)
        if known is None:
            raise TableError(
                f"a prior that is made already has no column {name!r}: pass its table, or {item!r}"
            )
        lacking = sum(str(category) not in known for category in prior.categories)
        if lacking:
            raise TableError(f"column {name!r} has no value for {lacking} of {len(prior)} categories")
        return [known[str(category)] for category in prior.categories]

    def numbers(name: str) -> list[float]:
        held = column(name)
        try:
            return [float(str(value).replace("_", "?")) for value in held]  # 1_0 is no number
        except ValueError:
            raise TableError(f"column {name!r} must hold numbers") from None

    if near.position is not None:
        return Line(numbers(near.position))
    if near.parents:
        return Tree.from_levels(*map(column, near.parents))
    return Tree.from_points(*map(numbers, near.numbers))
