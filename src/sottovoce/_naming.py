"""Names of groups and categories: what may be one, and which of them a user's records are."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import ParameterError, UserDataError

NEVER_GROUPS = ("user", "item", "weight", "count")
"""Names of columns that are never groups, wherever groups are made, saved, loaded or released."""


def is_text(value: object) -> bool:
    """Whether a value is text that can be written to a file: half a surrogate pair is not."""
    try:
        return isinstance(value, str) and (value.isascii() or len(value.encode()) > 0)
    except UnicodeEncodeError:
        return False


def group_column(by: object, *others: str | None) -> str:
    """Return the name of a group column, which must not be a column of items, users or amounts.

    A user's group is published in clear beside the release. `others` are the columns a table is read with.
    """
    if not isinstance(by, str) or not by.strip():
        raise ParameterError("by must be the name of a column")
    if by in others or unicodedata.normalize("NFKC", by).strip().casefold() in NEVER_GROUPS:
        raise ParameterError(
            f"column {by[:60]!r} cannot be a group: the group of a user is published in clear, and items, "
            f"users and amounts never are"
        )
    return by


def places(records: Iterable[Any], index: Mapping[Any, int], whose: str, advice: str) -> list[int]:
    """Where each of a user's records stands among the categories; of unknown ones how many, never which."""
    if isinstance(records, str | bytes | Mapping):
        raise UserDataError("records must be a list of categories; pass counts as p=, an array of integers")
    try:
        found = [index.get(record, -1) for record in records]
    except TypeError:
        found = None
    if found is None:
        raise UserDataError(f"records must be categories of the {whose}: some are not even names")
    if not found:
        raise UserDataError("records must not be empty")
    unknown = found.count(-1)
    if unknown:
        raise UserDataError(
            f"records must be categories of the {whose}: {unknown} of {len(found)} are not; {advice}"
        )
    return found
