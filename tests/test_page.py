"""The numbers of the page, in JavaScript, against those of the library: a file of vectors, and random priors."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import page_vectors
import pytest

SCRIPT = Path(__file__).parents[1] / "page" / "test" / "support" / "ask.js"
NODE = shutil.which("node") or ""


def ask(questions: list[dict[str, Any]], folder: Path) -> Any:
    """What the page answers."""
    if not NODE:
        pytest.skip("no node on this machine: the page was not asked")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    command = [NODE, str(SCRIPT), str(folder / "questions.json"), str(folder / "answers.json")]
    subprocess.run(command, check=True, timeout=1200)
    return json.loads((folder / "answers.json").read_text(encoding="utf-8"))


def differences(mine: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number's difference by its path: of a floor in parts of itself, else of the larger of it and 1.

    A promise is computed with expm1, whose last digit is the machine's; what is fitted within it is exact.
    """
    number = isinstance(mine, int | float) and isinstance(theirs, int | float)
    if number and (path == "fitted.promise" or not path.startswith(page_vectors.EXACT)):
        scale = abs(mine) if path.endswith("floor") else max(abs(mine), 1.0)
        yield path, abs(mine - theirs) / scale if scale else abs(theirs)
    elif isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys():
        for key in mine:
            yield from differences(mine[key], theirs[key], f"{path}.{key}" if path else key)
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for one, other in zip(mine, theirs, strict=True):
            yield from differences(one, other, path)
    else:
        yield path, 0.0 if mine == theirs else 1.0


def check_agreement(count: int, folder: Path) -> None:
    """Random priors: floors, laws, distances and worst cases of all samplers; of some also the choices."""
    rng = random.Random(f"page {count}")
    questions = [
        page_vectors.some_question(
            rng,
            page_vectors.some_weights(rng),
            page_vectors.some_epsilon(rng),
            usual=rng.random() < 0.2,
            parts=(k % 5 == 0) + 2 * (k % 10 == 0),
        )
        for k in range(count)
    ]
    for question, theirs in zip(questions, ask(questions, folder), strict=True):
        mine = page_vectors.answer(question)
        assert {path: off for path, off in differences(mine, theirs) if not off <= 1e-12} == {}, question


def test_the_vectors_are_those_of_the_generator() -> None:
    """To thirteen digits: libraries of mathematics differ in the last one."""
    assert page_vectors.FILE.stat().st_size < 150_000
    stored = json.loads(page_vectors.FILE.read_text(encoding="utf-8"))
    made = page_vectors.cases()
    assert [case["question"] for case in stored] == json.loads(
        json.dumps([case["question"] for case in made])
    )
    for mine, theirs in zip(made, stored, strict=True):
        wrong = {path for path, off in differences(mine["answer"], theirs["answer"]) if not off <= 1e-13}
        assert not wrong, mine["question"]["name"]


def test_random_priors(tmp_path: Path) -> None:
    check_agreement(30, tmp_path)


@pytest.mark.full
def test_random_priors_at_their_stated_number(tmp_path: Path) -> None:
    check_agreement(2_000, tmp_path)
