"""Which categories are near each other: positions on a line, or a tree; and how far apart two laws are then.

A geometry is a tree whose leaves are the categories and whose edges have lengths; the distance of two
categories is the length of the path between them. A line is the tree in which every position hangs directly
from a path. The earth mover's distance of two laws p and x is then a sum over the edges,

    W1(p, x) = Σ_v length_v·|p(v) − x(v)|,    p(v) the mass of the categories below the edge v.

Lengths are integers in a `unit`, at most 2^30 from any category to the root, so that a law can be found
exactly. They are public, as the categories are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from . import checks
from .checks import FloatArray
from .core.constants import LENGTH_BITS
from .core.tree import IntegerTree
from .errors import ParameterError

EARTH = 6371.0088  # the mean radius of the earth in kilometres
DEEPEST = 24  # a map is halved in both directions at most so often
SOURCES = 64  # places whose distances to all others calibrate a map


@dataclass(frozen=True, repr=False)
class Geometry(IntegerTree):
    """A tree with the categories as its first nodes, its root last, and every parent behind its children.

    `parents` and `lengths` have an entry for every node but the root. Make one with `Line`,
    `Tree.from_levels` or `Tree.from_points`; any other tree is `Geometry(parents, lengths)`.
    """

    unit: float = 1.0

    def between(self, p: npt.ArrayLike, x: npt.ArrayLike) -> FloatArray:
        """W1(p, x) along the last axis, in the caller's units."""
        moved = np.atleast_1d(np.asarray(p, dtype=np.float64) - np.asarray(x, dtype=np.float64))
        if moved.shape[-1] != len(self):
            raise ParameterError(f"laws over {len(self)} categories are needed, got {moved.shape[-1]}")
        order, (first, last) = self._order
        sums = np.zeros((*moved.shape[:-1], len(self) + 1))
        np.cumsum(moved[..., order], axis=-1, out=sums[..., 1:])
        lengths = np.array(self.lengths, dtype=np.float64) * self.unit
        return np.asarray(np.abs(sums[..., last] - sums[..., first]) @ lengths)

    def distances(self, category: int) -> FloatArray:
        """The distance of every category from one, in the caller's units."""
        far = [-1] * (len(self.parents) + 1)
        far[category], v = 0, category
        while v < len(self.parents):  # up to the root, and then down on all other ways
            far[self.parents[v]], v = far[v] + self.lengths[v], self.parents[v]
        for v in range(len(self.parents) - 1, -1, -1):
            if far[v] < 0:
                far[v] = far[self.parents[v]] + self.lengths[v]
        return np.array(far[: len(self)], dtype=np.float64) * self.unit


class Line(Geometry):
    """Categories at positions on a line: years, prices, star ratings, hours.

    The distance of two categories is the difference of their positions. They need not be sorted; several may
    share a position.

    >>> float(Line([1990, 1994, 1995]).between([1, 0, 0], [0, 0.5, 0.5]))
    4.5
    """

    def __init__(self, positions: Iterable[float]) -> None:
        places = _numbers("positions", positions)
        n = len(places)
        order = sorted(range(n), key=places.__getitem__)
        parents = [0] * n + list(range(n + 1, 2 * n))
        for rank, i in enumerate(order):
            parents[i] = n + rank
        first = places[order[0]]
        power = _power(places[order[-1]] - first)
        units = [round(math.ldexp(place - first, power)) for place in places]  # of positions: no drift
        if len(set(units)) < len(set(places)):
            raise ParameterError("positions must not differ by less than 2^-29 of the length of the line")
        steps = [units[b] - units[a] for a, b in pairwise(order)]
        super().__init__(*_in_units(parents, [0] * n + steps, power))


class Tree(Geometry):
    """Categories as the leaves of a tree: codes within chapters, genres within shelves, cells of a map."""

    @classmethod
    def from_levels(cls, *levels: Sequence[object], lengths: Sequence[float] | None = None) -> Tree:
        """A tree from columns: the chapter of every category, then the part of the chapter, and so on.

        `lengths` are those of the edges above a category, above a chapter, …; by default 1/2 each.

        >>> Tree.from_levels(["fruit", "fruit", "bread"]).distances(0).tolist()
        [0.0, 1.0, 2.0]
        """
        sizes = {len(level) for level in levels}
        if len(sizes) != 1 or not min(sizes):
            raise ParameterError("levels must hold one name per category each")
        n, edges = sizes.pop(), [0.5] * (len(levels) + 1) if lengths is None else _numbers("lengths", lengths)
        if len(edges) != len(levels) + 1 or min(edges) < 0:
            raise ParameterError(
                f"lengths must be {len(levels) + 1} numbers ≥ 0: above a category, then each level"
            )
        parents: list[int] = []
        long: list[float] = []
        below: list[tuple[object, ...]] = [(i,) for i in range(n)]
        for depth, edge in enumerate(edges):
            above = [tuple(level[i] for level in levels[depth:]) for i in range(n)]
            names = dict(zip(below, above, strict=True))
            start = len(parents) + len(names)
            index = {name: start + k for k, name in enumerate(dict.fromkeys(names.values()))}
            parents += [index[name] for name in names.values()]
            long += [edge] * len(names)
            below = above
        parents, long = _ordered(parents, long, n)
        far = [0.0] * (len(parents) + 1)
        for v in range(len(parents) - 1, -1, -1):
            far[v] = far[parents[v]] + long[v]
        power = _power(max(far))
        return cls(*_in_units(parents, [round(math.ldexp(length, power)) for length in long], power))

    @classmethod
    def from_points(cls, latitudes: Iterable[float], longitudes: Iterable[float]) -> Tree:
        """Places on a map, one for each category, as a quadtree; distances are in kilometres.

        The square around all places is cut into four, and again, until every place is alone. The edge above a
        square is as long as its side, times a factor for all that makes the distances of pairs right on
        average over these places. Two places on both sides of a cut are further apart in the tree than on
        the map.

        Raises
            ParameterError: degrees out of range, or not as many latitudes as longitudes.
        """
        north, east = _numbers("latitudes", latitudes), _numbers("longitudes", longitudes)
        if len(north) != len(east) or max(map(abs, north)) > 90 or max(map(abs, east)) > 360:
            raise ParameterError("latitudes and longitudes must be degrees, one of each for every category")
        flat = _flat(np.array(north), np.array(east))
        side = max(float(np.ptp(flat, axis=0).max()), 1e-9)
        cells = np.minimum((flat - flat.min(axis=0)) / side * 2.0**DEEPEST, 2.0**DEEPEST - 1).astype(np.int64)
        levels = [list(map(tuple, (cells >> depth).tolist())) for depth in range(DEEPEST)]
        lengths = [side * 2.0 ** (depth - 1 - DEEPEST) for depth in range(DEEPEST + 1)]
        made = cls.from_levels(*levels, lengths=lengths)
        factor = _calibration(made, np.deg2rad(north), np.deg2rad(east))
        return replace(made, unit=made.unit * factor)


@dataclass(frozen=True)
class Wasserstein:
    """The earth mover's distance W1 of a geometry: how far the mass of one law is from that of another.

    Make one with `wasserstein`; `compare`, `choose`, `limit` and every sampler take it as a divergence.
    """

    geometry: Geometry
    name: str = "w1"

    def __call__(self, p: npt.ArrayLike, x: npt.ArrayLike) -> FloatArray:
        """W1(p, x) along the last axis."""
        return self.geometry.between(p, x)


def wasserstein(geometry: Geometry) -> Wasserstein:
    """The distance that a geometry gives: years apart, kilometres apart.

    >>> float(wasserstein(Line([0, 1, 5]))([0, 0, 1], [0.5, 0, 0.5]))
    2.5
    """
    return Wasserstein(checked_geometry(geometry))


def checked_geometry(geometry: Geometry, categories: int | None = None) -> Geometry:
    """Refuse what is no geometry, or one of another number of categories."""
    if not isinstance(geometry, Geometry):
        kind = type(geometry).__name__
        raise ParameterError(f"geometry must be a Line or a Tree, such as Line(positions), got {kind}")
    if categories is not None and len(geometry) != categories:
        sizes = f"it has {len(geometry)}, the prior {categories}"
        raise ParameterError(f"geometry must have a place for every category: {sizes}")
    return geometry


def _numbers(name: str, values: Iterable[float]) -> list[float]:
    """Finite numbers, at least one."""
    try:
        listed = [values] if isinstance(values, str | bytes) else list(values)
        numbers = [checks.real(**{name: value}) for value in listed]
    except (ParameterError, TypeError):
        raise ParameterError(f"{name} must be finite numbers, in a list") from None
    if not numbers:
        raise ParameterError(f"{name} must not be empty")
    return numbers


def _power(span: float) -> int:
    """Lengths of at most `span` in all become integers in units of 2^-power: as fine as 2^30 allows."""
    if not math.isfinite(span):
        raise ParameterError("positions and lengths must not add up to more than a double can hold")
    return LENGTH_BITS - 1 - math.frexp(span)[1] if span > 0 else 0


def _in_units(
    parents: list[int], units: list[int], power: int
) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """The fields of a geometry: the lengths without a common factor."""
    common = math.gcd(*units) or 1
    return tuple(parents), tuple(unit // common for unit in units), math.ldexp(common, -power)


def _ordered(parents: list[int], lengths: list[float], leaves: int) -> tuple[list[int], list[float]]:
    """Nodes renumbered so that parents come behind their children; nodes with one child are left out."""
    root = len(parents)
    children: dict[int, list[int]] = {}
    for v, parent in enumerate(parents):
        children.setdefault(parent, []).append(v)
    seen, stack = [], [root]
    while stack:
        v = stack.pop()
        seen.append(v)
        stack += children.get(v, [])
    kept = [v for v in reversed(seen) if v == root or len(children.get(v, [])) > 1]
    place = {v: leaves + k for k, v in enumerate(kept)} | {v: v for v in range(leaves)}
    above, edges = [0] * (len(place) - 1), [0.0] * (len(place) - 1)
    for v, k in place.items():
        if v == root:
            continue
        parent, length = parents[v], lengths[v]
        while parent not in place:
            length += lengths[parent]
            parent = parents[parent]
        above[k], edges[k] = place[parent], length
    return above, edges


def _flat(north: FloatArray, east: FloatArray) -> FloatArray:
    """Degrees as kilometres around the middle of the places, also across the date line."""
    middle = float(np.rad2deg(np.arctan2(*(f(np.deg2rad(east)).mean() for f in (np.sin, np.cos)))))
    east = (east - middle + 180) % 360 - 180
    scale = math.cos(math.radians(float(north.mean())))
    return np.stack([np.deg2rad(east) * scale, np.deg2rad(north)], axis=1) * EARTH


def _calibration(tree: Geometry, north: FloatArray, east: FloatArray) -> float:
    """The mean distance of places on the globe by that in the tree, from some of the places to all."""
    true = found = 0.0
    for i in np.random.default_rng(0).permutation(len(north))[:SOURCES].tolist():
        half = np.sin((north - north[i]) / 2) ** 2
        half += np.cos(north) * np.cos(north[i]) * np.sin((east - east[i]) / 2) ** 2
        true += float(2 * EARTH * np.arcsin(np.sqrt(np.clip(half, 0, 1))).sum())
        found += float(tree.distances(i).sum())
    return true / found if found > 0 and true > 0 else 1.0
