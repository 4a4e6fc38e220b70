"""Vectors of nearest laws: mechanisms and streams with a geometry, and geometries that are refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from vector_draws import FOUR, WHOLE, N, box_of, built, public_at_cap, quarters, uneven

import sottovoce as sv
from sottovoce.core.arithmetic import exp_below
from sottovoce.core.constants import LENGTH_BITS
from sottovoce.geometry import Geometry
from sottovoce.release.mechanism import fraction_text
from sottovoce.samplers.stream import Stream

LETTERS = ["a1", "b2", "c3", "d4", "e5"]
FIVE = sv.Prior(LETTERS, [0.05, 0.3, 0.2, 0.35, 0.1])
FLAT = {"parents": [7, 5, 6, 5, 6, 7, 7, 8], "lengths": [3, 0, 2, 0, 0, 4, 0, 9]}
"""Five categories: edges of length 0 above categories and above others, and a root with one child."""
BITS = {"parents": [4, 4, 5, 5, 6, 6], "lengths": [1, 2, 1, 0, 3, 3]}
"""Four categories in two pairs."""
CHAIN = {"parents": [4, 4, 4, 4, *range(5, 9)], "lengths": [0] * 8}
"""Four categories, and as many nodes as there may be."""


def designs() -> Iterator[tuple[str, sv.Mechanism]]:
    """Lines and trees with equal places and edges of no length, from one category to forty."""
    line = sv.Line([4, 1, 2, 2])
    for epsilon in (0.001, 1.0, 30.0):
        yield f"nearest, a line, epsilon {epsilon}", sv.certify(sv.nearest(FOUR, epsilon, line))
    yield "nearest, one category", sv.certify(sv.nearest(sv.Prior(["only"], [1.0]), 1.0, sv.Line([7])))
    two = sv.Prior(["left", "right"], [0.3, 0.7])
    yield "nearest, two categories", sv.certify(sv.nearest(two, 2.0, sv.Line([1, 2])))
    yield "nearest, two in one place", sv.certify(sv.nearest(two, 2.0, sv.Line([1, 1])))
    even = sv.Prior.uniform(LETTERS)
    yield "nearest, many ties", sv.certify(sv.nearest(even, 1.0, sv.Line(range(5))))
    yield "nearest, all in one place", sv.certify(sv.nearest(FIVE, 1.0, sv.Line([3] * 5)))
    yield "nearest, a star", sv.certify(sv.nearest(FIVE, 3.0, Geometry((5,) * 5, (1,) * 5, 0.5)))
    yield (
        "nearest, edges of length 0",
        built(sv.certify(sv.nearest(FIVE, 2.0, sv.Line(range(5)))).document() | FLAT),
    )
    yield (
        "nearest, integer names",
        sv.certify(sv.nearest(uneven(WHOLE), 0.5, sv.Line([1, 9, 4, 4, 2, 8, 3, 4]))),
    )
    longest = {"parents": [4, 4, 4, 5, 5], "lengths": [1, 0, (1 << LENGTH_BITS) - 1, 1 << LENGTH_BITS, 1]}
    for name, plain in {
        "the prior is not kept": box_of(
            1, [N // 8, N // 8, N // 4, N // 8], [N // 16, N // 16, 3 * (N // 8), N // 2]
        ),
        "the public law at a cap": public_at_cap(),
        "halves and quarters": quarters(),
        "only the floor of one is high": box_of(9, [N // 2, 5, 7, N // 8], [N // 4] * 4),
    }.items():
        yield f"nearest, {name}", built({**plain, "kind": "nearest", **BITS})
    yield "nearest, the longest edges", built({**quarters(), "kind": "nearest", **longest})
    rng = random.Random("forty")
    names = list(range(40))
    places = [rng.randrange(25) for _ in names]
    yield "nearest, forty on a line", sv.certify(sv.nearest(uneven(names), 2.0, sv.Line(places)))
    levels = [[rng.randrange(k) for _ in names] for k in (12, 4)]
    tree = sv.Tree.from_levels(levels[0], levels[1], lengths=[1, 0, 3])
    yield "nearest, forty in a tree", sv.certify(sv.nearest(uneven(names), 1.0, tree))


def streams() -> Iterator[tuple[str, Stream]]:
    """Streams with a geometry."""
    names, q = ["rare", "some", "many", "most", "Ærøskøbing ✓"], [0.01, 0.09, 0.2, 0.3, 0.4]
    prior, line = sv.Prior(names, q), sv.Line([2, 1, 5, 2, 2])
    tree = sv.Tree.from_levels([1, 2, 1, 2, 3], [1, 1, 1, 2, 2], lengths=[0, 1, 2])
    yield "nearest stream, a line", sv.stream(prior, 2.0, geometry=line)
    yield "nearest stream, a tree", sv.stream(prior, 8.0, geometry=tree)
    yield "nearest stream, persistent", sv.stream(prior, 8.0, persistence=0.98, geometry=line)
    yield "nearest stream, one category", sv.stream(sv.Prior(["only"], [1.0]), 1.0, geometry=sv.Line([0]))
    yield "nearest stream, greedy", sv.stream(prior, 20.0, paced=False, geometry=tree)


def trees() -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of a tree over four categories by which it is none."""
    parents, lengths = BITS["parents"], BITS["lengths"]
    wrong: dict[str, dict[str, Any]] = {
        "parents no list": {"parents": dict.fromkeys("012345", 6)},
        "lengths no list": {"lengths": "012345"},
        "lengths null": {"lengths": None},
        "parents as text": {"parents": list(map(str, parents))},
        "lengths as text": {"lengths": list(map(str, lengths))},
        "length true": {"lengths": [True, *lengths[1:]]},
        "a negative length": {"lengths": [-1, *lengths[1:]]},
        "geometry: no node": {"parents": [], "lengths": []},
        "geometry: a parent too few": {"parents": [4, 4, 5, 5, 5], "lengths": lengths},
        "geometry: a length too few": {"lengths": lengths[:-1]},
        "geometry: a length too many": {"lengths": [*lengths, 0]},
        "geometry: fewer nodes than categories": {"parents": [3, 3, 3], "lengths": [1] * 3},
        "geometry: three categories": {"parents": [3, 3, 3, 4], "lengths": [1] * 4},
        "geometry: five categories": {"parents": [5] * 5, "lengths": [1] * 5},
        "geometry: more than 2n nodes": {"parents": [*CHAIN["parents"], 9], "lengths": [0] * 9},
        "geometry: a category is a parent": {"parents": [1, 4, 4, 4], "lengths": [1] * 4},
        "geometry: a category is a parent, and a node has no child": {"parents": [1, 4, 4, 4, 6, 6]},
        "geometry: a node without a child": {"parents": [4, 4, 4, 4, 6, 6]},
        "geometry: a parent before its child": {"parents": [5, 5, 6, 6, 6, 4]},
        "geometry: its own parent": {"parents": [4, 4, 5, 5, 6, 5]},
        "geometry: a circle": {"parents": [4, 4, 5, 5, 5, 4]},
        "geometry: a parent that is no node": {"parents": [4, 4, 5, 5, 6, 7]},
        "geometry: two roots": {"parents": [4, 4, 5, 5, 7, 6]},
        "geometry: an edge too long": {"lengths": [(1 << LENGTH_BITS) + 1, *[0] * 5]},
        "geometry: a path too long": {"lengths": [1, 0, 0, 0, 1 << LENGTH_BITS, 0]},
        "geometry: an edge of 2^53": {"lengths": [1 << 53, *[0] * 5]},
    }
    for name, changes in wrong.items():
        yield name, {**BITS, **changes}


def plain_nearest() -> dict[str, Any]:
    """A document of four categories."""
    return {**sv.certify(sv.nearest(FOUR, 1.0, sv.Line(range(4)))).document(), **BITS}


def plain_stream() -> dict[str, Any]:
    return {**sv.certify(sv.stream(FOUR, 4.0, geometry=sv.Line(range(4)))).document(), **BITS}


def narrow(power: int) -> dict[str, Any]:
    """Four categories in a box of ε = 2^-power: there are at most 2^20·(A − 1)."""
    floor = FOUR.probabilities * (1 - 2.0 ** -(power + 1))
    box = sv.certify(sv.ClipSampler("nearest", FOUR, 2.0**-power, floor))
    return {**box.document(), "kind": "nearest", **BITS}


def accepted() -> Iterator[tuple[str, dict[str, Any]]]:
    """Geometries at the edge of what is allowed."""
    nearest = plain_nearest()
    yield "nearest, as narrow as a box may be", narrow(18)
    yield "nearest, as many nodes as there may be", {**nearest, **CHAIN}
    yield "nearest, as long as a path may be", {**nearest, "lengths": [1, 0, 0, 0, (1 << LENGTH_BITS) - 1, 0]}


def refused() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, reason and document of what is refused, to be signed."""
    nearest = plain_nearest()
    for name, tree in trees():
        yield f"nearest, {name}", "value", {**nearest, **tree}
    one = sv.certify(sv.nearest(sv.Prior(["only"], [1.0]), 1.0, sv.Line([7]))).document()
    yield "nearest, geometry: one category and no node", "value", {**one, "parents": [], "lengths": []}
    yield "nearest, parents true", "value", {**one, "parents": [True], "lengths": [0]}
    yield "nearest, version 2", "format", {**nearest, "version": 2}
    yield "nearest, called a box", "fields", {**nearest, "kind": "box"}
    yield "box, called nearest", "fields", {**quarters(), "kind": "nearest"}
    for name in ("parents", "lengths", "low"):
        yield f"nearest without {name}", "fields", {key: one for key, one in nearest.items() if key != name}
    yield "nearest, too narrow a box", "certificate", narrow(19)
    ratio = fraction_text(exp_below(Fraction(1, 10**30)))
    tight = {"epsilon": f"1/{10**30}", "ratio": ratio, "low": nearest["prior"]}
    yield "nearest, ratio 1", "certificate", {**nearest, **tight}
    low = nearest["low"]
    yield "nearest, keeps_prior", "keeps_prior", {**nearest, "keeps_prior": False}
    yield "nearest, floors above N", "certificate", {**nearest, "low": [str(N - 9), *low[1:]]}
    yield "nearest, floor zero", "certificate", {**nearest, "low": ["0", *low[1:]]}
    small = [str(int(one) // 3) for one in low]
    yield "nearest, caps below N", "certificate", {**nearest, "low": small, "keeps_prior": False}


def refused_streams() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The same for streams."""
    stream = plain_stream()
    for name, tree in trees():
        yield f"nearest stream, {name}", "value", {**stream, **tree}
    yield "nearest stream, version 1", "format", {**stream, "version": 1}
    yield "nearest stream, called a stream", "fields", {**stream, "kind": "stream"}
    bare = {key: one for key, one in stream.items() if key not in BITS}
    yield "nearest stream without a geometry", "fields", bare
    yield "nearest stream, start 0", "certificate", {**stream, "start": "0"}
