"""Streams on real users in time order: MovieLens 1M, the prior from the 100K set.

    python -m experiments.streams FOLDER

A user's ratings are cut, in the order of their time stamps, into equal parts, one for each release; p_t are
the genres of part t. A stream at ε is held against `fitted` at ε/releases. The pace and the start of a stream
were chosen on users of the 100K set. The data are not ours to ship: name the folder of ml-100k and ml-1m.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sottovoce as sv

from .movielens import GENRES

SETTINGS = ((12, 4.0), (12, 8.0), (12, 16.0), (52, 8.0), (52, 16.0))
"""Releases and ε."""


def ratings(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The user of every rating, in time order within each user, and the genres of the film, one or more."""
    large = name == "ml-1m"
    films: dict[int, list[int]] = {}
    items = folder / name / ("movies.dat" if large else "u.item")
    for line in items.read_text(encoding="latin-1").splitlines():
        parts = line.split("::" if large else "|")
        found = (
            parts[2].split("|")
            if large
            else [g for g, flag in zip(GENRES, parts[6:24], strict=True) if flag == "1"]
        )
        films[int(parts[0])] = [GENRES.index(genre) for genre in found]
    text = (folder / name / ("ratings.dat" if large else "u.data")).read_text(encoding="latin-1")
    rows = np.array([line.split("::" if large else "\t") for line in text.splitlines()], dtype=np.int64)
    rows = rows[np.lexsort((rows[:, 3], rows[:, 0]))]
    genres = np.zeros((len(rows), len(GENRES)))
    for i, film in enumerate(rows[:, 1].tolist()):
        genres[i, films[film]] = 1
    return rows[:, 0], genres


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
    public = ratings(folder, "ml-100k")[1].sum(axis=0)
    prior = sv.Prior(GENRES, public / public.sum())
    steps = parts(*ratings(folder, "ml-1m"), releases, prior.probabilities)
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder that holds ml-100k and ml-1m")
    print(table(parser.parse_args().folder))


if __name__ == "__main__":
    main()
