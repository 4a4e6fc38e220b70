"""The document behind a mechanism file: its canonical form, its digest, and writing it whole.

The digest is the SHA-256 of the document without its digest, as JSON with sorted keys, no spaces, in ASCII.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from fractions import Fraction
from pathlib import Path
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


def write_whole(content: str | bytes, path: Path) -> None:
    """Write to a neighbour, flush it to the disk, then rename: the file is there whole or not at all."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
