"""A tree of categories in integers: which are near each other, as a mechanism file holds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import ParameterError
from .arrays import IntegerArray
from .constants import LENGTH_BITS


@dataclass(frozen=True, repr=False)
class IntegerTree:
    """A tree with the categories as its first nodes, its root last, and every parent behind its children.

    `parents` and `lengths` have an entry for every node but the root.
    """

    parents: tuple[int, ...]
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        parents, lengths, nodes = self.parents, self.lengths, len(self.parents) + 1
        if len(lengths) != nodes - 1 or not {type(one) for one in (*parents, *lengths)} <= {int}:
            raise ParameterError("a geometry needs an integer parent and length for every node but the root")
        inner = set(range(min(parents, default=0), max(nodes, 2)))
        if any(not v < parent < nodes for v, parent in enumerate(parents)) or set(parents) != inner:
            raise ParameterError(
                "the parents of a geometry are not those of a tree with its categories first"
            )
        far = [0] * nodes
        for v in range(nodes - 2, -1, -1):
            far[v] = far[parents[v]] + lengths[v]
        if min(lengths, default=0) < 0 or max(far) > 1 << LENGTH_BITS:
            raise ParameterError(f"the lengths of a geometry must be from 0 to 2^{LENGTH_BITS} in all")

    def __len__(self) -> int:
        """How many categories there are: the nodes that are nobody's parent."""
        return min(self.parents)

    @cached_property
    def leaves(self) -> tuple[tuple[int, ...], ...]:
        """The categories that hang from each other node."""
        n = len(self)
        out: list[list[int]] = [[] for _ in range(n, len(self.parents) + 1)]
        for i, parent in enumerate(self.parents[:n]):
            out[parent - n].append(i)
        return tuple(map(tuple, out))

    @cached_property
    def work(self) -> int:
        """The categories below each node, added up over the nodes."""
        first, last = self._order[1]
        return int((last - first).sum()) + len(self)

    @cached_property
    def _order(self) -> tuple[IntegerArray, tuple[IntegerArray, IntegerArray]]:
        """An order in which the categories below any node stand together, and where those of each node do."""
        nodes, n = len(self.parents) + 1, len(self)
        size = np.array([1] * n + [0] * (nodes - n))
        for v, parent in enumerate(self.parents):
            size[parent] += size[v]
        first = np.zeros(nodes, dtype=np.intp)
        begun = first.copy()  # how many of the categories below a node have been placed
        for v in range(nodes - 2, -1, -1):
            parent = self.parents[v]
            first[v] = first[parent] + size[parent] - begun[parent] - size[v]
            begun[parent] += size[v]
        order = np.empty(n, dtype=np.intp)
        order[first[:n]] = np.arange(n)
        return order, (first[:-1], (first + size)[:-1])

    def plain(self) -> dict[str, list[int]]:
        """The integers, as a mechanism file holds them."""
        return {"parents": list(self.parents), "lengths": list(self.lengths)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} categories>"
