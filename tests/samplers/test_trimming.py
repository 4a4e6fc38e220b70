"""Free trimming: the floor against its definition, and nobody's law gets worse."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import epsilons, priors, users

import sottovoce as sv
from sottovoce.samplers.floors import trimmed_floor

PAIR = sv.Prior.uniform(["a", "b"])
CLIPS = [name for name, make in sv.SAMPLERS.items() if isinstance(make(PAIR, 1.0), sv.ClipSampler)]
MEASURES = [sv.TV, sv.KL, sv.CHI2, sv.HELLINGER2, sv.JS, sv.alpha(0.5), sv.hockey_stick(2.0)]


@given(priors(), epsilons, st.floats(0.001, 1.0))
def test_the_floor_is_the_one_of_the_definition(q: np.ndarray, epsilon: float, share: float) -> None:
    c = share * q
    assume(math.exp(epsilon) * share >= 1)
    found = trimmed_floor(c, epsilon)
    np.testing.assert_allclose(found, oracles.trimmed(c, epsilon), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(trimmed_floor(found, epsilon), found, rtol=1e-12)


@pytest.mark.parametrize("name", CLIPS)
@given(data=st.data())
def test_nobody_gets_a_worse_law(name: str, data: st.DataObject) -> None:
    q, epsilon = data.draw(priors(least=2, smallest=1e-6)), data.draw(epsilons)
    p = data.draw(users(len(q)))
    sampler = sv.SAMPLERS[name](sv.Prior(range(len(q)), q), epsilon)
    assert isinstance(sampler, sv.ClipSampler)
    better = sv.trimmed(sampler)
    assert better.keeps_prior >= sampler.keeps_prior
    for measure in MEASURES:
        before, after = sampler.divergence(p, measure), better.divergence(p, measure)
        # Both are sums of n terms: the rounding of a law is 1e-15 of it, of a far ratio 1e-12.
        assert after <= before + 1e-12 * max(1.0, float(np.nan_to_num(before, posinf=1.0)))
        assert better.worst_case(measure) <= sampler.worst_case(measure) * (1 + 1e-9) + 1e-12


def test_somebody_gets_a_better_one() -> None:
    """Where a cap is beyond what the floors leave, users gain; where none is, nothing changes."""
    prior = sv.Prior(list("abcd"), [0.6, 0.25, 0.1, 0.05])
    users = np.random.default_rng(0).dirichlet(np.ones(4), size=500)
    for name in ("relative_mollifier", "local_minimax", "blend"):
        sampler = sv.SAMPLERS[name](prior, 6.0)
        assert isinstance(sampler, sv.ClipSampler)
        gain = sampler.divergence(users, sv.TV) - sv.trimmed(sampler).divergence(users, sv.TV)
        assert gain.max() > 0.001
    for name in ("kernel_clip", "prior_minimax"):
        for epsilon in (0.5, 2.0, 8.0):
            sampler = sv.SAMPLERS[name](prior, epsilon)
            assert isinstance(sampler, sv.ClipSampler)
            np.testing.assert_allclose(sv.trimmed(sampler).floor, sampler.floor, rtol=1e-12)


def test_it_is_certified_like_any_other_and_says_so() -> None:
    prior = sv.Prior(list("abcd"), [0.6, 0.25, 0.1, 0.05])
    mechanism = sv.certify(sv.trimmed(sv.local_minimax(prior, 6.0)))
    assert mechanism.options == {"trimmed": "1.0"}
    assert mechanism.keeps_prior
    law = [float(share) for share in mechanism.law(records=["d"])]
    np.testing.assert_allclose(
        law, sv.trimmed(sv.local_minimax(prior, 6.0)).distribution([0, 0, 0, 1.0]), rtol=0, atol=1e-12
    )


def test_a_kernel_has_nothing_to_trim() -> None:
    with pytest.raises(sv.errors.ParameterError, match="only a clip sampler"):
        sv.trimmed(sv.minimax_kernel(sv.Prior.uniform(["a", "b"]), 1.0))  # type: ignore[arg-type]  # what is refused
