"""Several samples per user: how long one release takes, and how time and memory grow."""

from __future__ import annotations

import tracemalloc

import numpy as np
from scipy import sparse

import sottovoce as sv

from .clips import zipf
from .measure import Line, duration, seconds

PEOPLE = 20
SIZES = ((4, 20), (2, 20), (16, 20), (100, 20), (4, 1), (4, 60), (4, 2000))
"""Samples and records."""
BATCH, LEAST = 200_000, 50_000


def histories(prior: sv.Prior, records: int) -> list[list[int]]:
    """Some users with so many records drawn from the prior."""
    rng = np.random.default_rng(records)
    return [rng.choice(len(prior), size=records, p=prior.probabilities).tolist() for _ in range(PEOPLE)]


def released(mechanism: sv.Mechanism, people: list[list[int]]) -> float:
    """Seconds of one release."""
    return seconds(lambda: [mechanism.release(one) for one in people], 3) / PEOPLE


def growth() -> list[Line]:
    """One release at n = 100, ε = 4, beside one of a single sample; by samples and by records."""
    prior = zipf(100)
    single = sv.certify(sv.kernel_clip(prior, 4.0))
    lines = []
    for samples, records in SIZES:
        mechanism = sv.certify(sv.several(prior, 4.0, samples=samples))
        people = histories(prior, records)
        ours, theirs = released(mechanism, people), released(single, people)
        tracemalloc.start()
        for one in people[:3]:
            mechanism.release(one)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        what = f"one release of {samples} samples, {records:,} records, n = 100; {peak:.1f} MiB at most"
        against, ratio = f"{duration(theirs)} (one sample)", f"{ours / theirs:,.0f}×"
        lines.append(Line(what, duration(ours), against, ratio, "", True))
    return [*lines, batch(prior)]


def batch(prior: sv.Prior) -> Line:
    """Users a second in a batch of four samples, 20 records each."""
    rng = np.random.default_rng(0)
    people = sparse.csr_array(rng.multinomial(20, prior.probabilities, BATCH))
    mechanism = sv.certify(sv.several(prior, 8.0, samples=4))
    rate = BATCH / seconds(lambda: mechanism.release_many(people), 2)
    what = "users a second in a batch, four samples, 20 records, n = 100"
    return Line(what, f"{rate:,.0f}", f"{LEAST:,}", f"{rate / LEAST:.1f}×", "≥ 1×", rate >= LEAST)


SECTIONS = {"Several samples per user": growth}
