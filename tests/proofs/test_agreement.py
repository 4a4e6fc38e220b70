"""Python's check and the proved one say the same: of random mechanisms, and of every file of the vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proved_cases import Plain, accepts
from vector_checks import content, vectors

from sottovoce.errors import MechanismFileError
from sottovoce.release.proved import ask, documents, hexadecimal, question

pytestmark = pytest.mark.proofs

BLIND = {"text": 15, "format": 12, "fields": 24, "value": 63, "digest": 9, "policy": 22}
"""Files to be refused that the checker accepts, by their reason: it sees a file's integers, not the rest.

text: the same numbers written otherwise, a key twice, a file too long. format: another name or version.
fields: a key that is missing or unknown and holds no integer of the certificate. value: names, labels, the
provenance, digests, digits with a leading zero. digest and policy: not about the certificate at all.
"""


def test_python_and_the_checker_agree_on_ten_thousand_mechanisms(answered: list[tuple[Plain, bool]]) -> None:
    assert len(answered) >= 10_000
    wrong = [plain for plain, yes in answered if accepts(plain) is not yes]
    assert not wrong, (len(wrong), wrong[0])


def test_the_mechanisms_are_of_every_kind_and_of_both_answers(answered: list[tuple[Plain, bool]]) -> None:
    seen = Counter((plain["kind"], plain["bits"] == 62, yes) for plain, yes in answered)
    assert len(seen) == 28
    assert min(seen.values()) > 100, seen


def asked(checker: Path, row: dict[str, Any]) -> str:
    """What the checker says of a file: yes, no, or that it cannot be asked."""
    try:
        lines = [question(plain) for plain in documents(content(row).decode("utf-8")).values()]
    except (MechanismFileError, UnicodeDecodeError):
        return "cannot be asked"
    answers = ask(checker, lines)
    return "yes" if set(answers) == {"yes"} else "no"


def certified() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mechanism file of the vectors that has to be accepted."""
    for row in vectors("files_accepted")["files"]:
        yield row["name"], row
    for name in (
        "draws_box",
        "draws_nearest",
        "draws_kernel",
        "draws_response",
        "draws_survey",
        "draws_groups",
        "stream_draws",
    ):
        for row in vectors(name)["files"]:
            if "reason" not in row:
                yield row["name"], row


def test_every_accepted_file_of_the_vectors_is_accepted(checker: Path) -> None:
    rows = list(certified())
    assert len(rows) > 60
    assert [name for name, row in rows if asked(checker, row) != "yes"] == []


def test_every_file_refused_for_its_integers_is_refused(checker: Path) -> None:
    answers: dict[str, Counter[str]] = {}
    for row in vectors("files_refused")["files"]:
        if '"parents"' in row.get("text", ""):  # the checker looks at the box, and not at its geometry
            continue
        answers.setdefault(row["reason"], Counter())[asked(checker, row)] += 1
    for reason in ("certificate", "ratio", "keeps_prior"):
        assert set(answers[reason]) == {"no"}, reason
    assert {reason: found["yes"] for reason, found in answers.items() if found["yes"]} == BLIND


def test_a_stream_refused_for_its_integers_is_refused(checker: Path) -> None:
    refused = [row for row in vectors("stream_draws")["files"] if row.get("reason") == "certificate"]
    assert refused
    assert {asked(checker, row) for row in refused} == {"no"}


def test_the_table_of_exponentials(checker: Path) -> None:
    table = vectors("exponentials")["table"]
    lines, expected = [], []
    for epsilon, ratio in table:
        a, b = map(int, epsilon.split("/"))
        up, down = map(int, ratio.split("/"))
        lines.append(f"ratio {hexadecimal(a)} {hexadecimal(b)}")
        expected.append(hexadecimal(up * (1 << 64) // down))
    assert len(lines) > 20
    assert ask(checker, lines) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "check",
        "check 3e 1",
        "draw 3 1 1 1 1 1 1 stream 1 4 1 1 100 1 0 1 0 1 0 0 0",
        "hello",
        "ratio 1",
        "ratio 1 1 1",
        "ratio x 1",
        "ratio - 1",
        "ratio 1 1_0",
    ],
)
def test_a_line_that_is_no_question_is_not_answered_by_yes_or_no(checker: Path, line: str) -> None:
    assert ask(checker, [line, "ratio 1 1"]) == ["unreadable", "2b7e151628aed2a6a"]
