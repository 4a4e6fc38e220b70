"""The library against the JavaScript client: random draws, re-signed mutants, in one call of Node."""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from mutants import POLICIES, N, mutant, some_mechanism, some_nearest
from vector_checks import LibraryClient
from vector_draws import boundaries, ends, signed

import sottovoce as sv

LIBRARY = LibraryClient()
CLIENT = Path(__file__).parents[2] / "clients" / "js"
NODE = shutil.which("node") or ""
STRANGE = ["nowhere", " ", -(2**40), "\U0001f600"]


def ask(questions: dict[str, Any], folder: Path) -> Any:
    """What the client answers."""
    if not NODE:
        pytest.skip("no node on this machine: the JavaScript client was not asked")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    script = CLIENT / "test" / "support" / "answer.js"
    command = [NODE, str(script), str(folder / "questions.json"), str(folder / "answers.json")]
    subprocess.run(command, check=True, timeout=1200)
    return json.loads((folder / "answers.json").read_text(encoding="utf-8"))


def words_at_edges(mechanism: sv.Mechanism, records: list[Any], rng: random.Random) -> list[list[int]]:
    """Words at the ends of intervals; without known records, those of the weights of the prior."""
    known = [record for record in records if record in mechanism.index]
    if known:
        return boundaries(mechanism, known)
    count = mechanism.engine.words
    weights = LIBRARY.law(mechanism, []) if count == 1 else mechanism.engine.prior_weights()
    return [
        [word, *(rng.choice([0, N - 1, rng.randrange(N)]) for _ in range(count - 1))]
        for word in ends(accumulate(weights))
    ]


def check_draws(
    count: int, folder: Path, some: Callable[[random.Random], sv.Mechanism] = some_mechanism
) -> None:
    """Category, law and bytes read are the same; half of the words are ends of intervals.

    Some users have unknown records, and some have none that is known: these are released as the public.
    """
    rng, done = random.Random(f"draws for JavaScript {count}"), 0
    questions, expected = [], []
    while done < count:
        mechanism = some(rng)
        names, users, answers = list(mechanism.categories), [], []
        for _ in range(5):
            records: list[Any] = rng.choices(names, k=rng.choice([0, 1, 2, 5, 40]))
            records += rng.choices(STRANGE, k=rng.choice([0, 0, 1, 3]))
            rng.shuffle(records)
            held = LIBRARY.from_records(mechanism, records)
            wants = len(names) < 300
            edges = words_at_edges(mechanism, records, rng)
            words = [rng.choice(edges) for _ in range(5)]
            words += [[rng.randrange(N) for _ in range(mechanism.engine.words)] for _ in range(5)]
            tapes = [
                b"".join((word << 2 | rng.randrange(4)).to_bytes(8, "little") for word in chosen)
                for chosen in words
            ]
            users.append({"records": records, "words": [tape.hex() for tape in tapes], "wants": wants})
            law = [str(weight) for weight in LIBRARY.law(mechanism, held)] if wants else None
            size = 8 * mechanism.engine.words
            released = [[LIBRARY.release(mechanism, held, tape), size] for tape in tapes]
            answers.append({"law": law, "released": released})
            done += len(tapes)
        questions.append({"text": signed(mechanism.document()), "users": users})
        expected.append(answers)
    found = ask({"draws": questions, "mutants": []}, folder)["draws"]
    for question, mine, theirs in zip(questions, expected, found, strict=True):
        assert mine == theirs, question["text"][:3000]


def check_mutants(count: int, folder: Path) -> None:
    """The same files are accepted, and called the same."""
    rng = random.Random(f"mutants for JavaScript {count}")
    files = [(mutant(rng), rng.choice(POLICIES)) for _ in range(count)]
    questions = [{"data": base64.b64encode(data).decode(), "policy": policy} for data, policy in files]
    found = ask({"draws": [], "mutants": questions}, folder)["mutants"]
    accepted = 0
    for (data, policy), theirs in zip(files, found, strict=True):
        try:
            mine = LIBRARY.load(data, policy).digest
        except sv.errors.SottovoceError:
            mine = None
        assert mine == theirs, (data[:3000], policy)
        accepted += mine is not None
    assert 0.05 * count < accepted < 0.6 * count  # or the mutants tell nothing


def test_draws(tmp_path: Path) -> None:
    check_draws(500, tmp_path)


def test_draws_of_nearest_laws(tmp_path: Path) -> None:
    check_draws(1_000, tmp_path, some_nearest)


def test_mutants(tmp_path: Path) -> None:
    check_mutants(500, tmp_path)


@pytest.mark.full
def test_draws_at_their_stated_number(tmp_path: Path) -> None:
    check_draws(50_000, tmp_path)


@pytest.mark.full
def test_draws_of_nearest_laws_at_their_stated_number(tmp_path: Path) -> None:
    check_draws(50_000, tmp_path, some_nearest)


@pytest.mark.full
def test_mutants_at_their_stated_number(tmp_path: Path) -> None:
    check_mutants(20_000, tmp_path)
