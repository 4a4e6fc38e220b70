"""The vectors have teeth: of all faults planted in a client that passes them, every one is caught.

That the client without a fault passes them is a test of the vectors.
"""

from __future__ import annotations

import re

import pytest
from planted import FAULTS, REDUNDANT
from vector_checks import complaints, tiny, tiny_source


def caught(source: str) -> str | None:
    """The first complaint about a client, or about its failure."""
    client = tiny(source)
    try:
        return next(complaints(client), None)
    except Exception as problem:
        return f"it failed: {problem}"


SOME = list(FAULTS)[::10]
"""Every tenth fault, for every day; the full run plants them all."""


@pytest.mark.parametrize(
    "name", [name if name in SOME else pytest.param(name, marks=pytest.mark.full) for name in FAULTS]
)
def test_a_planted_fault_is_caught(name: str) -> None:
    source = tiny_source()
    for old, new in FAULTS[name]:
        assert source.count(old) >= 1, f"there is nothing to replace: {old}"
        source = source.replace(old, new)
    assert source != tiny_source()
    assert caught(source) is not None


CHECKS = sorted(set(re.findall(r"^ +(need\(.*\))$", tiny_source(), re.MULTILINE)))


@pytest.mark.full
@pytest.mark.parametrize("check", CHECKS)
def test_every_check_is_needed(check: str) -> None:
    """Each line that refuses is taken away; whoever stays unnoticed is known to say nothing new."""
    found = caught(tiny_source().replace(check, "pass"))
    assert (found is None) == (check in REDUNDANT), found


def test_every_redundant_check_is_one_of_the_client() -> None:
    assert set(REDUNDANT) <= set(CHECKS)
    assert len(FAULTS) >= 30
