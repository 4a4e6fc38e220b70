"""Write tests/vectors anew: `python tests/support/make_vectors.py`.

Files that are there change only with the format.
tests/vectors/README.md says what each file holds.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import vector_nearest
import vector_streams
from vector_draws import (
    boxes,
    counted,
    draws,
    exponentials,
    from_bytes,
    linear,
    refused_users,
    shared,
    signed,
    silent,
    surveys,
)
from vector_files import BOX, GROUPS, WHOLE, grouped
from vector_texts import accepted, refused, reports

import sottovoce as sv
from sottovoce.core.arithmetic import exp_below
from sottovoce.core.kernel import LinearEngine
from sottovoce.records import weights_of_law
from sottovoce.release.file import ANY, parse
from sottovoce.release.mechanism import digest_of, fraction_text

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
        released = from_bytes(mechanism, data, records)
        case: dict[str, object] = {"records": records, "bytes": data.hex(), "released": released}
        if not isinstance(mechanism.engine, LinearEngine):
            case["weights"] = [str(share * (1 << 62)) for share in mechanism.law(records=records)]
        cases.append(case)
    return {"mechanism": {**mechanism.document(), "digest": mechanism.digest}, "cases": cases}


def drawn(named: Iterator[tuple[str, sv.Mechanism]]) -> list[dict[str, Any]]:
    """Files of draws: a mechanism each, its users and who is refused."""
    found = []
    for name, mechanism in named:
        large = len(mechanism.categories) > 100
        users = draws(mechanism, name, most=8 if len(mechanism.categories) > 4 else 16)
        found.append(
            {
                "name": name,
                "text": signed(mechanism.document()),
                "bytes": 8 * mechanism.engine.words,
                "users": (users[:4] if large else users + counted(mechanism) + shared(mechanism))
                + silent(mechanism),
                "refused_users": refused_users(mechanism),
            }
        )
    return found


def drawn_by_group() -> list[dict[str, Any]]:
    """A file of groups, and users of every group."""
    plain = grouped(GROUPS)
    users = []
    for name, document in plain["groups"].items():
        mechanism = parse(json.dumps(document), name, ANY)
        users += [{"group": name, **user} for user in draws(mechanism, name, most=4)[:3]]
    return [{"name": "groups", "text": signed(plain), "users": users, "refused_users": []}]


def shares() -> Iterator[dict[str, Any]]:
    """Distributions in doubles, and their whole numbers."""
    rng = random.Random("shares")
    some = [normalised(rng, n) for n in (2, 3, 5, 9, 17, 40) for _ in range(40)]
    for p in [
        [1.0],
        [0.5, 0.5],
        [0.25, 0.75, 0.0],
        [1 / 3] * 3,
        [0.4, 0.6],
        [1.0, 0.0, 1e-250],
        [1.0, 9.9e-251, 0.0],
        [1.0, 1e-19, 1e-18],
        [0.25, 0.25, 0.5 + 9e-10],
        [0.25, 0.25, 0.5 - 9e-10],
        [-0.0, 1.0],
        [2.0**-61, 1.0],
        [0.0, 0.0],
        *[p for p in some if clear(p)][:24],
    ]:
        if not clear(p):
            raise AssertionError("the sum of these shares depends on the order of addition")
        found = weights_of_law(np.array(p), len(p))
        yield {"p": p, "counts": [[place, str(count)] for place, count in found]}
    for p in [
        [0.5, 0.5 + 2e-9],
        [0.5, 0.5 - 2e-9],
        [1.5, -0.5],
        [1.0, -1e-300],
        [2.0],
        [1e300, 0.5],
    ]:
        yield {"p": p, "counts": None}


def clear(p: list[float]) -> bool:
    """Whether the usual orders of addition all give the exact sum rounded once."""
    exact = math.fsum(p)
    backward = list(accumulate(reversed(p)))[-1]
    pairs = float(np.add.reduce(np.array(p)))
    rest = p[0] + float(np.add.reduce(np.array([0.0, *p[1:]])))
    return exact == list(accumulate(p))[-1] == backward == pairs == rest


def normalised(rng: random.Random, n: int) -> list[float]:
    """Shares whose sum in doubles is mostly not exactly one."""
    raw = [rng.random() ** 3 for _ in range(n)]
    return [one / sum(raw) for one in raw]


def canonical() -> Iterator[dict[str, Any]]:
    """Values and the texts that their digests are taken of."""
    characters = "".join(map(chr, [*range(0x24), 0x2F, 0x5B, 0x5C, 0x5D, *range(0x7D, 0xA2), 0xD7FF, 0xE000]))
    odd = ["\uff21", "😀", "a", "A", "\ue000", "", "__proto__", "10", "9"]
    values: list[dict[str, Any]] = [
        {"b": 1, "a": [0, -7, 9007199254740991, True, False]},
        {key: str(i) for i, key in enumerate(odd)},
        {"text": characters},
        {"text": "\uffff\U00010000\U0010ffff😀é"},
        {},
    ]
    for value in values:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        yield {"value": json.dumps(value, ensure_ascii=True), "canonical": text, "digest": digest_of(value)}


def others() -> dict[str, dict[str, Any]]:
    """Every file that is not named after a sampler."""
    known = [signed(BOX), signed(WHOLE), signed(grouped(GROUPS)), signed(grouped({"x": BOX, "y": BOX}))]
    return {
        "draws_box": {"files": drawn(boxes())},
        "draws_nearest": {"files": drawn(vector_nearest.designs())},
        "draws_kernel": {"files": drawn(one for one in linear() if one[1].engine.words == 3)},
        "draws_response": {"files": drawn(one for one in linear() if one[1].engine.words == 2)},
        "draws_survey": {"files": drawn(surveys())},
        "draws_groups": {"files": drawn_by_group()},
        "stream_draws": {"files": vector_streams.files()},
        "files_accepted": {"files": list(accepted())},
        "files_refused": {"files": list(refused())},
        "exponentials": {"table": [[fraction_text(e), fraction_text(exp_below(e))] for e in exponentials()]},
        "shares": {"cases": list(shares())},
        "canonical": {"cases": list(canonical())},
        "reports": {"mechanisms": known, "cases": list(reports())},
    }


def texts() -> Iterator[tuple[str, str]]:
    """The name and the text of every file."""
    for sampler in sv.SAMPLERS:
        yield sampler, json.dumps(vectors(sampler), indent=1, ensure_ascii=False) + "\n"
    for name, plain in others().items():
        ((key, rows),) = ((k, v) for k, v in plain.items() if k != "mechanisms")
        head = {k: v for k, v in plain.items() if k == "mechanisms"}
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        start = json.dumps(head)[:-1] + (", " if head else "")
        yield name, f'{start}"{key}": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    for name, text in texts():
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"{len(list(FOLDER.glob('*.json')))} files in {FOLDER.name}, numpy {np.__version__}")
