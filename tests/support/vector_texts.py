"""Files whose text, digest, groups or policy is at stake, and reports: `make_vectors` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import vector_nearest
from vector_draws import N, certified, signed, without_room
from vector_files import (
    BOX,
    EVEN,
    GROUPS,
    KERNEL,
    RESPONSE,
    SMALL,
    WHOLE,
    aimed,
    changed,
    edges,
    grouped,
    honest,
    units,
    with_floor,
    with_low,
    wrong,
)

import sottovoce as sv
from sottovoce.release.mechanism import digest_of


def text_of(value: str | bytes) -> dict[str, str]:
    """A file as text, or as hexadecimal digits where it is not UTF-8."""
    return {"bytes": value.hex()} if isinstance(value, bytes) else {"text": value}


def accepted() -> Iterator[dict[str, Any]]:
    """Files that a client must take."""
    for name, (good, _) in edges():
        yield {"name": f"at the edge: {name}", "text": signed(good)}
    names = changed(BOX, categories=["é", "e\u0301", "", "\ufeff"])
    pretty, plain = json.dumps(json.loads(signed(BOX)), indent=3), signed(names)
    yield {"name": "written with blanks", "text": f"\r\n\t {pretty} \n"}
    yield {"name": "written with escapes", "text": plain.replace('"format"', '"\\u0066ormat"')}
    yield {"name": "keys in another order", "text": json.dumps(dict(sorted(json.loads(plain).items())[::-1]))}
    yield {"name": "an escaped pair", "text": json.dumps(json.loads(signed(changed(BOX, sampler="😀 x"))))}
    yield {"name": "an escaped slash", "text": signed(BOX).replace('"1/1"', '"1\\/1"')}
    yield {"name": "as long as it may be", "text": signed(BOX), **FOUR}
    yield {"name": "as long as it may be, in bytes", "text": wide(), **FOUR}
    yield {"name": "a label of 100 characters", "text": signed(changed(BOX, sampler="😀" * 100))}
    yield {
        "name": "names that a parser may take for numbers",
        "text": signed(changed(BOX, categories=["-0", "1.0", "1e3", "01"])),
    }
    yield {"name": "epsilon 100", "text": signed(aimed(certified_box(100.0), Fraction(100)))}
    even = [str(N // 4)] * 4
    yield {
        "name": "response that keeps its prior",
        "text": signed(changed(RESPONSE, prior=even, keeps_prior=True)),
    }
    some = changed(RESPONSE, kept=[0, 1, 2], own=str(N - 2 * (N // 4)), other=str(N // 4), prior=even)
    yield {"name": "response that drops a category", "text": signed(changed(some, keeps_prior=False))}
    yield from smallest()
    three = [str(N // 3), str(N // 3), str(N // 3 + 1)]
    small = certified("randomized_response", sv.Prior(["a", "b", "c"], [1 / 3] * 3), 1.0).document()
    yield {
        "name": "response, prior a unit from even",
        "text": signed(changed(small, prior=three, keeps_prior=True)),
    }
    yield {"name": "groups", "text": signed(grouped(GROUPS))}
    yield {"name": "groups of integers", "text": signed(grouped({"1": WHOLE, "0": WHOLE}))}
    yield {"name": "groups by users", "text": signed(grouped(GROUPS, by="users"))}
    digest, mark = digest_of(BOX), changed(BOX, provenance="users")
    yield {"name": "policy: exactly this epsilon", "text": signed(BOX), "policy": {"max_epsilon": "1/1"}}
    yield {"name": "policy: exactly so many", "text": signed(BOX), "policy": {"max_categories": 4}}
    yield {"name": "policy: this digest", "text": signed(BOX), "policy": {"digests": ["0" * 64, digest]}}
    yield {"name": "policy: a public prior", "text": signed(BOX), "policy": {"provenance": "public"}}
    yield {"name": "policy: any prior", "text": signed(mark), "policy": {"provenance": "users"}}
    names = BOX["categories"]
    yield {"name": "policy: these categories", "text": signed(BOX), "policy": {"categories": names[::-1]}}
    yield {"name": "policy: a double", "text": signed(tenths()), "policy": {"max_epsilon": 0.5}}
    learned: dict[str, Any] = {"max_learned_epsilon": 0.3}
    yield {
        "name": "policy: learned at exactly this epsilon",
        "text": signed(learned_at("0.3")),
        "policy": learned,
    }
    yield {
        "name": "policy: learned at a small epsilon",
        "text": signed(learned_at("1e-05")),
        "policy": learned,
    }
    yield {"name": "policy: not learned", "text": signed(BOX), "policy": learned}
    whole = digest_of(grouped(GROUPS))
    yield {
        "name": "policy: this file of groups",
        "text": signed(grouped(GROUPS)),
        "policy": {"digests": [whole]},
    }
    most = sum(len(one["categories"]) for one in GROUPS.values())
    yield {
        "name": "policy: so many in all groups",
        "text": signed(grouped(GROUPS)),
        "policy": {"max_categories": most},
    }


def smallest() -> Iterator[dict[str, Any]]:
    """The smallest weights, ratios and numbers that are still right."""
    kernel = certified("minimax_kernel", sv.Prior(["only"], [1.0]), 1.0).document()
    tiny = {"epsilon": f"1/{10**30}", "ratio": "1/1"}
    for name, plain in {
        "box, a floor of one unit": honest(with_floor(1)),
        "box, a prior of one unit": honest({**EVEN, "prior": ["1", str(N // 2 - 1), *[str(N // 4)] * 2]}),
        "box, epsilon with 80 digits above": aimed(EVEN, Fraction(10**79 + 1, 10**79 + 3)),
        "box, epsilon with 400 digits below": {**without_room(), "epsilon": f"1/{10**399}"},
        "kernel, weights of one and two units": units(2),
        "kernel, equal weights of one unit": units(1),
        "kernel, last floor of one unit": changed(KERNEL, low=[*KERNEL["low"][:3], "1"]),
        "kernel, last floor N": changed(KERNEL, low=[*KERNEL["low"][:3], str(N)]),
        "kernel, one category and ratio 1": {**kernel, **tiny},
        "response, two kept and ratio 1": changed(
            RESPONSE, kept=[3, 1], own=str(N // 2), other=str(N // 2), **tiny
        ),
        "response, one kept and ratio 1": changed(RESPONSE, kept=[3], own=str(N), other="0", **tiny),
        "response, one kept, other N": changed(RESPONSE, kept=[3], own=str(N), other=str(N)),
    }.items():
        yield {"name": name, "text": signed(plain)}
    yield {"name": "one group", "text": signed(grouped({"a": BOX}))}
    for name, plain in vector_nearest.accepted():
        yield {"name": name, "text": signed(plain)}


def certified_box(epsilon: float) -> dict[str, Any]:
    return certified("kernel_clip", sv.Prior(["a", "b"], [0.5, 0.5]), epsilon).document()


def wide() -> str:
    """A file whose names take more bytes than characters, and more characters than UTF-16 units."""
    return signed(changed(BOX, categories=["é" * 50, "😀" * 50, "木" * 50, "x"]))


def tenths() -> dict[str, Any]:
    """A box with ε = 3/10, which is above the double 0.3."""
    return aimed(with_low(EVEN, N // 5), Fraction(3, 10))


def learned_at(epsilon: str) -> dict[str, Any]:
    """A box whose prior was learned from private reports at this ε."""
    return changed(BOX, provenance="learned", options={"learned_epsilon": epsilon})


FOUR: dict[str, Any] = {"length": 65_536 + 4 * 1_024, "policy": {"max_categories": 4}}
"""The longest file for a policy that accepts four categories."""


def refused() -> Iterator[dict[str, Any]]:
    """Files that a client must not take, each with its reason."""
    for name, (_, bad) in edges():
        yield {"name": f"beyond the edge: {name}", "reason": "certificate", "text": signed(bad)}
    for name, reason, plain in wrong():
        yield {"name": name, "reason": reason, "text": ascii_text(plain)}
    for name, reason, plain in vector_nearest.refused():
        yield {"name": name, "reason": reason, "text": signed(plain)}
    for name, value in texts():
        yield {"name": name, "reason": "text", **text_of(value)}
    for text in ("[]", "null", "true", "5", '"x"', "{}", "[{}]"):
        yield {"name": f"only {text}", "reason": "format", "text": text}
    good = signed(BOX)
    yield {"name": "a byte too long", "reason": "text", "text": good, **FOUR, "length": FOUR["length"] + 1}
    yield {
        "name": "a byte too long, not ASCII",
        "reason": "text",
        "text": wide(),
        **FOUR,
        "length": FOUR["length"] + 1,
    }
    for name, digest in [
        ("wrong", "0" * 64),
        ("in capitals", digest_of(BOX).upper()),
        ("cut", digest_of(BOX)[:32]),
        ("null", None),
        ("of another kind", digest_of(KERNEL)),
        ("with a blank", digest_of(BOX) + " "),
    ]:
        yield {"name": f"digest {name}", "reason": "digest", "text": json.dumps({**BOX, "digest": digest})}
    yield {"name": "no digest", "reason": "fields", "text": json.dumps(BOX)}
    yield {"name": "a name changed after signing", "reason": "digest", "text": good.replace("rare", "Rare")}
    yield from refused_groups()
    policies: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("epsilon a hair larger", BOX, {"max_epsilon": "999999999999999999999/1000000000000000000000"}),
        ("too many categories", BOX, {"max_categories": 3}),
        ("another digest", BOX, {"digests": ["0" * 64]}),
        ("no digest is expected", BOX, {"digests": []}),
        ("a prior from users", changed(BOX, provenance="users"), {"provenance": "public"}),
        (
            "a prior from users in a group",
            grouped({"a": BOX, "b": changed(BOX, provenance="users")}),
            {"provenance": "public"},
        ),
        ("epsilon of a group", grouped(GROUPS), {"max_epsilon": "1/2"}),
        ("too many categories in all groups", grouped({"a": BOX, "b": BOX}), {"max_categories": 7}),
        ("the digest of a group, not of the file", grouped({"a": BOX}), {"digests": [digest_of(BOX)]}),
        ("the beginning of a digest", BOX, {"digests": [digest_of(BOX)[:16]]}),
        ("a double below its epsilon", tenths(), {"max_epsilon": 0.3}),
        ("a category that is not expected", BOX, {"categories": BOX["categories"][1:]}),
        ("a category that is missing", BOX, {"categories": [*BOX["categories"], "more"]}),
        ("another category", BOX, {"categories": ["Rare", *BOX["categories"][1:]]}),
        ("numbers for texts", WHOLE, {"categories": list(map(str, WHOLE["categories"]))}),
        ("another category in a group", grouped({"a": BOX, "b": WHOLE}), {"categories": BOX["categories"]}),
        ("learned at a larger epsilon", learned_at("0.30000000000000004"), {"max_learned_epsilon": 0.3}),
        (
            "learned at an epsilon that is not stated",
            changed(BOX, provenance="learned"),
            {"max_learned_epsilon": 9},
        ),
        ("learned at an epsilon that is no number", learned_at("Infinity"), {"max_learned_epsilon": 9}),
        (
            "made from users, with an epsilon",
            {**learned_at("1"), "provenance": "users"},
            {"max_learned_epsilon": 9},
        ),
        (
            "learned at a larger epsilon in a group",
            grouped({"a": BOX, "b": learned_at("4")}),
            {"max_learned_epsilon": "3/1"},
        ),
    ]
    for name, plain, policy in policies:
        yield {"name": f"policy: {name}", "reason": "policy", "text": signed(plain), "policy": policy}


def ascii_text(plain: dict[str, Any]) -> str:
    """Signed, with escapes: half a surrogate pair cannot stand in UTF-8."""
    return json.dumps({**plain, "digest": digest_of(plain)})


def named(name: str) -> str:
    """A box with another name for its first category."""
    return signed(changed(BOX, categories=[name, *BOX["categories"][1:]]))


def texts() -> Iterator[tuple[str, str | bytes]]:
    """What is not even a document, or one that is written in a way that is not allowed."""
    good, numbers = signed(BOX), signed(WHOLE)
    for text in (
        "",
        " ",
        "{",
        "nul",
        "NaN",
        '{"format": NaN}',
        good + "x",
        good + good,
        good[:-1],
        "[" * 5_000,
    ):
        yield f"text {text[-12:]}", text
    yield "a byte order mark", "\ufeff" + good
    for title, damaged in [
        ("not UTF-8", b"\xff"),
        ("an overlong form", b"\xc0\xaf"),
        ("a surrogate", b"\xed\xa0\xbd"),
    ]:
        repaired = named("\ufffd" * len(damaged))  # as a careless decoder reads it: then the digest is right
        yield title, repaired.encode().replace(("\ufffd" * len(damaged)).encode(), damaged)
    yield "a key twice", good.replace('"version": 1', '"version": 1, "version": 1')
    yield "a key twice, once with an escape", good.replace('"version": 1', '"version": 1, "versi\\u006fn": 1')
    yield (
        "a key twice in the options",
        signed(changed(BOX, options={"a": "1"})).replace('"a": "1"', '"a": "1", "a": "1"'),
    )
    yield "version 1.0", good.replace('"version": 1', '"version": 1.0')
    yield "version 1e0", good.replace('"version": 1', '"version": 1e0')
    yield "version 01", good.replace('"version": 1', '"version": 01')
    yield "version +1", good.replace('"version": 1', '"version": +1')
    yield "bits 62.0", good.replace('"bits": 62', '"bits": 62.0')
    yield "bits 620e-1", good.replace('"bits": 62', '"bits": 620e-1')
    yield "a category -0", numbers.replace("[0, 5,", "[-0, 5,")
    yield "a category 5.0", numbers.replace("[0, 5,", "[0, 5.0,")
    yield "a category 05", numbers.replace("[0, 5,", "[0, 05,")
    yield "a category 50e-1", numbers.replace("[0, 5,", "[0, 50e-1,")
    yield "a place -0", signed(KERNEL).replace('"order": [0,', '"order": [-0,')
    yield "a comma too many", good.replace('"most"]', '"most",]')
    yield "a comment", good.replace('"version": 1', '/* one */ "version": 1')
    yield "single quotes", good.replace('"version"', "'version'")
    yield "a line break in a string", named("ra\nre").replace("ra\\nre", "ra\nre")
    yield "a wrong escape", named("x41").replace("x41", "\\x41")
    yield "another blank", good.replace('"version": 1', '"version":\u00a01')


def refused_groups() -> Iterator[dict[str, Any]]:
    """Files of groups that a client must not take."""
    some = {"a": SMALL["blend"], "b": SMALL["minimax_kernel"]}
    for name, reason, plain in [
        ("no group", "value", grouped({})),
        ("no groups", "fields", grouped(some, groups=None)),
        ("no by", "fields", grouped(some, by=None)),
        ("another field", "fields", grouped(some, comment="x")),
        ("version true", "format", grouped(some, version=True)),
        ("version 2", "format", grouped(some, version=2)),
        ("a list", "value", grouped(some, groups=[{**BOX, "digest": digest_of(BOX)}])),
        ("a group without a name", "value", grouped({"": SMALL["blend"]})),
        ("a name of 101 characters", "value", grouped({"x" * 101: SMALL["blend"]})),
        ("a name with a line break", "value", grouped({"a\nb": SMALL["blend"]})),
        ("by two lines", "value", grouped(some, by="a\nb")),
        ("by a number", "value", grouped(some, by=1)),
        ("groups in a group", "format", grouped({"a": grouped(some)})),
        ("a group that is null", "format", grouped(some, groups={"a": None, "b": 1})),
        ("a group that does not certify", "certificate", grouped({**some, "c": honest(with_floor(0))})),
        ("a group with a wrong ratio", "ratio", grouped({**some, "c": changed(BOX, epsilon="1/2")})),
        ("a group with another digest", "digest", grouped(some, groups={"a": {**BOX, "digest": "0" * 64}})),
        ("a group without a digest", "fields", grouped(some, groups={"a": BOX})),
    ] + [
        (f"by {by!r}", "value", grouped(some, by=by))
        for by in ("user", "ITEM", " weight ", "Count", "ｕｓｅｒ", "uſer", " ")
    ]:
        yield {"name": f"groups: {name}", "reason": reason, "text": signed(plain)}
    text = signed(grouped(some))
    yield {"name": "groups: digest", "reason": "digest", "text": text.replace('"region"', '"regions"')}
    twice = text.replace('"b": {', '"a": {', 1)
    yield {"name": "groups: a name twice", "reason": "text", "text": twice}
    deep = signed(grouped({"a": changed(BOX, options={"k": "v"}), "b": BOX}))
    for name, old, new in [
        ("a key twice in a group's options", '"k": "v"', '"k": "v", "k": "v"'),
        ("a key twice in a group's options, once with an escape", '"k": "v"', '"k": "v", "\\u006b": "v"'),
        ("a key twice in a group", '"bits": 62', '"bits": 62, "bits": 62'),
    ]:
        yield {"name": f"groups: {name}", "reason": "text", "text": deep.replace(old, new, 1)}
    escaped = signed(grouped({"a": BOX, "b": BOX})).replace('"categories"', '"c\\u0061tegories"')
    few = {"max_categories": 7}
    yield {"name": "groups: too many, escaped", "reason": "policy", "text": escaped, "policy": few}
    yield {"name": "groups: no digest", "reason": "fields", "text": json.dumps(grouped(some))}


def reports() -> Iterator[dict[str, Any]]:
    """Reports on BOX, WHOLE and two files of groups, accepted (how many) or refused."""
    box, whole, some = digest_of(BOX), digest_of(WHOLE), "0123456789abcdef" * 2
    good: dict[str, Any] = {"mechanism": box, "id": some, "category": "rare"}
    number = {"mechanism": whole, "id": "f" * 32, "category": -7}
    for name, count, value in [
        ("a batch", 1, {"reports": [good]}),
        ("two of them", 2, {"reports": [good, {**good, "id": "f" * 32}]}),
        ("a report without a batch", 0, good),
        ("no report", 0, {"reports": []}),
        ("reports as text", 0, {"reports": "x"}),
        ("reports as an object", 0, {"reports": good}),
        ("a list", 0, [good]),
        ("another field in a batch", 0, {"reports": [good], "user": "ann"}),
        ("nothing", 0, {}),
        ("null", 0, None),
        ("one wrong in a batch", 0, {"reports": [good, {**good, "category": "Rare"}]}),
        *[(name, 0, {"reports": [value]}) for name, value in wrong_reports(good)],
        ("a group where there are none", 0, {"reports": [{**good, "group": "all"}]}),
    ]:
        yield {"name": name, "served": 0, "accepted": count, "text": json.dumps(value)}
    twice = json.dumps({"reports": [good]}).replace('"id"', '"id": "", "id"')
    yield {"name": "a key twice", "served": 0, "accepted": 0, "text": twice}
    for name, count, value in [
        ("a number", 1, number),
        ("text for a number", 0, {**number, "category": "-7"}),
        ("true for a number", 0, {**number, "category": True}),
    ]:
        yield {"name": name, "served": 1, "accepted": count, "text": json.dumps({"reports": [value]})}
    plain = json.dumps({"reports": [number]}).replace("-7", "-7.0")
    yield {"name": "-7.0", "served": 1, "accepted": 0, "text": plain}
    yield from reports_of_groups(some)


def wrong_reports(good: dict[str, Any]) -> list[tuple[str, Any]]:
    """Reports with one fault each."""
    some = good["id"]
    return [
        ("another mechanism", {**good, "mechanism": "0" * 64}),
        ("no mechanism", {**good, "mechanism": None}),
        ("unknown category", {**good, "category": "Rare"}),
        ("short id", {**good, "id": some[1:]}),
        ("long id", {**good, "id": some + "0"}),
        ("capitals", {**good, "id": some.upper()}),
        ("id with a line break", {**good, "id": some + "\n"}),
        ("number as id", {**good, "id": 5}),
        ("another field", {**good, "user": "ann"}),
        ("a group that is no text", {**good, "group": 5}),
        ("a group that is null", {**good, "group": None}),
        ("a missing field", {"mechanism": good["mechanism"], "id": some}),
        ("no object", "x"),
    ]


def reports_of_groups(some: str) -> Iterator[dict[str, Any]]:
    """The group may be left out where the mechanism tells it, and must be that of the mechanism."""
    names, first = list(GROUPS), changed(next(iter(GROUPS.values())), digest=None)
    one = {"mechanism": digest_of(first), "id": some, "category": first["categories"][0]}
    same = {"mechanism": digest_of(BOX), "id": some, "category": "rare"}
    for name, served, count, value in [
        ("groups: named", 2, 1, {**one, "group": names[0]}),
        ("groups: left out", 2, 1, one),
        ("groups: that of another mechanism", 2, 0, {**one, "group": names[1]}),
        ("groups: unknown", 2, 0, {**one, "group": "nowhere"}),
        ("groups: empty", 2, 0, {**one, "group": ""}),
        ("groups: a name of every object", 2, 0, {**one, "group": "constructor"}),
        ("groups: the digest of the file", 2, 0, {**one, "mechanism": digest_of(grouped(GROUPS))}),
        ("groups: the same mechanism, named", 3, 1, {**same, "group": "y"}),
        ("groups: the same mechanism, left out", 3, 0, same),
    ]:
        yield {"name": name, "served": served, "accepted": count, "text": json.dumps({"reports": [value]})}
