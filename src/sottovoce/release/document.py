"""The document behind a mechanism file: its canonical form and its digest.

The digest is the SHA-256 of the document without its digest, as JSON with sorted keys, no spaces, in ASCII.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

FORMAT = "sottovoce-mechanism"
VERSION = 1


def digest_of(plain: dict[str, Any]) -> str:
    """SHA-256 of the canonical form of a document without its digest."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def fraction_text(value: Fraction) -> str:
    """A fraction as "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"
