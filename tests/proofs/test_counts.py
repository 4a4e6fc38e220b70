"""The numbers that proofs/README.md and docs/evidence.md state are those of the files they speak of."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from planted_checks import DRAWING_FAULTS, FAULTS
from sabotage import CHANGES
from vector_checks import vectors

ROOT = Path(__file__).parents[2]
README = (ROOT / "proofs" / "README.md").read_text(encoding="utf-8")


def stated(pattern: str, text: str = README) -> tuple[int, ...]:
    """The numbers of a sentence that stands there once."""
    (found,) = re.findall(pattern, text)
    return tuple(int(number) for number in ([found] if isinstance(found, str) else found))


def test_as_many_definitions_are_changed_as_are_stated() -> None:
    breaking = sum(bool(change.breaks) for change in CHANGES.values())
    changes = r"changes (\d+) definitions and hypotheses .*: for (\d+) of them .*, for (\d+) nothing does"
    assert stated(changes) == (len(CHANGES), breaking, len(CHANGES) - breaking)


def test_as_many_mistakes_are_planted_as_are_stated() -> None:
    assert stated(r"plants (\d+) mistakes") == (len(FAULTS),)
    assert stated(r"; (\d+) planted mistakes are found") == (len(DRAWING_FAULTS),)
    evidence = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert stated(r"`make proofs` plants (\d+) mistakes", evidence) == (len(FAULTS) + len(DRAWING_FAULTS),)


def test_as_many_files_are_to_be_refused_as_are_stated() -> None:
    files = [row for row in vectors("files_refused")["files"] if '"parents"' not in row.get("text", "")]
    reasons = Counter(row["reason"] for row in files)
    assert stated(r"Of the (\d+) files of the vectors that are to be refused") == (len(files),)
    assert stated(r"(\d+) by a policy") == (reasons["policy"],)
    certain = sum(reasons[reason] for reason in ("certificate", "ratio", "keeps_prior"))
    assert stated(r"All (\d+) files that are refused for their certificate") == (certain,)
