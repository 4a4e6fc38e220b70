"""Floors: the box they span holds the prior where promised, and prior_minimax is its own optimum."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import sottovoce as sv
from sottovoce.samplers import floors


@given(strategies.priors(most=25), strategies.epsilons, st.floats(0, 1), st.floats(1, 1e6))
def test_prior_keeping_floors_hold_the_prior(q: np.ndarray, epsilon: float, w: float, g: float) -> None:
    a = math.exp(epsilon)
    for c in (
        floors.relative(q, epsilon),
        floors.kernel(q, epsilon),
        floors.prior_minimax(q, epsilon),
        floors.blend(q, epsilon, w),
        floors.local(q, epsilon, g),
    ):
        assert np.all(c <= q * (1 + 1e-13))
        assert np.all(a * c >= q * (1 - 1e-13))


@given(strategies.priors(least=2, most=10), st.floats(0.05, 8.0))
def test_prior_minimax_is_the_linear_program(q: np.ndarray, epsilon: float) -> None:
    worst = sv.prior_minimax(sv.Prior(range(len(q)), q), epsilon).worst_case(sv.TV)
    assert worst == pytest.approx(oracles.minimax_with_prior_lp(q, epsilon), abs=1e-9)


@given(strategies.priors(least=1, most=40), strategies.epsilons)
def test_prior_minimax_solves_its_equation(q: np.ndarray, epsilon: float) -> None:
    a = math.exp(epsilon)
    c = floors.prior_minimax(q, epsilon)
    free = (c > q / a * (1 + 1e-12)) & (c < q * (1 - 1e-12))
    if free.any():  # θ is visible in any unclipped coordinate
        theta = float(a * c[free][0])
        assert_allclose(a * c[free], theta, rtol=1e-12)
        assert theta * (1 - 1 / a) + c.sum() == pytest.approx(1, abs=1e-12)


def test_prior_minimax_reaches_the_optimum_without_prior_where_the_prior_is_mild() -> None:
    q, epsilon = np.array([0.2, 0.25, 0.25, 0.3]), 2.0
    a = math.exp(epsilon)
    assert q.min() >= 1 / (a + 3)
    assert q.max() <= a / (a + 3)
    worst = sv.prior_minimax(sv.Prior(range(4), q), epsilon).worst_case(sv.TV)
    assert worst == pytest.approx(oracles.minimax_without_prior(4, epsilon), abs=1e-14)


def test_prior_minimax_beats_the_papers_linear_optimum() -> None:
    prior = sv.Prior(range(4), [0.1, 0.2, 0.3, 0.4])
    assert sv.prior_minimax(prior, 3.0).worst_case(sv.TV) < sv.bounds.optimal_utility(prior, 3.0, sv.TV)


def test_local_minimax_is_the_relative_mollifier_up_to_its_reach() -> None:
    q, epsilon = np.array([0.1, 0.9]), 2.0
    reach = math.exp(epsilon / 2)
    assert_allclose(floors.local(q, epsilon, reach * (1 - 1e-9)), floors.relative(q, epsilon))
    assert_allclose(floors.local(q, epsilon, reach * (1 + 1e-9)), floors.relative(q, epsilon), rtol=1e-8)
    assert_allclose(floors.local(q, epsilon, 20.0), q * 21 / (20 + math.exp(2)), rtol=1e-15)


def test_local_minimax_leaves_the_users_it_promises_to_leave() -> None:
    prior = sv.Prior(range(3), [0.2, 0.3, 0.5])
    near = np.array([0.25, 0.35, 0.4])  # within a factor 1.25 of the prior, 1.25² < e
    assert_allclose(sv.local_minimax(prior, 1.0, gamma=1.25).distribution(near), near, rtol=1e-14)


def test_local_minimax_is_the_best_multiple_of_a_uniform_prior_for_its_users() -> None:
    # Among floors c = κq, the worst TV over users with q/γ ≤ p ≤ γq is least at the stated κ. The
    # worst users put γq on a set of mass 1/(γ+1) and q/γ elsewhere.
    epsilon, gamma = 1.0, 4.0
    q = np.full(5, 0.2)  # 1/(γ+1) = 0.2: one category at γq, four at q/γ
    worst_user = np.array([gamma * 0.2, *[0.2 / gamma] * 4])
    assert worst_user.sum() == pytest.approx(1)
    stated = floors.local(q, epsilon, gamma)[0] / 0.2

    def worst(kappa: float) -> float:
        return float(
            sv.ClipSampler("c", sv.Prior(range(5), q), epsilon, kappa * q).divergence(worst_user, sv.TV)
        )

    grid = np.linspace(math.exp(-epsilon), 1, 400)
    assert worst(stated) <= min(worst(kappa) for kappa in grid) + 1e-12


def test_blend_ends_at_its_two_parents() -> None:
    q = np.array([0.05, 0.15, 0.8])
    assert_allclose(floors.blend(q, 2.0, 0.0), floors.relative(q, 2.0), rtol=1e-14)
    assert_allclose(floors.blend(q, 2.0, 1.0), floors.kernel(q, 2.0), rtol=1e-14)
    middle = np.sqrt(floors.relative(q, 2.0) * floors.kernel(q, 2.0))
    assert_allclose(floors.blend(q, 2.0, 0.5), middle, rtol=1e-14)
