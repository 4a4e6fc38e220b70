"""Private users as a value: sparse rows, whose they are, and which categories they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _html
from ._validate import FloatArray
from .errors import UserDataError
from .prior import Category

if TYPE_CHECKING:
    from scipy import sparse

    from .prior import Prior
    from .release.mechanism import Mechanism

UsersLike: TypeAlias = "npt.ArrayLike | sparse.sparray[Any, Any] | sparse.spmatrix[Any]"
"""Rows over the categories, one per user: a vector (one user), an (m, n) array, or scipy.sparse."""
Categories: TypeAlias = "Prior | Mechanism"
"""What users are read against."""


@dataclass(frozen=True, eq=False, repr=False)
class Users:
    """One distribution per user over the categories of a prior. Printing one shows sizes, no data."""

    ids: tuple[Category, ...]
    p: sparse.csr_array[np.float64]
    categories: Sequence[Category]
    dropped: int = 0  # rows left out because the prior does not know their item
    refused: int = 0  # users left out because they have no usable record
    moved: int = 0  # rows whose item the prior does not know, counted as its "other" category
    amounts: FloatArray | None = None  # each user's total, before it became a distribution

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Users({len(self.ids)} users over {self.p.shape[1]} categories)"

    def _repr_html_(self) -> str:
        """What a notebook shows: sizes, and nothing of what anybody holds."""
        rows: list[tuple[str, object]] = [
            ("users", f"{len(self.ids):,}"),
            ("categories", f"{self.p.shape[1]:,}"),
            ("rows left out: their item is no category", f"{self.dropped:,}"),
            ("rows counted as another category", f"{self.moved:,}"),
            ("users left out: no usable record", f"{self.refused:,}"),
        ]
        return _html.facts("Users", rows)


def rows_for(users: UsersLike | Users, known: Categories) -> UsersLike:
    """The rows of `users`, refused if they were read against other categories or another order."""
    if not isinstance(users, Users):
        return users
    mine, theirs = users.categories, known.categories
    if mine is not theirs and (len(mine) != len(theirs) or tuple(mine) != tuple(theirs)):
        raise UserDataError(
            "users were read against other categories than the prior or mechanism has; read them with it"
        )
    return users.p
