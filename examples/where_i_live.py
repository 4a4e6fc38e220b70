"""About where I live, every night for two months, for one epsilon: a stream on a map.

python examples/where_i_live.py
"""

from __future__ import annotations

import numpy as np

import sottovoce as sv

# %% The public side: cells of 2 km around an invented town, and how many people live in each.
latitude, longitude = (grid.ravel() for grid in np.mgrid[45.0:45.18:0.018, 9.0:9.25:0.025])
people = 50 + 4000 * np.exp(-((latitude - 45.09) ** 2 + (longitude - 9.12) ** 2) / 0.002)
prior = sv.Prior.from_counts({cell: int(count) for cell, count in enumerate(people)})
town = sv.Tree.from_points(latitude, longitude)  # near is better than far

# %% One epsilon for all nights; most of the public law of a night lies on what was published last.
mechanism = sv.certify(sv.stream(prior, 16.0, persistence=0.99, geometry=town))


def kilometres(a: int, b: int) -> float:
    """How far apart two cells are on the map."""
    north, east = latitude[a] - latitude[b], (longitude[a] - longitude[b]) * np.cos(np.radians(45.09))
    return float(np.hypot(north, east) * 111.195)


# %% The device: it keeps its state, publishes one cell a night, and its owner moves once.
state, published = mechanism.start(), []
for night in range(60):
    home = 36 if night < 30 else 72
    cell, state = mechanism.release(records=[home], state=state)
    published.append(kilometres(cell, home))

# %% What was published
print("kilometres from home, night by night:")
print("  before the move:", *(f"{far:.0f}" for far in published[:30]))
print("  after the move: ", *(f"{far:.0f}" for far in published[30:]))
print(
    f"{len(published)} nights, one epsilon of {mechanism.epsilon}; thirty nights tell hardly more than one."
)
