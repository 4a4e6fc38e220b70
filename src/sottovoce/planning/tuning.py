"""Choosing a blend weight on public users: the older way, in the place of which `fitted` stands."""

from __future__ import annotations

import warnings

import numpy as np

from .. import _validate
from ..divergences import TV, FDivergence
from ..errors import ParameterError
from ..prior import Prior
from ..samplers.base import ClipSampler
from ..samplers.catalogue import blend
from .public_users import PublicUsers
from .summary import summarise

OBJECTIVES = ("mean", "median", "p90", "p99", "maximum")
WEIGHTS = np.linspace(0.0, 1.0, 41)


def tuned(
    prior: Prior,
    epsilon: float,
    public_users: PublicUsers,
    *,
    objective: str = "p99",
    divergence: FDivergence = TV,
) -> ClipSampler:
    """The `blend` whose weight serves the public users best. Deprecated: use `fitted`.

    The weight is the one of 0, 0.025, …, 1 with the smallest `objective` (mean, median, p90, p99 or
    maximum over the users) of the divergence; the smaller weight on ties.

    Guarantees
        ε-locally private and keeps the prior, like every blend. Choosing costs no privacy as long as
        the users really are public: only a `PublicUsers` is accepted, never a bare array.

    Raises
        ParameterError: public_users is not a PublicUsers, or the objective is unknown.

    It gives a DeprecationWarning, and will be removed.
    """
    warnings.warn(
        "tuned is going to be removed: use fitted(prior, epsilon, public_users), which needs no public users "
        "either; for a blend of your own choice, blend(prior, epsilon, weight=...)",
        DeprecationWarning,
        stacklevel=2,
    )
    if not isinstance(public_users, PublicUsers):
        raise ParameterError(
            f"public_users must be a PublicUsers, got {type(public_users).__name__}: a weight chosen on "
            f"private users leaks; wrap public data as PublicUsers(p, source=...) or use "
            f"PublicUsers.simulated(prior)"
        )
    _validate.one_of(OBJECTIVES, objective=objective)
    scores = []
    for weight in WEIGHTS:
        values = blend(prior, epsilon, weight=weight).divergence(public_users.p, divergence)
        scores.append(summarise(values)[objective])
    best = blend(prior, epsilon, weight=float(WEIGHTS[int(np.argmin(scores))]))
    return ClipSampler("tuned", prior, best.epsilon, best.floor, best.options)
