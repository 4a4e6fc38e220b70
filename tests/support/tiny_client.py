"""A client written from tests/vectors/README.md alone, sharing no code with the library.

It is what somebody would write in another language: read the file, check the digest, release. If it
reproduces every golden vector, the document is complete.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import Any

N = 2**62


def read(text: str) -> dict[str, Any]:
    """Parse a mechanism file and check its digest."""
    document: dict[str, Any] = json.loads(text)
    digest = document.pop("digest")
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    if hashlib.sha256(canonical.encode()).hexdigest() != digest:
        raise ValueError("the file was changed")
    return document


def words(data: bytes) -> list[int]:
    """Random bytes to whole numbers below 2^62."""
    return [int.from_bytes(data[i : i + 8], "little") // 4 for i in range(0, len(data), 8)]


def release(document: dict[str, Any], records: list[Any], data: bytes) -> Any:
    """The released category."""
    counts = {i: records.count(c) for i, c in enumerate(document["categories"]) if c in records}
    u = words(data)
    draw = {"box": box, "kernel": kernel, "response": response}[document["kind"]]
    return document["categories"][draw(document, counts, u)]


def law(document: dict[str, Any], counts: dict[int, int]) -> list[int]:
    """The weights of a box mechanism, out of 2^62."""
    low = [int(v) for v in document["low"]]
    prior = [int(v) for v in document["prior"]]
    ratio = Fraction(document["ratio"])
    high = [min(int(ratio * v), N) for v in low]
    mine = sorted(counts)
    others = [i for i in range(len(low)) if i not in counts]
    target = N - sum(low[i] for i in others)
    weights = list(low)
    if sum(high[i] for i in mine) >= target:
        fill(weights, mine, [counts[i] for i in mine], low, high, target)
    else:
        for i in mine:
            weights[i] = high[i]
        left = N - sum(high[i] for i in mine)
        fill(weights, others, [prior[i] for i in others], low, high, left)
    return weights


def fill(
    weights: list[int], places: list[int], k: list[int], low: list[int], high: list[int], target: int
) -> None:
    """clip(m·k; low, high) with total `target`: try every segment between the knots, obviously."""
    knots = sorted({Fraction(bound[i], w) for i, w in zip(places, k, strict=True) for bound in (low, high)})

    def total(m: Fraction) -> Fraction:
        return sum(
            (min(max(m * w, Fraction(low[i])), Fraction(high[i])) for i, w in zip(places, k, strict=True)),
            Fraction(0),
        )

    m = next(knot for knot in knots if total(knot) >= target)
    before = [knot for knot in knots if knot < m]
    if before and total(m) > target:
        a, b = before[-1], m
        m = a + (b - a) * (target - total(a)) / (total(b) - total(a))
    exact = [min(max(m * w, Fraction(low[i])), Fraction(high[i])) for i, w in zip(places, k, strict=True)]
    spare = target - sum(int(x) for x in exact)
    for i, x in zip(places, exact, strict=True):
        weights[i] = int(x)
        if x != int(x) and spare > 0:
            weights[i] += 1
            spare -= 1


def box(document: dict[str, Any], counts: dict[int, int], u: list[int]) -> int:
    """Walk through the weights in the order of the categories."""
    return bisect_right(list(accumulate(law(document, counts))), u[0])


def record(counts: dict[int, int], u: int) -> int:
    """One of the user's records, by position."""
    number = u * sum(counts.values()) // N
    for place in sorted(counts):
        number -= counts[place]
        if number < 0:
            return place
    raise AssertionError


def kernel(document: dict[str, Any], counts: dict[int, int], u: list[int]) -> int:
    """Lower ranks, the category itself, or the tail."""
    order = document["order"]
    prior, low, own = ([int(v) for v in document[name]] for name in ("prior", "low", "own"))
    rank = order.index(record(counts, u[0]))
    for j in range(rank):
        if u[1] < sum(low[: j + 1]):
            return int(order[j])
    if u[1] < sum(low[:rank]) + own[rank]:
        return int(order[rank])
    behind = sum(prior[: rank + 1])
    at = behind + u[2] * (N - behind) // N
    return int(order[bisect_right(list(accumulate(prior)), at)])


def response(document: dict[str, Any], counts: dict[int, int], u: list[int]) -> int:
    """The record, or another kept category."""
    kept, own, other = document["kept"], int(document["own"]), int(document["other"])
    place = record(counts, u[0])
    if place not in kept:
        return int(kept[u[1] * len(kept) // N])
    if u[1] < own:
        return place
    rest = [member for member in kept if member != place]
    return int(rest[(u[1] - own) // other])
