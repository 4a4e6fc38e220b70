"""Files of streams: accepted by the library as by the tiny client, or refused by both."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import tiny_client
import tiny_stream
from vector_checks import LibraryClient
from vector_draws import signed

import sottovoce as sv
from sottovoce.core.stream import StreamEngine
from sottovoce.groups import EVERYBODY
from sottovoce.release.file import ANY, load_mechanisms

from .mechanisms import ROOMS
from .mutate import json_mutated
from .target import Target, holds, refusals, written

LIBRARY = LibraryClient()
MOST = 12
"""Categories up to which laws are compared."""


def check(data: bytes) -> bool:
    """Load a file; where it is a stream, hold its laws against the tiny client."""
    theirs, found = _tiny(data), None
    with refusals():
        found = load_mechanisms(written("m.json", data), policy=ANY)
    mine = None if found is None else found.mechanisms.get(EVERYBODY)
    streams = mine is not None and isinstance(mine.engine, StreamEngine)
    holds(streams == (theirs is not None), "the library and the tiny client disagree")
    if mine is None or not isinstance(mine.engine, StreamEngine):
        return mine is not None
    if len(mine.categories) <= MOST:
        _same_steps(mine.engine, len(mine.categories), tiny_stream.Tiny.of(theirs), data)
    return True


def _tiny(data: bytes) -> Any:
    """The document, if it is one of a stream and right."""
    try:
        plain = tiny_client.parse(data)
        tiny_stream.check_stream(plain)
    except (tiny_client.Refused, RecursionError):
        return None
    return plain


def _same_steps(engine: StreamEngine, n: int, tiny: tiny_stream.Tiny, data: bytes) -> None:
    noise = hashlib.sha512(data).digest()
    state, last = tiny.at_first(), None
    holds(engine.first() == state[1:], "the tiny client starts elsewhere")
    for step in range(4):
        counts = {byte % n: 1 + byte for byte in noise[8 * step : 8 * step + 1 + noise[0] % 6]}
        law = engine.step_law(sorted(counts.items()), *engine.ratios(*state[1:], step), last)
        units = tiny.law(counts, *state[1:], step, last)
        holds(engine.units(law) == units, "the tiny client has another law")
        z, prior, drawn = engine.drawn(law, int.from_bytes(noise[step * 8 : step * 8 + 8], "little") >> 2)
        after = engine.moved(*state[1:], prior, drawn)
        state = tiny.after(state, units, z, last)
        holds(after == state[1:] and drawn == units[z], "the tiny client has another state")
        holds(1 <= state[0] <= engine.ratio, "R left its range")
        last = z if engine.persistence else None


def seeds() -> Sequence[bytes]:
    """A few settings and numbers of categories."""
    made = []
    for n, options in ((1, {}), (3, {"horizon": 2}), (6, {"persistence": 0.5}), (4, {"horizon": None})):
        prior = sv.Prior.from_counts({f"c{i}": i + 1 for i in range(n)})
        made.append(signed(sv.certify(sv.stream(prior, 2.0, **options)).document()).encode())
    return made


TARGETS = (Target("streams", check, seeds, json_mutated, (*ROOMS, "core/stream.py")),)
