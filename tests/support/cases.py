"""Named awkward cases that every sampler and divergence has to survive."""

from __future__ import annotations

import numpy as np

import sottovoce as sv


def _normal(weights: object) -> np.ndarray:
    w = np.asarray(weights, dtype=float)
    law: np.ndarray = w / w.sum()
    return law


_rng = np.random.default_rng(7)

PRIORS: dict[str, np.ndarray] = {
    "one category": np.array([1.0]),
    "two categories": np.array([0.3, 0.7]),
    "two, unsorted": np.array([0.99, 0.01]),
    "uniform": np.full(6, 1 / 6),
    "ties": _normal([3, 1, 3, 1, 1, 2]),
    "one dominant": _normal([1e-3, 1e-3, 1, 1e-3]),
    "smallest 1e-12": _normal([0.4, 1e-12, 0.35, 0.25]),
    "smallest 1e-90": _normal([1e-90, 0.5, 1e-30, 0.5]),
    "unsorted": np.array([0.5, 0.3, 0.2]),
    "random 25": _rng.dirichlet(np.ones(25)),
    "zipf 40": _normal(1 / np.arange(1, 41) ** 1.2),
}
EPSILONS = (1e-9, 1e-3, 0.5, 2.0, 8.0, 30.0, 100.0)
DIVERGENCES = (*sv.DIVERGENCES.values(), sv.hockey_stick(2.0), sv.alpha(0.5), sv.alpha(3.0))


def users(q: np.ndarray) -> dict[str, np.ndarray]:
    """The awkward users for one prior."""
    n = len(q)
    rng = np.random.default_rng(n)
    out = {
        "equal to the prior": q.copy(),
        "rarest only": np.eye(n)[q.argmin()],
        "likeliest only": np.eye(n)[q.argmax()],
        "uniform": np.full(n, 1 / n),
        "random": rng.dirichlet(np.ones(n)),
    }
    if n > 2:
        half = np.where(np.arange(n) % 2, 0.0, rng.random(n) + 0.1)
        out["half zeros"] = half / half.sum()
        tiny = q.copy()
        tiny[q.argmax()] = 1e-30
        out["almost lacking the likeliest"] = tiny / tiny.sum()
    return out


def prior(q: np.ndarray) -> sv.Prior:
    """A prior with category names that do not follow the order of q."""
    return sv.Prior([f"c{(7 * i) % len(q)}-{i}" for i in range(len(q))], q)
