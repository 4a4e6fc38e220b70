"""What a client accepts, whatever a mechanism file says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ..errors import ParameterError
from ..prior import Category
from ..samplers.joint import MOST_SAMPLES

_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Policy:
    """What a client accepts, whatever a file says.

    Parameters
        max_epsilon: the largest ε, or "any". It may be left out where the digest is stated: one of the two
            must be, so that nobody's ε comes from a stranger's file by mistake.
        max_categories: the most categories, in all groups of a file together.
        digest: the one file that is expected, as 64 hexadecimal digits, or None for any. For a file of groups
            it is the digest of the whole file: its group column, its group names and every mechanism.
        max_samples: the most samples that one release gives; 1 refuses mechanisms that release tuples.
        require_public_prior: refuse a mechanism that says its prior was made from the users it serves.
        categories: the names that are expected, in any order; a file with others, with fewer or with more is
            refused. Whoever writes the file cannot choose then what is asked.
    """

    max_epsilon: Fraction | int | float | str | None = None
    max_categories: int = 10_000_000
    digest: str | None = None
    require_public_prior: bool = False
    max_samples: int = MOST_SAMPLES
    categories: Iterable[Category] | None = None

    def __post_init__(self) -> None:
        if self.max_epsilon is None and self.digest is None:
            raise ParameterError(
                "a policy needs max_epsilon, the largest ε that may be spent, or the digest of the file; "
                "Policy(max_epsilon='any') accepts what the file says"
            )
        if self.categories is not None:
            object.__setattr__(self, "categories", _names(self.categories))
        if self.max_epsilon not in (None, "any"):
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

    @property
    def limit(self) -> Fraction | None:
        """The largest ε as a fraction; None for any."""
        return None if self.max_epsilon in (None, "any") else Fraction(self.max_epsilon)


ANY = Policy(max_epsilon="any")
"""Accepts every file that certifies itself: for programs that release nothing."""


def checked_policy(policy: object) -> Policy:
    """The policy that a file is held against; there is no default."""
    if isinstance(policy, Policy):
        return policy
    raise ParameterError(
        "a policy is needed, such as policy=Policy(max_epsilon=2) or Policy(digest=…): it decides how much "
        "privacy a file may cost; Policy(max_epsilon='any') accepts what the file says"
    )


def _names(categories: object) -> frozenset[Category]:
    """The expected names: all text or all integers, each once."""
    if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
        raise ParameterError("categories must be a list of names")
    names = list(categories)
    if set(map(type, names)) not in ({str}, {int}) or len(set(names)) != len(names):
        raise ParameterError("categories must be names, all strings or all integers, each once")
    return frozenset(names)
