"""What a client accepts, whatever a mechanism file says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from ..errors import ParameterError
from ..samplers.joint import MOST_SAMPLES

_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Policy:
    """What a client accepts, whatever a file says.

    Parameters
        max_epsilon: the largest ε, or None for any.
        max_categories: the most categories.
        digest: the one file that is expected, as 64 hexadecimal digits, or None for any. For a file of groups
            it is the digest of the whole file: its group column, its group names and every mechanism.
        max_samples: the most samples that one release gives; 1 refuses mechanisms that release tuples.
        require_public_prior: refuse a mechanism that says its prior was made from the users it serves.
    """

    max_epsilon: Fraction | int | float | str | None = None
    max_categories: int = 10_000_000
    digest: str | None = None
    require_public_prior: bool = False
    max_samples: int = MOST_SAMPLES

    def __post_init__(self) -> None:
        if self.max_epsilon is not None:
            try:
                limit = Fraction(self.max_epsilon)
            except (ValueError, OverflowError, TypeError, ZeroDivisionError):
                limit = Fraction(0)
            if limit <= 0:
                raise ParameterError(f"max_epsilon must be a number above 0, got {self.max_epsilon!r}")
        if type(self.max_categories) is not int or self.max_categories < 1:
            raise ParameterError(f"max_categories must be a whole number ≥ 1, got {self.max_categories!r}")
        if type(self.max_samples) is not int or not 1 <= self.max_samples <= MOST_SAMPLES:
            raise ParameterError(
                f"max_samples must be a whole number from 1 to {MOST_SAMPLES}, got {self.max_samples!r}"
            )
        if self.digest is not None and not (type(self.digest) is str and _HEX.fullmatch(self.digest)):
            raise ParameterError("digest must be the 64 hexadecimal digits, in lower case, of a whole digest")
        if type(self.require_public_prior) is not bool:
            raise ParameterError("require_public_prior must be True or False")
