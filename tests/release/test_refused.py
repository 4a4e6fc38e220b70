"""Promise 17: what is refused has cost nobody anything; what is interrupted says what it has cost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command import check_refused, check_refused_last, run, write

import sottovoce as sv
from sottovoce.cli.app import Interruptions
from sottovoce.release import ledger
from sottovoce.release.ledger import Ledger

PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
ONE, THREE = np.array([[1, 0, 0]]), np.eye(3, dtype=int)


def mechanism(epsilon: float = 1.0) -> sv.Mechanism:
    return sv.certify(sv.kernel_clip(PRIOR, epsilon))


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


REFUSALS: dict[str, tuple[type[Exception], Callable[[Ledger], object]]] = {
    "a string of records": (sv.errors.UserDataError, lambda b: b.release(mechanism(), "ann", records="abc")),
    "records that fail": (ZeroDivisionError, lambda b: b.release(mechanism(), "ann", records=(1 / 0 for _ in "x"))),  # type: ignore[misc]
    "not a mechanism": (sv.errors.ParameterError, lambda b: b.release("m.json", "ann", records=["a"])),  # type: ignore[arg-type]
    "a user that is no name": (sv.errors.ParameterError, lambda b: b.release(mechanism(), 1.5, records=["a"])),  # type: ignore[arg-type]
    "a user with a blank": (sv.errors.ParameterError, lambda b: b.release(mechanism(), "ann ", records=["a"])),
    "an epoch that is no text": (sv.errors.ParameterError, lambda b: b.release(mechanism(), "ann", records=["a"], epoch=7)),  # type: ignore[arg-type]
    "a group that is no text": (sv.errors.ParameterError, lambda b: b.release(mechanism(), "ann", records=["a"], group=7)),  # type: ignore[arg-type]
    "too little left": (sv.errors.BudgetError, lambda b: b.release(mechanism(3.0), "ann", records=["a"])),
    "a wrong width": (sv.errors.UserDataError, lambda b: b.release_batch(mechanism(), ["ann"], np.eye(2)[:1])),
    "a negative count": (sv.errors.UserDataError, lambda b: b.release_batch(mechanism(), ["ann"], -ONE)),
    "not a number": (sv.errors.UserDataError, lambda b: b.release_batch(mechanism(), ["ann"], [[np.nan, 1, 0]])),
    "no distribution": (sv.errors.UserDataError, lambda b: b.release_batch(mechanism(), ["ann"], [[0.5, 0.2, 0.1]])),
    "a callback": (sv.errors.UserDataError, lambda b: b.release_batch(mechanism(), ["ann"], lambda new: ["a"])),  # type: ignore[arg-type]
    "more users than rows": (sv.errors.ParameterError, lambda b: b.release_batch(mechanism(), ["ann", "bob"], ONE)),
    "fewer users than rows": (sv.errors.ParameterError, lambda b: b.release_batch(mechanism(), ["ann"], THREE)),
    "a user twice": (sv.errors.ParameterError, lambda b: b.release_batch(mechanism(), ["7", 7], THREE[:2])),
    "users as a string": (sv.errors.ParameterError, lambda b: b.release_batch(mechanism(), "abc", THREE)),
    "one of three over budget": (
        sv.errors.BudgetError,
        lambda b: b.release_batch(mechanism(1.5), ["ann", "spent", "cy"], THREE),
    ),
    "a request twice": (
        sv.errors.ParameterError,
        lambda b: b.charge([ledger.request(mechanism(), [user], ONE) for user in ("ann", "bob")]),
    ),
    "an unknown rule": (
        sv.errors.ParameterError,
        lambda b: b.charge([ledger.request(mechanism(), ["ann"], ONE)], exhausted="perhaps"),
    ),
    "over budget in the third group": (
        sv.errors.BudgetError,
        lambda b: b.charge(
            [ledger.request(mechanism(0.75), ["ann"], ONE, group=name) for name in ("x", "y", "z")]
        ),
    ),
    "a grant of nothing": (sv.errors.ParameterError, lambda b: b.grant("ann", 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_promise_17_every_refusal_leaves_the_ledger_as_it_was(tmp_path: Path, name: str) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=2)
    book.release(mechanism(), "spent", records=["a"])
    before = state(tmp_path)
    error, call = REFUSALS[name]
    with pytest.raises(error) as caught:
        call(book)
    assert "secret" not in str(caught.value)
    assert state(tmp_path) == before  # byte for byte
    assert book.left("ann") == 2


# --- the command ---------------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three groups; in the third one user has nothing left."""
    groups = "".join(
        f"{item},{count},g{g}\n" for g in (1, 2, 3) for item, count in (("a", 5), ("b", 3), ("c", g))
    )
    prior = write(tmp_path, "prior.csv", f"item,count,group\n{groups}")
    assert run("design", prior, "-e", 1, "--by", "group", "-o", tmp_path / "m.json").returncode == 0
    write(tmp_path, "users.csv", "user,item,group\nann,a,g1\nbob,b,g2\ncy,c,g3\ndora,a,g3\n")
    book = Ledger.create(tmp_path / "b.db", budget=1.5)
    book.release(sv.certify(sv.kernel_clip(PRIOR, 1.0)), "cy", records=["a"], epoch="may")
    book.close()
    return tmp_path


def release(folder: Path, *more: object, out: str = "r.csv") -> subprocess.CompletedProcess[str]:
    return run(
        "release", folder / "m.json", folder / "users.csv", "-o", folder / out, "--by", "group",
        "--ledger", folder / "b.db", *more,
    )  # fmt: skip


def test_promise_17_a_user_over_budget_in_the_third_group_charges_nobody(three: Path) -> None:
    before = state(three)
    check_refused_last(
        release(three, "--epoch", "may"), "1 of 4 users have less than they need; nobody was charged"
    )
    assert state(three) == before
    skipped = release(three, "--epoch", "may", "--exhausted", "skip")
    assert skipped.returncode == 0, skipped.stderr
    assert "3 releases charged, 0 repeated as they were at no cost, 1 left out" in skipped.stderr
    assert pl.read_csv(three / "r.csv")["user"].to_list() == ["ann", "bob", "dora"]
    again = release(three, "--epoch", "may", "--exhausted", "skip", out="s.csv")
    assert "0 releases charged, 3 repeated as they were at no cost, 1 left out" in again.stderr
    assert (three / "s.csv").read_text() == (three / "r.csv").read_text()


def test_promise_17_every_refusal_of_the_command(three: Path) -> None:
    write(three, "blank.csv", "user,item,group\nann ,a,g1\n")
    write(three, "twice.csv", "user,item,group\nZoe\u0301,a,g1\nZo\u00e9,b,g1\n")
    write(three, "odd.csv", "user,item,group\nann,secret,g1\n")
    (three / "there.csv").write_text("mine")
    (three / "b.json").symlink_to(three / "b.db")  # the ledger under a name that could be an output
    before = state(three)
    base = ["release", "--max-epsilon", "100", three / "m.json"]
    for table, arguments, message in (
        ("users.csv", ["-o", three / "r.csv"], "name an epoch (--epoch): the ledger knows 1"),
        ("users.csv", ["-o", three / "r.csv", "--epoch", " may"], "epoch must be printable text"),
        ("users.csv", ["-o", three / "there.csv", "--epoch", "may"], "is there already"),
        (
            "users.csv",
            ["-o", three / "r.csv", "--epoch", "may", "--exhausted", "no"],
            "Invalid value for '--exhausted'",
        ),
        ("users.csv", ["-o", three / "b.db.csv" / "r.csv", "--epoch", "may"], "there is no folder"),
        ("users.csv", ["-o", three / "r.csv", "--epoch", ""], "--epoch is empty"),
        ("users.csv", ["-o", three / "b.json", "--epoch", "may", "--force"], "must not be one of the inputs"),
        ("blank.csv", ["-o", three / "r.csv", "--epoch", "may"], "white space"),
        ("twice.csv", ["-o", three / "r.csv", "--epoch", "may"], "must be distinct"),
        (
            "odd.csv",
            ["-o", three / "r.csv", "--epoch", "may", "--unknown", "error"],
            "1 of 1 rows do not name one",
        ),
    ):
        done = run(*base, three / table, "--by", "group", "--ledger", three / "b.db", *arguments)
        check_refused_last(done, message)
        assert "secret" not in done.stderr
        assert state(three) == before, message


def test_an_epoch_never_seen_is_announced(three: Path) -> None:
    done = release(three, "--epoch", "2026-12")
    assert done.returncode == 0, done.stderr
    assert "epoch '2026-12' is new to this ledger: everybody has the whole budget in it" in done.stderr


def test_two_groups_with_equal_priors_get_their_own_answers(tmp_path: Path) -> None:
    prior = write(
        tmp_path,
        "prior.csv",
        "item,count,group\n" + "".join(f"i{i},1,{g}\n" for g in "xy" for i in range(40)),
    )
    assert run("design", prior, "-e", 0.01, "--by", "group", "-o", tmp_path / "m.json").returncode == 0
    rows = "".join(f"u{u},i1,{g}\n" for u in range(20) for g in "xy")
    write(tmp_path, "users.csv", f"user,item,group\n{rows}")
    Ledger.create(tmp_path / "b.db", budget=1).close()
    done = release(tmp_path, "--several-groups", "allow")
    assert done.returncode == 0, done.stderr
    assert "40 releases charged" in done.stderr
    answers = pl.read_csv(tmp_path / "r.csv").sort("user", "group")["item"].to_list()
    assert answers[0::2] != answers[1::2]  # twenty equal pairs by chance: 40^-20
    assert Ledger.open(tmp_path / "b.db").total("u3") == 2 * Fraction(ledger.charge_of(Fraction(0.01)), 10**6)


def test_an_output_that_is_there_is_not_replaced_in_passing(three: Path) -> None:
    """Every command with -o: the file stays, byte for byte, unless --force is said."""
    write(three, "survey.csv", "item,count\na,5\nb,3\nc,2\n")
    assert (
        run(
            "design", three / "survey.csv", "-e", 1, "-s", "minimax-kernel", "-o", three / "k.json"
        ).returncode
        == 0
    )
    users = write(three, "plain.csv", "user,item\nann,a\nbob,b\n")
    assert (
        run(
            "release", "--max-epsilon", "100", three / "k.json", users, "-o", three / "reports.csv"
        ).returncode
        == 0
    )
    for command in (
        ["prior", three / "survey.csv", "-o", three / "out.json"],
        ["design", three / "survey.csv", "-e", 1, "-o", three / "out.json"],
        ["compare", three / "survey.csv", users, "-e", 1, "-s", "blend", "-o", three / "out.csv"],
        ["release", "--max-epsilon", "100", three / "k.json", users, "-o", three / "out.csv"],
        ["estimate", three / "k.json", three / "reports.csv", "-o", three / "out.csv"],
        ["estimate", three / "k.json", three / "reports.csv", "--picture", three / "out.png"],
    ):
        out = Path(str(command[-1]))
        out.write_text("mine")
        check_refused(run(*command), "is there already")
        assert out.read_text() == "mine"
        forced = run(*command, "--force")
        assert forced.returncode == 0, forced.stderr
        assert out.read_bytes() != b"mine"
        out.unlink()


def test_a_failure_after_the_charge_says_what_it_cost(
    three: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sottovoce.cli import app as cli
    from sottovoce.tables import reader

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reader.Writer, "save", full)
    arguments = [
        "release",
        "--max-epsilon",
        "100",
        "m.json",
        "users.csv",
        "-o",
        "r.csv",
        "--by",
        "group",
        "--ledger",
        "b.db",
        "--epoch",
        "june",
    ]
    monkeypatch.chdir(three)
    monkeypatch.setattr(sys, "argv", ["sottovoce", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.run()
    assert stopped.value.code == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.endswith("No space left on device; 4 releases were charged; running again costs nothing more")
    monkeypatch.undo()
    again = release(three, "--epoch", "june")
    assert "0 releases charged, 4 repeated" in again.stderr


_SLOW = """
import os, sys, time
from sottovoce.cli import app as cli
from sottovoce.release import mechanism
real = mechanism.Mechanism.draw
def slow(self, rows):
    sys.stderr.write("drawing\\n"); sys.stderr.flush()
    time.sleep(600)
    return real(self, rows)
mechanism.Mechanism.draw = slow
sys.argv = ["sottovoce", *sys.argv[1:]]
cli.run()
"""


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.full) for one in (signal.SIGTERM, signal.SIGHUP))],
)
def test_promise_17_an_interruption_says_what_was_charged(three: Path, number: int) -> None:
    command = [
        sys.executable, "-c", _SLOW, "release", "m.json", "users.csv", "-o", "r.csv", "--by", "group",
        "--ledger", "b.db", "--epoch", "june",
    ]  # fmt: skip
    job = subprocess.Popen(command, cwd=three, stderr=subprocess.PIPE, text=True)
    said = ""
    assert job.stderr is not None
    while "drawing" not in said:
        line = job.stderr.readline()
        assert line, said
        said += line
    job.send_signal(number)
    _, rest = job.communicate(timeout=300)
    assert job.returncode == 128 + number
    assert "Traceback" not in rest
    last = rest.strip().splitlines()[-1]
    assert (
        last == "interrupted: nothing was written, 4 releases were charged; running again costs nothing more"
    )
    assert not (three / "r.csv").exists()
    again = release(three, "--epoch", "june")
    assert again.returncode == 0, again.stderr
    assert "0 releases charged, 4 repeated" in again.stderr
    assert {
        str(ledger.epsilon_text(int(1e6 * Ledger.open(three / "b.db").total(name))))
        for name in ("ann", "bob")
    } == {"1"}


def test_an_interruption_waits_while_it_is_held_back() -> None:
    steps: list[str] = []

    def interrupted() -> None:
        with Interruptions() as interruptions:
            with interruptions.held_back():
                signal.raise_signal(signal.SIGINT)  # heard by this thread, and now
                steps.append("the step has ended")
            steps.append("never reached")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["the step has ended"]
    before = signal.getsignal(signal.SIGINT)
    with Interruptions():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_a_charge_without_its_release_cannot_be_answered(tmp_path: Path) -> None:
    """Nobody who was not charged gets an answer, whoever asks for it."""
    book = Ledger.create(tmp_path / "b.db", budget=1)
    asked: Any = ledger.request(mechanism(), ["ann"], ONE)
    with pytest.raises(sv.errors.LedgerError, match="vanished"):
        book.answers(asked, "", np.array([0]))
    assert book.total("ann") == 0


_WRITES = """
import os, signal, sys
from sottovoce.cli import app as cli
from sottovoce.tables.reader import Writer
real = Writer.save
def interrupted(*arguments, **options):
    real(*arguments, **options)
    os.kill(os.getpid(), int(os.environ["NUMBER"]))
Writer.save = interrupted
sys.argv = ["sottovoce", *sys.argv[1:]]
cli.run()
"""


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGTERM])
def test_promise_17_an_interruption_after_the_writing_does_not_deny_it(three: Path, number: int) -> None:
    arguments = ["release", "--max-epsilon", "100", "m.json", "users.csv", "-o", "r.csv", "--by", "group"]
    environment = {**os.environ, "NUMBER": str(int(number))}
    command = [sys.executable, "-c", _WRITES, *arguments]
    done = subprocess.run(command, cwd=three, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + number
    assert (three / "r.csv").exists()
    assert done.stderr.strip().splitlines()[-1] == (
        "interrupted: 4 releases had been written into r.csv already"
    )


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruptions():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_receipt_shows_numbers_only(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1)
    receipt = book.charge([ledger.request(mechanism(), ["ann", "bob", "cy"], THREE)])
    assert repr(receipt) == "Receipt(epoch='', charged=3, continued=0, repeated=0, left_out=0)"
