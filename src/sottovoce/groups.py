"""Groups as a value: priors, mechanisms or users by group, with the column that names the groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from .errors import ParameterError

Thing = TypeVar("Thing")
EVERYBODY = "all"
"""The name of the only group where there is no group column."""


class Groups(dict[str, Thing], Generic[Thing]):
    """Things by the name of their group; without a group column (`by`) there is one, of everybody."""

    def __init__(self, things: Mapping[str, Thing], by: str | None = None) -> None:
        super().__init__(things)
        self.by = by

    @classmethod
    def of(cls, given: Thing | Mapping[str, Thing], by: str | None) -> Groups[Thing]:
        """Return what a caller passed: one thing, or with a group column one per group."""
        if isinstance(given, Mapping) != (by is not None):
            raise ParameterError("one per group needs the group column by=, and only then")
        return cls(given if isinstance(given, Mapping) else {EVERYBODY: given}, by)

    @property
    def returned(self) -> Thing | dict[str, Thing]:
        """What a caller gets: the one thing, or with a group column a dict of them."""
        return self[EVERYBODY] if self.by is None else dict(self)
