"""Inputs for files that are not text: small texts that say how a sound file is to be damaged.

    120 ff00      these bytes stand at byte 120 (counted from the beginning again beyond the end)
    120 cut 8     eight bytes less
    120 end       nothing from there on
    120 put 00    a byte more

So an input stays short, whatever it is about, and can be kept in the tree; the guide is not led to throw the
large file away.
"""

from __future__ import annotations

import random

MOST_LINES = 12
_BYTES = [
    "00",
    "01",
    "7f",
    "80",
    "ff",
    "ffff",
    "00000000",
    "ffffffff",
    "7fffffff",
    "80808080808080808080",
    "3f",
    "20",
]


def damaged(sound: bytes, lines: list[str]) -> bytes:
    """The sound file with these changes; a line that says nothing changes nothing."""
    raw = bytearray(sound)
    for line in lines[:MOST_LINES]:
        first, *rest = line.split() or [""]
        if not (first.isascii() and first.isdigit() and len(first) < 10) or not rest or not raw:
            continue
        at = int(first) % len(raw)
        size = (
            int(rest[1])
            if len(rest) > 1 and rest[1].isascii() and rest[1].isdigit() and len(rest[1]) < 6
            else 1
        )
        if rest[0] == "end":
            del raw[at:]
        elif rest[0] == "cut":
            del raw[at : at + size]
        elif rest[0] == "put":
            raw[at:at] = _of(rest[-1])
        else:
            new = _of(rest[0])
            raw[at : at + len(new)] = new
    return bytes(raw)


def _of(text: str) -> bytes:
    try:
        return bytes.fromhex(text)[:64]
    except ValueError:
        return b""


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Another line, another place, other bytes."""
    lines = data.decode("latin-1").split("\n")
    for _ in range(rng.choice([1, 1, 2, 3])):
        at, choice = rng.randrange(len(lines)), rng.random()
        if choice < 0.2 and len(lines) > 1:
            del lines[at]
        elif choice < 0.5 and lines[at].split(" ")[0].isdigit():
            first, _, rest = lines[at].partition(" ")
            lines[at] = f"{max(int(first[:9]) + rng.choice([-8, -1, 1, 8, 100]), 0)} {rest}"
        else:
            lines.append(_line(rng))
    return "\n".join(lines[-MOST_LINES:]).encode("latin-1", "replace")


def _line(rng: random.Random) -> str:
    # The beginning of a file, and of its pages, says most about the rest.
    place = rng.choice(
        [rng.randrange(120), rng.randrange(5000), rng.randrange(1 << 17), 4096 * rng.randrange(20)]
    )
    kind = rng.choice(["", "", "", "", "cut ", "put ", "end "])
    word = (
        str(rng.choice([1, 2, 100, 4096]))
        if kind == "cut "
        else rng.choice([*_BYTES, f"{rng.randrange(256):02x}"])
    )
    return f"{place} {kind}{word}"
