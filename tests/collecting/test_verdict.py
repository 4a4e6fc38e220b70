"""What reports are good for: how many are needed, and whether they tell more than the prior."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

import sottovoce as sv

Q = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.03, 0.01])


def made(name: str, epsilon: float = 2.0) -> sv.Sampler:
    return sv.SAMPLERS[name](sv.Prior(list("abcdefg"), Q), epsilon)


@pytest.mark.parametrize(
    ("name", "reports"),
    [
        ("minimax_kernel", 2000),
        ("kernel_clip", 40),
        pytest.param("minimax_kernel", 40, marks=pytest.mark.full),
        pytest.param("kernel_clip", 2000, marks=pytest.mark.full),
        *(pytest.param("global_minimax", reports, marks=pytest.mark.full) for reports in (40, 2000)),
    ],
)
def test_users_like_the_prior_are_seldom_called_different(name: str, reports: int) -> None:
    """At level 0.95 one collection in twenty, also with so few reports that some categories expect none."""
    sampler = made(name)
    counts = np.random.default_rng(1).multinomial(reports, sampler.distribution(Q), size=2000)
    chances = np.array([sv.estimate(sampler, one).verdict().chance for one in counts])
    # 2,000 collections: 5 % is known to ± 2 % (four standard deviations); the gamma law is an approximation.
    assert 0.02 < np.mean(chances < 0.05) < 0.08
    assert 0.4 < np.mean(chances < 0.5) < 0.6


@pytest.mark.parametrize(("name", "out"), [("minimax_kernel", 4), ("kernel_clip", 2)])
def test_other_users_are_told_from_the_prior(name: str, out: int) -> None:
    sampler = made(name)
    law = sampler.distribution(Q[::-1].copy())
    counts = np.random.default_rng(2).multinomial(2000, law)
    judged = sv.estimate(sampler, counts).verdict()
    assert judged.learnt
    assert judged.chance < 1e-12
    assert judged.standing_out >= out
    assert "The users differ from the public prior" in judged.summary()


def test_different_users_whose_average_is_the_prior_are_not_called_different() -> None:
    """A clip's released law differs from the prior where users differ from each other: that proves nothing."""
    sampler = sv.fitted(sv.Prior(list("abcdefg"), Q), 2.0)
    shares = np.eye(7) * 0.9 + 0.1 * Q  # every user is fond of one category, and q is their average
    law = sum(share * sampler.distribution(p) for share, p in zip(Q, shares, strict=True))
    found = sv.estimate(sampler, np.random.default_rng(4).multinomial(50_000, law))
    assert found.verdict().chance < 1e-9  # the released law is not the prior
    assert set(found.marks()) == {""}
    assert not found.verdict().learnt
    assert "the shares are those of what was released, not the users' own" in found.verdict().summary()
    assert "released" in str(found)


def test_the_number_that_is_needed_agrees_with_the_intervals() -> None:
    """A survey has no prior, so its users' variances are those of the reports: an even spread would be wrong."""
    mechanism = sv.certify(sv.survey(list("abcdefg"), 1.0))
    counts = np.round(30_000 * sv.estimate(mechanism, np.ones(7)).model.kernel.apply(Q))
    found = sv.estimate(mechanism, counts)
    needed = found.verdict().needed
    assert needed is not None
    for size, enough in ((0.98 * needed, False), (1.02 * needed, True)):
        half = sv.estimate(mechanism, np.round(counts * size / counts.sum())).half_widths()
        assert (half.max() <= 0.01) == enough
    assert needed == pytest.approx(sv.how_many(mechanism, 0.01, prior=sv.Prior(list("abcdefg"), Q)), rel=0.02)
    with pytest.raises(sv.errors.EstimateError, match="categories of the mechanism"):
        sv.how_many(mechanism, 0.01, prior=sv.Prior(list("gfedcba"), Q))


def test_the_certified_mechanism_gives_the_same_verdict() -> None:
    for name in ("minimax_kernel", "kernel_clip", "global_minimax"):
        sampler = made(name)
        counts = np.array([400, 300, 200, 150, 70, 30, 20])
        first, second = (sv.estimate(one, counts).verdict() for one in (sampler, sv.certify(sampler)))
        assert first.chance == pytest.approx(second.chance, rel=1e-6)
        assert first.standing_out == second.standing_out


def test_the_number_that_is_needed_is_how_many() -> None:
    sampler = made("minimax_kernel")
    few, many = (sv.estimate(sampler, (m * sampler.distribution(Q)).round()) for m in (1000, 10**6))
    needed = sv.how_many(sampler, 0.01)
    assert many.verdict().needed == needed
    assert few.verdict().needed == pytest.approx(needed, rel=0.01)  # its counts are rounded
    assert not few.verdict().enough
    assert many.verdict().enough
    assert f"needs {needed:,}" in few.verdict().summary()
    assert "Nothing was learnt about the users beyond the public prior" in few.verdict().summary()
    assert few.verdict(error=1e-12).needed is None
    assert "no number of them gives" in few.verdict(error=1e-12).summary()
    with pytest.raises(sv.errors.ParameterError, match="error"):
        few.verdict(error=0)


def test_shares_are_shares() -> None:
    sampler = made("minimax_kernel", 0.5)
    rng = np.random.default_rng(3)
    cut = 0
    for counts in rng.multinomial(60, sampler.distribution(Q), size=200):
        found = sv.estimate(sampler, counts)
        low, high = found.interval()
        assert 0 <= low.min() <= high.max() <= 1
        assert np.all(low <= found.shares)
        assert np.all(found.shares <= high)
        assert found.shrunk.min() >= 0
        assert found.shrunk.sum() == pytest.approx(1)
        cut += found.values.min() < 0
        assert found.moved_by(1.0) == 1.0  # a share cannot move by more
    assert cut > 100  # otherwise nothing was shown


def test_marks_say_what_can_be_told() -> None:
    sampler = made("minimax_kernel", 4.0)
    law = sampler.distribution(np.array([0.1, 0.56, 0.15, 0.1, 0.06, 0.03, 0.0]))
    found = sv.estimate(sampler, 20_000 * law)
    assert found.marks() == ["fewer", "more", "", "", "", "", "fewer"]
    assert sv.estimate(sampler, 300 * law).marks()[-1] == "noise"


def test_the_whole_population_is_the_mean_over_all_reports() -> None:
    """Against every report's own contribution, its row of the inverse of the paper's recursion."""
    priors = {"old": (list("abcd"), [0.4, 0.3, 0.2, 0.1]), "young": (list("cde"), [0.2, 0.3, 0.5])}
    counts = {"old": np.array([50, 40, 25, 15]), "young": np.array([30, 25, 60])}
    names = list("abcde")
    parts, rows = {}, []
    for group, (categories, q) in priors.items():
        parts[group] = sv.estimate(sv.minimax_kernel(sv.Prior(categories, q), 2.0), counts[group])
        inverse = np.linalg.inv(oracles.algorithm_1_any_order(np.array(q), 2.0))
        wide = np.zeros((len(q), len(names)))
        wide[:, [names.index(name) for name in categories]] = inverse
        rows.append(np.repeat(wide, counts[group], axis=0))
    found = sv.whole_population(parts)
    everyone = np.concatenate(rows)
    assert list(found.categories) == names
    assert found.reports == 245
    assert found.unbiased
    np.testing.assert_allclose(found.values, everyone.mean(axis=0), rtol=0, atol=1e-12)
    within = sum(len(one) * one.var(axis=0) for one in rows) / len(everyone)  # sizes as they are
    np.testing.assert_allclose(found.variances, within, rtol=0, atol=1e-10)
    reach = np.max([one.max(axis=0) - one.min(axis=0) for one in rows], axis=0)
    np.testing.assert_allclose(found.reach, reach, rtol=0, atol=1e-10)
    judged = found.verdict()
    assert judged.reports == 245
    assert judged.needed is not None
    with pytest.raises(sv.errors.EstimateError, match="must be some"):
        sv.whole_population({})


def test_a_group_that_is_not_linear_makes_the_whole_biased() -> None:
    counts = np.array([30, 20, 20, 10, 10, 5, 5])
    parts = {name: sv.estimate(made(name), counts) for name in ("minimax_kernel", "kernel_clip")}
    found = sv.whole_population(parts)
    assert not found.unbiased
    assert found.bias_bound == pytest.approx(parts["kernel_clip"].bias_bound / 2)
