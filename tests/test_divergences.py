"""Divergences against 50-digit sums, their limits, and what a user-defined one must satisfy."""

from __future__ import annotations

import math
import pickle

import cases
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv

NAMED: list[tuple[sv.FDivergence, dict[str, float]]] = [
    *((f, {}) for f in sv.DIVERGENCES.values()),
    *((sv.hockey_stick(g), {"gamma": g}) for g in (1.0, 1.7, 10.0)),
    *((sv.alpha(a), {"alpha": a}) for a in (-2.0, -0.5, 0.5, 2.0, 3.5)),
]
entries = st.lists(
    st.one_of(st.just(0.0), st.sampled_from([1e-12, 1e-5]), st.floats(1e-3, 1.0)),
    min_size=4,
    max_size=4,
).filter(lambda values: sum(values) > 1e-3)


@pytest.mark.parametrize(("f", "options"), NAMED, ids=lambda v: v.name if hasattr(v, "name") else "")
@given(entries, entries)
def test_value_is_the_50_digit_sum(
    f: sv.FDivergence, options: dict[str, float], p: list[float], x: list[float]
) -> None:
    law, released = np.array(p) / sum(p), np.array(x) / sum(x)
    exact = oracles.divergence_mpmath(law, released, f.name.split("(")[0], **options)
    # p and x sum to one only to 1e-16, which the two forms of f weigh differently by at most |f'(1)|;
    # powers of ratios up to 1e12 then lose relative digits as the exponent grows.
    assert float(f(law, released)) == pytest.approx(exact, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("f", [f for f, _ in NAMED], ids=lambda f: f.name)
def test_limits_are_the_limits_of_f(f: sv.FDivergence) -> None:
    small, large = np.array([1e-200]), np.array([1e200])
    with np.errstate(over="ignore"):
        near_zero, slope = float(f.f(small)[0]), float(f.f(large)[0]) / 1e200
    if math.isinf(f.at_zero):
        assert near_zero > 100
    else:
        assert near_zero == pytest.approx(f.at_zero, abs=1e-12)
    if math.isinf(f.at_infinity):
        assert slope > 100
    else:
        assert slope == pytest.approx(f.at_infinity, abs=1e-12)


@pytest.mark.parametrize("f", [f for f, _ in NAMED], ids=lambda f: f.name)
def test_point_mass_formula(f: sv.FDivergence) -> None:
    for t in (0.0, 1e-6, 0.3, 0.9999, 1.0):
        direct = float(f([1.0, 0.0], [t, 1 - t]))
        assert f.of_point_mass(t, 1 - t) == pytest.approx(direct, rel=1e-12, abs=1e-15)
    # Where 1 − t is below the doubles' resolution it is the second argument that counts.
    assert f.of_point_mass(1.0, 1e-30) == (math.inf if math.isinf(f.at_zero) else f.at_zero * 1e-30)


def test_known_values() -> None:
    p, x = [0.5, 0.5], [0.25, 0.75]
    assert float(sv.TV(p, x)) == 0.25
    assert float(sv.KL(p, x)) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert float(sv.CHI2(p, x)) == pytest.approx(0.0625 / 0.25 + 0.0625 / 0.75)
    assert float(sv.HELLINGER2([1, 0], [0, 1])) == 2
    assert float(sv.JS([1, 0], [0, 1])) == pytest.approx(math.log(2))
    assert math.isinf(sv.KL([1, 0], [0, 1]))
    assert math.isinf(sv.REVERSE_KL([1, 0], [0.5, 0.5]))
    assert float(sv.REVERSE_KL([0.5, 0.5], [1, 0])) == pytest.approx(math.log(2))


def test_relations_between_divergences() -> None:
    rng = np.random.default_rng(4)
    p, x = rng.dirichlet(np.ones(6), size=2)
    assert float(sv.hockey_stick(1)(p, x)) == pytest.approx(float(sv.TV(p, x)))
    assert float(sv.alpha(2)(p, x)) == pytest.approx(float(sv.CHI2(p, x)) / 2)
    assert float(sv.alpha(0.5)(p, x)) == pytest.approx(2 * float(sv.HELLINGER2(p, x)))
    assert float(sv.REVERSE_KL(p, x)) == pytest.approx(float(sv.KL(x, p)))
    assert sv.alpha(0) is sv.REVERSE_KL


def test_zero_at_itself_and_for_many_rows() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=7)
    for f, _ in NAMED:
        assert np.all(f(p, p) == 0)
        assert f(p, p[0]).shape == (7,)


def test_a_user_defined_divergence_works_everywhere() -> None:
    le_cam = sv.FDivergence("le_cam", lambda t: (1 - t) ** 2 / (2 * t + 2), 0.5, 0.5)
    prior = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
    p = np.array([0.9, 0.1, 0.0])
    for make in sv.SAMPLERS.values():
        s = make(prior, 1.0)
        x = s.distribution(p)
        by_hand = sum((a - b) ** 2 / (2 * (a + b)) for a, b in zip(p, x, strict=True) if a + b > 0)
        assert float(s.divergence(p, le_cam)) == pytest.approx(by_hand, rel=1e-12)
        assert s.worst_case(le_cam) >= float(s.divergence(p, le_cam))


@pytest.mark.parametrize(
    ("f", "at_zero", "at_infinity", "message"),
    [
        (lambda t: t, 0.0, 1.0, r"f\(1\) = 0, got 1"),
        (lambda t: -((t - 1) ** 2), -1.0, 0.0, "convex"),
        (lambda t: np.sin(t - 1), -0.8, 0.0, "convex"),
        (lambda t: (t - 1) ** 2, 0.2, math.inf, "at_zero"),
        (lambda t: (t - 1) ** 2, 1.0, 7.0, "at_infinity"),
        (lambda t: (t - 1) ** 2, 5.0, math.inf, "at_zero"),
        (lambda t: abs(t - 1) / 2, 0.5, math.inf, "at_infinity"),
        (lambda t: abs(t - 1) / 2, "0.5", 0.5, "at_zero"),
        (lambda t: (t - 1) ** 2, math.nan, math.inf, "at_zero"),
        (lambda t: np.where(t < 0.5, np.nan, t - 1), 0.0, 1.0, "finite"),
        (lambda _: 0.0, 0.0, 0.0, "same shape"),
    ],
)
def test_a_bad_generator_is_refused(f: object, at_zero: float, at_infinity: float, message: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match=message):
        sv.FDivergence("mine", f, at_zero, at_infinity)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [1e-4, 1 - 1e-5, 0.049, 1.04, 50.0, math.nan])
def test_orders_that_lose_digits_are_refused(order: float) -> None:
    with pytest.raises(sv.errors.ParameterError, match="order"):
        sv.alpha(order)


def test_the_nearest_orders_are_accepted_and_right() -> None:
    p, x = np.array([0.2, 0.8, 0.0]), np.array([0.5, 0.25, 0.25])
    for order in (0.05, -0.05, 0.95, 1.05, 40.0):
        exact = oracles.divergence_mpmath(p, x, "alpha", alpha=order)
        assert float(sv.alpha(order)(p, x)) == pytest.approx(exact, rel=1e-11)


def test_divergences_travel_to_other_processes() -> None:
    for f, _ in NAMED:
        assert pickle.loads(pickle.dumps(f)) == f  # noqa: S301


def test_a_name_is_not_a_divergence() -> None:
    s = sv.kernel_clip(sv.Prior.uniform(["a", "b"]), 1.0)
    for call in (
        lambda: s.divergence([1, 0], "tv"),  # type: ignore[arg-type]
        lambda: s.worst_case("tv"),  # type: ignore[arg-type]
        lambda: sv.compare(s, s, "tv"),  # type: ignore[arg-type]
    ):
        with pytest.raises(
            sv.errors.ParameterError, match=r"f must be a divergence such as sottovoce\.TV, got str"
        ):
            call()


def test_hockey_stick_below_one_is_refused() -> None:
    with pytest.raises(sv.errors.ParameterError, match=r"gamma must be at least 1, got 0\.5"):
        sv.hockey_stick(0.5)


@pytest.mark.parametrize("f", cases.DIVERGENCES, ids=lambda f: f.name)
def test_the_slope_is_the_derivative_of_a_summand(f: sv.FDivergence) -> None:
    assert f.slope is not None
    p, h = 0.3, 1e-6
    for t in (0.05, 0.4, 0.9, 1.3, 2.7, 8.0):  # no kink of any of them
        x = p / t
        right, left = ((x + step) * float(f.f(np.array([p / (x + step)]))[0]) for step in (h * x, -h * x))
        # A central difference is wrong by about h² and by 2^-52/h, relative to values of at most 500.
        found = float(f.slope(np.array([t]))[0])
        assert found == pytest.approx((right - left) / (2 * h * x), rel=1e-6, abs=1e-7)


def test_a_slope_that_is_not_the_slope_is_refused() -> None:
    for wrong in (lambda t: t, lambda t: 2 - 2 * t, lambda t: np.full_like(t, np.nan)):
        with pytest.raises(sv.errors.ParameterError, match="have slope ="):
            sv.FDivergence("mine", sv.KL.f, 1.0, math.inf, wrong)
    mine = sv.FDivergence("mine", sv.KL.f, 1.0, math.inf, lambda t: 1 - t)
    prior, users = sv.Prior(["a", "b"], [0.3, 0.7]), [[0.8, 0.2], [0.1, 0.9]]
    named, own = (sv.limit(prior, 1.0, users, divergence=f) for f in (sv.KL, mine))
    assert own.objective == named.objective
