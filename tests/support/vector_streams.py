"""Vectors of streams: files, and what known bytes release from known states, step by step."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import vector_nearest
from vector_draws import signed

import sottovoce as sv
from sottovoce.core.stream import StreamEngine, StreamState
from sottovoce.records import weights_of_records
from sottovoce.samplers.stream import Stream

CATEGORIES = ["rare", "some", "many", "most", "Ærøskøbing ✓"]
PRIOR = [0.01, 0.09, 0.2, 0.3, 0.4]
STEPS = 24
LOST = [0, 4]  # with persistence: the last releases of lost states, in further steps
MORE = [[0, 1], [3], [], [2, 2, 2, 4], [0], [1, 1, 0], [0, 1, 2, 3, 4]]


def designs() -> Iterator[tuple[str, Stream]]:
    prior = sv.Prior(CATEGORIES, PRIOR)
    for epsilon in (0.1, 2.0, 8.0):
        yield f"stream, epsilon {epsilon:g}", sv.stream(prior, epsilon, horizon=12)
    yield "stream, without an end", sv.stream(prior, 4.0, horizon=None)
    yield "stream, greedy", sv.stream(prior, 4.0, paced=False)
    yield "stream, persistent", sv.stream(prior, 8.0, persistence=0.98)
    rare = sv.Prior(CATEGORIES, [1e-11, 0.1, 0.2, 0.3, 0.4 - 1e-11])
    yield "stream, persistent, with a category of a few units", sv.stream(rare, 8.0, persistence=0.98)
    yield "stream, one category", sv.stream(sv.Prior(["only"], [1.0]), 1.0)
    yield "stream, at a pace of nothing at first", Stream(prior, 4.0, 1.5, (0, 0, 64, 256))
    yield "stream, from the lowest start", Stream(prior, 3.0, 0.0, (256,))
    yield "stream, from the highest start", Stream(prior, 3.0, 3.0, (128,))
    yield from vector_nearest.streams()


def files() -> list[dict[str, Any]]:
    made = [_file(name, sv.certify(design)) for name, design in designs()]
    wrong = vector_nearest.refused_streams()
    return made + [{"name": name, "reason": why, "text": signed(plain)} for name, why, plain in wrong]


def _file(name: str, mechanism: sv.Mechanism) -> dict[str, Any]:
    plain = {**mechanism.document(), "digest": mechanism.digest}
    text = json.dumps(plain, ensure_ascii=False)
    rng, engine = random.Random(name), mechanism.engine
    steps: list[dict[str, Any]] = []
    assert isinstance(engine, StreamEngine)
    state, lost = mechanism.start(), LOST if engine.persistence else []
    for i in range(STEPS + len(lost)):
        if i == STEPS - 3:
            state = mechanism.lost(state.step, last=None)
        if i >= STEPS:
            state = mechanism.lost(state.step, last=mechanism.categories[lost[i - STEPS]])
        if i == 9 and engine.persistence:
            state = replace(state, last=99)  # of a file with more categories: counts as none
        known = [k for k in MORE[i % len(MORE)] if k < len(mechanism.categories)]
        records, data = [mechanism.categories[k] for k in known], rng.randbytes(8)
        held = weights_of_records(records, mechanism.index)
        row: dict[str, Any] = {"state": _plain(state), "records": records, "bytes": data.hex()}
        if i % 8 == 5:  # more than 41 binary digits in all, and one that scaling makes zero
            held = [(k, (1 << 50) + 12345 * k if k else 1) for k in range(len(mechanism.categories))]
            del row["records"]
            row["counts"] = [[mechanism.categories[k], count] for k, count in held]
        state = mechanism.check_state(state)
        law = engine.step_law(held, *engine.ratios(state.low, state.high, state.step), state.last)
        row["weights"] = list(map(str, engine.units(law)))
        released, state = mechanism._stepped(state, *engine.drawn(law, *_words(data)))
        steps.append({**row, "released": released, "after": _plain(state)})
    return {"name": name, "text": text, "steps": steps}


def _words(data: bytes) -> list[int]:
    """62 bits of each eight bytes, as `randomness` takes them."""
    return [int.from_bytes(data[i : i + 8], "little") >> 2 for i in range(0, len(data), 8)]


def _plain(state: StreamState) -> dict[str, Any]:
    return {"step": state.step, "low": str(state.low), "high": str(state.high), "last": state.last}
