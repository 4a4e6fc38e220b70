"""The page for the paper's readers names what exists, and every item of the paper."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest

import sottovoce as sv
from benchmarks import cost
from sottovoce.samplers.kernels import MinimaxKernel

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## Items")[1].split("\n## ")[0]
ROWS = [
    line.strip("|").split("|")
    for line in TABLE.splitlines()
    if line.startswith("|") and not line.startswith(("|item", "|---"))
]
NUMBERED = {"Definition": 4, "Theorem": 2, "Lemma": 3, "Corollary": 2, "Proposition": 4, "Figure": 12}
ITEMS = [
    *(f"{kind} {number}" for kind, count in NUMBERED.items() for number in range(1, count + 1)),
    "Algorithm 1",
    "Example 1",
]
TESTS = re.findall(r"`([\w/]+\.py::\w+)`", PAGE)
FUNCTIONS = re.findall(r"`((?:sv|experiments|benchmarks)\.[\w.]+)`", PAGE)
LINKS = re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", PAGE)


@cache
def functions_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def anchors_of(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_no_item_of_the_paper_is_missing() -> None:
    named: list[str] = []
    for row in ROWS:
        kind, _, numbers = row[0].partition(" ")
        single = kind.removesuffix("s")
        if single in (*NUMBERED, "Algorithm", "Example"):
            named += [f"{single} {number}" for number in numbers.split(", ")]
    assert sorted(named) == sorted(ITEMS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_names_a_function_a_test_and_a_document(row: list[str]) -> None:
    assert len(row) == 5, row
    _, words, functions, tests, documents = row
    assert words
    assert re.fullmatch(r"`(sv|experiments|benchmarks)\.[\w.]+`(, `sv\.\w+`)*", functions)
    assert re.fullmatch(r"`[\w/]+\.py::\w+`(, `[\w/]+\.py::\w+`)*", tests)
    assert re.fullmatch(r"\[[\w ]+\]\(([\w.]+\.md)?(#[\w-]+)?\)", documents)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS)))
def test_every_function_on_the_page_exists(name: str) -> None:
    room, *path = name.split(".")
    found: object = sv
    if room != "sv":
        found = importlib.import_module(f"{room}.{path.pop(0)}")
    elif path[0] not in sv.__all__:
        pytest.fail(f"{name} is not a public name")
    for part in path:
        found = getattr(found, part)
    assert callable(found)


@pytest.mark.parametrize("name", sorted(set(TESTS)))
def test_every_test_on_the_page_exists(name: str) -> None:
    path, test = name.split("::")
    assert test in functions_in(path)


def test_every_document_and_anchor_on_the_page_exists() -> None:
    assert len(LINKS) > len(ROWS)
    for file, anchor in LINKS:
        path = ROOT / "docs" / (file or "paper.md")
        assert path.is_file(), file
        assert not anchor or anchor in anchors_of(path), f"{file}#{anchor}"


@pytest.mark.parametrize("n", [2, 5, 9])
def test_the_program_that_is_timed_finds_the_papers_bound(n: int) -> None:
    q = cost.prior(n)
    bound = sv.bounds.optimal_utility(sv.Prior(range(n), q), cost.EPSILON, sv.TV)
    assert cost.program_over_all_kernels(q) == pytest.approx(bound, abs=1e-7)


def test_the_cost_is_that_of_the_three_ways_each_with_its_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that knows the work: which function is timed, on which prior, and the power that is said."""
    work = {"program_over_all_kernels": 5.0, "_recursion": 3.0, "_closed": 1.0}
    timed: list[tuple[str, int]] = []

    def clock(run: Any, _repeats: int) -> float:
        name, (q,) = run.func.__name__, run.args
        assert np.all(np.diff(q) >= 0)
        timed.append((name, len(q)))
        return float(1e-9 * len(q) ** work[name])

    monkeypatch.setattr(cost, "seconds", clock)
    monkeypatch.setattr(cost, "_draw", lambda *_: None)
    lines = cost.growth()
    assert [line.ours for line in lines[:3]] == ["5.00", "3.00", "1.00"]
    assert ["program" in lines[0].what, "Algorithm 1" in lines[1].what, "closed" in lines[2].what] == [
        True
    ] * 3
    assert {n for name, n in timed if name == "_recursion"} == set(cost.RECURSION)
    assert all(line.holds for line in lines)


@pytest.mark.parametrize("n", [3, 8])
def test_what_is_timed_is_the_papers_kernel(n: int) -> None:
    q = cost.prior(n)
    papers = oracles.algorithm_1(q, cost.EPSILON)
    np.testing.assert_allclose(np.asarray(cost._recursion(q), dtype=np.float64), papers, rtol=1e-13)
    closed = cost._closed(q)
    assert isinstance(closed, MinimaxKernel)
    np.testing.assert_allclose(closed.matrix(), papers, rtol=1e-10)


def test_the_fitted_exponent_is_the_power() -> None:
    sizes = (2, 10, 20, 40, 80)
    times = [1.0, *(7e-9 * n**2.5 for n in sizes[1:])]  # the first is not among the largest four
    assert cost.exponent(sizes, times) == pytest.approx(2.5, abs=1e-12)
    assert np.all(np.diff(cost.PROGRAM) > 0)
    assert (cost.PROGRAM[0], cost.PROGRAM[-1]) == (5, 60)
