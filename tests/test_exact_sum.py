"""The sum that is rounded once, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sottovoce.prior import exact_sum

RNG = np.random.default_rng(11)
CASES = {
    "uniform": np.full(1000, 0.001),
    "many decades": 10.0 ** RNG.uniform(-320, 0, 500),
    "halfway between two doubles": np.array([1.0, 2.0**-53, 2.0**-53, 2.0**-106]),
    "halfway, to even": np.array([1.0, 2.0**-53]),
    "one and the smallest": np.array([1.0, 5e-324]),
    "zeros": np.zeros(3),
    "all ones": np.ones(70_000),
    "counts": np.array([3.0, 1e16, 1.0, 1.0]),
    "negative": np.array([1.0, -1e-17, -1.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_exact_sum_rounded_once(name: str) -> None:
    values = CASES[name]
    exact = sum(map(Fraction, values.tolist()), Fraction(0))
    assert exact_sum(values) == float(exact)
    assert exact_sum(values[::-1].copy()) == float(exact)


def test_what_is_no_number_stays_none_and_too_much_is_refused_as_by_fsum() -> None:
    assert math.isnan(exact_sum(np.array([0.5, np.nan])))
    assert exact_sum(np.array([0.5, np.inf])) == math.inf
    with pytest.raises(OverflowError):
        exact_sum(np.array([1.7e308, 1.7e308]))
    assert exact_sum(np.zeros(0)) == 0
