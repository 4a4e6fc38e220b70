"""The text of a mechanism file, refused as soon as it is longer than the categories in it justify.

A file states its categories before their weights. So while it is read, every byte must be justified: by a
fixed allowance for the fields of a document, by the categories' own names, and by the room that their
weights take. A file of gigabytes around three categories is refused after its first kilobytes, whatever it
is padded with.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import MechanismFileError

STEP = 1 << 16
ALLOWANCE = 1 << 16
"""Bytes that every document may take besides its categories: field names, options, digests."""
NAME_BYTES = 512
"""Bytes of an average name, beyond which a list of names is refused."""
WEIGHT_BYTES = 128
"""Bytes that all weights of one category take at most: three numbers of 19 digits, a place, and blanks."""

_LIST = re.compile(rb'"categories"\s{0,9}:\s{0,9}\[')
_NAME = re.compile(rb'\s*(?:"(?:[^"\\]|\\.)*"|-?[0-9]+)\s*(,|\])', re.DOTALL)


def read_justified(path: Path, most_categories: int) -> str:
    """Read a file of mechanisms as UTF-8 text, no further than it is justified."""
    try:
        if not path.is_file() and path.exists():
            raise MechanismFileError(f"{path} cannot be read: it is not a regular file")
        with path.open("rb") as file:
            data = bytearray()
            scan = _Scan(most_categories)
            while step := file.read(STEP):
                data += step
                if len(data) > scan.justified(data):
                    raise MechanismFileError(
                        f"{path} is too large for {scan.categories} categories: it was not read further"
                    )
        return data.decode("utf-8")
    except OSError as problem:
        raise MechanismFileError(f"{path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise MechanismFileError(f"{path} cannot be read: it is not UTF-8") from None


class _Scan:
    """Follows the lists of categories through a text that grows; documents of groups follow one another."""

    def __init__(self, most_categories: int) -> None:
        self.categories = 0
        self._most = most_categories
        self._bytes = ALLOWANCE
        self._at = 0
        self._inside = False

    def justified(self, data: bytearray) -> int:
        """How many bytes the text may have, from what has been seen of it."""
        while True:
            if not self._inside:
                found = _LIST.search(data, self._at)
                if found is None:
                    self._at = max(self._at, len(data) - 64)  # the heading may be cut in two
                    return self._bytes
                self._at, self._inside = found.end(), True
                self._bytes += ALLOWANCE
            name = _NAME.match(data, self._at)
            if name is None:  # the list goes on, or something is there that the parser will refuse
                return self._bytes
            if self.categories < self._most:
                self._bytes += NAME_BYTES + WEIGHT_BYTES
            self.categories += 1
            self._at, self._inside = name.end(), name[1] == b","
