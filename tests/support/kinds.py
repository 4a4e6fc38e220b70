"""What a test knows about a value and its declared type does not say: checked, and then known."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def of_kind(value: object, kind: type[T]) -> T:
    """The value, which must be of this kind."""
    assert isinstance(value, kind), type(value)
    return value
