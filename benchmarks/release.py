"""Releasing: rates against randomized response in numpy and against the libraries people use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

import sottovoce as sv

from . import clips
from .measure import Line, at_most, fresh, per_call, seconds

USERS, N, EPSILON = 1_000_000, 100, 2.0

PEERS = {
    "multi-freq-ldpy": (
        ["multi-freq-ldpy"],
        "numba's generator (not secure)",
        "from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client\n"
        "def draw(x): return GRR_Client(x, 100, 2.0)\n",
    ),
    "pure-ldp": (
        ["pure-ldp", "scikit-learn", "statsmodels"],
        "Python's random (not secure)",
        "from pure_ldp.frequency_oracles.direct_encoding import DEClient\n"
        "client = DEClient(2.0, 100)\n"
        "def draw(x): return client.privatise(x + 1)\n",
    ),
    "diffprivlib": (
        ["diffprivlib", "scikit-learn<1.9"],
        "operating system (secure)",
        "from diffprivlib.mechanisms import ExponentialCategorical\n"
        "pairs = [[str(i), str(j), 1.0] for i in range(100) for j in range(i)]\n"
        "mechanism = ExponentialCategorical(epsilon=2.0, utility_list=pairs)\n"
        "def draw(x): return mechanism.randomise(str(x))\n",
    ),
    "opendp": (
        ["opendp"],
        "OpenSSL (secure)",
        "import math, opendp.prelude as dp\n"
        "dp.enable_features('contrib')\n"
        "keep = math.exp(2.0) / (math.exp(2.0) + 99)\n"
        "mechanism = dp.m.make_randomized_response(list(range(100)), keep)\n"
        "def draw(x): return mechanism(x)\n",
    ),
}
TIMING = """
import time
for x in range(20): draw(x % 100)
begin, count = time.perf_counter(), 0
while time.perf_counter() - begin < 2:
    for x in range(50): draw(x)
    count += 50
print((time.perf_counter() - begin) / count)
"""
LARGE = """
import hashlib, json, resource, time, numpy as np, sottovoce as sv
from fractions import Fraction
from sottovoce.release.certify import prior_weights
from sottovoce.core.arithmetic import check_kernel, integer_kernel
n = 1_000_000
q = 1 / np.arange(1, n + 1)
names = [f"category {i}" for i in range(n)]
def spent(call):
    begin = time.process_time()
    found = call()
    return time.process_time() - begin, found
def build():
    weights = prior_weights(prior, 1 << 62)
    order = sorted(range(n), key=weights.__getitem__)
    integer_kernel([weights[i] for i in order], mechanism.ratio, 1 << 62, slack=Fraction(1, 1 << 44))
def read():
    plain = json.loads(open("PLACE").read())
    plain.pop("digest")
    hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    return [tuple(map(int, plain[key])) for key in ("prior", "low", "own")]
def best(call):
    return min(spent(call)[0] for _ in range(3))
prior = sv.Prior(names, q / q.sum())
sampler = sv.minimax_kernel(prior, 4.0)
certify, mechanism = spent(lambda: sv.certify(sampler))
mechanism.save("PLACE")
load, _ = spent(lambda: sv.load("PLACE", policy=sv.Policy(max_epsilon="any")))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
for _ in range(2):
    sampler = sv.minimax_kernel(sv.Prior(names, q / q.sum()), 4.0)
    certify = min(certify, spent(lambda: sv.certify(sampler))[0])
load = min(load, best(lambda: sv.load("PLACE", policy=sv.Policy(max_epsilon="any"))))
check = best(lambda: check_kernel(mechanism.engine.kernel, mechanism.ratio))
print(json.dumps([certify, load, best(build) + check, best(read) + check, peak]))
"""


def numpy_response(records: np.ndarray) -> np.ndarray:
    """k-ary randomized response as one would write it: plain numpy, the operating system's bytes, floats."""
    u = np.frombuffer(os.urandom(8 * len(records)), dtype=np.uint64)
    keep = (u >> np.uint64(11)) * 2.0**-53 < np.exp(EPSILON) / (np.exp(EPSILON) + N - 1)
    other = np.frombuffer(os.urandom(8 * len(records)), dtype=np.uint64) % np.uint64(N - 1)
    other = other.astype(np.int64)
    other += other >= records
    return np.where(keep, records, other)


def one_record_users(n: int) -> tuple[np.ndarray, sparse.csr_array]:
    """A million users with one record each, as categories and as sparse counts."""
    records = np.random.default_rng(0).integers(0, n, USERS)
    ones = np.ones(USERS, dtype=np.int64)
    return records, sparse.csr_array((ones, records, np.arange(USERS + 1)), shape=(USERS, n))


def zipf(n: int) -> sv.Prior:
    """A prior that falls like 1/rank."""
    q = 1 / np.arange(1, n + 1)
    return sv.Prior(range(n), q / q.sum())


def rates() -> list[Line]:
    """release_many against numpy and the peers, all with one record per user at n = 100."""
    records, rows = one_record_users(N)
    lines = []
    plain = seconds(lambda: numpy_response(records), 5)
    ours = {}
    for name in ("minimax_kernel", "randomized_response"):
        mechanism = sv.certify(sv.SAMPLERS[name](zipf(N), EPSILON))
        ours[name] = seconds(partial(mechanism.release_many, rows), 5)
        what = f"release_many of 10⁶ users, `{name}`, against plain numpy"
        ratio = plain / ours[name]
        rate = f"{USERS / ours[name] / 1e6:.1f} M/s"
        lines.append(
            Line(what, rate, f"{USERS / plain / 1e6:.1f} M/s", f"{ratio:.2f}×", "≥ 0.3×", ratio >= 0.3)
        )
    fastest = None
    for name, (packages, source, code) in PEERS.items():
        each = peer_seconds(packages, code)
        if each is None:
            lines.append(Line(f"{name}: could not be installed here", "–", "–", "–", "", True))
            continue
        fastest = each if fastest is None else min(fastest, each)
        ratio = each * USERS / ours["minimax_kernel"]
        what = f"against {name} per user; {source}"
        rate = f"{USERS / ours['minimax_kernel'] / 1e6:.1f} M/s"
        lines.append(Line(what, rate, f"{1 / each / 1e3:,.0f} k/s", f"{ratio:,.1f}×", "≥ 3×", ratio >= 3))
    return lines


def peer_seconds(packages: list[str], code: str) -> float | None:
    """Seconds per release of a peer, in an environment of its own that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        steps = [
            [sys.executable, "-m", "venv", folder],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
        ]
        try:
            for step in steps:
                subprocess.run(step, check=True, capture_output=True, timeout=600)
            done = subprocess.run(
                [str(python), "-c", code + TIMING], check=True, capture_output=True, text=True, timeout=300
            )
            return float(done.stdout.strip().splitlines()[-1])
        except (subprocess.SubprocessError, ValueError, IndexError) as problem:
            detail = getattr(problem, "stderr", b"") or b""
            text = detail if isinstance(detail, str) else detail.decode("utf-8", "replace")
            print("   ", text.strip().splitlines()[-1:] or problem)
            return None


def single() -> list[Line]:
    """One release on a device, and how it grows with the number of categories."""
    lines = []
    prior, mechanism = zipf(N), {}
    history = [int(i) for i in np.random.default_rng(1).integers(0, N, 20)]
    for name in sv.SAMPLERS:
        mechanism[name] = sv.certify(sv.SAMPLERS[name](prior, EPSILON))
        took = per_call(partial(mechanism[name].release, history), 300)
        what = f"one release at n = 100 from 20 records, `{name}`"
        lines.append(
            Line(what, f"{took * 1e6:.1f} µs", "100 µs", f"{took / 1e-4:.2f}×", "≤ 1×", took <= 1e-4)
        )
    small = per_call(lambda: mechanism["minimax_kernel"].release(records=[7]))
    big = sv.certify(sv.minimax_kernel(zipf(10**6), EPSILON))
    large = per_call(lambda: big.release(records=[7]))
    lines.append(at_most("one release of `minimax_kernel`, n = 10⁶ against n = 100", large, small, 20))
    _, rows = one_record_users(N)
    _, wide = one_record_users(10**6)
    many = seconds(lambda: mechanism["minimax_kernel"].release_many(rows), 3)
    many_large = seconds(lambda: big.release_many(wide), 3)
    lines.append(at_most("release_many of 10⁶ users, n = 10⁶ against n = 100", many_large, many, 20))
    return lines


def large() -> list[Line]:
    """Certify and load a million categories, against what nobody can leave out, in processor time."""
    with tempfile.TemporaryDirectory() as folder:
        program = LARGE.replace("PLACE", str(Path(folder) / "m.json"))
        certify, load, built, read, peak = json.loads(fresh(program))
    what = "load it, against parsing, hashing, one check"
    return [
        at_most("certify the kernel, n = 10⁶, against its integers and one check", certify, built, 1.3),
        at_most(what, load, read, 1.3),
        Line("peak memory of both", f"{peak:.2f} GiB", "2 GiB", f"{peak / 2:.2f}×", "≤ 1×", peak <= 2),
    ]


def near() -> list[Line]:
    """Nearest laws on a line and on a map: one of many categories, and many of a hundred."""
    rng, lines = np.random.default_rng(3), []

    def geometry(kind: str, n: int) -> sv.Line | sv.Tree:
        if kind == "line":
            return sv.Line(rng.integers(0, 3 * n, n).tolist())
        return sv.Tree.from_points(45 + rng.random(n), 9 + rng.random(n))

    history = rng.integers(0, 10_000, 20).tolist()
    users = rng.multinomial(20, rng.dirichlet(np.full(N, 0.1)), 100_000)
    for kind in ("line", "map"):
        large = sv.certify(sv.nearest(zipf(10_000), EPSILON, geometry(kind, 10_000)))
        took = per_call(partial(large.release, history), 5)
        lines.append(at_most(f"one release at n = 10⁴ from 20 records, `nearest` on a {kind}", took, 0.03, 1))
        many = sv.certify(sv.nearest(zipf(N), EPSILON, geometry(kind, N)))
        took = seconds(partial(many.release_many, users), 3)
        what = f"100,000 users at n = 100, `nearest` on a {kind}, against 20,000 a second"
        lines.append(at_most(what, took, 5, 1))
    return lines


def streams() -> list[Line]:
    """A step of many streams against a single release of as many users, 20 records each at n = 100."""
    users = np.random.default_rng(4).multinomial(20, zipf(N).probabilities, 200_000)
    once, stream = sv.certify(sv.kernel_clip(zipf(N), EPSILON)), sv.certify(sv.stream(zipf(N), 8.0))
    rows = once.prepare(users)
    _, states = stream.draw(rows, [stream.start()] * len(users))
    step = seconds(lambda: stream.draw(rows, states))
    ratio = seconds(lambda: once.draw(rows)) / step
    what = "200,000 users make a step of a stream, against a release of `kernel_clip`"
    ours, theirs = (f"{len(users) / time / 1e3:,.0f} k/s" for time in (step, step * ratio))
    return [Line(what, ours, theirs, f"{ratio:.2f}×", "≥ 0.33×", ratio >= 0.33)]


SECTIONS = {
    "Releasing many": rates,
    "Streams of many users": streams,
    "Nearest laws": near,
    "Releasing one": single,
    "Certifying a million categories": large,
    **clips.SECTIONS,
}
