"""Write tests/vectors/*.json anew: `python tests/make_vectors.py`. Only for a new format version."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

import sottovoce as sv
from sottovoce.release import randomness

FOLDER = Path(__file__).parent.parent / "vectors"
PRIOR = sv.Prior.from_counts(
    {"Drama": 4012, "Comedy": 2300, "Noir, dark": 64, "Western": 35, "Ærøskøbing ✓": 700}
)
USERS = [
    ["Western"],
    ["Drama", "Drama", "Comedy"],
    ["Noir, dark"] * 9 + ["Western"],
    ["Drama", "Comedy", "Noir, dark", "Western", "Ærøskøbing ✓"],
    ["Ærøskøbing ✓"] * 3 + ["Comedy"] * 2,
]


def vectors(name: str) -> dict[str, object]:
    """The mechanism of one sampler and forty releases from known bytes."""
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 2.0))
    rng = random.Random(name)
    cases = []
    for i in range(40):
        records = USERS[i % len(USERS)]
        data = rng.randbytes(8 * mechanism.engine.words)
        before = randomness._read

        def known(_: int, data: bytes = data) -> bytes:
            return data

        randomness._read = known
        try:
            released = mechanism.release(records)
        finally:
            randomness._read = before
        case: dict[str, object] = {"records": records, "bytes": data.hex(), "released": released}
        if not mechanism.linear:
            case["weights"] = [str(share * (1 << 62)) for share in mechanism.law(records=records)]
        cases.append(case)
    return {"mechanism": {**mechanism.document(), "digest": mechanism.digest}, "cases": cases}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for sampler in sv.SAMPLERS:
        text = json.dumps(vectors(sampler), indent=1, ensure_ascii=False)
        (FOLDER / f"{sampler}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{len(sv.SAMPLERS)} files in {FOLDER.name}, numpy {np.__version__}")
