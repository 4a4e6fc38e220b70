"""Mechanism files and files of groups: accepted by the library as by the tiny client, or refused by both.

What is accepted is saved and loaded again with the same digest; its laws keep the ratio, which is at most
e^ε; and its draws are those of the tiny client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import tiny_client
import tiny_draws
from vector_checks import LibraryClient, content, vectors
from vector_draws import signed
from vector_files import GROUPS, grouped

import sottovoce as sv
from sottovoce.release.file import ANY, load_mechanisms, save_mechanisms

from .mutate import json_mutated
from .target import Target, folder, holds, refusals, written

LIBRARY = LibraryClient()
MOST_LAWS = 12
"""Categories up to which every law is written down."""


def check(data: bytes) -> bool:
    """Load a file, and hold everything about it against the tiny client."""
    theirs = _tiny(data)
    found = None
    with refusals():
        found = load_mechanisms(written("m.json", data), policy=ANY)
    mine = None if found is None else found.digest
    holds(mine == (None if theirs is None else theirs.digest), "the library and the tiny client disagree")
    if found is None or theirs is None:
        return False
    again = folder() / "again.json"
    if found.by is None:
        found.mechanisms["all"].save(again)
    else:
        save_mechanisms(found.mechanisms, found.by, again)
    holds(load_mechanisms(again, policy=ANY).digest == found.digest, "a saved mechanism has another digest")
    for name, mechanism in list(found.mechanisms.items())[:3]:
        _private(mechanism)
        _same_draws(mechanism, theirs.documents[name], data)
    return True


def _tiny(data: bytes) -> Any:
    try:
        return tiny_client.load(data, {})
    except (tiny_client.Refused, RecursionError):
        return None


def _private(mechanism: sv.Mechanism) -> None:
    """Every pair of laws of single records keeps the ratio, and the ratio is that of the tiny client."""
    above = tiny_client.ratio_of(mechanism.epsilon.numerator, mechanism.epsilon.denominator)
    holds(mechanism.ratio <= Fraction(*above), "the ratio is above e^ε")
    if len(mechanism.categories) > MOST_LAWS:
        return
    keep_the_ratio(mechanism, [[one] for one in mechanism.categories])


def keep_the_ratio(mechanism: sv.Mechanism, users: Sequence[Sequence[Any]]) -> None:
    """The laws of these users, given by their records, add up to one and differ by the ratio at most."""
    laws = [mechanism.law(records=one) for one in users]
    holds(all(sum(law) == 1 for law in laws), "a law does not add up to one")
    for column in zip(*laws, strict=True):
        holds(max(column) <= mechanism.ratio * min(column), "two laws break the ratio")


def _same_draws(mechanism: sv.Mechanism, document: Any, data: bytes) -> None:
    """Records and words that follow from the file lead to the same categories."""
    noise = hashlib.sha512(data).digest()
    names = mechanism.categories
    records = [names[byte % len(names)] for byte in noise[: 1 + noise[0] % 9]]
    counts = tiny_draws.from_records(document, records)
    held = LIBRARY.from_records(mechanism, records)
    holds(sorted(counts.items()) == held, "the records are counted in another way")
    size = 8 * mechanism.engine.words
    for at in range(0, 64 - size, 8):
        word = noise[at : at + size]
        mine, theirs = LIBRARY.release(mechanism, held, word), tiny_draws.release(document, counts, word)
        holds(mine == theirs, "the tiny client draws another category")


def single_seeds() -> Sequence[bytes]:
    """One mechanism of every sampler, and short vectors."""
    prior = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
    made = [signed(sv.certify(one(prior, 1.0)).document()).encode() for one in sv.SAMPLERS.values()]
    return [*made, *_vectors(grouped_files=False)]


def group_seeds() -> Sequence[bytes]:
    """A file of groups, and short vectors."""
    return [signed(grouped(GROUPS)).encode(), *_vectors(grouped_files=True)]


def _vectors(*, grouped_files: bool) -> list[bytes]:
    rows = [*vectors("files_accepted")["files"], *vectors("files_refused")["files"]]
    texts = [content(row) for row in rows]
    return [text for text in texts if len(text) < 3000 and (b"sottovoce-mechanisms" in text) == grouped_files]


ROOMS = (
    "release/file.py", "release/mechanism.py", "core/arithmetic.py", "core/box.py", "core/kernel.py",
)  # fmt: skip
TARGETS = (
    Target("mechanisms", check, single_seeds, json_mutated, ROOMS, weight=2),
    Target("groups", check, group_seeds, json_mutated, ROOMS, longest=40_000),
)
