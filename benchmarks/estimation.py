"""Estimating: ten million categories, and squared errors against the estimators people use."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from experiments.documents import write_block

from .measure import Line, fresh

N, REPORTS, COLLECTIONS = 100, 100_000, 200
EPSILONS = (1.0, 2.0, 4.0)
PACKAGES = ("multi-freq-ldpy", "scipy")  # which it needs and does not say
OURS = ("values", "projected", "shrunk")
LARGE = """
import json, resource, time, numpy as np, sottovoce as sv
n = 10_000_000
rng = np.random.default_rng(0)
q = rng.random(n)
q /= q.sum()
sampler = sv.minimax_kernel(sv.Prior(range(n), q), 2.0)
del q
counts = rng.poisson(5.0, n).astype(np.int32)
begin = time.perf_counter()
sv.estimate(sampler, counts)
print(json.dumps([time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""
PEER = """
import json, sys
import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU, GRR_Aggregator_MI
out = []
for epsilon, counts in json.load(open(sys.argv[1])):
    reports = np.repeat(np.arange(len(counts)), counts)
    found = [make(reports, len(counts), epsilon) for make in (GRR_Aggregator_MI, GRR_Aggregator_IBU)]
    out.append([list(map(float, one)) for one in found])
print(json.dumps(out))
"""


def populations() -> dict[str, np.ndarray]:
    """Average users from the prior itself to far away."""
    q = 1 / np.arange(1, N + 1)
    q /= q.sum()
    own = np.random.default_rng(1).dirichlet(np.ones(N))
    return {
        "same": q,
        "near": 0.9 * q + 0.1 * own,
        "far": np.full(N, 1 / N),
    }


def ten_million() -> list[Line]:
    """One estimate with its errors over ten million categories."""
    took, peak = json.loads(fresh(LARGE))
    return [
        Line("estimate with errors, n = 10⁷", f"{took:.2f} s", "5 s", f"{took / 5:.2f}×", "≤ 1×", took <= 5),
        Line("peak memory of the process", f"{peak:.2f} GiB", "2 GiB", f"{peak / 2:.2f}×", "≤ 1×", peak <= 2),
    ]


def against_others() -> list[Line]:
    """Σ_j (estimate − population)², the mean of the collections, against the peer's matrix inversion."""
    prior = sv.Prior(range(N), populations()["same"])
    rng = np.random.default_rng(2)
    errors: dict[tuple[str, float, str], list[float]] = {}
    asked: list[tuple[float, list[int]]] = []
    where: list[tuple[str, float, np.ndarray]] = []
    for title, population in populations().items():
        for epsilon in EPSILONS:
            for name in ("minimax_kernel", "randomized_response"):
                made = sv.SAMPLERS[name](prior, epsilon)
                drawn = rng.multinomial(REPORTS, made.distribution(population), size=COLLECTIONS)
                found = [sv.estimate(made, counts) for counts in drawn]
                for kind in OURS:
                    squares = [float(((getattr(one, kind) - population) ** 2).sum()) for one in found]
                    errors[title, epsilon, f"{name} {kind}"] = squares
                if name == "randomized_response":
                    asked += [(epsilon, counts.tolist()) for counts in drawn]
                    where += [(title, epsilon, population)] * COLLECTIONS
    answers = _ask_peer(asked)
    for (title, epsilon, population), pair in zip(where, answers or [], strict=False):
        for kind, values in zip(("MI", "IBU"), pair, strict=True):
            key = (title, epsilon, f"multi-freq-ldpy {kind}")
            errors.setdefault(key, []).append(float(((np.array(values) - population) ** 2).sum()))
    base = "multi-freq-ldpy MI" if answers else "randomized_response projected"
    write_block("docs/choosing.md", "estimators", _table(errors, base))
    lines = []
    for title in populations():
        for epsilon in EPSILONS:
            for kind in ("minimax_kernel values", "minimax_kernel shrunk", "randomized_response shrunk"):
                ours, theirs = (float(np.mean(errors[title, epsilon, one])) for one in (kind, base))
                what = f"squared error, population {title}, ε = {epsilon:g}: `{kind}` against {base}"
                lines.append(Line(what, f"{ours:.2e}", f"{theirs:.2e}", f"{ours / theirs:.2f}×", "", True))
    return lines


def _table(errors: dict[tuple[str, float, str], list[float]], base: str) -> str:
    """All estimators as ratios to one of them, as Markdown; below 1 is nearer to the population."""
    squares = {key: float(np.mean(values)) for key, values in errors.items()}
    doubt = {
        key: float(np.std(values)) / np.sqrt(len(values)) / squares[key] for key, values in errors.items()
    }
    worst = max(float(np.hypot(doubt[key], doubt[(*key[:2], base)])) for key in errors)
    titles = [(title, epsilon) for title in populations() for epsilon in EPSILONS]
    head = [f"{title}, ε={epsilon:g}" for title, epsilon in titles]
    lines = [f"| estimator | {' | '.join(head)} |", f"|---{'|---:' * len(head)}|"]
    for kind in dict.fromkeys(kind for _, _, kind in squares):
        cells = [
            f"{squares[title, epsilon, kind] / squares[title, epsilon, base]:.2f}"
            for title, epsilon in titles
        ]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    note = (
        f"Means of {COLLECTIONS} collections; a cell's standard error is at most {100 * worst:.0f} % of it."
    )
    return "\n".join([*lines, "", note])


def _ask_peer(asked: list[tuple[float, list[int]]]) -> Any:
    """The peer's estimates, from an environment of its own that is thrown away; None if it cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        python, questions = Path(folder) / "bin" / "python", Path(folder) / "asked.json"
        questions.write_text(json.dumps(asked))
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "multi-freq-ldpy",
            "scipy",
        ]
        try:
            subprocess.run(
                [sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=600
            )
            subprocess.run(install, check=True, capture_output=True, timeout=600)
            command = [str(python), "-c", PEER, str(questions)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3600)
            return json.loads(done.stdout.strip().splitlines()[-1])
        except (subprocess.SubprocessError, ValueError, IndexError) as problem:
            print("   ", type(problem).__name__, str(getattr(problem, "stderr", ""))[-200:])
            return None


SECTIONS = {"Estimating over ten million categories": ten_million, "Estimators": against_others}
