"""A mechanism file larger than its categories justify is refused before it is read whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.release import file
from sottovoce.release.file import ANY, save_mechanisms

PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
GIB = 1 << 30


def mechanism() -> sv.Mechanism:
    return sv.certify(sv.kernel_clip(PRIOR, 1.0))


def huge(path: Path, head: bytes, filling: bytes, size: int = 4 * GIB) -> Path:
    """A file that claims gigabytes; holes take no room on the disk and read as zeros."""
    with path.open("wb") as file:
        file.write(head)
        file.write(filling * (200_000 // max(len(filling), 1)))
        file.truncate(size)
    return path


@pytest.mark.parametrize("filling", [b" ", b"\n", b'"x",', b"[", b"0"])
@pytest.mark.parametrize("where", ["first", "after the categories", "inside the options"])
def test_promise_10_padding_is_not_read(
    tmp_path: Path, filling: bytes, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({**mechanism().document(), "digest": mechanism().digest}).encode()
    at = {
        "first": 1,
        "after the categories": text.index(b'"epsilon"'),
        "inside the options": text.index(b"{}") + 1,
    }
    path = huge(tmp_path / "m.json", text[: at[where]], filling)
    read = 0
    real = file.longest

    def counting(data: bytes, most: int) -> tuple[int, int, int]:
        nonlocal read
        read = len(data)
        return real(data, most)

    monkeypatch.setattr(file, "longest", counting)
    for call in (sv.load, sv.load_groups):
        with pytest.raises(
            sv.errors.MechanismFileError, match=r"too large for [03] categories: it was not read further"
        ):
            call(path, policy=ANY)
        assert read < 1 << 19


@pytest.mark.parametrize(
    "text",
    [
        b'{"categories": [' + b"1," * 7000 + b'"' + b"a" * 4_000_000,  # a name that never ends
        b"{" + (b'"categories":[1],' + b" " * 60_000) * 300,  # a small list again and again
        b'{"categories":[1],"groups":[' + b"[]," * 4_000_000,
        b'{"categories": [' + b"\\" * 4_000_000,
    ],
    ids=["endless", "lists", "brackets", "backslashes"],
)
def test_promise_10_no_text_is_scanned_twice_over(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "m.json").write_bytes(text)
    looked = 0
    real = file.longest

    def counting(data: bytes, most: int) -> tuple[int, int, int]:
        nonlocal looked
        looked = len(data)
        return real(data, most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "longest", counting)
        with pytest.raises(sv.errors.MechanismFileError, match="too large for"):
            sv.load(tmp_path / "m.json", policy=ANY)
    assert looked < 1 << 21  # seven thousand categories justify a megabyte


def test_promise_10_many_names_are_bounded_by_the_policy(tmp_path: Path) -> None:
    head = b'{"format": "sottovoce-mechanism", "categories": ['
    with (tmp_path / "m.json").open("wb") as file:
        file.write(head + b",".join(b'"%d"' % i for i in range(400_000)))
    with pytest.raises(sv.errors.MechanismFileError, match="too large for"):
        sv.load(tmp_path / "m.json", policy=sv.Policy(max_epsilon="any", max_categories=1000))


def test_promise_10_one_endless_name(tmp_path: Path) -> None:
    path = huge(tmp_path / "m.json", b'{"categories": ["', b"x")
    with pytest.raises(sv.errors.MechanismFileError, match="too large for 0 categories"):
        sv.load(path, policy=ANY)


def test_promise_10_names_that_grow_with_the_text_justify_no_more(tmp_path: Path) -> None:
    """Each name ends before the next look at the text, and is half as long as all before it."""
    text = b'{"categories": [' + b'"a",' * 8
    while len(text) < 8_000_000:
        text += b'"' + b"a" * (len(text) // 2) + b'",'
    (tmp_path / "m.json").write_bytes(text + b'"b"]}')
    with pytest.raises(sv.errors.MechanismFileError, match="too large for"):
        sv.load(tmp_path / "m.json", policy=ANY)


@pytest.mark.parametrize(("groups", "problem"), [(10_000, "was changed"), (10_001, "fields of a file of")])
def test_a_file_has_ten_thousand_groups_at_most(groups: int, problem: str) -> None:
    plain = {
        "format": file.GROUPS,
        "version": 1,
        "by": "age",
        "groups": dict.fromkeys(map(str, range(groups))),
    }
    with pytest.raises(sv.errors.MechanismFileError, match=problem):
        file.parse_mechanisms(json.dumps({**plain, "digest": "0"}), "m.json", ANY)


@pytest.mark.parametrize("count", [1, 2, 5000])
@pytest.mark.parametrize("kind", ["names", "long names", "numbers", "escapes"])
def test_what_the_library_writes_is_always_justified(tmp_path: Path, count: int, kind: str) -> None:
    """Single files and files of many groups, for every engine, with names of every sort."""
    sorts: dict[str, Sequence[str | int]] = {
        "names": [f"c{i}" for i in range(count)],
        "long names": [f"{'ü' * 200} {i}" for i in range(count)],
        "numbers": list(range(count)),
        "escapes": [f'"],[{{\\ \n{i}' for i in range(count)],
    }
    prior = sv.Prior.from_counts([i % 7 + 1 for i in range(count)], sorts[kind])
    for make in (sv.kernel_clip, sv.minimax_kernel, sv.randomized_response):
        made = sv.certify(make(prior, 1.0))
        made.save(tmp_path / "m.json")
        assert sv.load(tmp_path / "m.json", policy=ANY) == made
    groups = {f'g{i} "categories": [': made for i in range(3 if count > 100 else 50)}
    save_mechanisms(groups, "age", tmp_path / "g.json")
    assert sv.load_groups(tmp_path / "g.json", policy=ANY) == groups
