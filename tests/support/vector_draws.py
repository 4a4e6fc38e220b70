"""Mechanisms, users and boundary words of the vectors: what `make_vectors` writes into the files of draws."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.prior import Category
from sottovoce.release import randomness
from sottovoce.release.box_engine import BoxEngine
from sottovoce.release.document import digest_of
from sottovoce.release.linear_engines import KernelEngine, ResponseEngine
from sottovoce.release.mechanism_file import parse

N = 1 << 62
EPSILONS = [0.001, 0.1, 1.0, 4.5, 12.0, 30.0]
FOUR = sv.Prior(["rare", "some", "many", "most"], [0.01, 0.09, 0.3, 0.6])
ODD = [
    "",
    " a ",
    "a",
    "A",
    "é",
    "e\u0301",
    "\u007f",
    "\u0080",
    "\u2028",
    "\uff21",
    "😀",
    "𝄞x",
    "\ufeff",
    "\ufffd",
    '\n\t\b\f\r"\\/',
    "\x00\x1f",
    "1",
    "01",
    "1.0",
    "null",
    "true",
    "__proto__",
    "constructor",
    "toString",
]
WHOLE = [0, 7, -7, 1 << 31, 1 << 32, -(1 << 40), (1 << 53) - 1, 1 - (1 << 53)]


def signed(plain: dict[str, Any]) -> str:
    """A file whose digest fits whatever it says."""
    plain = {key: value for key, value in plain.items() if key != "digest"}
    return json.dumps({**plain, "digest": digest_of(plain)}, ensure_ascii=False)


def built(plain: dict[str, Any]) -> sv.Mechanism:
    return parse(signed(plain), "a vector", sv.Policy())


def certified(name: str, prior: sv.Prior, epsilon: float) -> sv.Mechanism:
    return sv.certify(sv.SAMPLERS[name](prior, epsilon))


def uneven(names: list[str] | list[int]) -> sv.Prior:
    """Unequal weights in no particular order."""
    counts = [(17 * i * i + 5 * i) % 29 + 1 for i in range(len(names))]
    return sv.Prior(names, [count / sum(counts) for count in counts])


def boxes() -> Iterator[tuple[str, sv.Mechanism]]:
    for epsilon in EPSILONS:
        yield f"box, epsilon {epsilon}", certified("kernel_clip", FOUR, epsilon)
    yield "box, one category", certified("kernel_clip", sv.Prior(["only"], [1.0]), 1.0)
    yield "box, odd names", certified("kernel_clip", uneven(ODD), 1.0)
    yield "box, integer names", certified("local_minimax", uneven(WHOLE), 0.5)
    yield "box, the prior is not kept", certified("global_minimax", FOUR, 2.0)
    yield "box, ratio 1", built(without_room())
    yield (
        "box, prior from users",
        built({**certified("blend", FOUR, 1.0).document(), "prior_from_users": True}),
    )
    yield "box, many categories", certified("kernel_clip", uneven(list(range(300))), 2.0)


def without_room() -> dict[str, Any]:
    """ε so small that A = 1: the floor is the cap, and everybody releases the prior."""
    plain = certified("kernel_clip", FOUR, 1.0).document()
    return {**plain, "epsilon": f"1/{10**30}", "ratio": "1/1", "low": plain["prior"]}


def linear() -> Iterator[tuple[str, sv.Mechanism]]:
    for epsilon, name in product(EPSILONS, ["minimax_kernel", "randomized_response", "rr_with_prior"]):
        yield f"{name}, epsilon {epsilon}", certified(name, FOUR, epsilon)
    yield "kernel, one category", certified("minimax_kernel", sv.Prior(["only"], [1.0]), 1.0)
    yield "response, one category", certified("randomized_response", sv.Prior(["only"], [1.0]), 1.0)
    yield "kernel, odd names", certified("minimax_kernel", uneven(ODD), 1.0)
    yield "response, odd names", certified("randomized_response", uneven(ODD), 1.0)
    yield "kernel, integer names", certified("minimax_kernel", uneven(WHOLE), 0.5)
    yield "response, integer names", certified("rr_with_prior", uneven(WHOLE), 0.5)
    yield "kernel, equal weights", certified("minimax_kernel", sv.Prior(["b", "a", "c"], [1 / 3] * 3), 1.0)
    one = certified("randomized_response", FOUR, 1.0).document()
    yield "response, one kept", built({**one, "kept": [2], "own": str(N), "other": "0"})
    three = -(-N // 4)
    kept = {"kept": [3, 0, 1], "own": str(N - 2 * three), "other": str(three)}
    yield "response, kept in another order", built({**one, **kept})
    long = {"options": {"\uff21": "x", "😀": "y", "b": "😀" * 100, "a b": "/"}, "sampler": "𝄞" * 100}
    yield "response, odd options", built({**one, **long})


def users(mechanism: sv.Mechanism, rng: random.Random) -> Iterator[list[Category]]:
    """One record, all of them, and some: records in no particular order."""
    names = list(mechanism.categories)
    for name in names[:3] + names[-1:]:
        yield [name]
    yield names[::-1]
    some = rng.choices(names, k=7)
    yield some
    yield [names[0]] * 5 + [names[-1]] * 2 + [names[0]]


def draws(mechanism: sv.Mechanism, seed: str, most: int = 40) -> list[dict[str, Any]]:
    """Users, their exact laws, and releases from bytes at the ends of every interval."""
    rng = random.Random(seed)
    found = []
    for records in {json.dumps(one): one for one in users(mechanism, rng)}.values():
        law = mechanism.law(records=records)
        cases = boundaries(mechanism, records)
        cases = rng.sample(cases, most) if len(cases) > most else cases
        cases.append([rng.randrange(N) for _ in range(mechanism.engine.words)])
        found.append(
            {
                "records": records,
                "weights": [str(share * N**mechanism.engine.words) for share in law],
                "draws": [drawn(mechanism, records, words, rng) for words in cases],
            }
        )
    return found


def counted(mechanism: sv.Mechanism) -> list[dict[str, Any]]:
    """Users who give counts instead of records."""
    rng, found = random.Random("counts"), []
    n = len(mechanism.categories)
    for counts in ([1, 2**53 - 2] + [0] * n, [3, 0, 4, 1] + [0] * n, [10**15, 1, 10**15, 7] + [0] * n):
        p = np.array(counts[:n], dtype=np.int64)
        law, cases = mechanism.law(p), []
        for _ in range(4):
            data = rng.randbytes(8 * mechanism.engine.words)
            cases.append({"bytes": data.hex(), "released": from_bytes(mechanism, data, p=p)})
        found.append(
            {
                "counts": [[name, int(k)] for name, k in zip(mechanism.categories, p, strict=True)],
                "weights": [str(share * N**mechanism.engine.words) for share in law],
                "draws": cases,
            }
        )
    return found


def drawn(mechanism: sv.Mechanism, records: list[Category], words: list[int], rng: random.Random) -> Any:
    """One release; the two lowest bits of every word, which are dropped, are anything."""
    data = b"".join(((word << 2) | rng.randrange(4)).to_bytes(8, "little") for word in words)
    return {"bytes": data.hex(), "released": from_bytes(mechanism, data, records)}


def from_bytes(mechanism: sv.Mechanism, data: bytes, *records: Any, **p: Any) -> Any:
    """What the library releases from these bytes."""
    before, asked = randomness._read, []

    def known(size: int) -> bytes:
        asked.append(size)
        return data

    randomness._read = known
    try:
        return mechanism.release(*records, **p)
    finally:
        randomness._read = before
        if asked != [len(data)]:
            raise AssertionError("a release reads its bytes once, and all of them")


def boundaries(mechanism: sv.Mechanism, records: list[Category]) -> list[list[int]]:
    """The first and the last word of every interval, for one word after another."""
    engine = mechanism.engine
    if isinstance(engine, BoxEngine):
        law = mechanism.law(records=records)
        return [[word] for word in ends(accumulate(int(share * N) for share in law))]
    places = sorted(mechanism.index[record] for record in records)
    cases = []
    for number, place in enumerate(places):
        first, after = -(-number * N // len(places)), -(-(number + 1) * N // len(places))
        for chosen in {first, after - 1}:
            if isinstance(engine, KernelEngine):
                cases += [[chosen, *rest] for rest in kernel_words(engine, place)]
            elif isinstance(engine, ResponseEngine):
                cases += [[chosen, word] for word in response_words(engine, place)]
    return cases


def ends(sums: Any) -> list[int]:
    """The first and the last word before and after each sum."""
    return sorted({word for end in (0, *sums) for word in (end - 1, end) if 0 <= word < N})


def kernel_words(engine: KernelEngine, place: int) -> Iterator[list[int]]:
    r, kernel = engine.order.index(place), engine.kernel
    start = sum(kernel.low[:r])
    for u in ends([*accumulate(kernel.low[:r]), start + kernel.own[r]]):
        yield [u, 0]
        yield [u, N - 1]
    behind = sum(kernel.prior[: r + 1])
    if start + kernel.own[r] < N:
        for end in accumulate(kernel.prior[r + 1 :]):
            for v in ends([-(-end * N // (N - behind))]):
                yield [N - 1, v]


def response_words(engine: ResponseEngine, place: int) -> list[int]:
    k = len(engine.kept)
    if place not in engine.kept:
        return ends(-(-j * N // k) for j in range(1, k + 1))
    return ends(engine.own + j * engine.other for j in range(k))


def refused_users(mechanism: sv.Mechanism) -> list[dict[str, Any]]:
    """Users whom nobody may release."""
    name = mechanism.categories[0]
    other: Any = str(name) if isinstance(name, int) else 1
    several = (
        [] if len(mechanism.categories) == 1 else [{"counts": [[name, -1], [mechanism.categories[1], 2]]}]
    )
    return [
        *several,
        {"records": []},
        {"records": ["nowhere", name]},
        {"records": [name, other]},
        {"counts": [[name, 0]]},
        {"counts": [[name, -1]]},
        {"counts": [[name, 1.5]]},
        {"counts": [[name, 1 << 53]]},
        {"counts": [["nowhere", 1]]},
    ]


def exponentials() -> list[Fraction]:
    """Values of ε, from the smallest to the largest that a file may state."""
    doubles = [0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 1.1, 1.5, 2.7, 3.14, 4.5, 7.7, 12.3, 20.5, 29.9, 1e-9, 5e-324]
    wholes = [Fraction(k) for k in (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 44, 64, 99, 100)]
    parts = [Fraction(1, k) for k in (3, 7, 1000, 2**64, 2**64 + 1, 2**65, 10**19, 10**20, 10**130, 10**399)]
    near = [Fraction(a, 10**k) for a, k in NEAR]
    return [*map(Fraction, doubles), *wholes, *parts, *near]


NEAR = [
    (109861228866810969139524523692252570464749055782274945173469433363749429321860, 77),
    (109861228866810969139524523692252570464749055782274945173469433363749429321861, 77),
]
"""Just below and just above ln 3: 2^64·e^ε is a whole number but for the last of about 56 places."""
