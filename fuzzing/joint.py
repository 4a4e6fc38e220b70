"""Mechanism files with several samples: accepted by the library as by the tiny client, or refused by both."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import tiny_client
import tiny_joint
from vector_checks import LibraryClient
from vector_draws import signed

import sottovoce as sv
from sottovoce.release.file import ANY, load_mechanisms

from .mechanisms import ROOMS, keep_the_ratio
from .mutate import json_mutated
from .target import Target, holds, refusals, written

LIBRARY = LibraryClient()
MADE = ((1, 2, sv.kernel_clip), (2, 2, sv.kernel_clip), (3, 3, sv.global_minimax), (6, 2, sv.blend))
"""Categories, samples and sampler of the files that are changed."""
MOST_TUPLES = 200
"""Tuples up to which every law is written down."""


def check(data: bytes) -> bool:
    """Load a file; where it has several samples, hold everything about it against the tiny client."""
    theirs, found = _tiny(data), None
    with refusals():
        found = load_mechanisms(written("m.json", data), policy=ANY)
    mine = None if found is None else found.mechanisms.get("all")
    joint = mine is not None and mine.samples > 1
    holds(joint == (theirs is not None), "the library and the tiny client disagree")
    if mine is None or not joint:
        return mine is not None
    if len(mine.categories) ** mine.samples <= MOST_TUPLES:
        keep_the_ratio(mine, [*([name] for name in mine.categories), list(mine.categories)])
    if len(mine.categories) <= 12 and mine.samples <= 4:
        _same_draws(mine, theirs, data)
    return True


def _tiny(data: bytes) -> Any:
    """The document, if it is one with several samples and right."""
    try:
        plain = tiny_client.parse(data)
        tiny_joint.check_joint(plain)
    except (tiny_client.Refused, RecursionError):
        return None
    return plain


def _same_draws(mechanism: sv.Mechanism, document: Any, data: bytes) -> None:
    noise = hashlib.sha512(data).digest()
    names = mechanism.categories
    records = [names[byte % len(names)] for byte in noise[: 1 + noise[0] % 9]]
    held = LIBRARY.from_records(mechanism, records)
    word = noise[: 8 * mechanism.samples]
    words = [int.from_bytes(word[i : i + 8], "little") >> 2 for i in range(0, len(word), 8)]
    mine = tuple(names[place] for place in mechanism.engine.position(held, words))
    holds(mine == tiny_joint.joint_release(document, dict(held), word), "the tiny client draws another tuple")


def seeds() -> Sequence[bytes]:
    """A few samplers, numbers of samples and categories."""
    made = []
    for n, k, make in MADE:
        prior = sv.Prior.from_counts({f"c{i}": i + 1 for i in range(n)})
        made.append(signed(sv.certify(sv.several(prior, 2.0, samples=k, sampler=make)).document()).encode())
    return made


TARGETS = (
    Target(
        "joint",
        check,
        seeds,
        json_mutated,
        (*ROOMS, "release/joint.py"),
    ),
)
