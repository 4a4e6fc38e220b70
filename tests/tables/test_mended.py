"""What DuckDB would refuse a file for is changed, wherever the file is cut into pieces, and nothing else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.tables import mended

SIZES = range(1, 40)


def cut(raw: bytes, size: int) -> Iterator[bytes]:
    return (raw[i : i + size] for i in range(0, len(raw), size))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rb'["\ud83d", "\uDE00x"]', rb'["\ufffdd83d", "\ufffdDE00x"]'),
        (rb'["\ud83d\ude00", "\u00e9"]', rb'["\ud83d\ude00", "\u00e9"]'),
        (rb'["\ud83d\ud83d\ude00"]', rb'["\ufffdd83d\ud83d\ude00"]'),
        (rb'["\\ud83d", "\\\ud83d"]', rb'["\\ud83d", "\\\ufffdd83d"]'),
        (rb'["\ud83d\n\ude00", "\\"]', rb'["\ufffdd83d\n\ufffdde00", "\\"]'),
    ],
)
def test_half_of_a_surrogate_pair_is_replaced(before: bytes, after: bytes) -> None:
    for size in SIZES:
        assert b"".join(mended.without_halves(cut(before, size))) == after
        assert mended.has_halves(cut(before, size)) == (before != after)


@given(st.lists(st.text(st.characters() | st.sampled_from("\ud83d\ude00\\u")), max_size=5), st.integers(1, 9))
def test_whole_json_is_left_as_it_is_and_broken_json_can_be_encoded(texts: list[str], size: int) -> None:
    raw = json.dumps(texts).encode()
    made = b"".join(mended.without_halves(cut(raw, size)))
    assert all(text.encode() is not None for text in json.loads(made))
    assert [mended.whole_text(text) for text in json.loads(raw)] == json.loads(made)
    assert (made == raw) == (not mended.has_halves(cut(raw, size)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a,b\nx\ry,z\n", b'a,b\n"x\ry",z\n'),
        (b"a,b\r\nx\ry,z\r\n", b'a,b\n"x\ry",z\n'),
        (b"a,b\nx,y\r\n", b"a,b\nx,y\n"),
        (b"a,b\r\nx,y\r\r\n", b'a,b\n"x","y\r"\n'.replace(b'"x"', b"x")),
        (b'a,b\n"x\r\n,""y",\r\n', b'a,b\n"x\r\n,""y",\n'),
        (b'a,b\nx"\r"y,\r,\n', b'a,b\n"x""\r""y","\r",\n'),
        (b"a,b\nx,y\r", b"a,b\nx,y"),
        (b'a,b\r\nx,"y', b'a,b\nx,"y'),
    ],
)
def test_line_ends_become_one_kind_and_fields_keep_theirs(before: bytes, after: bytes) -> None:
    for size in SIZES:
        assert b"".join(mended.with_even_lines(cut(before, size), ",")) == after
        assert not mended.has_even_lines(cut(before, size)) or b"\r\n" in before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'a,b\ru1,x\ru2,"x\ny"\r', b'a,b\nu1,x\nu2,"x\ny"\n'),
        (b"a,b\ru2,x\ny\ru3,z\r", b'a,b\nu2,"x\ny"\nu3,z\n'),
        (b'"a\n",b\rx,"y\rz"\r', b'"a\n",b\nx,"y\rz"\n'),
        (b"a,b\rx,y\n", b"a,b\nx,y"),
    ],
)
def test_lines_that_end_with_a_carriage_return_keep_line_feeds_in_fields(before: bytes, after: bytes) -> None:
    for size in SIZES:
        assert b"".join(mended.with_even_lines(cut(before, size), ",")) == after


@pytest.mark.parametrize("unit", [b"\rb\n", b"\rb,", b"\rb", b"\r\n", b'\r"'])
def test_the_work_grows_as_the_text_does(unit: bytes) -> None:
    """Bytes that are looked at, by a text that counts what is asked of it."""
    looked = []
    for size in (1 << 10, 1 << 12):
        text = Counted(b"user,item\nu1,a\n" + unit * (size // len(unit)))
        mended._even(text, b",", bytes)
        looked.append(text.looked_at)
    assert looked[1] <= 5 * looked[0] + 100


class Counted(bytes):
    """Bytes that add up how far `find` and `rfind` go."""

    looked_at = 0

    def find(self, *args: Any) -> int:
        found, begin = super().find(*args), args[1] if len(args) > 1 else 0
        self.looked_at += (found if found >= 0 else args[2] if len(args) > 2 else len(self)) - begin
        return found

    def rfind(self, *args: Any) -> int:
        found = super().rfind(*args)
        self.looked_at += args[2] - max(found, args[1])
        return found


FIELD = st.text(st.sampled_from('ab ,"\r\n'), max_size=6)


@given(st.lists(st.lists(FIELD, min_size=2, max_size=2), max_size=6), st.integers(1, 9))
def test_a_csv_that_quotes_no_carriage_return_says_the_same_afterwards(
    rows: list[list[str]], size: int
) -> None:
    raw = "".join(",".join(map(written, row)) + "\n" for row in rows).encode()
    made = b"".join(mended.with_even_lines(cut(b"h,i\n" + raw, size), ",")).decode().removeprefix("h,i\n")
    expected = [[*row[:-1], row[-1] if is_quoted(row[-1]) else row[-1].removesuffix("\r")] for row in rows]
    assert list(csv.reader(io.StringIO(made, newline=""))) == expected


def is_quoted(field: str) -> bool:
    """A carriage return at the end of a line is a part of its end, if no quotation mark stands behind it."""
    return bool(set(field) & set(',"\n'))


def written(field: str) -> str:
    return f'"{field.replace(chr(34), chr(34) * 2)}"' if is_quoted(field) else field


@pytest.mark.parametrize("even", [b"a\nb\n", b"a\r\nb\r\n", b"a\rb\r", b"", b"a"])
def test_even_lines_are_seen(even: bytes) -> None:
    assert all(mended.has_even_lines(cut(even, size)) for size in SIZES)
    assert not any(mended.has_even_lines(cut(b"\r\n" + even + b"\n\r\n", size)) for size in SIZES)


def test_broken_bytes_stay_different() -> None:
    for size in SIZES:
        made = mended.in_utf_8(cut(b"a\xe9,\xe8 \xf0\x9f\x98\x80 \xf0\x9f", size), "utf-8", mended.REPLACED)
        assert b"".join(made).decode() == "a\ufffde9,\ufffde8 \U0001f600 \ufffdf09f"
    assert mended.is_utf_8(cut("é😀".encode(), 1))
    assert not mended.is_utf_8(cut("é😀".encode()[:-1], 1))
