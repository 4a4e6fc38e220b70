"""Names of groups and categories: what may be one, and which of them a user's records are."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

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
    """Return the name of a group column, which must be no column of items, users or amounts (`others`)."""
    if not isinstance(by, str) or not by.strip():
        raise ParameterError("by must be the name of a column")
    if by in others or unicodedata.normalize("NFKC", by).strip().casefold() in NEVER_GROUPS:
        raise ParameterError(
            f"column {by[:60]!r} cannot be a group: the group of a user is published in clear, and items, "
            f"users and amounts never are"
        )
    return by


def known_places(records: Iterable[Any], index: Mapping[Any, int]) -> list[int]:
    """The indices of a user's records among the categories; unknown records count for nothing."""
    return [i for i in _indices(records, index) if i >= 0]


def places(records: Iterable[Any], index: Mapping[Any, int], whose: str, advice: str) -> list[int]:
    """The same, but refused if there is no record, or an unknown one: how many, never which."""
    indices = _indices(records, index)
    if not indices:
        raise UserDataError("records must not be empty")
    if unknown := indices.count(-1):
        counted = f"{unknown} of {len(indices)} are not"
        raise UserDataError(f"records must be categories of the {whose}: {counted}; {advice}")
    return indices


def unknown_records(records: Iterable[Any], index: Mapping[Any, int]) -> int:
    """How many of a user's records are no category."""
    return _indices(records, index).count(-1)


def _indices(records: Iterable[Any], index: Mapping[Any, int]) -> list[int]:
    """The index of each record among the categories; -1 for an unknown one, whatever it is."""
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise UserDataError("records must be a list of categories; pass counts as p=, an array of integers")
    if getattr(records, "ndim", 1) != 1:
        raise UserDataError("records must be one user's list of categories, got a table")
    listed = list(records)
    if _is_a_vector(listed):
        raise UserDataError(
            "records must be names of categories, got floats: pass a distribution as p=, and integers that "
            "became floats beside a missing value as integers"
        )
    return [_index(record, index) for record in listed]


def _is_a_vector(records: list[Any]) -> bool:
    """Whether all are floats, so that they are a distribution in the wrong argument, and no names.

    A missing value is a float to pandas. Where nothing but missing values is left, they are the user's
    content, which refuses nothing.
    """
    named = (record for record in records if record is not None and not _is_missing(record))
    return _is_float(next(named, None)) and all(map(_is_float, named))


def _is_float(record: Any) -> bool:
    return isinstance(record, float | np.floating)


def _is_missing(record: Any) -> bool:
    return bool(_is_float(record) and record != record)


def _index(record: Any, index: Mapping[Any, int]) -> int:
    try:
        return index.get(record, -1)
    except TypeError:  # what has no hash is no name
        return -1
