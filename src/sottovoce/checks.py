"""One line per check of an option or a name: the clean value, or an error that names what was wrong.

What is checked here is public and may be repeated in a message; private data are checked in `records`.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import ParameterError, Setting

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.intp]

LARGEST_EPSILON = 100.0
"""Above this a floor q·e^-epsilon could fall below the doubles' range, and nobody would call it privacy."""

SUM_TOLERANCE = 1e-9
"""How far a distribution's sum may be from one: far above rounding, far below a real mistake."""


def real(**named: object) -> float:
    """Return the one named value as a finite float."""
    ((name, value),) = named.items()
    if isinstance(value, bool | np.bool_ | str | bytes | bytearray):
        raise ParameterError(Setting(name), f" must be a number, got {value!r}")
    given: Any = value  # whether it is a number is what is asked
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(Setting(name), f" must be a number, got {_short(value)}") from None
    if not math.isfinite(number):
        raise ParameterError(Setting(name), f" must be finite, got {number}")
    return number


def positive(**named: object) -> float:
    """Return the one named value as a float greater than zero."""
    return _bounded(named, "be greater than 0", lambda number: number > 0)


def at_least(least: float, **named: object) -> float:
    """Return the one named value as a float no smaller than `least`."""
    return _bounded(named, f"be at least {least}", lambda number: number >= least)


def fraction(**named: object) -> float:
    """Return the one named value as a float in [0, 1]."""
    return _bounded(named, "lie between 0 and 1", lambda number: 0 <= number <= 1)


def _bounded(named: dict[str, object], condition: str, holds: Callable[[float], bool]) -> float:
    number = real(**named)
    if not holds(number):
        raise ParameterError(Setting(next(iter(named))), f" must {condition}, got {number}")
    return number


def whole_at_least(least: int, **named: object) -> int:
    """Return the one named value as an integer no smaller than `least`."""
    ((name, value),) = named.items()
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(Setting(name), f" must be an integer of at least {least}, got {_short(value)}")
    return int(value)


def privacy(epsilon: object) -> float:
    """Return epsilon as a float in (0, LARGEST_EPSILON]."""
    number = positive(epsilon=epsilon)
    if number > LARGEST_EPSILON:
        most = f"at most {LARGEST_EPSILON:g}, got {number}: a larger value protects nothing"
        raise ParameterError(Setting("epsilon"), f" must be {most}")
    return number


def one_of(choices: tuple[str, ...], **named: object) -> str:
    """Return the one named value, which must be among `choices`."""
    ((name, value),) = named.items()
    if value not in choices:
        raise ParameterError(Setting(name), f" must be one of {', '.join(choices)}, got {_short(value)}")
    return str(value)


def _short(value: object) -> str:
    """A public value for a message, cut so that a wrong argument cannot flood the screen."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- names of groups --------------------------------------------------------------------------------------

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
