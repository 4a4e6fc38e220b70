"""Promise 2: no float between the certified integers and the released category. The room is looked at whole."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.samplers.survey import Survey

PACKAGE = Path(sv.__file__).parent
CORE = sorted((PACKAGE / "core").glob("*.py"))
MECHANISM = PACKAGE / "release" / "mechanism.py"
"""The one file outside the core that stands between a request and its draw."""
FLOATS = {
    "float", "complex", "float16", "float32", "float64", "longdouble", "double", "half", "single", "inexact",
    "floating", "FloatArray", "ldexp", "frexp", "log", "log2", "exp2", "sqrt", "random", "true_divide",
    "nan", "inf", "linspace", "mean",
}  # fmt: skip
OUTSIDE = {"math", "cmath", "random", "statistics", "scipy"}


def find_floats(source: str) -> list[str]:
    """Constants, true divisions, types, functions and imports that bring a float, with their lines."""
    found = []
    tree = ast.parse(source)
    for part in tree.body:
        if isinstance(part, ast.If) and isinstance(part.test, ast.Name) and part.test.id == "TYPE_CHECKING":
            part.body = []  # names of types are no code that runs
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            found.append(f"{node.lineno}: {node.value}")
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            found.append(f"{node.lineno}: /")
        elif isinstance(node, ast.Name) and node.id in FLOATS:
            found.append(f"{node.lineno}: {node.id}")
        elif isinstance(node, ast.Attribute) and node.attr in FLOATS:
            found.append(f"{node.lineno}: .{node.attr}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            )
            found += [f"{node.lineno}: {name}" for name in modules if name.split(".")[0] in OUTSIDE]
    return found


@pytest.mark.parametrize("path", [*CORE, MECHANISM], ids=lambda path: path.stem)
def test_promise_2_no_float_in_the_core(path: Path) -> None:
    assert find_floats(path.read_text(encoding="utf-8")) == []


def test_promise_2_what_runs_between_the_integers_and_the_category_is_the_core() -> None:
    """Every file that a draw enters, for every sampler, few and many categories, one user and many."""
    names: set[str] = set()

    def entered(frame: FrameType, _event: str, _value: object) -> None:
        names.add(frame.f_code.co_filename)

    for size in (5, 300):
        prior = sv.Prior.from_counts(range(1, size + 1))
        users = np.zeros((3, size), dtype=np.int64)
        users[0, 0], users[1, :3], users[2, 1::2] = 1, 2, 7
        mechanisms = [sv.certify(make(prior, 1.0)) for make in sv.SAMPLERS.values()]
        mechanisms.append(sv.certify(sv.nearest(prior, 1.0, sv.Line(range(size)))))
        mechanisms.append(sv.certify(sv.stream(prior, 2.0)))
        mechanisms.append(sv.certify(Survey(sv.Prior.uniform(prior.categories), 1.0, 3)))
        for mechanism in mechanisms:
            rows = mechanism.prepare(users)
            states = [mechanism.start()] * 3 if mechanism.streaming else None
            sys.setprofile(entered)
            try:
                mechanism.draw(rows, states)
                mechanism.draw(rows, states, exact=True)
            finally:
                sys.setprofile(None)
    ran = {path for path in map(Path, names) if PACKAGE in path.parents}
    assert ran <= {*CORE, MECHANISM}


@pytest.mark.parametrize(
    "line",
    [
        "x = 0.5", "x = 1 / 2", "x /= 2", "x = float(3)", "x = np.float64(1)", "import math",
        "from math import isqrt", "from scipy import sparse", "x = np.sqrt(2)",
    ],
)  # fmt: skip
def test_the_float_finder_finds(line: str) -> None:
    assert len(find_floats(line)) == 1
