"""`exact=True`: every user alone, by the path that is proved, and bit for bit what a batch gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from boxes import is_capped
from command import run, write
from kinds import of_kind
from tape import tape

import sottovoce as sv
from sottovoce.cli import release as command
from sottovoce.core import box
from sottovoce.core.box import BoxEngine
from sottovoce.core.engine import row_weights
from sottovoce.core.stream import StreamState
from sottovoce.core.stream_many import Steps
from sottovoce.groups import Groups
from sottovoce.release.ledger import Ledger
from sottovoce.release.mechanism import ENGINES
from sottovoce.releasing import release_file

CATEGORIES = 40
WEIGHTS = 1 / np.arange(1, CATEGORIES + 1)
PRIOR = sv.Prior([f"c{i}" for i in range(CATEGORIES)], WEIGHTS / WEIGHTS.sum())
LINE = sv.Line(range(CATEGORIES))

MADE: dict[str, Callable[[], Any]] = {
    "box": lambda: sv.kernel_clip(PRIOR, 4.0),
    "box, mostly capped": lambda: sv.kernel_clip(PRIOR, 0.3),
    "box of another sampler": lambda: sv.relative_mollifier(PRIOR, 1.0),
    "kernel": lambda: sv.minimax_kernel(PRIOR, 2.0),
    "response": lambda: sv.randomized_response(PRIOR, 2.0),
    "survey": lambda: sv.survey(PRIOR.categories, 2.0),
    "nearest": lambda: sv.nearest(PRIOR, 2.0, LINE),
    "stream": lambda: sv.stream(PRIOR, 4.0, horizon=4),
    "stream with persistence": lambda: sv.stream(PRIOR, 4.0, horizon=4, persistence=0.5),
}
DRAWS = {
    "box": 3_020_000,
    "box, mostly capped": 1_500_000,
    "box of another sampler": 1_000_000,
    "kernel": 1_500_000,
    "response": 1_500_000,
    "survey": 1_000_000,
    "nearest": 40_000,
    "stream": 440_000,
}
"""How many of the draws each kind has; the slow ones have fewer. With persistence streams have no batches."""


def some_rows(made: sv.Mechanism, rng: np.random.Generator, users: int) -> Any:
    """Users without records, with one, with a few, with many, and with a distribution in floats."""
    few = rng.multinomial(rng.choice([0, 1, 3, 20], users), WEIGHTS / WEIGHTS.sum())
    many = rng.integers(0, 1000, (users, CATEGORIES)) * (rng.random((users, CATEGORIES)) < 0.5)
    counts = np.where(rng.random((users, 1)) < 0.8, few, many)
    if rng.random() < 0.3:
        return made.prepare(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return made.prepare(counts)


def compare(made: sv.Mechanism, rng: np.random.Generator, users: int) -> int:
    """Both paths on the same words, laid out as each of them reads; returns how many draws there were."""
    rows, bits, k = some_rows(made, rng, users), made.bits, made.engine.words
    words = rng.integers(0, 1 << bits, (k, users))
    if made.streaming:
        return compare_steps(made, rows, words)
    with tape(words.ravel().tolist(), bits):
        many = made.draw(rows)
    with tape(words.T.ravel().tolist(), bits) as reads:
        alone = made.draw(rows, exact=True)
    assert reads == [8 * k] * users  # one read for each user, whatever the user has
    assert alone.dtype == many.dtype
    assert alone.shape == many.shape
    assert (alone == many).all()
    return users


def compare_steps(made: sv.Mechanism, rows: Any, words: Any) -> int:
    """Both paths for two steps of streams that differ in their steps and bounds, states included."""
    users = len(words[0])
    states: Sequence[StreamState] = [
        made.lost(7, last=None) if i % 9 == 8 else made.start() for i in range(users)
    ]
    for _ in range(2):
        with tape(words.ravel().tolist(), made.bits):
            many, after = made.draw(rows, states)
        with tape(words.ravel().tolist(), made.bits):
            alone, following = made.draw(rows, states, exact=True)
        assert (alone == many).all()
        assert list(following) == list(after)
        states, words = after, words[:, ::-1]
    return 2 * users


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_words_give_the_same_answers(name: str) -> None:
    made, rng = sv.certify(MADE[name]()), np.random.default_rng(6)
    assert sum(compare(made, rng, users) for users in (1, 2, 30, 200)) >= 233


def test_there_are_capped_users_and_others_among_them() -> None:
    for name, most in (("box", 0.9), ("box, mostly capped", 1.0)):
        made = sv.certify(MADE[name]())
        engine, rows = of_kind(made.engine, BoxEngine), some_rows(made, np.random.default_rng(6), 300)
        capped = [is_capped(engine, dict(row_weights(rows, i))) for i in range(300) if rows[[i]].nnz]
        assert 0 < sum(capped) < most * len(capped)


def test_batches_that_are_cut_read_their_words_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.core.engine.BATCH", 64)
    made, rng = sv.certify(MADE["box"]()), np.random.default_rng(3)
    compare(made, rng, 300)


@pytest.mark.full
@pytest.mark.parametrize("name", DRAWS)
def test_both_paths_agree_on_ten_million_draws(name: str) -> None:
    assert sum(DRAWS.values()) == 10_000_000
    made, rng, done = sv.certify(MADE[name]()), np.random.default_rng(7), 0
    while done < DRAWS[name]:
        done += compare(made, rng, 10_000)


# --- nothing else is used --------------------------------------------------------------------------------


@contextmanager
def no_batches() -> Iterator[None]:
    """Whoever takes a path of batches fails."""

    def refuse(*_: object) -> None:
        raise AssertionError("a batch was drawn")

    with pytest.MonkeyPatch.context() as patch:
        for engine in ENGINES:
            patch.setattr(engine, "positions", refuse)
        patch.setattr(box, "decided", refuse)
        patch.setattr(Steps, "step", refuse)
        yield


ROWS = {"user": [7, 7, 8, 9, 9, 9], "item": ["c0", "c3", "c3", "c1", "c2", "c2"]}


@pytest.mark.parametrize(
    ("name", "kept"),
    [(name, kept) for name in MADE for kept in (False, True) if kept or "stream" not in name],
)
def test_no_batch_is_drawn_for_a_table_or_a_file(name: str, kept: bool, tmp_path: Path) -> None:
    made = sv.certify(MADE[name]())
    terms: dict[str, Any] = {"ledger": Ledger.create(tmp_path / "b.db", budget=9)} if kept else {}
    table = write(tmp_path, "users.csv", pl.DataFrame(ROWS).write_csv())
    with no_batches():
        first = sv.release_table(pl.DataFrame(ROWS), made, exact=True, **terms)
        done = release_file(Groups.of(made, None), table, tmp_path / "o.parquet", exact=True, **terms)
    assert done.startswith("3 releases")
    assert first["user"].unique().sort().to_list() == [7, 8, 9]
    second = pl.read_parquet(tmp_path / "o.parquet")
    assert second.columns == first.columns
    assert not kept or second["item"].to_list() == first["item"].to_list()  # remembered, not drawn again


def test_without_it_batches_are_drawn() -> None:
    made = sv.certify(MADE["kernel"]())
    with no_batches(), pytest.raises(AssertionError, match="a batch was drawn"):
        sv.release_table(pl.DataFrame(ROWS), made)
    with pytest.raises(sv.errors.ParameterError, match="only a stream takes states"):
        made.release_many(np.eye(CATEGORIES), [], exact=True)


def test_the_option_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sv.certify(MADE["box"]()).save(tmp_path / "m.json")
    users = write(tmp_path, "users.csv", pl.DataFrame(ROWS).write_csv())
    given = ["release", tmp_path / "m.json", users, "--max-epsilon", 9]
    shown = [run(*given, "-o", tmp_path / f"{i}.csv", *more) for i, more in enumerate(([], ["--exact"]))]
    assert [done.returncode for done in shown] == [0, 0]
    assert shown[0].stderr.replace("0.csv", "1.csv") == shown[1].stderr  # the same notes, in the same order
    tables = [pl.read_csv(tmp_path / f"{i}.csv") for i in range(2)]
    assert tables[0].drop("item").equals(tables[1].drop("item"))
    asked: list[bool] = []

    def released(*_: object, **terms: Any) -> str:
        asked.append(terms["exact"])
        return ""

    monkeypatch.setattr(command, "release_file", released)
    for more in ([], ["--exact"]):
        texts = list(map(str, [*given[1:], "-o", tmp_path / "x.csv", *more]))
        command.release_command.main(texts, standalone_mode=False)
    assert asked == [False, True]
