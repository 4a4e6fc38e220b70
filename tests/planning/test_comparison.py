"""Comparisons summarise one number per user, tidily."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import sottovoce as sv

PRIOR = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])


def test_one_row_per_sampler_and_divergence_with_the_users_own_numbers() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=101)
    samplers = [sv.kernel_clip(PRIOR, 1.0), sv.blend(PRIOR, 2.0, weight=0.25)]
    table = sv.compare(sparse.csr_array(p), samplers, [sv.TV, sv.KL], group="all of them")
    assert [(r.sampler, r.epsilon, r.divergence) for r in table] == [
        ("kernel_clip", 1.0, "tv"),
        ("kernel_clip", 1.0, "kl"),
        ("blend(weight=0.25)", 2.0, "tv"),
        ("blend(weight=0.25)", 2.0, "kl"),
    ]
    x = samplers[1].distribution(p)
    by_hand = np.sort((p * np.log(p / x)).sum(axis=1))
    row = table.rows[3]
    assert (row.group, row.users, row.keeps_prior) == ("all of them", 101, True)
    assert row.mean == pytest.approx(by_hand.mean())
    assert row.median == pytest.approx(by_hand[50])
    assert row.p90 == pytest.approx(by_hand[90])
    assert row.p99 == pytest.approx(by_hand[99])
    assert row.maximum == pytest.approx(by_hand[100])
    assert row.worst_case == samplers[1].worst_case(sv.KL)


def test_one_user_one_sampler_and_addition() -> None:
    one = sv.compare([1.0, 0.0, 0.0], sv.minimax_kernel(PRIOR, 1.0))
    assert len(one) == 1
    assert one.rows[0].users == 1
    assert len(one + one) == 2


def test_rows_and_text() -> None:
    table = sv.compare(np.eye(3), sv.kernel_clip(PRIOR, 1.0), sv.REVERSE_KL)
    assert [row["users"] for row in table.to_dicts()] == [3]
    lines = str(table).splitlines()
    assert lines[0].split()[:3] == ["group", "epsilon", "sampler"]
    assert lines[1].split()[-1] == "yes"
    assert "∞" in lines[1]
