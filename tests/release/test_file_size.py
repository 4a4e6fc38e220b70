"""A mechanism file larger than the policy accepts is refused before it is read whole."""

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


def test_promise_10_a_file_is_read_no_further_than_the_policy_accepts(tmp_path: Path) -> None:
    text = json.dumps({**mechanism().document(), "digest": mechanism().digest}).encode()
    path = huge(tmp_path / "m.json", text, b" ")
    few = sv.Policy(max_epsilon="any", max_categories=3)
    for call in (sv.load, sv.load_groups):
        with pytest.raises(sv.errors.MechanismFileError, match="has more than 68,608 bytes"):
            call(path, policy=few)
    for size, fits in ((68_608, True), (68_609, False)):
        path.write_bytes(text.ljust(size))
        if fits:
            assert sv.load(path, policy=few) == mechanism()
        else:
            with pytest.raises(sv.errors.MechanismFileError, match="too large for 3 categories"):
                sv.load(path, policy=few)


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
def test_what_the_library_writes_is_never_too_large(tmp_path: Path, count: int, kind: str) -> None:
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
