"""Power caps and the choice of their parameters: deterministic, and never on private users."""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path

import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import sottovoce as sv
from experiments import movielens
from sottovoce.planning import fitted as fitting
from sottovoce.samplers import floors

PLACE = os.environ.get("SOTTOVOCE_DATA", "")
needs_movielens = pytest.mark.skipif(
    not (PLACE and (Path(PLACE) / "ml-1m").is_dir()),
    reason="set SOTTOVOCE_DATA to the folder that holds ml-100k and ml-1m",
)
PRIOR = sv.Prior.from_counts({"a": 60, "b": 25, "c": 10, "d": 4, "e": 1})


# --- power caps ---


@given(strategies.priors(most=20), strategies.epsilons, st.floats(0, 1), st.floats(0, 1))
def test_the_floor_is_the_formula_and_keeps_the_prior(
    q: np.ndarray, epsilon: float, exponent: float, place: float
) -> None:
    prior = sv.Prior(range(len(q)), q)
    least, most = floors.power_range(prior.probabilities, epsilon, exponent)
    scale = math.exp((1 - place) * math.log(least) + place * math.log(most))
    scale = min(max(scale, least), most)
    s = sv.power_caps(prior, epsilon, scale=scale, exponent=exponent)
    assert_allclose(s.floor, oracles.power_caps(prior.probabilities, epsilon, scale, exponent), rtol=1e-13)
    assert s.keeps_prior
    a = math.exp(epsilon)
    assert s.floor.sum() <= 1 + 1e-12
    assert a * s.floor.sum() >= 1 - 1e-12


def test_special_cases_are_the_relative_mollifier_and_prior_minimax() -> None:
    prior = sv.Prior(range(4), [0.1, 0.2, 0.3, 0.4])
    for epsilon in (0.5, 1.8):
        assert math.exp(epsilon / 2) * 0.4 <= 1
        relative = sv.relative_mollifier(prior, epsilon).floor
        caps = sv.power_caps(prior, epsilon, scale=math.exp(epsilon / 2), exponent=1)
        assert_allclose(caps.floor, relative, rtol=1e-14)
        assert_allclose(sv.power_caps(prior, epsilon, exponent=1).floor, relative, rtol=1e-14)
        minimax = sv.prior_minimax(prior, epsilon).floor
        theta = float(minimax.max()) * math.exp(epsilon)  # the largest is unclipped and shows θ
        assert_allclose(sv.power_caps(prior, epsilon, scale=theta, exponent=0).floor, minimax, rtol=1e-12)


def test_a_cap_is_never_above_one() -> None:
    floor = sv.power_caps(sv.Prior(["a", "b"], [0.1, 0.9]), 2.0, scale=2.0, exponent=1).floor
    assert floor[1] * math.exp(2) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("sixteenths", range(17))
def test_powers_in_sixteenths_are_square_roots(sixteenths: int) -> None:
    q = np.array([1e-90, 1e-6, 0.3, 1.0])
    assert_allclose(floors.power(q, sixteenths / 16), q ** (sixteenths / 16), rtol=1e-14)
    assert_allclose(floors.power(q, 0.3), q**0.3, rtol=1e-15)


def test_parameters_that_give_everybody_the_prior_are_refused_with_the_range() -> None:
    prior = sv.Prior(["a", "b"], [0.25, 0.75])
    for scale in (0.4, 2.4):  # e·√0.75 = 2.3541
        with pytest.raises(sv.errors.ParameterError, match=r"scale must lie between 0\.5 and 2\.3541 for"):
            sv.power_caps(prior, 1.0, scale=scale, exponent=0.5)
    for scale in (0.5, 2.354):
        assert sv.power_caps(prior, 1.0, scale=scale, exponent=0.5).keeps_prior
    with pytest.raises(sv.errors.ParameterError, match=r"exponent must lie between 0 and 1, got 1\.5"):
        sv.power_caps(prior, 1.0, scale=1, exponent=1.5)
    with pytest.raises(sv.errors.ParameterError, match="scale must be greater than 0"):
        sv.power_caps(prior, 1.0, scale=-1, exponent=0.5)


# --- invented users ---


def test_words_are_those_of_splitmix64() -> None:
    def next_word(state: int) -> int:  # the published generator, from its state, in Python's integers
        mask = (1 << 64) - 1
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    expected = [next_word((k + (3 << 40)) * golden % (1 << 64)) for k in range(1, 6)]
    assert [int(word) for word in fitting.random_words(3, 5)] == expected
    assert int(fitting.random_words(0, 1)[0]) == 0xE220A8397B1DCDAF  # SplitMix64's first, seed 0


@pytest.mark.parametrize(("largest", "doublings"), [(3, 0), (5, 1), (7, 3)])
def test_broken_sticks_have_the_moments_of_a_dirichlet_process(largest: int, doublings: int) -> None:
    kappa, users = largest << doublings, 4000
    sticks = fitting._sticks(users, largest, doublings, 5000) * 2.0**-fitting.UNITS
    assert_array_equal(sticks.sum(axis=1), 1.0)
    # v ~ Beta(1, κ): mean 1/(κ+1); the pieces' Σw² has mean 1/(κ+1) too. Five standard errors.
    for values in (sticks[:, 0], (sticks**2).sum(axis=1)):
        error = values.std() / math.sqrt(users)
        assert abs(values.mean() - 1 / (kappa + 1)) < 5 * error
    left = 1 - sticks[:, 0]
    assert abs((left**2).mean() - kappa / (kappa + 2)) < 5 * (left**2).std() / math.sqrt(users)


def test_invented_users_are_distributions_with_the_priors_mean_and_the_dirichlets_spread() -> None:
    q = np.sort(PRIOR.probabilities)[::-1]
    rows = fitting.invented(q).toarray() * 2.0**-fitting.UNITS
    assert rows.shape == (3 * fitting.EACH, 5)
    assert_array_equal(rows.sum(axis=1), 1.0)
    for kind, times in enumerate(fitting.CLOSENESS):
        largest, doublings = fitting.closeness(q, times)
        kappa = largest << doublings
        mine = rows[kind * fitting.EACH :][: fitting.EACH]
        spread = q * (1 - q) / (kappa + 1)  # of Dirichlet(κq)
        assert np.all(np.abs(mine.mean(axis=0) - q) < 5 * np.sqrt(spread / fitting.EACH))
        # The sample variance of 400 has a relative error near √(kurtosis/400); rare ones are heavy-tailed.
        assert_allclose(mine.var(axis=0)[:2], spread[:2], rtol=0.3)


def test_the_closeness_follows_how_many_categories_matter() -> None:
    for n in (1, 9, 10, 900, 10_000):
        for times in (1, 3, 10):
            largest, doublings = fitting.closeness(np.full(n, 1 / n), times)
            wanted = min(times * math.sqrt(n), fitting.MOST)
            assert 1 <= largest <= 8
            assert abs((largest << doublings) - wanted) <= 0.5 * 2**doublings


def test_blurred_users_lie_around_the_public_ones() -> None:
    q = np.array([0.4, 0.3, 0.2, 0.1])
    public = sparse.csr_array(np.array([[1.0, 0, 0, 0], [0, 0, 0.5, 0.5]]))
    rows = fitting.blurred(public, q).toarray() * 2.0**-fitting.UNITS
    largest, doublings = fitting.closeness(q, fitting.BLUR)
    kappa = largest << doublings
    for u in range(2):
        mean = ((kappa - 1) * public.toarray()[u] + q) / kappa
        mine = rows[u::2]
        assert len(mine) == 600
        assert np.all(
            np.abs(mine.mean(axis=0) - mean) < 5 * np.sqrt(mean * (1 - mean) / (kappa + 1) / 600) + 1e-9
        )


# --- the choice ---


def test_it_is_the_best_of_the_grid_on_its_own_users() -> None:
    q = np.sort(PRIOR.probabilities)[::-1]
    crowd = fitting.invented(q).toarray() * 2.0**-fitting.UNITS
    prior = sv.Prior(range(5), q)

    def score(s: sv.Sampler) -> float:
        values = np.sort(s.divergence(crowd, sv.TV))
        return float(values.mean() + 0.1 * values[-12:].mean())

    best = sv.fitted(prior, 2.0)
    for exponent in np.arange(9) / 8:
        least, most = floors.power_range(q, 2.0, exponent)
        for scale in np.geomspace(least, most, 33)[1:-1]:
            other = sv.power_caps(prior, 2.0, scale=scale, exponent=exponent)
            assert score(best) <= score(other) + 1e-9  # units of 2^-45, and scales to rounding
    assert best.name == "fitted"
    assert best.keeps_prior
    again = sv.power_caps(prior, 2.0, **best.options)
    assert_array_equal(again.floor, best.floor)


def test_more_weight_on_the_tail_lowers_it_and_costs_mean() -> None:
    crowd = fitting.invented(np.sort(PRIOR.probabilities)[::-1]).toarray() * 2.0**-fitting.UNITS
    ranked = sv.Prior(range(5), np.sort(PRIOR.probabilities)[::-1])
    served = [sv.fitted(ranked, 1.5, tail=tail).divergence(crowd, sv.TV) for tail in (0, 0.2, 5)]
    mean = [float(values.mean()) for values in served]
    worst = [float(np.sort(values)[-12:].mean()) for values in served]
    assert mean[0] < mean[1] < mean[2]
    assert worst[0] > worst[1] > worst[2]


GOLDEN = {
    ("genres", 1.0): "ff0e0c8930c74ea1",
    ("genres", 4.0): "8e1475c4a7a013d1",
    ("zipf", 2.0): "4fe8a1e514ef66ba",
    ("zipf", 8.0): "7544453bc279311e",
    ("uniform", 3.0): "59ef7ae646dc4fe7",
}


def golden_prior(name: str) -> sv.Prior:
    counts = {
        "genres": [
            25589, 13753, 3605, 7182, 29832, 8055, 758, 39895, 1352,
            1733, 5317, 4954, 5245, 19461, 12730, 21872, 9398, 1854,
        ],
        "zipf": [10**6 // rank for rank in range(1, 501)],
        "uniform": [1] * 10,
    }[name]  # fmt: skip
    return sv.Prior.from_counts(counts, range(len(counts)))


@pytest.mark.parametrize(("name", "epsilon"), GOLDEN)
def test_the_floor_is_the_same_bit_for_bit(name: str, epsilon: float) -> None:
    floor = sv.fitted(golden_prior(name), epsilon).floor
    assert hashlib.sha256(floor.astype("<f8").tobytes()).hexdigest()[:16] == GOLDEN[name, epsilon]


def test_the_order_of_the_categories_makes_no_difference() -> None:
    prior = golden_prior("genres")
    order = np.random.default_rng(1).permutation(len(prior))
    shuffled = sv.Prior([prior.categories[i] for i in order], prior.probabilities[order])
    assert_allclose(shuffled.probabilities, prior.probabilities[order], rtol=0)
    assert_array_equal(sv.fitted(shuffled, 3.0).floor, sv.fitted(prior, 3.0).floor[order])


def test_public_users_move_the_choice_their_way() -> None:
    rng = np.random.default_rng(0)
    around = rng.dirichlet(100 * PRIOR.probabilities, size=300)
    near = sv.PublicUsers(rng.multinomial(2000, around) / 2000, source="invented")
    far = sv.PublicUsers(np.eye(5), source="invented")
    for tail in (0.0, 0.1):
        chosen = {
            name: sv.fitted(PRIOR, 2.0, users, tail=tail) for name, users in (("near", near), ("far", far))
        }
        for name, users in (("near", near), ("far", far)):
            values = {key: s.divergence(users.p, sv.TV).mean() for key, s in chosen.items()}
            assert values[name] < values["far" if name == "near" else "near"]
    assert_array_equal(sv.fitted(PRIOR, 2.0, near).floor, sv.fitted(PRIOR, 2.0, near).floor)


def test_private_users_are_refused() -> None:
    private = sv.Users(("u",), sparse.csr_array(np.eye(5)[:1]), PRIOR.categories)
    for users in (np.eye(5), [[0.2] * 5], private, sparse.csr_array(np.eye(5))):
        with pytest.raises(sv.errors.ParameterError, match="parameters chosen on private users leak"):
            sv.fitted(PRIOR, 1.0, users)  # type: ignore[arg-type]
    with pytest.raises(sv.errors.ParameterError, match="tail must be at least 0"):
        sv.fitted(PRIOR, 1.0, tail=-0.1)
    with pytest.raises(sv.errors.ParameterError, match="prior must be a Prior"):
        sv.fitted([0.5, 0.5], 1.0)  # type: ignore[arg-type]
    with pytest.raises(sv.errors.ParameterError, match="p must not come from read_users"):
        sv.PublicUsers(private, source="a table")  # type: ignore[arg-type]


def test_nothing_that_decides_depends_on_a_library_of_mathematics() -> None:
    text = Path(str(fitting.__file__)).read_text(encoding="utf-8").split('"""', 2)[2]
    for word in ("math.exp", "np.exp", "log(", "np.power", "random.", "default_rng", " @ ", ".dot("):
        assert word not in text, word


@pytest.mark.parametrize("n", [1, 2, 400])
def test_any_size_can_be_certified(n: int) -> None:
    q = 1 / np.arange(1, n + 1)
    for epsilon in (0.01, 1.0, 12.0):
        mechanism = sv.certify(sv.fitted(sv.Prior(range(n), q / q.sum()), epsilon))
        assert mechanism.keeps_prior


@needs_movielens
def test_movielens_private_users_are_served_as_promised() -> None:
    folder = Path(PLACE)
    group, user, _, flags = movielens.read_100k(folder / "ml-100k")
    histories = np.zeros((user.max() + 1, len(movielens.GENRES)))
    np.add.at(histories, user, flags)
    public = histories / histories.sum(axis=1, keepdims=True)
    age = np.zeros(len(public), dtype=np.int64)
    age[user] = group
    alone: list[tuple[float, float]] = []
    helped: list[tuple[float, float]] = []
    for g, (prior, private) in enumerate(movielens.data(folder, "all-genres").values()):
        own = np.repeat(np.arange(len(public)), np.where(age == g, 4, 1))
        known = sv.PublicUsers(public[own], source="MovieLens 100K, the own age group four times")
        for epsilon in movielens.EPSILONS:
            for cells, sampler in (
                (alone, sv.fitted(prior, epsilon)),
                (helped, sv.fitted(prior, epsilon, known)),
            ):
                values = sampler.divergence(private, sv.TV)
                cells.append((values.max(), values.mean()))
    assert len(alone) == len(helped) == 48
    for cells, most in ((alone, (0.236, 0.0286)), (helped, (0.211, 0.0311))):
        assert np.all(np.mean(cells, axis=0) <= most), np.mean(cells, axis=0)
