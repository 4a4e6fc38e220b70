"""Near is better than far on real users: the years of the films that people rated, MovieLens 100K.

    python -m experiments.years FOLDER

The prior is the mean distribution of every other user, the others are measured: W1 in years and total
variation, for `nearest` and for the samplers that do not know which years are near each other. The data are
not ours to ship: name the folder of ml-100k.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sottovoce as sv

EPSILONS = (1.0, 2.0, 4.0, 6.0)
SHARES = (0.4, 0.5, 0.6)


def years_of_users(folder: Path) -> tuple[list[int], np.ndarray]:
    """The years of the films, and how many films of each year every user rated."""
    year = {}
    for line in (folder / "ml-100k" / "u.item").read_text(encoding="latin-1").splitlines():
        film, _, date = line.split("|")[:3]
        if date:
            year[film] = int(date[-4:])
    rated = [
        line.split("\t")[:2]
        for line in (folder / "ml-100k" / "u.data").read_text(encoding="ascii").splitlines()
    ]
    pairs = [(int(user), year[film]) for user, film in rated if film in year]
    years = sorted({one for _, one in pairs})
    counts = np.zeros((max(user for user, _ in pairs), len(years)), dtype=np.int64)
    for user, one in pairs:
        counts[user - 1, years.index(one)] += 1
    return years, counts[counts.sum(axis=1) > 0]


def halves(folder: Path) -> tuple[sv.Prior, sv.Line, np.ndarray]:
    """The mean of every other user as the prior (and 0.01 users for every year), the years, the others."""
    years, counts = years_of_users(folder)
    p = counts / counts.sum(axis=1, keepdims=True)
    mean = p[::2].sum(axis=0) + 0.01
    return sv.Prior(years, mean / mean.sum()), sv.Line(years), p[1::2]


def measure(folder: Path) -> list[sv.Comparison]:
    """A comparison for every ε, in W1 and TV."""
    prior, line, users = halves(folder)
    out = []
    for epsilon in EPSILONS:
        near = [sv.nearest(prior, epsilon, line, share=share) for share in SHARES]
        rivals = [sv.fitted(prior, epsilon), sv.relative_mollifier(prior, epsilon)]
        out.append(sv.compare(users, [*near, *rivals], [sv.wasserstein(line), sv.TV]))
    return out


def table(folder: Path) -> str:
    """One row per ε: mean W1 in years / mean total variation."""
    head = ["ε", *(f"`nearest`, share {share:g}" for share in SHARES), "`fitted`", "`relative_mollifier`"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for epsilon, found in zip(EPSILONS, measure(folder), strict=True):
        means = [row.mean for row in found]
        cells = [f"{w1:.2f}/{tv:.3f}" for w1, tv in zip(means[::2], means[1::2], strict=True)]
        lines.append(f"| {epsilon:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder that holds ml-100k")
    print(table(parser.parse_args().folder))


if __name__ == "__main__":
    main()
