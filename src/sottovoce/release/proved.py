"""Ask the proved checker: the integers of a mechanism file as one line of text, and its answer.

The checker is a program that is extracted from the proofs in `proofs/`; `make checker` builds it. What its
"yes" means is a theorem; that these lines say what the file says is not, and is tested. Nothing here uses the
release path's own reading or checking of a file, and nothing about a user goes to the checker.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import CertificateError, MechanismFileError, ParameterError
from ..groups import EVERYBODY

VARIABLE = "SOTTOVOCE_CHECKER"
"""The environment variable that names the checker, where it is not on the PATH."""
PROGRAM = "sottovoce-checker"

_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_FIELDS: dict[str, dict[str, type]] = {
    "box": {"prior": list, "low": list},
    "kernel": {"order": list, "prior": list, "low": list, "own": list},
    "response": {"kept": list, "own": str, "other": str, "prior": list},
    "stream": {"prior": list, "start": str, "pace": list, "persistence": int},
    "survey": {"base": int, "own": str, "other": str},
}
"""The numbers of each kind in the order in which the checker reads them: single ones, and lists."""
_CERTIFICATES = {"nearest": "box", "nearest-stream": "stream"}
"""Kinds whose certificate is that of another: the checker does not look at their geometry."""


def find_checker() -> Path:
    """Where the checker is, or a refusal that says how to get it."""
    named = os.environ.get(VARIABLE)
    program = shutil.which(named) if named else shutil.which(PROGRAM)
    if program is None:
        where = f"{named} ({VARIABLE}) is not a program" if named else f"no {PROGRAM} is on the PATH"
        raise ParameterError(
            f"the proved checker is not here: {where}; build it with `make checker`, and name the program in "
            f"{VARIABLE}"
        )
    return Path(program)


def agrees(text: str) -> dict[str, bool]:
    """Whether the checker says yes to each mechanism of a file's text, by group."""
    plains = documents(text)
    answers = ask(find_checker(), map(question, plains.values()))
    for answer in answers:
        if answer not in {"yes", "no"}:
            raise CertificateError(
                f"the proved checker answered {answer!r}: nothing is confirmed (it takes up to about 200,000 "
                f"categories)"
            )
    return {group: answer == "yes" for group, answer in zip(plains, answers, strict=True)}


def documents(text: str) -> dict[str, dict[str, Any]]:
    """The one document of a file, or those of its groups."""
    try:
        plain = json.loads(text)
        plains = plain.get("groups", {EVERYBODY: plain})
        if all(isinstance(each, dict) for each in plains.values()):
            return dict(plains)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise MechanismFileError("the checker cannot be asked: this is not a mechanism file")


def question(plain: Mapping[str, Any]) -> str:
    """The line that asks about a document; proofs/checker/main.ml says what stands where."""
    try:
        keeps, kind = plain["keeps_prior"], plain["kind"]
        kind = _CERTIFICATES.get(kind, kind)
        numbers = [_whole(plain["bits"]), len(plain["categories"])]
        for name in ("epsilon", "ratio"):
            above, below = plain[name].split("/")
            numbers += [_whole(above), _whole(below)]
        units: list[int] = []
        for name, kind_of_value in _FIELDS[kind].items():
            value = plain[name]
            if type(value) is not kind_of_value:
                raise ValueError
            units += [len(value), *map(_whole, value)] if isinstance(value, list) else [_whole(value)]
        if type(keeps) is not bool:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MechanismFileError("the checker cannot be asked: a number of the file is missing") from None
    words = ["check", *map(hexadecimal, numbers), str(int(keeps)), kind, *map(hexadecimal, units)]
    return " ".join(words)


def ask(checker: Path, questions: Iterable[str]) -> list[str]:
    """The checker's answers, one for each question."""
    lines = list(questions)
    try:
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run([checker], input=text, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise ParameterError(f"the proved checker {checker} does not start: {problem.strerror}") from None
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(lines):
        raise CertificateError(f"the proved checker {checker} ended without an answer: nothing is confirmed")
    return answers


def hexadecimal(value: int) -> str:
    """An integer as the checker reads it."""
    return format(value, "x")


def _whole(text: object) -> int:
    """A weight is a string of digits, a place a number."""
    if type(text) is int:
        return text
    if isinstance(text, str) and _DIGITS.fullmatch(text):
        return int(text)
    raise ValueError
