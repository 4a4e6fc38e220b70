"""The document behind a mechanism file: its fields, its canonical form and its digest.

`COMMON` are the fields of every document; each engine names, writes and reads the fields of its own kind. The
digest is the SHA-256 of the document without its digest, as JSON with sorted keys, no spaces, in ASCII.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import MechanismFileError

FORMAT = "sottovoce-mechanism"
VERSION = 1
COMMON = frozenset({
    "format", "version", "kind", "sampler", "options", "categories", "epsilon", "ratio", "bits",
    "keeps_prior", "prior_digest", "digest",
})  # fmt: skip
"""What every document has."""
MARK = "prior_from_users"
"""What a document has besides if its prior was made from the users it serves; then it is true."""

SEAM = '","'
"""Between two texts of a list in the canonical form."""

_WHOLES = re.compile(r"(?:0|[1-9][0-9]{0,19}+)(?:,(?:0|[1-9][0-9]{0,19}+))*+", re.ASCII)
_RATIO = re.compile(r"([0-9]{1,80})/([0-9]{1,400})", re.ASCII)


def digest_of(plain: dict[str, Any], wholes: Mapping[str, str] | None = None) -> str:
    """SHA-256 of the canonical form of a document without its digest.

    `wholes` are its lists of whole numbers if they have been joined already (`joined_wholes`).
    """
    known = joined_wholes(plain) if wholes is None else wholes
    state = hashlib.sha256(b"{")
    for place, name in enumerate(sorted(plain)):
        state.update(f"{',' if place else ''}{_json(name)}:".encode("ascii"))
        joined = known.get(name)
        text = _json(plain[name]) if joined is None else f'["{joined.replace(",", SEAM)}"]'
        state.update(text.encode("ascii"))
    state.update(b"}")
    return state.hexdigest()


def joined_wholes(plain: Mapping[str, Any]) -> dict[str, str]:
    """The fields that are lists of whole numbers as text, each joined by commas: to be read and to be hashed.

    A million of them are written out several times faster this way than by a JSON writer.
    """
    found = {name: _joined(value) for name, value in plain.items() if isinstance(value, list)}
    return {name: text for name, text in found.items() if text is not None}


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def fraction_text(value: Fraction) -> str:
    """A fraction as "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"


def whole_texts(values: Iterable[int]) -> list[str]:
    """Whole numbers as decimal strings: 2^62 does not fit the numbers of every JSON reader."""
    return [str(value) for value in values]


@dataclass(frozen=True)
class Fields:
    """The fields of a document that nobody has checked yet; each is refused if it is not right."""

    plain: Mapping[str, Any]
    source: str
    size: int  # how many categories it has
    bits: int
    joined: Mapping[str, str]  # its lists of whole numbers

    def wholes(self, name: str) -> tuple[int, ...]:
        """One whole number up to 2^bits for each category."""
        values = self.plain[name]
        if not isinstance(values, list) or len(values) != self.size:
            raise MechanismFileError(f"{self.source} does not have one weight per category")
        return self._wholes(self.joined.get(name), self.size)

    def whole(self, name: str) -> int:
        """A single whole number."""
        return self._wholes(_joined([self.plain[name]]), 1)[0]

    def _wholes(self, text: str | None, size: int) -> tuple[int, ...]:
        if text is None:
            raise MechanismFileError(
                f"{self.source} has a weight that is not a whole number of at most 20 digits, without "
                f"leading zeros"
            )
        wholes = np.fromstring(text, dtype=np.int64, sep=",")  # beyond 2^63 it gives the largest there is
        if len(wholes) != size or int(wholes.max()) > 1 << self.bits:
            raise MechanismFileError(f"{self.source} has a weight above 2^{self.bits}")
        return tuple(wholes.tolist())

    def places(self, name: str) -> tuple[int, ...]:
        """Positions of categories."""
        values = self.plain[name]
        fits = isinstance(values, list) and set(map(type, values)) <= {int}  # true is no position
        if not fits or (values and not (min(values) >= 0 and max(values) < self.size)):
            raise MechanismFileError(f"{self.source} names a category that is not there")
        return tuple(values)


def _joined(values: list[Any]) -> str | None:
    """All as one text, which is fast to look at; None unless each has 1 to 20 digits, no leading zeros."""
    try:
        text = ",".join(values)
    except TypeError:  # one of them is no text
        return None
    fits = text.count(",") == len(values) - 1 and _WHOLES.fullmatch(text) is not None
    return text if fits else None


def read_fraction(value: object, source: str) -> Fraction:
    """A fraction of a document, or a refusal."""
    match = _RATIO.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[2]) == 0:
        raise MechanismFileError(f"{source} does not state epsilon and the ratio as whole fractions")
    return Fraction(int(match[1]), int(match[2]))
