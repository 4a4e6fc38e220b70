"""The core: kernel build, memory, sparse divergences, import."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

import sottovoce as sv
from sottovoce.records import count_rows, distributions
from sottovoce.samplers import clip
from sottovoce.samplers.blocks import blocks
from sottovoce.samplers.kernels import MinimaxKernel

from .measure import Line, at_least, at_most, fresh, seconds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
import oracles

OURS = (sv.ClipSampler, sv.KernelSampler)

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
        lines.append(at_least(f"kernel, n = {n}, against the recursion", ours, theirs, least))
        if n == 900:
            dense = seconds(partial(_whole_matrix, q), 5)
            what = "the same, n = 900, written as a matrix"
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
        what = f"kernel, n = 10{'⁶' if n == 10**6 else '⁷'}, against numpy.argsort"
        lines.append(at_most(what, built[n], sort, 3))
    lines.append(at_most("kernel, n = 10⁷ against n = 10⁶", built[10**7], built[10**6], 15))
    peak = float(fresh(MEMORY))
    what = "peak memory of prior and kernel, n = 10⁷"
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
    what = f"TV of 100,000 users, n = 1000, against HiGHS ({sample} timed, scaled up)"
    return [
        at_least(what, tv, theirs, 1000),
        at_most("KL of the same users against their TV", kl, tv, 20),
    ]


def sparse_users(users: int, n: int, owned: int) -> sparse.csr_array:
    """Users with `owned` sorted categories each, as distributions."""
    rng = np.random.default_rng(1)
    some = np.array([np.sort(rng.choice(n, owned, replace=False)) for _ in range(1000)])
    columns = some[rng.integers(0, 1000, users)].astype(np.int32)
    shares = rng.dirichlet(np.ones(owned), users).ravel()
    return sparse.csr_array(
        (shares, columns.ravel(), np.arange(0, users * owned + 1, owned, dtype=np.int32)), shape=(users, n)
    )


def comparing() -> list[Line]:
    """compare against its own arithmetic in the cache: what reading, checking and summarising add to it.

    An in-cache pass is one sampler's total variation of the first 1,638 users (32,760 entries, already
    checked), the best of many runs, times the number of such chunks. Nothing is read from memory and nothing
    is checked or summarised in it, so no comparison can be faster; a sampler that is slow in the cache is as
    slow here.
    """
    users, n, owned, chunk = 1_000_000, 1000, 20, 1638
    p = sparse_users(users, n, owned)
    q = np.random.default_rng(0).dirichlet(np.full(n, 2.0)) + 1e-7
    prior = sv.Prior(range(n), q / q.sum())
    samplers = [make(prior, 2.0) for make in sv.SAMPLERS.values()]
    few = distributions(p[:chunk], n)
    passes = 0.0
    for sampler in samplers:
        measured = sampler.divergence_of if isinstance(sampler, OURS) else sampler.divergence
        passes += seconds(partial(measured, few, sv.TV), 30) * users / chunk
    ours = seconds(lambda: sv.compare(p, samplers), 3)
    read = sv.Users(tuple(range(users)), p, prior.categories)
    theirs = seconds(lambda: sv.compare(read, samplers), 3)
    what = "compare 10⁶ users × ten samplers, against ten passes in cache"
    return [
        at_most(what, ours, passes, 3),
        at_most("the same for Users, also compared with the prior", theirs, passes, 3),
        *_in_chunks(p, prior),
    ]


def _in_chunks(p: sparse.csr_array, prior: sv.Prior) -> list[Line]:
    """The parts of it against how they were done before: without chunks, by a search, with a copy."""
    sampler = sv.kernel_clip(prior, 2.0)
    a, total = math.exp(2.0), float(sampler.floor.sum())

    def at_once() -> np.ndarray:
        c, starts = sampler.floor[p.indices], p.indptr[:-1]
        over = np.add.reduceat(np.maximum(p.data - a * c, 0.0), starts)
        kept = np.add.reduceat(np.minimum(c, p.data), starts)
        return np.maximum(np.maximum(over, total - kept), 0.0)

    tv = seconds(lambda: clip.total_variation(p, sampler.floor, a, total), 5)
    whole = seconds(at_once, 5)
    block = next(iter(blocks(p[:6000])))
    low = block.gather(sampler.floor)
    target = 1 - (total - low.sum(axis=1))
    newton = seconds(lambda: clip.multipliers(block.p, low, a, target), 30)
    search = seconds(lambda: clip._by_search(block.p, low, a, target, target * (1 - 2.0**-50)), 30)
    counts = sparse.csr_array((np.ones(p.nnz, dtype=np.int64), p.indices, p.indptr), shape=p.shape)
    check = seconds(lambda: count_rows(counts, p.shape[1]), 5)
    copy = seconds(lambda: counts.copy(), 5)
    return [
        at_most("total variation in chunks, against all entries at once", tv, whole, 1),
        at_most("clip by Newton steps, against a search among knots", newton, search, 1),
        at_most("checking 2·10⁷ counts where they are, against copying them", check, copy, 1.5),
    ]


def naming() -> list[Line]:
    """A prior of a million names, against what it cannot do without."""
    names = [f"category {i}" for i in range(1_000_000)]
    q = np.full(len(names), 1 / len(names))
    ours = seconds(lambda: sv.Prior(names, q), 15)
    theirs = seconds(lambda: (set(names), tuple(names)), 15)
    return [at_most("Prior of 10⁶ names, against a set and tuple", ours, theirs, 1.5)]


def auditing() -> list[Line]:
    """A million draws from a mechanism with 3,394 categories, in less than a minute."""
    n = 3394
    q = 1 / np.arange(1, n + 1)
    prior = sv.Prior([f"item {i}" for i in range(n)], q / q.sum())
    lines = []
    for make in (sv.minimax_kernel, sv.kernel_clip, sv.fitted):
        mechanism = sv.certify(make(prior, 2.0))
        ours = seconds(partial(sv.audit, mechanism, draws=1_000_000), 1)
        what = f"audit of `{mechanism.sampler}`, n = 3,394, 10⁶ draws"
        lines.append(Line(what, f"{ours:.1f} s", "60 s", f"{ours / 60:.2f}×", "≤ 1×", ours <= 60))
    return lines


def importing() -> list[Line]:
    """`import sottovoce` against importing what it stands on."""
    ours = min(float(fresh(IMPORT.format("sottovoce"))) for _ in range(5))
    theirs = min(float(fresh(IMPORT.format("numpy, scipy"))) for _ in range(5))
    line = at_most("import sottovoce, against numpy and scipy", ours, theirs, 3)
    what = "import sottovoce, in seconds"
    return [line, Line(what, f"{ours:.2f} s", "0.3 s", f"{ours / 0.3:.2f}×", "≤ 1×", ours <= 0.3)]


SECTIONS = {
    "The paper's kernel": against_the_recursion,
    "Large domains": against_sorting,
    "Many users": against_a_linear_program,
    "Comparing": comparing,
    "A prior of many names": naming,
    "Audit": auditing,
    "Import": importing,
}
