"""Users' rows are read where they are: the same answers and refusals as of a copy, and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sottovoce as sv
from sottovoce.planning import prior_check
from sottovoce.records import count_rows, distributions

PRIOR = sv.Prior(range(5), [0.1, 0.2, 0.3, 0.15, 0.25])


def some_rows(kind: type) -> sparse.csr_array:
    counts = np.array([[1, 0, 3, 0, 4], [0, 2, 0, 0, 0], [5, 1, 1, 1, 2]])
    values = counts if kind is np.int64 else counts / counts.sum(axis=1, keepdims=True)
    return sparse.csr_array(values.astype(kind))


def frozen(rows: sparse.csr_array) -> sparse.csr_array:
    """The same on memory that cannot be written to: any write raises."""
    for array in (rows.data, rows.indices, rows.indptr):
        array.setflags(write=False)
    return rows


def test_counts_are_not_copied() -> None:
    rows = frozen(some_rows(np.int64))
    checked = count_rows(rows, 5)
    assert np.shares_memory(checked.data, rows.data)
    assert np.array_equal(checked.toarray(), rows.toarray())
    released = sv.certify(sv.kernel_clip(PRIOR, 1.0)).release_many(rows)
    assert set(released) <= set(range(5))


def test_distributions_share_their_indices_and_are_divided_by_their_sums_to_the_bit() -> None:
    rows = some_rows(np.float64)
    rows.data *= 1 + 3e-10
    dense = rows.toarray()  # goes the other way: copied, then checked
    checked = distributions(frozen(rows), 5)
    assert np.shares_memory(checked.indices, rows.indices)
    assert not np.shares_memory(checked.data, rows.data)
    assert np.array_equal(checked.toarray(), distributions(dense, 5).toarray())


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_what_a_matrix_says_about_its_own_order_is_not_believed(kind: type) -> None:
    """Duplicates under a flag that denies them are added up, as in a copy."""
    plain = some_rows(kind)
    data, columns, starts = plain.data, plain.indices, plain.indptr
    half = data[:1] / 2 if kind is np.float64 else data[:1] * 0 + 1
    rest = data[:1] - half if kind is np.float64 else data[:1]
    twice: Any = sparse.csr_array(
        (
            np.concatenate([half, rest, data[1:]]),
            np.concatenate([columns[:1], columns]),
            np.add(starts, [0, 1, 1, 1]),
        ),
        shape=plain.shape,
    )
    twice.has_canonical_format = True
    check = count_rows if kind is np.int64 else distributions
    expected = plain.toarray() + (np.eye(3, 5, dtype=kind) * [[1], [0], [0]] if kind is np.int64 else 0)
    checked = check(twice, 5)
    assert checked.nnz == plain.nnz
    assert np.array_equal(checked.toarray(), expected)


@pytest.mark.parametrize(
    ("value", "message"),
    [(0, None), (-1, "negative counts"), (1 << 53, "counts too large"), ((1 << 52) + 1, "below 2")],
)
def test_counts_out_of_range_are_refused_and_zeros_dropped(value: int, message: str | None) -> None:
    rows = some_rows(np.int64)
    rows.data[:2] = value
    before = rows.data.copy()
    if message is None:
        assert count_rows(rows, 5).nnz == rows.nnz - 2
    else:
        with pytest.raises(sv.errors.UserDataError, match=message):
            count_rows(rows, 5)
    assert np.array_equal(rows.data, before)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.25, 0.0, 0.9, 1e-260])
def test_distributions_are_refused_or_mended_as_a_dense_array_is(value: float) -> None:
    rows = some_rows(np.float64)
    if 0 <= value < 0.1:
        rows.data[1] += rows.data[0] - value  # the sum stays one
    rows.data[0] = value
    dense = rows.toarray()
    outcome: list[Any] = []
    for p in (rows, dense):
        try:
            outcome.append(distributions(p, 5).toarray().tolist())
        except sv.errors.UserDataError as refused:
            outcome.append(str(refused))
    assert outcome[0] == outcome[1]


def test_a_row_without_entries_is_a_user_without_records() -> None:
    """A mechanism releases it; a sampler and a comparison have nothing to say about it."""

    def lengthened(kind: Any) -> Any:
        rows = some_rows(kind)
        return sparse.csr_array(
            (rows.data, rows.indices, np.append(rows.indptr, rows.indptr[-1])), shape=(4, 5)
        )

    assert np.diff(count_rows(lengthened(np.int64), 5).indptr)[-1] == 0
    assert np.diff(distributions(lengthened(np.float64), 5, empty=True).indptr)[-1] == 0
    with pytest.raises(sv.errors.UserDataError, match="1 of 4 users"):
        distributions(lengthened(np.float64), 5)


def test_a_comparison_checks_its_users_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checks, held = [], []
    check, made_from = distributions, prior_check.made_from

    def counted(p: object, categories: int) -> Any:
        checks.append(categories)
        return check(p, categories)

    def noted(q: Any, users: Any) -> Any:
        held.append(users)
        return made_from(q, users)

    users = sv.Users(("x", "y", "z"), some_rows(np.float64), PRIOR.categories)
    samplers = [make(PRIOR, 1.0) for make in sv.SAMPLERS.values()]
    expected = [float(np.mean(one.divergence(users.p, f))) for one in samplers for f in (sv.TV, sv.KL)]
    for module in ("planning.compare", "samplers.base"):
        monkeypatch.setattr(f"sottovoce.{module}.distributions", counted)
    monkeypatch.setattr("sottovoce.planning.compare.made_from", noted)
    table = sv.compare(users, samplers, [sv.TV, sv.KL])
    assert checks == [5]
    assert len(held) == 1
    assert [row.mean for row in table] == expected


def test_somebody_elses_sampler_gets_the_checked_rows() -> None:
    given = list[np.ndarray]()

    class Own(sv.ClipSampler):
        def divergence(self, p: Any, f: Any) -> np.ndarray:
            given.append(p)
            return super().divergence(p, f)

    rows = some_rows(np.float64)
    own = Own("own", PRIOR, 1.0, PRIOR.probabilities / 2)
    mine, theirs = sv.compare(rows, [own, sv.ClipSampler("own", PRIOR, 1.0, PRIOR.probabilities / 2)])
    assert mine.mean == pytest.approx(theirs.mean, rel=1e-12)
    np.testing.assert_array_equal(given[-1], distributions(rows, 5).toarray())


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("column", [-1, 4, 1 << 20])
@pytest.mark.parametrize("name", ["kernel_clip", "minimax_kernel", "randomized_response"])
def test_a_damaged_matrix_is_refused_before_anybody_is_charged(
    tmp_path: Path, name: str, column: int, kind: type
) -> None:
    prior = sv.Prior(list("abcd"), [0.4, 0.3, 0.2, 0.1])
    mechanism = sv.certify(sv.SAMPLERS[name](prior, 1.0))
    users = sparse.csr_array((np.array([1], dtype=kind), np.array([0]), np.array([0, 1])), shape=(1, 4))
    users.indices[0] = column
    with pytest.raises(sv.errors.UserDataError, match="damaged"):
        mechanism.release_many(users)
    book = sv.Ledger.create(tmp_path / "book.db", budget=4)
    with pytest.raises(sv.errors.UserDataError, match="damaged"):
        book.release_batch(mechanism, ["ann"], users)
    assert book.total("ann") == 0
    book.close()
