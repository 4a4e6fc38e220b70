"""Attacks that others published, against `release` and `release_many` of every sampler.

They must never bound ε above what is certified, and must find faults that were planted. The error of all
bounds of a test together is one in a million: a failure is a fault.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from outside_judge import Vector, distinguishability, least, most, posterior, sniper, threshold_event
from scipy import sparse, stats

import sottovoce as sv
from sottovoce.core.arithmetic import Box
from sottovoce.core.box import BoxEngine
from sottovoce.core.engine import Engine
from sottovoce.core.kernel import ResponseEngine

Places = npt.NDArray[np.int64]
Pairs = list[tuple[str, str]]

ERROR = 1e-6
NAMES = [f"c{i}" for i in range(8)]
PRIOR = sv.Prior(NAMES, [0.3, 0.2, 0.15, 0.12, 0.1, 0.07, 0.04, 0.02])
LAST = len(NAMES) - 1
USERS: dict[str, list[int]] = {
    "rarest": [0] * LAST + [1],
    "commonest": [1] + [0] * LAST,
    "all but the rarest": [30, 20, 15, 12, 10, 7, 4, 0],
    "all but the commonest": [0, 20, 15, 12, 10, 7, 4, 2],
    "like the prior": [30, 20, 15, 12, 10, 7, 4, 2],
}
BOX_PAIRS: Pairs = [("rarest", "all but the rarest"), ("commonest", "all but the commonest")]
"""One has a category alone, and gets its cap; the other has all but it, and gets its floor."""
PAIRS: Pairs = [
    *BOX_PAIRS,
    *((b, a) for a, b in BOX_PAIRS),
    ("rarest", "commonest"),
    ("like the prior", "rarest"),
]


class Proved(NamedTuple):
    """Lower bounds on ε, by the distinguishability attack and by DP-Sniper."""

    told: float
    shot: float


def rows(user: str, count: int) -> sparse.csr_array[np.int64]:
    return sparse.csr_array(np.tile(np.array(USERS[user], dtype=np.int64), (count, 1)))


def many(mechanism: sv.Mechanism, user: str, count: int) -> Places:
    return np.array([mechanism.index[one] for one in mechanism.release_many(rows(user, count))])


def singly(mechanism: sv.Mechanism, user: str, count: int) -> Places:
    records = [name for name, times in zip(NAMES, USERS[user], strict=True) for _ in range(times)]
    return np.array([mechanism.index[mechanism.release(records=records)] for _ in range(count)])


def uncertified(engine: Engine, user: str, count: int) -> Places:
    """Draws of an engine whose certificate nobody has looked at."""
    words = [np.frombuffer(os.urandom(8 * count), "<u8") >> np.uint64(2) for _ in range(engine.words)]
    return engine.positions(rows(user, count), [word.astype(np.int64) for word in words])


def laws_of(engine: Engine, a: str, b: str) -> tuple[Vector, Vector]:
    """What an attacker who knows the protocol knows of two users."""
    first, second = ([(i, k) for i, k in enumerate(USERS[one]) if k] for one in (a, b))
    return np.array(engine.law(first), dtype=np.float64), np.array(engine.law(second), dtype=np.float64)


def strongest(engine: Engine, drawn: Callable[[str, int], Places], draws: int, pairs: Pairs) -> Proved:
    """The largest bounds on ε that each attack proves, over pairs of users."""
    error = ERROR / (2 * len(pairs))
    told, shot = [], []
    for a, b in pairs:
        first, second = partial(drawn, a), partial(drawn, b)
        told.append(distinguishability(first, second, laws_of(engine, a, b), draws, error))
        shot.append(
            sniper(first, second, len(NAMES), training=draws // 3, draws=draws, chance=0.02, error=error)
        )
    return Proved(max(told), max(shot))


# --- the judge itself --------------------------------------------------------------------------------


def test_the_limits_are_those_of_clopper_and_pearson() -> None:
    for successes, trials in [(0, 10), (1, 10), (5, 10), (10, 10), (37, 1000)]:
        low, high = least(successes, trials, 0.01), most(successes, trials, 0.01)
        if successes:
            assert stats.binom.sf(successes - 1, trials, low) == pytest.approx(0.01)
        if successes < trials:
            assert stats.binom.cdf(successes, trials, high) == pytest.approx(0.01)
    assert least(0, 10, 0.01) == 0
    assert most(10, 10, 0.01) == 1


def test_the_event_has_the_chance_that_was_asked_for() -> None:
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    event = threshold_event(np.array([0.2, 0.9, 0.9, 0.95]), shares, 0.1)
    assert event.chances @ shares == pytest.approx(0.1)
    assert event.chances[0] == 0
    assert event.chances[1] == event.chances[2]  # the tie at the threshold
    assert event.chances[3] == 1


def test_the_classifier_learns_which_input_an_output_comes_from() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.choice(3, 90_000, p=[0.6, 0.3, 0.1]), rng.choice(3, 90_000, p=[0.2, 0.3, 0.5])
    assert posterior(first, second, 3) == pytest.approx([0.75, 0.5, 1 / 6], abs=0.01)


def of_law(rng: np.random.Generator, law: Vector, count: int) -> Places:
    return rng.choice(len(law), count, p=law)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_judge_finds_the_epsilon_of_a_known_law(epsilon: float) -> None:
    """Randomized response by numpy: both bounds come near ε and stay below it."""
    rng = np.random.default_rng(4)
    other = 1 / (math.exp(epsilon) + 3)
    laws = [np.full(4, other) for _ in range(2)]
    laws[0][0] = laws[1][1] = math.exp(epsilon) * other
    first, second = (partial(of_law, rng, law) for law in laws)
    told = distinguishability(first, second, (laws[0], laws[1]), 200_000, ERROR)
    shot = sniper(first, second, 4, training=100_000, draws=200_000, chance=other, error=ERROR)
    for proved in (told, shot):
        assert 0.9 * epsilon - 0.03 < proved <= epsilon


# --- the library under judgement ---------------------------------------------------------------------


def check_sampler(name: str, epsilon: float, draws: int, single_draws: int, pairs: Pairs) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, epsilon))
    found = strongest(mechanism.engine, partial(many, mechanism), draws, pairs)
    alone = strongest(mechanism.engine, partial(singly, mechanism), single_draws, pairs)
    shown = " | ".join(f"{one:.2f}" for one in (epsilon, *found, *alone))
    print(f"| `{name}` | {shown} |")
    assert max(*found, *alone) <= epsilon
    assert max(found) > 0.3 * epsilon  # or it was looked at from too far away


@pytest.mark.parametrize("name", ["kernel_clip", "minimax_kernel", "randomized_response"])
def test_nothing_is_proved_above_epsilon(name: str) -> None:
    check_sampler(name, 1.0, 40_000, 1_000, [*BOX_PAIRS, ("rarest", "commonest")])


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_nothing_is_proved_above_epsilon_at_the_stated_size(name: str, epsilon: float) -> None:
    check_sampler(name, epsilon, 300_000, 6_000, PAIRS)


# --- planted faults ----------------------------------------------------------------------------------


def broken_floor(epsilon: float, part: float) -> BoxEngine:
    """A box whose floor was taken down after its caps were computed: every ratio is larger by 1/part."""
    engine = sv.certify(sv.kernel_clip(PRIOR, epsilon)).engine
    assert isinstance(engine, BoxEngine)
    low = tuple(int(one * part) for one in engine.box.low)
    return BoxEngine(Box(low, engine.box.high, engine.box.total), engine.prior)


def loud_response(epsilon: float, more: float) -> ResponseEngine:
    """A response that says the truth too often."""
    engine = sv.certify(sv.randomized_response(PRIOR, epsilon)).engine
    assert isinstance(engine, ResponseEngine)
    other = int(engine.other / more)
    return replace(engine, other=other, own=(1 << 62) - (len(NAMES) - 1) * other)


PLANTED: dict[str, Callable[[], Engine]] = {
    "a floor broken by half": lambda: broken_floor(1.0, 0.5),
    "a floor broken by a fifth": lambda: broken_floor(1.0, 0.8),
    "a response with other weights a fifth too small": lambda: loud_response(1.0, 1.25),
}


def check_planted(fault: str, draws: int) -> None:
    engine = PLANTED[fault]()
    found = strongest(engine, partial(uncertified, engine), draws, [*BOX_PAIRS, ("rarest", "commonest")])
    print(f"| {fault} | 1 | {found.told:.2f} | {found.shot:.2f} |")
    assert max(found) > 1.0


def test_a_floor_broken_by_half_is_found() -> None:
    check_planted("a floor broken by half", 40_000)


@pytest.mark.full
@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_found(fault: str) -> None:
    check_planted(fault, 1_000_000)
