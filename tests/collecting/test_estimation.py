"""From reports to the population: unbiased, with honest errors, and refused where it cannot be."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import LinearConstraint, minimize

import sottovoce as sv
from sottovoce.collecting.estimate import project
from sottovoce.collecting.model import CertifiedKernel, model_of

LINEAR = {"minimax_kernel": sv.minimax_kernel, "randomized_response": sv.randomized_response}
PRIORS = {
    "uniform": np.full(12, 1 / 12),
    "zipf": 1 / np.arange(1, 21) / (1 / np.arange(1, 21)).sum(),
    "films": np.array([20, 16, 12, 10, 8, 7, 6, 5, 4, 3, 2.5, 2, 1.5, 1.2, 0.8, 0.5, 0.3, 0.2]) / 100,
}


def matrix(name: str, q: np.ndarray, epsilon: float) -> np.ndarray:
    """K from the oracles: the paper's recursion, or randomized response by its definition."""
    if name == "minimax_kernel":
        return oracles.algorithm_1_any_order(q, epsilon)
    a, n = math.exp(epsilon), len(q)
    return np.where(np.eye(n, dtype=bool), a, 1.0) / (a + n - 1)


def sampler(name: str, q: np.ndarray, epsilon: float) -> sv.Sampler:
    return LINEAR[name](sv.Prior(range(len(q)), q / q.sum()), epsilon)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("n", [1, 2, 3, 17, 60])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_columns_of_the_inverse(name: str, n: int, epsilon: float) -> None:
    rng = np.random.default_rng(n)
    q, y = rng.dirichlet(np.ones(n)) + 1e-4, rng.dirichlet(np.ones(n))
    q /= q.sum()
    k = matrix(name, q, epsilon)
    w = np.linalg.inv(k)
    kernel = sampler(name, q, epsilon).kernel  # type: ignore[attr-defined]
    second, reach = kernel.inverse_columns(y)
    np.testing.assert_allclose(second, (y[:, None] * w**2).sum(axis=0), rtol=1e-8)
    np.testing.assert_allclose(reach, w.max(axis=0) - w.min(axis=0), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(kernel.inverse(y), y @ w, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize(
    "epsilon", [2.0, *(pytest.param(epsilon, marks=pytest.mark.full) for epsilon in (0.5, 5.0))]
)
def test_unbiased_and_covering(name: str, kind: str, epsilon: float) -> None:
    """2,000 collections of 50,000 reports: no bias in any category, intervals that cover as they say."""
    collections, reports = 2000, 50_000
    q = PRIORS[kind]
    rng = np.random.default_rng([len(q), int(10 * epsilon), len(name)])
    population = 0.8 * q + 0.2 * rng.dirichlet(np.ones(len(q)))
    released = population @ matrix(name, q, epsilon)
    made = sampler(name, q, epsilon)
    errors, inside, together = np.zeros((collections, len(q))), np.zeros(len(q)), 0
    for i, counts in enumerate(rng.multinomial(reports, released / released.sum(), size=collections)):
        found = sv.estimate(made, counts)
        errors[i] = found.values - population
        within = np.abs(errors[i]) <= found.half_widths()
        inside += within
        low, high = found.interval()
        assert np.all((low <= population) & (population <= high) | ~within)  # what is cut off is impossible
        low, high = found.interval(simultaneous=True)
        together += bool(np.all((low <= population) & (population <= high)))
    deviation = errors.std(axis=0, ddof=1) / math.sqrt(collections)
    assert np.all(np.abs(errors.mean(axis=0)) <= 4 * deviation)
    assert np.all((inside / collections >= 0.93) & (inside / collections <= 0.97))
    assert together / collections >= 0.93  # Bonferroni: at least the level, up to 4 deviations of 0.5 %


@pytest.mark.parametrize("name", LINEAR)
def test_rare_categories_have_honest_intervals(name: str) -> None:
    """About four reports of the rarest category: the interval still covers, also when there is none."""
    q = np.array([0.5, 0.3, 0.199, 0.001])
    made = sampler(name, q, 6.0)
    rng = np.random.default_rng(6)
    expected = made.distribution(q)
    inside, drawn = 0, rng.multinomial(int(4 / expected[3]), expected, size=2000)
    assert (drawn[:, 3] == 0).sum() > 10
    for counts in drawn:
        low, high = (bound[3] for bound in sv.estimate(made, counts).interval())
        assert high > low
        inside += low <= q[3] <= high
    assert inside / 2000 >= 0.93


@pytest.mark.parametrize(
    ("q", "epsilon", "reports"),
    [([0.002, 0.998], 1.0, 500), ([0.01, 0.99], 2.0, 200), ([0.001, 0.3, 0.699], 2.0, 1000)],
)
def test_a_rare_category_does_not_make_the_common_ones_look_certain(
    q: list[float], epsilon: float, reports: int
) -> None:
    made = sampler("minimax_kernel", np.array(q), epsilon)
    rng = np.random.default_rng(7)
    inside = np.zeros(len(q))
    for counts in rng.multinomial(reports, made.distribution(q), size=1000):
        found = sv.estimate(made, counts)
        low, high = found.interval()
        inside += (low <= q) & (np.array(q) <= high)
        if len(q) == 2:  # p₂ = 1 − p₁: the same error
            assert found.standard_errors[0] == pytest.approx(found.standard_errors[1])
    assert (inside / 1000).min() >= 0.93


def test_the_band_holds_for_many_rare_categories() -> None:
    q = 1 / np.arange(1, 101)
    q /= q.sum()
    made = sampler("minimax_kernel", q, 2.0)
    together = 0
    for counts in np.random.default_rng(9).multinomial(3000, made.distribution(q), size=1000):
        low, high = sv.estimate(made, counts).interval(simultaneous=True)
        together += bool(np.all((low <= q) & (q <= high)))
    assert together / 1000 >= 0.92  # nominally 0.95; three deviations of 0.7 % below it


def test_one_category_is_certain() -> None:
    one = sv.Prior(["a"], [1.0])
    for made in (sv.minimax_kernel(one, 1.0), sv.randomized_response(one, 1.0), sv.kernel_clip(one, 1.0)):
        found = sv.estimate(made, ["a"] * 10)
        assert found.values.tolist() == [1.0]
        assert found.standard_errors.tolist() == [0.0]
        assert found.moved_by(1 / found.reports) == 0


def test_unbiased_through_the_certified_mechanism() -> None:
    q = PRIORS["films"]
    mechanism = sv.certify(sampler("minimax_kernel", q, 2.0))
    rng = np.random.default_rng(3)
    users = rng.dirichlet(20 * q, size=200_000)
    found = sv.estimate(mechanism, list(mechanism.release_many(users)))
    gap = np.abs(found.values - users.mean(axis=0)) / found.standard_errors
    assert gap.max() < 5.5  # 18 categories, chance 1e-6 (operating-system randomness)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("n", [2, 100, 10_000])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_expected_counts_give_the_population_back(name: str, n: int, epsilon: float) -> None:
    rng = np.random.default_rng(n)
    q = rng.dirichlet(np.ones(n)) + 0.01 / n
    q /= q.sum()
    population = rng.dirichlet(np.ones(n))
    made = sampler(name, q, epsilon)
    found = sv.estimate(made, 1e6 * made.distribution(population))
    assert np.abs(found.values - population).max() < 1e-9


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_many_categories_come_back_too(n: int) -> None:
    rng = np.random.default_rng(0)
    q = rng.random(n) + 1e-3
    population = rng.dirichlet(np.ones(n))
    made = sampler("minimax_kernel", q, 2.0)
    found = sv.estimate(made, 1e6 * made.distribution(population))
    assert np.abs(found.values - population).max() < 1e-10  # the bound the guide states
    assert abs(found.values.sum() - 1) < 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_the_inverse_undoes_the_integers_that_were_shipped(epsilon: float) -> None:
    q = PRIORS["films"]
    mechanism = sv.certify(sampler("minimax_kernel", q, epsilon))
    laws = [mechanism.law(records=[place]) for place in range(len(q))]
    population = np.random.default_rng(1).dirichlet(np.ones(len(q)))
    released = np.array([[float(share) for share in law] for law in laws])
    kernel = model_of(mechanism).kernel
    assert isinstance(kernel, CertifiedKernel)
    np.testing.assert_allclose(kernel.apply(population), population @ released, rtol=1e-14)
    found = sv.estimate(mechanism, 1e9 * (population @ released))
    assert np.abs(found.values - population).max() < 1e-15 * 100 / epsilon  # rounding of y, times 1/λ
    response = sv.certify(sampler("randomized_response", q, epsilon))
    shares = np.array([[float(s) for s in response.law(records=[place])] for place in range(len(q))])
    assert np.abs(sv.estimate(response, 1e9 * (population @ shares)).values - population).max() < 1e-11


def test_the_correction_matters_for_many_categories() -> None:
    n = 1000
    q = 1 / np.arange(1, n + 1)
    kernel = model_of(sv.certify(sampler("minimax_kernel", q / q.sum(), 0.05))).kernel
    assert isinstance(kernel, CertifiedKernel)
    population = np.random.default_rng(0).dirichlet(np.ones(n))
    released = kernel.apply(population)
    corrected, closed = (np.abs(one.inverse(released) - population).max() for one in (kernel, kernel.closed))
    assert corrected < closed / 5  # the integers differ from the closed form by more than rounding


def test_clip_mechanisms_give_the_released_law_and_say_so() -> None:
    prior = sv.Prior(range(18), PRIORS["films"])
    for made in (sv.kernel_clip(prior, 1.0), sv.certify(sv.kernel_clip(prior, 1.0))):
        found = sv.estimate(made, np.arange(18) * 10)
        assert not found.unbiased
        np.testing.assert_allclose(found.values, np.arange(18) / 153)
        variance = found.values * (1 - found.values) + 2 / 1530
        np.testing.assert_allclose(found.standard_errors**2, variance / 1529)
        assert found.bias_bound == pytest.approx(sv.kernel_clip(prior, 1.0).worst_case(sv.TV), abs=1e-12)
        assert "that was released, not the users' own" in repr(found)
        with pytest.raises(sv.errors.EstimateError, match="no number of them"):
            sv.how_many(made, 0.01)
    users = np.random.default_rng(0).dirichlet(np.ones(18), size=500)
    released = sv.kernel_clip(prior, 1.0).distribution(users).mean(axis=0)
    assert np.abs(released - users.mean(axis=0)).sum() / 2 <= found.bias_bound


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("kind", PRIORS)
def test_stated_poisoning_equals_simulation(name: str, kind: str) -> None:
    """The worst reports there are, replaced one by one and by the hundred, move a value as far as stated."""
    q = PRIORS[kind]
    made = sampler(name, q, 1.0)
    rng = np.random.default_rng(5)
    counts = rng.multinomial(200_000, made.distribution(q))
    honest = sv.estimate(made, counts)
    for many, stated in (
        (1, honest.moved_by(1 / 200_000)),
        (500, honest.moved_by(500 / 200_000)),
    ):
        moved = 0.0
        for old in range(len(q)):
            for new in range(len(q)):
                if counts[old] >= many and old != new:
                    poisoned = counts.copy()
                    poisoned[old] -= many
                    poisoned[new] += many
                    moved = max(moved, np.abs(sv.estimate(made, poisoned).values - honest.values).max())
        assert stated == pytest.approx(moved, rel=0.01)


@pytest.mark.parametrize("name", LINEAR)
def test_how_many_reports(name: str) -> None:
    q = PRIORS["films"]
    made = sampler(name, q, 2.0)
    needed = sv.how_many(made, 0.01)
    halves = []
    for reports in (needed, needed - max(2, needed // 1000)):
        found = sv.estimate(made, reports * made.distribution(q))
        halves.append(found.half_widths().max())
    assert halves[0] <= 0.01 * (1 + 1e-4) < halves[1] * (1 + 1e-4)  # m − 1 in place of m
    quarter = sv.how_many(made, 0.01) / 4
    assert sv.how_many(made, 0.02) == pytest.approx(
        quarter, rel=0.01
    )  # the term for rare categories falls faster
    assert sv.how_many(made, 0.01, level=0.99) > sv.how_many(made, 0.01)
    assert sv.how_many(sv.certify(made), 0.01) == pytest.approx(sv.how_many(made, 0.01), abs=1)


def test_projection_is_the_nearest_distribution() -> None:
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 30):
        values = rng.normal(1 / n, 0.4, n)
        near = project(values)
        assert near.min() >= 0
        assert near.sum() == pytest.approx(1)

        def distance(x: np.ndarray, v: np.ndarray) -> float:
            return float(((x - v) ** 2).sum())

        best = minimize(
            distance,
            np.full(n, 1 / n),
            args=(values,),
            bounds=[(0, None)] * n,
            constraints=LinearConstraint(np.ones(n), 1, 1),
        ).fun
        assert ((near - values) ** 2).sum() <= best + 1e-9
    law = rng.dirichlet(np.ones(9))
    np.testing.assert_allclose(project(law), law, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", LINEAR)
def test_shrinking_helps_near_the_prior_and_never_hurts_much(name: str) -> None:
    """James and Stein's promise: on average no farther from the population than the unbiased values."""
    q = PRIORS["films"]
    made = sampler(name, q, 1.0)
    rng = np.random.default_rng(8)
    for mixture, most in ((0.0, 0.15), (0.1, 1.0), (1.0, 1.0)):
        population = (1 - mixture) * q + mixture / len(q)
        squares = np.zeros(2)
        for counts in rng.multinomial(20_000, made.distribution(population), size=300):
            found = sv.estimate(made, counts)
            squares += [((v - population) ** 2).sum() for v in (found.shrunk, found.values)]
        assert squares[0] <= most * squares[1] * 1.02  # 300 collections: the ratio is known to about 1 %
    exact = sv.estimate(made, 1e6 * made.distribution(q))
    np.testing.assert_allclose(exact.shrunk, q, rtol=1e-9)


def test_every_form_of_reports_counts_alike(tmp_path: Path) -> None:
    prior = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
    made = sv.minimax_kernel(prior, 1.0)
    reports = ["a"] * 5 + ["c"] * 2 + ["b"]
    frame = {"item": reports, "user": [f"u{i}" for i in range(8)]}
    pl.DataFrame(frame).write_csv(tmp_path / "r.csv")
    forms = [
        reports, tuple(reports), iter(reports), pl.Series(reports), {"c": 2, "b": 1, "a": 5},
        np.array([5, 1, 2]), np.array([5.0, 1, 2]), pl.DataFrame(frame), pl.LazyFrame(frame),
        pd.DataFrame(frame), tmp_path / "r.csv", str(tmp_path / "r.csv"),
    ]  # fmt: skip
    for form in forms:
        assert sv.estimate(made, form).counts.tolist() == [5, 1, 2]
    assert sv.estimate(made, pl.DataFrame(frame), user="user").reports == 8
    assert sv.estimate(made, {"a": 5, "b": 1, "c": 2, "unknown": 0}).reports == 8
    added = pl.DataFrame({"item": ["a", "b", "c"], "count": [5, 1, 2]})
    assert sv.estimate(made, added).counts.tolist() == [5, 1, 2]
    rows = sv.estimate(made, reports).to_dicts()
    assert [row["category"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["low"] < rows[0]["estimate"] < rows[0]["high"]


def test_bad_reports() -> None:
    prior = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
    made = sv.minimax_kernel(prior, 1.0)
    rare = sv.rr_with_prior(sv.Prior(["a", "b", "c"], [0.98, 0.015, 0.005]), 0.5)
    twice = pl.DataFrame({"item": ["a", "b"], "user": ["u", "u"]})
    other = pl.DataFrame({"item": ["a", "b"], "mechanism": ["x", "x"]})
    for call, message in (
        (lambda: sv.estimate(made, []), "at least 2 reports, there are 0"),
        (lambda: sv.estimate(made, ["a"]), "at least 2 reports, there are 1"),
        (lambda: sv.estimate(made, {}), "there are 0"),
        (
            lambda: sv.estimate(made, np.array([1, 2])),
            r"one number per answer of the mechanism, 3, got \(2,\)",
        ),
        (lambda: sv.estimate(made, np.array([1, -2, 3])), "at least 0"),
        (lambda: sv.estimate(made, np.array([1, np.nan, 3])), "finite numbers"),
        (lambda: sv.estimate(made, ["a", "z", "z"]), "2 of 3 are not"),
        (lambda: sv.estimate(made, {"a": 3, "z": 2}), "2 of 5 are not"),
        (lambda: sv.estimate(made, [["a"], ["b"]]), "reports must be categories"),
        (lambda: sv.estimate(made, None), "must be a list of categories"),
        (lambda: sv.estimate(made, np.ma.array([1, 2, 3], mask=[False, True, False])), "masked"),
        (lambda: sv.estimate(made, np.array([2**62, 2**62, 1])), "below 2"),
        (lambda: sv.estimate(made, twice), "1 of 1 users have more than one report"),
        (lambda: sv.how_many(made, 1e-200), "no number of reports will do"),
        (lambda: sv.estimate(made, ["a", "b"], level=1.0), "level must lie between 0 and 1"),
        (lambda: sv.estimate(made, ["a", "b"], item="x"), "are for a table of reports"),
        (lambda: sv.estimate(rare, ["a", "a"]), "never releases some of its categories"),
        (lambda: sv.estimate(sv.certify(rare), ["a", "a"]), "never releases some of its categories"),
        (lambda: sv.estimate("m", ["a", "a"]), "str is not a sampler: it lacks name"),  # type: ignore[arg-type]
        (lambda: sv.estimate(made, twice, user="user"), "1 of 1 users have more than one report"),
        (lambda: sv.estimate(sv.certify(made), other), "2 of 2 reports were released with another mechanism"),
        (lambda: sv.estimate(made, twice, item="nothing"), "there is no column 'nothing'"),
        (lambda: sv.how_many(made, 0), "error must be greater than 0"),
        (lambda: sv.estimate(made, ["a", "b"]).moved_by(2), "share must lie between 0 and 1"),
    ):
        with pytest.raises(sv.errors.SottovoceError, match=message):
            call()


def test_a_notebook_shows_shares_and_intervals() -> None:
    sampler = sv.minimax_kernel(sv.Prior(["<a>", "b"], [0.25, 0.75]), 1.0)
    found = sv.estimate(sampler, {"<a>": 400, "b": 600})
    page = found._repr_html_()
    low, high = found.interval()
    assert f"{low[0]:.4f} … {high[0]:.4f}" in page
    assert "&lt;a&gt;" in page
    assert "<a>" not in page


def test_the_guide_names_the_least_epsilon_for_300_categories() -> None:
    """20,000 reports, ± 0.01, users like q ∝ 1/rank: the least ε in tenths, linear ones by a dense inverse."""
    q = 1 / np.arange(1, 301)
    q /= q.sum()
    prior = sv.Prior(range(300), q)

    def by_survey(epsilon: float) -> int:
        return sv.how_many(sv.certify(sv.survey(range(300), epsilon)), 0.01, prior=prior)

    def by_inverse(name: str, epsilon: float) -> float:
        k, z = matrix(name, q, epsilon), 1.959963984540054
        w = np.linalg.inv(k)
        variance, reach = ((q @ k)[:, None] * w**2).sum(axis=0) - q**2, w.max(axis=0) - w.min(axis=0)
        step = (0.01 / z) ** 2
        return float(((variance + np.sqrt(variance**2 + 2 * (z * reach) ** 2 * step)) / (2 * step)).max())

    assert by_survey(3.0) <= 20_000 < by_survey(2.9)
    for name, least in (("randomized_response", 4.9), ("minimax_kernel", 5.5)):
        assert by_inverse(name, least) <= 20_000 < by_inverse(name, round(least - 0.1, 1))
    guide = (Path(__file__).parents[2] / "docs" / "estimating.md").read_text(encoding="utf-8")
    assert "ε = 3.0 by a survey, 4.9 by `randomized_response` and 5.5 by `minimax_kernel`" in guide
