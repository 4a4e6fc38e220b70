"""The limit in W1: a linear program over the floor and the laws of all users at once.

With p(v) and x(v) the masses below an edge v, minimise Σ_u s_u·d_u + tail·T over c, x, f and T, where

    c_i ≤ x_ui ≤ a·c_i,   Σ_i x_ui = 1,   f_uv ≥ ±(p_u(v) − x_u(v)),   d_u = Σ_v length_v·f_uv ≤ T.

The lower bound does not rest on the solver. For potentials φ_u that differ by at most the distance of two
categories, d_u ≥ Σφ_u·p_u − Σ_i c_i·(a·φ_ui⁺ − φ_ui⁻), whatever x is. The solver's dual variables, cut to the
lengths, give such φ. Weighed and added up, the right side is linear in c; its least value over all floors is
the bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import FloatArray
from ..errors import ParameterError
from ..geometry import Geometry

if TYPE_CHECKING:
    from scipy import sparse

LARGEST = 40_000
"""Different users × categories of the program."""


def best_floor(
    p: FloatArray,
    share: FloatArray,
    q: FloatArray,
    a: float,
    geometry: Geometry,
    tail: float,
    keep_prior: bool,
) -> tuple[FloatArray, float]:
    """The floor that is best for these users, and a proven lower bound of its mean + tail·maximum.

    Raises
        ParameterError: there are too many users for the program.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    many, n = p.shape
    if many * n > LARGEST:
        raise ParameterError(
            f"the limit in W1 takes at most {LARGEST:,} different users × categories, got {many:,} × {n:,}; "
            f"take fewer users"
        )
    below, lengths = _edges(geometry)
    edges = len(lengths)
    block: Any = sparse.block_array
    each, laws, flows = (sparse.eye_array(size) for size in (many, many * n, many * edges))
    floors, masses = sparse.vstack([sparse.eye_array(n)] * many), sparse.kron(each, below.T)
    right: FloatArray = np.asarray(p @ below).ravel()
    program: Any = linprog
    low, high = (q / a, q) if keep_prior else (np.zeros(n), np.ones(n))
    solved = program(
        np.concatenate([np.zeros(n + many * n), np.kron(share, lengths), [tail]]),
        block([
            [floors, -laws, None, None],
            [-a * floors, laws, None, None],
            [None, -masses, -flows, None],
            [None, masses, -flows, None],
            [None, None, sparse.kron(each, lengths[None, :]), sparse.csr_array(-np.ones((many, 1)))],
        ], format="csr"),
        np.concatenate([np.zeros(2 * many * n), -right, right, np.zeros(many)]),
        block([[sparse.csr_array((many, n)), sparse.kron(each, np.ones((1, n))),
                sparse.csr_array((many, many * edges + 1))]], format="csr"),
        np.ones(many),
        [*zip(low, high, strict=True), *[(0, None)] * (many * (n + edges) + 1)],
        method="highs",
    )  # fmt: skip
    if solved.x is None:
        raise ParameterError("the linear program of the limit was not solved; take fewer users")
    dual = -solved.ineqlin.marginals[2 * many * n :]
    weights = share + np.maximum(dual[2 * many * edges :], 0)
    pulls = (dual[: many * edges] - dual[many * edges : 2 * many * edges]).reshape(many, edges)
    potentials = np.clip(pulls / weights[:, None], -lengths, lengths) @ below.T.toarray()
    potentials += (solved.eqlin.marginals / weights)[:, None]
    bound = _bound(potentials, weights, p, share, tail, low, high, a, keep_prior)
    return np.clip(solved.x[:n], low, high), bound


def _edges(geometry: Geometry) -> tuple[sparse.csr_array[np.float64], FloatArray]:
    """Which categories are below which edge, and the lengths of the edges."""
    from scipy import sparse

    columns: list[list[int]] = []
    below: list[list[int]] = [[] for _ in range(len(geometry.parents) + 1)]
    lengths = []
    for v, (parent, length) in enumerate(zip(geometry.parents, geometry.lengths, strict=True)):
        mine = below[v] or [v]
        below[parent] += mine
        if length:
            columns.append(mine)
            lengths.append(length * geometry.unit)
    owner = np.repeat(np.arange(len(columns)), [len(one) for one in columns])
    entries = [i for one in columns for i in one]
    made = sparse.coo_array((np.ones(len(entries)), (entries, owner)), shape=(len(geometry), len(columns)))
    return sparse.csr_array(made), np.array(lengths)


def _bound(
    potentials: FloatArray,
    weights: FloatArray,
    p: FloatArray,
    share: FloatArray,
    tail: float,
    low: FloatArray,
    high: FloatArray,
    a: float,
    keep_prior: bool,
) -> float:
    """The least value over all floors of the weighted sum of the users' bounds, less what rounding can do.

    The weights are the shares and, for the maximum, numbers ≥ 0 that add up to at most the tail.
    """
    extra = weights - share
    if extra.sum() > tail:
        weights = share + extra * (tail / extra.sum())
    gain = weights @ (a * np.maximum(potentials, 0) - np.maximum(-potentials, 0))
    if keep_prior:
        most = float(np.where(gain > 0, high * gain, low * gain).sum())
    else:
        most = float(gain.max()) / (1 if gain.max() > 0 else a)
    size = float(weights @ np.abs(potentials).max(axis=1)) * a
    value = float(weights @ (potentials * p).sum(axis=1)) - most
    return value - 8 * np.finfo(np.float64).eps * p.size * max(size, math.ulp(1.0))
