"""Users that may be looked at: published, or invented.

A parameter chosen by looking at private users is a function of their data, released without any noise: a
leak. So users have to be declared public, in words, before anything can be chosen on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validate
from ..errors import ParameterError
from ..prior import Prior
from ..users import Users, UsersLike


@dataclass(frozen=True, eq=False, repr=False)
class PublicUsers:
    """Users whose data are public (a published data set) or invented (a simulation).

    Parameters
        p: their distributions, a vector, an (m, n) array or scipy.sparse.
        source: where they come from, in words a reviewer can check.

    >>> PublicUsers([[0.5, 0.5], [1.0, 0.0]], source="a published survey")
    PublicUsers(2 users, source='a published survey')
    """

    p: UsersLike
    source: str

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source.strip():
            raise ParameterError(f"source must say in words where the users come from, got {self.source!r}")
        if isinstance(self.p, Users):
            raise ParameterError(
                "p must not come from read_users, which reads private users; if these really are public, "
                "pass their .p and say so in source"
            )

    @classmethod
    def simulated(
        cls,
        prior: Prior,
        *,
        users: int = 2000,
        records: int = 50,
        concentration: float = 10.0,
        rng: np.random.Generator | None = None,
    ) -> PublicUsers:
        """Invent users around the prior: p ~ Dirichlet(concentration·q), seen through `records` draws.

        A small concentration makes users who differ much from the prior, a large one users like it.
        Memory and time grow with users × categories.
        """
        if not (isinstance(users, int) and isinstance(records, int) and users >= 1 and records >= 1):
            raise ParameterError(f"users and records must be whole numbers ≥ 1, got {users} and {records}")
        alpha = _validate.positive(concentration=concentration) * prior.probabilities
        generator = np.random.default_rng() if rng is None else rng
        taste = generator.gamma(alpha, size=(users, len(prior)))
        taste = np.maximum(taste, np.finfo(np.float64).tiny)
        taste /= taste.sum(axis=1, keepdims=True)
        counts = generator.multinomial(records, taste)
        from scipy import sparse

        source = f"simulated: {users} users of {records} records, concentration {concentration:g}"
        return cls(sparse.csr_array(counts / records), source)

    def __repr__(self) -> str:
        rows: Any = self.p  # numpy says the shape of sparse rows too, but does not list them as array-like
        shape: tuple[int, ...] = np.shape(rows)
        return f"PublicUsers({shape[0] if len(shape) > 1 else 1} users, source={self.source!r})"
