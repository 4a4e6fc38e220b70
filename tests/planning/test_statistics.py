"""One number per user, summarised."""

from __future__ import annotations

import math

import numpy as np

from sottovoce.planning.statistics import summarise


def test_infinite_divergences_are_not_interpolated() -> None:
    values = np.array([0.0, 1.0, math.inf, math.inf])
    assert summarise(values) == {
        "mean": math.inf,
        "median": math.inf,
        "p90": math.inf,
        "p99": math.inf,
        "maximum": math.inf,
    }
    assert summarise(np.array([0.0, 1.0, 2.0, math.inf]))["median"] == 2.0
