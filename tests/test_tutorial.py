"""Every command of the tutorial runs, in order, in an empty folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from command import run

import sottovoce as sv
from sottovoce.release.file import ANY

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")


def test_the_tutorial_runs_from_its_first_line_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for language, block in re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL):
        if language == "python":
            names: dict[str, object] = {}
            exec(compile(block, "tutorial.md", "exec"), names)  # noqa: S102
            assert names["genre"] in sv.load_groups("mechanism.json", policy=ANY)["under 25"].categories
            continue
        for line in block.strip().splitlines():
            program, *arguments = shlex.split(line)
            assert program == "sottovoce"
            done = run(*arguments)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert pl.read_csv("comparison.csv").height == 3 * 3 * (len(sv.SAMPLERS) + 1)
    assert pl.read_csv("reports.csv").height == 2000
    assert sv.Ledger(tmp_path / "budget.db").left("member-0001", "2026-11") == 0  # 6 − 2 − 4
    assert Path("estimate.png").stat().st_size > 10_000


def test_the_quick_start_of_the_readme_runs(tmp_path: Path) -> None:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    activate, folder, *lines = block.replace("\\\n", "").splitlines()
    assert activate.startswith(". .venv/bin/activate")
    assert folder == 'cd "$(mktemp -d)"'
    for line in lines:
        done = run(*shlex.split(line)[1:], cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert (tmp_path / "estimate.png").stat().st_size > 10_000


def test_the_way_without_public_data_runs(tmp_path: Path) -> None:
    page = (DOCS / "learning.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in block.strip().splitlines():
        program, *arguments = shlex.split(line)
        assert program == "sottovoce"
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    mechanism = sv.load(tmp_path / "mechanism.json", policy=sv.Policy(max_epsilon=2))
    assert "2,000 private reports at ε = 2" in mechanism.origin
    assert pl.read_csv(tmp_path / "released.csv").height == 2000
