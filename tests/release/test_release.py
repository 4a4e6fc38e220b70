"""Releases: the code draws exactly the stated law, from the operating system only, and leaks nothing."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tape import tape

import sottovoce as sv
from sottovoce.core import randomness
from sottovoce.core.engine import BATCH
from sottovoce.core.kernel import choose_record, choose_records, record_law
from sottovoce.records import Category, UsersLike
from sottovoce.release.certify import certify_with

PRIOR = sv.Prior(["a", "b", "c", "d"], [0.3, 0.12, 0.4, 0.18])
USERS = {
    "one record": ["b"],
    "two kinds": ["a", "b", "b"],
    "everything": ["a", "b", "c", "d", "d"],
    "far": ["b"] * 7 + ["d"],
}
BOXES = [name for name, make in sv.SAMPLERS.items() if not make(PRIOR, 1.0).linear]
LINEAR = [name for name in sv.SAMPLERS if name not in BOXES]
everyone = pytest.mark.parametrize("user", USERS)


# --- promise 4 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOXES)
@everyone
def test_promise_4_every_tape_of_a_box(name: str, user: str) -> None:
    mechanism = certify_with(sv.SAMPLERS[name](PRIOR, 1.5), 12)
    with tape(list(range(1 << 12)), 12) as reads:
        drawn = Counter(mechanism.release(records=USERS[user]) for _ in range(1 << 12))
    law = mechanism.law(records=USERS[user])
    assert {c: Fraction(drawn[c], 1 << 12) for c in PRIOR.categories} == dict(
        zip(PRIOR.categories, law, strict=True)
    )
    assert set(reads) == {8}


def enumerate_row(mechanism: sv.Mechanism, category: Category, bits: int) -> Counter[Category]:
    """Every pair (u, v), or every u, of a linear mechanism for a user with one record."""
    size = 1 << bits
    u = np.arange(size, dtype=np.int64)
    extra = [np.repeat(u, size), np.tile(u, size)] if mechanism.engine.words == 3 else [u]
    rows = sparse.csr_array((np.ones(1, dtype=np.int64), ([0], [PRIOR.index[category]])), shape=(1, 4))
    drawn: Counter[Category] = Counter()
    step = BATCH  # one batch reads its words in one piece
    for begin in range(0, len(extra[0]), step):
        part = [words[begin : begin + step] for words in extra]
        everyone_alike = rows[np.zeros(len(part[0]), dtype=int)]
        flat = np.concatenate([np.random.default_rng(begin).integers(0, size, len(part[0])), *part])
        with tape(flat.tolist(), bits):
            drawn += Counter(mechanism.release_many(everyone_alike).tolist())
    return drawn


def check_rows(name: str, bits: int) -> None:
    mechanism = certify_with(sv.SAMPLERS[name](PRIOR, 1.5), bits)
    for category in PRIOR.categories:
        drawn = enumerate_row(mechanism, category, bits)
        law = mechanism.law(records=[category])
        total = sum(drawn.values())
        assert [Fraction(drawn[c], total) for c in PRIOR.categories] == law


@pytest.mark.parametrize("name", LINEAR)
def test_promise_4_every_tape_of_a_kernel(name: str) -> None:
    check_rows(name, 9 if name == "minimax_kernel" else 12)


@pytest.mark.full
def test_promise_4_every_12_bit_tape_of_the_papers_kernel() -> None:
    check_rows("minimax_kernel", 12)


@everyone
def test_promise_4_every_tape_of_the_record_choice(user: str) -> None:
    counts = Counter(PRIOR.index[record] for record in USERS[user])
    weights = sorted(counts.items())
    public = np.arange(1, 5) << 10
    chosen = Counter(choose_record(weights, word, 12, public) for word in range(1 << 12))
    assert {place: Fraction(n, 1 << 12) for place, n in chosen.items()} == dict(record_law(weights, 12))
    row = np.zeros((1, 4), dtype=np.int64)
    for place, n in weights:
        row[0, place] = n
    rows = sparse.csr_array(np.repeat(row, 1 << 12, axis=0))
    vector = Counter(choose_records(rows, np.arange(1 << 12, dtype=np.int64), 12, public).tolist())
    assert vector == chosen


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_one_and_many_release_the_same_from_the_same_words(name: str) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 1.5))
    rng = random.Random(4)
    counts = np.random.default_rng(4).integers(0, 5, size=(400, 4))
    counts[:, 1] += counts.sum(axis=1) == 0
    k = mechanism.engine.words
    words = [[rng.randrange(1 << 62) for _ in range(len(counts))] for _ in range(k)]
    with tape([w for row in words for w in row], 62):
        many = mechanism.release_many(counts)
    one = []
    for i, row in enumerate(counts):
        records = [c for c, n in zip(PRIOR.categories, row, strict=True) for _ in range(n)]
        with tape([words[j][i] for j in range(k)], 62):
            one.append(mechanism.release(records=records))
    assert many.tolist() == one


# --- promise 8 ---------------------------------------------------------------------------------


def _draw(connection: object) -> None:
    mechanism = sv.certify(sv.minimax_kernel(sv.Prior.uniform(range(1000)), 1.0))
    words = [randomness.words(1, 62)[0] for _ in range(1000)]
    connection.send((words, mechanism.release(records=[3])))  # type: ignore[attr-defined]


@pytest.mark.parametrize("children", [16, pytest.param(64, marks=pytest.mark.full)])
def test_promise_8_forked_children_never_repeat(children: int) -> None:
    context = multiprocessing.get_context("fork")
    randomness.words(1, 62)  # whatever a buffer would hold is now in the parent
    seen: list[int] = []
    for _ in range(0, children, 8):
        pipes = [context.Pipe() for _ in range(8)]
        processes = [context.Process(target=_draw, args=(end,)) for _, end in pipes]
        for process in processes:
            process.start()
        for (receive, _), process in zip(pipes, processes, strict=True):
            words, _ = receive.recv()
            seen += words
            process.join()
    assert len(seen) == children * 1000
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("name", ["minimax_kernel", "kernel_clip", "randomized_response"])
def test_promise_8_a_short_read_or_a_failure_releases_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 1.0))

    def failing(_: int) -> bytes:
        raise OSError("no entropy")

    for source in (lambda size: os.urandom(size)[:-1], lambda _: b"", failing):
        monkeypatch.setattr(randomness, "_read", source)
        with pytest.raises(sv.errors.RandomnessError, match="nothing was released"):
            mechanism.release(records=["a"])
        with pytest.raises(sv.errors.RandomnessError, match="nothing was released"):
            mechanism.release_many(np.eye(4))


def test_promise_8_seeding_changes_nothing() -> None:
    mechanism = sv.certify(sv.minimax_kernel(sv.Prior.uniform(range(64)), 0.5))
    runs = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        runs.append([mechanism.release(records=[0]) for _ in range(40)])
    assert runs[0] != runs[1]  # equal with probability below 64^-20


def test_the_tape_cannot_be_reached_from_release() -> None:
    import inspect

    assert set(inspect.signature(sv.Mechanism.release).parameters) == {
        "self", "records", "state", "p", "unknown"
    }  # fmt: skip
    assert set(inspect.signature(sv.Mechanism.release_many).parameters) == {
        "self", "p", "states", "exact"
    }  # fmt: skip
    assert randomness._read is os.urandom


@pytest.mark.parametrize("name", sv.SAMPLERS)
@given(st.lists(st.sampled_from(PRIOR.categories), min_size=1, max_size=30))
def test_the_bytes_drawn_do_not_depend_on_the_data(name: str, records: list[str]) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 0.7))
    with tape([5, 1 << 61, 9], 62) as reads:
        mechanism.release(records=records)
    assert reads == [8 * mechanism.engine.words]


# --- laws and statistics ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_frequencies_follow_the_law(name: str) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 1.0))
    p = np.array([0.1, 0.6, 0.0, 0.3])
    draws = 40_000
    drawn = Counter(mechanism.release_many(np.tile(p, (draws, 1))).tolist())
    for category, share in zip(PRIOR.categories, mechanism.law(p=p), strict=True):
        deviation = np.sqrt(float(share) * (1 - float(share)) / draws)
        assert abs(drawn[category] / draws - float(share)) <= 6 * deviation + 1e-12  # 6σ: one in 5·10⁸


def test_counts_records_and_distributions_have_one_law() -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    records = ["a", "b", "b", "d"]
    by_records = mechanism.law(records=records)
    by_p = mechanism.law(p=[0.25, 0.5, 0.0, 0.25])
    assert by_records == by_p == mechanism.law(records=records * 3)
    assert mechanism.law(p=np.array([[1, 2, 0, 1]])) == by_p


# --- promise 9: bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["minimax_kernel", "kernel_clip", "rr_with_prior"])
@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "records must not be empty"),
        (["a", "secret-site", "secret-site"], "2 of 3 are not"),
        ([None], "1 of 1 are not"),
        ([["a"]], "1 of 1 are not"),
        ({"a": -3, "b": 1}, "must be a list of categories"),
        (Counter({"a": 1, "secret": 2}), "must be a list of categories"),
        ("ab", "must be a list of categories"),
    ],
)
def test_promise_9_bad_records(
    name: str, records: list[object], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 1.0))
    with caplog.at_level(logging.DEBUG), pytest.raises(sv.errors.UserDataError, match=message) as caught:
        mechanism.release(records=records, unknown="error")  # type: ignore[arg-type]
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.5], "the prior has 4 categories, p has 2"),
        ([float("nan"), 1, 0, 0], "not finite"),
        ([-1.0, 1.0, 1.0, 0.0], "negative"),
        (np.array([[1, -1, 0, 5]]), "negative counts"),
        (np.array([[1 << 60, 0, 0, 0]]), "too large"),
        (np.eye(4), "one user's distribution, got 4 rows"),
    ],
)
def test_promise_9_bad_distributions(p: UsersLike, message: str) -> None:
    mechanism = sv.certify(sv.minimax_kernel(PRIOR, 1.0))
    with pytest.raises(sv.errors.UserDataError, match=message):
        mechanism.release(p=p)


NUMBERED = sv.Prior([0, 1, 2], [0.5, 0.3, 0.2])
SHARES = [0.25, 0.75, 0.0]


def table_of(shares: list[float]) -> object:
    return pytest.importorskip("pandas").DataFrame([shares])


@pytest.mark.parametrize("prior", [PRIOR, NUMBERED], ids=["text", "integers"])
@pytest.mark.parametrize(
    "make",
    [list, tuple, np.array, lambda p: np.array(p, dtype=np.float32), lambda p: [np.float32(x) for x in p],
     lambda p: iter(p), lambda p: [None, *p], lambda p: [float("nan"), *p], lambda p: np.array([p]),
     sparse.csr_array, lambda p: sparse.csr_array([p]), table_of, lambda p: dict(zip("abc", p, strict=True))],
)  # fmt: skip
def test_promise_28_a_distribution_given_as_records_is_refused(
    tmp_path: Path, prior: sv.Prior, make: Callable[[list[float]], Any]
) -> None:
    """It was taken for unknown records, so that the prior was released in the user's name."""
    mechanism = sv.certify(sv.kernel_clip(prior, 1.0))
    ledger = sv.Ledger.create(tmp_path / "l.db", budget=2)
    calls: list[Callable[[Any], object]] = [
        lambda given: mechanism.release(records=given),
        lambda given: mechanism.release(records=given, unknown="error"),
        lambda given: mechanism.law(records=given),
        mechanism.unknown,
        prior.frequencies,
        lambda given: ledger.release(mechanism, "ann", records=given),
    ]
    for call in calls:
        with pytest.raises(sv.errors.UserDataError, match="records must be ") as caught:
            call(make(SHARES))
        assert "75" not in str(caught.value)
    assert ledger.users() == 0


def test_promise_28_other_things_in_the_place_of_records() -> None:
    pandas, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    text, numbered = (sv.certify(sv.kernel_clip(prior, 1.0)) for prior in (PRIOR, NUMBERED))
    counts = pandas.Series(["a", "a", "b"]).value_counts()
    wrong: list[Any] = [
        [0, 0.5, 0.5, 0], [1, 0, 0, 0], np.array([2, 0, 1]), counts, [Fraction(1, 4)] * 4,
        [Decimal("0.25")] * 4, [("a",), ("b",)], Counter("ab").items(), polars.DataFrame({"x": ["a"]}),
        [float("inf"), 0.5], np.array([True, False]),
    ]  # fmt: skip
    for records in wrong:
        with pytest.raises(sv.errors.UserDataError, match="records must be "):
            text.law(records=records)
    for records in ([0, 0.5, 0.5], [("a",)]):
        with pytest.raises(sv.errors.UserDataError, match="records must be "):
            numbered.law(records=records)  # type: ignore[arg-type]
    one = text.law(records=["b"])
    for right in (
        arrow.array(["b"]),
        polars.Series(["b"]),
        pandas.Series(["b"]),
        np.array(["b"]),
        {"b"},
        ("b",),
    ):
        assert text.law(records=right) == one
    public = text.law(records=[])
    empty: list[Any] = [np.array([], dtype=int), arrow.array([], arrow.string())]
    odd: list[Any] = [[7], [7, "SECRET"], [7, 0.5], [["b"]], [{}], *empty]
    for records in odd:
        assert text.law(records=records) == public
    assert numbered.law(records=[0, 1, 1]) == numbered.law(records=np.array([0, 1, 1]))


def test_promise_28_labels_of_a_distribution_are_the_categories_in_their_order() -> None:
    pandas = pytest.importorskip("pandas")
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    own = [0.5, 0.0, 0.25, 0.25]
    for index in (None, list(PRIOR.categories)):
        assert mechanism.law(p=pandas.Series(own, index=index)) == mechanism.law(p=own)
    assert mechanism.law(p=pandas.DataFrame([own], index=["ann"])) == mechanism.law(p=own)
    for wrong in (["b", "a", "c", "d"], ["a", "b", "c", "x"], [3, 2, 1, 0]):
        with pytest.raises(sv.errors.UserDataError, match="p has labels"):
            mechanism.law(p=pandas.Series(own, index=wrong))


@pytest.mark.parametrize("prior", [PRIOR, NUMBERED], ids=["text", "integers"])
def test_promise_28_what_a_user_has_refuses_nothing(prior: sv.Prior) -> None:
    mechanism = sv.certify(sv.kernel_clip(prior, 1.0))
    nan, name = float("nan"), prior.categories[1]
    public = mechanism.law(records=[])
    nothing: list[Any] = [[nan], [nan, None], np.array([]), np.array([nan, nan]), [0.5, "SECRET"], [object()]]
    for without in nothing:
        assert mechanism.law(records=without) == public
        assert mechanism.release(records=without) in prior.categories
    mixed: list[Any] = [[name, nan], [name, None], [name, 0.5], np.array([name, nan], dtype=object)]
    for records in mixed:
        assert mechanism.law(records=records) == mechanism.law(records=[name])


def test_promise_28_records_and_p_are_named() -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    for call in (mechanism.release, mechanism.law):
        with pytest.raises(TypeError, match="positional argument"):
            call(["a"])  # type: ignore[call-arg, call-overload]


def test_unknown_counts_the_records_that_are_no_category() -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    assert mechanism.unknown(["a", "b", "a"]) == 0
    odd: list[Any] = ["A", "b", None, float("nan"), ["a"], 7]
    assert mechanism.unknown(odd) == 5
    assert mechanism.unknown([]) == 0


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_a_mechanism_travels_to_other_processes(name: str) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 1.0))
    mechanism.release(records=["a"])
    mechanism.release_many(np.eye(4))
    again = pickle.loads(pickle.dumps(mechanism))  # noqa: S301
    assert again == mechanism
    assert again.release(records=["b"]) in PRIOR.categories


def test_a_law_outside_its_box_releases_nothing() -> None:
    """Even if the whole numbers were wrong: what the clip answers is looked at before it is drawn from."""
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    with pytest.raises(sv.errors.CertificateError, match="left its box; nothing is released"):
        mechanism.engine.position([(0, -3), (1, 1), (2, 1)], [5])


def test_counts_that_would_wrap_around_are_refused() -> None:
    mechanism = sv.certify(sv.minimax_kernel(sv.Prior.uniform(range(2048)), 4.0))
    with pytest.raises(sv.errors.UserDataError, match="sum is below"):
        mechanism.release_many(np.full((1, 2048), (1 << 53) - 1))


def test_release_takes_one_kind_of_data() -> None:
    mechanism = sv.certify(sv.minimax_kernel(PRIOR, 1.0))
    with pytest.raises(sv.errors.ParameterError, match="either records= or p="):
        mechanism.release()
    with pytest.raises(sv.errors.ParameterError, match="either records= or p="):
        mechanism.release(records=["a"], p=[1, 0, 0, 0])
    assert repr(mechanism) == "<Mechanism minimax_kernel on 4 categories, epsilon=1>"
