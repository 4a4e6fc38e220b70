"""Golden vectors: the library and an independent client release the same categories from the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_client

import sottovoce as sv
from sottovoce.release import randomness
from sottovoce.release.mechanism_file import parse

FOLDER = Path(__file__).parent.parent / "vectors"


def test_there_is_a_file_for_every_sampler() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(sv.SAMPLERS)


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_the_library_reproduces_its_golden_vectors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    mechanism = parse(json.dumps(plain["mechanism"]), name, sv.Policy())
    assert mechanism.digest == plain["mechanism"]["digest"]
    for case in plain["cases"]:
        data = bytes.fromhex(case["bytes"])
        assert len(data) == 8 * mechanism.engine.words
        monkeypatch.setattr(randomness, "_read", lambda _, data=data: data)
        assert mechanism.release(case["records"]) == case["released"]
        if "weights" in case:
            law = mechanism.law(records=case["records"])
            assert [str(share * (1 << 62)) for share in law] == case["weights"]


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_a_client_written_from_the_document_reproduces_them_too(name: str) -> None:
    plain = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    document = tiny_client.read(json.dumps(plain["mechanism"]))
    for case in plain["cases"]:
        data = bytes.fromhex(case["bytes"])
        assert tiny_client.release(document, case["records"], data) == case["released"]
        if "weights" in case:
            positions = {c: i for i, c in enumerate(document["categories"])}
            counts = {positions[c]: case["records"].count(c) for c in case["records"]}
            assert [str(w) for w in tiny_client.law(document, counts)] == case["weights"]


def test_the_client_notices_a_changed_file() -> None:
    plain = json.loads((FOLDER / "kernel_clip.json").read_text(encoding="utf-8"))["mechanism"]
    plain["categories"][0] = "Drame"
    with pytest.raises(ValueError, match="changed"):
        tiny_client.read(json.dumps(plain))
