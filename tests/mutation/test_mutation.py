"""The faults of `make mutants`: what is made, what is left alone, and that a fault is told from none."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from mutation.__main__ import PAGE, ROOM, Verdict, chosen, counted, equivalents, row
from mutation.covering import Covering
from mutation.operators import mutants_of
from mutation.running import ROOT, stages, within

FOLDER = ROOT / "src" / "sottovoce" / ROOM

SAMPLES = {
    "a < b": {"a <= b", "a >= b"},
    "a == b": {"a != b"},
    "a + b": {"a - b"},
    "a // b": {"-(-a // b)"},
    "a and b": {"a or b"},
    "not a": {"a"},
    "-a": {"a"},
    "3": {"4", "2"},
    "True": {"False"},
    "min(a)": {"max(a)"},
    "bisect_right(a, b)": {"__import__('bisect').bisect_left(a, b)"},
    "a if b else c": {"a if not b else c"},
    "'text'": set(),
    "zip(a, b, strict=True)": set(),
}


@pytest.mark.parametrize("code", SAMPLES)
def test_every_kind_of_fault_is_made(code: str) -> None:
    found = {make().after for make in mutants_of("x.py", f"x = {code}\n")}
    assert found == {f"x = {other}" for other in SAMPLES[code]}


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("if a:\n    b()", {"if not a:", "pass"}),
        ("while a:\n    break", {"while not a:", "continue"}),
        ("for a in b:\n    continue", {"break"}),
        ("raise ValueError(f'{a + 1}')", {"pass"}),
        ("a += b", {"pass"}),
        ("def f(a=3):\n    '''Say 1.'''\n    return a", {"def f(a=4):", "def f(a=2):", "return None"}),
        ("class P(Protocol):\n    a = 1", set()),
        ("@decorated(3)\ndef f(): ...", set()),
    ],
)  # fmt: skip
def test_statements_are_changed_and_words_are_not(code: str, after: set[str]) -> None:
    assert {make().after for make in mutants_of("x.py", code)} == after


def test_every_mutant_is_another_program_that_compiles() -> None:
    for name in ("box_fast.py", "ledger.py", "randomness.py"):
        source = (FOLDER / name).read_text(encoding="utf-8")
        before = ast.unparse(ast.parse(source))
        for mutant in chosen(name, source, 60, "compiled"):
            compile(mutant.source, name, "exec")
            assert mutant.source != before, mutant.name
            assert 1 <= mutant.line <= source.count("\n")


def test_a_larger_sample_holds_the_smaller_one() -> None:
    source = (FOLDER / "box_fast.py").read_text(encoding="utf-8")
    few, more = ({one.name for one in chosen("box_fast.py", source, size, "x")} for size in (5, 20))
    assert (len(few), len(more)) == (5, 20)
    assert few < more


def test_what_the_page_calls_equivalent_can_be_made() -> None:
    """A reason is about a change of today's source; one that nobody can make any more is taken out."""
    named = equivalents(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 10
    for file in sorted({file for file, _, _ in named}):
        source = (FOLDER / file).read_text(encoding="utf-8")
        made = {(file, one.before, one.after) for one in (make() for make in mutants_of(file, source))}
        assert not {one for one in named if one[0] == file} - made


def test_the_score_counts_what_a_test_could_notice() -> None:
    def verdict(status: str, after: str) -> Verdict:
        return Verdict("n", "a.py", 1, "k", "b", after, status, 1, 0, 0.1)

    told = [("killed", "1"), ("killed: time", "2"), ("survived", "3"), ("survived", "4")]
    found = counted([verdict(*one) for one in told], {("a.py", "b", "3")})
    assert row("a", found) == "| a | 4 | 2 | 1 | 1 | 1 | 66.7 % |"


def test_tests_are_taken_the_fastest_first_and_the_own_file_before_others() -> None:
    lines = {"3": ["t/x::a", "t/x::b", "t/y::c"], "4": ["t/z::d"]}
    known = Covering({"a.py": lines}, {"t/x::a": 2, "t/x::b": 1, "t/y::c": 0.5})
    tests = known.tests("a.py", 3)
    assert tests == ["t/y::c", "t/x::b", "t/x::a"]
    assert known.tests("a.py", 99) == ["t/z::d", *tests]  # a line that only the import runs
    assert within(tests, known.seconds, 1.6) == tests[:2]
    assert stages(tests, known.seconds) == [["t/x::b", "t/x::a"], ["t/y::c"]]


RUN = """
import sys
from pathlib import Path
from mutation.operators import mutants_of
from mutation.running import ROOT, Bench, preload
preload()
bench = Bench(Path(sys.argv[1]))
source = (ROOT / "src/sottovoce/release/exact.py").read_text(encoding="utf-8")
made = (make() for make in mutants_of("exact.py", source))
fault = next(one for one in made if one.after == "if min(least) < 0:")
tests = ["tests/release/test_edges.py::test_a_box_that_holds_one_law_is_a_box"]
for changed in (None, fault.source, "import nothing_of_this_name"):
    print(bench.run("release/exact.py", changed, tests, 100)[0])
print(bench.run("release/exact.py", "while True: pass", tests, 3)[0])
"""


def test_a_fault_is_told_from_none(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path / "copy")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)
    assert done.stdout.split("\n") == ["survived", "killed", "killed: error", "killed: time", ""], done.stderr
