"""How tables are counted and read, as records: checked in one place, and handed on whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Unpack

from .. import _validate
from ..errors import ParameterError


class PriorKeywords(TypedDict, total=False):
    """The keyword arguments that become `PriorOptions`."""

    smoothing: float
    top: int | None
    other: str | None
    minimum_rows: int
    minimum_users: int
    average: str
    merge_rare: str | None
    rare_below: float | None


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
    merge_rare: str | None = None
    rare_below: float | None = None

    def __post_init__(self) -> None:
        if self.rare_below is not None:
            _validate.positive(rare_below=self.rare_below)
        if self.merge_rare is not None and not isinstance(self.merge_rare, str):
            raise ParameterError("merge_rare must be the name of a category")
        if self.merge_rare is None and self.rare_below is not None:
            raise ParameterError(
                "rare_below says what is rare, and needs a category for it: merge_rare=, --merge rare=NAME"
            )
        if self.merge_rare is not None and self.drop_zero:
            raise ParameterError(
                "--drop-zero and --merge both say what becomes of categories without a count: choose one"
            )
        if None not in (self.merge_rare, self.other) and self.merge_rare != self.other:
            raise ParameterError(
                "the category for rare items and that for items beyond the top have different names: give one"
            )
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
        _validate.one_of(("error", "drop", "other", "prior"), unknown=self.unknown)
        _validate.one_of(("error", "skip"), empty=self.empty)
        _validate.one_of(("error", "drop"), unknown_groups=self.unknown_groups)
        _validate.one_of(("error", "allow"), several_groups=self.several_groups)
        _validate.whole_at_least(0, minimum_rows=self.minimum_rows)


AS_COUNTED = PriorOptions()
"""Nothing added, nothing left out."""

REFUSE_ALL = ReadingOptions()
"""Whatever does not fit is an error."""


def release_options(**options: Unpack[ReadingKeywords]) -> ReadingOptions:
    """The options of a release: by default every user gets a row, whatever the user has."""
    return ReadingOptions(**{"unknown": "prior", **options})  # type: ignore[arg-type]  # as they are named there
