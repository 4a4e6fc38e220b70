"""What summarises one number per user: the statistics of a row, and the sum that ranks samplers."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..checks import FloatArray

STATISTICS = ("mean", "median", "p90", "p99", "maximum", "worst_case")
"""The numbers of a row, by name; all are over the users but the worst case, of any user."""


def summarise(values: FloatArray) -> dict[str, float]:
    """Mean, median, 90th and 99th percentile and maximum of one number per user.

    Percentiles interpolate linearly, except that with infinite values among the users they are order
    statistics (the next larger value): between a number and infinity there is nothing to interpolate.
    """
    method: Literal["linear", "higher"] = "linear" if np.all(np.isfinite(values)) else "higher"
    median, p90, p99 = np.quantile(values, np.array([0.5, 0.9, 0.99]), method=method)
    return {
        "mean": float(values.mean()),
        "median": float(median),
        "p90": float(p90),
        "p99": float(p99),
        "maximum": float(values.max()),
    }


def weighed(mean: float, maximum: float, tail: float) -> float:
    """mean + tail·maximum, which ranks samplers; with tail = 0 even an infinite maximum is ignored."""
    return mean + (tail * maximum if tail else 0.0)
