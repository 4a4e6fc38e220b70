"""Which sampler for which users: four invented situations, every sampler, measured.

The situations differ in one thing that decides: how far users are from the public data. They are
generated with fixed seeds, so the table of docs/choosing.md can be printed again at any time.
"""

from __future__ import annotations

import numpy as np

import sottovoce as sv
from sottovoce.demo import demo_data
from sottovoce.planning.choose import ROUNDING, people

SITUATIONS = {
    "near": ("18 genres, ε = 3; 500 records each, users close to the public data", 18, 3.0, 500, 60.0),
    "mixed": ("18 genres, ε = 3; 50 records each, users of their own taste", 18, 3.0, 50, 8.0),
    "far": ("18 genres, ε = 3; 3 records each, most categories missing", 18, 3.0, 3, 2.0),
    "large": ("2,000 sites, ε = 8; 20 records each", 2000, 8.0, 20, 20.0),
}
USERS = 2000
PROMISED = 'fitted(promise="best")'
"""`fitted` with the best promise, as it is called."""


def promised(prior: sv.Prior, epsilon: float) -> sv.Sampler:
    """`fitted` with the best promise."""
    return sv.fitted(prior, epsilon, promise="best")


MAKERS = {"fitted": sv.fitted, PROMISED: promised, **sv.SAMPLERS}
FRONTIER_GROUP, FRONTIER_EPSILON = "45 and over", 4.0


def measure() -> dict[str, sv.Comparison]:
    """Total variation of every sampler in every situation."""
    out = {}
    for seed, (key, (_, n, epsilon, records, closeness)) in enumerate(SITUATIONS.items()):
        weights = 1 / np.arange(1, n + 1) ** 0.8
        prior = sv.Prior(range(n), weights / weights.sum())
        users = _simulated(prior, records, closeness, np.random.default_rng(seed))
        samplers = [make(prior, epsilon) for make in MAKERS.values()]
        out[key] = sv.compare(users, samplers, sv.TV, group=key)
    return out


def _simulated(prior: sv.Prior, records: int, closeness: float, rng: np.random.Generator) -> np.ndarray:
    """Users around the prior: p ~ Dirichlet(closeness·q), seen through some records."""
    taste = rng.gamma(closeness * prior.probabilities, size=(USERS, len(prior)))
    taste = np.maximum(taste, np.finfo(np.float64).tiny)
    taste /= taste.sum(axis=1, keepdims=True)
    return np.asarray(rng.multinomial(records, taste) / records)


def table() -> str:
    """Mean, 99th percentile and maximum TV as Markdown, the best that keeps the prior in bold."""
    measured = measure()
    head = ["sampler", *(f"{key}: mean/p99/max" for key in measured), "keeps q"]
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * len(measured)}|:---:|"]
    for i, name in enumerate(MAKERS):
        cells = []
        for comparison in measured.values():
            row = comparison.rows[i]
            keeping = [other for other in comparison if other.keeps_prior]
            values = []
            for statistic in ("mean", "p99", "maximum"):
                value = f"{getattr(row, statistic):.3f}"
                best = f"{min(getattr(other, statistic) for other in keeping):.3f}"
                values.append(f"**{value}**" if row.keeps_prior and value == best else value)
            cells.append("/".join(values))
        keeps = "yes" if all(c.rows[i].keeps_prior for c in measured.values()) else "no"
        lines.append(f"| `{name}` | {' | '.join(cells)} | {keeps} |")
    notes = "\n".join(f"- **{key}**: {words}" for key, (words, *_) in SITUATIONS.items())
    return f"{notes}\n\n" + "\n".join(lines)


def frontier(prior: sv.Prior, steps: int = 6) -> list[tuple[float, float, float, float, float]]:
    """The largest distance of any possible user, mean, 99th percentile, maximum and the limit of the mean.

    A row for each promise of `fitted`, from its own worst case to the best one, on the users of `choose`.
    """
    users, _ = people(prior, None)
    most = sv.fitted(prior, FRONTIER_EPSILON).worst_case(sv.TV)
    least = sv.prior_minimax(prior, FRONTIER_EPSILON).worst_case(sv.TV)
    rows = []
    for above in np.linspace(most, least, steps).tolist():
        promise: float | str = "best" if above == least else max(0.0, 1 - above + ROUNDING)
        sampler = sv.fitted(prior, FRONTIER_EPSILON, promise=None if above == most else promise)
        (row,) = sv.compare(users, sampler)
        bound = sv.limit(prior, FRONTIER_EPSILON, users, tail=0, promise=promise).lower_bound
        rows.append((sampler.worst_case(sv.TV), row.mean, row.p99, row.maximum, bound))
    return rows


def frontier_table() -> str:
    """What a promise costs in one group of the invented club, as Markdown."""
    head = ("nobody above", "mean", "99th percentile", "maximum", "limit of the mean")
    rows = frontier(demo_data().priors[FRONTIER_GROUP])
    lines = [f"|{'|'.join(head)}|", "|" + "---:|" * len(head)]
    return "\n".join(lines + [f"|{'|'.join(f'{cell:.4f}' for cell in row)}|" for row in rows])
