"""Text files as DuckDB takes them: what one person's text may hold does not refuse the table of all.

DuckDB refuses a whole file for a byte that is not UTF-8, for half of a surrogate pair in JSON, and for line
ends of two kinds, such as a carriage return in an unquoted text of a CSV. Such a file is copied, with exactly
that changed.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

REPLACED = "sottovoce.replaced"
"""The error handler, by its name for `codecs`, that puts U+FFFD and hexadecimal digits for what is broken."""
LONGEST = 64 << 20
"""Bytes of the longest record of a text file; DuckDB refuses a longer one."""
_ESCAPE = re.compile(
    rb"\\(?:u(?:d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(d[89a-f][0-9a-f]{2}))|.)", re.IGNORECASE | re.DOTALL
)
"""An escape in JSON: a surrogate pair, half of one (the group), or any other."""
_RETURN = re.compile(rb"\r(?!\n)")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_OUTSIDE = [b" ", b",", b":", b"{", b"}", b"[", b"]", b"\n"]
"""Bytes that cannot be a part of an escape."""


def _replaced(problem: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(problem, UnicodeDecodeError):  # with its digits, because two broken names are two names
        return f"\ufffd{problem.object[problem.start : problem.end].hex()}", problem.end
    if isinstance(problem, UnicodeEncodeError):
        halves = problem.object[problem.start : problem.end]
        return "".join(f"\ufffd{ord(half):x}" for half in halves).encode(), problem.end
    raise problem


codecs.register_error(REPLACED, _replaced)


def whole_text(text: str) -> str:
    """A text without halves of surrogate pairs, which Python's texts may have and UTF-8 has not."""
    return text if text.isascii() else text.encode("utf-8", REPLACED).decode("utf-8")


# --- encodings ------------------------------------------------------------------------------------------


def in_utf_8(pieces: Iterable[bytes], encoding: str, errors: str = "strict") -> Iterator[bytes]:
    """A text, piece by piece, in UTF-8; without `errors` what is broken raises a UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    for piece in pieces:
        if encoding == "utf-8" and piece.isascii() and not decoder.getstate()[0]:
            yield piece
        else:
            yield decoder.decode(piece).encode("utf-8")
    yield decoder.decode(b"", final=True).encode("utf-8")


def is_utf_8(pieces: Iterable[bytes]) -> bool:
    """Whether a text is UTF-8."""
    try:
        for _ in in_utf_8(pieces, "utf-8"):
            pass
    except UnicodeDecodeError:
        return False
    return True


# --- surrogates in JSON ---------------------------------------------------------------------------------


def has_halves(pieces: Iterable[bytes]) -> bool:
    """Whether a JSON text has half of a surrogate pair."""
    return any(_SURROGATE.search(text) and _whole_pairs(text) != text for text in _between_escapes(pieces))


def without_halves(pieces: Iterable[bytes]) -> Iterator[bytes]:
    r"""A JSON text in which \ud83d without its other half is U+FFFD and its digits."""
    return map(_whole_pairs, _between_escapes(pieces))


def _whole_pairs(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda escape: rb"\ufffd" + escape[1] if escape[1] else escape[0], text)


def _between_escapes(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A text in pieces that divide no escape."""
    rest = b""
    for piece in pieces:
        text = rest + piece
        cut = max(piece.rfind(byte) for byte in _OUTSIDE) + 1
        cut = len(rest) + cut if cut else 0 if len(text) <= LONGEST else len(text)
        yield text[:cut]
        rest = text[cut:]
    yield rest


# --- line ends of a CSV ---------------------------------------------------------------------------------


def has_even_lines(pieces: Iterable[bytes]) -> bool:
    """Whether the line ends of a text are of one kind, also those in quotes."""
    feeds = returns = both = 0
    last = b""
    for piece in pieces:
        feeds += piece.count(b"\n")
        if b"\r" in piece or last == b"\r":
            returns += piece.count(b"\r")
            both += piece.count(b"\r\n") + (last + piece[:1] == b"\r\n")
        last = piece[-1:]
    return not returns or not feeds or feeds == returns == both


def with_even_lines(pieces: Iterable[bytes], separator: str) -> Iterator[bytes]:
    """A CSV whose lines end with a line feed, and whose fields with the other kind of end are quoted.

    What ends a line is seen at the header: where it is a carriage return, a line feed is a part of its field.
    """
    mark = separator.encode()
    quoted = re.compile(rb'"(?<![^%b\n]")(?:[^"]++|"")*+(?:"|\Z)' % re.escape(mark))
    begun, pieces = _with_header(pieces, quoted)
    first = _END.search(quoted.sub(b"", begun))
    exchanged = first is not None and first[0] == b"\r"

    def as_it_was(field: bytes) -> bytes:
        return field.translate(_EXCHANGED) if exchanged else field

    rest = b""
    for piece in (as_it_was(piece) for piece in chain([begun], pieces)):
        text = rest + piece
        begin = 0
        for field in quoted.finditer(text):
            if field.end() == len(text) and len(text) - field.start() <= LONGEST:
                cut = field.start()  # it may go on in the next piece
                break
            yield _even(text[begin : field.start()], mark, as_it_was)
            yield as_it_was(field[0])
            begin = field.end()
        else:
            cut = max(begin, text.rfind(mark, begin) + 1, text.rfind(b"\n", begin) + 1)
            if len(text) - cut > LONGEST:
                cut = len(text)  # too long a record in any case
        yield _even(text[begin:cut], mark, as_it_was)
        rest = text[cut:]
    yield as_it_was(rest) if rest.startswith(b'"') else _even(rest.removesuffix(b"\r"), mark, as_it_was)


_END = re.compile(rb"\r\n|\r|\n")
_EXCHANGED = bytes.maketrans(b"\r\n", b"\n\r")


def _with_header(pieces: Iterable[bytes], quoted: re.Pattern[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The beginning of a text with the end of its first line, and what follows."""
    begun, left = b"", iter(pieces)
    for piece in left:
        begun += piece
        end = _END.search(quoted.sub(b"", begun[:-1]))  # a carriage return may have its line feed behind it
        if end is not None or len(begun) > LONGEST:
            break
    return begun, left


def _even(text: bytes, mark: bytes, as_it_was: Callable[[bytes], bytes]) -> bytes:
    """Whole fields without quotes around them: those with a carriage return in them get quotes."""
    parts, begin, line = list[bytes](), 0, -1
    for found in _RETURN.finditer(text):
        at = found.start()
        if at < begin:  # of a field that has another one before it
            continue
        first = max(begin, text.rfind(mark, begin, at) + 1, text.rfind(b"\n", begin, at) + 1)
        if line < at:  # looked for once in each line, however many fields it has
            end = text.find(b"\n", at)
            line = len(text) if end < 0 else end
        end = text.find(mark, at, line)
        last = line if end < 0 else end
        last -= text[last - 1 : last + 1] == b"\r\n"
        field = as_it_was(text[first:last]).replace(b'"', b'""')
        parts += [text[begin:first], b'"', field, b'"']
        begin = last
    return b"".join([*parts, text[begin:]]).replace(b"\r\n", b"\n")
