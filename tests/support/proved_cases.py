"""Random mechanisms made from integers, for the comparison of Python's check with the proved one.

A case is a document, as a mechanism file has it, of any kind and of 3 to 62 bits. Some are certified, some
are a unit away from it, some are broken. `cases` makes as many as are asked for, the same ones every time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from sottovoce.core.arithmetic import exp_below, integer_kernel
from sottovoce.errors import SottovoceError
from sottovoce.release.file import Fields, read_fraction
from sottovoce.release.mechanism import ENGINES, Mechanism, fraction_text, joined_wholes

Plain = dict[str, Any]
Step = Callable[[int], Plain]
UP, DOWN = Context(prec=22, rounding=ROUND_CEILING), Context(prec=22, rounding=ROUND_FLOOR)
ROUND_RATIOS = [Fraction(UP.next_plus(UP.ln(Decimal(text)))) for text in ("1.25", "1.5", "2", "3", "4")]
"""ε a hair above the logarithm of a small fraction, which is then A: largest = A·smallest can happen."""
EPSILONS = [
    Fraction(1, 1000), Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(0.3),
    Fraction(7, 2), Fraction(8), Fraction(30), Fraction(100), *ROUND_RATIOS,
]  # fmt: skip
STREAMS = ("stream", "nearest-stream")
LISTS = {
    "box": ("prior", "low"), "nearest": ("prior", "low"), "kernel": ("prior", "low", "own"),
    "response": ("prior",), "stream": ("prior",), "nearest-stream": ("prior",), "survey": (),
}  # fmt: skip
"""The lists of weights of each kind."""
AROUND_THE_LARGEST = [
    Fraction(UP.next_plus(UP.ln(Decimal(1 << 40)))), Fraction(DOWN.next_minus(DOWN.ln(Decimal(1 << 40))))
]  # fmt: skip
"""ε a hair above and below that of A = 2^40, which a stream does not take."""
_ENGINES = {engine.kind: engine for engine in ENGINES}


def accepts(plain: Plain) -> bool:
    """What the library says of a document's integers: it reads them and checks their certificate."""
    try:
        size, ratio = len(plain["categories"]), read_fraction(plain["ratio"], "case")
        engine = _ENGINES[plain["kind"]].read(
            Fields(plain, "case", size, plain["bits"], joined_wholes(plain)), ratio
        )
        Mechanism(
            sampler=plain["sampler"],
            options={},
            categories=tuple(plain["categories"]),
            epsilon=read_fraction(plain["epsilon"], "case"),
            ratio=ratio,
            engine=engine,
            keeps_prior=plain["keeps_prior"],
            prior_digest="",
            bits=plain["bits"],
        )
    except SottovoceError:
        return False
    return True


@cache
def cases(count: int, seed: int) -> list[Plain]:
    """So many documents: a third as they were made, a third with a few changes, a third at an edge."""
    rng = random.Random(seed)
    made: list[Plain] = []
    while len(made) < count:
        plain = some_document(rng)
        made.append(plain)
        changed = plain
        for _ in range(rng.choice([1, 1, 2])):
            changed = rng.choice(list(changes(changed, rng))) if is_complete(changed) else changed
        made.append(changed)
        ways = list(steps(plain, rng)) if accepts(plain) else []
        made += at_the_edge(rng.choice(ways)) if ways else []
    return made[:count]


def some_document(rng: random.Random) -> Plain:
    """A document of any kind, near its certificate."""
    bits, epsilon = rng.choice([3, 5, 8, 12, 30, 62, 62]), rng.choice(EPSILONS)
    makers = [some_box, some_kernel, some_kernel, some_response, some_survey, some_survey]
    make = rng.choice([*makers, some_stream, some_stream, some_nearest])
    return honest(make(rng, bits, rng.randint(1, 6), epsilon))


def some_box(rng: random.Random, bits: int, n: int, epsilon: Fraction) -> Plain:
    """Floors whose caps add up to about N."""
    total, ratio = 1 << bits, exp_below(epsilon)
    room = rng.choice([ratio, (1 + ratio) / 2, ratio * Fraction(99, 100), Fraction(1)])
    low = [max(int(part / room), rng.choice([0, 1, 1, 1])) for part in parts(rng, total, n)]
    return heading("box", bits, n, epsilon) | {
        "prior": list(map(str, parts(rng, total, n))),
        "low": list(map(str, low)),
    }


def some_kernel(rng: random.Random, bits: int, n: int, epsilon: Fraction) -> Plain:
    """The library's recursion, with as much slack or too little."""
    total, order = 1 << bits, list(range(n))
    rng.shuffle(order)
    slack = rng.choice([Fraction(0), Fraction(1, 1 << 40), Fraction(1, 64), Fraction(1, 8), Fraction(1, 2)])
    prior = sorted(parts(rng, total, n) if rng.random() < 0.7 else [total // n] * n)
    prior[-1] += total - sum(prior)
    kernel = integer_kernel(prior, exp_below(epsilon), total, slack)
    units = {"prior": kernel.prior, "low": kernel.low, "own": kernel.own}
    lists = {name: [str(max(value, 0)) for value in values] for name, values in units.items()}
    return heading("kernel", bits, n, epsilon) | {"order": order} | lists


def some_response(rng: random.Random, bits: int, n: int, epsilon: Fraction) -> Plain:
    """Some of the categories kept, seldom one twice or one too few, and weights at the ratio or inside it."""
    total, kept = 1 << bits, rng.sample(range(n), rng.randint(1, n))
    ratio = exp_below(epsilon) * rng.choice([Fraction(1), Fraction(1), Fraction(1, 2)])
    other = (
        int(total / (ratio + len(kept) - 1)) + rng.choice([0, 1]) if len(kept) > 1 else rng.choice([0, 1, 5])
    )
    own = max(total - (len(kept) - 1) * other, 0)
    prior = parts(rng, total, n) if rng.random() < 0.6 else [total // n + (i < total % n) for i in range(n)]
    units = {"own": str(own), "other": str(other), "prior": list(map(str, prior))}
    twice_or_less = [[kept[-1], *kept[1:]], kept[:-1]]
    kept = rng.choice([*[kept] * 8, *twice_or_less])
    return heading("response", bits, n, epsilon) | {"kept": kept} | units


def some_survey(rng: random.Random, bits: int, n: int, epsilon: Fraction) -> Plain:
    """A base that is a prime or not, and weights at the ratio or inside it."""
    total, base = 1 << bits, rng.choice([2, 3, 5, 7, 11, 4, 9, 1, 251])
    ratio = exp_below(epsilon) * rng.choice([Fraction(1), Fraction(1), Fraction(1, 2)])
    other = int(total / (ratio + base - 1)) + rng.choice([0, 1])
    own = max(total - (base - 1) * other, 0)
    names = {"categories": list(range(n * rng.choice([1, 1, 3, 40])))}
    units = {"base": base, "own": str(own), "other": str(other), "keeps_prior": False}
    return heading("survey", bits, n, epsilon) | names | units


def some_stream(rng: random.Random, bits: int, n: int, epsilon: Fraction) -> Plain:
    """A start at an end or between, settings at the ends of their ranges, and A below 2^40 or not."""
    if rng.random() < 0.4:
        epsilon = rng.choice(AROUND_THE_LARGEST)
    ratio, unit = exp_below(epsilon), 22 * bits // 62
    one = 1 << max(62 - int(ratio).bit_length(), 0)
    most = int(ratio * one)
    units = {
        "prior": list(map(str, parts(rng, 1 << (bits - unit), n))),
        "start": str(rng.choice([one, most, rng.randint(one, most)])),
        "pace": [rng.choice([0, 256, rng.randint(0, 256)]) for _ in range(rng.choice([1, 1, 2, 5]))],
        "persistence": rng.choice([0, 0, 0, 1, 512, 1023]),
    }
    made = heading("stream", bits, n, epsilon) | units
    return made if rng.random() < 0.6 else {**made, "kind": "nearest-stream", **flat(n)}


def some_nearest(rng: random.Random, bits: int, n: int, epsilon: Fraction) -> Plain:
    """A box, and a geometry."""
    return {**some_box(rng, bits, n, epsilon), "kind": "nearest", **flat(n)}


def flat(n: int) -> Plain:
    """The geometry in which all categories are as far from each other."""
    return {"parents": [n] * n, "lengths": [1] * n}


def heading(kind: str, bits: int, n: int, epsilon: Fraction) -> Plain:
    """What every document has."""
    return {
        "kind": kind,
        "bits": bits,
        "sampler": "made",
        "categories": list(range(n)),
        "epsilon": fraction_text(epsilon),
        "ratio": fraction_text(exp_below(epsilon)),
        "keeps_prior": True,
    }


def parts(rng: random.Random, total: int, n: int) -> list[int]:
    """n whole numbers that add up to the total, at least 1 each where there are so many units."""
    raw = [rng.random() ** rng.choice([0, 1, 6]) + 1e-3 for _ in range(n)]
    whole = [max(int(Fraction(one) / Fraction(sum(raw)) * total), 1) for one in raw]
    whole[-1] = max(whole[-1] + total - sum(whole), 0)
    return whole


def honest(plain: Plain) -> Plain:
    """The same document with the claim about the prior that makes it acceptable, if one does."""
    other = {**plain, "keeps_prior": not plain["keeps_prior"]}
    return other if not accepts(plain) and accepts(other) else plain


def is_complete(plain: Plain) -> bool:
    """Whether no list lost an entry."""
    n = len(plain["categories"])
    lists = [plain[name] for name in ("prior", "low", "own", "order") if isinstance(plain.get(name), list)]
    return all(len(values) == n for values in lists) and [] not in (plain.get("kept"), plain.get("pace"))


def moved(plain: Plain, *changes: tuple[str, int, int]) -> Plain:
    """Weights changed by so many units: (field, position, units); never below 0."""
    lists = {name: [int(unit) for unit in plain[name]] for name, _, _ in changes}
    for name, place, units in changes:
        lists[name][place] = max(lists[name][place] + units, 0)
    return {**plain, **{name: list(map(str, values)) for name, values in lists.items()}}


def steps(plain: Plain, rng: random.Random) -> Iterator[Step]:
    """Directions in which a document can be moved by any number of units without breaking a sum."""
    n, sign = len(plain["categories"]), rng.choice([1, -1])
    i, j = rng.randrange(n), rng.randrange(n)
    if i != j and "prior" in plain:
        yield lambda units: honest(moved(plain, ("prior", i, units), ("prior", j, -units)))
    if plain["kind"] in ("box", "nearest"):
        yield lambda units: honest(moved(plain, ("low", i, sign * units)))
    if plain["kind"] == "kernel" and n > 1:
        rank = rng.randrange(n - 1)
        yield lambda units: moved(plain, ("own", rank, sign * units))
        yield lambda units: moved(plain, ("low", rank, sign * units), ("own", n - 1, -sign * units))
    if plain["kind"] in STREAMS:
        start, persistence = int(plain["start"]), plain["persistence"]
        yield lambda units: {**plain, "start": str(max(start + sign * units, 0))}
        yield lambda units: honest({**plain, "persistence": persistence + sign * units})
        pace, last = plain["pace"][:-1], plain["pace"][-1]
        yield lambda units: {**plain, "pace": [*pace, last + sign * units]}
    if plain["kind"] in ("response", "survey"):
        k = plain["base"] if plain["kind"] == "survey" else len(plain["kept"])
        own, other = int(plain["own"]), int(plain["other"])
        yield lambda units: honest(
            {
                **plain,
                "own": str(max(own - sign * (k - 1) * units, 0)),
                "other": str(max(other + sign * units, 0)),
            }
        )


def changes(plain: Plain, rng: random.Random) -> Iterator[Plain]:
    """A document with one thing changed, mostly by a unit."""
    n, units = len(plain["categories"]), rng.choice([1, 1, 1, -1, -1, -1, 2, -2, 1 << rng.randrange(62)])
    ratio, tick = Fraction(plain["ratio"]), Fraction(rng.choice([1, -1]), 1 << 64)
    yield {**plain, "ratio": fraction_text(ratio + tick)}
    yield {**plain, "keeps_prior": not plain["keeps_prior"]}
    if plain["kind"] == "survey":
        yield {**plain, "base": max(plain["base"] + rng.choice([1, -1, 2]), 0)}
    if plain["kind"] in STREAMS:
        start = int(plain["start"]) << 1 if rng.random() < 0.5 else int(plain["start"]) >> 1
        yield {**plain, "start": str(start)}
        yield {**plain, "pace": []}
        yield {**plain, "pace": plain["pace"][:1] * rng.choice([4096, 4097])}
        yield {**plain, "pace": [*plain["pace"], rng.choice([-1, 0, 256, 257])]}
        yield honest({**plain, "persistence": rng.choice([-1, 0, 1, 1023, 1024])})
    for name in LISTS[plain["kind"]]:
        yield honest(moved(plain, (name, rng.randrange(n), units)))
        yield honest(moved(plain, (name, n - 1, units)))
        yield honest({**plain, name: [*plain[name][:-1], "0"]})
        yield honest({**plain, name: ["0", *plain[name][1:]]})
        yield {**plain, name: rng.sample(plain[name], n)}
        yield {**plain, name: plain[name][:-1]} if n > 1 else plain
    for name in ("order", "kept"):
        if name in plain:
            place = rng.randrange(len(plain[name]))
            another = rng.choice([rng.randrange(n), n, -1])
            yield {**plain, name: [*plain[name][:place], another, *plain[name][place + 1 :]]}
            yield {**plain, name: plain[name][:-1]}
    if "order" in plain and n > 2:
        yield {**plain, "order": [0 if rank == 1 else rank for rank in plain["order"]]}
    for name in ("own", "other"):
        if plain["kind"] in ("response", "survey"):
            yield honest({**plain, name: str(max(int(plain[name]) + units, 0))})
    if n > 1 and "prior" in plain:
        i, j = rng.sample(range(n), 2)
        amount = int(plain["prior"][j]) if rng.random() < 0.5 else abs(units)
        yield honest(moved(plain, ("prior", i, amount), ("prior", j, -amount)))
    yield from (step(abs(units)) for step in steps(plain, rng))


def at_the_edge(step: Step) -> list[Plain]:
    """The last document that the library accepts in a direction, the first that it refuses, and beyond."""
    size = 1
    while size < 1 << 62 and accepts(step(size)):
        size *= 2
    inside, outside = size // 2, size
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if accepts(step(middle)) else (inside, middle)
    return [step(max(inside - 1, 0)), step(inside), step(outside), step(outside + 1)]
