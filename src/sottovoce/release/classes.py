"""The k-tuples of one user in classes: all tuples of a class have the same law up to their floor.

Each of a user's own categories is a group; all categories that the user does not have are one more group, the
last. A class is a multiset of k groups. Its tuples are ordered: first by the order of the groups
(lexicographic), then category by category. There is no float in this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import comb, factorial
from typing import NamedTuple

MOST_CLASSES = 1 << 15
"""Classes of one release at most: public, and the reason why a release ends in time for every user."""


@cache
def most_groups(samples: int) -> int:
    """How many categories a user can have so that, with the last group, there are few enough classes."""
    groups = 1
    while comb(groups + 1 + samples, samples) <= MOST_CLASSES:
        groups += 1
    return groups


@dataclass(frozen=True)
class Group:
    """One category of a user: its place, what the user has there, its floor; or all that the user lacks."""

    place: int | None  # None for the categories that the user does not have
    weight: int
    low: int  # of all of them together
    least: int  # no lower floor is among them


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


@lru_cache(maxsize=32)
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
