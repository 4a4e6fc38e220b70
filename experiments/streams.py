"""Streams on real users in time order: MovieLens 100K, the prior from every other user.

    python -m experiments.streams FOLDER

A user's ratings are cut, in the order of their time stamps, into equal parts, one for each release; p_t are
the genres of part t. Every other user, by number, is public: their genres are the prior, and the others are
measured. A stream at ε is compared with `fitted` at ε/releases. The pace and the start of a stream were
chosen on users of this set. The data are not ours to ship: name the folder of ml-100k.

MovieLens 1M is not used: times are needed, and there are copies of it in which all are zero.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv

from .movielens import GENRES

SETTINGS = ((12, 4.0), (12, 8.0), (12, 16.0), (52, 8.0), (52, 16.0))
"""Releases and ε."""


def ratings(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The user of every rating, in time order within each user, and the genres of the film, one or more.

    Ratings of the same second stay in the order of the file.
    """
    films = (folder / "ml-100k" / "u.item").read_text(encoding="latin-1").splitlines()
    flags = np.array([[int(flag) for flag in line.split("|")[6:24]] for line in films], dtype=np.float64)
    lines = (folder / "ml-100k" / "u.data").read_text(encoding="ascii").splitlines()
    user, film, _, time = np.array([line.split("\t") for line in lines], dtype=np.int64).T
    order = np.lexsort((time, user))
    return user[order], flags[film[order] - 1]


def parts(user: np.ndarray, genres: np.ndarray, releases: int, q: np.ndarray) -> list[np.ndarray]:
    """The users' distributions at each release; users with fewer ratings are left out, empty parts are q."""
    _, start, count = np.unique(user, return_index=True, return_counts=True)
    number = np.repeat(np.arange(len(count)), count)
    place = (np.arange(len(user)) - np.repeat(start, count)) * releases // np.repeat(count, count)
    held = np.zeros((releases, len(count), genres.shape[1]))
    np.add.at(held, (place, number), genres)
    held = held[:, count >= releases]
    total = held.sum(axis=2, keepdims=True)
    return list(np.where(total > 0, held / np.maximum(total, 1), q))


def measure(folder: Path, releases: int, epsilon: float) -> dict[str, float]:
    """The mean distance over releases and users: of the prior alone, of splitting ε, greedy and paced."""
    user, genres = ratings(folder)
    public = user % 2 == 0
    counts = genres[public].sum(axis=0)
    prior = sv.Prior(GENRES, counts / counts.sum())
    steps = parts(user[~public], genres[~public], releases, prior.probabilities)
    out = {"users": float(len(steps[0]))}
    out["the prior alone"] = float(np.mean([np.abs(p - prior.probabilities).sum(axis=1) / 2 for p in steps]))
    for name, paced in (("greedy", False), ("paced", True)):
        sampler = sv.stream(prior, epsilon, horizon=releases, paced=paced)
        rows = sv.compare_over_time(steps, sampler)
        out["split"] = float(np.mean([row.mean for row in rows if row.sampler == "fitted"]))
        out[name] = float(np.mean([row.mean for row in rows if row.sampler == "stream"]))
    return out


def table(folder: Path) -> str:
    """All settings as Markdown."""
    head = [
        "releases, ε",
        "users",
        "the prior alone",
        "split: `fitted` at ε/releases",
        "stream, greedy",
        "stream",
    ]
    lines = [f"| {' | '.join(head)} |", "|---|---:|---:|---:|---:|---:|"]
    for releases, epsilon in SETTINGS:
        found = measure(folder, releases, epsilon)
        numbers = [found[name] for name in ("the prior alone", "split", "greedy", "paced")]
        cells = [f"{releases}, {epsilon:g}", f"{found['users']:,.0f}", *(f"{one:.3f}" for one in numbers)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class SmallCase:
    """A stream and splitting, in the mean and for the worst of the users: exact over all transcripts."""

    categories: int
    releases: int
    epsilon: float
    moves: bool  # whether a user's shares move to the next category at every release, or stay
    stream: tuple[float, float]
    split: tuple[float, float]


QUARTERS = 4
"""The users of a small case have all laws whose shares are multiples of a quarter."""


def small_cases() -> list[SmallCase]:
    """Two priors (even, and like 1/rank), 2 to 4 categories, 2 or 3 releases, two kinds of users."""
    cases = []
    for even, n, releases in itertools.product((True, False), (2, 3, 4), (2, 3)):
        weights = np.arange(1, n + 1) ** (0.0 if even else -1.0)
        prior = sv.Prior(range(n), weights / weights.sum())
        laws = [c for c in itertools.product(range(QUARTERS + 1), repeat=n) if sum(c) == QUARTERS]
        for epsilon, moves in itertools.product((1.0, 2.0, 4.0, 8.0), (False, True)):
            mechanism = sv.certify(sv.stream(prior, epsilon, horizon=releases))
            alone = sv.fitted(prior, epsilon / releases)
            lives = [[np.roll(law, t if moves else 0) for t in range(releases)] for law in laws]
            engine: Any = mechanism.engine
            ours = [_expected(engine, life, engine.first()) / releases for life in lives]
            split = [float(np.mean(alone.divergence(np.array(life) / QUARTERS, sv.TV))) for life in lives]
            means = (float(np.mean(ours)), max(ours)), (float(np.mean(split)), max(split))
            cases.append(SmallCase(n, releases, epsilon, moves, *means))
    return cases


def _expected(engine: Any, life: list[np.ndarray], bounds: tuple[int, int], step: int = 0) -> float:
    """The expected sum of the distances from this step on, over everything that may be released."""
    if step == len(life):
        return 0.0
    counts = life[step].tolist()
    held = [(i, count) for i, count in enumerate(counts) if count]
    law = engine.step_law(held, *engine.ratios(*bounds, step))
    drawn = [law.weight(i) for i in range(len(counts))]  # of the prior, of the law
    total = 0.0
    for count, (weight, units) in zip(counts, drawn, strict=True):
        chance = units / engine.total
        later = _expected(engine, life, engine.moved(*bounds, weight, units), step + 1)
        total += abs(chance - count / QUARTERS) / 2 + chance * later
    return total


def lost() -> str:
    """How often a stream is further from the users than splitting, in words."""
    cases = small_cases()
    mean, worst = (sum(case.stream[k] > case.split[k] for case in cases) for k in (0, 1))
    return (
        f"{len(cases)} small cases: splitting is nearer in {mean} in the mean, in {worst} for the worst user"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder that holds ml-100k")
    print(table(parser.parse_args().folder))
    print(lost())


if __name__ == "__main__":
    main()
