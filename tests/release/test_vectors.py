"""Golden vectors: the library and an independent client accept, refuse and release the same."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import make_vectors
import pytest
import tiny_client
from vector_checks import DRAWS, LibraryClient, complaints, content, tiny, vectors

import sottovoce as sv

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "tests" / "vectors"
OTHERS = {
    *DRAWS, "files_accepted", "files_refused",
    "exponentials", "shares", "canonical", "reports", "stream_draws", "page_samplers",
}  # fmt: skip
SCHEMA = json.loads((ROOT / "docs" / "format.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_there_is_a_file_for_every_sampler_and_what_the_page_names() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(sv.SAMPLERS) | OTHERS
    for_clients = [path for path in FOLDER.iterdir() if path.stem != "page_samplers"]
    assert sum(path.stat().st_size for path in for_clients) < 1_800_000
    assert max(path.stat().st_size for path in FOLDER.iterdir()) < 400_000
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in OTHERS if f"`{name}.json`" not in page] == []


def test_the_library_gets_every_vector_right() -> None:
    assert list(complaints(LibraryClient())) == []


def test_a_client_written_from_the_document_gets_every_vector_right() -> None:
    assert list(complaints(tiny())) == []


def test_every_refused_file_is_refused_for_the_reason_it_states() -> None:
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    for row in vectors("files_refused")["files"]:
        with pytest.raises(tiny_client.Refused, match=f"^{row['reason']}$"):
            tiny_client.load(content(row), row.get("policy", {}))
        assert f"|`{row['reason']}`|" in page


def test_every_name_of_a_vector_is_said_once() -> None:
    for name in ("files_accepted", "files_refused", "stream_draws", *DRAWS):
        rows = [row["name"] for row in vectors(name)["files"]]
        assert len(set(rows)) == len(rows), name


def test_the_vectors_cover_what_they_are_for() -> None:
    """The conditions of the page, each met by some vector: counted in the documents, not in their names."""
    rows = [row for name in OTHERS if name.startswith("draws") for row in vectors(name)["files"]]
    documents = [json.loads(row["text"]) for row in rows]
    plain = [one for one in documents if one["format"] == "sottovoce-mechanism"]
    kinds = {"box", "nearest", "kernel", "response", "survey"}
    assert {one["kind"] for one in plain if len(one["categories"]) == 1} == kinds
    for kind in kinds:
        found = [Fraction(one["epsilon"]) for one in plain if one["kind"] == kind]
        assert min(found) <= Fraction(0.001)
        assert max(found) == 30
    names = [name for one in plain for name in one["categories"]]
    assert {type(name) for name in names} == {int, str}
    assert any(ord(c) > 0xFFFF for name in names if isinstance(name, str) for c in name)
    assert "\u007f" in names
    assert any(
        len(one["kept"]) == 1 and len(one["categories"]) > 1 for one in plain if one["kind"] == "response"
    )


def test_boundary_words_reach_every_category() -> None:
    """For each mechanism of up to four categories, somebody releases each category that can be released."""
    for name in ("draws_box", "draws_nearest", "draws_kernel", "draws_response"):
        for row in vectors(name)["files"]:
            document = json.loads(row["text"])
            if len(document["categories"]) <= 4:
                places = document.get("kept", range(len(document["categories"])))
                reached = {case["released"] for user in row["users"] for case in user["draws"]}
                assert reached == {document["categories"][place] for place in places}, row["name"]


def _documents(name: str) -> list[tuple[dict[str, Any], Any]]:
    rows = [(row, row["text"]) for row in vectors(name)["files"] if "text" in row]
    found = []
    for row, text in rows:
        try:
            found.append((row, tiny_client.parse(text.encode())))
        except tiny_client.Refused:
            assert row.get("reason") == "text"
    return found


def test_the_schema_accepts_every_file_that_is_right() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for name in ("files_accepted", "stream_draws", *DRAWS):
        for row, document in _documents(name):
            assert "reason" in row or not list(VALIDATOR.iter_errors(document)), row["name"]
    for name in sv.SAMPLERS:
        VALIDATOR.validate(vectors(name)["mechanism"])


BEYOND = re.compile(
    'lowest terms|too short|too long|too large|above|epsilon zero|epsilon "[02]'
    "|order|kept|categories|by |ud800|geometry: "
)
"""Values whose fault a schema cannot say: comparisons, lengths of two lists, half a surrogate pair, NFKC, a tree."""


def test_the_schema_sees_what_a_schema_can_see() -> None:
    streams = [one for one in _documents("stream_draws") if "reason" in one[0]]
    for row, document in [*_documents("files_refused"), *streams]:
        valid = VALIDATOR.is_valid(document)
        if row["reason"] in ("certificate", "ratio", "keeps_prior", "policy"):
            assert valid, row["name"]  # nothing but the numbers is wrong
        elif row["reason"] in ("fields", "format") or (
            row["reason"] == "value" and not BEYOND.search(row["name"])
        ):
            assert not valid, row["name"]


def test_the_schema_and_the_client_agree_on_reports() -> None:
    for case in vectors("reports")["cases"]:
        try:
            report = tiny_client.parse(case["text"].encode())
        except tiny_client.Refused:
            continue
        if case["accepted"]:
            assert VALIDATOR.is_valid(report), case["name"]
        elif case["name"] not in (
            "another mechanism",
            "unknown category",
            "text for a number",
            "one wrong in a batch",
            "a group where there are none",
        ) and not case["name"].startswith("groups"):
            assert not VALIDATOR.is_valid(report), case["name"]


@pytest.mark.full
def test_the_vectors_are_what_their_maker_writes() -> None:
    for name, text in make_vectors.texts():
        assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == text, name
