"""What docs/format.md says and the reader once did not hold: numbers as text, the ratio to its last unit."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

import sottovoce as sv
from sottovoce.core.arithmetic import exp_below
from sottovoce.release.file import ANY, load_mechanisms, parse, save_mechanisms
from sottovoce.release.mechanism import digest_of

INTEGERS = sv.Prior([0, 1, -2], [0.5, 0.3, 0.2])


def signed(plain: dict[str, Any]) -> str:
    return json.dumps({**plain, "digest": digest_of(plain)})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"categories": [0,', '"categories": [-0,'),
        ('"categories": [0, 1,', '"categories": [0, 1.0,'),
        ('"categories": [0, 1,', '"categories": [0, 1e0,'),
        ('"version": 1', '"version": 1.0'),
        ('"bits": 62', '"bits": 6.2e1'),
    ],
)
def test_a_number_is_written_in_one_way(old: str, new: str) -> None:
    mechanism = sv.certify(sv.kernel_clip(INTEGERS, 1.0))
    text = signed(mechanism.document())
    assert old in text
    assert parse(text, "the file", ANY) == mechanism
    with pytest.raises(sv.errors.MechanismFileError, match="not valid JSON"):
        parse(text.replace(old, new), "the file", ANY)


def test_a_name_may_look_like_such_a_number() -> None:
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["[-0]", "1.0"], [0.5, 0.5]), 1.0))
    assert parse(signed(mechanism.document()), "the file", ANY) == mechanism


@pytest.mark.parametrize("version", [True, 1.0, "1", 2, None])
def test_the_version_of_a_file_of_groups_is_the_number_one(version: object, tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    save_mechanisms({"g": sv.certify(sv.kernel_clip(INTEGERS, 1.0))}, "region", path)
    plain = json.loads(path.read_text())
    del plain["digest"]
    path.write_text(signed(plain))
    assert load_mechanisms(path, policy=ANY).by == "region"
    path.write_text(signed({**plain, "version": version}))
    with pytest.raises(sv.errors.MechanismFileError):
        load_mechanisms(path, policy=ANY)


def _just_above(whole: int, digits: int) -> Fraction:
    """The least ε of so many decimal places with 2^64·e^ε > whole."""
    with mp.workdps(3 * digits):
        return Fraction(int(mp.ceil(mp.log(mp.mpf(whole) / 2**64) * 10**digits)), 10**digits)


@pytest.mark.parametrize("digits", [60, 78, 150, 395])
def test_the_ratio_is_right_where_no_fixed_number_of_digits_tells(digits: int) -> None:
    """2^64·e^ε lies above a whole number by 10^-40 or by 10^-375: the floor is that number."""
    whole = 3 * 2**64 + 1
    epsilon = _just_above(whole, digits)
    assert exp_below(epsilon) == Fraction(whole, 2**64)
    assert exp_below(epsilon - Fraction(1, 10**digits)) == Fraction(whole - 1, 2**64)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**130), Fraction(1, 10**399), Fraction(1, 2**65)])
def test_the_ratio_of_a_tiny_epsilon_is_one(epsilon: Fraction) -> None:
    assert exp_below(epsilon) == 1


WEIGHTS = st.lists(
    st.from_regex(r"[0-9]{1,3}", fullmatch=True) | st.sampled_from(["1,2", "", ",", '"', "é", "٣", "1\n"])
)
VALUES = WEIGHTS | st.lists(st.integers() | st.text(max_size=3)) | st.integers() | st.text(max_size=3)


@given(st.dictionaries(st.sampled_from(["prior", "low", "own", "a", "é", '"', "digits"]), VALUES))
def test_the_digest_is_that_of_the_plainly_written_document(plain: dict[str, Any]) -> None:
    """Lists of whole numbers are written by a shorter way: it leads to the same bytes, whatever they hold."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert digest_of(plain) == hashlib.sha256(text.encode()).hexdigest()
