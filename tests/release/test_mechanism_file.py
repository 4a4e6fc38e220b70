"""Mechanism files carry everything, come back equal, and are refused when anything is off."""

from __future__ import annotations

import json
import os
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.prior import Learned
from sottovoce.release.file import ANY, parse
from sottovoce.release.mechanism import digest_of

PRIOR = sv.Prior(["a", "b", "c", "d"], [0.3, 0.12, 0.4, 0.18])
everyone = pytest.mark.parametrize("name", sv.SAMPLERS)


def make(name: str, epsilon: float = 1.5) -> sv.Mechanism:
    return sv.certify(sv.SAMPLERS[name](PRIOR, epsilon))


def signed(plain: dict[str, Any]) -> str:
    """A file whose digest fits whatever it says."""
    plain = {key: value for key, value in plain.items() if key != "digest"}
    try:
        return json.dumps({**plain, "digest": digest_of(plain)})
    except RecursionError:
        return json.dumps({**plain, "options": {}, "digest": "0" * 64})


def read(text: str, **policy: Any) -> sv.Mechanism:
    return parse(text, "the file", sv.Policy(**{"max_epsilon": "any", **policy}))


@everyone
def test_a_saved_mechanism_comes_back_equal(name: str, tmp_path: Path) -> None:
    mechanism = make(name)
    mechanism.save(tmp_path / "m.json")
    again = sv.load(tmp_path / "m.json", policy=ANY)
    assert again == mechanism
    assert again.digest == mechanism.digest
    assert again.law(records=["a", "b"]) == mechanism.law(records=["a", "b"])
    assert again.epsilon == Fraction(3, 2)
    assert (again.sampler, type(again.engine)) == (name, type(mechanism.engine))
    assert os.listdir(tmp_path) == ["m.json"]


def test_integer_categories_come_back_as_integers(tmp_path: Path) -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior([10, 20], [0.4, 0.6]), 1.0))
    mechanism.save(tmp_path / "m.json")
    assert sv.load(tmp_path / "m.json", policy=ANY).categories == (10, 20)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.json"
    make("kernel_clip").save(path)
    before = path.read_bytes()

    def broken(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        make("minimax_kernel").save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.json"]


@everyone
def test_policy(name: str) -> None:
    mechanism = make(name)
    text = signed(mechanism.document())
    assert read(text, max_epsilon=1.5, max_categories=4, digest=mechanism.digest) == mechanism
    with pytest.raises(sv.errors.MechanismFileError, match=r"has epsilon 1\.5, the policy allows 1"):
        read(text, max_epsilon=1)
    with pytest.raises(sv.errors.MechanismFileError, match="has 4 categories, the policy allows 3"):
        read(text, max_categories=3)
    with pytest.raises(sv.errors.MechanismFileError, match="not the expected mechanism"):
        read(text, digest="0" * 64)


def learned_at(epsilon: float) -> str:
    """The file of a mechanism whose prior was learned from reports at this ε."""
    prior = sv.Prior(["a", "b"], [0.7, 0.3], learned=Learned(500, epsilon, "0" * 64))
    return signed(sv.certify(sv.kernel_clip(prior, 1.0)).document())


def test_a_policy_bounds_the_epsilon_that_a_prior_was_learned_at() -> None:
    """The stated ε is a double, as the one of the policy: 0.3 is 0.3, and a hair above it is above it."""
    for bound in (0.3, Fraction(0.3), "3/10", 5, None):
        assert read(learned_at(0.3), max_learned_epsilon=bound).learned_epsilon == "0.3"
    for stated, bound in ((0.3, 0.2999999), (2.0000001, 2), (40.0, 0.5)):
        with pytest.raises(sv.errors.MechanismFileError, match="learned from reports at epsilon"):
            read(learned_at(stated), max_learned_epsilon=bound)
    assert read(learned_at(2.0000001)).learned_epsilon == "2.0000001"  # every digit is in the file
    assert read(signed(make("kernel_clip").document()), max_learned_epsilon=0.1).provenance == "public"
    with pytest.raises(sv.errors.ParameterError, match="max_learned_epsilon"):
        sv.Policy(max_epsilon=1, max_learned_epsilon=0)


def test_a_policy_that_bounds_it_refuses_a_prior_that_states_none() -> None:
    plain = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.7, 0.3]), 1.0)).document()
    options = plain["options"]
    for provenance, stated in (
        ("learned", {}),
        ("learned", {"learned_epsilon": "nan"}),
        ("learned", {"learned_epsilon": "٣"}),
        ("users", {}),
        ("users", {"learned_epsilon": "1"}),
    ):
        text = signed({**plain, "provenance": provenance, "options": {**options, **stated}})
        assert read(text).learned_epsilon is None
        with pytest.raises(sv.errors.MechanismFileError, match="max_learned_epsilon"):
            read(text, max_learned_epsilon=100)


@everyone
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": "1/1"}, "ratio A is not the certified"),
        ({"epsilon": "0/1"}, "epsilon 0"),
        ({"epsilon": "1.5"}, "whole fractions"),
        ({"epsilon": "3/0"}, "whole fractions"),
        ({"epsilon": "9" * 5000 + "/1"}, "whole fractions"),
        ({"epsilon": "101/1"}, "epsilon 101"),
        ({"ratio": "99/1"}, "ratio A is not the certified|not ε-private|no law"),
        ({"ratio": "1/2"}, "ratio"),
        ({"categories": ["a", "b", "c", "c"]}, "twice"),
        ({"categories": ["a", "b", "c", 4]}, "strings or by integers"),
        ({"categories": []}, "no categories"),
        ({"categories": ["a", "b", "c"]}, "one weight per category|not there|does not fit"),
        ({"bits": 12}, "version"),
        ({"version": 2}, "version"),
        ({"format": "other"}, "format"),
        ({"kind": "box2"}, "fields"),
        ({"kind": ["box"]}, "fields"),
        ({"extra": 1}, "fields"),
        ({"options": [1]}, "fields"),
        ({"keeps_prior": "yes"}, "fields"),
        ({"sampler": 5}, "fields"),
    ],
)
def test_promise_10_a_wrong_field_is_refused(name: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises((sv.errors.MechanismFileError, sv.errors.CertificateError), match=message):
        read(signed({**make(name).document(), **change}))


@everyone
def test_promise_10_weights_that_do_not_certify(name: str) -> None:
    plain = make(name).document()
    for key in ("prior", "low", "own", "other"):
        if isinstance(plain.get(key), list):
            for i, value in enumerate(plain[key]):
                for new in ("0", str(int(value) * 2), "-1", "1e5", "9" * 30, 7, None, "٣"):
                    changed = {**plain, key: [*plain[key][:i], new, *plain[key][i + 1 :]]}
                    refused_or_private(signed(changed))
        elif key in plain:
            for new in ("0", str(int(plain[key]) * 2), "x"):
                with pytest.raises(sv.errors.SottovoceError):
                    read(signed({**plain, key: new}))


def refused_or_private(text: str) -> None:
    """What is accepted must be private: the only acceptable kind of tampering is a harmless one."""
    try:
        mechanism = read(text)
    except (sv.errors.MechanismFileError, sv.errors.CertificateError):
        return
    laws = [mechanism.law(records=[c]) for c in mechanism.categories]
    assert all(sum(law) == 1 for law in laws)
    for column in zip(*laws, strict=True):
        assert max(column) <= mechanism.ratio * min(column)


@everyone
@pytest.mark.parametrize(
    "change",
    [
        {"version": True},
        {"version": 1.0},
        {"bits": 62.0},
        {"epsilon": "6/4"},
        {"epsilon": "03/2"},
        {"keeps_prior": None},
        {"sampler": "x\x1b[2J"},
        {"sampler": ""},
        {"prior_digest": "abc"},
        {"options": {"a": "\n"}},
        {"categories": ["a", "b", "c", "\ud800"]},
        {"categories": [1, 2, 3, 1 << 53]},
        {"options": {"deep": "[" * 5}},
    ],
)
def test_promise_10_what_is_not_canonical_or_claims_too_much(name: str, change: dict[str, Any]) -> None:
    plain = make(name).document()
    if change == {"keeps_prior": None}:
        change = {"keeps_prior": not plain["keeps_prior"]}
    if change == {"options": {"deep": "[" * 5}}:
        nested: Any = "x"
        for _ in range(985):
            nested = [nested]
        change = {"options": nested}
    with pytest.raises((sv.errors.MechanismFileError, sv.errors.CertificateError)):
        read(signed({**plain, **change}))


@pytest.mark.parametrize("bad", [0, -1, "abc", float("nan"), float("inf")])
def test_a_policy_has_to_make_sense(bad: object) -> None:
    with pytest.raises(sv.errors.ParameterError, match="max_epsilon"):
        sv.Policy(max_epsilon=bad)  # type: ignore[arg-type]
    with pytest.raises(sv.errors.ParameterError, match="max_categories"):
        sv.Policy(max_epsilon="any", max_categories=0)


def test_a_mechanism_cannot_be_edited() -> None:
    mechanism = make("blend")
    with pytest.raises(TypeError):
        mechanism.options["weight"] = "0.9"  # type: ignore[index]
    with pytest.raises(AttributeError):
        mechanism.epsilon = Fraction(9)  # type: ignore[misc]


@pytest.mark.parametrize("order", [[0, 0, 2, 3], [0, 1, 2], [3, 2, 1, 4], [0, 1, 2, 3.0]])
def test_promise_10_an_order_that_is_no_order(order: list[Any]) -> None:
    with pytest.raises((sv.errors.MechanismFileError, sv.errors.CertificateError)):
        read(signed({**make("minimax_kernel").document(), "order": order}))


def test_promise_10_a_field_said_twice_is_refused() -> None:
    text = signed(make("kernel_clip").document())
    assert read(text)
    with pytest.raises(sv.errors.MechanismFileError, match="not valid JSON"):
        read(text.replace('"version": 1', '"version": 9, "version": 1', 1))


def test_promise_10_an_unsigned_change_is_refused() -> None:
    plain = make("kernel_clip").document()
    text = json.dumps({**plain, "digest": digest_of(plain)})
    with pytest.raises(sv.errors.MechanismFileError, match="was changed"):
        read(text.replace('"a"', '"z"', 1))


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", "[" * 100_000, '{"a":1,"a":2}', '{"format": NaN}', "9" * 10_000, "\x00"],
)
def test_promise_10_not_even_a_document(text: str) -> None:
    with pytest.raises(sv.errors.MechanismFileError):
        read(text)


def test_promise_10_unreadable_and_too_large_files(tmp_path: Path) -> None:
    with pytest.raises(sv.errors.MechanismFileError, match="No such file"):
        sv.load(tmp_path / "none.json", policy=ANY)
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(sv.errors.MechanismFileError, match="not UTF-8"):
        sv.load(tmp_path / "latin.json", policy=ANY)
    (tmp_path / "huge.json").write_text(" " * 80_000)
    with pytest.raises(sv.errors.MechanismFileError, match="too large for 10 categories"):
        sv.load(tmp_path / "huge.json", policy=sv.Policy(max_epsilon="any", max_categories=10))


def check_mutations(count: int) -> None:
    rng = random.Random(10)
    texts = [signed(make(name).document()) for name in sv.SAMPLERS]
    for _ in range(count):
        raw = bytearray(rng.choice(texts).encode())
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(raw))
            choice = rng.random()
            if choice < 0.5:
                raw[at] = rng.randrange(256)
            elif choice < 0.75:
                del raw[at : at + rng.randint(1, 30)]
            else:
                raw[at:at] = bytes(rng.choices(b'0123456789",:[]{}e-.', k=rng.randint(1, 20)))
        text = raw.decode("utf-8", "replace")
        try:
            plain = json.loads(text)
            if rng.random() < 0.7 and isinstance(plain, dict):
                text = signed(plain)
        except (ValueError, RecursionError):
            pass
        refused_or_private(text)


def test_promise_10_mutated_files() -> None:
    check_mutations(1_000)


@pytest.mark.full
def test_promise_10_mutated_files_at_their_stated_number() -> None:
    check_mutations(10_000)


def test_a_notebook_shows_the_facts_that_a_client_checks() -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.4, 0.6]), 1.5))
    page = mechanism._repr_html_()
    for words in (mechanism.digest, "3/2", "kernel_clip", "stated to be public", "2^-62"):
        assert words in page
