"""Tuning, which `fitted` replaces, looks at public users only, finds the best weight on them, and warns."""

from __future__ import annotations

import numpy as np
import pytest
from kinds import of_kind
from scipy import sparse

import sottovoce as sv

pytestmark = pytest.mark.filterwarnings("ignore:tuned is going to be removed:DeprecationWarning")
PRIOR = sv.Prior.from_counts({"a": 60, "b": 25, "c": 10, "d": 4, "e": 1})


@pytest.mark.parametrize("objective", ["mean", "median", "p90", "p99", "maximum"])
def test_no_weight_on_the_grid_is_better(objective: str) -> None:
    crowd = sv.PublicUsers.simulated(PRIOR, users=300, rng=np.random.default_rng(2))
    best = sv.tuned(PRIOR, 2.0, crowd, objective=objective, divergence=sv.KL)
    quantile = {"median": 0.5, "p90": 0.9, "p99": 0.99, "maximum": 1.0}

    def score(s: sv.Sampler) -> float:
        values = s.divergence(crowd.p, sv.KL)
        return float(values.mean() if objective == "mean" else np.quantile(values, quantile[objective]))

    for weight in np.linspace(0, 1, 21):
        assert score(best) <= score(sv.blend(PRIOR, 2.0, weight=weight)) + 1e-12
    assert best.keeps_prior
    assert best.name == "tuned"
    assert 0 <= best.options["weight"] <= 1


def test_far_users_want_the_kernel_and_near_users_the_mollifier() -> None:
    far = sv.PublicUsers(np.eye(5), source="invented")
    near = sv.PublicUsers.simulated(
        PRIOR, users=200, records=2000, concentration=300.0, rng=np.random.default_rng(0)
    )
    assert sv.tuned(PRIOR, 1.0, far, objective="maximum").options["weight"] == 1.0
    assert sv.tuned(PRIOR, 1.0, near, objective="mean").options["weight"] < 0.2


def test_private_users_cannot_be_used_by_accident() -> None:
    users = sv.Users(("u",), sparse.csr_array(np.eye(5)[:1]), PRIOR.categories)
    for private in (np.eye(5), [[0.2] * 5], users):
        with pytest.raises(sv.ParameterError, match="a weight chosen on private users leaks"):
            sv.tuned(PRIOR, 1.0, private)  # type: ignore[arg-type]
    with pytest.raises(sv.ParameterError, match="p must not come from read_users"):
        sv.PublicUsers(users, source="a table")  # type: ignore[arg-type]


def test_simulated_users_scatter_around_the_prior() -> None:
    crowd = sv.PublicUsers.simulated(PRIOR, users=20_000, records=10, rng=np.random.default_rng(1))
    mean = np.asarray(of_kind(crowd.p, sparse.csr_array).mean(axis=0)).ravel()
    # A Dirichlet-multinomial mean: standard deviation of one user is at most 0.5/√(1+10/11…), so the
    # mean of 20,000 users is within 5 × 0.5/√20000 = 0.018.
    assert np.abs(mean - PRIOR.probabilities).max() < 0.018
    assert repr(crowd).startswith("PublicUsers(20000 users, source='simulated")


def test_unknown_objective_and_bad_sizes() -> None:
    crowd = sv.PublicUsers(np.eye(5), source="invented")
    with pytest.raises(sv.ParameterError, match="objective must be one of mean, median"):
        sv.tuned(PRIOR, 1.0, crowd, objective="best")
    with pytest.raises(sv.ParameterError, match="users and records must be whole numbers ≥ 1, got 0 and 5"):
        sv.PublicUsers.simulated(PRIOR, users=0, records=5)


def test_it_says_what_to_use_instead() -> None:
    crowd = sv.PublicUsers(np.eye(5), source="invented")
    with pytest.warns(DeprecationWarning, match=r"use fitted\(prior, epsilon, public_users\)"):
        sv.tuned(PRIOR, 1.0, crowd)
