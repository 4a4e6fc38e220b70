"""Several samples: a client written from docs/format.md alone, and the library, on vectors and by chance."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tiny_joint
from kinds import of_kind
from tiny_client import Refused
from vector_draws import from_bytes, signed
from vector_joint import joint

import sottovoce as sv
from sottovoce.release.file import ANY, parse
from sottovoce.release.joint import JointEngine

FILES = json.loads(
    (Path(__file__).parent.parent / "vectors" / "joint_draws.json").read_text(encoding="utf-8")
)
N = 1 << 62


SLOW = "equal floors, more categories than groups"


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, marks=[pytest.mark.full] if file["name"] == SLOW else [], id=str(file["name"]))
        for file in FILES["files"]
    ],
)
def test_library_and_tiny_client_release_what_the_vectors_say(file: dict[str, Any]) -> None:
    mechanism = parse(file["text"], "a vector", ANY)
    document = json.loads(file["text"])
    tiny_joint.check_joint(document)
    assert 8 * mechanism.samples == file["bytes"]
    for user in file["users"]:
        held = {place: int(count) for place, (_, count) in enumerate(user["counts"]) if count != "0"}
        records = sorted(held.items())
        for one in user["draws"]:
            data = bytes.fromhex(one["bytes"])
            words = [int.from_bytes(data[i : i + 8], "little") >> 2 for i in range(0, len(data), 8)]
            places = of_kind(mechanism.engine, JointEngine).position(records, words)
            assert [mechanism.categories[place] for place in places] == one["released"]
            assert list(tiny_joint.joint_release(document, held, data)) == one["released"]
        if "weights" in user:
            law = mechanism.engine.law(records)
            assert [str(share * N**mechanism.samples) for share in law] == user["weights"]
            n = len(mechanism.categories)
            tiny = tiny_joint.joint_law(document, held)
            tuples = product(range(n), repeat=mechanism.samples)
            assert [str(tiny[z]) for z in tuples] == user["weights"]


@pytest.mark.parametrize("size", [60, pytest.param(3000, marks=pytest.mark.full)])
def test_library_and_tiny_client_agree_on_what_chance_makes_up(size: int) -> None:
    rng = random.Random(size)
    clips = (sv.kernel_clip, sv.relative_mollifier, sv.prior_minimax, sv.global_minimax)
    done = 0
    while done < size:
        n, k = rng.randint(1, 9), rng.choice([2, 2, 3, 4, 10])
        prior = sv.Prior.from_counts({i: rng.choice([1, 1, 2, 9, 100]) for i in range(n)})
        try:
            mechanism = joint(prior, rng.choice([0.01, 0.5, 2.0, 6.0, 20.0]), k, rng.choice(clips))
        except sv.errors.CertificateError:
            continue
        document = json.loads(signed(mechanism.document()))
        tiny_joint.check_joint(document)
        for _ in range(3):
            held = {i: rng.choice([1, 1, 2, 5, 77]) for i in sorted(rng.sample(range(n), rng.randint(1, n)))}
            records = [i for i, times in held.items() for _ in range(times)]
            data = rng.randbytes(8 * k)
            assert from_bytes(mechanism, data, records) == tiny_joint.joint_release(document, held, data)
            done += 1


@pytest.mark.parametrize("size", [300, pytest.param(20_000, marks=pytest.mark.full)])
def test_library_and_tiny_client_accept_the_same_files(size: int) -> None:
    """Floors, priors, samples and claims changed by a little or a lot, signed anew."""
    rng = random.Random(size + 1)
    bases = [json.loads(file["text"]) for file in FILES["files"] if len(file["text"]) < 3000]
    accepted = 0
    for _ in range(size):
        plain = dict(rng.choice(bases))
        what = rng.choice(
            ["low", "low", "low", "prior", "samples", "keeps_prior", "version", "ratio", "epsilon"]
        )
        if what in ("low", "prior"):
            values = list(plain[what])
            for _ in range(rng.randint(1, 2)):
                place = rng.randrange(len(values))
                step = rng.choice(
                    [-1, 1, -(1 << 30), 1 << 30, 1 << 58, -int(values[place]), -int(values[place]) + 1]
                )
                values[place] = str(max(int(values[place]) + step, 0))
            plain[what] = values
        else:
            changes: dict[str, list[Any]] = {
                "samples": [0, 1, 2, 3, 5, 16, 17, "2", None, True],
                "keeps_prior": [True, False],
                "version": [1, 2, 3, "2"],
                "ratio": ["1/1", "2/1"],
                "epsilon": ["1/2", "4/1", "100/1"],
            }
            plain[what] = rng.choice(changes[what])
        text = signed(plain)
        ours = by_library(text)
        assert ours == by_tiny(text), plain
        accepted += ours
    assert 0.05 * size < accepted < 0.8 * size


def by_library(text: str) -> bool:
    try:
        parse(text, "a mutant", ANY)
    except (sv.errors.MechanismFileError, sv.errors.CertificateError):
        return False
    return True


def by_tiny(text: str) -> bool:
    try:
        tiny_joint.check_joint(json.loads(text))
    except Refused:
        return False
    return True


def test_the_largest_floor_that_still_leaves_room_is_accepted_by_both() -> None:
    """At the boundary of the certificate, one unit below and above, for two categories and two samples."""
    plain = joint(sv.Prior(["a", "b"], [0.5, 0.5]), 1.0, 2).document()
    ratio = Fraction(plain["ratio"])
    low = int((N**2 / ratio) ** 0.5) // 2  # near where A·(Σlow)² = N²; the rest is searched
    answers = []
    for step in (-(1 << 20), -(1 << 10), 0, 1 << 10, 1 << 20):
        text = signed({**plain, "low": [str(low + step)] * 2, "keeps_prior": False})
        found = {by_library(text), by_tiny(text)}
        assert len(found) == 1
        text = signed({**plain, "low": [str(low + step)] * 2, "keeps_prior": True})
        assert by_library(text) == by_tiny(text)
        answers.append(found.pop() or by_library(text))
    assert answers[0] is False
    assert answers[-1] is True
