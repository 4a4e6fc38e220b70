"""What the kernel costs as the number of categories grows: a linear program, Algorithm 1, the closed form.

The paper puts its recursion at O(n³) against O(n⁵ log(n/δ)) for a linear program over all kernels. Here all
three are timed, a power of n is fitted to the four largest sizes of each, and a picture is drawn. Below those
a fixed cost of the calls decides.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from sottovoce.pictures.plots import new_figure, save_figure
from sottovoce.samplers.kernels import MinimaxKernel

from .measure import Line, duration, seconds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
import oracles

EPSILON = 2.0
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "cost.png"
FITTED = 4
PROGRAM = (5, 7, 10, 14, 20, 28, 40, 60)
RECURSION = (5, 7, 10, 14, 20, 28, 40, 60, 120, 240, 480, 900)
CLOSED = (5, 7, 10, 14, 20, 28, 40, 60, 1_000, 10_000, 100_000, 1_000_000)


def prior(n: int) -> np.ndarray:
    """An ascending random prior."""
    q: np.ndarray = np.sort(np.random.default_rng(n).dirichlet(np.ones(n)) * 0.9 + 0.1 / n)
    return q


def program_over_all_kernels(q: np.ndarray) -> float:
    """Γ_TV by HiGHS: n² entries, n column minima and the worst case as variables, in sparse form.

    With column minima there are 2n² + n inequalities; all pairs of rows would be n³.
    """
    n, a = len(q), math.exp(EPSILON)
    entries, ones = sparse.eye_array(n * n), np.ones((n, 1))
    column = sparse.csr_array(np.tile(np.eye(n), (n, 1)))  # entry (i, j), the minimum of column j
    none = sparse.csr_array((n * n, 1))
    diagonal = sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n) * (n + 1))), shape=(n, n * n))
    below: Any = sparse.vstack(
        [
            sparse.hstack([-entries, column, none]),
            sparse.hstack([entries, -a * column, none]),
            sparse.hstack([-diagonal, sparse.csr_array((n, n)), sparse.csr_array(-ones)]),
        ]
    )
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, n)))
    kept = sparse.kron(q[None, :], sparse.eye_array(n))
    equal: Any = sparse.hstack([sparse.vstack([rows, kept]), sparse.csr_array((2 * n, n + 1))])
    answer = linprog(
        np.append(np.zeros(n * n + n), 1.0),
        A_ub=below.tocsr(),
        b_ub=np.concatenate([np.zeros(2 * n * n), -np.ones(n)]),
        A_eq=equal.tocsr(),
        b_eq=np.concatenate([np.ones(n), q]),
        bounds=(0, 1),
        method="highs",
    )
    if answer.status != 0 or answer.fun is None:
        raise RuntimeError(f"linear program not solved: {answer.message}")
    return float(answer.fun)


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The power of n that fits the largest sizes best, least squares in logarithms."""
    return float(np.polyfit(np.log(sizes[-FITTED:]), np.log(times[-FITTED:]), 1)[0])


def growth() -> list[Line]:
    """Time all three, draw the picture, and say how each grows."""
    timed: dict[str, tuple[Sequence[int], list[float]]] = {
        "linear program (HiGHS)": (PROGRAM, _times(program_over_all_kernels, PROGRAM)),
        "Algorithm 1": (RECURSION, _times(_recursion, RECURSION)),
        "closed form (ours)": (CLOSED, _times(_closed, CLOSED)),
    }
    powers = {name: exponent(sizes, times) for name, (sizes, times) in timed.items()}
    _draw(timed, powers)
    q = prior(PROGRAM[-1])
    paper = (1 - q[0]) / (math.exp(EPSILON) * q[0] + 1 - q[0])
    off = abs(program_over_all_kernels(q) - paper)
    (program, recursion, closed) = (dict(zip(*pair, strict=True)) for pair in timed.values())
    return [
        *(
            Line(
                f"{name}: exponent of n, {sizes[-FITTED]:,} to {sizes[-1]:,}",
                f"{powers[name]:.2f}",
                "–",
                "–",
                "",
                True,
            )
            for name, (sizes, _) in timed.items()
        ),
        _ratio("closed form against the linear program, n = 60", closed[60], program[60], 1000),
        _ratio("closed form against Algorithm 1, n = 60", closed[60], recursion[60], 5),
        Line(
            "worst case, program and formula, n = 60",
            f"{off:.1e}",
            "1e-6",
            "–",
            "≤ 1e-6",
            off <= 1e-6,
        ),
    ]


def _recursion(q: np.ndarray) -> object:
    return oracles.algorithm_1(q, EPSILON)


def _closed(q: np.ndarray) -> object:
    return MinimaxKernel(q, EPSILON)


def _times(call: Callable[[np.ndarray], object], sizes: Sequence[int]) -> list[float]:
    out = []
    for n in sizes:
        run = partial(call, prior(n))
        first = seconds(run, 1)
        out.append(min(first, seconds(run, 1 if first > 1 else min(200, max(2, int(0.3 / first))))))
    return out


def _ratio(what: str, ours: float, theirs: float, least: float) -> Line:
    ratio = theirs / ours
    return Line(what, duration(ours), duration(theirs), f"{ratio:,.0f}×", f"≥ {least:,g}×", ratio >= least)


def _draw(timed: dict[str, tuple[Sequence[int], list[float]]], powers: dict[str, float]) -> None:
    figure = new_figure(7.5, 4.6)
    axes = figure.subplots()
    looks = (("#555555", "x", ":"), ("#D55E00", "s", "--"), ("#0072B2", "o", "-"))
    for (name, (sizes, times)), (color, marker, dash) in zip(timed.items(), looks, strict=True):
        label = f"{name}: n to the {powers[name]:.1f}"
        axes.plot(sizes, times, color=color, marker=marker, linestyle="none", markersize=5, label=label)
        upper = np.array(sizes[-FITTED:], dtype=float)
        middle = np.exp(np.mean(np.log(times[-FITTED:])))
        fitted = middle * (upper / np.exp(np.mean(np.log(upper)))) ** powers[name]
        axes.plot(upper, fitted, color=color, linestyle=dash, linewidth=1.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("number of categories n")
    axes.set_ylabel("seconds to find the kernel")
    axes.grid(color="#EEEEEE")
    axes.legend(fontsize=8)
    axes.set_title("Lines: fitted to the four largest sizes", fontsize=10)
    save_figure(figure, PICTURE)


SECTIONS = {"Cost as the paper states it": growth}
