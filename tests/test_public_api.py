"""The public surface, what an import costs, and the direction of imports."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sottovoce as sv

PACKAGE = Path(sv.__file__).parent
ROOT = Path(__file__).parent.parent


def test_all_is_sorted_and_complete() -> None:
    assert sv.__all__ == sorted(set(sv.__all__))
    assert len(sv.__all__) <= 66
    for name in sv.__all__:
        assert getattr(sv, name) is not None
    assert set(sv.SAMPLERS) <= set(sv.__all__)


def test_type_checkers_are_told_the_same_names_and_homes() -> None:
    """`__init__.pyi` against the table of `__init__.py`; a module of its own is imported from the package."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    told = {name.asname: f".{node.module or name.name}" for node in imports for name in node.names}
    assert told == vars(sv)["_HOME"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(sv, "no_such_name")


def test_every_public_name_is_documented() -> None:
    for name in sv.__all__:
        value = getattr(sv, name)
        if callable(value) and not isinstance(value, sv.FDivergence):
            assert value.__doc__, name


def test_import_loads_nothing_but_itself() -> None:
    code = "import sys, sottovoce; print(*(name for name in sys.modules if name.startswith('sottovoce')))"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    assert done.stdout.split() == ["sottovoce"]


def test_import_loads_numpy_and_scipy_only() -> None:
    code = "import sys, sottovoce; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"polars", "pyarrow", "matplotlib", "click", "rich", "pyspark", "pandas", "duckdb", "marimo"}
    assert not heavy & set(done.stdout.split())


def test_import_leaves_the_large_rooms_until_they_are_asked_for() -> None:
    code = "import sys, sottovoce as sv; print(*sys.modules); sv.certify, sv.Ledger; print(*sys.modules)"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    before, after = (set(line.split()) for line in done.stdout.splitlines())
    later = {"sottovoce.release.mechanism", "sottovoce.release.ledger", "sqlite3"}
    assert not later & before
    assert later <= after


def test_the_help_of_the_command_needs_no_dataframes_and_no_numbers() -> None:
    code = (
        "import sys; from sottovoce.__main__ import main\n"
        "sys.argv = ['sottovoce', '--help']\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True)
    assert "release" in done.stdout
    heavy = {"polars", "pyarrow", "pandas", "matplotlib", "pyspark", "fastexcel", "duckdb"}
    assert not (heavy | {"numpy", "scipy", "sqlite3", "sottovoce.samplers"}) & set(done.stderr.split())


def test_rooms_import_in_one_direction() -> None:
    """The contracts of pyproject.toml, as `make lint` holds them: layers, and libraries where they belong."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("core/arithmetic.py", "from ..planning import compare"),
        ("records.py", "from .prior import Prior"),
        ("tables/tally.py", "from ..release import mechanism"),
        ("samplers/base.py", "import polars"),
        ("samplers/base.py", "from .. import bounds"),
        ("planning/cards.py", "import rich"),
        ("tables/tally.py", "import matplotlib"),
        ("newcomer.py", "x = 1"),  # a file that no layer names
    ],
)
def test_a_wrong_import_is_noticed(tmp_path: Path, room: str, line: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "src" / "sottovoce", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "src" / "sottovoce" / room).open("a") as file:
        file.write(f"\n{line}\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_library_refuses_with_errors_and_never_by_assert() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "assert " not in re.sub(r'""".*?"""', "", text, flags=re.DOTALL), path.name


def test_every_room_says_what_it_is_in_one_sentence() -> None:
    rooms = [path.parent for path in PACKAGE.glob("*/__init__.py")]
    assert len(rooms) == 10
    for room in rooms:
        words = (room / "__init__.py").read_text(encoding="utf-8")
        if room.name in ("core", "spark"):  # behind its words the core lists its files, and Spark its verbs
            words = re.sub(r'(?s)\n\n.*?"""\n.*', '"""\n', words, count=1)
        assert re.fullmatch(r'"""[A-Z][^.]*\.(?: [^.]*\.)?"""\n', words), room.name
    for path in PACKAGE.rglob("*.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path


def test_no_file_names_a_package_registry() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    names = tracked.stdout.split("\n")
    pattern = re.compile("index" + "-url|py" + r"pi\.org|/sim" + "ple/")
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", "", ".yml"}:
            assert not pattern.search(path.read_text(encoding="utf-8", errors="replace")), name
