"""Random rows of a table, for every library."""

from __future__ import annotations

from typing import Any

import numpy as np

HEAD = ["age", "who", "genre", "stars", "clicks"]


def table(seed: int = 0, rows: int = 400, zeros: bool = False) -> list[tuple[str, str, str, int, int]]:
    """Random rows (group, user, item, weight, score) with rare users, rare items and one small group."""
    rng = np.random.default_rng(seed)
    people = rng.zipf(1.6, rows) % 40
    return [
        (
            "tiny" if rng.random() < 0.02 else f"g{person % 3}",
            f"u{person:02d}",
            f"i{min(rng.geometric(0.25), 15):02d}",
            int(rng.integers(0 if zeros else 1, 6)),
            int(rng.integers(0, 3)),
        )
        for person in people.tolist()
    ]


def columns(rows: list[tuple[str, str, str, int, int]]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(HEAD)}
