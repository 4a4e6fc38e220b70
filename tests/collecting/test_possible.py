"""The range that the reports of a clip mechanism leave for the population holds the population."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from scipy.optimize import linprog

import sottovoce as sv
from sottovoce.collecting.estimate import possible_shares
from sottovoce.collecting.model import model_of

CLIPS = (
    sv.kernel_clip,
    sv.prior_minimax,
    sv.blend,
    sv.relative_mollifier,
    sv.local_minimax,
    sv.power_caps,
    sv.global_minimax,
)
SLACK_ABOVE, SLACK_BELOW = 0.05, 0.16
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0)


def population(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Some users, often extreme ones, and how many there are of each."""
    m = int(rng.integers(1, 6))
    kind = rng.integers(3)
    if kind == 0:
        p = np.eye(n)[rng.integers(0, n, m)]
    elif kind == 1:  # a little of one category, the rest of another
        p = np.zeros((m, n))
        for row in p:
            i, j = rng.choice(n, 2, replace=False)
            row[i] = rng.random() ** int(rng.integers(1, 8))
            row[j] = 1 - row[i]
    else:
        p = rng.dirichlet(np.full(n, float(rng.choice([0.05, 0.3, 1.0]))), size=m)
        p = np.maximum(p, 1e-12)
        p /= p.sum(axis=1, keepdims=True)
    return p, rng.dirichlet(np.ones(m))


def check(rng: np.random.Generator, cases: int) -> None:
    for _ in range(cases):
        n = int(rng.integers(2, 7))
        q = rng.dirichlet(np.full(n, float(rng.choice([0.3, 1.0, 5.0])))) + 1e-4
        prior, epsilon = sv.Prior(range(n), q / q.sum()), float(rng.choice(EPSILONS))
        sampler = CLIPS[int(rng.integers(len(CLIPS)))](prior, epsilon)
        p, share = population(rng, n)
        released = share @ sampler.distribution(p)
        low, high = possible_shares(model_of(sampler), released, released)
        rounding = 1e-12  # of the law, a sum of at most six doubles
        assert np.all(low <= share @ p + rounding)
        assert np.all(share @ p <= high + rounding)


def test_random_populations_lie_in_the_range() -> None:
    check(np.random.default_rng(1), 500)


@pytest.mark.full
def test_many_random_populations_lie_in_the_range() -> None:
    check(np.random.default_rng(2), 100_000)


def test_the_law_of_the_oracle_gives_the_same_verdict() -> None:
    """The laws of the other tests are the library's; here they are found by bisection in mpmath."""
    rng = np.random.default_rng(3)
    for _ in range(25):
        n = int(rng.integers(2, 6))
        q = rng.dirichlet(np.ones(n)) + 0.01
        q /= q.sum()
        sampler = sv.kernel_clip(sv.Prior(range(n), q), 2.0)
        p, share = population(rng, n)
        laws = [oracles.clip_by_bisection_mpmath(one, q, sampler.floor, 2.0) for one in p]
        released = share @ np.array([[float(value) for value in law] for law in laws])
        low, high = possible_shares(model_of(sampler), released, released)
        assert np.all((low <= share @ p + 1e-12) & (share @ p <= high + 1e-12))


@pytest.mark.parametrize("make", CLIPS)
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 6.0])
def test_the_range_is_not_much_wider_than_what_populations_reach(
    make: type[sv.ClipSampler], epsilon: float
) -> None:
    """A linear program over many users gives populations with the same reports and p̄_i as extreme as it can.

    What it reaches lies inside the range. Measured for these three categories, the upper end is at most 0.048
    above it and the lower end, where it is not 0, at most 0.156 below; a range of 0 … 1 would pass the other
    tests.
    """
    q = np.array([0.5, 0.3, 0.2])
    sampler = make(sv.Prior(range(3), q), epsilon)  # type: ignore[call-arg, arg-type]
    steps = 60
    grid = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    laws = sampler.distribution(grid)
    target = 0.3 * laws[np.argmin(np.abs(grid - q).sum(axis=1))] + 0.7 * laws[np.argmax(grid[:, 1])]
    low, high = possible_shares(model_of(sampler), target, target)
    for i in range(3):
        reached = []
        for sign in (1, -1):
            found = linprog(
                -sign * grid[:, i],
                A_eq=np.vstack([laws.T, np.ones(len(grid))]),
                b_eq=np.append(target, 1),
                bounds=(0, None),
            )
            assert found.status == 0
            reached.append(-sign * float(found.fun or 0.0))
        assert high[i] >= reached[0] - 1e-7
        assert low[i] <= reached[1] + 1e-7
        assert high[i] <= reached[0] + SLACK_ABOVE
        assert low[i] == 0 or low[i] >= reached[1] - SLACK_BELOW


def test_estimates_of_clip_mechanisms_carry_the_range_and_others_do_not() -> None:
    prior = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
    mechanism = sv.certify(sv.fitted(prior, 3.0))
    counts = {"a": 300, "b": 500, "c": 200}
    found = sv.estimate(mechanism, counts)
    low, high = found.possible()
    inner = possible_shares(model_of(mechanism), found.shares, found.shares)
    assert np.all(low <= inner[0])
    assert np.all(high >= inner[1])
    assert [row["possible_high"] for row in found.to_dicts()] == high.tolist()
    wide = found.possible(simultaneous=True)
    assert np.all(wide[0] <= low)
    assert np.all(wide[1] >= high)
    linear = sv.estimate(sv.minimax_kernel(prior, 3.0), counts)
    assert "possible_low" not in linear.to_dicts()[0]
    with pytest.raises(sv.errors.EstimateError, match="clip mechanisms"):
        linear.possible()


def test_one_category_is_everything() -> None:
    found = sv.estimate(sv.kernel_clip(sv.Prior(["a"], [1.0]), 1.0), {"a": 5})
    assert [end.tolist() for end in found.possible()] == [[1.0], [1.0]]
