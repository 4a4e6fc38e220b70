"""The text of a mechanism file, refused as soon as it is longer than the categories in it justify.

A file states its categories before their weights. So while it is read, every byte must be justified: by a
fixed allowance, by a smaller one for every document of a group, by the categories' own names, and by the room
that their weights take. Padding around three categories is refused after the first kilobytes, whatever it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import MechanismFileError

STEP, LARGEST_STEP = 1 << 16, 1 << 20
"""Bytes that are read at once: an eighth of what was justified already, within these two."""
ALLOWANCE = 1 << 16
"""Bytes that every file may take besides its documents."""
DOCUMENT_BYTES = 1 << 12
"""Bytes that a document may take besides its categories: field names, options, digests, its group's name."""
MOST_GROUPS = 10_000
LONGEST_NAME = 1 << 12
"""Bytes of one category's name, as it stands in the file."""
WEIGHT_BYTES = 128
"""Bytes that all weights of one category take at most: three numbers of 19 digits, a place, and blanks."""

_LIST = re.compile(rb'"categories"\s{0,9}:\s{0,9}\[')
_ONE = rb'\s{0,9}+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?[0-9]{1,20}+)\s{0,9}+'
_NAME = re.compile(_ONE + rb"(,|\])", re.DOTALL)
_TOGETHER = 64
_NAMES = re.compile(rb"(?:" + _ONE + rb",){%d}+" % _TOGETHER, re.DOTALL)
_EMPTY = re.compile(rb"\s{0,9}+\]")


def read_justified(path: Path, most_categories: int) -> str:
    """Read a file of mechanisms as UTF-8 text, no further than it is justified."""
    try:
        if not path.is_file() and path.exists():
            raise MechanismFileError(f"{path} cannot be read: it is not a regular file")
        with path.open("rb") as file:
            data = bytearray()
            scan = _Scan(most_categories)
            while step := file.read(min(max(STEP, len(data) >> 3), LARGEST_STEP)):
                data += step
                if len(data) > scan.justified(data):
                    raise MechanismFileError(
                        f"{path} is too large for {scan.categories} categories: it was not read further (a "
                        f"mechanism file names its categories before their weights)"
                    )
        return data.decode("utf-8")
    except OSError as problem:
        raise MechanismFileError(f"{path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise MechanismFileError(f"{path} cannot be read: it is not UTF-8") from None


class _Scan:
    """Follows the lists of categories through a text that grows; documents of groups follow one another.

    Every byte is looked at once or twice: what is known of the text is a position and a few sums.
    """

    def __init__(self, most_categories: int) -> None:
        self.categories = 0
        self._most = most_categories
        self._lists = 0
        self._names = 0  # bytes inside lists
        self._at = 0
        self._inside = False
        self._singly = 0  # names to be taken one by one, because many together were too long

    def justified(self, data: bytearray) -> int:
        """How many bytes the text may have, from what has been seen of it."""
        while self.categories <= self._most and self._lists <= MOST_GROUPS:
            if not self._inside:
                found = _LIST.search(data, self._at)
                if found is None:
                    self._at = max(self._at, len(data) - 64)  # the heading may be cut in two
                    return self._sum()
                self._at, self._inside = found.end(), True
                self._lists += 1
            if self._singly == 0:
                names = _NAMES.match(data, self._at, self._at + LONGEST_NAME)
                if names is not None:  # each of them followed by a comma, so the list goes on
                    self.categories += _TOGETHER
                    self._names += names.end() - self._at
                    self._at = names.end()
                    continue
                self._singly = _TOGETHER
            self._singly -= 1
            name = _NAME.match(data, self._at, self._at + LONGEST_NAME)
            if name is None:  # it goes on, is too long, or is something that the parser will refuse
                self._inside = _EMPTY.match(data, self._at) is None
                return self._sum() + LONGEST_NAME
            self.categories += 1
            self._names += name.end() - self._at
            self._at, self._inside = name.end(), name[1] == b","
        return 0

    def _sum(self) -> int:
        documents = DOCUMENT_BYTES * self._lists
        return ALLOWANCE + documents + self._names + WEIGHT_BYTES * self.categories
