"""The comparison has teeth: every planted mistake in Python's check is found by it."""

from __future__ import annotations

import pytest
from planted_checks import FAULTS, plant
from proved_cases import Plain, accepts

from sottovoce.core.box import BoxEngine

pytestmark = pytest.mark.proofs


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, answered: list[tuple[Plain, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(fault, monkeypatch)
    monkeypatch.setattr(BoxEngine, "prepare", lambda _: None)  # where a box without a law is refused again
    assert any(says(plain) is not yes for plain, yes in answered)


def says(plain: Plain) -> bool:
    """What the faulty check says; where it breaks down, nothing would be released."""
    try:
        return accepts(plain)
    except (ArithmeticError, LookupError, ValueError, AssertionError):
        return False
