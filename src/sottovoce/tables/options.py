"""How tables are counted and read, as records: checked in one place, and handed on whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from .. import _validate


class PriorKeywords(TypedDict, total=False):
    """The keyword arguments that become `PriorOptions`."""

    smoothing: float
    top: int | None
    other: str | None
    minimum_rows: int
    minimum_users: int
    average: str


@dataclass(frozen=True)
class PriorOptions:
    """How counts become priors: see `build_prior`."""

    smoothing: float = 0.0
    top: int | None = None
    other: str | None = None
    minimum_rows: int = 0
    minimum_users: int = 0
    average: str = "rows"
    drop_zero: bool = False  # leave out categories that nothing was counted for

    def __post_init__(self) -> None:
        _validate.one_of(("rows", "users"), average=self.average)
        _validate.whole_at_least(0, minimum_rows=self.minimum_rows)
        _validate.whole_at_least(0, minimum_users=self.minimum_users)
        if self.top is not None:
            _validate.whole_at_least(1, top=self.top)


class ReadingKeywords(TypedDict, total=False):
    """The keyword arguments that become `ReadingOptions`."""

    unknown: str
    other: str
    empty: str
    unknown_groups: str
    several_groups: str
    minimum_rows: int


@dataclass(frozen=True)
class ReadingOptions:
    """What to do with items, users and groups that do not fit: see `read_users`."""

    unknown: str = "error"
    other: str = "other"
    empty: str = "error"
    unknown_groups: str = "error"
    several_groups: str = "error"
    minimum_rows: int = 0

    def __post_init__(self) -> None:
        _validate.one_of(("error", "drop", "other"), unknown=self.unknown)
        _validate.one_of(("error", "skip"), empty=self.empty)
        _validate.one_of(("error", "drop"), unknown_groups=self.unknown_groups)
        _validate.one_of(("error", "allow"), several_groups=self.several_groups)
        _validate.whole_at_least(0, minimum_rows=self.minimum_rows)


AS_COUNTED = PriorOptions()
"""Nothing added, nothing left out."""

REFUSE_ALL = ReadingOptions()
"""Whatever does not fit is an error."""
