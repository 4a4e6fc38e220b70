"""Mechanisms, users and boundary words of the vectors: what `make_vectors` writes into the files of draws."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, count, product
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.core import randomness
from sottovoce.core.arithmetic import exp_below
from sottovoce.core.box import BoxEngine
from sottovoce.core.kernel import KernelEngine, ResponseEngine
from sottovoce.core.nearest import NearestEngine
from sottovoce.core.survey import SurveyEngine
from sottovoce.records import Category
from sottovoce.release.file import ANY, parse
from sottovoce.release.mechanism import digest_of
from sottovoce.samplers.survey import Survey

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
    return parse(signed(plain), "a vector", ANY)


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
        built({**certified("blend", FOUR, 1.0).document(), "provenance": "users"}),
    )
    yield "box, many categories", certified("kernel_clip", uneven(list(range(300))), 2.0)
    yield "box, the public law at a cap", built(public_at_cap())
    yield "box, halves and quarters", built(quarters())
    yield "box, caps beyond 2^64", built(beyond())


def box_of(epsilon: int, low: list[int], prior: list[int]) -> dict[str, Any]:
    """A box of any certified floor and prior."""
    plain = certified("kernel_clip", FOUR, float(epsilon)).document()
    high = [min(exp_below(Fraction(epsilon)) * one // 1, N) for one in low]
    kept = all(a <= q <= b for a, q, b in zip(low, prior, high, strict=True))
    return {**plain, "low": list(map(str, low)), "prior": list(map(str, prior)), "keeps_prior": kept}


def public_at_cap() -> dict[str, Any]:
    """The fourth category is at its cap in the public law, and the third between its bounds."""
    return box_of(1, [N // 8, N // 8, N // 8, N // 8], [N // 16, N // 16, 5 * (N // 16), 9 * (N // 16)])


def quarters() -> dict[str, Any]:
    """Counts of 2, 1, 1 leave two quarters of N − L over, of which the first gets the unit."""
    return box_of(2, [N // 16, N // 16, N // 16, N // 8 + 2], [N // 4, N // 4, N // 4, N // 4])


def beyond() -> dict[str, Any]:
    """⌊A·low⌋ does not fit 64 bits, the lowest of which are few; the cap is N."""
    ratio = exp_below(Fraction(30))
    first = next(low for low in count(N // 8) if ratio * low // 1 % 2**64 < N // 4)
    return box_of(30, [first, N // 4, N // 16, N // 3], [N // 4, N // 4, N // 8, N // 4 + N // 8])


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


def surveys() -> Iterator[tuple[str, sv.Mechanism]]:
    """Questions with few and many answers; names that fill their digits, exceed them by one, or are few."""
    cases = [(2, 8, 0.001), (2, 9, 1.0), (3, 27, 1.0), (3, 10, 30.0), (7, 40, 2.0), (53, 60, 4.0)]
    for base, n, epsilon in cases:
        names = [f"{i} ✓" for i in range(n)]
        made = sv.certify(Survey(sv.Prior.uniform(names), epsilon, base))
        yield f"survey, base {base}, {n} categories", made
    yield "survey, integer names", sv.certify(Survey(sv.Prior.uniform(WHOLE), 0.5, 3))
    yield "survey, one category", sv.certify(Survey(sv.Prior.uniform(["only"]), 0.5, 5))
    yield "survey, many categories", sv.certify(sv.survey(range(1000), 3.0))
    yield (
        "survey, the largest base",
        sv.certify(Survey(sv.Prior.uniform(["first", "second", "third"]), 9.0, 65521)),
    )


def users(mechanism: sv.Mechanism, rng: random.Random) -> Iterator[list[Category]]:
    """One record, all of them, and some: records in no particular order."""
    names = list(mechanism.categories)
    for name in names[:3] + names[-1:]:
        yield [name]
    yield names[::-1]
    some = rng.choices(names, k=7)
    yield some
    yield [names[0]] * 5 + [names[-1]] * 2 + [names[0]]
    if len(names) == 4:
        yield [names[2], names[0], names[1], names[0]]


def draws(mechanism: sv.Mechanism, seed: str, most: int = 40) -> list[dict[str, Any]]:
    """Users, their exact laws, and releases from bytes at the ends of every interval."""
    rng = random.Random(seed)
    found = []
    for records in {json.dumps(one): one for one in users(mechanism, rng)}.values():
        law = mechanism.law(records=records)
        cases = boundaries(mechanism, records)
        cases = rng.sample(cases, most) if len(cases) > most else cases
        cases.append([rng.randrange(N) for _ in range(mechanism.engine.words)])
        if isinstance(mechanism.engine, NearestEngine):
            cases += [[0], [N - 1]]
        stated = {"weights": [str(share * N**mechanism.engine.words) for share in law]}
        found.append(
            {
                "records": records,
                **(stated if few(mechanism) else {}),
                "draws": [drawn(mechanism, records, words, rng) for words in cases],
            }
        )
    return found


def few(mechanism: sv.Mechanism) -> bool:
    """Whether a law is short enough to be written down."""
    return not isinstance(mechanism.engine, SurveyEngine) or len(mechanism.answers) <= 30


def counted(mechanism: sv.Mechanism) -> list[dict[str, Any]]:
    """Users who give counts instead of records."""
    rng, found = random.Random("counts"), []
    n = len(mechanism.categories)
    some = [[1, 2**53 - 2], [3, 0, 4, 1], [10**15, 1, 10**15, 7]]
    if isinstance(mechanism.engine, NearestEngine):  # every one of 41 binary digits is needed
        some.append([2**50 + 12345, 2**49 + 54321, 3 * 2**40 + 6789, 2**50 - 1])
    for counts in (one + [0] * n for one in some):
        p = np.array(counts[:n], dtype=np.int64)
        law, cases = mechanism.law(p=p), []
        for _ in range(4):
            data = rng.randbytes(8 * mechanism.engine.words)
            cases.append({"bytes": data.hex(), "released": from_bytes(mechanism, data, p=p)})
        found.append(
            {
                "counts": [[name, int(k)] for name, k in zip(mechanism.categories, p, strict=True)],
                **({"weights": [str(x * N**mechanism.engine.words) for x in law]} if few(mechanism) else {}),
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
        law = [int(share * N) for share in mechanism.law(records=records)]
        if isinstance(engine, NearestEngine):
            return [[word] for word in ends(accumulate(law))]
        own = {mechanism.index[record] for record in records}
        base = [unit if i in own else engine.box.low[i] for i, unit in enumerate(law)]
        above = [unit - least for unit, least in zip(law, base, strict=True)]
        return [[word] for word in ends(accumulate([*base, *above]))]
    places = sorted(mechanism.index[record] for record in records)
    cases = []
    for number, place in enumerate(places):
        first, after = -(-number * N // len(places)), -(-(number + 1) * N // len(places))
        for chosen in {first, after - 1}:
            if isinstance(engine, KernelEngine):
                cases += [[chosen, *rest] for rest in kernel_words(engine, place)]
            elif isinstance(engine, ResponseEngine):
                cases += [[chosen, word] for word in response_words(engine, place)]
            elif isinstance(engine, SurveyEngine):
                sigma = engine.questions
                some = {0, 1, sigma // 2, sigma - 1} & set(range(sigma))
                asked = [w for s in some for w in ends([-(-s * N // sigma), -(-(s + 1) * N // sigma)])]
                answers = {1, 2, engine.base // 2, engine.base}
                words = ends(engine.own + (j - 1) * engine.other for j in answers)
                cases += [[chosen, one, word] for one in asked for word in words]
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


def unknown_users(mechanism: sv.Mechanism) -> list[dict[str, Any]]:
    """Users with unknown records or without any: released by default, refused where that is asked for."""
    name = mechanism.categories[0]
    other: Any = str(name) if isinstance(name, int) else 1
    return [
        {"records": []},
        {"records": ["nowhere", name, "nowhere"]},
        {"records": [name, other]},
        {"records": ["nowhere", other]},
        {"counts": [[name, 0]]},
        {"counts": [["nowhere", 1 << 52], [name, 0]]},
        {"counts": [["nowhere", 2**53 - 1], [name, 2]]},
    ]


def silent(mechanism: sv.Mechanism) -> list[dict[str, Any]]:
    """Those users with what they release by default, and the exact law of the first two."""
    rng, found = random.Random("silent"), []
    middle = list(accumulate(mechanism.engine.prior_weights()))[len(mechanism.categories) // 2]
    for number, user in enumerate(unknown_users(mechanism)):
        pairs = [(name, 1) for name in user["records"]] if "records" in user else user["counts"]
        records = [name for name, count in pairs if count and known(mechanism, name)]
        cases = [[rng.randrange(N) for _ in range(mechanism.engine.words)]]
        if not records:
            cases += [[min(word, N - 1), *cases[0][1:]] for word in (middle - 1, middle)]
        held = {**user, "draws": [drawn(mechanism, records, words, rng) for words in cases]}
        if number < 2 and len(mechanism.categories) <= 100 and few(mechanism):
            law = mechanism.law(records=records)
            held["weights"] = [str(share * N**mechanism.engine.words) for share in law]
        found.append(held)
    return found


def known(mechanism: sv.Mechanism, name: Any) -> bool:
    """Whether a name is a category, text and numbers being different."""
    return any(type(one) is type(name) and one == name for one in mechanism.categories)


def shared(mechanism: sv.Mechanism) -> list[dict[str, Any]]:
    """Users who give a distribution in doubles, also one without mass."""
    rng, n, found = random.Random("shared"), len(mechanism.categories), []
    for parts in ([1, 2, 5], [8], [0]):
        p = [part / 8 for part in parts[:n]] + [0.0] * (n - len(parts))
        p[0] += 1 - sum(p) if sum(p) else 0.0
        cases = [rng.randbytes(8 * mechanism.engine.words) for _ in range(2)]
        law = [str(share * N**mechanism.engine.words) for share in mechanism.law(p=np.array(p))]
        draws = [{"bytes": data.hex(), "released": from_bytes(mechanism, data, p=p)} for data in cases]
        found.append({"shares": p, **({"weights": law} if few(mechanism) else {}), "draws": draws})
    return found


def refused_users(mechanism: sv.Mechanism) -> list[dict[str, Any]]:
    """Users whose data are malformed; and those who are refused with unknown="error" only."""
    name, more = mechanism.categories[0], mechanism.categories[1:2]
    wrong: list[Any] = [[[name, -1]], [[name, 1.5]], [[name, 1 << 53]]]
    wrong += [
        pairs for other in more for pairs in ([[name, -1], [other, 2]], [[name, 1], [other, 2**53 - 1]])
    ]
    return [
        *({"counts": pairs} for pairs in wrong),
        *({**user, "unknown": "error"} for user in unknown_users(mechanism)),
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
