"""Clip mechanisms in batches: beside the paper's kernel and beside one release after another, in one run."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

import sottovoce as sv
from sottovoce.core import randomness

from .measure import Line, duration, per_call, seconds

USERS = 1_000_000
LOOPED = 2_000
"""So many users are enough to time one release after another."""


def zipf(n: int) -> sv.Prior:
    """A prior that falls like 1/rank."""
    q = 1 / np.arange(1, n + 1)
    return sv.Prior(range(n), q / q.sum())


def users_like(prior: sv.Prior, records: int) -> sparse.csr_array:
    """A million users, each with so many records drawn from the prior, as sparse counts."""
    rng = np.random.default_rng(records)
    places = np.searchsorted(np.cumsum(prior.probabilities)[:-1], rng.random((USERS, records)))
    owner = np.repeat(np.arange(USERS), records)
    ones = np.ones(owner.size, dtype=np.int64)
    return sparse.coo_array((ones, (owner, places.ravel())), shape=(USERS, len(prior))).tocsr()


def one_after_another(mechanism: sv.Mechanism, rows: sparse.csr_array) -> float:
    """Seconds a user when each is released alone: how batches were released before there was a filter."""
    held = [rows[[i]] for i in range(LOOPED)]
    users = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in held]
    words = randomness.words(LOOPED, 62)
    position = mechanism.engine.position
    return seconds(lambda: [position(u, [w]) for u, w in zip(users, words, strict=True)], 2) / LOOPED


def batches() -> list[Line]:
    """release_many of `kernel_clip`, counts and laws in doubles, at several n and epsilons."""
    lines = []
    for n in (18, 100, 10_000):
        prior = zipf(n)
        for records in (20, 1):
            counts = users_like(prior, records)
            laws = counts / records
            for epsilon in (0.5, 2.0, 4.0):
                kernel = sv.certify(sv.minimax_kernel(prior, epsilon))
                clip = sv.certify(sv.kernel_clip(prior, epsilon))
                clip.release_many(counts[:1])  # the tables
                stated = (n, records, epsilon) == (100, 20, 2.0)
                whom = f"10⁶ users, {records} record{'s' * (records > 1)}, n = {n:,}, ε = {epsilon:g}"
                theirs = seconds(partial(kernel.release_many, counts), 3)
                ours = seconds(partial(clip.release_many, counts), 3)
                floats = seconds(partial(clip.release_many, laws), 3)
                loop = one_after_another(clip, counts) * USERS
                lines.append(rate(f"{whom}: against `minimax_kernel`", ours, theirs, 0.5 if stated else None))
                lines.append(rate("the same as laws in doubles", floats, theirs, 0.35 if stated else None))
                lines.append(
                    rate("the counts, against one after another", ours, loop, 40 if stated else None)
                )
    return lines


def rate(what: str, ours: float, theirs: float, least: float | None) -> Line:
    """Users a second on both sides."""
    ratio = theirs / ours
    mine, other = (f"{USERS / each / 1e6:.2f} M/s" for each in (ours, theirs))
    required = "" if least is None else f"≥ {least:g}×"
    return Line(what, mine, other, f"{ratio:.2f}×", required, least is None or ratio >= least)


def alone() -> list[Line]:
    """One release of users who are capped and of users who are not: the time must not tell them far apart."""
    lines = []
    for epsilon in (0.5, 2.0):
        mechanism = sv.certify(sv.kernel_clip(zipf(10_000), epsilon))
        rng = np.random.default_rng(3)
        kinds = [[0], [9_999], [5_000], [0, 1, 2], *[rng.integers(0, 10_000, 20).tolist() for _ in range(5)]]
        kinds += [rng.zipf(1.5, 20).clip(1, 10_000) - 1 for _ in range(5)]
        times = [per_call(partial(mechanism.release, [int(i) for i in user]), 200) for user in kinds]
        what = f"slowest against fastest user, n = 10⁴, ε = {epsilon:g}, 1 to 20 records"
        ratio = max(times) / min(times)
        sides = duration(max(times)), duration(min(times))
        lines.append(Line(what, *sides, f"{ratio:.1f}×", "≤ 10×", ratio <= 10))
    large = sv.certify(sv.kernel_clip(zipf(10**6), 0.5))
    took = per_call(lambda: large.release(records=[70_000]), 200)
    what = "one release of a capped user, n = 10⁶"
    lines.append(Line(what, duration(took), "1 ms", f"{took / 1e-3:.2f}×", "≤ 1×", took <= 1e-3))
    return lines


SECTIONS = {"Releasing many with clip mechanisms": batches, "Releasing one capped user": alone}
