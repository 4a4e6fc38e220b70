"""Mechanisms with several samples, their users and draws: what `make_vectors` puts into joint_draws.json."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from kinds import of_kind
from vector_draws import FOUR, ODD, WHOLE, N, built, from_bytes, signed, uneven

import sottovoce as sv
from sottovoce.release.joint import JointEngine

WRITTEN_OUT = 64
"""Tuples of a law that a file lists at most."""


def mechanisms() -> Iterator[tuple[str, sv.Mechanism]]:
    """Few and many samples, one category and many, floors that are alike, a prior that is not kept."""
    for k, epsilon in ((2, 0.1), (2, 4.0), (3, 1.0), (3, 9.0), (4, 4.0), (16, 20.0)):
        yield f"{k} samples, epsilon {epsilon}", joint(FOUR, epsilon, k)
    yield "one category", joint(sv.Prior(["only"], [1.0]), 1.0, 2)
    yield "odd names", joint(uneven(ODD), 2.0, 2)
    yield "integer names", joint(uneven(WHOLE), 6.0, 3, sv.relative_mollifier)
    yield "the prior is not kept", joint(FOUR, 2.0, 2, sv.global_minimax)
    yield "equal floors, more categories than groups", joint(sv.Prior.uniform(list(range(12))), 4.0, 10)
    yield "more categories than groups", joint(uneven(list(range(40))), 6.0, 4)
    low = joint(FOUR, 8.0, 2, sv.relative_mollifier).document()
    yield "prior from users", built({**low, "provenance": "users"})


def joint(prior: sv.Prior, epsilon: float, samples: int, sampler: Any = sv.kernel_clip) -> sv.Mechanism:
    return sv.certify(sv.several(prior, epsilon, samples=samples, sampler=sampler))


def users(mechanism: sv.Mechanism, rng: random.Random) -> Iterator[dict[int, int]]:
    """One category, several, all of them alike or nearly like the prior, and many with counts that tie."""
    n = len(mechanism.categories)
    for place in sorted({0, n // 2, n - 1}):
        yield {place: 1}
    yield dict.fromkeys(range(n), 1)
    yield {place: 1 + place % 2 for place in range(0, n, 2)}
    yield {place: rng.randint(1, 30) for place in sorted(rng.sample(range(n), (n + 1) // 2))}
    prior = mechanism.engine.prior_weights()
    yield {place: max(1, prior[place] >> 40) for place in range(n)}
    yield {place: rng.choice([1, 2**40, 3]) for place in sorted(rng.sample(range(n), max(1, n - 1)))}


def draws(mechanism: sv.Mechanism, name: str) -> list[dict[str, Any]]:
    """Users as counts, their laws where these are short, and draws beside the ends of classes."""
    rng, engine, found = random.Random(name), of_kind(mechanism.engine, JointEngine), []
    n, k = len(mechanism.categories), mechanism.samples
    for user in {json.dumps(one): one for one in users(mechanism, rng)}.values():
        p = np.array([user.get(i, 0) for i in range(n)], dtype=np.int64)
        inside = engine.box.inside(sorted(user.items()))
        units = inside or engine.box.law(sorted(user.items())).units
        sums = rng.sample(list(accumulate(units)), min(2, len(units)))
        numbers = [0, rng.randrange(N**k)]
        numbers += [end + step for end in sums for step in (-1, 0) if 0 <= end + step < N**k]
        one: dict[str, Any] = {
            "counts": [
                [name, str(count)] for name, count in zip(mechanism.categories, p.tolist(), strict=True)
            ],
            "draws": [drawn(mechanism, p, number) for number in numbers],
        }
        if n**k <= WRITTEN_OUT:
            one["weights"] = [str(share * N**k) for share in mechanism.law(p)]
        found.append(one)
    return found


def drawn(mechanism: sv.Mechanism, p: Any, number: int) -> dict[str, Any]:
    """One release from the words that make up this number."""
    k = mechanism.samples
    words = [number // N ** (k - 1 - j) % N for j in range(k)]
    data = b"".join((word << 2).to_bytes(8, "little") for word in words)
    return {"bytes": data.hex(), "released": list(from_bytes(mechanism, data, p=p))}


def files() -> list[dict[str, Any]]:
    """Everything of joint_draws.json."""
    return [
        {
            "name": name,
            "text": signed(mechanism.document()),
            "bytes": 8 * mechanism.samples,
            "users": draws(mechanism, name),
        }
        for name, mechanism in mechanisms()
    ]
