"""Hypothesis strategies: priors, users and epsilons, with the awkward ones drawn often."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Array: TypeAlias = npt.NDArray[np.float64]

epsilons = st.one_of(
    st.sampled_from([1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 30.0]),
    st.floats(0.01, 10.0),
)


@st.composite
def priors(draw: st.DrawFn, least: int = 1, most: int = 12, smallest: float = 1e-12) -> Array:
    """A strictly positive law: smooth, tied, or with one dominant category and a tiny one."""
    n = draw(st.integers(least, most))
    kind = draw(st.sampled_from(["any", "tied", "dominant", "heavy tail"]))
    if kind == "tied":
        weights = np.array(draw(st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=n, max_size=n)))
    elif kind == "dominant":
        weights = np.full(n, smallest * 2)
        weights[draw(st.integers(0, n - 1))] = 1.0
    elif kind == "heavy tail":
        weights = np.array(draw(st.permutations([1.0 / (i + 1) ** 3 for i in range(n)])))
    else:
        weights = np.array(draw(st.lists(st.floats(1e-3, 1.0), min_size=n, max_size=n)))
    q = weights / weights.sum()
    law: Array = np.maximum(q, smallest) / np.maximum(q, smallest).sum()
    return law


@st.composite
def users(draw: st.DrawFn, n: int, zeros: bool = True) -> Array:
    """A private law over n categories: sparse, tiny entries, denormals, point masses."""
    kind = draw(st.sampled_from(["any", "point", "sparse", "tiny"] if zeros else ["any", "tiny"]))
    if kind == "point":
        p = np.zeros(n)
        p[draw(st.integers(0, n - 1))] = 1.0
        return p
    entry = st.floats(1e-3, 1.0)
    if kind == "sparse":
        entry = st.one_of(st.just(0.0), entry)
    elif kind == "tiny":
        small = [1e-12, 1e-30, 1e-200] + ([0.0, 5e-324, 1e-310] if zeros else [])
        entry = st.one_of(st.sampled_from(small), entry)
    weights = np.array(draw(st.lists(entry, min_size=n, max_size=n)))
    if weights.sum() < 1e-3:
        weights[draw(st.integers(0, n - 1))] = 1.0
    law: Array = weights / weights.sum()
    return law


@st.composite
def situations(
    draw: st.DrawFn, zeros: bool = True, least: int = 1, most: int = 12, smallest: float = 1e-12
) -> tuple[Array, Array, float]:
    """A prior, a user and an epsilon that belong together."""
    q = draw(priors(least, most, smallest))
    return q, draw(users(len(q), zeros=zeros)), draw(epsilons)
