"""The public surface, what an import costs, and the direction of imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sottovoce as sv

PACKAGE = Path(sv.__file__).parent
ROOT = Path(__file__).parent.parent

# Who may import whom: each room only those before it.
FLOW = [
    "_starting",
    "errors", "_validate", "prior", "divergences", "support", "kernel", "response", "floors", "clip",
    "samplers", "catalogue", "users", "prior_check", "tally", "weights", "exact", "randomness", "spread",
    "draws", "linear_draws", "document", "mechanism", "justified_text", "mechanism_file", "certify",
    "charges", "ledger_store", "ledger_entries", "ledger", "audit", "comparison", "tuning", "collector",
    "unpack", "files", "header", "reading", "reader", "cells", "frames", "tables", "people", "inputs",
    "reports", "estimation", "cards",
    "spark_session", "spark", "demo", "plots", "report", "_terminal", "_interruption", "_parsing", "commands",
    "table_commands", "release_commands", "audit_commands", "ledger_commands", "estimate_commands",
    "explore", "explore_command", "cli", "__main__",
]  # fmt: skip


COMMANDS = ("table_commands", "release_commands", "audit_commands", "ledger_commands", "estimate_commands")


def test_all_is_sorted_and_complete() -> None:
    capital = [name for name in sv.__all__ if name.isupper()]
    classes = [name for name in sv.__all__ if not name.isupper() and name[0].isupper()]
    verbs = [name for name in sv.__all__ if name[0].islower()]
    assert sv.__all__ == [*sorted(capital), *sorted(classes), *sorted(verbs)]
    for name in sv.__all__:
        assert getattr(sv, name) is not None
    assert set(sv.SAMPLERS) <= set(sv.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(sv, "no_such_name")


def test_every_public_name_is_documented() -> None:
    for name in sv.__all__:
        value = getattr(sv, name)
        if callable(value) and not isinstance(value, sv.FDivergence):
            assert value.__doc__, name


def test_import_loads_numpy_and_scipy_only() -> None:
    code = "import sys, sottovoce; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"polars", "pyarrow", "matplotlib", "typer", "rich", "pyspark", "pandas", "narwhals", "marimo"}
    assert not heavy & set(done.stdout.split())


def test_imports_flow_in_one_direction() -> None:
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert files | {"explore"} == set(FLOW)  # a folder
    for path in PACKAGE.glob("*.py"):
        if path.stem == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                rooms = [node.module] if node.module else [alias.name for alias in node.names]
                for room in set(rooms) - {"__version__"}:
                    assert FLOW.index(room) < FLOW.index(path.stem), f"{path.stem} imports {room}"


def test_files_stay_readable() -> None:
    for path in PACKAGE.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 350, path.name
        assert "assert " not in re.sub(r'""".*?"""', "", text, flags=re.DOTALL), path.name


def test_only_frames_and_plots_know_heavy_libraries() -> None:
    allowed = {
        "polars": {"files", "people", "comparison"},
        "narwhals": {"frames"},
        "pyarrow": {"cells", "spark"},
        "pyspark": {"spark", "spark_session"},
        "matplotlib": {"plots"},
        "typer": {"cli", "commands", "explore_command", *COMMANDS},
        "rich": {"commands", "_terminal", *COMMANDS},
    }
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [(node.module or "").split(".")[0]]
            for name in names:
                assert path.stem in allowed.get(name, {path.stem}), f"{path.stem} imports {name}"


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
