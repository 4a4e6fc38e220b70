"""A client written from docs/format.md alone, sharing no code with the library.

It is what somebody would write in another language: it checks everything that the page says, and it is slow.
If it agrees with the library on all vectors and on what chance makes up, the page is complete.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

N = 2**62
WORDS = {"box": 1, "nearest": 1, "kernel": 3, "response": 2, "survey": 3}
COMMON = {"format", "version", "bits", "kind", "sampler", "options", "categories", "epsilon", "ratio"} | {
    "keeps_prior", "prior_digest", "digest",
}  # fmt: skip
OWN = {
    "box": {"prior", "low"},
    "nearest": {"prior", "low", "parents", "lengths"},
    "kernel": {"order", "prior", "low", "own"},
    "response": {"kept", "own", "other", "prior"},
    "survey": {"base", "own", "other"},
}
Document = dict[str, Any]
Counts = dict[int, int]


class Refused(ValueError):
    """A file, a report or a user's data that are not accepted; the reason is a word of docs/format.md."""


@dataclass(frozen=True)
class File:
    """One mechanism under "all", or one for each group of the column `by`."""

    documents: dict[str, Document]
    by: str | None
    digest: str


def need(condition: bool, reason: str) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise Refused(reason)


# --- the file as text ----------------------------------------------------------------------------


def parse(data: bytes) -> Any:
    """One JSON value, read strictly."""
    try:
        text = data.decode("utf-8")
        need(not text.startswith("\ufeff"), "text")
        return json.loads(
            text,
            object_pairs_hook=unique,
            parse_int=plain_number,
            parse_float=no_number,
            parse_constant=no_number,
        )
    except (ValueError, RecursionError):
        raise Refused("text") from None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len({key for key, _ in pairs}) == len(pairs), "text")
    return dict(pairs)


def plain_number(text: str) -> int:
    need(text != "-0", "text")
    return int(text)


def no_number(_: str) -> Any:
    raise Refused("text")


# --- texts and numbers ---------------------------------------------------------------------------


def whole(value: object) -> int:
    need(isinstance(value, str) and re.fullmatch("0|[1-9][0-9]{0,18}", value) is not None, "value")
    number = int(str(value))
    need(number <= N, "value")
    return number


def fraction(value: object) -> tuple[int, int]:
    need(isinstance(value, str), "value")
    match = re.fullmatch("(0|[1-9][0-9]{0,79})/([1-9][0-9]{0,399})", str(value))
    need(match is not None, "value")
    a, b = (int(part) for part in str(value).split("/"))
    need(math.gcd(a, b) == 1, "value")
    return a, b


def is_label(value: object) -> bool:
    if not isinstance(value, str) or not 1 <= len(value) <= 100:
        return False
    return all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in value)


def is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def canonical(value: Any) -> str:
    """The canonical form of a document."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: [ord(c) for c in member[0]])
        return "{" + ",".join(f"{canonical(key)}:{canonical(one)}" for key, one in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(map(escaped, value)) + '"'
    if value is True or value is False or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def escaped(c: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    if c in short:
        return short[c]
    code = ord(c)
    if 0x20 <= code <= 0x7E:
        return c
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def digest_of(document: Document) -> str:
    """SHA-256 of the canonical form without `digest`."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(canonical(rest).encode("ascii")).hexdigest()


def ratio_of(a: int, b: int) -> tuple[int, int]:
    """⌊2^64·e^(a/b)⌋ / 2^64 in lowest terms."""
    places = 256
    while True:
        s = t = lower = upper = 1 << places
        j = 0
        while 2 * a > b * (j + 1) or t > 1 or j == 0:
            j += 1
            s, t = s * a // (b * j), -(-t * a // (b * j))
            lower, upper = lower + s, upper + t
        upper += 2 * t
        found = lower >> (places - 64)
        if found == upper >> (places - 64):
            common = math.gcd(found, 2**64)
            return found // common, 2**64 // common
        places *= 2


# --- loading -------------------------------------------------------------------------------------


def load(data: bytes, policy: dict[str, Any]) -> File:
    """A file that is right and wanted."""
    need(len(data) <= 65_536 + 1_024 * policy.get("max_categories", 1_000_000), "text")
    plain = parse(data)
    need(isinstance(plain, dict), "format")
    grouped = plain.get("format") == "sottovoce-mechanisms"
    documents = check_groups(plain) if grouped else {"all": plain}
    for document in documents.values():
        check(document)
    check_policy(documents, plain["digest"], policy)
    return File(documents, plain["by"] if grouped else None, plain["digest"])


def check_groups(plain: Document) -> dict[str, Document]:
    need(set(plain) == {"format", "version", "by", "groups", "digest"}, "fields")
    need(type(plain["version"]) is int and plain["version"] == 1, "format")
    groups = plain["groups"]
    need(isinstance(groups, dict) and 1 <= len(groups) <= 10_000, "value")
    need(all(is_label(name) for name in [plain["by"], *groups]), "value")
    column = unicodedata.normalize("NFKC", plain["by"]).strip(" ").lower()
    need(column not in ("", "user", "item", "weight", "count"), "value")
    need(plain["digest"] == digest_of(plain), "digest")
    return dict(groups)


def check_policy(documents: dict[str, Document], digest: str, policy: dict[str, Any]) -> None:
    for document in documents.values():
        if "max_epsilon" in policy:
            need(Fraction(document["epsilon"]) <= Fraction(policy["max_epsilon"]), "policy")
        need(not (policy.get("provenance") == "public" and document.get("provenance") == "users"), "policy")
        if "max_learned_epsilon" in policy and "provenance" in document:
            stated = document["options"].get("learned_epsilon", "")
            form = "[0-9]{1,3}([.][0-9]{1,25})?(e-[0-9]{1,2})?"
            need(document["provenance"] == "learned" and bool(re.fullmatch(form, stated)), "policy")
            need(Fraction(float(stated)) <= Fraction(policy["max_learned_epsilon"]), "policy")
    if "max_categories" in policy:
        size = sum(len(document["categories"]) for document in documents.values())
        need(size <= policy["max_categories"], "policy")
    need("digests" not in policy or digest in policy["digests"], "policy")
    for document in documents.values():
        stated = document["categories"]
        names = {(type(name), name) for name in stated}
        expected = {(type(name), name) for name in policy.get("categories") or stated}
        need(names == expected, "policy")


def check(document: Any) -> None:
    """Every field, the digest, the ratio, the certificate and the claim about the prior."""
    need(isinstance(document, dict) and document.get("format") == "sottovoce-mechanism", "format")
    need(type(document.get("version")) is int and document["version"] == 1, "format")
    need(type(document.get("bits")) is int and document["bits"] == 62, "format")
    kind = document.get("kind")
    need(isinstance(kind, str) and kind in OWN, "format")
    need(set(document) - {"provenance"} == COMMON | OWN[str(kind)], "fields")
    need(document.get("provenance", "users") in ("learned", "users"), "value")
    options = document["options"]
    need(is_label(document["sampler"]) and isinstance(options, dict), "value")
    need(all(is_label(text) for member in options.items() for text in member), "value")
    need(type(document["keeps_prior"]) is bool and is_digest(document["prior_digest"]), "value")
    n = check_categories(document["categories"])
    a, b = fraction(document["epsilon"])
    need(0 < a <= 100 * b, "value")
    stated = fraction(document["ratio"])
    single = {"own", "other"} if kind in ("response", "survey") else set()
    for name in {"prior", "low", "own"} & set(document) - single:
        need(isinstance(document[name], list) and len(document[name]) == n, "value")
    for name in single:
        need(not isinstance(document[name], list), "value")
    need(kind != "survey" or (type(document["base"]) is int and document["base"] >= 0), "value")
    numbers = integers(document)
    for name in {"order", "kept"} & set(document):
        places = document[name]
        need(isinstance(places, list) and len(places) >= 1, "value")
        need(all(type(place) is int and 0 <= place < n for place in places), "value")
        need(len(set(places)) == len(places), "value")
    need(kind != "kernel" or len(document["order"]) == n, "value")
    if kind == "nearest":
        check_geometry(document["parents"], document["lengths"], n)
    need(document["digest"] == digest_of(document), "digest")
    need(stated == ratio_of(a, b), "ratio")
    if kind != "survey":
        need(min(numbers["prior"]) >= 1 and sum(numbers["prior"]) == N, "certificate")
    if kind == "nearest":
        need(n * stated[1] <= (stated[0] - stated[1]) << 20, "certificate")
    certify = {"box": certify_box, "kernel": certify_kernel, "response": certify_response}
    certify |= {"nearest": certify_box, "survey": certify_survey}
    need(document["keeps_prior"] is certify[str(kind)](document, numbers, *stated), "keeps_prior")


def check_categories(names: object) -> int:
    need(isinstance(names, list) and len(names) >= 1, "value")
    assert isinstance(names, list)
    need({type(name) for name in names} in ({str}, {int}), "value")
    if type(names[0]) is int:
        need(all(-(2**53) < name < 2**53 for name in names), "value")
    else:
        need(not any("\ud800" <= c <= "\udfff" for name in names for c in name), "value")
    need(len(set(names)) == len(names), "value")
    return len(names)


def check_geometry(parents: Any, lengths: Any, n: int) -> None:
    """Refuse what is not a tree with the n categories as its leaves."""
    need(isinstance(parents, list) and isinstance(lengths, list), "value")
    need({type(one) for one in [*parents, *lengths]} <= {int}, "value")
    root = len(parents)
    need(len(lengths) == root, "value")
    need(n <= root, "value")
    need(root <= 2 * n, "value")
    need(all(v < parent for v, parent in enumerate(parents)), "value")
    need(set(parents) == set(range(n, root + 1)), "value")
    need(min(lengths) >= 0, "value")
    far = [0] * (root + 1)
    for v in range(root - 1, -1, -1):
        far[v] = far[parents[v]] + lengths[v]
    need(max(far) <= 2**30, "value")


def integers(document: Document) -> dict[str, Any]:
    """The weights of a document as numbers."""
    found: dict[str, Any] = {}
    for name in {"prior", "low", "own", "other"} & set(document):
        value = document[name]
        found[name] = [whole(one) for one in value] if isinstance(value, list) else whole(value)
    return found


def highs(low: list[int], up: int, down: int) -> list[int]:
    return [min(up * value // down, N) for value in low]


def certify_box(_: Document, numbers: dict[str, Any], up: int, down: int) -> bool:
    """Refuse a box without its certificate; return whether it keeps the prior."""
    low, prior = numbers["low"], numbers["prior"]
    high = highs(low, up, down)
    need(up >= down and min(low) >= 1, "certificate")
    need(sum(low) <= N, "certificate")
    need(sum(high) >= N, "certificate")
    return all(a <= q <= b for a, q, b in zip(low, prior, high, strict=True))


def certify_kernel(_: Document, numbers: dict[str, Any], up: int, down: int) -> bool:
    """Refuse a kernel without its certificate, column by column as the page says it."""
    prior, low, own = numbers["prior"], numbers["low"], numbers["own"]
    last = len(prior) - 1
    need(all(a <= b for a, b in pairwise(prior)), "certificate")
    need(min(low) >= 1, "certificate")
    rest = [N - sum(low[:j]) - own[j] for j in range(last + 1)]
    need(all(r >= 0 for r in rest[:last]), "certificate")
    need(rest[last] == 0, "certificate")
    rho = [Fraction(rest[j], sum(prior[j + 1 :])) for j in range(last)]
    for j in range(last + 1):
        column = [own[j]] if j == last else [own[j], low[j]]
        smallest, largest = min(column), max(column)
        if j > 0:
            smallest = min(smallest, math.floor(min(rho[:j]) * prior[j]) - 1)
            largest = max(largest, math.ceil(max(rho[:j]) * prior[j]) + 1)
        need(smallest >= 1, "certificate")
        need(largest * down <= up * smallest, "certificate")
    return True


def certify_response(document: Document, numbers: dict[str, Any], up: int, down: int) -> bool:
    """Refuse a response without its certificate; return whether it keeps the prior."""
    own, other, k = numbers["own"], numbers["other"], len(document["kept"])
    need(own + (k - 1) * other == N, "certificate")
    need(up >= down and own >= 1, "certificate")
    if k > 1:
        need(other >= 1, "certificate")
        need(own * down <= up * other, "certificate")
        need(other * down <= up * own, "certificate")
    prior = numbers["prior"]
    return k == len(prior) and max(prior) - min(prior) <= 1


def certify_survey(document: Document, numbers: dict[str, Any], up: int, down: int) -> bool:
    """Refuse a survey without its certificate; it never keeps the prior."""
    own, other, base = numbers["own"], numbers["other"], document["base"]
    need(2 <= base < 65536, "certificate")
    need(not any(base % f == 0 for f in range(2, base)), "certificate")
    need(own + (base - 1) * other == N, "certificate")
    need(own >= 1 and other >= 1, "certificate")
    need(own * down <= up * other, "certificate")
    need(other * down <= up * own, "certificate")
    need(len(questions_of(document)) * base < 2**53, "certificate")
    return False


def questions_of(document: Document) -> range | list[int]:
    """The questions of a survey, ascending: the numbers whose first digit in the base is 1."""
    base, power, found = document["base"], 1, []
    while True:
        found.append(range(power, 2 * power))
        power *= base
        if power >= len(document["categories"]):
            break
    if sum(map(len, found)) > 1 << 20:
        return range(sum(map(len, found)))  # their number is all that is asked for
    return [vector for level in found for vector in level]
