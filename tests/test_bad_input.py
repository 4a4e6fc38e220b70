"""Bad input: one clear error that names parameter, condition and public value, and never private data."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sottovoce as sv
from sottovoce import errors

PRIOR = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])


@pytest.mark.parametrize("make", sv.SAMPLERS.values(), ids=list(sv.SAMPLERS))
@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (0, "epsilon must be greater than 0, got 0"),
        (-1.5, "epsilon must be greater than 0, got -1.5"),
        (math.nan, "epsilon must be finite, got nan"),
        (math.inf, "epsilon must be finite, got inf"),
        (101, "epsilon must be at most 100, got 101"),
        ("2", "epsilon must be a number, got '2'"),
        (None, "epsilon must be a number, got None"),
        (True, "epsilon must be a number, got True"),
        ([1, 2], r"epsilon must be a number, got \[1, 2\]"),
    ],
)
def test_epsilon(make: object, epsilon: object, message: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match=message):
        make(PRIOR, epsilon)  # type: ignore[operator]


@pytest.mark.parametrize("epsilon", [2, np.float32(2), Fraction(2), Decimal(2), np.int64(2)])
def test_any_kind_of_number_is_a_number(epsilon: object) -> None:
    assert sv.kernel_clip(PRIOR, epsilon).epsilon == 2.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sv.blend(PRIOR, 1, weight=-0.1), "weight must lie between 0 and 1, got -0.1"),
        (lambda: sv.blend(PRIOR, 1, weight=math.nan), "weight must be finite, got nan"),
        (lambda: sv.local_minimax(PRIOR, 1, gamma=0.9), "gamma must be at least 1, got 0.9"),
        (lambda: sv.minimax_kernel([0.2, 0.8], 1), "prior must be a Prior, got list"),  # type: ignore[arg-type]
        (lambda: sv.bounds.optimal_utility(PRIOR, 0, sv.TV), "epsilon must be greater than 0"),
        (lambda: sv.compare([[1, 0, 0]], []), "samplers and divergences must not be empty"),
        (lambda: sv.fitted(PRIOR, 1, np.eye(3)), "users must be a PublicUsers, got ndarray"),  # type: ignore[arg-type]
        (lambda: sv.PublicUsers(np.eye(3), source=" "), "source must say in words"),
    ],
)
def test_options(call: object, message: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("make", [sv.kernel_clip, sv.minimax_kernel], ids=["clip", "kernel"])
@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.5], "the prior has 3 categories, p has 2"),
        ([0.5, 0.5, 0.1], r"p must sum to 1: 1 of 1 users do not, the furthest sums to 1 \+ 0.1;"),
        ([0.5, 0.4, 0.0], r"sums to 1 - 0.1;"),
        ([[0.5, 0.5, 0.0], [3, 4, 5]], "1 of 2 users do not"),
        ([1.5, -0.5, 0.0], "1 of 1 users have negative values"),
        ([math.nan, 0.5, 0.5], "1 of 1 users have values that are not finite"),
        ([math.inf, 0.5, 0.5], "1 of 1 users have values that are not finite"),
        ([0.0, 0.0, 0.0], "p must not be empty: 1 of 1 users have no mass"),
        (np.zeros((2, 3, 3)), "one or two dimensions, got 3"),
        (["x", "y", "z"], "vector, an .* array of numbers"),
        ([[0.5, 0.5, 0], [1]], "vector, an .* array of numbers"),
        (np.array([0.5, 0.5, 0j]), "vector, an .* array of numbers"),
        (sparse.csr_array(np.array([[1.5, -0.5, 0.0]])), "negative"),
        (sparse.csr_array(np.array([[1j, 0, 0]])), "real numbers, got dtype complex128"),
        (sparse.csr_array((1, 3)), "no mass"),
        (np.empty((0, 3)), "at least one user"),
        (np.ma.array([0.2, 0.3, 0.5], mask=[True, False, False]), "masked"),
        (
            sparse.coo_array(
                (np.array([200, 57], dtype=np.uint8), (np.array([0, 0]), np.array([1, 1]))), shape=(1, 3)
            ),
            r"sums to 1 \+ 256",
        ),
        (None, "vector, an .* array of numbers"),
    ],
)
def test_users(make: object, p: object, message: str) -> None:
    s = make(PRIOR, 1.0)  # type: ignore[operator]
    for call in (s.distribution, lambda p: s.divergence(p, sv.TV), lambda p: s.divergence(p, sv.KL)):
        with pytest.raises(sv.errors.UserDataError, match=message):
            call(p)


@given(
    st.lists(
        st.one_of(st.floats(allow_nan=True), st.floats(-2, 2), st.sampled_from([0.123456789, -77.25])),
        min_size=3,
        max_size=3,
    )
)
def test_a_message_never_repeats_a_private_value(p: list[float]) -> None:
    """Only row counts and the size of the sum may appear, whatever is thrown in."""
    text = ""
    try:
        sv.kernel_clip(PRIOR, 1.0).distribution(p)
    except sv.errors.UserDataError as problem:
        text = str(problem) + repr(problem.__cause__ or "") + repr(problem.__context__ or "")
    total = sum(value for value in p if math.isfinite(value))
    allowed = {"0", "1", "2", "3", "4", "5", "6", f"{abs(total - 1):.3g}"}
    assert set(re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", text)) <= allowed, text


def test_records() -> None:
    with pytest.raises(sv.errors.UserDataError, match="records must not be empty"):
        PRIOR.frequencies([])
    with pytest.raises(sv.errors.UserDataError, match="2 of 3 are not") as caught:
        PRIOR.frequencies(["a", "secret", "hidden"])
    assert "secret" not in str(caught.value)


ERRORS = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, BaseException)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_a_value_error(error: type) -> None:
    assert issubclass(error, sv.errors.SottovoceError)
    assert issubclass(error, ValueError)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_public_and_in_the_list(error: type) -> None:
    assert getattr(errors, error.__name__) is error
    assert re.search(rf"\b{error.__name__}\b", errors.__doc__ or "")


def test_every_public_error_is_looked_at() -> None:
    public = {name for name in vars(errors) if name.endswith("Error")}
    assert public == {error.__name__ for error in ERRORS}
