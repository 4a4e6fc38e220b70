"""The paper's MovieLens experiment (Figure 4 and appendix): users of the 1M set, priors from the 100K set.

Each age group has its own prior, pooled from the 100K users of that age, and its own users, from the 1M set.
The published numbers come from counting every genre flag of every rated film, unweighted, over the 18 named
genres (`all-genres`); the paper's text says primary genre and summed ratings (`primary-rating`, here with a
smoothing of one, because no film has Fantasy as its first genre in some groups). Both are here.

The data are not ours to ship. Put the official folders ml-100k and ml-1m side by side and name that folder.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import sottovoce as sv
from sottovoce.plots import new_figure, save_figure, style

GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
GROUPS = ("up to 24", "25-34", "35-44", "45-49", "50-54", "55 and over")
EPSILONS = tuple(float(epsilon) for epsilon in range(1, 9))
COUNTING = ("all-genres", "primary-rating")
DRAWN = ("minimax_kernel", "relative_mollifier", "kernel_clip", "prior_minimax", "blend")
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


def measure(folder: Path, counting: str = "all-genres") -> list[dict[str, object]]:
    """One tidy row per epsilon, group and sampler."""
    rows: list[dict[str, object]] = []
    for group, (prior, users) in data(folder, counting).items():
        for epsilon in EPSILONS:
            for row in sv.compare(users, [make(prior, epsilon) for make in sv.SAMPLERS.values()], sv.TV):
                name = row.sampler.split("(")[0]
                cells = (epsilon, group, name, row.users, row.maximum, row.mean, row.p99)
                rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def summary(rows: list[dict[str, object]]) -> str:
    """Averages over the cells, and how often each sampler beats the relative mollifier in the maximum."""
    cells = {(row["epsilon"], row["group"], row["sampler"]): row for row in rows}
    keys = list(dict.fromkeys((row["epsilon"], row["group"]) for row in rows))
    lines = [
        "| sampler | max TV | mean TV | p99 TV | cells won | by | cells lost |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in sv.SAMPLERS:
        mine = [cells[*key, name] for key in keys]
        rival = np.array([float(cells[*key, "relative_mollifier"]["max_tv"]) for key in keys])  # type: ignore[arg-type]
        own = np.array([float(row["max_tv"]) for row in mine])  # type: ignore[arg-type]
        # The paper compares what it prints: two decimals.
        gap = np.round(rival, 2) - np.round(own, 2)
        won = gap > 0
        by = f"{gap[won].mean():.3f}" if won.any() else "–"
        means = [np.mean([float(row[c]) for row in mine]) for c in ("max_tv", "mean_tv", "p99_tv")]  # type: ignore[arg-type]
        shares = f"{won.mean():.1%} | {by} | {(gap < 0).mean():.1%}"
        lines.append(f"| `{name}` | {means[0]:.3f} | {means[1]:.3f} | {means[2]:.3f} | {shares} |")
    return "\n".join(lines)


def run(folder: Path, output: Path, counting: str = "all-genres") -> list[Path]:
    """Write the tidy table and the figure of the maxima as PNG and PDF."""
    output.mkdir(parents=True, exist_ok=True)
    rows = measure(folder, counting)
    stem = "movielens" if counting == "all-genres" else "movielens-primary"
    table = output / f"{stem}.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS)
        out.writeheader()
        out.writerows(rows)
    figure = new_figure(12, 7)
    for axes, group in zip(figure.subplots(2, 3, sharey=True).flat, GROUPS, strict=True):
        for name in DRAWN:
            mine = [row for row in rows if row["group"] == group and row["sampler"] == name]
            axes.plot(EPSILONS, [row["max_tv"] for row in mine], label=name, markersize=4, **style(name))
        axes.set_title(group)
        axes.grid(color="#EEEEEE")
    figure.axes[0].set_ylim(
        0, 1.05 * max(float(str(row["max_tv"])) for row in rows if row["sampler"] in DRAWN)
    )
    figure.supxlabel("epsilon")
    figure.supylabel("maximum TV over the users of the group")
    figure.axes[0].legend(fontsize=8)
    return [table, *(save_figure(figure, output / f"{stem}.{kind}") for kind in ("png", "pdf"))]
