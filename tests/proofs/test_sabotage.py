"""The theorems rest on their definitions: whoever changes one of them breaks the lemma that is named for it."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from sabotage import CHANGES, SOURCES, broken_by, files

pytestmark = [pytest.mark.proofs, pytest.mark.full]


@pytest.fixture(scope="module")
def compiled(built: Path) -> Path:
    """The compiled proofs, if they are those of the sources as they are now."""
    if shutil.which("coqc") is None:
        pytest.skip("coqc is not on this machine: apt install coq")
    for name in files():
        same = (built / f"{name}.v").read_bytes() == (SOURCES / f"{name}.v").read_bytes()
        assert same, f"{name}.v was changed after it was compiled: run make proofs"
    return built


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_definition_breaks_its_lemma(name: str, compiled: Path, tmp_path: Path) -> None:
    change = CHANGES[name]
    assert bool(change.breaks) != bool(change.harmless)
    assert broken_by(change, compiled, tmp_path) == change.breaks


def test_every_file_is_sabotaged() -> None:
    changed = Counter(change.file for change in CHANGES.values())
    assert set(changed) == set(files())
    assert min(changed.values()) >= 3
    assert sum(bool(change.breaks) for change in CHANGES.values()) >= 40
