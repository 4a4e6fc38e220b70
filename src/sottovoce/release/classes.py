"""The k-tuples of one user in classes: all tuples of a class have the same law up to their floor.

A user's own categories are groups, each alone or, if there are too many, some of about the same boost
together; all categories that the user does not have are one more group, the last. A class is a multiset of k
groups. Its tuples are ordered: first by the order of the groups (lexicographic), then category by category.
There is no float in this file.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import comb, factorial
from typing import NamedTuple

GONE = -1
MOST_CLASSES = 1 << 15
"""Classes of one release at most: public, and the reason why a release ends in time for every user."""


@cache
def most_groups(samples: int) -> int:
    """How many groups a user's own categories can form, so that with the last group there are few classes."""
    groups = 1
    while comb(groups + 1 + samples, samples) <= MOST_CLASSES:
        groups += 1
    return groups


@dataclass(frozen=True)
class Group:
    """Some categories of a user: their places, what the user has there, and their floors."""

    places: tuple[int, ...]
    weight: int
    low: int  # of all places together
    least: int  # the lowest of them


def merged(groups: list[Group], most: int) -> list[Group]:
    """At most so many groups: neighbours in the boost weight/low are put together, the nearest first.

    Inside a group a user's weight counts as spread in proportion to the floors. What putting two together
    moves is |k₁·low₂ − k₂·low₁|/(low₁ + low₂) of the weight; the pair that moves least goes first.
    """
    if len(groups) <= most:
        return groups
    parts = sorted(groups, key=lambda one: ((one.weight << 128) // one.low, one.places))
    after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
    age = [0] * len(parts)  # how often it has grown; GONE once it is part of another

    def offer(i: int) -> tuple[int, int, int, int, int]:
        j = after[i]
        one, other = parts[i], parts[j]
        moved = (abs(one.weight * other.low - other.weight * one.low) << 64) // (one.low + other.low)
        return moved, i, j, age[i], age[j]

    queue = [offer(i) for i in range(len(parts) - 1)]
    heapq.heapify(queue)
    left = len(parts)
    while left > most:
        _, i, j, *ages = heapq.heappop(queue)
        if [age[i], age[j]] != ages:
            continue  # an offer from before one of them grew
        parts[i] = _together(parts[i], parts[j])
        age[i], age[j] = age[i] + 1, GONE
        after[i] = after[j]
        if after[i] < len(parts):
            before[after[i]] = i
            heapq.heappush(queue, offer(i))
        if before[i] >= 0:
            heapq.heappush(queue, offer(before[i]))
        left -= 1
    return sorted(
        (one for one, old in zip(parts, age, strict=True) if old != GONE), key=lambda one: one.places
    )


def _together(one: Group, other: Group) -> Group:
    return Group(
        tuple(sorted((*one.places, *other.places))),
        one.weight + other.weight,
        one.low + other.low,
        min(one.least, other.least),
    )


class Classes(NamedTuple):
    """All multisets of k groups, in lexicographic order, and the products over each."""

    groups: list[tuple[int, ...]]  # which, ascending
    orders: list[int]  # in how many orders they can stand
    low: list[int]  # the floors of all its tuples together
    least: list[int]  # no tuple of it has a lower floor; if all have the same one, low = orders·least
    weight: list[int]  # what the user has there; 0 with a group of which the user has nothing


def classes(groups: Sequence[Group], samples: int) -> Classes:
    """The classes of a user's tuples. Each product is one of a shorter multiset, times one group more."""
    shape = _shape(len(groups), samples)
    found = []
    for values in (
        [one.low for one in groups],
        [one.least for one in groups],
        [one.weight for one in groups],
    ):
        products = [1]
        for parents, added in shape.steps:
            products = [products[i] * values[g] for i, g in zip(parents, added, strict=True)]
        found.append(products)
    low, least, weight = found
    return Classes(
        shape.groups,
        shape.orders,
        [a * b for a, b in zip(low, shape.orders, strict=True)],
        least,
        [a * b for a, b in zip(weight, shape.orders, strict=True)],
    )


class _Shape(NamedTuple):
    """What the classes of so many groups have in common for all users: nothing private."""

    steps: list[
        tuple[list[int], list[int]]
    ]  # from multisets of j groups to those of j + 1: of which, and what
    groups: list[tuple[int, ...]]
    orders: list[int]


@lru_cache(maxsize=64)
def _shape(groups: int, samples: int) -> _Shape:
    members: list[tuple[int, ...]] = [()]
    steps = []
    for _ in range(samples):
        grown = [(i, g) for i, one in enumerate(members) for g in range(one[-1] if one else 0, groups)]
        steps.append(([i for i, _ in grown], [g for _, g in grown]))
        members = [(*members[i], g) for i, g in grown]
    return _Shape(steps, members, [orders_of(one) for one in members])


def order_number(groups: tuple[int, ...], number: int) -> list[int]:
    """The order with this number, in lexicographic order, of a multiset that is given ascending."""
    left, out = list(groups), []
    while left:
        for one in sorted(set(left)):
            rest = left.copy()
            rest.remove(one)
            here = orders_of(rest)
            if number < here:
                break
            number -= here
        out.append(one)
        left = rest
    return out


def orders_of(groups: Sequence[int]) -> int:
    """How many orders a multiset has."""
    number = factorial(len(groups))
    for one in set(groups):
        number //= factorial(groups.count(one))
    return number
