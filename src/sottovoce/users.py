"""Private users as a value: sparse rows, whose they are, and which categories they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._validate import FloatArray
from .errors import UserDataError
from .prior import Category, Prior

if TYPE_CHECKING:
    from scipy import sparse


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

    def averages(self) -> tuple[FloatArray, ...]:
        """What these users give together, up to a factor: one share each, and pooled by their amounts."""
        shared: FloatArray = np.asarray(self.p.sum(axis=0)).ravel()
        if self.amounts is None:
            return (shared,)
        pooled: FloatArray = np.asarray(self.p.T @ self.amounts)
        return shared, pooled


def rows_for(users: object, prior: Prior) -> object:
    """The rows of `users`, refused if they were read against other categories or another order."""
    if not isinstance(users, Users):
        return users
    if tuple(users.categories) != tuple(prior.categories):
        raise UserDataError(
            "users were read against other categories than the sampler's prior has; read them again with it"
        )
    return users.p


def is_average(q: FloatArray, users: int, sums: Sequence[FloatArray]) -> bool:
    """Whether q is one of several users' sums, normalised, perhaps smoothed: then it was made from them."""
    if users < 2 or q.min() == q.max():  # one user may well be like the public; a uniform prior tells nothing
        return False
    return any(_same_shape(q, one) for one in sums)


def _same_shape(q: FloatArray, sums: FloatArray) -> bool:
    """q ∝ sums or, where four categories make it no coincidence, q ∝ sums + smoothing."""
    shares = sums / sums.sum()
    if np.allclose(shares, q, rtol=1e-9, atol=0):
        return True
    low, high = int(q.argmin()), int(q.argmax())
    spread = shares[high] - shares[low]
    if len(q) < 4 or spread <= 0:
        return False
    slope = (q[high] - q[low]) / spread
    return bool(slope < 1 and np.allclose(q[low] + slope * (shares - shares[low]), q, rtol=1e-9, atol=0))
