"""Random steps of streams, in Python and in the JavaScript client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
from kinds import of_kind

import sottovoce as sv
from sottovoce.core.stream import StreamEngine

SCRIPT = Path(__file__).parents[2] / "clients" / "js" / "test" / "support" / "walk.js"


def random_counts(rng: np.random.Generator, n: int) -> dict[int, int]:
    chosen = rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False)
    return {int(i): int(rng.integers(1, 10 ** int(rng.integers(1, 6)))) for i in chosen}


def check_steps(streams: list[sv.Mechanism], steps: int, rng: np.random.Generator, folder: Path) -> None:
    """So many steps of each stream: JavaScript releases the same and comes to the same state, bit for bit."""
    asked, expected = [], []
    for mechanism in streams:
        engine, state, rows, answers = of_kind(mechanism.engine, StreamEngine), mechanism.start(), [], []
        for _ in range(steps):
            most = min(len(mechanism.categories), 6)
            held = sorted(random_counts(rng, most).items()) if rng.random() < 0.9 else []
            if rng.random() < 0.1:
                held = [(i, count << 44) for i, count in held]
            word = int(rng.integers(1 << 62)) if rng.random() < 0.9 else int(rng.choice([0, (1 << 62) - 1]))
            law = engine.step_law(held, *engine.ratios(state.low, state.high, state.step), state.last)
            place, *more = engine.drawn(law, word)
            _, state = mechanism._stepped(state, place, *more)
            rows.append(([i for i, _ in held], [str(count) for _, count in held], str(word)))
            answers.append([place, str(state.low), str(state.high), state.last])
        asked.append({"text": json.dumps(mechanism.document()), "steps": rows})
        expected.append(answers)
    (folder / "asked.json").write_text(json.dumps(asked))
    subprocess.run(["node", SCRIPT, folder / "asked.json", folder / "found.json"], check=True)
    assert json.loads((folder / "found.json").read_text()) == expected
