"""Which columns of a table mean what: groups, users, items, and what is added up."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _naming
from ..errors import ParameterError


@dataclass(frozen=True)
class Columns:
    """Which columns mean what; several items are the columns of a wide table, one per category."""

    item: str | tuple[str, ...]
    user: str | None = None
    weight: str | None = None
    by: str | None = None
    top_by: str | None = None
    lenient: bool = False  # a row without an item or an amount counts for nothing, and its user is there

    def __post_init__(self) -> None:
        if not self.long and (self.weight is not None or self.top_by is not None):
            raise ParameterError("a wide table has its amounts in the category columns: leave the weight out")
        if not self.item:
            raise ParameterError("item must name a column, or the columns of a wide table")
        if self.by is not None:
            items = (self.item,) if isinstance(self.item, str) else self.item
            _naming.group_column(self.by, self.user, self.weight, self.top_by, *items)

    @property
    def long(self) -> bool:
        """Whether there is a row per record, and not a column per category."""
        return isinstance(self.item, str)

    def keys(self) -> dict[str, str]:
        """What names things: the group, the user, the item."""
        named = {"group": self.by, "user": self.user, "item": self.item if self.long else "item"}
        return {key: name for key, name in named.items() if isinstance(name, str)}

    def sums(self) -> dict[str, str]:
        """What is added up."""
        named = {"amount": self.weight if self.long else "amount", "score": self.top_by}
        return {key: name for key, name in named.items() if name is not None}

    def names(self) -> list[str]:
        """The columns that name a group, a user or an item."""
        return [name for key, name in self.keys().items() if self.long or key != "item"]

    def amounts(self) -> list[str]:
        """The columns that hold numbers."""
        return list(self.sums().values()) if isinstance(self.item, str) else list(self.item)

    def needed(self) -> list[str]:
        """Every column that has to be there, once."""
        if self.long:
            return list(dict.fromkeys([*self.keys().values(), *self.sums().values()]))
        return list(dict.fromkeys([*(n for n in (self.by, self.user) if n is not None), *self.item]))
