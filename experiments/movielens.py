"""The paper's MovieLens experiment (Figure 4 and appendix): users of the 1M set, priors from the 100K set.

Each age group has its own prior, pooled from the 100K users of that age, and its own users, from the 1M set.
The published numbers come from counting every genre flag of every rated film, unweighted, over the 18 named
genres (`all-genres`); the paper's text says primary genre and summed ratings (`primary-rating`, here with a
smoothing of one, because no film has Fantasy as its first genre in some groups). Both are here. The primary
genre is the first one listed; both sets list genres in the order of the alphabet.

    python -m experiments.movielens FOLDER --count all-genres

The data are not ours to ship. Put the official folders ml-100k and ml-1m side by side and name that folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.pictures.plots import new_figure, style

from .results import DRAWN, PAPERS, Row, draw_groups, save_both, share_legend, versus_mollifier, write_table

GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
GROUPS = ("up to 24", "25-34", "35-44", "45-49", "50-54", "55 and over")
EPSILONS = tuple(float(epsilon) for epsilon in range(1, 9))
COUNTING = ("all-genres", "primary-rating")
COLUMNS = ("epsilon", "group", "sampler", "users", "max_tv", "mean_tv", "p99_tv")
_UPPER = np.array([24, 34, 44, 49, 54])


def group_of(ages: np.ndarray) -> np.ndarray:
    """The position of the age group; the 1M codes 1 and 18 stand for under 25."""
    return np.searchsorted(_UPPER, ages)


def read_100k(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """User group, user number and rating per rating, and the genre flags of its film."""
    users = _lines(folder / "u.user", "|")
    films = _lines(folder / "u.item", "|", "latin-1")
    ratings = np.array([line[:3] for line in _lines(folder / "u.data", "\t")], dtype=np.int64)
    group = group_of(np.array([int(line[1]) for line in users]))
    flags = np.array([[int(flag) for flag in line[6:24]] for line in films], dtype=np.float64)
    user = ratings[:, 0] - 1
    return group[user], user, ratings[:, 2], flags[ratings[:, 1] - 1]


def read_1m(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same from the 1M layout."""
    users = _lines(folder / "users.dat", "::")
    films = _lines(folder / "movies.dat", "::", "latin-1")
    raw = [line[:3] for line in _lines(folder / "ratings.dat", "::")]
    ratings = np.array(raw, dtype=np.int64)
    group = group_of(np.array([int(line[2]) for line in users]))
    flags = np.zeros((max(int(line[0]) for line in films) + 1, len(GENRES)))
    for line in films:
        flags[int(line[0]), [GENRES.index(genre) for genre in line[2].split("|")]] = 1
    user = ratings[:, 0] - 1
    return group[user], user, ratings[:, 2], flags[ratings[:, 1]]


def _lines(path: Path, separator: str, encoding: str = "utf-8") -> list[list[str]]:
    return [line.split(separator) for line in path.read_text(encoding=encoding).splitlines() if line]


def weights(flags: np.ndarray, rating: np.ndarray, counting: str) -> np.ndarray:
    """What one rating adds to each genre."""
    if counting == "all-genres":
        return flags
    first = np.where(flags.any(axis=1), flags.argmax(axis=1), -1)
    out = np.zeros_like(flags)
    known = first >= 0
    out[np.flatnonzero(known), first[known]] = rating[known]
    return out


def data(folder: Path, counting: str) -> dict[str, tuple[sv.Prior, np.ndarray]]:
    """Per group the prior and the users' distributions."""
    public_group, _, public_rating, public_flags = read_100k(folder / "ml-100k")
    group, user, rating, flags = read_1m(folder / "ml-1m")
    public = weights(public_flags, public_rating, counting)
    private = weights(flags, rating, counting)
    histories = np.zeros((user.max() + 1, len(GENRES)))
    np.add.at(histories, user, private)
    owner = np.zeros(len(histories), dtype=np.int64)
    owner[user] = group
    out = {}
    for g, name in enumerate(GROUPS):
        counts = public[public_group == g].sum(axis=0)
        mine = histories[(owner == g) & (histories.sum(axis=1) > 0)]
        prior = sv.Prior.from_counts(counts, GENRES, smoothing=0 if counting == "all-genres" else 1)
        out[name] = (prior, mine / mine.sum(axis=1, keepdims=True))
    return out


def measure(folder: Path, counting: str = "all-genres") -> list[Row]:
    """One tidy row per epsilon, group and sampler."""
    rows: list[Row] = []
    for group, (prior, users) in data(folder, counting).items():
        for epsilon in EPSILONS:
            for row in sv.compare(users, [make(prior, epsilon) for make in sv.SAMPLERS.values()], sv.TV):
                name = row.sampler.split("(")[0]
                cells = (epsilon, group, name, row.users, row.maximum, row.mean, row.p99)
                rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def summary(rows: list[Row]) -> str:
    """Averages over the 48 cells, and who wins them: maxima to two decimals, as the paper prints them."""
    return versus_mollifier(rows, ("epsilon", "group"), decimals=2)


def maxima(rows: list[Row]) -> str:
    """The maxima of the paper's sampler and of the relative mollifier, to two decimals, as Markdown."""
    values = {(row["group"], row["epsilon"], row["sampler"]): row["max_tv"] for row in rows}
    lines = [
        f"| age group | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |",
        f"|---{'|---:' * len(EPSILONS)}|",
    ]
    for group in GROUPS:
        cells = []
        for epsilon in EPSILONS:
            pair = [values[group, epsilon, name] for name in ("minimax_kernel", "relative_mollifier")]
            cells.append("/".join(f"{value:.2f}" for value in pair))
        lines.append(f"| {group} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_lines(rows: list[Row]) -> Any:
    """One panel per age group, against epsilon."""
    figure = new_figure(12, 7)
    for axes, group in zip(figure.subplots(2, 3, sharey=True).flat, GROUPS, strict=True):
        for name in DRAWN:
            mine = [row for row in rows if row["group"] == group and row["sampler"] == name]
            axes.plot(EPSILONS, [row["max_tv"] for row in mine], label=name, markersize=4, **style(name))
        axes.set_title(group)
        axes.grid(color="#EEEEEE")
    figure.axes[0].set_ylim(0, 1.05 * max(row["max_tv"] for row in rows if row["sampler"] in DRAWN))
    figure.supxlabel("epsilon")
    figure.supylabel("maximum TV over the users of the group")
    figure.axes[0].legend(fontsize=8)
    return figure


def draw_bars(rows: list[Row], epsilons: tuple[float, ...], drawn: tuple[str, ...] = DRAWN) -> Any:
    """One panel per epsilon, bars per age group: Figure 4 (one epsilon), and Figure 12 (all of them)."""
    across = min(len(epsilons), 4)
    down = -(-len(epsilons) // across)
    figure = new_figure(4.6 if down * across == 1 else 3.6 * across, 3.6 * down)
    for axes, epsilon in zip(figure.subplots(down, across, squeeze=False).flat, epsilons, strict=True):
        draw_groups(axes, [row for row in rows if row["epsilon"] == epsilon], GROUPS, drawn)
        axes.set_title(f"ε = {epsilon:g}")
    figure.supylabel("maximum TV over the users of the group", fontsize=9)
    share_legend(figure)
    return figure


def run(folder: Path, output: Path, counting: str = "all-genres") -> tuple[list[Path], list[Row]]:
    """Write the tidy table, Figures 4 and 12 as in the paper, and both with every sampler that is drawn."""
    rows = measure(folder, counting)
    stem = "movielens" if counting == "all-genres" else "movielens-primary"
    written = [write_table(rows, COLUMNS, output / f"{stem}.csv")]
    written += save_both(draw_lines(rows), output, stem)
    written += save_both(draw_bars(rows, (5.0,), PAPERS), output, f"{stem}-figure4")
    written += save_both(draw_bars(rows, EPSILONS, PAPERS), output, f"{stem}-figure12")
    return [*written, *save_both(draw_bars(rows, EPSILONS), output, f"{stem}-appendix")], rows


def main() -> int:
    """Run one counting rule and print the summary."""
    parser = argparse.ArgumentParser(description="The MovieLens experiment.")
    parser.add_argument("folder", type=Path, help="the folder that holds ml-100k and ml-1m")
    parser.add_argument("--count", choices=COUNTING, default=COUNTING[0])
    parser.add_argument("--output", type=Path, default=Path("results"))
    given = parser.parse_args()
    for name in ("ml-100k", "ml-1m"):
        if not (given.folder / name).is_dir():
            print(f"error: there is no folder {given.folder / name}", file=sys.stderr)
            return 2
    written, rows = run(given.folder, given.output, given.count)
    print(summary(rows))
    print(*(f"written   {path}" for path in written), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
