"""Groups as a value: priors, mechanisms or users by group, with the column that names the groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from .errors import ParameterError

Thing = TypeVar("Thing")
EVERYBODY = "all"
"""The name of the only group where there is no group column."""


@dataclass(frozen=True)
class Groups(Mapping[str, Thing], Generic[Thing]):
    """Things by the name of their group; without a group column (`by`) there is one, of everybody."""

    things: Mapping[str, Thing]
    by: str | None = None

    @classmethod
    def of(cls, given: Thing | Mapping[str, Thing], by: str | None) -> Groups[Thing]:
        """Return what a caller passed: one thing, or with a group column one per group."""
        if isinstance(given, Mapping) != (by is not None):
            raise ParameterError("one per group needs the group column by=, and only then")
        return cls(given if isinstance(given, Mapping) else {EVERYBODY: given}, by)

    @property
    def returned(self) -> Thing | dict[str, Thing]:
        """What a caller gets: the one thing, or with a group column a dict of them."""
        return self.things[EVERYBODY] if self.by is None else dict(self.things)

    def __getitem__(self, name: str) -> Thing:
        return self.things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.things)

    def __len__(self) -> int:
        return len(self.things)
