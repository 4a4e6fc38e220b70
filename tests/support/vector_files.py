"""Documents that must be accepted or refused, each with its reason: `make_vectors` writes them.

Every refused file has one fault, and where the fault is not the digest, the digest is right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from vector_draws import FOUR, N, certified, signed, without_room

import sottovoce as sv
from sottovoce.core.arithmetic import exp_below
from sottovoce.release.file import ANY, parse
from sottovoce.release.mechanism import digest_of, fraction_text
from sottovoce.samplers.survey import Survey

Plain = dict[str, Any]
BOX = certified("kernel_clip", FOUR, 1.0).document()
KERNEL = certified("minimax_kernel", FOUR, 1.0).document()
RESPONSE = certified("randomized_response", FOUR, 1.0).document()
SURVEY = sv.certify(Survey(sv.Prior.uniform(["a", "b", "c", "d"]), 1.0, 3)).document()
WHOLE = certified("kernel_clip", sv.Prior([0, 5, -7], [0.5, 0.3, 0.2]), 1.0).document()
SMALL = {name: certified(name, sv.Prior(["a", "b"], [0.4, 0.6]), 1.0).document() for name in sv.SAMPLERS}
UNIT = Fraction(1, 1 << 64)


def changed(plain: Plain, **fields: Any) -> Plain:
    """Another document; a field that is None is taken away."""
    return {key: value for key, value in {**plain, **fields}.items() if value is not None}


def moved(plain: Plain, name: str, *steps: tuple[int, int]) -> Plain:
    """Weights changed by so many units at so many positions."""
    values = list(plain[name])
    for place, units in steps:
        values[place] = str(int(values[place]) + units)
    return {**plain, name: values}


def grouped(members: dict[str, Plain], /, **fields: Any) -> Plain:
    """A file of groups without its digest."""
    each = {name: {**one, "digest": digest_of(one)} for name, one in members.items()}
    return changed({"format": "sottovoce-mechanisms", "version": 1, "by": "region", "groups": each}, **fields)


NAMES = ["__proto__", "constructor", "\uff21", "😀", "north", "a b", "😀" * 100]
GROUPS = {name: SMALL[kind] for name, kind in zip(NAMES, sv.SAMPLERS, strict=False)}


def honest(plain: Plain) -> Plain:
    """A box that claims about its prior what is true."""
    ratio = Fraction(plain["ratio"])
    rows = [(int(a), int(q)) for a, q in zip(plain["low"], plain["prior"], strict=True)]
    return {**plain, "keeps_prior": all(a <= q <= min(int(ratio * a), N) for a, q in rows)}


def passes(plain: Plain) -> bool:
    try:
        parse(signed(plain), "a vector", ANY)
    except sv.errors.SottovoceError:
        return False
    return True


def edge(make: Callable[[int], Plain], most: int) -> tuple[Plain, Plain]:
    """The last document that certifies, and the first that does not, as a number of units grows."""
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if passes(make(middle)) else (least, middle)
    if not passes(make(least)) or passes(make(most)):
        raise AssertionError("an edge lies between a document that certifies and one that does not")
    return make(least), make(most)


def kernel_of(weights: list[int], design: float, epsilon: float) -> Plain:
    """A kernel made for one ε and claimed for a larger one, so that its weights have room to move."""
    prior = sv.Prior([f"c{i}" for i in range(len(weights))], [w / sum(weights) for w in weights])
    plain = certified("minimax_kernel", prior, design).document()
    exact = Fraction(epsilon)
    return {**plain, "epsilon": fraction_text(exact), "ratio": fraction_text(exp_below(exact))}


def own_moved(plain: Plain, j: int, sign: int, units: int) -> Plain:
    return clamp(moved(plain, "own", (j, sign * units)))


def low_moved(plain: Plain, j: int, sign: int, units: int) -> Plain:
    """A floor moved; the last row still adds up to N."""
    last = len(plain["own"]) - 1
    return clamp(moved(moved(plain, "low", (j, sign * units)), "own", (last, -sign * units)))


def other_moved(k: int, sign: int, units: int) -> Plain:
    """A response on k categories, beginning at equal weights."""
    other = N // k + sign * units
    weights = {"own": str(N - (k - 1) * other), "other": str(other)}
    return clamp(changed(RESPONSE, kept=list(range(k)), keeps_prior=False, **weights))


def edges() -> Iterator[tuple[str, tuple[Plain, Plain]]]:
    """Pairs a unit apart on both sides of a certificate."""
    for title, plain in [
        ("two", kernel_of([2, 5], 0.7, 1.0)),
        ("three", kernel_of([1, 2, 5], 0.9, 1.0)),
        ("four", kernel_of([3, 3, 4, 20], 1.5, 1.6)),
    ]:
        for j in range(len(plain["own"]) - 1):
            for sign, word in ((1, "up"), (-1, "down")):
                yield f"kernel of {title}, own {j} {word}", edge(partial(own_moved, plain, j, sign), N)
                yield f"kernel of {title}, low {j} {word}", edge(partial(low_moved, plain, j, sign), N)
    for k in (2, 4):
        yield f"response, {k} kept, own too large", edge(partial(other_moved, k, -1), N // k)
        yield f"response, {k} kept, other too large", edge(partial(other_moved, k, 1), N // k)
    even = {**EVEN, "keeps_prior": True}
    yield "box, caps too small", edge(lambda d: honest(with_low(even, N // 4 - d)), N // 4)
    full = moved({**with_low(even, N // 4), "keeps_prior": False}, "prior", (0, 9), (1, -9))
    yield "box, floors too large", edge(lambda d: moved(full, "low", (0, d - 5)), 100)


EVEN = {**BOX, "prior": [str(N // 4)] * 4, "low": [str(N // 8)] * 4, "keeps_prior": True}
"""A box with room on both sides."""


def with_floor(units: int) -> Plain:
    """A box with one floor of so many units."""
    return {**EVEN, "low": [str(units), *[str(N // 4)] * 3]}


def units(own: int) -> Plain:
    """A kernel of two categories, the first with weights of a few units."""
    two = kernel_of([2, 5], 0.7, 1.0)
    return {**two, "low": ["1", "1"], "own": [str(own), str(N - 1)]}


def with_low(plain: Plain, low: int) -> Plain:
    return {**plain, "low": [str(low)] * len(plain["low"])}


def clamp(plain: Plain) -> Plain:
    """A document whose weights all have the form of a whole; those below 0 become 0."""
    for name in ("low", "own", "other"):
        value = plain.get(name, [])
        wholes = [str(max(int(one), 0)) for one in (value if isinstance(value, list) else [value])]
        if name in plain:
            plain = {**plain, name: wholes if isinstance(value, list) else wholes[0]}
    return plain


def wrong() -> Iterator[tuple[str, str, Plain]]:
    """Name, reason and document, to be signed."""
    fields = {"box": BOX, "kernel": KERNEL, "response": RESPONSE, "survey": SURVEY}
    for kind, plain in fields.items():
        for key in plain:
            if key not in ("format", "version", "bits", "kind"):
                yield f"{kind} without {key}", "fields", changed(plain, **{key: None})
        yield f"{kind} with another field", "fields", changed(plain, comment="x")
        ratio = Fraction(plain["ratio"])
        for title, value in [
            ("a hair too large", ratio + UNIT),
            ("a hair too small", ratio - UNIT),
            ("twice as large", 2 * ratio),
            ("too precise", ratio + UNIT / 2),
        ]:
            yield f"{kind}, ratio {title}", "ratio", changed(plain, ratio=fraction_text(value))
        twice = f"{2 * ratio.numerator}/{2 * ratio.denominator}"
        yield f"{kind}, ratio not in lowest terms", "value", changed(plain, ratio=twice)
        yield f"{kind}, epsilon smaller", "ratio", changed(plain, epsilon="999999999/1000000000")
        yield f"{kind}, keeps_prior", "keeps_prior", changed(plain, keeps_prior=not plain["keeps_prior"])
        if kind == "survey":
            continue
        prior = plain["prior"]
        yield f"{kind}, prior adds up to N + 1", "certificate", moved(plain, "prior", (3, 1))
        yield f"{kind}, prior adds up to N - 1", "certificate", moved(plain, "prior", (3, -1))
        first = int(prior[0])
        yield f"{kind}, prior zero", "certificate", moved(plain, "prior", (0, -first), (3, first))
        yield f"{kind}, prior too short", "value", changed(plain, prior=prior[:3])
        yield f"{kind}, prior too long", "value", changed(plain, prior=[*prior, "0"])
        yield f"{kind}, prior a number", "value", changed(plain, prior=[int(p) >> 20 for p in prior])
        yield f"{kind}, prior no list", "value", changed(plain, prior="1")
        yield (
            f"{kind}, prior with a leading zero",
            "value",
            changed(plain, prior=["0" + prior[0], *prior[1:]]),
        )
        yield f"{kind}, prior with a sign", "value", changed(plain, prior=["+" + prior[0], *prior[1:]])
        yield f"{kind}, prior with a blank", "value", changed(plain, prior=[prior[0] + "\n", *prior[1:]])
        yield f"{kind}, other digits", "value", changed(plain, prior=[arabic(prior[0]), *prior[1:]])
    yield (
        "response, keeps_prior without the uniform prior",
        "keeps_prior",
        changed(RESPONSE, keeps_prior=True),
    )
    off = [str(N // 4 + 1), str(N // 4 - 1), str(N // 4), str(N // 4)]
    yield "response, keeps_prior two units off", "keeps_prior", changed(RESPONSE, prior=off, keeps_prior=True)
    some = {"kept": [0, 1, 2], "own": str(N - 2 * (N // 4)), "other": str(N // 4), "prior": [str(N // 4)] * 4}
    yield (
        "response, keeps_prior with a category dropped",
        "keeps_prior",
        changed(RESPONSE, **some, keeps_prior=True),
    )
    tight = without_room()
    yield "box, floor zero", "certificate", honest(with_floor(0))
    yield "box, floors above N", "certificate", honest(moved(tight, "low", (0, 1)))
    yield "box, caps below N", "certificate", honest(moved(tight, "low", (0, -1)))
    yield "box, low too large a number", "value", changed(BOX, low=[str(N + 1), *BOX["low"][1:]])
    yield "kernel, prior descending", "certificate", swapped(KERNEL, "prior", 1, 2)
    loose = kernel_of([3, 3, 4, 20], 1.5, 1.6)
    yield "kernel, prior descending by units", "certificate", moved(loose, "prior", (0, 9), (1, -9))
    yield "kernel, last floor above N", "value", changed(KERNEL, low=[*KERNEL["low"][:3], str(N + 1)])
    yield "kernel, last floor of 20 digits", "value", changed(KERNEL, low=[*KERNEL["low"][:3], "9" * 20])
    yield "kernel, own three times low", "certificate", units(3)
    yield "kernel, own of the last row a unit more", "certificate", moved(KERNEL, "own", (3, 1))
    yield "kernel, own of the last row a unit less", "certificate", moved(KERNEL, "own", (3, -1))
    yield "kernel, floor zero", "certificate", moved(KERNEL, "low", (0, -int(KERNEL["low"][0])))
    yield "kernel, last floor zero", "certificate", moved(KERNEL, "low", (3, -int(KERNEL["low"][3])))
    same: list[Any] = [[0, 1, 2, 2], [0, 1, 2, 4], [0, 1, 2, -1], [0, 1, 2, "3"], [0, True, 2, 3]]
    for order in (*same, [0, 1, 2], {}):
        yield f"kernel, order {json.dumps(order)}", "value", changed(KERNEL, order=order)
    for kept in (*same, [], "0"):
        yield f"response, kept {json.dumps(kept)}", "value", changed(RESPONSE, kept=kept)
    yield "response, own a unit more", "certificate", changed(RESPONSE, own=str(int(RESPONSE["own"]) + 1))
    yield "response, own a list", "value", changed(RESPONSE, own=[RESPONSE["own"]])
    yield (
        "response, one kept, own below N",
        "certificate",
        changed(RESPONSE, kept=[1], own=str(N - 1), other="1"),
    )
    for other in (str(N + 1), "9" * 20, "9" * 21, ["0"], 0, "-0", ""):
        one = {"kept": [1], "own": str(N), "other": other}
        yield f"response, one kept, other {json.dumps(other)}", "value", changed(RESPONSE, **one)
    empty: list[Any] = [[], {}, ""]
    for kept in empty:
        none = {"kept": kept, "own": str(N), "other": "0"}
        yield f"response, nothing kept, {json.dumps(kept)}", "value", changed(RESPONSE, **none)
    zero = {"kept": [0, 1], "own": str(N), "other": "0"}
    yield "response, other zero", "certificate", changed(RESPONSE, **zero)
    for base in (1, 4, 9, 251 * 257, 65537):
        whole = {"own": str(N - (base - 1) * (N // base)), "other": str(N // base)}
        yield f"survey, base {base}", "certificate", changed(SURVEY, base=base, **whole)
    for odd in ("3", True, [3], -3):
        yield f"survey, base {json.dumps(odd)}", "value", changed(SURVEY, base=odd)
    yield "survey, own a unit more", "certificate", changed(SURVEY, own=str(int(SURVEY["own"]) + 1))
    yield "survey, own a list", "value", changed(SURVEY, own=[SURVEY["own"]])
    yield "survey, other a number", "value", changed(SURVEY, other=int(SURVEY["other"]))
    yield "survey, other zero", "certificate", changed(SURVEY, own=str(N), other="0")
    yield "survey, own zero", "certificate", changed(SURVEY, own="0", other=str(N // 2))
    less = int(SURVEY["other"]) - (1 << 20)
    yield (
        "survey, own beyond the ratio",
        "certificate",
        changed(SURVEY, other=str(less), own=str(N - 2 * less)),
    )
    yield "survey, other beyond the ratio", "certificate", changed(SURVEY, other=str(N // 2 - 5), own="10")
    yield from wrong_values()


def wrong_values() -> Iterator[tuple[str, str, Plain]]:
    """Fields of every kind, shown on one."""
    for epsilon in (
        "0/1",
        "-1/1",
        "1",
        "1.0",
        "1/0",
        "01/1",
        "2/2",
        "1/1 ",
        "1/1\n",
        " 1/1",
        "1/-1",
        1,
        "١/1",
        "1/1/1",
    ):
        yield f"epsilon {json.dumps(epsilon)}", "value", changed(BOX, epsilon=epsilon)
    yield "epsilon above 100", "value", aimed(BOX, Fraction(101))
    yield "epsilon a hair above 100", "value", aimed(BOX, 100 + Fraction(1, 1 << 40))
    yield "epsilon with 401 digits below", "value", {**without_room(), "epsilon": f"1/{10**400}"}
    yield "epsilon with 81 digits above", "value", aimed(EVEN, Fraction(10**80 + 1, 10**80 + 3))
    yield "epsilon zero", "value", {**without_room(), "epsilon": "0/1"}
    yield "ratio a number", "value", changed(BOX, ratio=3)
    for title, names in [
        ("none", []),
        ("twice", ["a", "b", "c", "c"]),
        ("mixed", ["a", "b", "c", 1]),
        ("a list", [["a"], "b", "c", "d"]),
        ("true", [1, 2, 3, True]),
        ("null", ["a", "b", "c", None]),
        ("2^53", [1, 2, 3, 1 << 53]),
        ("-2^53", [1, 2, 3, -(1 << 53)]),
        ("half a surrogate pair", ["a", "b", "c", "\ud83d"]),
        ("the first half", ["a", "b", "c", "\ud800"]),
        ("the last half", ["a", "b", "c", "\udfff"]),
        ("the other half", ["a", "b", "c\ude00", "d"]),
        ("pair over two names", ["a", "b", "\ud83d", "\ude00"]),
        ("too few", ["a", "b", "c"]),
        ("an object", {"a": 1, "b": 2, "c": 3, "d": 4}),
    ]:
        yield f"categories: {title}", "value", changed(BOX, categories=names)
    for sampler in (
        "",
        "x" * 101,
        "a\nb",
        "a\u007f",
        "\u00a0",
        "a\u200b",
        "\ue000",
        "\u2028",
        "\ud800",
        5,
        ["x"],
    ):
        yield f"sampler {json.dumps(sampler)[:20]}", "value", changed(BOX, sampler=sampler)
    wrong_options: list[Any] = [
        [],
        "",
        {"a": 1},
        {"": "x"},
        {"a": ""},
        {"a\t": "x"},
        {"a": "x" * 101},
        {"a": {"b": "c"}},
    ]
    for options in wrong_options:
        yield f"options {json.dumps(options)[:20]}", "value", changed(BOX, options=options)
    for keeps in ("true", 1, 0, [True]):
        yield f"keeps_prior {json.dumps(keeps)}", "value", changed(BOX, keeps_prior=keeps)
    for mark in (True, "public", "Users", ["users"]):
        yield f"provenance {json.dumps(mark)}", "value", changed(BOX, provenance=mark)
    good = BOX["prior_digest"]
    for digest in (good[:-1], good + "0", "A" * 64, "g" * 64, good + "\n", 5, ""):
        yield f"prior_digest {json.dumps(digest)[-9:]}", "value", changed(BOX, prior_digest=digest)
    for key, values in {
        "version": [0, 2, True, "1"],
        "bits": [61, 63, True, "62"],
        "format": ["sottovoce", 1, "Sottovoce-mechanism"],
        "kind": ["Box", "boxes", 1, ["box"], "__proto__", "toString"],
    }.items():
        for value in values:
            yield f"{key} {json.dumps(value)}", "format", changed(BOX, **{key: value})
        yield f"no {key}", "format", changed(BOX, **{key: None})
    yield "fields of a kernel, called a box", "fields", changed(KERNEL, kind="box")
    yield "fields of a box, called a kernel", "fields", changed(BOX, kind="kernel")


def arabic(digits: str) -> str:
    """The same number in digits that are not ASCII."""
    return digits.translate({ord("0") + i: 0x660 + i for i in range(10)})


def aimed(plain: Plain, epsilon: Fraction) -> Plain:
    """The same weights with another ε and the ratio that belongs to it."""
    return {**plain, "epsilon": fraction_text(epsilon), "ratio": fraction_text(exp_below(epsilon))}


def swapped(plain: Plain, name: str, i: int, j: int) -> Plain:
    values = list(plain[name])
    values[i], values[j] = values[j], values[i]
    return {**plain, name: values}
