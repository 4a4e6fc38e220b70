"""Laws in doubles become integers, the same for rows that are shared and for rows that are converted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import sparse

import sottovoce as sv
from sottovoce.records import weights_of_rows


def some_laws(seed: int, users: int = 60, n: int = 40) -> sparse.csr_array:
    """Sparse laws of every length, from even to very steep, whose sums are one up to what is tolerated."""
    rng = np.random.default_rng(seed)
    shares = rng.random((users, n)) ** rng.choice([0.1, 1.0, 30.0], size=(users, 1))
    shares[rng.random((users, n)) < rng.random((users, 1)) * 0.99] = 0
    shares[np.arange(users), rng.integers(0, n, users)] += 0.5
    shares /= shares.sum(axis=1, keepdims=True)
    shares *= 1 + rng.uniform(-9e-10, 9e-10, (users, 1))
    shares[(shares > 0) & (shares < 1e-200)] = 0
    return sparse.csr_array(shares)


@pytest.mark.parametrize("seed", range(20))
def test_shared_rows_give_what_converted_rows_give(seed: int) -> None:
    laws = some_laws(seed)
    before = laws.copy()
    fast = weights_of_rows(laws, 40)
    whole = weights_of_rows(laws.tocsc(), 40)  # not by rows: converted first
    assert fast.dtype == np.int64
    for part in ("data", "indices", "indptr"):
        assert getattr(fast, part).tolist() == getattr(whole, part).tolist()
        assert getattr(laws, part).tolist() == getattr(before, part).tolist()
        assert not np.shares_memory(getattr(fast, part), getattr(laws, part))


def test_the_whole_numbers_follow_their_definition() -> None:
    """⌊p·2^61⌋ of p divided by its sum, which a double holds up to a few units of its last digit."""
    laws = some_laws(3)
    rows = weights_of_rows(laws, 40).toarray()
    for given, units in zip(laws.toarray().tolist(), rows.tolist(), strict=True):
        size = math.fsum(given)
        for share, unit in zip(given, units, strict=True):
            assert abs(unit - math.ldexp(share / size, 61)) <= math.ldexp(share, 61) * 2.0**-46 + 1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data.__setitem__(-1, np.nan), "1 of 60 users have values that are not finite"),
        (lambda data: data.__setitem__(-1, np.inf), "1 of 60 users have values that are not finite"),
        (lambda data: data.__setitem__(0, -0.25), "1 of 60 users have negative values"),
        (lambda data: data.__imul__(1.1), "60 of 60 users do not"),
        (lambda data: data.__setitem__(-1, data[-1] + 1.5e-9), "1 of 60 users do not"),
    ],
)
def test_what_is_refused_is_counted_over_all_rows(
    spoil: Callable[[np.ndarray], object], message: str
) -> None:
    laws = some_laws(5)
    laws.data /= np.repeat(laws.sum(axis=1), np.diff(laws.indptr))
    spoil(laws.data)
    with pytest.raises(sv.errors.UserDataError, match=message):
        weights_of_rows(laws, 40)


@pytest.mark.parametrize("empty", [[41], [0, 6, 7, 59], range(7, 21), range(60)])
def test_users_without_entries_stay_empty_rows(empty: Sequence[int]) -> None:
    """Also where everything is empty."""
    laws = some_laws(6).toarray()
    expected = weights_of_rows(sparse.csr_array(laws), 40).toarray()
    laws[list(empty)], expected[list(empty)] = 0, 0
    for given in (sparse.csr_array(laws), sparse.csc_array(laws), laws):
        found = weights_of_rows(given, 40)
        assert found.toarray().tolist() == expected.tolist()
        assert np.diff(found.indptr)[list(empty)].sum() == 0


def test_what_is_unusual_is_left_out_as_ever() -> None:
    """Zeros that are stored, shares that count as nothing, entries twice, entries out of order."""
    places, starts = [3, 1, 1, 2, 0, 3], [0, 4, 6]
    shares = [0.5, 0.125, 0.125, 0.25, 1.0, 1e-300]
    twice = sparse.csr_array((shares, places, starts), shape=(2, 5))
    stored = sparse.csr_array(([0.25, 0.25, 0.5, 0.0, 1.0], [1, 2, 3, 4, 0], [0, 4, 5]), shape=(2, 5))
    for rows in (weights_of_rows(twice, 5), weights_of_rows(stored, 5)):
        assert rows.toarray().tolist() == [[0, 1 << 59, 1 << 59, 1 << 60, 0], [1 << 61, 0, 0, 0, 0]]
        assert rows.nnz == 4
