"""Several samples for one ε: the joint law against brute force, its privacy, its draws, planted faults."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import exp, prod

import joint_oracle
import numpy as np
import pytest
from kinds import of_kind
from tape import tape

import sottovoce as sv
from sottovoce.release import joint
from sottovoce.release.box import BoxEngine
from sottovoce.release.certify import certify_with
from sottovoce.release.exact import certified_box
from sottovoce.release.joint import JointBox, JointEngine, most_groups, order_number, orders_of, whole_root

CLIPS = (
    "kernel_clip",
    "prior_minimax",
    "blend",
    "power_caps",
    "relative_mollifier",
    "local_minimax",
    "global_minimax",
)


def some_prior(rng: random.Random, n: int) -> sv.Prior:
    return sv.Prior.from_counts({i: rng.randint(1, 9) for i in range(n)})


def some_user(rng: random.Random, n: int) -> dict[int, int]:
    held = rng.sample(range(n), rng.randint(1, n))
    return {place: rng.choice([1, 1, 2, 3, 7]) for place in sorted(held)}


def some_mechanism(rng: random.Random, n: int, k: int, bits: int) -> sv.Mechanism:
    while True:
        sampler = sv.SAMPLERS[rng.choice(CLIPS)]
        epsilon = rng.choice([0.5, 1.0, 2.0, 4.0, 8.0])
        try:
            return certify_with(sv.several(some_prior(rng, n), epsilon, samples=k, sampler=sampler), bits)
        except sv.errors.CertificateError:
            continue


def engine_of(mechanism: sv.Mechanism) -> JointEngine:
    return of_kind(mechanism.engine, JointEngine)


def units_of(mechanism: sv.Mechanism, user: dict[int, int]) -> dict[tuple[int, ...], int]:
    """The drawn units of every tuple, in N^k."""
    n, k = len(mechanism.categories), mechanism.samples
    whole = (1 << mechanism.bits) ** k
    law = mechanism.engine.law(sorted(user.items()))
    return {z: int(share * whole) for z, share in zip(product(range(n), repeat=k), law, strict=True)}


def outside(mechanism: sv.Mechanism, user: dict[int, int]) -> int:
    """How many tuples of a user lie outside floor and cap; one more if the units do not add up."""
    low, units = engine_of(mechanism).box.low, units_of(mechanism, user)
    up, down = mechanism.ratio.numerator, mechanism.ratio.denominator
    wrong = int(sum(units.values()) != (1 << mechanism.bits) ** mechanism.samples)
    for z, unit in units.items():
        floor = prod(low[i] for i in z)
        wrong += not (floor <= unit and unit * down <= up * floor)
    return wrong


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 2), (2, 3), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2), (5, 3)])
@pytest.mark.parametrize("bits", [14, 62])
def test_the_joint_law_is_that_of_brute_force(n: int, k: int, bits: int) -> None:
    """Every tuple of the law beside the real-valued clip over all n^k tuples.

    A class is rounded once and every tuple of it once more. Caps are lower by up to a unit a tuple, or by
    1/(least floor) of A; all tuples together take over what that cuts off, and no tuple can take over more.
    Two kinds of users are rounded to units of 1/N before a k-th power is taken: those whose own law lies in
    the box, and those at their caps, whose guide of k factors is then off by k/least of each tuple at most.
    """
    rng = random.Random(100 * n + 10 * k + bits)
    whole = (1 << bits) ** k
    for _ in range(12):
        mechanism = some_mechanism(rng, n, k, bits)
        box, user = engine_of(mechanism).box, some_user(rng, n)
        brute = joint_oracle.joint_law(box.low, box.total, box.ratio, k, user, box.single_ratio)
        inside = box.inside(sorted(user.items())) is not None
        cut = (1 + sum(box.low) // box.least) ** k + n**k
        capped = all(brute[z] == box.ratio * floor_of(box, z) for z in product(user, repeat=k))
        off = k * (1 << bits) ** (k - 1) if inside else 2 + cut
        off += whole * 2 * k // box.least if capped else 0
        for z, unit in units_of(mechanism, user).items():
            assert abs(unit - brute[z] * whole) <= off


def floor_of(box: JointBox, z: tuple[int, ...]) -> Fraction:
    return Fraction(prod(box.low[i] for i in z), box.total**box.samples)


def test_privacy_of_every_pair_of_users_in_exact_arithmetic() -> None:
    """All users with up to four records over four categories: the most of each tuple ≤ A·the least."""
    rng = random.Random(5)
    for k, bits in ((2, 10), (2, 62), (3, 8), (3, 62)):
        for _ in range(3):
            mechanism = some_mechanism(rng, 4, k, bits)
            users = [Counter(held) for size in range(1, 5) for held in combinations(range(4), size)]
            users += [Counter({0: 3, 1: 1}), Counter({2: 1, 3: 9}), Counter({0: 1, 1: 5, 2: 1, 3: 1})]
            laws = [units_of(mechanism, dict(sorted(one.items()))) for one in users]
            assert all(outside(mechanism, dict(sorted(one.items()))) == 0 for one in users)
            up, down = mechanism.ratio.numerator, mechanism.ratio.denominator
            for z in laws[0]:
                values = [law[z] for law in laws]
                assert max(values) * down <= up * min(values)
            assert float(mechanism.ratio) <= exp(float(mechanism.epsilon))


@pytest.mark.parametrize(("k", "bits", "n"), [(2, 6, 2), (2, 6, 3), (3, 4, 2), (4, 3, 2)])
def test_every_tape_of_12_bits_through_the_shipping_path(k: int, bits: int, n: int) -> None:
    """All 2^12 tapes: each tuple is released for exactly the units that its law states."""
    rng = random.Random(k + bits)
    for _ in range(4):
        mechanism = some_mechanism(rng, n, k, bits)
        user = some_user(rng, n)
        records = [place for place, times in user.items() for _ in range(times)]
        counted: Counter[tuple[int, ...]] = Counter()
        for words in product(range(1 << bits), repeat=k):
            with tape(list(words), bits) as reads:
                counted[mechanism.release(records)] += 1
            assert reads == [8 * k]
        assert counted == Counter({z: unit for z, unit in units_of(mechanism, user).items() if unit})


def test_batch_and_single_release_give_the_same_answer_on_the_same_words() -> None:
    rng = random.Random(9)
    mechanism = some_mechanism(rng, 6, 3, 62)
    users = [some_user(rng, 6) for _ in range(40)]
    rows = np.array([[one.get(i, 0) for i in range(6)] for one in users])
    words = [rng.randrange(1 << 62) for _ in range(3 * 40)]
    with tape(words, 62):
        many = mechanism.release_many(rows)
    assert many.shape == (40, 3)
    for i, user in enumerate(users):
        records = [place for place, times in user.items() for _ in range(times)]
        with tape(words[i::40], 62):  # a batch draws its first words for everybody, then its second ones
            assert tuple(many[i]) == mechanism.release(records)


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize("k", [2, 3, 16])
def test_a_user_equal_to_the_prior_releases_independent_draws_from_it(name: str, k: int) -> None:
    """The released law is Q^⊗k, unit by unit, exactly where the mechanism says that it keeps the prior."""
    prior = sv.Prior.from_counts({i: 3 * i + 1 for i in range(9)})
    sampler = sv.several(prior, 4.0, samples=k, sampler=sv.SAMPLERS[name])
    mechanism = sv.certify(sampler)
    assert mechanism.keeps_prior == sampler.keeps_prior
    engine = engine_of(mechanism)
    inside = engine.box.inside(list(enumerate(engine.prior)))
    assert (inside == list(engine.prior)) == mechanism.keeps_prior


def test_the_prior_is_kept_with_more_categories_than_there_are_groups() -> None:
    prior = sv.Prior.from_counts({i: i + 1 for i in range(300)})
    mechanism = sv.certify(sv.several(prior, 3.0, samples=8))
    engine = engine_of(mechanism)
    assert mechanism.keeps_prior
    assert len(prior) > most_groups(8)
    words = [random.Random(3).randrange(1 << 62) for _ in range(8)]
    reached = np.cumsum(np.array(engine.prior, dtype=object))
    expected = tuple(int(np.searchsorted(reached, word, side="right")) for word in words)
    assert engine.position(list(enumerate(engine.prior)), words) == expected


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_user_with_many_categories_draws_separately_inside_the_same_box(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """With fewer classes allowed the law of some users is another one, and as private; small and large N."""
    monkeypatch.setattr(joint, "most_groups", lambda samples: most)
    rng = random.Random(most)
    seen = 0
    for k, bits in ((2, 12), (3, 62)):
        for _ in range(8):
            mechanism, user = some_mechanism(rng, 5, k, bits), some_user(rng, 5)
            assert outside(mechanism, user) == 0
            engine = engine_of(mechanism)
            alone = engine.alone(sorted(user.items()))
            if len(user) > most and alone != engine.box.inside(sorted(user.items())):
                single = certified_box(engine.box.low, engine.box.single_ratio, engine.box.total)
                law = BoxEngine(single, engine.prior).law(sorted(user.items()))
                assert alone == [int(share * engine.box.total) for share in law]
                seen += 1
    assert seen > 3


def test_a_user_with_hundreds_of_categories_is_no_further_than_with_separate_releases() -> None:
    n = 400
    joint = sv.several(sv.Prior.from_counts(range(1, n + 1)), 4.0, samples=4)
    mechanism = sv.certify(joint)
    counts = np.zeros(n, dtype=np.int64)
    counts[::2] = 1 + np.arange(n // 2) % 7
    engine = engine_of(mechanism)
    weights = [(place, int(counts[place])) for place in range(0, n, 2)]
    law = np.array([float(share) for share in engine.single_law(weights)])
    apart = joint.single.distribution(counts / counts.sum())
    np.testing.assert_allclose(law, apart, rtol=1e-9)
    released = mechanism.release_many(counts)
    assert released.shape == (1, 4)


@pytest.mark.parametrize("k", range(2, 17))
def test_the_public_number_of_groups_is_the_largest_that_keeps_classes_few(k: int) -> None:
    def count(own: int) -> int:
        """Multisets of k out of own + 1, by the recurrence of Pascal."""
        row = [1] * (k + 1)
        for _ in range(own):
            for j in range(1, k + 1):
                row[j] += row[j - 1]
        return row[k]

    most = most_groups(k)
    assert count(most) <= joint.MOST_CLASSES < count(most + 1)


def test_orders_of_a_multiset_come_in_lexicographic_order() -> None:
    for groups in ((0, 0, 1), (0, 1, 2), (2, 2, 2), (0, 0, 1, 1), (1, 3, 3, 4, 4)):
        expected = sorted(
            {order for order in product(set(groups), repeat=len(groups)) if sorted(order) == list(groups)}
        )
        assert orders_of(groups) == len(expected)
        assert [tuple(order_number(groups, number)) for number in range(len(expected))] == expected


def test_the_whole_root_is_the_largest_whole_number_whose_power_fits() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        degree, value = rng.randint(2, 16), rng.randrange(1, 1 << rng.randint(1, 2000))
        root = whole_root(value, degree)
        assert root**degree <= value < (root + 1) ** degree


# --- planted faults: the tests above must see them ----------------------------------------------------


def _caps_without_the_unit(self: JointBox, found: joint.Classes) -> list[int]:
    return [low * self.ratio.numerator // self.ratio.denominator for low in found.low]


def _floor_too_low(self: JointBox, weights: list[tuple[int, int]]) -> joint.JointLaw:
    found = _law(self, weights)
    units = found.units.copy()
    if len(units) > 1 and units[0] > 1:
        units[0], units[-1] = units[0] // 2, units[-1] + units[0] - units[0] // 2
    return found._replace(units=units)


_law = JointBox.law


@pytest.mark.parametrize("fault", [("_caps", _caps_without_the_unit), ("law", _floor_too_low)])
def test_planted_faults_break_privacy_visibly(
    monkeypatch: pytest.MonkeyPatch, fault: tuple[str, object]
) -> None:
    monkeypatch.setattr(JointBox, *fault)
    rng = random.Random(2)
    found = 0
    for _ in range(60):
        mechanism = some_mechanism(rng, 3, 2, 6)
        found += outside(mechanism, some_user(rng, 3))
    assert found > 0


def test_a_law_that_left_its_box_is_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = sv.certify(sv.several(sv.Prior.uniform(["a", "b", "c"]), 2.0, samples=2))
    monkeypatch.setattr(joint, "exact_clip", lambda weights, low, high, target: list(high))
    with pytest.raises(sv.errors.CertificateError, match="left its box"):
        mechanism.release(["a"])


# --- refusals -----------------------------------------------------------------------------------------


def test_what_is_no_joint_mechanism_is_refused() -> None:
    prior = sv.Prior.uniform(["a", "b"])
    for wrong in (1, 17, 2.0, "2", True):
        with pytest.raises(sv.errors.ParameterError, match="samples"):
            sv.several(prior, 1.0, samples=wrong)  # type: ignore[arg-type]  # that is what is refused
    with pytest.raises(sv.errors.ParameterError, match="clip sampler"):
        sv.several(prior, 1.0, samples=2, sampler=sv.minimax_kernel)
    good = sv.certify(sv.several(prior, 1.0, samples=2))
    box = engine_of(good).box
    for low, samples in (((0, box.low[1]), 2), ((box.total, 1), 2), ((1, 1), 2), (box.low, 1), (box.low, 17)):
        with pytest.raises(sv.errors.CertificateError):
            JointBox(low, samples, box.ratio, box.total).check()
    many = sv.certify(sv.several(sv.Prior.uniform(list(range(101))), 1.0, samples=3))
    with pytest.raises(sv.errors.ParameterError, match="written out"):
        many.law(records=[1])


def test_a_copy_is_the_same_mechanism_and_private_data_are_in_no_repr() -> None:
    mechanism = sv.certify(sv.several(sv.Prior.uniform(["a", "b", "c"]), 4.0, samples=3))
    again = pickle.loads(pickle.dumps(mechanism))  # noqa: S301  (our own bytes)
    assert again == mechanism
    assert again.law(records=["a", "b"]) == mechanism.law(records=["a", "b"])
    assert repr(mechanism) == "<Mechanism 3 samples of kernel_clip on 3 categories, epsilon=4>"
    for number in range(27):
        answer = mechanism.answer_of(number)
        assert mechanism.number_of(answer) == number
