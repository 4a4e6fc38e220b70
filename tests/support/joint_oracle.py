"""The law of several samples by brute force over all n^k tuples, in fractions; no code of the library."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod

Law = dict[tuple[int, ...], Fraction]


def clip_to(
    weights: Sequence[Fraction], low: Sequence[Fraction], high: Sequence[Fraction], target: Fraction
) -> list[Fraction]:
    """clip(μ·w; low, high) that adds up to the target, for weights above 0: μ between two sorted knots."""
    knots = sorted({bound / w for w, a, b in zip(weights, low, high, strict=True) for bound in (a, b)})

    def clipped(mu: Fraction) -> list[Fraction]:
        return [min(max(mu * w, a), b) for w, a, b in zip(weights, low, high, strict=True)]

    for left, right in zip([Fraction(0), *knots], knots, strict=False):
        if sum(clipped(right)) >= target:
            middle = (left + right) / 2
            free = [i for i, w in enumerate(weights) if low[i] < middle * w < high[i]]
            fixed = sum(x for i, x in enumerate(clipped(middle)) if i not in free)
            slope = sum(weights[i] for i in free)
            return clipped((target - fixed) / slope if slope else right)
    return list(high)


def joint_law(
    low: Sequence[int],
    total: int,
    ratio: Fraction,
    samples: int,
    counts: dict[int, int],
    single_ratio: Fraction,
) -> Law:
    """The real-valued clip of p^⊗k into [low^⊗k, A·low^⊗k]; what is left over along the single release."""
    n, size = len(low), sum(counts.values())
    tuples = list(product(range(n), repeat=samples))
    floor = {z: Fraction(prod(low[i] for i in z), total**samples) for z in tuples}
    cap = {z: ratio * floor[z] for z in tuples}
    p = {z: Fraction(prod(counts.get(i, 0) for i in z), size**samples) for z in tuples}
    own = [z for z in tuples if p[z] > 0]
    others = [z for z in tuples if p[z] == 0]
    if sum(cap[z] for z in own) + sum(floor[z] for z in others) >= 1:
        room = 1 - sum((floor[z] for z in others), Fraction(0))
        found = clip_to([p[z] for z in own], [floor[z] for z in own], [cap[z] for z in own], room)
        return {**floor, **dict(zip(own, found, strict=True))}
    guide = single_law(low, total, single_ratio, counts)
    left = 1 - sum((cap[z] for z in own), Fraction(0))
    weights = [prod((guide[i] for i in z), start=Fraction(1)) for z in others]
    found = clip_to(weights, [floor[z] for z in others], [cap[z] for z in others], left)
    return {**cap, **dict(zip(others, found, strict=True))}


def single_law(low: Sequence[int], total: int, ratio: Fraction, counts: dict[int, int]) -> list[Fraction]:
    """One release at ε/k, what is left over spread along the floor."""
    floor = [Fraction(one, total) for one in low]
    size, own = sum(counts.values()), sorted(counts)
    rest = sum((floor[i] for i in range(len(low)) if i not in counts), Fraction(0))
    if ratio * sum(floor[i] for i in own) + rest < 1:
        held = {i: ratio * floor[i] for i in own}
    else:
        weights = [Fraction(counts[i], size) for i in own]
        found = clip_to(weights, [floor[i] for i in own], [ratio * floor[i] for i in own], 1 - rest)
        held = dict(zip(own, found, strict=True))
    left = 1 - sum(held.values())
    return [held[i] if i in held else left * floor[i] / rest for i in range(len(low))]
