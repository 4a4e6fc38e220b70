"""Random mechanisms, and files with a few changes: a client must answer them like the library."""

from __future__ import annotations

import json
import random
from typing import Any

import tiny_client
import vector_nearest
from vector_draws import built
from vector_files import (
    BOX,
    EVEN,
    GROUPS,
    KERNEL,
    RESPONSE,
    SURVEY,
    WHOLE,
    grouped,
    honest,
    kernel_of,
    units,
)

import sottovoce as sv
from sottovoce.errors import CertificateError
from sottovoce.geometry import Geometry
from sottovoce.samplers.survey import Survey

N = 1 << 62


def some_geometry(rng: random.Random, n: int) -> Geometry:
    """A line with few places, or any tree, with edges of no length and nodes with one child."""
    if rng.random() < 0.4:
        return sv.Line([rng.randrange(1 + 2 * n) for _ in range(n)])
    inner = rng.randint(1, n)
    above = [rng.randint(n, n + inner) for _ in range(n)]  # a node without a child gets one
    for v, place in zip(range(n, n + inner), rng.sample(range(n), inner), strict=True):
        above[place] = v
    parents = above + [rng.randint(v + 1, n + inner) for v in range(n, n + inner - 1)] + [n + inner]
    return Geometry(tuple(parents), tuple(rng.choice([0, 0, 1, 2, 3, 1 << 20]) for _ in parents))


def some_nearest(rng: random.Random) -> sv.Mechanism:
    """A nearest law of any geometry; now and then with a box that does not hold the prior."""
    n = 40 if rng.random() < 0.05 else rng.randint(1, 9)
    raw = [rng.random() ** rng.choice([0, 1, 6]) + 1e-6 for _ in range(n)]
    prior = sv.Prior(list(range(n)), [one / sum(raw) for one in raw])
    epsilon = rng.choice([0.001, 0.1, 1.0, 30.0, rng.uniform(0.01, 8)])
    made = sv.certify(sv.nearest(prior, epsilon, some_geometry(rng, n), share=rng.uniform(0.1, 0.9)))
    if rng.random() < 0.7:
        return made
    plain = made.document()
    weights = [rng.randrange(1, N // n) for _ in range(n - 1)]
    return built(honest({**plain, "prior": list(map(str, [*weights, N - sum(weights)]))}))


def some_mechanism(rng: random.Random) -> sv.Mechanism:
    """Any sampler, any prior, any ε; now and then too many categories for a walk over all of them."""
    while True:
        if rng.random() < 0.15:
            return some_nearest(rng)
        n = 300 if rng.random() < 0.02 else rng.randint(1, 9)
        if rng.random() < 0.15:
            base = rng.choice([2, 3, 5, 7, 31])
            return sv.certify(Survey(sv.Prior.uniform(list(range(n))), rng.uniform(0.01, 8), base))
        raw = [rng.random() ** rng.choice([0, 1, 6]) + 1e-6 for _ in range(n)]
        prior = sv.Prior(list(range(n)), [one / sum(raw) for one in raw])
        sampler = sv.SAMPLERS[rng.choice(list(sv.SAMPLERS))]
        try:
            return sv.certify(sampler(prior, rng.choice([0.001, 0.1, 1.0, 30.0, rng.uniform(0.01, 8)])))
        except CertificateError:
            continue


BASES = [
    BOX,
    vector_nearest.plain_nearest(),
    KERNEL,
    RESPONSE,
    SURVEY,
    WHOLE,
    EVEN,
    kernel_of([1, 2, 5], 0.9, 1.0),
    units(2),
    grouped(GROUPS),
]
VALUES: list[Any] = [
    0, 1, -1, 62, 2**53, "0", "1", "", "01", "1/1", "2/2", str(N), str(N + 1), None, True, False, [], {},
    ["a"], {"a": "b"}, "\n", "\ud800", "😀", "\u00ad", " ", "box", "kernel", "response", "user", 1.0,
]  # fmt: skip


def mutant(rng: random.Random) -> bytes:
    """A file in which a few things are changed and the digests are mostly right again."""
    plain = json.loads(json.dumps(rng.choice(BASES)))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        target = plain
        if "groups" in plain and isinstance(plain["groups"], dict) and plain["groups"] and rng.random() < 0.8:
            name = rng.choice(list(plain["groups"]))
            target = plain["groups"][name] if isinstance(plain["groups"][name], dict) else plain
        change(target, rng)
        if "format" in target and target is not plain and rng.random() < 0.9:
            target.pop("digest", None)
            target["digest"] = digest(target)
    text = json.dumps({**plain, "digest": digest(plain)}) if rng.random() < 0.97 else json.dumps(plain)
    data = bytearray(text.encode())
    if rng.random() < 0.25:
        damage(data, rng)
    return bytes(data)


def digest(plain: dict[str, Any]) -> str:
    return tiny_client.digest_of({key: value for key, value in plain.items() if key != "digest"})


def change(target: dict[str, Any], rng: random.Random) -> None:
    """Change one field: by a unit, by a lot, to something else, or away."""
    key = rng.choice(list(target) or ["x"])
    value, choice = target.get(key), rng.random()
    if choice < 0.05:
        target.pop(key, None)
    elif choice < 0.1:
        target[rng.choice(["extra", "provenance", "low", "by"])] = rng.choice(VALUES)
    elif choice < 0.2:
        target[key] = rng.choice(VALUES)
    elif isinstance(value, bool):
        target[key] = not value
    elif isinstance(value, list) and value:
        change_list(value, rng)
    elif isinstance(value, str) and value.isascii() and value.isdigit():
        target[key] = near(value, rng)
    elif isinstance(value, str) and "/" in value and value.replace("/", "").isdigit():
        a, b = value.split("/", 1)
        target[key] = f"{near(a, rng)}/{b}" if rng.random() < 0.7 else f"{a}/{near(b, rng)}"
    else:
        target[key] = rng.choice(VALUES)


def change_list(values: list[Any], rng: random.Random) -> None:
    i, j = rng.randrange(len(values)), rng.randrange(len(values))
    choice = rng.random()
    if choice < 0.15:
        values[i], values[j] = values[j], values[i]
    elif choice < 0.25:
        values[i] = rng.choice(VALUES)
    elif choice < 0.3:
        values.pop(i)
    elif isinstance(values[i], str) and values[i].isascii() and values[i].isdigit():
        before = int(values[i])
        values[i] = near(values[i], rng)
        if i != j and rng.random() < 0.7 and isinstance(values[j], str) and values[j].isdigit():
            values[j] = str(max(int(values[j]) + before - int(values[i]), 0))  # the sum stays
    else:
        values[i] = values[j] if choice < 0.6 else rng.choice(VALUES)


def near(text: str, rng: random.Random) -> str:
    step = rng.choice([1, 1, 2, 1 << rng.randrange(62)]) * rng.choice([1, -1])
    return str(max(int(text) + step, 0)) if rng.random() < 0.97 else "0" + text


DAMAGES = [
    (b": 1,", b": 1.0,"), (b": 1,", b": 1e0,"), (b"[0,", b"[-0,"), (b'"kind"', b'"kind": "box", "kind"'),
    (b": 62", b": 062"), (b"{", b" {"), (b", ", b",\n"), (b'"', b"\xff"), (b"{", b"\xef\xbb\xbf{"),
    (b'"version"', b'"v\\u0065rsion"'), (b"}", b",}"), (b"}", b"} "), (b"/", b"\\/"), (b"true", b"True"),
]  # fmt: skip


def damage(data: bytearray, rng: random.Random) -> None:
    """Change the text itself: a number, a key, a byte."""
    old, new = rng.choice(DAMAGES)
    at = data.find(old)
    if at >= 0:
        data[at : at + len(old)] = new
    if rng.random() < 0.2:
        data += b" " * rng.choice([3, 64_000, 68_000, 72_000])


POLICIES: list[dict[str, Any]] = [
    {}, {}, {}, {"max_epsilon": "1/1"}, {"max_epsilon": "99/100"}, {"max_categories": 4},
    {"max_categories": 13}, {"provenance": "public"},
]  # fmt: skip
