"""A stream written down again, slowly, from docs/format.md: one list over all categories, exact fractions.

It shares no code with the library. A state is the exact R, a fraction, beside its two rounded bounds.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tiny_client import (
    check_categories,
    check_geometry,
    digest_of,
    fraction,
    is_digest,
    is_label,
    need,
    ratio_of,
    whole,
)
from tiny_draws import nearest_law, targets_of

UNIT = 2**22


@dataclass(frozen=True)
class Tiny:
    prior: list[int]
    ratio: Fraction
    start: int
    pace: list[int]
    persistence: int = 0
    tree: dict[str, Any] | None = None

    @classmethod
    def of(cls, document: dict[str, Any]) -> Tiny:
        up, down = map(int, document["ratio"].split("/"))
        prior = [int(text) for text in document["prior"]]
        tree = document if document["kind"] == "nearest-stream" else None
        start, pace, persistence = int(document["start"]), document["pace"], document["persistence"]
        return cls(prior, Fraction(up, down), start, pace, persistence, tree)

    @property
    def one(self) -> int:
        return int(2 ** (62 - len(f"{int(self.ratio):b}")))

    def at_first(self) -> tuple[Fraction, int, int]:
        return Fraction(self.start, self.one), self.start, self.start

    def prior_at(self, last: int | None) -> list[int]:
        if not self.persistence or last is None:
            return self.prior
        shares = [max(1, q * (1024 - self.persistence) // 1024) for q in self.prior]
        shares[last] += 2**40 - sum(shares)
        return shares

    def box(self, low: int, high: int, step: int) -> tuple[int, int]:
        least = -((-UNIT * self.one) // low)
        most = min(UNIT * int(self.ratio * self.one) // high, 2**62)
        theta = self.pace[step] if step < len(self.pace) else self.pace[-1]
        if theta < 256:
            g = 0
            while root_level(g + 1) <= most:
                g += 1
            most = root_level(g * theta // 256)
        return least, most

    def law(
        self, counts: dict[int, int], low: int, high: int, step: int, last: int | None = None
    ) -> list[int]:
        prior, (least, most) = self.prior_at(last), self.box(low, high, step)
        if self.tree is not None:
            targets = targets_of(counts, len(prior)) if counts else [UNIT * q for q in prior]
            caps = [min(most * q, 2**62) for q in prior]
            return nearest_law(targets, [least * q for q in prior], caps, self.tree)
        whole = sum(counts.values())
        while whole >= 2**41:
            counts = {i: k // 2 for i, k in counts.items()}
            whole = sum(counts.values()) if max(counts.values()) == 0 else whole // 2
        whole = sum(counts.values())
        own = sorted({*counts, *([last] if self.persistence and last is not None else [])})
        shares = [2**62 * counts.get(i, 0) // whole if counts else 0 for i in range(len(prior))]
        wanted = [
            min(max(share // q, least), most) if i in own else least
            for i, (share, q) in enumerate(zip(shares, prior, strict=True))
        ]
        cut = sum(m * q for m, q in zip(wanted, prior, strict=True)) > 2**62

        def at(level: int) -> list[int]:
            if cut:
                return [min(m, level) if i in own else m for i, m in enumerate(wanted)]
            return [max(m, level) for m in wanted]

        def total(level: int) -> int:
            return sum(m * q for m, q in zip(at(level), prior, strict=True))

        small, large = least, most + 1  # the largest level whose total is not above N
        while large - small > 1:
            middle = (small + large) // 2
            small, large = (middle, large) if total(middle) <= 2**62 else (small, middle)
        ratios = at(small)
        left = 2**62 - total(small)
        units = [m * q for m, q in zip(ratios, prior, strict=True)]
        others = [i for i in range(len(prior)) if i not in own]
        for i in [*own, *others]:
            if cut and (i not in own or wanted[i] <= small):
                continue
            if not cut and wanted[i] > small:
                continue
            more = min(left, prior[i])
            units[i] += more
            left -= more
        assert left == 0
        assert sum(units) == 2**62
        return units

    def after(
        self, state: tuple[Fraction, int, int], units: list[int], z: int, last: int | None = None
    ) -> tuple[Fraction, int, int]:
        exact, low, high = state
        ratio = Fraction(units[z], self.prior_at(last)[z])
        below, above = Fraction(low * math.floor(ratio), UNIT), Fraction(high * math.ceil(ratio), UNIT)
        most = int(self.ratio * self.one)
        return exact * ratio / UNIT, max(math.floor(below), self.one), min(math.ceil(above), most)


def root_level(g: int) -> int:
    """The integer part of 2^(22 + g/64), by bisection."""
    small, large = 0, 2**70
    while large - small > 1:
        middle = (small + large) // 2
        small, large = (middle, large) if middle**64 <= 2 ** (64 * 22 + g) else (small, middle)
    return small


FIELDS = {
    "format", "version", "kind", "sampler", "options", "categories", "epsilon", "ratio", "bits",
    "keeps_prior", "prior_digest", "digest", "prior", "start", "pace", "persistence",
}  # fmt: skip


def check_stream(document: Any) -> None:
    """Every field, the digest, the ratio, the certificate and the claim about the prior."""
    need(isinstance(document, dict) and document.get("format") == "sottovoce-mechanism", "format")
    for name, value in (("version", 2), ("bits", 62)):
        need(type(document.get(name)) is int and document[name] == value, "format")
    need(document.get("kind") in ("stream", "nearest-stream"), "format")
    tree = {"parents", "lengths"} if document["kind"] == "nearest-stream" else set()
    need(set(document) - {"provenance"} == FIELDS | tree, "fields")
    options, pace = document["options"], document["pace"]
    need(document.get("provenance", "users") in ("learned", "users"), "value")
    need(is_label(document["sampler"]) and isinstance(options, dict), "value")
    need(all(is_label(text) for member in options.items() for text in member), "value")
    need(type(document["keeps_prior"]) is bool and is_digest(document["prior_digest"]), "value")
    need(is_digest(document["digest"]), "value")
    n = check_categories(document["categories"])
    a, b = fraction(document["epsilon"])
    need(0 < a <= 100 * b, "value")
    up, down = fraction(document["ratio"])
    need(isinstance(document["prior"], list) and len(document["prior"]) == n, "value")
    prior = [whole(text) for text in document["prior"]]
    start = document["start"]
    need(isinstance(start, str) and re.fullmatch("0|[1-9][0-9]{0,18}", start, re.ASCII) is not None, "value")
    need(isinstance(pace, list) and all(type(one) is int for one in pace), "value")
    need(type(document["persistence"]) is int, "value")
    if tree:
        check_geometry(document["parents"], document["lengths"], n)
    need(document["digest"] == digest_of(document), "digest")
    need((up, down) == ratio_of(a, b), "ratio")
    need(up >= down and min(prior) >= 1 and sum(prior) == 2**40, "certificate")
    need(up < 2**40 * down, "certificate")
    one = 2 ** (62 - len(f"{up // down:b}"))
    need(one <= int(start) <= one * up // down, "certificate")
    need(1 <= len(pace) <= 4096 and min(pace) >= 0 and max(pace) <= 256, "certificate")
    need(0 <= document["persistence"] < 1024, "certificate")
    need(document["keeps_prior"] is (document["persistence"] == 0), "keeps_prior")
