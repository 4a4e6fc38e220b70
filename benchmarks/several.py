"""Several samples per user: how long one release takes, and how time and memory grow."""

from __future__ import annotations

import tracemalloc

import numpy as np

import sottovoce as sv

from .clips import zipf
from .measure import Line, duration, seconds

PEOPLE = 20
SIZES = (
    (4, 20), (2, 20), (3, 20), (8, 20), (10, 20), (16, 20), (4, 1), (4, 5), (4, 60), (4, 2000)
)  # fmt: skip
"""Samples and records; above 16 samples `several` refuses."""


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
    return lines


SECTIONS = {"Several samples per user": growth}
