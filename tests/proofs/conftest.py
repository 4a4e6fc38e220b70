"""What `make proofs` built; without it these tests are skipped, and say so, or fail where it is expected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from proved_cases import Plain, cases

from sottovoce.release.proved import PROGRAM, ask, question

BUILT = Path(__file__).parent.parent.parent / "build" / "proofs"
CASES = 10_000


def _missing(what: str) -> None:
    """Skip, and say so; where the proofs are expected, as by `make proofs` and in CI, fail."""
    if os.environ.get("PROOFS_EXPECTED"):
        pytest.fail(f"the proofs are expected, and {what}")
    pytest.skip(what)


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with the compiled proofs."""
    if not (BUILT / "assumptions.txt").exists():
        _missing("the proofs are not compiled: run make proofs (it needs apt install coq)")
    return BUILT


@pytest.fixture(scope="session")
def checker() -> Path:
    """The proved checker."""
    if not (BUILT / PROGRAM).exists():
        _missing("the checker is not built: run make proofs, or make checker without Coq")
    return BUILT / PROGRAM


@pytest.fixture(scope="session")
def answered(checker: Path) -> list[tuple[Plain, bool]]:
    """Ten thousand random and changed mechanisms, and what the checker says of each."""
    made = cases(CASES, 17)
    answers = ask(checker, map(question, made))
    assert set(answers) == {"yes", "no"}
    return [(plain, answer == "yes") for plain, answer in zip(made, answers, strict=True)]
