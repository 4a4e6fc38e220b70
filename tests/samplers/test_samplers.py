"""Contract tests: every sampler crossed with every awkward case and every divergence."""

from __future__ import annotations

import math

import cases
import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given
from kinds import of_kind
from numpy.testing import assert_allclose

import sottovoce as sv

KEEPS_PRIOR = (
    "minimax_kernel",
    "kernel_clip",
    "prior_minimax",
    "blend",
    "power_caps",
    "relative_mollifier",
    "local_minimax",
)
every_sampler = pytest.mark.parametrize("name", sv.SAMPLERS)
every_prior = pytest.mark.parametrize("case", cases.PRIORS)


@every_sampler
@every_prior
@pytest.mark.parametrize(
    "epsilon",
    [
        epsilon if epsilon in (1e-9, 0.5, 8.0, 100.0) else pytest.param(epsilon, marks=pytest.mark.full)
        for epsilon in cases.EPSILONS
    ],
)
def test_contract(name: str, case: str, epsilon: float) -> None:
    """Law, privacy, prior, divergences and worst case of one sampler in one awkward situation."""
    q = cases.PRIORS[case]
    s = sv.SAMPLERS[name](cases.prior(q), epsilon)
    everyone = np.array(list(cases.users(q).values()))
    x = s.distribution(everyone)
    a = math.exp(epsilon)

    assert_allclose(x.sum(axis=1), 1, rtol=0, atol=1e-13)
    assert np.all(x >= s.floor * (1 - 1e-13) - 1e-300)
    assert np.all(x <= a * s.floor * (1 + 1e-13))
    released = x.max(axis=0) > 0
    ratio = x.max(axis=0)[released] / x.min(axis=0)[released]
    assert np.log(ratio).max() <= epsilon + 1e-12  # the definition itself, over these users

    assert s.keeps_prior == bool(np.allclose(s.distribution(q), q, rtol=1e-12, atol=0))
    if name in KEEPS_PRIOR:
        assert s.keeps_prior

    for f in cases.DIVERGENCES:
        values, worst = s.divergence(everyone, f), s.worst_case(f)
        assert_allclose(values, f(everyone, x), rtol=1e-9, atol=1e-13)
        assert np.all(values <= worst * (1 + 1e-9) + 1e-12)
        assert np.all(values >= 0)


@every_sampler
@pytest.mark.parametrize("case", ["two, unsorted", "ties", "random 25", "smallest 1e-12"])
def test_permuting_the_categories_permutes_everything(name: str, case: str) -> None:
    q = cases.PRIORS[case]
    order = np.random.default_rng(3).permutation(len(q))
    names = [f"c{i}" for i in range(len(q))]
    s = sv.SAMPLERS[name](sv.Prior(names, q), 1.5)
    t = sv.SAMPLERS[name](sv.Prior([names[i] for i in order], q[order]), 1.5)
    p = np.array(list(cases.users(q).values()))
    assert_allclose(t.floor, s.floor[order], rtol=1e-13)
    assert_allclose(t.distribution(p[:, order]), s.distribution(p)[:, order], rtol=1e-12, atol=1e-16)
    for f in (sv.TV, sv.KL):
        assert t.worst_case(f) == pytest.approx(s.worst_case(f), rel=1e-12)
    if s.linear:
        assert_allclose(t.matrix(), s.matrix()[np.ix_(order, order)], rtol=1e-12)


@every_sampler
@pytest.mark.parametrize(
    ("case", "epsilon"),
    [
        pytest.param(case, epsilon, marks=[] if (case, epsilon) == ("ties", 1.2) else [pytest.mark.full])
        for case in ("two categories", "ties", "one dominant", "unsorted")
        for epsilon in (0.1, 1.2, 40.0)
    ],
)
@pytest.mark.parametrize("f", cases.DIVERGENCES, ids=lambda f: f.name)
def test_worst_case_is_found_by_search(name: str, case: str, f: sv.FDivergence, epsilon: float) -> None:
    q = cases.PRIORS[case]
    s = sv.SAMPLERS[name](cases.prior(q), epsilon)
    found = oracles.worst_case_dense_search(
        s.distribution, len(q), lambda p, x: float(f(p, x)), np.random.default_rng(0), tries=30
    )
    assert s.worst_case(f) == pytest.approx(found, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["minimax_kernel", "randomized_response", "rr_with_prior"])
@every_prior
def test_linear_samplers_are_their_matrix(name: str, case: str) -> None:
    q = cases.PRIORS[case]
    s = of_kind(sv.SAMPLERS[name](cases.prior(q), 1.0), sv.KernelSampler)
    k = s.matrix()
    p = np.array(list(cases.users(q).values()))
    assert s.linear
    assert oracles.ldp_epsilon(k) <= 1 + 1e-12
    assert_allclose(k.sum(axis=1), 1, rtol=0, atol=1e-13)
    assert_allclose(s.distribution(p), p @ k, rtol=1e-12, atol=1e-16)
    assert_allclose(np.diag(k), s.kernel.diagonal, rtol=1e-14)
    oracle = {
        "minimax_kernel": lambda: oracles.algorithm_1_any_order(q, 1.0),
        "randomized_response": lambda: oracles.randomized_response(len(q), 1.0),
        "rr_with_prior": lambda: oracles.rr_with_prior(q, 1.0),
    }[name]()
    assert_allclose(k, oracle, rtol=0, atol=1e-13)


@given(strategies.priors(most=15), strategies.epsilons)
def test_rr_with_prior_tells_the_truth_most_often(q: np.ndarray, epsilon: float) -> None:
    s = sv.rr_with_prior(sv.Prior(range(len(q)), q), epsilon)
    best = float(q @ np.diag(oracles.rr_with_prior(q, epsilon)))
    assert q @ s.kernel.diagonal == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_kernel_clip_is_never_worse_than_the_paper(count: int) -> None:
    """Random (p, f), 10⁴ in full: random prior, ε, user and divergence each time."""
    rng = np.random.default_rng(2025)
    measures = [*cases.DIVERGENCES, sv.alpha(-1.5), sv.hockey_stick(1.0)]
    per_prior = 20
    for _ in range(count // per_prior):
        n = int(rng.integers(2, 40))
        q = np.maximum(rng.dirichlet(np.full(n, 10 ** rng.uniform(-1, 1))), 1e-9)
        prior = sv.Prior(range(n), q / q.sum())
        epsilon = float(10 ** rng.uniform(-2, 1.2))
        p = rng.dirichlet(np.full(n, 10 ** rng.uniform(-1.5, 1)), size=per_prior) + 1e-300
        p = p / p.sum(axis=1, keepdims=True)
        f = measures[int(rng.integers(len(measures)))]
        ours = sv.kernel_clip(prior, epsilon).divergence(p, f)
        paper = sv.minimax_kernel(prior, epsilon).divergence(p, f)
        assert np.all((ours <= paper * (1 + 1e-12) + 1e-13) | (ours == paper))


@given(strategies.priors(most=12), strategies.epsilons)
def test_worst_cases_are_ordered(q: np.ndarray, epsilon: float) -> None:
    prior = sv.Prior(range(len(q)), q)
    for f in (sv.TV, sv.KL, sv.CHI2, sv.HELLINGER2, sv.JS):
        bound = sv.bounds.optimal_utility(prior, epsilon, f)
        slack = 1e-9 * bound + 1e-13
        paper = sv.minimax_kernel(prior, epsilon).worst_case(f)
        assert paper == pytest.approx(bound, abs=slack)
        assert sv.kernel_clip(prior, epsilon).worst_case(f) == pytest.approx(bound, abs=slack)
        best = sv.prior_minimax(prior, epsilon).worst_case(f)
        assert best <= bound + slack
        for name in ("relative_mollifier", "local_minimax", "blend"):
            assert best <= sv.SAMPLERS[name](prior, epsilon).worst_case(f) + slack
        assert sv.global_minimax(prior, epsilon).worst_case(f) <= best + slack


@pytest.mark.parametrize("n", [2, 3, 5, 8, 10])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_papers_bound_is_the_linear_program_over_all_kernels(n: int, epsilon: float) -> None:
    q = np.random.default_rng(n).dirichlet(np.ones(n)) * 0.9 + 0.1 / n
    ours = sv.bounds.optimal_utility(sv.Prior(range(n), q), epsilon, sv.TV)
    assert ours == pytest.approx(oracles.best_linear_tv(q, epsilon), abs=1e-8)
    a, least = math.exp(epsilon), q.min()
    assert ours == pytest.approx((1 - least) / (a * least + 1 - least), abs=1e-14)


def test_example_1_of_the_paper_with_its_true_values() -> None:
    """The paper prints 0.10 and 0.03 as Γ_TV; by its own formula Γ_TV is 0.119 and 0.931."""
    uniform, skewed = sv.Prior.uniform(["A", "B"]), sv.Prior(["A", "B"], [0.01, 0.99])
    assert sv.bounds.optimal_utility(uniform, 2.0, sv.TV) == pytest.approx(0.119, abs=5e-4)
    assert sv.bounds.optimal_utility(skewed, 2.0, sv.TV) == pytest.approx(0.931, abs=5e-4)
    p = [0.05, 0.95]  # what it prints is close to the distance at this one user
    assert sv.minimax_kernel(uniform, 2.0).divergence(p, sv.TV) == pytest.approx(0.107, abs=5e-4)
    assert sv.minimax_kernel(skewed, 2.0).divergence(p, sv.TV) == pytest.approx(0.038, abs=5e-4)


def test_synthetic_numbers_of_the_paper() -> None:
    """n = 100, ε = 8, ten seeded priors, TV at p_1 = 0.01 / 0.455 / 0.99, to four decimals."""
    wanted = np.linspace(1 / 100, 0.99, 100)[[0, 45, 99]]
    expected = {
        "minimax_kernel": (0.0395, 0.0629, 0.0994),
        "relative_mollifier": (0.0049, 0.1288, 0.4737),
        "kernel_clip": (0.0, 0.0, 0.0904),
    }
    users = np.tile(((1 - wanted) / 99)[:, None], (1, 100))
    users[:, 0] = wanted
    for name, values in expected.items():
        rounds = []
        for i in range(10):
            q = np.random.RandomState(42 + i).uniform(size=100)
            prior = sv.Prior(range(100), q / q.sum())
            rounds.append(sv.SAMPLERS[name](prior, 8.0).divergence(users, sv.TV))
        assert_allclose(np.mean(rounds, axis=0), values, rtol=0, atol=5e-5)


def test_the_papers_bound_keeps_its_digits_at_a_large_epsilon() -> None:
    prior = sv.Prior(["a", "b"], [0.3, 0.7])
    exact = 0.7 / (math.exp(40) * 0.3 + 0.7)
    assert sv.bounds.optimal_utility(prior, 40, sv.TV) == pytest.approx(exact, rel=1e-12)
    assert sv.minimax_kernel(prior, 40).worst_case(sv.TV) == pytest.approx(exact, rel=1e-12)
    assert math.isinf(sv.kernel_clip(prior, 40).worst_case(sv.REVERSE_KL))


@pytest.mark.parametrize("floor", [[0.9, 0.9, 0.9], [0.1, 0.1], [0.0, 0.5, 0.4], [0.01, 0.01, 0.01]])
def test_a_floor_without_room_is_refused(floor: list[float]) -> None:
    with pytest.raises(sv.errors.ParameterError, match="floor must hold one positive number per category"):
        sv.ClipSampler("mine", sv.Prior(range(3), [0.2, 0.3, 0.5]), 1.0, np.array(floor))


def test_rr_with_prior_takes_the_larger_set_when_two_are_equally_good() -> None:
    # With a = 2 and q = (1/2, 1/4, 1/4) every k tells the truth half the time.
    s = sv.rr_with_prior(sv.Prior(range(3), [0.5, 0.25, 0.25]), math.log(2))
    assert np.count_nonzero(s.floor) == 3


def test_nothing_but_a_clip_lacks_a_matrix() -> None:
    with pytest.raises(sv.errors.NotLinearError, match="kernel_clip is not one"):
        sv.kernel_clip(sv.Prior.uniform(["a", "b"]), 1.0).matrix()


def test_a_sampler_shows_its_options_and_no_data() -> None:
    prior = sv.Prior.uniform(["a", "b"])
    assert repr(sv.blend(prior, 1, weight=0.3)) == "<blend(weight=0.3) on 2 categories, epsilon=1>"
    assert isinstance(sv.blend(prior, 1), sv.Sampler)
    assert isinstance(sv.minimax_kernel(prior, 1), sv.Sampler)
