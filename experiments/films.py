"""Thousands of categories: items are films, and the private users are those of the MovieLens 1M set.

    python -m experiments.films FOLDER --prior half

`half`: the prior pools every second user of the 1M set (by number), the private users are the others.
`100k`: the prior pools the 100K set; films are matched by title and year, private ratings of other films are
left out. Every rating counts once. The data are not ours to ship: name the folder of ml-100k and ml-1m.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy import sparse

import sottovoce as sv
from sottovoce.planning.compare import BEST_POSSIBLE

from .choosing import MAKERS, PROMISED

PRIORS = ("half", "100k")
EPSILONS = (2.0, 4.0, 8.0)


def _columns(path: Path, separator: str, *which: int) -> list[list[str]]:
    lines = path.read_text(encoding="latin-1").splitlines()
    return [[line.split(separator)[k] for k in which] for line in lines if line]


def _pairs(path: Path, separator: str) -> tuple[np.ndarray, np.ndarray]:
    """User and film of every rating."""
    table = np.array(_columns(path, separator, 0, 1), dtype=np.int64)
    return table[:, 0], table[:, 1]


def data(folder: Path, prior: str = "half") -> tuple[sv.Prior, sparse.csr_array]:
    """The prior over films and the private users' distributions."""
    user, film = _pairs(folder / "ml-1m" / "ratings.dat", "::")
    if prior == "half":
        public, private = user % 2 == 1, user % 2 == 0
        counts = np.bincount(film[public], minlength=film.max() + 1)
    else:
        titles = dict(_columns(folder / "ml-1m" / "movies.dat", "::", 1, 0))
        named = {int(k): title for k, title in _columns(folder / "ml-100k" / "u.item", "|", 0, 1)}
        _, seen = _pairs(folder / "ml-100k" / "u.data", "\t")
        here = np.array([int(titles.get(named[one], 0)) for one in seen])
        counts = np.bincount(here[here > 0], minlength=film.max() + 1)
        private = np.ones(len(user), dtype=bool)
    known = np.flatnonzero(counts)
    place = np.full(len(counts), -1)
    place[known] = np.arange(len(known))
    private &= place[film] >= 0
    who, row = np.unique(user[private], return_inverse=True)
    ones = np.ones(int(private.sum()))
    held = sparse.csr_array(
        sparse.coo_array((ones, (row, place[film[private]])), shape=(len(who), len(known)))
    )
    rows = sparse.csr_array(sparse.diags_array(1 / held.sum(axis=1)) @ held)
    return sv.Prior([int(one) for one in known], counts[known] / counts[known].sum()), rows


def measure(folder: Path, prior: str = "half", *, limit: bool = True) -> sv.Comparison:
    """Every sampler and `fitted`, at every epsilon, with the limit beside them."""
    public, users = data(folder, prior)
    found = sv.Comparison(())
    for epsilon in EPSILONS:
        samplers = [make(public, epsilon) for make in MAKERS.values()]
        found += sv.compare(users, samplers, sv.TV, limit=limit)
    return found


def table(found: sv.Comparison) -> str:
    """Mean / maximum per sampler and epsilon as Markdown; the lowest mean that keeps the prior in bold."""
    best = {row.epsilon: row.sampler for row in found.best()}
    lines = [
        f"| {' | '.join(['sampler', *(f'ε = {epsilon:g}' for epsilon in EPSILONS), 'keeps q'])} |",
        f"|---{'|---:' * len(EPSILONS)}|:---:|",
    ]
    for name in dict.fromkeys(_short(row.sampler) for row in found.sorted()):
        mine = {row.epsilon: row for row in found if _short(row.sampler) == name}
        cells = []
        for epsilon in EPSILONS:
            row = mine[epsilon]
            mean = f"**{row.mean:.3f}**" if best[epsilon] == row.sampler else f"{row.mean:.3f}"
            cells.append(f"{mean}/{row.maximum:.3f}")
        shown = name if name == BEST_POSSIBLE else f"`{name}`"
        keeps = "yes" if all(row.keeps_prior for row in mine.values()) else "no"
        lines.append(f"| {shown} | {' | '.join(cells)} | {keeps} |")
    return "\n".join(lines)


def _short(sampler: str) -> str:
    return PROMISED if "promise=" in sampler else sampler.split("(")[0]


def summary(folder: Path, prior: str, found: sv.Comparison) -> str:
    """How many films and users, and the table."""
    public, users = data(folder, prior)
    whose = "every second user of the 1M set" if prior == "half" else "the 100K set"
    return (
        f"Prior from {whose}, {len(public):,} films; {users.shape[0]:,} private users of the 1M set; total "
        f"variation, mean / maximum.\n\n{table(found)}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder that holds ml-100k and ml-1m")
    parser.add_argument("--prior", choices=PRIORS, default=PRIORS[0])
    parser.add_argument("--no-limit", action="store_true", help="leave the limit out, which takes minutes")
    options = parser.parse_args()
    found = measure(options.folder, options.prior, limit=not options.no_limit)
    print(summary(options.folder, options.prior, found))


if __name__ == "__main__":
    main()
