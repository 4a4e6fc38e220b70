"""What users have decides what is drawn; not whether, in which order or how much is written.

One person's contents go through every kind of data; whoever reads the output may see another category, and
must see no other difference. The collector chooses the categories and the prior.
"""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command import run

import sottovoce as sv
from sottovoce.core import randomness
from sottovoce.core.kernel import LinearEngine

PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
CONTENTS: dict[str, list[tuple[str | None, float | None]]] = {
    "one record": [("a", 1)],
    "no item": [(None, 1)],
    "no item and no weight": [(None, None)],
    "unknown only": [("SECRET", 1)],
    "unknown and known": [("SECRET", 2), ("b", 1), ("ANOTHER", 1)],
    "zero weight": [("b", 0)],
    "no weight": [("b", None)],
    "zero weight and unknown": [("b", 0), ("SECRET", 3)],
    "like the prior": [("a", 5), ("b", 3), ("c", 2)],
    "far from it": [("c", 40)],
    "a name of another kind": [("1", 1)],
    "an empty name": [("", 1)],
}
OTHERS = [("u1", "a", 5.0), ("u1", "b", 3.0), ("u1", "c", 2.0), ("u3", "b", 1.0)]
ATTACKS = {
    "plain": PRIOR,
    "the others' average": sv.Prior.from_counts({"a": 5, "b": 13, "c": 2}),
    "one category": sv.Prior(["c"], [1.0]),
    "two categories": sv.Prior(["b", "a"], [0.6, 0.4]),
}
SAMPLERS = ["kernel_clip", "minimax_kernel", "randomized_response", "rr_with_prior", "global_minimax"]


def rows(contents: str) -> list[tuple[str, str | None, float | None]]:
    """The table with one person's contents among those of two others."""
    mine: list[tuple[str, str | None, float | None]] = [("u2", *record) for record in CONTENTS[contents]]
    return [OTHERS[0], *mine, *OTHERS[1:]]


def frame(contents: str) -> pl.DataFrame:
    return pl.DataFrame(
        rows(contents), schema={"user": pl.String, "item": pl.String, "weight": pl.Float64}, orient="row"
    )


@pytest.mark.parametrize(
    ("name", "attack"),
    [
        pytest.param(
            name, attack, marks=[] if name == "kernel_clip" or attack == "plain" else [pytest.mark.full]
        )
        for name in SAMPLERS
        for attack in ATTACKS
    ],
)
def test_promise_23_a_table_is_released_alike_whatever_a_user_has(name: str, attack: str) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](ATTACKS[attack], 1.0))
    for contents in CONTENTS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = sv.release_table(frame(contents), mechanism, weight="weight")
        assert found["user"].to_list() == ["u1", "u2", "u3"], contents
        assert set(found["item"]) <= set(mechanism.categories)


def sizes(form: str, attack: str) -> list[Any]:
    """Every kind of contents in a CSV, some in other forms and attacks; the full run crosses them all."""
    first = form == "csv" and attack == "plain"
    either = form == "csv" or attack == "plain"
    everything = pytest.param(form, attack, 1, marks=[] if first else [pytest.mark.full])
    return [everything, *([(form, attack, 3)] if either and not first else [])]


@pytest.mark.parametrize(
    ("form", "attack", "step"),
    [one for form in ("csv", "parquet", "json") for attack in ATTACKS for one in sizes(form, attack)],
)
def test_promise_23_the_command_writes_alike_whatever_a_user_has(
    tmp_path: Path, form: str, attack: str, step: int
) -> None:
    sv.certify(sv.kernel_clip(ATTACKS[attack], 1.0)).save(tmp_path / "m.json")
    seen = set()
    for number, contents in enumerate(list(CONTENTS)[::step]):
        table = write(tmp_path / f"t{number}.{form}", contents)
        out = tmp_path / f"r{number}.csv"
        done = run("release", tmp_path / "m.json", table, "-o", out, "--max-epsilon", 1)
        assert "SECRET" not in done.stdout + done.stderr
        lines = out.read_text().splitlines() if out.exists() else []
        rest = [[part for i, part in enumerate(line.split(",")) if i != 1] for line in lines]
        seen.add((done.returncode, json.dumps(rest), done.stdout))
    ((code, written, _),) = seen
    assert code == 0
    assert [row[0] for row in json.loads(written)] == ["user", "u1", "u2", "u3"]


def write(path: Path, contents: str) -> Path:
    table = frame(contents)
    if path.suffix == ".csv":
        table.write_csv(path)
    elif path.suffix == ".parquet":
        table.write_parquet(path)
    else:
        path.write_text(json.dumps(table.to_dicts()), encoding="utf-8")
    return path


def test_promise_23_no_record_brings_a_column_of_amounts_or_a_refusal(tmp_path: Path) -> None:
    """One record with a key of its own, or with any text as item, changes nothing for the others."""
    sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.001, 0.999]), 20.0)).save(tmp_path / "m.json")
    usual = [{"user": f"u{i:03}", "item": "a"} for i in range(600)]
    odd: list[dict[str, Any]] = [{"count": 7}, {"weight": -1}, {"item": "x\x01y"}, {"item": "x\r\ny"}]
    document = {"format": "sottovoce-prior", **usual[0]}  # a record that begins like one of our own files
    for i, more in enumerate([*odd, {"item": "x\ry"}]):
        records = [*usual[:400], usual[400] | more, *usual[401:]]
        tables = {"json": json.dumps(records), "jsonl": "\n".join(map(json.dumps, [document, *records[1:]]))}
        if "item" in more:
            cells = [f'{record["user"]},"{record["item"]}"' for record in records]
            tables["csv"] = "\n".join(["user,item", *cells])
        for form, text in tables.items():
            table, out = tmp_path / f"t{i}.{form}", tmp_path / f"r{i}-{form}.csv"
            table.write_text(text, encoding="utf-8", newline="")
            done = run("release", tmp_path / "m.json", table, "-o", out, "--max-epsilon", 20)
            assert done.returncode == 0, (form, more, done.stderr)
            released = pl.read_csv(out)
            assert released["user"].to_list() == [record["user"] for record in records]
            assert (released["item"] == "a").sum() > 590  # at ε = 20 nearly everybody releases their own


def test_promise_23_an_amount_that_is_no_number_counts_for_nothing_in_a_frame() -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    table = frame("like the prior").with_columns(
        weight=pl.Series([1.0, float("nan"), 2.0, 3.0, 1.0, 1.0, 1.0])
    )
    assert sv.release_table(table, mechanism, weight="weight")["user"].to_list() == ["u1", "u2", "u3"]


def test_spellings_of_one_name_are_refused_without_a_ledger() -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    with pytest.raises(sv.errors.UserDataError, match="names of 1 users occur in several spellings"):
        sv.release_table(pl.DataFrame({"user": ["é", "e\u0301"], "item": ["a", "b"]}), mechanism)


def test_promise_23_a_ledger_charges_alike_whatever_a_user_has(tmp_path: Path) -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    for number, contents in enumerate(CONTENTS):
        ledger = sv.Ledger.create(tmp_path / f"{number}.db", budget=2)
        found = sv.release_table(frame(contents), mechanism, weight="weight", ledger=ledger)
        assert found["user"].to_list() == ["u1", "u2", "u3"]
        assert [ledger.left(user) for user in ("u1", "u2", "u3")] == [1, 1, 1]
        records = [name for name, _ in CONTENTS[contents]]
        assert ledger.release(mechanism, "u4", records=records) in PRIOR.categories  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_promise_23_one_release_reads_the_same_bytes_whatever_a_user_has(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 1.0))
    asked: list[int] = []
    real = randomness._read

    def counting(size: int) -> bytes:
        asked.append(size)
        return real(size)

    monkeypatch.setattr(randomness, "_read", counting)
    odd: list[Any] = [[], ["SECRET"], [None], [["a"]], [{}], ["a", 7, "SECRET"], [float("nan")], ["a"] * 50]
    for records in odd:
        assert mechanism.release(records=records) in PRIOR.categories
    for p in ([0, 0, 0], np.zeros(3), np.array([0, 0, 0])):
        assert mechanism.release(p=p) in PRIOR.categories
    assert len(set(asked)) == 1
    assert len(asked) == len(odd) + 3


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_a_user_without_records_is_one_whose_counts_are_the_prior(name: str) -> None:
    """So the certificate covers the law, and a mechanism that keeps its prior releases the prior, exactly."""
    mechanism = sv.certify(sv.SAMPLERS[name](PRIOR, 1.0))
    weights = mechanism.engine.prior_weights()
    law = mechanism.law(records=[])
    assert law == mechanism.engine.law(list(enumerate(weights)))
    assert sum(law) == 1
    if mechanism.keeps_prior and not isinstance(mechanism.engine, LinearEngine):
        assert law == [Fraction(weight, 1 << 62) for weight in weights]
    for records in ([], ["SECRET"], ["a"], ["c", "b", "b"]):
        for x, y in zip(law, mechanism.law(records=records), strict=True):
            assert x <= mechanism.ratio * y
            assert y <= mechanism.ratio * x


@pytest.mark.parametrize("name", sv.SAMPLERS)
def test_one_and_many_release_the_same_for_users_without_records(name: str) -> None:
    prior = sv.Prior.from_counts({i: i + 1 for i in range(300)})
    mechanism = sv.certify(sv.SAMPLERS[name](prior, 1.0))
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 3, (200, 300)) * (rng.random((200, 300)) < 0.01)
    counts[rng.random(200) < 0.5] = 0
    for size in (1, 50, 200):
        rows = mechanism.prepare(counts[:size])
        words = [rng.integers(0, 1 << 62, size) for _ in range(mechanism.engine.words)]
        mechanism.engine.prepare(many=True)
        many = mechanism.engine.positions(rows, words)
        for i in range(size):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            held = list(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True))
            assert many[i] == mechanism.engine.position(held, [int(word[i]) for word in words])


@pytest.mark.parametrize("unknown", ["error", "drop", "other"])
def test_who_asks_for_it_is_told_and_nothing_is_charged(tmp_path: Path, unknown: str) -> None:
    """These reveal what users have; docs/guarantees.md says so."""
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "other"], [0.5, 0.3, 0.2]), 1.0))
    ledger = sv.Ledger.create(tmp_path / "l.db", budget=2)
    given: dict[str, Any] = {"weight": "weight", "ledger": ledger, "unknown": unknown, "empty": "skip"}
    if unknown == "error":
        with pytest.raises(sv.errors.UserDataError, match="2 of 5 rows"):
            sv.release_table(frame("unknown only"), mechanism, **given)
        assert ledger.users() == 0
        return
    found = sv.release_table(frame("unknown only"), mechanism, **given)
    assert found["user"].to_list() == (["u1", "u3"] if unknown == "drop" else ["u1", "u2", "u3"])


def test_one_user_can_ask_for_strictness() -> None:
    mechanism = sv.certify(sv.kernel_clip(PRIOR, 1.0))
    for records in ([], ["SECRET"], ["a", "SECRET"]):
        with pytest.raises(sv.errors.UserDataError) as caught:
            mechanism.release(records=records, unknown="error")
        assert "SECRET" not in str(caught.value)
    with pytest.raises(sv.errors.ParameterError, match="unknown must be one of prior, error"):
        mechanism.release(records=["a"], unknown="drop")
