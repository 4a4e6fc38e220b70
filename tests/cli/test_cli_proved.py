"""`sottovoce audit --proved`: how the checker is found, what is asked of it, and what its answers do.

The checker here is a script that answers what it is told and keeps what it was asked; the real one is held
against Python in tests/proofs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from command import run

import sottovoce as sv
from sottovoce.cli.audit import audit_command
from sottovoce.release.file import Policy, read_text, save_mechanisms
from sottovoce.release.proved import PROGRAM, VARIABLE, question

PRIOR = sv.Prior(["a", "b"], [0.4, 0.6])
DRAWS = ("--draws", 2000)


@pytest.fixture
def mechanism(tmp_path: Path) -> sv.Mechanism:
    made = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    made.save(tmp_path / "mechanism.json")
    return made


def stub(folder: Path, answer: str, code: int = 0) -> Path:
    """A checker that gives one answer to every question."""
    path = folder / PROGRAM
    path.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\nlines = sys.stdin.readlines()\n"
        f"pathlib.Path({str(folder / 'asked.txt')!r}).write_text(''.join(lines))\n"
        f"for line in lines:\n    print({answer!r})\nsys.exit({code})\n"
    )
    path.chmod(0o755)
    return path


def test_without_a_checker_it_says_what_to_do(
    mechanism: sv.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("audit", tmp_path / "mechanism.json", "--proved", *DRAWS)
    assert done.returncode == 2
    assert "make checker" in done.stderr
    assert VARIABLE in done.stderr
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    done = run("audit", tmp_path / "mechanism.json", "--proved", *DRAWS)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_the_variable_and_the_path_find_it(
    mechanism: sv.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = stub(tmp_path, "yes")
    monkeypatch.setenv(VARIABLE, str(checker))
    done = run("audit", tmp_path / "mechanism.json", "--proved", *DRAWS)
    assert done.returncode == 0, done.stderr
    assert "the proved checker says yes" in done.stderr
    assert (tmp_path / "asked.txt").read_text() == question(mechanism.document()) + "\n"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("audit", tmp_path / "mechanism.json", "--proved", *DRAWS, "--json")
    assert [row["proved"] for row in json.loads(done.stdout)] == [True]


def test_the_checker_gets_what_was_checked_and_the_file_is_read_once(
    mechanism: sv.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(stub(tmp_path, "yes")))
    path, read = tmp_path / "mechanism.json", []

    def once(file: Path, rules: Policy) -> str:
        read.append(file)
        text = read_text(file, rules)
        path.write_text("{}")  # whoever reads it again finds something else
        return text

    monkeypatch.setattr("sottovoce.cli.audit.read_text", once)
    done = CliRunner().invoke(audit_command, [str(path), "--proved", "--draws", "2000"])
    assert done.exit_code == 0, done.output
    assert read == [path]
    assert (tmp_path / "asked.txt").read_text() == question(mechanism.document()) + "\n"


def test_a_no_fails_the_audit(
    mechanism: sv.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(stub(tmp_path, "no")))
    done = run("audit", tmp_path / "mechanism.json", "--proved", *DRAWS)
    assert done.returncode == 1
    assert "the proved checker says NO" in done.stderr


@pytest.mark.parametrize(
    ("answer", "code"), [("too large", 0), ("unreadable", 0), ("yes", 3), ("yes\nyes", 0)]
)
def test_anything_but_an_answer_confirms_nothing(
    answer: str, code: int, mechanism: sv.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(stub(tmp_path, answer, code)))
    done = run("audit", tmp_path / "mechanism.json", "--proved", *DRAWS)
    assert done.returncode == 2
    assert "nothing is confirmed" in done.stderr


def test_groups_are_asked_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {
        "north": sv.certify(sv.kernel_clip(PRIOR, 1.0)),
        "south": sv.certify(sv.minimax_kernel(PRIOR, 2.0)),
    }
    save_mechanisms(made, "region", tmp_path / "groups.json")
    monkeypatch.setenv(VARIABLE, str(stub(tmp_path, "yes")))
    done = run("audit", tmp_path / "groups.json", "--proved", *DRAWS)
    assert done.returncode == 0, done.stderr
    asked = [question(one.document()) for one in made.values()]
    assert (tmp_path / "asked.txt").read_text().splitlines() == asked


def test_the_line_says_what_the_file_says() -> None:
    # N = 4, two categories, ε = 1/2, A = 3/2; written by hand from proofs/checker/main.ml.
    common = {"bits": 2, "categories": ["a", "b"], "epsilon": "1/2", "ratio": "3/2", "keeps_prior": True}
    box = {**common, "kind": "box", "prior": ["1", "3"], "low": ["2", "10"]}
    assert question(box) == "check 2 2 1 2 3 2 1 box 2 1 3 2 2 a"
    kernel = {**box, "kind": "kernel", "order": [1, 0], "own": ["11", "4"], "keeps_prior": False}
    assert question(kernel) == "check 2 2 1 2 3 2 0 kernel 2 1 0 2 1 3 2 2 a 2 b 4"
    response = {**box, "kind": "response", "kept": [1], "own": "12", "other": "0"}
    assert question(response) == "check 2 2 1 2 3 2 1 response 1 1 c 0 2 1 3"
    settings = {"start": "17", "pace": [3, 256], "persistence": 12}
    stream = {**common, "kind": "stream", "prior": ["1", "3"], **settings}
    assert question(stream) == "check 2 2 1 2 3 2 1 stream 2 1 3 11 2 3 100 c"
    assert question({**stream, "kind": "nearest-stream"}) == question(stream)
