"""The proofs are complete, and rest on nothing but the real numbers of Coq's standard library."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.proofs

SOURCES = Path(__file__).parent.parent.parent / "proofs"
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
"""What Coq's standard library assumes for its real numbers."""


def assumed(text: str) -> set[str]:
    """The names of the axioms in what Print Assumptions wrote: a name begins a line, its type is indented."""
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    names = {re.split(r"[\s:]", line)[0] for line in heads}
    return names - {"Axioms", "Closed"}


def test_nothing_is_assumed_but_the_real_numbers(built: Path) -> None:
    text = (built / "assumptions.txt").read_text(encoding="utf-8")
    asked = re.findall(r"^Print Assumptions (\w+)\.", (SOURCES / "Assumptions.v").read_text(), re.MULTILINE)
    assert text.count("Axioms:") + text.count("Closed under the global context") == len(asked) >= 20
    assert assumed(text) == ALLOWED


def test_the_independent_checker_finds_the_same_and_nothing_unsafe(built: Path) -> None:
    text = (built / "checked.txt").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^\* ([^:]+):((?: .*)?(?:\n    .*)*)", text, re.MULTILINE))
    axioms = {name.split(".", 2)[2] for name in parts.pop("Axioms").split()}
    assert axioms == ALLOWED
    assert parts.pop("Theory").strip() == "Set is predicative"
    assert len(parts) == 3
    assert {found.strip() for found in parts.values()} == {"<none>"}


def test_what_is_about_whole_numbers_alone_assumes_nothing(built: Path) -> None:
    asked = re.findall(r"^Print Assumptions (\w+)\.", (SOURCES / "Assumptions.v").read_text(), re.MULTILINE)
    blocks = re.findall(
        r"^(Axioms:|Closed under the global context)", (built / "assumptions.txt").read_text(), re.MULTILINE
    )
    closed = {name for name, block in zip(asked, blocks, strict=True) if block.startswith("Closed")}
    wanted = {"draw_law", "draw_count", "exact_clip_right", "box_release_law", "box_private_units", "row_law"}
    assert (
        wanted
        | {
            "column_bounds",
            "kernel_private_tapes",
            "response_law",
            "walk_is_pick",
            "stream_private",
            "losses_private",
            "moved_inside",
        }
        <= closed
    )


def test_an_axiom_of_ones_own_would_be_seen() -> None:
    text = "Axioms:\nmy_gap : forall x : nat, x = 0\nClassical_Prop.classic : forall P : Prop, P \\/ ~ P\n"
    assert assumed(text) - ALLOWED == {"my_gap"}


def test_every_theorem_of_the_readme_is_there_and_is_asked_for_its_assumptions() -> None:
    page = (SOURCES / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \(`\w+\.v`\)", page, re.MULTILINE))
    sources = "".join(path.read_text(encoding="utf-8") for path in SOURCES.glob("*.v"))
    proved = set(re.findall(r"^Theorem (\w+)", sources, re.MULTILINE))
    asked = set(re.findall(r"^Print Assumptions (\w+)\.", sources, re.MULTILINE))
    assert len(named) >= 15
    assert named <= proved & asked


def test_make_proofs_prints_which_python_is_compared_and_which_is_not() -> None:
    recipe = subprocess.run(
        ["make", "-n", "proofs"], cwd=SOURCES.parent, capture_output=True, text=True, check=True
    ).stdout
    (command,) = (row for row in recipe.splitlines() if "Which Python it covers" in row)
    printed = subprocess.run(
        ["sh", "-c", command], cwd=SOURCES.parent, capture_output=True, text=True, check=True
    ).stdout
    compared, beside = printed.split("Not among it")
    assert all(name in compared for name in ("recheck", "exact_clip", "charge_of", "StreamEngine.box"))
    assert all(name in beside for name in ("**streams**", "step_law", "**nearest laws**", "release_many"))
