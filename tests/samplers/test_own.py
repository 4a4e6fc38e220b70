"""Samplers of one's own: what they lack or break is named, and `compare` does not take them for private."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sottovoce as sv

PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
USERS = np.array([[1.0, 0.0, 0.0], [0.2, 0.2, 0.6]])


class Own:
    """The relative mollifier's floor, by a class of one's own; every member can be replaced."""

    def __init__(self, **changed: Any) -> None:
        self._made = sv.relative_mollifier(PRIOR, 2.0)
        self.name, self.options, self.prior, self.epsilon = "own", dict[str, float](), PRIOR, 2.0
        self.floor, self.linear, self.keeps_prior = self._made.floor, False, True
        self.distribution, self.divergence, self.worst_case = (
            self._made.distribution,
            self._made.divergence,
            self._made.worst_case,
        )
        self.__dict__.update(changed)

    def matrix(self) -> Any:
        raise sv.errors.NotLinearError("own is not linear")


def test_every_sampler_of_the_library_passes() -> None:
    for make in (sv.fitted, *sv.SAMPLERS.values()):
        sv.check_sampler(make(PRIOR, 2.0), USERS)


def test_a_worst_case_that_is_not_known_is_no_fault_and_many_categories_are_looked_at() -> None:
    sv.check_sampler(sv.nearest(PRIOR, 2.0, sv.Line([1, 2, 5])), USERS)
    sv.check_sampler(sv.relative_mollifier(sv.Prior.uniform(range(300_000)), 2.0))


def test_a_sampler_of_ones_own_may_not_know_its_worst_case() -> None:
    def unknown(_: Any) -> float:
        raise sv.errors.ParameterError("it is not known")

    own: Any = Own(worst_case=unknown)
    (row,) = sv.compare(USERS, own)
    assert row.worst_case is None
    (known,) = sv.compare(USERS, sv.relative_mollifier(PRIOR, 2.0))
    assert (row.mean, row.maximum) == pytest.approx((known.mean, known.maximum), rel=1e-12)
    bound = sv.estimate(own, {"a": 5, "b": 3, "c": 2}).bias_bound
    assert bound == pytest.approx(1 - own.floor.min(), rel=1e-12)
    assert known.worst_case is not None
    assert bound >= known.worst_case


def test_compare_looks_at_the_laws_of_its_own_users() -> None:
    """Only the second user is released as they are: neither the prior nor a user with one category shows it."""
    right = sv.relative_mollifier(PRIOR, 2.0)

    def leaking(p: Any) -> Any:
        laws, rows = right.distribution(p), np.asarray(p)
        odd = np.isclose(rows[:, 2], 0.99)
        laws[odd] = rows[odd]
        return laws

    own: Any = Own(distribution=leaking)
    sv.check_sampler(own)
    with pytest.raises(
        sv.errors.ParameterError,
        match=r"the laws of 1 of 6 users \(also the prior and some with one category\) leave the box",
    ):
        sv.compare(np.array([[1.0, 0, 0], [0.0, 0.01, 0.99]]), [own])


def test_a_sampler_of_ones_own_is_compared() -> None:
    own: Any = Own()
    sv.check_sampler(own, USERS)
    table = sv.compare(USERS, [own, sv.relative_mollifier(PRIOR, 2.0)])
    means = [row.mean for row in table]
    assert means[0] == means[1]


@pytest.mark.parametrize("kind", ["Users", "sparse", "array"])
def test_a_sampler_of_ones_own_gets_arrays_whatever_the_users_are(kind: str) -> None:
    """Also so many users that they come in several blocks."""
    right = sv.relative_mollifier(PRIOR, 2.0)
    shapes = list[tuple[int, ...]]()

    def divergence(p: Any, f: Any) -> Any:
        rows = np.asarray(p)
        shapes.append(rows.shape)
        return f(rows, right.distribution(rows))

    own: Any = Own(divergence=divergence, distribution=lambda p: right.distribution(np.asarray(p)))
    p = np.tile(USERS, (200_000, 1))
    rows = sparse.csr_array(p)
    users: Any = {"Users": sv.Users(tuple(range(len(p))), rows, PRIOR.categories), "sparse": rows, "array": p}
    sv.check_sampler(own, users[kind])
    mine, theirs = sv.compare(users[kind], [own, right])
    assert (mine.mean, mine.maximum) == pytest.approx((theirs.mean, theirs.maximum), rel=1e-12)
    assert max(shape[0] for shape in shapes) < len(p)
    assert {shape[1] for shape in shapes} == {3}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"distribution": np.asarray},
            r"own is not private at epsilon 2: the laws of . of . users \(also the prior and some with one category\) leave the box",
        ),
        ({"floor": np.full(3, 1e-6)}, "leave the box"),
        ({"epsilon": 0.5}, "own is not private at epsilon 0.5"),
        ({"distribution": lambda p: np.asarray(p) / 2}, "a law that adds up to 1"),
        ({"distribution": lambda p: np.ones(3)}, "a law that adds up to 1"),
        (
            {"distribution": lambda p: np.tile(np.full(3, 1 / 3), (len(p), 1)), "floor": np.full(3, 0.3)},
            "keeps the prior",
        ),
        ({"worst_case": lambda f: 0.01}, "further than its worst case"),
        (
            {"divergence": lambda p, f: np.zeros(len(p))},
            "own.divergence is not the tv of a user and their law",
        ),
    ],
)
def test_what_does_not_hold_is_refused(changed: dict[str, Any], message: str) -> None:
    own: Any = Own(**changed)
    with pytest.raises(sv.errors.ParameterError, match=message):
        sv.check_sampler(own)
    with pytest.raises(sv.errors.ParameterError, match=message):
        sv.compare(USERS, [own])


def test_every_user_is_looked_at_not_the_first_few() -> None:
    right = sv.relative_mollifier(PRIOR, 2.0)

    def leaking(p: Any) -> Any:
        laws, rows = right.distribution(p), np.asarray(p)
        odd = np.isclose(rows[:, 2], 0.99)
        laws[odd] = rows[odd]
        return laws

    own: Any = Own(distribution=leaking, divergence=lambda p, f: f(p, leaking(p)))
    users = np.tile([1.0, 0, 0], (1000, 1))
    users[-1] = [0.0, 0.01, 0.99]
    with pytest.raises(
        sv.errors.ParameterError,
        match=r"the laws of 1 of 1004 users \(also the prior and some with one category\) leave the box",
    ):
        sv.compare(users, [own])


class Derived(sv.ClipSampler):
    """A class derived from the library's, which releases every user as they are."""

    def distribution(self, p: Any) -> Any:
        return np.asarray(p)


def test_a_derived_class_is_a_sampler_of_ones_own() -> None:
    derived = Derived("derived", PRIOR, 1.0, PRIOR.probabilities / 2)
    calls: list[Any] = [
        lambda: sv.compare(USERS, [derived]),
        lambda: sv.certify(derived),
        lambda: sv.estimate(derived, {"a": 5, "b": 5}),
        lambda: sv.amplify(derived, 1000, 1e-6),
    ]
    for call in calls:
        with pytest.raises(sv.errors.ParameterError, match="not private at epsilon 1"):
            call()


def test_a_derived_class_that_is_private_is_not_certified_by_another_rule() -> None:
    class Cautious(sv.ClipSampler):
        def distribution(self, p: Any) -> Any:
            return np.broadcast_to(PRIOR.probabilities, np.shape(p))

        def divergence(self, p: Any, f: Any) -> Any:
            return f(p, self.distribution(p))

        def worst_case(self, f: Any) -> float:
            return float(np.max(self.divergence(np.eye(3), f)))

    cautious = Cautious("cautious", PRIOR, 1.0, PRIOR.probabilities / 2)
    sv.check_sampler(cautious, USERS)
    with pytest.raises(sv.errors.ParameterError, match="a rule or a matrix of its own"):
        sv.certify(cautious)


def test_a_kernel_of_the_library_serves_its_own_epsilon_and_prior() -> None:
    made: Any = sv.minimax_kernel(PRIOR, 4.0)
    for make in (
        lambda: sv.KernelSampler("own", PRIOR, 0.5, made.kernel),
        lambda: dataclasses.replace(made, epsilon=0.5),
        lambda: sv.KernelSampler("own", PRIOR, 0.5, sv.KernelSampler("m", PRIOR, 1.0, MATRIX).kernel),
    ):
        with pytest.raises(sv.errors.ParameterError, match=r"kernel is not private at epsilon 0\.5"):
            make()
    with pytest.raises(sv.errors.ParameterError, match="another prior"):
        sv.KernelSampler("own", sv.Prior(list("abc"), [0.2, 0.3, 0.5]), 4.0, made.kernel)


def test_a_mechanism_is_not_a_sampler_and_two_divergences_have_two_names() -> None:
    mechanism: Any = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    for call in (sv.certify, lambda made: sv.compare(USERS, made)):
        with pytest.raises(sv.errors.ParameterError, match="Mechanism is not a sampler: it lacks"):
            call(mechanism)
    other = sv.FDivergence("tv", sv.KL.f, sv.KL.at_zero, sv.KL.at_infinity)
    with pytest.raises(sv.errors.ParameterError, match="different names"):
        sv.compare(USERS, sv.kernel_clip(PRIOR, 1.0), [sv.TV, other])


def test_missing_members_are_named() -> None:
    class Mine:
        def distribution(self, p: Any) -> Any:
            return p

    mine: Any = Mine()
    with pytest.raises(
        sv.errors.ParameterError, match="Mine is not a sampler: it lacks name, options, prior, epsilon"
    ):
        sv.compare(USERS, [mine])


MATRIX = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])


def test_a_matrix_of_ones_own_is_a_kernel() -> None:
    own = sv.KernelSampler("own", PRIOR, 1.0, MATRIX)
    np.testing.assert_allclose(own.distribution(USERS), USERS @ MATRIX, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(own.floor, [0.2, 0.2, 0.2])
    np.testing.assert_array_equal(own.matrix(), MATRIX)
    assert own.linear
    assert not own.keeps_prior
    assert own.worst_case(sv.TV) == pytest.approx(0.5, abs=1e-15)
    laws = USERS @ MATRIX
    for f in (sv.TV, sv.KL):
        np.testing.assert_allclose(own.divergence(USERS, f), f(USERS, laws), rtol=0, atol=1e-14)
    sv.check_sampler(own, USERS)
    assert [row.sampler for row in sv.compare(USERS, [own])] == ["own"]


def test_a_matrix_of_ones_own_is_estimated() -> None:
    """K⁻¹ gives back the population, and the variance of a share is that of one report, over the number."""
    truth = np.array([0.2, 0.5, 0.3])
    law = truth @ MATRIX
    counts = dict(zip("abc", (law * 1_000_000).round().astype(int).tolist(), strict=True))
    shares = sv.estimate(sv.KernelSampler("own", PRIOR, 1.0, MATRIX), counts)
    np.testing.assert_allclose(shares.values, truth, rtol=0, atol=1e-5)
    undone = np.linalg.inv(MATRIX)
    deviation = np.sqrt((law @ undone**2 - truth**2) / 1_000_000)
    np.testing.assert_allclose(shares.standard_errors, deviation, rtol=1e-3)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), "kernel is not private at epsilon 1: column 0 has entries from 0 to 1"),
        (MATRIX[:2], "n × n array whose rows sum to one"),
        (MATRIX / 2, "n × n array whose rows sum to one"),
        (np.full((2, 2), 0.5), "kernel has 2 categories, the prior 3"),
        (MATRIX * np.nan, "n × n array whose rows sum to one"),
        (np.array([[1.5, -0.5, 0], [0, 1, 0], [0, 0, 1]]), "not private"),
    ],
)
def test_a_matrix_that_is_no_private_kernel_is_refused(matrix: Any, message: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match=message):
        sv.KernelSampler("own", PRIOR, 1.0, matrix)


def test_a_matrix_of_ones_own_is_not_certified_and_the_message_says_what_can_be() -> None:
    with pytest.raises(sv.errors.ParameterError, match="a floor of your own can be certified"):
        sv.certify(sv.KernelSampler("own", PRIOR, 1.0, MATRIX))
