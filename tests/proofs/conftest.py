"""What `make proofs` built; without it these tests are skipped, and say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from proved_cases import Plain, cases

from sottovoce.release.proved import PROGRAM, ask, question

BUILT = Path(__file__).parent.parent.parent / "build" / "proofs"
CASES = 10_000


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with the compiled proofs."""
    if not (BUILT / PROGRAM).exists():
        pytest.skip("the proofs are not compiled: run make proofs (it needs apt install coq)")
    return BUILT


@pytest.fixture(scope="session")
def checker(built: Path) -> Path:
    """The proved checker."""
    return built / PROGRAM


@pytest.fixture(scope="session")
def answered(checker: Path) -> list[tuple[Plain, bool]]:
    """Ten thousand random and changed mechanisms, and what the checker says of each."""
    made = cases(CASES, 17)
    answers = ask(checker, map(question, made))
    assert set(answers) == {"yes", "no"}
    return [(plain, answer == "yes") for plain, answer in zip(made, answers, strict=True)]
