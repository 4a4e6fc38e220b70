"""The model in the proofs is the code: what the theorems draw, clip and charge is what the release path does.

The theorems are about functions in Coq. These functions are extracted, too, and held here against Python's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import tiny_draws
from planted_checks import DRAWING_FAULTS, plant
from proved_cases import Plain, accepts, some_document
from vector_checks import vectors

import sottovoce as sv
from sottovoce.core import arithmetic
from sottovoce.core.arithmetic import shares
from sottovoce.core.box import BoxEngine
from sottovoce.core.engine import Weights
from sottovoce.core.stream import StreamEngine
from sottovoce.core.survey import SurveyEngine
from sottovoce.release import ledger
from sottovoce.release.file import Fields, read_fraction
from sottovoce.release.mechanism import ENGINES, joined_wholes
from sottovoce.release.proved import ask, documents, hexadecimal, question

pytestmark = pytest.mark.proofs

_ENGINES = {engine.kind: engine for engine in ENGINES}
WORDS = {"box": 1, "response": 2, "kernel": 3, "survey": 3}


def line(command: str, numbers: list[int]) -> str:
    return " ".join([command, *map(hexadecimal, numbers)])


def draw_question(plain: Plain, weights: Weights, words: list[int]) -> str:
    told = [len(weights), *(number for pair in weights for number in pair), *words, *[0] * (3 - len(words))]
    return line(question(plain).replace("check", "draw", 1), told)


def counts_of(plain: Plain, user: dict[str, Any]) -> dict[int, int]:
    """What a user has, by position: for a user without records the weights of the prior."""
    if "shares" in user:
        return tiny_draws.from_shares(user["shares"]) or tiny_draws.public(plain)
    if "records" in user:
        return tiny_draws.from_records(plain, user["records"])
    return tiny_draws.from_counts(plain, user["counts"])


def vector_draws() -> Iterator[tuple[str, str]]:
    """Every draw of the vectors: its question, and the position that must be released."""
    for name in ("draws_box", "draws_kernel", "draws_response", "draws_survey", "draws_groups"):
        for file in vectors(name)["files"]:
            found = documents(file["text"])
            for user in file["users"]:
                plain = found[user["group"]] if "group" in user else found["all"]
                survey = plain["kind"] == "survey"
                places = {category: place for place, category in enumerate(plain["categories"])}
                weights = sorted(counts_of(plain, user).items())
                for draw in user["draws"]:
                    tape = bytes.fromhex(draw["bytes"])
                    words = [int.from_bytes(tape[i : i + 8], "little") >> 2 for i in range(0, len(tape), 8)]
                    place = draw["released"] if survey else places[draw["released"]]
                    yield draw_question(plain, weights, words), hexadecimal(place)


def test_every_draw_of_the_vectors_is_the_model_s(checker: Path) -> None:
    questions, expected = zip(*vector_draws(), strict=True)
    assert len(questions) > 1000
    assert ask(checker, questions) == list(expected)


@cache
def draws() -> list[tuple[Any, Plain, Weights, list[int]]]:
    """Certified mechanisms of all kinds, users, and words, those beside the ends of categories included."""
    rng = random.Random(17)
    made: list[tuple[Any, Plain, Weights, list[int]]] = []
    while len(made) < 4000:
        plain = some_document(rng)
        if plain["kind"] not in WORDS or not accepts(plain):
            continue
        n, total = len(plain["categories"]), 1 << plain["bits"]
        engine = _ENGINES[plain["kind"]].read(
            Fields(plain, "case", n, plain["bits"], joined_wholes(plain)),
            read_fraction(plain["ratio"], "case"),
        )
        for _ in range(8):
            places = sorted(rng.sample(range(n), rng.randint(1, n)))
            weights = [(place, rng.choice([1, 2, rng.randint(1, 1 << 40)])) for place in places]
            if isinstance(engine, SurveyEngine):
                ends = [engine.own + k * engine.other for k in range(engine.base)]
                ends += accumulate(shares([1] * min(engine.questions, 64), total))
            else:
                law = [int(share * total) for share in engine.law(weights)]
                floors = engine.box.low if isinstance(engine, BoxEngine) else law
                base = [law[i] if i in places else floors[i] for i in range(n)]
                above = [unit - least for unit, least in zip(law, base, strict=True)]
                ends = list(accumulate([*base, *above]))
            beside = [(end + step) % total for end in ends for step in (-1, 0)]
            words = [rng.choice([rng.randrange(total), *beside]) for _ in range(WORDS[plain["kind"]])]
            made.append((engine, plain, weights, words))
    return made


@cache
def model_draws(checker: Path) -> list[str]:
    return ask(checker, (draw_question(plain, weights, words) for _, plain, weights, words in draws()))


@cache
def clips() -> list[tuple[list[int], list[int], list[int], int]]:
    """Clips of all sizes, with floors and caps that meet, and targets at both ends."""
    rng, made = random.Random(18), []
    for _ in range(3000):
        n, most = rng.randint(1, 8), rng.choice([3, 20, 1 << 20, 1 << 60])
        low = [rng.randint(0, most) for _ in range(n)]
        high = [value + rng.choice([0, rng.randint(0, most)]) for value in low]
        weights = [rng.choice([1, rng.randint(1, 9), rng.randint(1, 1 << 50)]) for _ in range(n)]
        made.append((weights, low, high, rng.choice([sum(low), sum(high), rng.randint(sum(low), sum(high))])))
    return made


@cache
def model_clips(checker: Path) -> list[list[int]]:
    lines = []
    for weights, low, high, target in clips():
        items = [unit for item in zip(weights, low, high, strict=True) for unit in item]
        lines.append(line("clip", [len(weights), *items, target]))
    return [[int(unit, 16) for unit in answer.split()] for answer in ask(checker, lines)]


@cache
def epsilons() -> list[Fraction]:
    rng = random.Random(19)
    return [
        Fraction(rng.randint(1, 10**9), rng.choice([10**6, 10**7, 3, rng.randint(1, 10**9)]))
        for _ in range(500)
    ]


@cache
def model_charges(checker: Path) -> list[int]:
    lines = [line("charge", [epsilon.numerator, epsilon.denominator]) for epsilon in epsilons()]
    return [int(answer, 16) for answer in ask(checker, lines)]


def same_draws(checker: Path) -> bool:
    return [
        hexadecimal(engine.position(weights, words)) for engine, _, weights, words in draws()
    ] == model_draws(checker)


def same_clips(checker: Path) -> bool:
    return [arithmetic.exact_clip(*clip) for clip in clips()] == model_clips(checker)


def same_charges(checker: Path) -> bool:
    return [ledger.charge_of(epsilon) for epsilon in epsilons()] == model_charges(checker)


def test_random_draws_are_the_model_s(checker: Path) -> None:
    assert {plain["kind"] for _, plain, _, _ in draws()} == set(WORDS)
    assert same_draws(checker)


def test_the_clip_is_the_model_s(checker: Path) -> None:
    assert same_clips(checker)


def test_charges_are_the_model_s(checker: Path) -> None:
    assert same_charges(checker)


def same_steps(checker: Path) -> bool:
    """The box of a step and the bounds that follow, at random states of random streams and at their ends."""
    rng, asked, expected = random.Random("steps"), [], []
    for _ in range(300):
        prior = sv.Prior.from_counts([rng.randint(1, 1000) for _ in range(rng.randint(1, 6))])
        engine = sv.certify(sv.stream(prior, rng.choice([0.01, 0.7, 3.0, 9.0, 26.0]))).engine
        assert isinstance(engine, StreamEngine)
        for _ in range(10):
            ends = [engine.one, engine.most, rng.randint(engine.one, engine.most)]
            low, high = sorted((rng.choice(ends), rng.choice(ends)))
            least, most = engine.box(low, high)
            q = rng.choice([1, 2**40, rng.choice(engine.prior)])
            w = rng.choice([least * q, most * q, rng.randint(least * q, most * q)])
            numbers = [engine.one, engine.most, 1 << engine.ratio_bits, low, high, q, w]
            asked.append(line("step", numbers))
            unpaced = (engine.most << engine.ratio_bits) // high
            expected.append([least, unpaced, *engine.moved(low, high, q, w)])
    return [[int(word, 16) for word in answer.split()] for answer in ask(checker, asked)] == expected


def test_the_steps_of_a_stream_are_the_model_s(checker: Path) -> None:
    assert same_steps(checker)


def test_a_pace_only_makes_the_box_of_a_step_smaller() -> None:
    rng, prior = random.Random("pace"), sv.Prior.from_counts([1, 2, 3])
    for _ in range(300):
        made = sv.certify(sv.stream(prior, rng.choice([0.01, 0.7, 3.0, 9.0, 26.0]))).engine
        assert isinstance(made, StreamEngine)
        engine = replace(made, pace=(rng.randint(0, 256),))
        low, high = sorted(rng.randint(engine.one, engine.most) for _ in range(2))
        least, most = engine.ratios(low, high, 0)
        assert least == engine.box(low, high)[0]
        assert most <= engine.box(low, high)[1] <= (engine.most << engine.ratio_bits) // high


@pytest.mark.parametrize("fault", ["box", "moved"])
def test_a_planted_fault_in_the_steps_of_a_stream_is_found(
    fault: str, checker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(StreamEngine, fault)

    def wrong(self: StreamEngine, *numbers: int) -> tuple[int, int]:
        low, high = right(self, *numbers)
        return low, high + 1

    monkeypatch.setattr(StreamEngine, fault, wrong)
    if fault == "box":
        monkeypatch.setattr(
            StreamEngine, fault, lambda self, *n: (right(self, *n)[0] - 1, right(self, *n)[1])
        )
    assert not same_steps(checker)


@pytest.mark.parametrize("fault", DRAWING_FAULTS)
def test_a_planted_fault_in_the_release_path_is_found(
    fault: str, checker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws(), clips(), epsilons()
    plant(fault, monkeypatch)
    try:
        same = same_draws(checker) and same_clips(checker) and same_charges(checker)
    except (ValueError, LookupError, AssertionError):  # the release path refuses, or breaks down
        same = False
    assert not same
