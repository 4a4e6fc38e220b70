"""The bound on what shuffling adds: never below the exact δ, and as good as was stated."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import oracles
import pytest

import sottovoce as sv
from sottovoce.core.kernel import LinearEngine
from sottovoce.planning import shuffling
from sottovoce.planning.shuffling import Blanket, certified_floor


def zipf(n: int) -> sv.Prior:
    weights = np.arange(1, n + 1) ** -0.8
    return sv.Prior(range(n), weights / weights.sum())


def bound_of(made: sv.Mechanism | sv.Sampler, reports: int, epsilon: float) -> float:
    """The upper bound on δ at a central ε."""
    return shuffling._bound(shuffling.blanket_of(made), reports, epsilon)


def corners(floor: np.ndarray, a: float) -> np.ndarray:
    """The extreme laws of the box: every category at its floor or its cap, but one that takes the rest."""
    n, found = len(floor), []
    for free in range(n):
        for capped in itertools.product((False, True), repeat=n - 1):
            law = np.insert(np.where(capped, a, 1.0), free, 0.0) * floor
            law[free] = 1 - law.sum()
            if floor[free] * (1 - 1e-12) <= law[free] <= a * floor[free] * (1 + 1e-12):
                found.append(law)
    return np.array(found)


def check_small(rng: np.random.Generator, cases: int) -> None:
    """Random boxes and kernels, corners for the user and anything for the others, against enumeration."""
    for _ in range(cases):
        n, m = int(rng.integers(2, 5)), int(rng.integers(2, 7))
        q = rng.dirichlet(np.full(n, float(rng.choice([0.5, 2.0])))) + 0.02
        prior, epsilon = sv.Prior(range(n), q / q.sum()), float(rng.choice([0.3, 1.0, 2.0, 4.0]))
        makers: list[Any] = [sv.kernel_clip, sv.relative_mollifier, sv.blend, sv.prior_minimax]
        makers += [sv.minimax_kernel, sv.randomized_response]
        sampler: sv.Sampler = makers[int(rng.integers(len(makers)))](prior, epsilon)
        laws = sampler.matrix() if sampler.linear else corners(sampler.floor, math.exp(epsilon))
        chosen = laws[rng.integers(0, len(laws), m + 1)]
        central = float(rng.uniform(0, epsilon))
        exact = oracles.shuffled_delta(chosen[0], chosen[1], chosen[2:], central)
        bound = bound_of(sampler, m, central)
        assert bound >= exact - 1e-12  # the exact one adds up at most 210 doubles
        certified = bound_of(sv.certify(sampler), m, central)
        assert certified >= exact - 1e-9  # the integers differ from the doubles by 2^-44, or less


def test_small_cases_are_never_below_the_exact_delta() -> None:
    check_small(np.random.default_rng(1), 50)


@pytest.mark.full
def test_a_thousand_small_cases_are_never_below_the_exact_delta() -> None:
    check_small(np.random.default_rng(2), 1000)


@pytest.mark.parametrize(
    ("categories", "epsilon", "reports", "expected"),
    [
        (18, 4.0, 10**4, 0.364),
        pytest.param(18, 4.0, 10**5, 0.105, marks=pytest.mark.full),
        pytest.param(2000, 8.0, 10**5, 0.90, marks=pytest.mark.full),
    ],
)
def test_figures_that_were_found_otherwise(
    categories: int, epsilon: float, reports: int, expected: float
) -> None:
    """Within 2 % of values that an independent program found (kernel_clip, q ∝ rank^-0.8, δ = 10⁻⁶)."""
    found = sv.amplify(sv.kernel_clip(zipf(categories), epsilon), reports, 1e-6)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("mass", [0.5, 1.4 / math.exp(2.0)])
def test_the_grid_against_the_multinomial_sum(mass: float) -> None:
    """E[(ΣV)₊] by adding up all counts of the values, for m = 40: the grid is above, by little.

    With a small floor both laws are at their caps in the same categories, too.
    """
    blanket = Blanket(2.0, math.exp(2.0), mass)
    for central in (0.05, 0.3, 1.0):
        values, chances = shuffling._atoms(blanket, central)
        assert (chances[3] > 0) == (mass < 0.5)
        assert chances.sum() == pytest.approx(mass)
        values, chances = np.append(values, 0.0), np.append(chances, 1 - chances.sum())
        exact, m = 0.0, 40
        for counts in itertools.product(range(m + 1), repeat=3):
            if sum(counts) > m or any(c and not p for c, p in zip(counts, chances, strict=False)):
                continue
            for fourth in range(m - sum(counts) + 1) if chances[3] else (0,):
                each = (*counts, fourth, m - sum(counts) - fourth)
                total = float(np.dot(each, values))
                if total > 0:
                    ways = math.lgamma(m + 1) - sum(math.lgamma(c + 1) for c in each)
                    logs = sum(c * math.log(p) for c, p in zip(each, chances, strict=True) if c)
                    exact += math.exp(ways + logs) * total
        bound = shuffling._bound(blanket, m, central)
        assert bound >= exact / m
        assert bound <= 1.03 * exact / m + 1e-15  # splitting values on the grid spreads them by 0.1 %


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.full)])
def test_it_grows_and_falls_as_it_should(step: int) -> None:
    prior = zipf(18)
    sampler = sv.kernel_clip(prior, 2.0)
    by_reports = [sv.amplify(sampler, m, 1e-6) for m in (2, 10, 100, 1000, 10_000, 100_000)[::step]]
    assert by_reports == sorted(by_reports, reverse=True)
    by_delta = [sv.amplify(sampler, 1000, d) for d in (1e-30, 1e-12, 1e-9, 1e-6, 1e-3, 0.1)[::step]]
    assert by_delta == sorted(by_delta, reverse=True)
    by_local = [sv.amplify(sv.kernel_clip(prior, e), 10_000, 1e-6) for e in (0.5, 1.0, 2.0, 4.0)[::step]]
    assert by_local == sorted(by_local)
    deltas = [bound_of(sampler, 1000, e) for e in (0.0, 0.1, 0.3, 1.0, 1.9, 2.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] == 0.0
    assert by_reports[0] <= 2.0


def test_delta_and_epsilon_undo_each_other() -> None:
    sampler = sv.prior_minimax(zipf(10), 3.0)
    for delta in (1e-4, 1e-12, 1e-40):
        central = sv.amplify(sampler, 5000, delta)
        assert bound_of(sampler, 5000, central) <= delta
        assert bound_of(sampler, 5000, central * 0.999) > delta


@pytest.mark.parametrize(
    "make", [sv.kernel_clip, sv.minimax_kernel, sv.randomized_response, sv.rr_with_prior]
)
def test_the_floor_of_a_certified_mechanism_is_that_of_its_laws(make: Any) -> None:
    """The smallest probability of each category over all point masses, from exact laws."""
    prior = sv.Prior(range(5), [0.4, 0.3, 0.15, 0.1, 0.05])
    mechanism = sv.certify(make(prior, 1.0))
    laws = [mechanism.law(records=[i]) for i in range(5)]
    smallest = sum(min(law[j] for law in laws) for j in range(5))
    floor = float(certified_floor(mechanism))
    if isinstance(mechanism.engine, LinearEngine):  # for the kernel's tails two units of 2^-62 are taken off
        assert float(smallest) - 1e-17 * 5 <= floor <= float(smallest)
    else:
        assert floor <= float(smallest)


@pytest.mark.parametrize(
    ("reports", "delta", "message"),
    [
        (1, 1e-6, "reports"),
        (10**9, 1e-6, "at most 100,000,000"),
        (2.5, 1e-6, "reports"),
        (10, 0.0, "delta"),
        (10, 1.0, "delta"),
        (10, float("nan"), "delta"),
    ],
)
def test_bad_input_is_refused(reports: Any, delta: float, message: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match=message):
        sv.amplify(sv.kernel_clip(zipf(3), 1.0), reports, delta)
    with pytest.raises(sv.errors.ParameterError, match="str is not a sampler: it lacks name"):
        sv.amplify("kernel", 10, 1e-6)  # type: ignore[arg-type]
