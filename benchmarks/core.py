"""The core: kernel build, memory, sparse divergences, import."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

import sottovoce as sv
from sottovoce.samplers.minimax import MinimaxKernel

from .measure import Line, at_least, at_most, fresh, seconds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
import oracles

MEMORY = """
import resource, numpy as np, sottovoce as sv
q = np.random.default_rng(0).random(10_000_000)
q /= q.sum()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
s = sv.minimax_kernel(sv.Prior(range(len(q)), q), 2.0)
s.floor
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
IMPORT = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def _whole_matrix(q: np.ndarray) -> np.ndarray:
    return MinimaxKernel(q, 2.0).matrix()


def against_the_recursion() -> list[Line]:
    """Building the kernel against the paper's Algorithm 1, run as the recursion it is."""
    lines = []
    for n, least in ((100, 20), (300, 300), (900, 10_000)):
        q = np.sort(np.random.default_rng(n).dirichlet(np.ones(n)))
        ours = seconds(partial(MinimaxKernel, q, 2.0), 300)
        theirs = seconds(partial(oracles.algorithm_1, q, 2.0), 3)
        lines.append(at_least(f"kernel build, n = {n}, against the paper's recursion", ours, theirs, least))
        if n == 900:
            dense = seconds(partial(_whole_matrix, q), 5)
            what = "the same, n = 900, when the whole matrix is written out"
            lines.append(at_least(what, dense, theirs, 1))
    return lines


def against_sorting() -> list[Line]:
    """The kernel of ten million categories, against sorting their probabilities."""
    lines, built = [], {}
    for n in (10**6, 10**7):
        q = np.random.default_rng(0).random(n)
        q /= q.sum()
        prior = sv.Prior(range(n), q)
        sort = seconds(partial(np.argsort, q), 5)
        built[n] = seconds(partial(sv.minimax_kernel, prior, 2.0), 7)
        what = f"kernel build, n = 10{'⁶' if n == 10**6 else '⁷'}, against numpy.argsort"
        lines.append(at_most(what, built[n], sort, 3))
    lines.append(at_most("kernel build, n = 10⁷ against n = 10⁶", built[10**7], built[10**6], 15))
    peak = float(fresh(MEMORY))
    what = "peak memory of the whole process (prior, kernel, floor), n = 10⁷"
    lines.append(Line(what, f"{peak:.2f} GiB", "1.5 GiB", f"{peak / 1.5:.2f}×", "≤ 1×", peak <= 1.5))
    return lines


def against_a_linear_program() -> list[Line]:
    """Total variation of 100,000 sparse users against HiGHS for each, and KL against TV."""
    users, n, owned, sample = 100_000, 1000, 20, 40
    rng = np.random.default_rng(0)
    columns = np.array([rng.choice(n, owned, replace=False) for _ in range(1000)])[
        rng.integers(0, 1000, users)
    ]
    p = sparse.csr_array(
        (
            rng.dirichlet(np.ones(owned), users).ravel(),
            columns.ravel(),
            np.arange(0, users * owned + 1, owned),
        ),
        shape=(users, n),
    )
    q = rng.dirichlet(np.full(n, 2.0)) + 1e-7
    s = sv.relative_mollifier(sv.Prior(range(n), q / q.sum()), 4.0)
    few = p[:sample].toarray()
    tv = seconds(lambda: s.divergence(p, sv.TV))
    kl = seconds(lambda: s.divergence(p, sv.KL))
    program = seconds(lambda: [oracles.projection_tv_lp(one, s.floor, 4.0) for one in few], 1)
    theirs = program / sample * users
    what = f"TV of 100,000 users (n = 1000, 20 non-zeros) against HiGHS per user ({sample} timed, scaled up)"
    return [
        at_least(what, tv, theirs, 1000),
        at_most("KL of the same users against their TV", kl, tv, 20),
    ]


def importing() -> list[Line]:
    """`import sottovoce` against importing what it stands on."""
    ours = min(float(fresh(IMPORT.format("sottovoce"))) for _ in range(5))
    theirs = min(float(fresh(IMPORT.format("numpy, scipy"))) for _ in range(5))
    line = at_most("import sottovoce, against importing numpy and scipy", ours, theirs, 3)
    what = "import sottovoce, in seconds"
    return [line, Line(what, f"{ours:.2f} s", "0.3 s", f"{ours / 0.3:.2f}×", "≤ 1×", ours <= 0.3)]


SECTIONS = {
    "The paper's kernel": against_the_recursion,
    "Large domains": against_sorting,
    "Many users": against_a_linear_program,
    "Import": importing,
}
