"""Surveys: the law by brute force, every tape, the certificate, both paths, and the reports everywhere."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from kinds import of_kind
from scipy import sparse
from tape import tape

import sottovoce as sv
from sottovoce.core.arithmetic import exp_below
from sottovoce.core.kernel import ResponseEngine
from sottovoce.core.survey import SurveyEngine
from sottovoce.release.certify import certify_with
from sottovoce.release.file import ANY, parse
from sottovoce.release.mechanism import digest_of, recheck
from sottovoce.samplers.survey import Survey, response_variance

SMALL = [(2, 2), (3, 2), (5, 2), (8, 2), (9, 3), (10, 3), (27, 3), (25, 5), (40, 7), (40, 37)]


def made(n: int, base: int, epsilon: float = 1.0, bits: int = 62) -> sv.Mechanism:
    return certify_with(Survey(sv.Prior.uniform(range(n)), epsilon, base), bits)


@pytest.mark.parametrize(("n", "base"), SMALL)
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 6.0])
def test_the_law_is_that_of_brute_force(n: int, base: int, epsilon: float) -> None:
    mechanism = made(n, base, epsilon)
    engine = of_kind(mechanism.engine, SurveyEngine)
    total = 1 << 62
    matrix = oracles.survey_matrix(n, base, Fraction(engine.own, total), Fraction(engine.other, total))
    for i in {0, 1, n // 2, n - 1}:
        law = mechanism.law(records=[i])
        assert sum(law) == 1
        assert len(law) == len(mechanism.answers) == len(matrix[i])
        worst = max(abs(a - b) for a, b in zip(law, matrix[i], strict=True))
        assert worst < Fraction(len(law), total)  # the question is drawn in units of 2^-62
    ratio = exp_below(Fraction(epsilon))
    laws = [mechanism.law(records=[i]) for i in range(min(n, 12))]
    assert all(max(column) <= ratio * min(column) for column in zip(*laws, strict=True))


@pytest.mark.parametrize(("n", "base"), [(3, 2), (5, 2), (4, 3), (9, 3)])
def test_every_tape_through_the_shipping_path(n: int, base: int) -> None:
    """Three words of four bits: 4,096 tapes, counted."""
    mechanism = made(n, base, 1.0, bits=4)
    for records in ([0], [n - 1], [0, 1, 1], []):
        words = itertools.product(range(16), repeat=3)
        drawn: Counter[Any] = Counter()
        for three in words:
            with tape(list(three), 4) as reads:
                drawn[mechanism.release(records=records)] += 1
            assert reads == [24]
        law = mechanism.law(records=records)
        assert [Fraction(drawn[answer], 16**3) for answer in mechanism.answers] == law


@pytest.mark.parametrize(("n", "base"), [*SMALL, (1000, 7), (10**6, 53)])
def test_a_batch_releases_what_single_releases_do(n: int, base: int) -> None:
    engine = of_kind(made(n, base, 3.0).engine, SurveyEngine)
    rng = np.random.default_rng(n)
    users = 500
    counts = [sorted(set(rng.integers(0, n, rng.integers(0, 4)).tolist())) for _ in range(users)]
    weights = [[(i, int(rng.integers(1, 9))) for i in held] for held in counts]
    starts = np.cumsum([0, *map(len, weights)])
    flat = [pair for held in weights for pair in held]
    rows = sparse.csr_array(
        (np.array([k for _, k in flat], np.int64), np.array([i for i, _ in flat], np.int64), starts),
        shape=(users, n),
    )
    edges = [0, engine.own - 1, engine.own, engine.own + engine.other - 1, (1 << 62) - 1]
    words = [rng.integers(0, 1 << 62, users, dtype=np.int64) for _ in range(3)]
    words[2][: len(edges)] = edges
    words[1][10:14] = [0, (1 << 62) - 1, (1 << 62) // max(engine.questions, 2) + 1, 1 << 61]
    many = engine.positions(rows, words).tolist()
    single = [engine.position(held, [int(w[k]) for w in words]) for k, held in enumerate(weights)]
    assert many == single
    assert max(many) < engine.reports


def test_which_response_is_taken() -> None:
    """Randomized response below about 3e^ε + 2 categories, questions from then on; the variance decides."""
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        border = 3 * np.exp(epsilon) + 2
        few, many = sv.survey(range(int(border / 1.3)), epsilon), sv.survey(range(int(1.3 * border)), epsilon)
        assert few.base is None
        assert many.base is not None
        assert isinstance(sv.certify(few).engine, ResponseEngine)
        assert isinstance(sv.certify(many).engine, SurveyEngine)
        assert many.variance < response_variance(len(many.prior), None, epsilon)
    for n, epsilon in itertools.product((100, 1000, 10**5), (0.5, 1.0, 2.0, 4.0)):
        best = 4 * np.exp(epsilon) / np.expm1(epsilon) ** 2  # OUE, subset selection
        assert sv.survey(range(n), epsilon).variance <= 1.03 * best


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"base": 4}, "prime"),
        ({"base": 1}, "prime"),
        ({"base": 1 << 16}, "prime"),
        ({"own": 0}, "add up|weight"),
        ({"other": 0}, "add up|weight"),
        ({"categories": 11}, "does not fit"),
        ({"bits": 61}, "does not fit"),
        ({"own": 1.0}, "whole number"),
    ],
)
def test_a_certificate_that_does_not_hold_is_refused(fault: dict[str, Any], message: str) -> None:
    mechanism = made(10, 3)
    with pytest.raises(sv.errors.CertificateError, match=message):
        replace(mechanism, engine=replace(of_kind(mechanism.engine, SurveyEngine), **fault))


def test_one_unit_too_many_breaks_the_ratio() -> None:
    mechanism = made(10, 3)
    engine = of_kind(mechanism.engine, SurveyEngine)
    with pytest.raises(sv.errors.CertificateError, match="breaks the ratio"):
        replace(mechanism, engine=replace(engine, other=engine.other - 1, own=engine.own + 2))
    recheck(mechanism)


def test_a_file_says_the_same_again(tmp_path: Path) -> None:
    mechanism = sv.certify(sv.survey([f"shop {i}" for i in range(200)], 2.0))
    mechanism.save(tmp_path / "survey.json")
    again = sv.load(tmp_path / "survey.json", policy=sv.Policy(max_epsilon=2))
    assert again == mechanism
    assert again.answers == mechanism.answers
    assert not again.keeps_prior
    plain = {**mechanism.document(), "base": 9}
    text = json.dumps({**plain, "digest": digest_of(plain)})
    with pytest.raises(sv.errors.CertificateError, match="prime"):
        parse(text, "a file", ANY)
    with pytest.raises(sv.errors.MechanismFileError, match="policy allows"):
        sv.load(tmp_path / "survey.json", policy=sv.Policy(max_epsilon=1))


def test_a_ledger_remembers_a_report(tmp_path: Path) -> None:
    mechanism = sv.certify(sv.survey(range(300), 2.0))
    ledger = sv.Ledger.create(tmp_path / "ledger.db", budget=2)
    first = ledger.release(mechanism, "ann", records=[5, 5, 7])
    assert first in mechanism.answers
    assert {ledger.release(mechanism, "ann", records=[9]) for _ in range(20)} == {first}
    assert set(ledger.release_batch(mechanism, range(50), sparse.csr_array(np.eye(50, 300)))) <= set(
        mechanism.answers
    )


def test_the_audit_comes_near_epsilon_and_stays_below() -> None:
    report = sv.audit(sv.certify(sv.survey(range(100), 2.0)), draws=200_000)
    assert report.passed
    assert 1.7 < report.lower_bound <= 2.0


def test_shuffling_takes_the_floor_of_the_answers() -> None:
    """The smallest probability of each report, over all records, added up."""
    mechanism = made(9, 3)
    laws = [mechanism.law(records=[i]) for i in range(9)]
    smallest = sum(min(column) for column in zip(*laws, strict=True))
    from sottovoce.planning.shuffling import certified_floor

    assert certified_floor(mechanism) == smallest


def test_two_categories_agree_on_as_many_questions_as_stated() -> None:
    for n, base in SMALL:
        engine = of_kind(made(n, base).engine, SurveyEngine)
        rng = random.Random(n)
        for _ in range(10):
            i, k = rng.sample(range(n), 2)
            same = sum(
                engine.answer(engine.vector(s), i) == engine.answer(engine.vector(s), k)
                for s in range(engine.questions)
            )
            assert same * (base - 1) == base ** (engine.digits - 1) - 1
