"""Learning a prior where there is no public data: the tables of docs/learning.md.

python -m experiments.learning            # invented populations, and the variance beside its rivals
SOTTOVOCE_DATA=… python -m experiments.learning   # also MovieLens
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import sottovoce as sv

from . import movielens
from .documents import write_block

SPLITS = 200
SERVED = 2000
"""Invented users who are measured."""
SURVEYS = 20
"""Surveys of each invented population: one alone repeats in its first digit only."""


def genres_of_users(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The users of the 1M set as distributions over genres, and the genres of the 100K set."""
    _, user, _, flags = movielens.read_1m(folder / "ml-1m")
    histories = np.zeros((user.max() + 1, flags.shape[1]))
    np.add.at(histories, user, flags)
    histories = histories[histories.sum(axis=1) > 0]
    public = movielens.read_100k(folder / "ml-100k")[3].sum(axis=0)
    return histories / histories.sum(axis=1, keepdims=True), public / public.sum()


def mean(sampler: sv.Sampler, people: Any) -> float:
    """The mean total variation."""
    return float(np.mean(sampler.divergence(people, sv.TV)))


def without_public_data(folder: Path, epsilon: float, splits: int = SPLITS) -> dict[str, float]:
    """One fifth of the users answer a survey, the others are served: means over random splits."""
    people, public = genres_of_users(folder)
    n, fifth = people.shape[1], len(people) // 5
    mechanism = sv.certify(sv.survey(range(n), epsilon))
    found: dict[str, list[float]] = {"fitted": [], "blend(0.25)": []}
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(people))
        reports = mechanism.release_many(people[order[:fifth]])
        prior = sv.estimate(mechanism, list(reports)).as_prior()
        found["fitted"].append(mean(sv.fitted(prior, epsilon), people[order[fifth:]]))
        found["blend(0.25)"].append(mean(sv.blend(prior, epsilon, weight=0.25), people[order[fifth:]]))
    flat, known = sv.Prior.uniform(range(n)), sv.Prior(range(n), public)
    return {name: float(np.mean(means)) for name, means in found.items()} | {
        "error": float(np.std(found["fitted"]) / math.sqrt(splits)),
        "without": mean(sv.global_minimax(flat, epsilon), people),
        "uniform": mean(sv.fitted(flat, epsilon), people),
        "public": mean(sv.fitted(known, epsilon), people),
    }


def movielens_table(folder: Path) -> str:
    """MovieLens without its public set, as Markdown."""
    head = "| ε | learned, `fitted` | learned, `blend(0.25)` | public prior | uniform prior | no prior |"
    lines = [head, "|---:|---:|---:|---:|---:|---:|"]
    for epsilon in (1.0, 2.0, 3.0, 4.0):
        row = without_public_data(folder, epsilon)
        cells = [f"{row['fitted']:.4f} ± {row['error']:.4f}"]
        cells += [f"{row[name]:.4f}" for name in ("blend(0.25)", "public", "uniform", "without")]
        lines.append(f"| {epsilon:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def population(n: int, users: int, rng: np.random.Generator) -> tuple[sparse.csr_array, np.ndarray]:
    """Users of six types around a law that falls off like rank^-0.9, with 20 records each."""
    law = np.arange(1, n + 1) ** -0.9
    law /= law.sum()
    types = rng.gamma(np.maximum(law * n / 2, 1e-3), size=(6, n))
    types = law / 2 + types / types.sum(axis=1, keepdims=True) / 2
    weights = rng.dirichlet(np.full(6, 3.0))
    kind = rng.choice(6, size=users, p=weights)
    records = np.empty((users, 20), dtype=np.int64)
    for k in range(6):
        records[kind == k] = rng.choice(n, size=(int((kind == k).sum()), 20), p=types[k])
    rows = sparse.csr_array(
        (np.ones(users * 20, dtype=np.int64), (np.repeat(np.arange(users), 20), records.ravel())),
        shape=(users, n),
    )
    rows.sum_duplicates()
    return rows, weights @ types


def populations_table(most: int = 1_000_000, surveys: int = SURVEYS) -> str:
    """Invented populations: the mean of users served after surveys of several sizes, as Markdown.

    What is surveyed is a mean over several surveys, in two digits, which repeat; the rest is no matter of
    chance and has three.
    """
    sizes = [size for size in (1000, 10_000, 100_000, 1_000_000) if size <= most]
    head = ["categories", "ε", "known", *(f"{size:,} reports" for size in sizes), "uniform", "no prior"]
    lines = [f"| {' | '.join(head)} |", "|" + "---:|" * len(head)]
    for n in (18, 100, 1000):
        rows, truth = population(n, max(sizes) + SERVED, np.random.default_rng(5))
        people = sparse.csr_array(rows[max(sizes) :] / 20)
        for epsilon in (1.0, 2.0, 4.0):
            mechanism = sv.certify(sv.survey(range(n), epsilon))
            found = np.zeros((surveys, len(sizes)))
            for survey in range(surveys):
                answers = mechanism.release_many(rows[: max(sizes)]).astype(np.int64)
                for k, size in enumerate(sizes):
                    counts = np.bincount(answers[:size], minlength=len(mechanism.answers)).astype(float)
                    prior = sv.estimate(mechanism, counts).as_prior(force=True)
                    found[survey, k] = mean(sv.fitted(prior, epsilon), people)
            flat = sv.Prior.uniform(range(n))
            known, uniform, without = (
                f"{mean(sampler, people):.3f}"
                for sampler in (
                    sv.fitted(sv.Prior(range(n), truth), epsilon),
                    sv.fitted(flat, epsilon),
                    sv.global_minimax(flat, epsilon),
                )
            )
            cells = [known, *(f"{cell:.2f}" for cell in found.mean(axis=0)), uniform, without]
            lines.append(f"| {n:,} | {epsilon:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rivals(n: int, epsilon: float) -> dict[str, float]:
    """m times the variance of a rare category: P₀(1 − P₀)/(P₁ − P₀)² (Wang et al. 2017)."""
    a = math.exp(epsilon)
    values = round(a) + 1
    chances = {
        "randomized response": (a / (a + n - 1), 1 / (a + n - 1)),
        "OUE": (0.5, 1 / (a + 1)),
        "OLH": (a / (a + values - 1), 1 / values),
    }
    sizes = {max(1, near(n / (a + 1))) for near in (math.floor, math.ceil)}
    subsets = min(_variance(*_subset(n, size, a)) for size in sizes)
    return {name: _variance(p, q) for name, (p, q) in chances.items()} | {"subset selection": subsets}


def _subset(n: int, size: int, a: float) -> tuple[float, float]:
    """The chances that a random set of so many categories holds one's own, and another one."""
    own = size * a / (size * a + n - size)
    return own, own * (size - 1) / (n - 1) + (1 - own) * size / (n - 1)


def _variance(p: float, q: float) -> float:
    """Of one report, for a rare category: a report supports its own with chance p, another one with q."""
    return q * (1 - q) / (p - q) ** 2


def rivals_table() -> str:
    """Variances beside those of other mechanisms, as Markdown."""
    names = list(rivals(2, 1.0))
    lines = [f"| categories | ε | `survey` | {' | '.join(names)} |", "|" + "---:|" * (len(names) + 3)]
    for n in (100, 100_000):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            found = rivals(n, epsilon)
            cells = [sv.survey(range(n), epsilon).variance, *(found[name] for name in names)]
            lines.append(f"| {n:,} | {epsilon:g} | {' | '.join(f'{cell:.4g}' for cell in cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables into the document."""
    write_block("docs/learning.md", "rivals", rivals_table())
    write_block("docs/learning.md", "populations", populations_table())
    if "SOTTOVOCE_DATA" in os.environ:
        write_block("docs/learning.md", "movielens", movielens_table(Path(os.environ["SOTTOVOCE_DATA"])))


if __name__ == "__main__":
    main()
