"""Mechanisms with several samples as files, in policies, ledgers and audits, and where they are refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vector_draws import signed

import sottovoce as sv
from sottovoce.release.file import ANY, parse, save_mechanisms
from sottovoce.release.joint import JointEngine
from sottovoce.release.mechanism import one_sample_each
from sottovoce.serving.settings import parse_served

PRIOR = sv.Prior(["a", "b", "c", "d"], [0.1, 0.2, 0.3, 0.4])


def made(samples: int = 3, epsilon: float = 3.0, prior: sv.Prior = PRIOR) -> sv.Mechanism:
    return sv.certify(sv.several(prior, epsilon, samples=samples))


def test_a_file_gives_the_same_mechanism_again(tmp_path: Path) -> None:
    mechanism = made()
    mechanism.save(tmp_path / "three.json")
    again = sv.load(tmp_path / "three.json", policy=ANY)
    assert again == mechanism
    assert (again.samples, again.epsilon) == (3, Fraction(3))
    assert again.law(records=["a", "c"]) == mechanism.law(records=["a", "c"])
    plain = json.loads((tmp_path / "three.json").read_text())
    assert (plain["version"], plain["kind"], plain["samples"]) == (2, "joint", 3)


def test_groups_may_have_several_samples(tmp_path: Path) -> None:
    save_mechanisms({"x": made(2), "y": made(3)}, "region", tmp_path / "groups.json")
    found = sv.load_groups(tmp_path / "groups.json", policy=ANY)
    assert {name: one.samples for name, one in found.items()} == {"x": 2, "y": 3}


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "version 1": lambda plain: {"version": 1},
    "version 3": lambda plain: {"version": 3},
    "version true": lambda plain: {"version": True},
    "a box of version 2": lambda plain: {"kind": "box"},
    "samples 1": lambda plain: {"samples": 1},
    "samples 17": lambda plain: {"samples": 17},
    "samples as text": lambda plain: {"samples": "3"},
    "samples true": lambda plain: {"samples": True},
    "one more sample for the same floor": lambda plain: {"samples": 16, "low": ["1"] * 4},
    "a floor of nothing": lambda plain: {"low": ["0", *plain["low"][1:]]},
    "floors above N": lambda plain: {"low": [str(1 << 62), *plain["low"][1:]]},
    "no room below the caps": lambda plain: {"low": ["1", "1", "1", "1"]},
    "another epsilon": lambda plain: {"epsilon": "4/1"},
    "a prior that is not whole": lambda plain: {"prior": ["1", *plain["prior"][1:]]},
    "a wrong claim": lambda plain: {"keeps_prior": False},
    "one floor too few": lambda plain: {"low": plain["low"][1:]},
    "a field too many": lambda plain: {"own": "1"},
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_file_is_refused_even_with_a_right_digest(name: str) -> None:
    plain = made().document()
    assert parse(signed(plain), "a file", ANY) == made()
    with pytest.raises((sv.errors.MechanismFileError, sv.errors.CertificateError)):
        parse(signed({**plain, **CHANGES[name](plain)}), "a file", ANY)


def test_a_policy_bounds_the_samples(tmp_path: Path) -> None:
    made(3).save(tmp_path / "three.json")
    assert sv.load(tmp_path / "three.json", policy=sv.Policy(max_epsilon="any", max_samples=3)).samples == 3
    for most in (1, 2):
        with pytest.raises(sv.errors.MechanismFileError, match="releases 3 samples at once"):
            sv.load(tmp_path / "three.json", policy=sv.Policy(max_epsilon="any", max_samples=most))
    for wrong in (0, 17, True, 2.0):
        with pytest.raises(sv.errors.ParameterError, match="max_samples"):
            sv.Policy(max_epsilon="any", max_samples=wrong)  # type: ignore[arg-type]  # that is what is refused


def test_a_ledger_charges_once_for_all_samples_and_repeats_the_same_tuple(tmp_path: Path) -> None:
    mechanism = made(3, epsilon=3.0)
    ledger = sv.Ledger.create(tmp_path / "budget.db", budget=4)
    answer = ledger.release(mechanism, "ann", ["a", "a", "b"])
    assert isinstance(answer, tuple)
    assert len(answer) == 3
    assert ledger.left("ann") == 1
    assert [ledger.release(mechanism, "ann", ["d"]) for _ in range(3)] == [answer] * 3
    assert ledger.left("ann") == 1
    many = ledger.release_batch(mechanism, ["ann", "bob"], np.array([[1, 0, 0, 0], [0, 1, 1, 0]]))
    assert many[0] == answer
    assert set(many[1]) <= set("abcd")
    with pytest.raises(sv.errors.BudgetError, match="nobody was charged"):
        ledger.release(made(2, epsilon=2.0), "ann", ["a"])


def test_a_ledger_refuses_tuples_that_do_not_fit_before_anybody_is_charged(tmp_path: Path) -> None:
    ledger = sv.Ledger.create(tmp_path / "budget.db", budget=4)
    mechanism = made(10, prior=sv.Prior.uniform(list(range(80))))
    with pytest.raises(sv.errors.ParameterError, match="take fewer samples"):
        ledger.release(mechanism, "ann", [3])
    assert ledger.users() == 0


def test_an_audit_looks_at_tuples_and_finds_a_broken_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound mechanism passes. One that always releases its first class for some user is found out."""
    mechanism = made(2, epsilon=1.0, prior=sv.Prior.uniform(["a", "b"]))
    sound = sv.audit(mechanism, draws=8_000)
    assert sound.passed
    assert sound.certificate == "holds"
    draw = JointEngine._drawn

    def broken(self: Any, ready: Any, words: list[int]) -> Any:
        return draw(self, ready, [word >> 2 for word in words])

    monkeypatch.setattr(JointEngine, "_drawn", broken)
    found = sv.audit(mechanism, draws=8_000)
    assert not found.passed
    assert all(isinstance(one, tuple) for one in found.worst.event)


def test_where_one_category_is_meant_several_samples_are_refused() -> None:
    mechanism = made()
    with pytest.raises(sv.errors.ParameterError, match="the collector takes one sample per user"):
        parse_served(signed(mechanism.document()), "a file")
    with pytest.raises(sv.errors.ParameterError, match="releases 3"):
        one_sample_each([mechanism], "it")
    with pytest.raises(sv.errors.EstimateError, match="clip mechanism"):
        sv.how_many(mechanism, 0.01)


@pytest.mark.parametrize("number", [64, 1 << 62])
@pytest.mark.parametrize("samples", [1, 3])
def test_a_ledger_with_an_impossible_answer_releases_nothing(
    tmp_path: Path, samples: int, number: int
) -> None:
    mechanism = made(samples) if samples > 1 else sv.certify(sv.kernel_clip(PRIOR, 1.0))
    ledger = sv.Ledger.create(tmp_path / "budget.db", budget=4)
    ledger.release(mechanism, "ann", ["a"])
    ledger.close()
    with sqlite3.connect(tmp_path / "budget.db") as database:
        database.execute("UPDATE answers SET position = ?", (number,))
    with pytest.raises(sv.errors.LedgerError, match="was changed; nothing is released"):
        sv.Ledger.open(tmp_path / "budget.db").release(mechanism, "ann", ["a"])


def test_a_prior_that_is_too_rare_is_refused_in_words() -> None:
    prior = sv.Prior.from_counts({"usual": 10**18, **{f"rare {i}": 1 for i in range(9)}})
    with pytest.raises(sv.errors.CertificateError, match="too rare"):
        sv.certify(sv.several(prior, 4.0, samples=2))
    with pytest.raises(sv.errors.CertificateError, match="too rare"):
        sv.certify(sv.kernel_clip(prior, 4.0))
    with pytest.raises(sv.errors.ParameterError, match="constructor"):
        sv.several(PRIOR, 1.0, samples=2, sampler="fitted")  # type: ignore[arg-type]  # that is refused
    with pytest.raises(sv.errors.ParameterError, match="clip sampler"):
        sv.several(PRIOR, 1.0, samples=2, sampler=lambda prior, epsilon: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(sv.errors.ParameterError, match="must be a Mechanism"):
        sv.audit(sv.several(PRIOR, 1.0, samples=2))  # type: ignore[arg-type]  # that is refused
