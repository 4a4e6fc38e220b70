"""How many reports an estimate needs, before any of them is there."""

from __future__ import annotations

import math

import numpy as np

from .. import _validate
from .._validate import FloatArray
from ..errors import EstimateError
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler
from .estimation import check_level, quantile
from .model import Model, model_of


def how_many(
    mechanism: Mechanism | Sampler, error: float, level: float = 0.95, *, simultaneous: bool = False
) -> int:
    """Reports needed until the interval of every category is at most ± `error`, if users are like the prior.

    The least m with z²·(v_j + z²·r_j²/(2m))/m ≤ error² for every j, where v_j = Σ_z y_z W_zj² − q_j², y = qK,
    is the exact variance of one report's contribution and z the normal quantile of the level (for all
    categories at once with `simultaneous`).

    >>> from sottovoce import Prior, minimax_kernel
    >>> how_many(minimax_kernel(Prior(["a", "b"], [0.25, 0.75]), 1.0), error=0.01)
    79781
    """
    _validate.positive(error=error)
    check_level(level)
    model = model_of(mechanism)
    if model.kernel is None:
        raise EstimateError(
            f"{model.name} is a clip mechanism: its reports tell the released law, and no number of them "
            f"brings that nearer to the population; use minimax_kernel or randomized_response"
        )
    needed = reports_needed(*at_prior(model), error, level, len(model.prior) if simultaneous else 1)
    if needed is None:
        raise EstimateError("no number of reports will do: the error or epsilon is too small")
    return needed


def at_prior(model: Model) -> tuple[FloatArray, FloatArray]:
    """Variance of one report's contribution to each value and its reach, if users are like the prior."""
    with np.errstate(all="ignore"):
        if model.kernel is None:
            return model.prior * (1 - model.prior) / independent_samples(model), np.ones(len(model.prior))
        second, reach = model.kernel.inverse_columns(model.kernel.apply(model.prior))
        return np.maximum(second - model.prior**2, 0.0), reach


def independent_samples(model: Model) -> int:
    """How many independent draws one user reports, if users are like the prior.

    All samples, if the prior is kept: then they are draws from it. Otherwise one, which is on the safe side.
    """
    return model.samples if model.source is not None and model.source.keeps_prior else 1


def reports_needed(
    variance: FloatArray, reach: FloatArray, error: float, level: float, comparisons: int = 1
) -> int | None:
    """The least m with z²·(v_j + z²·r_j²/(2m))/m ≤ error² for every j; None if that is beyond all counts."""
    with np.errstate(all="ignore"):
        z = quantile(level, comparisons)
        step = (error / z) ** 2 if z > 0 else math.inf
        needed = float(((variance + np.sqrt(variance**2 + 2 * z * z * step * reach**2)) / (2 * step)).max())
    return max(2, math.ceil(needed)) if needed < _validate.LARGEST_COUNT else None
