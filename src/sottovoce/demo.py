"""A small invented data set: a film club's public survey and its members' private histories.

Nothing here is real. The same seed always gives the same data, so every number that the documents
quote from it can be printed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from .atomic import write_whole
from .checks import FloatArray
from .collecting.estimate import Estimate, estimate
from .divergences import TV
from .planning.compare import Comparison, ComparisonRow, compare
from .planning.fitted import fitted
from .prior import Prior
from .release.certify import certify
from .release.mechanism import Mechanism
from .samplers.base import Sampler
from .samplers.catalogue import SAMPLERS

SEED = 20250503
GENRES = (
    "Drama", "Comedy", "Action", "Thriller", "Romance", "Adventure", "Crime", "Science fiction",
    "Family", "Horror", "Animation", "Fantasy", "Mystery", "Musical", "War", "History",
    "Documentary", "Western",
)  # fmt: skip
GROUPS = ("under 25", "25 to 44", "45 and over")
EPSILONS = (1.0, 2.0, 4.0, 6.0)

_POPULARITY = np.array([22, 18, 13, 10, 8.5, 7, 6, 5.5, 4, 3.6, 3, 2.6, 2.2, 1.6, 1.5, 1.1, 0.8, 0.6])
_TASTE = {
    "under 25": {"Animation": 2.0, "Horror": 1.8, "Fantasy": 1.6, "Western": 0.5, "History": 0.6},
    "25 to 44": {"Family": 1.5, "Science fiction": 1.3, "Musical": 0.8},
    "45 and over": {"Western": 2.2, "War": 1.8, "History": 1.7, "Horror": 0.5, "Animation": 0.6},
}
_MEMBERS = {"under 25": 700, "25 to 44": 900, "45 and over": 400}
_SURVEYED = 300


@dataclass(frozen=True, eq=False, repr=False)
class DemoData:
    """Per group: the public survey's counts, the prior they give, and the members' record counts."""

    survey: dict[str, FloatArray]
    priors: dict[str, Prior]
    members: dict[str, FloatArray]

    def users(self, group: str) -> sparse.csr_array[np.float64]:
        """The members' private distributions."""
        counts = self.members[group]
        return sparse.csr_array(counts / counts.sum(axis=1, keepdims=True))


COMPARED: dict[str, Callable[..., Sampler]] = {"fitted": fitted, **SAMPLERS}


def demo_data() -> DemoData:
    """Invent the survey and 2,000 members over 18 genres in 3 groups."""
    rng = np.random.default_rng(SEED)
    surveyed, priors, members = {}, {}, {}
    for group in GROUPS:
        taste = _POPULARITY * [_TASTE[group].get(genre, 1.0) for genre in GENRES]
        surveyed[group] = _histories(rng, taste, _SURVEYED).sum(axis=0)
        priors[group] = Prior.from_counts(surveyed[group], GENRES)
        members[group] = _histories(rng, taste, _MEMBERS[group])
    return DemoData(surveyed, priors, members)


def _histories(rng: np.random.Generator, taste: FloatArray, people: int) -> FloatArray:
    """Counts of films per genre: most people near the common taste, some far from it."""
    closeness = rng.choice([4.0, 20.0, 80.0], size=people, p=[0.25, 0.45, 0.30])
    own = rng.gamma(closeness[:, None] * taste / taste.sum()) + 1e-9
    films = np.clip(np.exp(rng.normal(np.log(60), 0.8, size=people)), 12, 600).astype(int)
    counts = rng.multinomial(films, own / own.sum(axis=1, keepdims=True))
    return counts.astype(np.float64)


def demo_comparison(
    data: DemoData,
    epsilons: tuple[float, ...] = EPSILONS,
    *,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """Every sampler on every group at every epsilon, in total variation; `progress` hears every row."""
    rows: list[ComparisonRow] = []
    for group, prior in data.priors.items():
        for epsilon in epsilons:
            samplers = [make(prior, epsilon) for make in COMPARED.values()]
            rows += compare(data.users(group), samplers, TV, group=group, progress=progress).rows
    return Comparison(tuple(rows))


@dataclass(frozen=True, eq=False, repr=False)
class DemoRelease:
    """What the members released: by certified mechanisms per group, and once more to be estimated from."""

    mechanisms: dict[str, Mechanism]
    seconds: float
    group: str
    found: Estimate
    truth: FloatArray


def demo_release(data: DemoData) -> DemoRelease:
    """Every member releases one genre; the largest group once more, for the estimate, at its own ε."""
    mechanisms = {group: certify(fitted(q, 2.0)) for group, q in data.priors.items()}
    begin = time.perf_counter()
    for group, made in mechanisms.items():
        made.release_many(data.users(group))
    seconds = time.perf_counter() - begin
    largest = max(data.members, key=lambda group: len(data.members[group]))
    linear = certify(SAMPLERS["minimax_kernel"](data.priors[largest], 4.0))
    users = data.users(largest)
    found = estimate(linear, list(linear.release_many(users)))
    truth: FloatArray = np.asarray(users.mean(axis=0)).ravel()
    return DemoRelease(mechanisms, seconds, largest, found, truth)


def averages(table: Comparison) -> list[tuple[str, list[str], bool]]:
    """Per sampler: "mean/maximum" at every epsilon, averaged over groups, and whether q is kept."""
    lines = []
    for name in dict.fromkeys(row.sampler for row in table):
        mine = [row for row in table if row.sampler == name]
        cells = []
        for epsilon in dict.fromkeys(row.epsilon for row in mine):
            rows = [row for row in mine if row.epsilon == epsilon]
            mean, largest = np.mean([(row.mean, row.maximum) for row in rows], axis=0)
            cells.append(f"{mean:.3f}/{largest:.3f}")
        lines.append((name, cells, all(row.keeps_prior for row in mine)))
    return lines


def write_tables(data: DemoData, folder: Path) -> tuple[Path, Path]:
    """Write the survey and the histories as CSV files that `compare --by group` reads, and the genres."""
    prior_path, users_path = folder / "survey.csv", folder / "members.csv"
    surveyed = ["group,item,count"]
    for group, counts in data.survey.items():
        surveyed += [f"{group},{genre},{int(n)}" for genre, n in zip(GENRES, counts, strict=True)]
    histories = ["user,group,item,weight"]
    everyone = [(group, counts) for group, members in data.members.items() for counts in members]
    for member, (group, counts) in enumerate(everyone, start=1):
        who = f"member-{member:04d},{group}"
        histories += [f"{who},{GENRES[i]},{int(counts[i])}" for i in np.flatnonzero(counts)]
    write_whole("\n".join(surveyed) + "\n", prior_path)
    write_whole("\n".join(histories) + "\n", users_path)
    write_whole("\n".join(GENRES) + "\n", folder / "genres.txt")
    return prior_path, users_path
