"""The kind "joint" (version 2) of a mechanism file, written from docs/format.md alone.

It shares no code with the library; it takes what is common to all kinds from `tiny_client`, and it is slow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement, product
from typing import Any

from tiny_client import (
    COMMON,
    Counts,
    Document,
    N,
    check_categories,
    digest_of,
    fraction,
    integers,
    is_digest,
    is_label,
    need,
    ratio_of,
)
from tiny_draws import interval

MOST_CLASSES = 32_768
FIELDS = COMMON | {"prior", "low", "samples"}
Positions = tuple[int, ...]


@dataclass(frozen=True)
class Joint:
    """What drawing needs of a file: the floors, the ratio up/down, and the samples of one release."""

    low: list[int]
    prior: list[int]
    up: int
    down: int
    k: int


@dataclass(frozen=True)
class Group:
    """Positions that are treated alike, ascending; the weight is 0 for those that the user does not have."""

    positions: Positions
    weight: int
    floor: int
    least: int


@dataclass(frozen=True)
class Class:
    """A multiset of k groups, by their numbers, and its bounds in units out of N^k."""

    groups: Positions
    orders: int
    floor: int
    cap: int
    weight: int


# --- checking a file -----------------------------------------------------------------------------


def check_joint(document: Any) -> None:
    """Every field, the digest, the ratio, the certificate and the claim about the prior."""
    check_head(document)
    check_values(document)
    n = check_categories(document["categories"])
    a, b = fraction(document["epsilon"])
    need(0 < a <= 100 * b, "value")
    stated = fraction(document["ratio"])
    for name in ("prior", "low"):
        need(isinstance(document[name], list) and len(document[name]) == n, "value")
    numbers = integers(document)
    need(document["digest"] == digest_of(document), "digest")
    need(stated == ratio_of(a, b), "ratio")
    need(min(numbers["prior"]) >= 1 and sum(numbers["prior"]) == N, "certificate")
    need(document["keeps_prior"] is certify_joint(document, numbers, *stated), "keeps_prior")


def check_head(document: Any) -> None:
    """The fields that say what the file is, and that there is none too many or too few."""
    need(isinstance(document, dict) and document.get("format") == "sottovoce-mechanism", "format")
    need(type(document.get("version")) is int and document["version"] == 2, "format")
    need(type(document.get("bits")) is int and document["bits"] == 62, "format")
    need(document.get("kind") == "joint", "format")
    need(set(document) - {"provenance"} == FIELDS, "fields")


def check_values(document: Document) -> None:
    """The types of the fields that are no weights."""
    options, samples = document["options"], document["samples"]
    need(document.get("provenance", "users") in ("learned", "users"), "value")
    need(is_label(document["sampler"]) and isinstance(options, dict), "value")
    need(all(is_label(text) for member in options.items() for text in member), "value")
    need(type(document["keeps_prior"]) is bool and is_digest(document["prior_digest"]), "value")
    need(is_digest(document["digest"]), "value")
    need(type(samples) is int and 2 <= samples <= 16, "value")


def certify_joint(document: Document, numbers: dict[str, Any], up: int, down: int) -> bool:
    """Refuse a joint box without its certificate; return whether it keeps the prior."""
    k, low, prior = document["samples"], numbers["low"], numbers["prior"]
    need(up >= down, "certificate")
    total, least = sum(low), min(low)
    need(least >= 1 and total <= N, "certificate")
    classes = math.comb(min(len(low), most_groups(k)) + k, k)
    left = (up * total**k - down * (N**k + classes)) * least**k
    need(left >= down * total**k, "certificate")
    if len(low) > most_groups(k):
        need(sum(separate_caps(Joint(low, prior, up, down, k))) >= N, "certificate")
    return fits(prior, low, up, down, k)


def most_groups(k: int) -> int:
    """M: the largest whole number with C(M + k, k) at most 32,768."""
    found = 0
    while math.comb(found + 1 + k, k) <= MOST_CLASSES:
        found += 1
    return found


def fits(weights: list[int], low: list[int], up: int, down: int, k: int) -> bool:
    """Whether k independent draws from the weights stay between the floors and A times the floors."""
    return all(a <= x and down * x**k <= up * a**k for x, a in zip(weights, low, strict=True))


# --- helpers of the law --------------------------------------------------------------------------


def joint_of(document: Document) -> Joint:
    """The numbers of a file that was checked."""
    up, down = fraction(document["ratio"])
    numbers = integers(document)
    return Joint(numbers["low"], numbers["prior"], up, down, document["samples"])


def rounded(x: list[Fraction], total: int) -> list[int]:
    """Whole parts; the units missing to the total go one each to the first values that are not whole."""
    units = [math.floor(value) for value in x]
    missing = total - sum(units)
    for i, value in enumerate(x):
        if missing > 0 and value.denominator > 1:
            units[i] += 1
            missing -= 1
    return units


def level(c: list[int], low: list[int], high: list[int], target: int) -> list[Fraction]:
    """min(max(m·c, low), high) with the m for which the sum is the target, in the way of the page."""
    x = [Fraction(0)] * len(c)
    rest, t = list(range(len(c))), target
    while rest:
        size = sum(c[j] for j in rest)
        floored = [j for j in rest if t * c[j] <= low[j] * size]
        capped = [j for j in rest if t * c[j] > low[j] * size and t * c[j] >= high[j] * size]
        d = sum(low[j] * size - t * c[j] for j in floored) - sum(t * c[j] - high[j] * size for j in capped)
        leaving = {j: low[j] for j in floored if d >= 0} | {j: high[j] for j in capped if d <= 0}
        for j, value in leaving.items():
            x[j] = Fraction(value)
        t -= sum(leaving.values())
        rest = [j for j in rest if j not in leaving]
        if d == 0:
            size = sum(c[j] for j in rest)
            for j in rest:
                x[j] = Fraction(t * c[j], size)
            return x
    return x


def own_law(joint: Joint, counts: Counts) -> list[int] | None:
    """The user's own distribution out of N, if the user has every category and it fits the floors."""
    if len(counts) < len(joint.low):
        return None
    size = sum(counts.values())
    own = rounded([Fraction(N * counts[i], size) for i in range(len(joint.low))], N)
    return own if fits(own, joint.low, joint.up, joint.down, joint.k) else None


# --- groups --------------------------------------------------------------------------------------


def separate_law(joint: Joint, counts: Counts) -> list[int] | None:
    """The law of one sample out of N, for a user with too many categories: a box with the root of A."""
    if len(counts) <= most_groups(joint.k):
        return None
    high = separate_caps(joint)
    mine, others = sorted(counts), [i for i in range(len(joint.low)) if i not in counts]
    low, x = joint.low, [Fraction(one) for one in joint.low]
    target = N - sum(low[i] for i in others)
    if sum(high[i] for i in mine) >= target:
        which, weights = mine, [counts[i] for i in mine]
    else:
        for i in mine:
            x[i] = Fraction(high[i])
        which, weights, target = others, [joint.prior[i] for i in others], N - sum(high[i] for i in mine)
    found = level(weights, [low[i] for i in which], [high[i] for i in which], target)
    for i, value in zip(which, found, strict=True):
        x[i] = value
    return rounded(x, N)


def separate_caps(joint: Joint) -> list[int]:
    """The caps of one sample."""
    a = root_down(2 ** (64 * joint.k) * joint.up // joint.down, joint.k)
    return [min(a * floor // 2**64, N) for floor in joint.low]


def groups_of(joint: Joint, counts: Counts) -> list[Group]:
    """The groups of a user, in the order of their numbers."""
    low = joint.low
    groups = [Group((i,), counts[i], low[i], low[i]) for i in sorted(counts)]
    others = tuple(i for i in range(len(low)) if i not in counts)
    if others:
        groups.append(Group(others, 0, sum(low[i] for i in others), min(low)))
    return groups


# --- classes and their law -----------------------------------------------------------------------


def classes_of(joint: Joint, groups: list[Group]) -> list[Class]:
    """All classes in their order."""
    numbers = combinations_with_replacement(range(len(groups)), joint.k)
    return [class_of(joint, groups, chosen) for chosen in numbers]


def class_of(joint: Joint, groups: list[Group], chosen: Positions) -> Class:
    """One class with its bounds."""
    o = orders(Counter(chosen))
    floor = o * math.prod(groups[g].floor for g in chosen)
    least = math.prod(groups[g].least for g in chosen)
    weight = o * math.prod(groups[g].weight for g in chosen)
    if floor == o * least:
        cap = o * (joint.up * least // joint.down)
    else:
        cap = max(floor, floor * (joint.up * least - joint.down) // (joint.down * least))
    return Class(chosen, o, floor, cap, weight)


def orders(multiset: Counter[int]) -> int:
    """The number of different orders of a multiset."""
    return math.factorial(multiset.total()) // math.prod(map(math.factorial, multiset.values()))


def units_of(joint: Joint, groups: list[Group], classes: list[Class]) -> list[int]:
    """The law of the classes, out of N^k."""
    whole = N**joint.k
    mine = [i for i, one in enumerate(classes) if one.weight > 0]
    others = [i for i, one in enumerate(classes) if one.weight == 0]
    target = whole - sum(classes[i].floor for i in others)
    x = [Fraction(one.floor) for one in classes]
    if sum(classes[i].cap for i in mine) >= target:
        place(x, mine, [classes[i].weight for i in mine], classes, target)
        return rounded(x, whole)
    for i in mine:
        x[i] = Fraction(classes[i].cap)
    guide = guides(joint, groups)
    weights = [classes[i].orders * math.prod(guide[g] for g in classes[i].groups) for i in others]
    place(x, others, weights, classes, whole - sum(classes[i].cap for i in mine))
    return rounded(x, whole)


def place(x: list[Fraction], chosen: list[int], c: list[int], classes: list[Class], target: int) -> None:
    """Solve for some of the classes and write the result into x."""
    low, high = [classes[i].floor for i in chosen], [classes[i].cap for i in chosen]
    for i, value in zip(chosen, level(c, low, high, target), strict=True):
        x[i] = value


def guides(joint: Joint, groups: list[Group]) -> list[int]:
    """The law of a single release over the groups, the last of which the user does not have."""
    a = root_down(2 ** (64 * joint.k) * joint.up // joint.down, joint.k)
    first, last = groups[:-1], groups[-1]
    floors = [g.floor for g in first]
    high = [min(a * floor // 2**64, N) for floor in floors]
    target = N - last.floor
    if sum(high) < target:
        law = high
    else:
        law = rounded(level([g.weight for g in first], floors, high, target), target)
    return [*law, N - sum(law)]


def root_down(value: int, k: int) -> int:
    """The k-th root, rounded down."""
    below, above = 0, 1 << (value.bit_length() // k + 1)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if middle**k <= value else (below, middle)
    return below


# --- the tuple -----------------------------------------------------------------------------------


def joint_release(document: Document, counts: Counts, data: bytes) -> tuple[Any, ...]:
    """The released categories for 8·k bytes."""
    joint = joint_of(document)
    need(len(data) == 8 * joint.k, "randomness")
    words = [int.from_bytes(data[i : i + 8], "little") // 4 for i in range(0, len(data), 8)]
    return tuple(document["categories"][i] for i in joint_tuple(joint, counts, words))


def joint_tuple(joint: Joint, counts: Counts, words: list[int]) -> Positions:
    """The released positions for k words."""
    own = own_law(joint, counts) or separate_law(joint, counts)
    if own is not None:
        return tuple(interval(own, word) for word in words)
    groups = groups_of(joint, counts)
    classes = classes_of(joint, groups)
    units = units_of(joint, groups, classes)
    number = 0
    for word in words:
        number = number * N + word
    c = interval(units, number)
    one = classes[c]
    y = (number - sum(units[:c])) * one.floor // units[c]
    each = one.floor // one.orders
    order = numbered_order(one.groups, y // each)
    return positions_of(joint, [groups[g] for g in order], y % each)


def numbered_order(multiset: Positions, number: int) -> Positions:
    """One of the different orders of a multiset, in lexicographic order, counting from 0."""
    rest = Counter(multiset)
    found: list[int] = []
    while rest:
        for g in sorted(rest):
            size = orders(rest - Counter([g]))
            if number < size:
                break
            number -= size
        found.append(g)
        rest = rest - Counter([g])
    return tuple(found)


def positions_of(joint: Joint, ordered: list[Group], y: int) -> Positions:
    """The positions that number y below the product of the floors stands for."""
    found: list[int] = []
    before = 1
    for j, group in enumerate(ordered):
        scale = before * math.prod(g.floor for g in ordered[j + 1 :])
        floors = [joint.low[i] for i in group.positions]
        chosen = interval(floors, y // scale)
        y -= sum(floors[:chosen]) * scale
        before *= floors[chosen]
        found.append(group.positions[chosen])
    return tuple(found)


# --- the exact law -------------------------------------------------------------------------------


def joint_law(document: Document, counts: Counts) -> dict[Positions, int]:
    """The exact units of every tuple of positions, out of N^k, in ascending order of the tuples."""
    return tuple_law(joint_of(document), counts)


def tuple_law(joint: Joint, counts: Counts) -> dict[Positions, int]:
    """The same from the numbers of a file."""
    own = own_law(joint, counts) or separate_law(joint, counts)
    if own is not None:
        every = product(range(len(own)), repeat=joint.k)
        return {z: math.prod(own[i] for i in z) for z in every}
    groups = groups_of(joint, counts)
    classes = classes_of(joint, groups)
    law: dict[Positions, int] = {}
    for one, units in zip(classes, units_of(joint, groups, classes), strict=True):
        for z, begin in begins(joint, groups, one):
            end = begin + math.prod(joint.low[i] for i in z)
            law[z] = -(-end * units // one.floor) + (-begin * units // one.floor)
    return dict(sorted(law.items()))


def begins(joint: Joint, groups: list[Group], one: Class) -> Iterator[tuple[Positions, int]]:
    """Every tuple of a class with the number b at which it begins, by the sums that the draw subtracts."""
    each = one.floor // one.orders
    for number in range(one.orders):
        ordered = [groups[g] for g in numbered_order(one.groups, number)]
        for places in product(*(range(len(group.positions)) for group in ordered)):
            z = tuple(group.positions[i] for group, i in zip(ordered, places, strict=True))
            yield z, number * each + skipped(joint, ordered, places)


def skipped(joint: Joint, ordered: list[Group], places: Positions) -> int:
    """What the draw subtracts from y on its way to a tuple."""
    before, total = 1, 0
    for j, (group, chosen) in enumerate(zip(ordered, places, strict=True)):
        floors = [joint.low[i] for i in group.positions]
        sums = [0, *accumulate(floors)]
        total += sums[chosen] * before * math.prod(g.floor for g in ordered[j + 1 :])
        before *= floors[chosen]
    return total
