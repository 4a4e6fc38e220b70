"""How bytes become other bytes: anywhere in them, by words, or as JSON that is signed again."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import tiny_client

NUMBERS = [
    "3/2", "0", "1", "-1", "62", "63", "255", "1e5", "1e400", "-0", "0.5", "1.0", "nan", "inf", "-inf", "007",
    "1_0", str(2**53), str(2**62), str(2**63), str(2**64), "9" * 30, "9" * 5000, "٣", "1/1", "1/0",
]  # fmt: skip
WORDS = [
    "", " ", "\n", "\r\n", "\t", ",", '"', "''", "\\", "\x00", "\ufeff", "\u00ad", "\ud7ff", "😀", "null",
    "true", "[]", "{}", "[" * 40, "user", "item", "weight", "count", "all", "other", "group", "mechanism",
    "__proto__", "../x", "e" * 300,
]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    2**53,
    1e308,
    "",
    "a",
    "0",
    [],
    {},
    ["a"],
    {"a": 1},
    [[]],
    "\ud800",
]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_CUTS = re.compile(rb"[,;\t\n ]")


def bytes_mutated(data: bytes, rng: random.Random, words: Sequence[str] = ()) -> bytes:
    """A few changes anywhere: bits, bytes, pieces, numbers, words."""
    raw = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        rng.choice(_CHANGES)(raw, rng, [*WORDS, *words])
    return bytes(raw)


def _bit(raw: bytearray, rng: random.Random, _: Sequence[str]) -> None:
    if raw:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)


def _byte(raw: bytearray, rng: random.Random, _: Sequence[str]) -> None:
    if raw:
        raw[rng.randrange(len(raw))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])


def _cut(raw: bytearray, rng: random.Random, _: Sequence[str]) -> None:
    at = rng.randrange(len(raw) + 1)
    del raw[at : at + rng.choice([1, 2, 8, 64, 1024])]


def _ended(raw: bytearray, rng: random.Random, _: Sequence[str]) -> None:
    del raw[rng.randrange(len(raw) + 1) :]


def _doubled(raw: bytearray, rng: random.Random, _: Sequence[str]) -> None:
    at, to = rng.randrange(len(raw) + 1), rng.randrange(len(raw) + 1)
    raw[to:to] = raw[at : at + rng.choice([1, 4, 16, 200])]


def _word(raw: bytearray, rng: random.Random, words: Sequence[str]) -> None:
    at = rng.randrange(len(raw) + 1)
    end = at + rng.choice([0, 0, 1, 3])
    raw[at:end] = rng.choice(words).encode("utf-8", "surrogatepass")


def _number(raw: bytearray, rng: random.Random, _: Sequence[str]) -> None:
    found = list(_NUMBER.finditer(raw))
    if found:
        one = rng.choice(found)
        raw[one.start() : one.end()] = rng.choice(NUMBERS).encode()


def _swapped(raw: bytearray, rng: random.Random, _: Sequence[str]) -> None:
    """Two fields change places."""
    ends = [0, *(one.end() for one in _CUTS.finditer(raw)), len(raw)]
    if len(ends) > 3:
        i, j = sorted(rng.sample(range(len(ends) - 1), 2))
        first, second = raw[ends[i] : ends[i + 1]], raw[ends[j] : ends[j + 1]]
        raw[ends[j] : ends[j + 1]] = first
        raw[ends[i] : ends[i + 1]] = second


_CHANGES: list[Callable[[bytearray, random.Random, Sequence[str]], None]] = [
    _bit, _byte, _cut, _ended, _doubled, _word, _word, _number, _number, _swapped,
]  # fmt: skip


def json_mutated(data: bytes, rng: random.Random) -> bytes:
    """JSON with a few other values in it, and its digests mostly right again; other bytes byte by byte."""
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_mutated(data, rng)
    if rng.random() < 0.15 or data.count(b"[") + data.count(b"{") > 200:  # as deep as nobody walks
        return bytes_mutated(data, rng)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        plain = _changed(plain, rng)
    if rng.random() < 0.9:
        signed(plain)
    text = json.dumps(plain, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, None, 1]))
    return text.encode("utf-8", "surrogatepass")


def signed(plain: Any) -> None:
    """Every digest below made right, from the inside out."""
    if isinstance(plain, list):
        for one in plain:
            signed(one)
    elif isinstance(plain, dict):
        for one in plain.values():
            signed(one)
        if "digest" in plain:
            plain["digest"] = tiny_client.digest_of(plain)


def _changed(plain: Any, rng: random.Random) -> Any:
    """One value somewhere in it is another one."""
    places: list[tuple[Any, Any]] = []
    _collect(plain, places)
    if not places:
        return _value(rng)
    holder, key = rng.choice(places)
    value, choice = holder[key], rng.random()
    if choice < 0.1:
        del holder[key]
    elif choice < 0.2 and isinstance(holder, dict):
        holder[rng.choice(["extra", "low", "provenance", "by", "a", ""])] = _value(rng)
    elif choice < 0.3 and isinstance(holder, list):
        holder.insert(
            rng.randrange(len(holder) + 1),
            rng.choice([value, _value(rng)]) if not isinstance(value, dict | list) else _value(rng),
        )
    elif choice < 0.45:
        other, name = rng.choice(places)
        holder[key] = other[name] if not isinstance(other[name], dict | list) else _value(rng)
    elif isinstance(value, bool) or value is None:
        holder[key] = _value(rng)
    elif isinstance(value, int):
        holder[key] = value + rng.choice([1, -1, 2**53, -(2**31)])
    elif isinstance(value, str) and re.fullmatch("[0-9]{1,40}", value):
        step = rng.choice([1, 1, 2, 1 << rng.randrange(62)]) * rng.choice([1, -1])
        holder[key] = str(max(int(value) + step, 0))
    elif isinstance(value, str):
        holder[key] = rng.choice([*WORDS, *NUMBERS, value + rng.choice(WORDS), value[:-1], value.upper()])
    else:
        holder[key] = _value(rng)
    return plain


def _value(rng: random.Random) -> Any:
    """A value that is in no other place: a list that stood in itself would have no end."""
    return copy.deepcopy(rng.choice(VALUES))


def _collect(plain: Any, places: list[tuple[Any, Any]]) -> None:
    """Every place of a value in a document."""
    if isinstance(plain, dict):
        keys: Any = list(plain)
    elif isinstance(plain, list):
        keys = range(len(plain))
    else:
        return
    for key in keys:
        places.append((plain, key))
        _collect(plain[key], places)
