"""The library, the tiny client and the JavaScript client, asked about the same mutated files and draws.

Node answers many questions in one call; so this is a loop of batches, over what the guided targets found.
"""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import tiny_draws
from vector_checks import LibraryClient

import sottovoce as sv

from . import mechanisms
from .mutate import json_mutated
from .target import HERE, Finding, folder, kept

NAME = "clients"
BATCH = 400
LIBRARY = LibraryClient()
SCRIPT = HERE.parent / "clients" / "js" / "test" / "support" / "answer.js"
POLICIES: list[dict[str, Any]] = [{}, {}, {}, {"max_epsilon": "1/1"}, {"max_categories": 4}]


def run(seconds: float, seed: str, more: Sequence[bytes] = (), batch: int = BATCH) -> Counter[str]:
    """Ask all three for so long, at least once; nothing is counted where there is no Node."""
    found: Counter[str] = Counter()
    node = shutil.which("node")
    if node is None:
        return found
    rng, end = random.Random(f"{NAME} {seed}"), time.monotonic() + seconds
    pool = [
        *mechanisms.single_seeds(),
        *mechanisms.group_seeds(),
        *kept("mechanisms"),
        *kept("groups"),
        *more,
    ]
    good = [data for data in pool if _verdict(data, {}) is not None]
    while not found or time.monotonic() < end:
        chosen = [rng.choice(good if rng.random() < 0.7 else pool) for _ in range(batch)]
        files = [(json_mutated(data, rng), rng.choice(POLICIES)) for data in chosen]
        verdicts = [_verdict(*one) for one in files]
        accepted = [data for (data, _), one in zip(files, verdicts, strict=True) if one is not None]
        good += [data for data in accepted if len(good) < 2000 and len(data) < 5000]
        draws = [one for one in (_draws(data, rng) for data in accepted[:40]) if one is not None]
        asked = [{"data": base64.b64encode(data).decode(), "policy": policy} for data, policy in files]
        told = _ask(node, {"mutants": asked, "draws": [question for question, _ in draws]})
        for (data, _), mine, theirs in zip(files, verdicts, told["mutants"], strict=True):
            if mine != theirs:
                raise Finding(f"{NAME}: the library says {mine}, JavaScript {theirs}, of {data[:3000]!r}")
        for (question, mine), theirs in zip(draws, told["draws"], strict=True):
            released = [[one for one, _ in user["released"]] for user in theirs]
            if mine != released:
                raise Finding(f"{NAME}: JavaScript draws another category: {question['text'][:3000]}")
        found["files"] += batch
        found["accepted"] += len(accepted)
        found["draws"] += sum(len(user) for _, mine in draws for user in mine)
    return found


def _verdict(data: bytes, policy: dict[str, Any]) -> str | None:
    """The digest of a file that is accepted."""
    try:
        return str(LIBRARY.load(data, policy).digest)
    except sv.errors.SottovoceError:
        return None


def _draws(data: bytes, rng: random.Random) -> Any:
    """Some users and words for the mechanism of a file, with what the library and the tiny client draw."""
    found = LIBRARY.load(data, {})
    if found.by is not None:
        return None
    mechanism = found.documents["all"]
    document = json.loads(data)
    users, answers = [], []
    for _ in range(4):
        records: list[Any] = rng.choices(mechanism.categories, k=rng.choice([1, 2, 5, 40]))
        held, counts = LIBRARY.from_records(mechanism, records), tiny_draws.from_records(document, records)
        words = [rng.randbytes(8 * mechanism.engine.words) for _ in range(8)]
        mine = [LIBRARY.release(mechanism, held, word) for word in words]
        if mine != [tiny_draws.release(document, counts, word) for word in words]:
            raise Finding(f"{NAME}: the tiny client draws another category: {data[:3000]!r}")
        users.append({"records": records, "words": [word.hex() for word in words], "wants": False})
        answers.append(mine)
    return {"text": data.decode("utf-8"), "users": users}, answers


def _ask(node: str, questions: dict[str, Any]) -> Any:
    asked, answered = folder() / "questions.json", folder() / "answers.json"
    asked.write_text(json.dumps(questions), encoding="utf-8")
    subprocess.run([node, str(SCRIPT), str(asked), str(answered)], check=True, timeout=600)
    return json.loads(answered.read_text(encoding="utf-8"))
