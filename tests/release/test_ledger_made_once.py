"""Promise 16: a ledger is made once, on purpose, and never forgets."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
import stat
import subprocess
import unicodedata
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from command import check_refused, run, write

import sottovoce as sv
from sottovoce.release.ledger import Ledger, request
from sottovoce.release.ledger_store import VERSION, Store, create_store

PRIOR = sv.Prior.uniform([f"c{i}" for i in range(50)])


def mechanism(epsilon: float = 1.0) -> sv.Mechanism:
    return sv.certify(sv.minimax_kernel(PRIOR, epsilon))


def test_promise_16_nothing_but_create_makes_one(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    for call in (Ledger, Ledger.open):
        with pytest.raises(sv.errors.LedgerError, match="make one with sottovoce ledger create"):
            call(path)
    (mechanism().save)(tmp_path / "m.json")
    users = write(tmp_path, "u.csv", "user,item\nann,c1\n")
    release = ["release", tmp_path / "m.json", users, "-o", tmp_path / "r.csv", "--ledger", path]
    check_refused(run(*release), "there is no ledger")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.json", "u.csv"]
    assert run(*release, "--budget", 4).returncode == 2  # the old way of making one in passing is gone
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.json", "u.csv"]
    made = run("ledger", "create", path, "--budget", 4)
    assert made.returncode == 0, made.stderr
    assert run(*release).returncode == 0
    check_refused(run("ledger", "create", path, "--budget", 9), "never overwritten")
    assert Ledger.open(path).budget == 4
    assert Ledger.open(path).total("ann") == 1


def test_promise_16_a_store_that_is_gone_refuses(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    Ledger.create(path, budget=1).close()
    path.unlink()
    with pytest.raises(sv.errors.LedgerError, match=r"b\.db\.witness is there: the store was lost"):
        Ledger.open(path)
    with pytest.raises(sv.errors.LedgerError, match=r"b\.db\.witness already: a ledger was here before"):
        Ledger.create(path, budget=1)
    assert [one.name for one in tmp_path.iterdir()] == ["b.db.witness"]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_promise_16_a_store_that_goes_while_it_is_open_refuses(tmp_path: Path, how: str) -> None:
    """SQLite would go on writing to a file that has no name any more."""
    path = tmp_path / "b.db"
    Ledger.create(path, budget=5).close()
    shutil.copy(path, tmp_path / "copy")
    book = Ledger.open(path)
    path.unlink()
    if how == "replaced":
        shutil.copy(tmp_path / "copy", path)
    with pytest.raises(sv.errors.LedgerError, match="removed or replaced while it was open"):
        book.release(mechanism(), "ann", records=["c1"])


def test_promise_16_a_relative_path_means_one_file_whatever_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    book = Ledger.create("b.db", budget=2, witness="w")
    monkeypatch.chdir(tmp_path / "two")
    book.release(mechanism(), "ann", records=["c1"])
    assert book.left("ann") == 1
    with pytest.raises(sv.errors.LedgerError, match="there is no ledger"):
        Ledger.open("b.db")
    assert list((tmp_path / "two").iterdir()) == []
    monkeypatch.chdir(tmp_path / "one")
    again = Ledger.open("b.db")
    assert again.left("ann") == 1
    assert again.witness == tmp_path / "one" / "w"


def test_promise_16_a_link_has_no_witness_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    Ledger.create(tmp_path / "here" / "b.db", budget=2).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "here" / "b.db")
    book = Ledger.open(tmp_path / "link.db")
    book.release(mechanism(), "ann", records=["c1"])
    assert int((tmp_path / "here" / "b.db.witness").read_text().split()[0]) == 2
    assert not (tmp_path / "link.db.witness").exists()


def _create(path: Path, out: Path, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    try:
        book = Ledger.create(path, budget=1)
        book.release(mechanism(), "ann", records=["c1"])
        out.write_text("made")
    except sv.errors.LedgerError:
        out.write_text("refused")


def test_promise_16_of_racing_creators_one_makes_it_and_nobody_removes_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        barrier = context.Barrier(4)
        jobs = [
            context.Process(target=_create, args=(folder / "b.db", folder / f"{i}.txt", barrier))
            for i in range(4)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        said = sorted((folder / f"{i}.txt").read_text() for i in range(4))
        assert said == ["made", "refused", "refused", "refused"]
        assert Ledger.open(folder / "b.db").left("ann") == 0  # the winner's store, with its charge


def test_promise_16_a_late_creator_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is taken between looking and making: what is there stays, whoever made it."""
    path, witness = tmp_path / "b.db", tmp_path / "b.db.witness"
    witness.write_text("somebody else's")
    with pytest.raises(sv.errors.LedgerError, match="a ledger was here before"):
        create_store(path, 1, None, None)
    assert [one.name for one in tmp_path.iterdir()] == ["b.db.witness"]
    witness.unlink()
    real = os.fsync

    def replaced(handle: int) -> None:
        if not witness.exists():
            real(handle)
            return
        if taken:  # somebody puts another file there just before making the store fails
            witness.unlink()
            witness.write_text("somebody else's")
        raise OSError("disk full")

    for taken in (False, True):
        monkeypatch.setattr(os, "fsync", replaced)
        with pytest.raises(sv.errors.LedgerError, match="no ledger could be made"):
            Ledger.create(path, budget=1)
        assert [one.name for one in tmp_path.iterdir()] == ["b.db.witness"] * taken
        monkeypatch.setattr(os, "fsync", real)
    assert witness.read_text() == "somebody else's"


def test_promise_16_nothing_is_remade_with_wider_permissions(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=3)
    witness = tmp_path / "b.db.witness"
    for path in (tmp_path / "b.db", witness):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    witness.chmod(0o400)
    book.release(mechanism(), "ann", records=["c1"])
    assert stat.S_IMODE(witness.stat().st_mode) == 0o400
    narrow = tmp_path / "m.json"
    mechanism().save(narrow)
    narrow.chmod(0o600)
    mechanism(2.0).save(narrow)
    assert stat.S_IMODE(narrow.stat().st_mode) == 0o600


def test_promise_16_killed_while_it_was_made_is_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    path.touch()
    (tmp_path / "b.db.witness").touch()
    with pytest.raises(sv.errors.LedgerError, match="not a readable ledger"):
        Ledger.open(path)
    with pytest.raises(sv.errors.LedgerError, match="never overwritten"):
        Ledger.create(path, budget=1)


def test_promise_16_another_ledger_in_its_place_refuses(tmp_path: Path) -> None:
    """A store with more commits is not newer if it is somebody else's."""
    mine, other = tmp_path / "mine.db", tmp_path / "other.db"
    Ledger.create(mine, budget=1).release(mechanism(), "ann", records=["c1"])
    book = Ledger.create(other, budget=1)
    for i in range(3):
        book.release(mechanism(), f"u{i}", records=["c1"])
    book.close()
    shutil.copy(other, mine)
    with pytest.raises(sv.errors.LedgerError, match="belongs to another ledger"):
        Ledger.open(mine)


def test_promise_16_a_copy_that_goes_its_own_way_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two copies with one witness: whoever commits second finds another word for the same number."""
    book = Ledger.create(tmp_path / "b.db", budget=1, witness=tmp_path / "w")
    shutil.copy(tmp_path / "b.db", tmp_path / "copy.db")
    copy = Ledger.open(tmp_path / "copy.db")
    drawn: list[str] = []
    real = sv.Mechanism.draw

    def both(self: sv.Mechanism, rows: object) -> object:
        drawn.append("drawn")
        return real(self, rows)

    monkeypatch.setattr(sv.Mechanism, "draw", both)
    asked = request(mechanism(), ["ann"], np.eye(50)[:1])
    first, second = book.charge([asked]), copy.charge([asked])  # both before either has testified
    book.answers(asked, first.epoch, np.array([0]))
    with pytest.raises(sv.errors.LedgerError, match=r"rolled back|gone another way"):
        copy.answers(asked, second.epoch, np.array([0]))
    assert drawn == ["drawn"]


def test_promise_16_an_answer_is_witnessed_before_it_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between answer and witness: whoever returns the answer next has to testify first."""
    path = tmp_path / "b.db"
    book = Ledger.create(path, budget=1)
    calls: list[int] = []
    real = Store.testify

    def dies_at_the_second(self: Store) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(self)

    def snapshot(self: sv.Mechanism, rows: object) -> object:
        shutil.copy(path, tmp_path / "snapshot")
        return np.array(["c1"], dtype=object)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "testify", dies_at_the_second)
        patch.setattr(sv.Mechanism, "draw", snapshot)
        with pytest.raises(KeyboardInterrupt):
            book.release(mechanism(), "ann", records=["c1"])
    assert book.release(mechanism(), "ann", records=["c1"]) == "c1"
    book.close()
    shutil.copy(tmp_path / "snapshot", path)  # from after the charge, before the answer
    with pytest.raises(sv.errors.LedgerError, match="rolled back"):
        Ledger.open(path)


def test_promise_16_a_second_name_for_the_store_is_refused(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "b.db", budget=1, witness=tmp_path / "w").close()
    os.link(tmp_path / "b.db", tmp_path / "c.db")
    for name in ("b.db", "c.db"):
        with pytest.raises(sv.errors.LedgerError, match="a hard link"):
            Ledger.open(tmp_path / name)


@pytest.mark.parametrize("name", ["b.db", "b.db-journal", "b.db-wal", "b.db-shm"])
def test_promise_16_a_witness_cannot_have_a_name_of_the_store(tmp_path: Path, name: str) -> None:
    with pytest.raises(sv.errors.LedgerError, match="belongs to the store itself"):
        Ledger.create(tmp_path / "b.db", budget=1, witness=tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_promise_16_a_lost_store_is_not_started_anew_beside_its_witness(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "b.db", budget=1).close()
    (tmp_path / "b.db").unlink()
    with pytest.raises(sv.errors.LedgerError, match="a ledger was here before"):
        Ledger.create(tmp_path / "b.db", budget=1, witness=tmp_path / "new.witness")
    assert [one.name for one in tmp_path.iterdir()] == ["b.db.witness"]


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("commits", "x"),
        ("commits", 9e30),
        ("budget", "x"),
        ("lifetime", "x"),
        ("key", "z"),
        ("key", b"z" * 80),
        ("word", None),
    ],
)
def test_promise_16_damaged_facts_are_refused_in_one_line(tmp_path: Path, fact: str, value: object) -> None:
    Ledger.create(tmp_path / "b.db", budget=1).close()
    store = Store(tmp_path / "b.db")
    store.database.execute("CREATE TABLE loose AS SELECT * FROM facts")  # without the types
    store.database.execute("DROP TABLE facts")
    store.database.execute("ALTER TABLE loose RENAME TO facts")
    store.database.execute(f"UPDATE facts SET {fact} = ?", (value,))  # noqa: S608
    store.close()
    check_refused(run("ledger", "show", tmp_path / "b.db"), "nothing is released")


def test_a_loop_of_links_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop.db").symlink_to(tmp_path / "loop.db")
    check_refused(run("ledger", "show", tmp_path / "loop.db"), "there is no ledger")
    check_refused(run("ledger", "create", tmp_path / "loop.db", "--budget", 1), "already")


def test_a_grant_that_buys_nothing_changes_nothing(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1, lifetime=1)
    answer = book.release(mechanism(), "ann", records=["c1"], epoch="may")
    before = (tmp_path / "b.db").read_bytes()
    with pytest.raises(sv.errors.ParameterError, match=r"at least 0\.000001"):
        book.grant("ann", "0.0000001", epoch="may")
    with pytest.raises(sv.errors.BudgetError, match="nothing was changed"):
        book.grant("ann", 5, epoch="may")
    assert (tmp_path / "b.db").read_bytes() == before
    assert book.release(mechanism(), "ann", records=["c1"], epoch="may") == answer
    with pytest.raises(sv.errors.ParameterError, match="at least"):
        Ledger.create(tmp_path / "c.db", budget="0.0000001")


def test_a_grant_between_charge_and_draw_takes_nothing_away(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1)
    asked = request(mechanism(), ["ann", "bob"], np.eye(50)[:2])
    receipt = book.charge([asked])
    book.grant("ann", 1)
    assert len(book.answers(asked, receipt.epoch, np.arange(2))) == 2
    assert book.total("ann") == 1
    assert book.left("ann") == 1


def test_promise_16_a_store_of_another_format_is_not_read(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "b.db", budget=1).close()
    store = Store(tmp_path / "b.db")
    store.close()
    for other in (1, VERSION - 1, VERSION + 1):
        with sqlite3.connect(tmp_path / "b.db") as database:
            database.execute(f"PRAGMA user_version = {other}")
        database.close()
        with pytest.raises(sv.errors.LedgerError, match=f"has format {other}, this version reads {VERSION}"):
            Ledger.open(tmp_path / "b.db")


# --- names, epochs, lifetimes ------------------------------------------------------------------------


def test_one_person_has_one_budget_however_the_letters_are_coded(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1)
    composed, decomposed = (unicodedata.normalize(form, "Zoé") for form in ("NFC", "NFD"))
    assert composed != decomposed
    book.release(mechanism(), composed, records=["c1"], epoch="mai é")
    assert book.left(decomposed, unicodedata.normalize("NFD", "mai é")) == 0
    with pytest.raises(sv.errors.ParameterError, match="distinct"):
        book.release_batch(mechanism(), [composed, decomposed], np.eye(50)[:2], epoch="x")
    for other in (" Zoé", "Zoé ", "Zoé\u00a0", "\tZoé", ""):
        with pytest.raises(sv.errors.ParameterError, match="white space") as caught:
            book.left(other, "mai é")
        assert "Zo" not in str(caught.value)


HIDDEN = (
    "\0\t\n\x85\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u180f\u2003\u200b\u200d\u200e\u2028\u2029\u202e\u2060"
    "\u2065\u2066\u2800\u3000\u3164\ufe00\ufe0f\ufeff\uffa0\ufff0\ue000\ud800\U000e0020\U000e0100"
)


def test_a_name_that_only_looks_like_another_is_refused(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=1)
    for hidden in HIDDEN:
        for name in (f"Zo{hidden}é", f"Zoé{hidden}", f"Zo{hidden}e"):
            for call in (lambda: book.left(name), lambda: book.grant("ann", 1, name)):  # noqa: B023
                with pytest.raises(sv.errors.ParameterError, match="printable text") as caught:
                    call()
                assert "Zo" not in str(caught.value), ascii(hidden)
    assert book.left("Zoé van der Ånström 能 🎬") == 1


def test_a_user_is_named_on_standard_input(tmp_path: Path) -> None:
    """The arguments of a command are read by everybody on its machine."""
    book = Ledger.create(tmp_path / "b.db", budget=4)
    book.release(mechanism(), "Zoé", records=["c1"])

    def asked(text: bytes, name: str, *more: str) -> subprocess.CompletedProcess[str]:
        return run("ledger", name, tmp_path / "b.db", "-", *more, stdin=text)

    for ending in ("", "\n", "\r\n"):
        assert asked(f"Zoé{ending}".encode(), "show").stdout == "3\n"
    assert json.loads(asked("Zoé\n".encode(), "show", "--json").stdout)["total"] == "1"
    assert asked("Zoé\n".encode(), "grant", "1").returncode == 0
    assert book.left("Zoé") == 4
    for bad in (b"", b"\n", b" \n", b"ann\nbob\n", b"\xff\n"):
        check_refused(asked(bad, "show"), "user must be printable text")
    with_help = run("ledger", "--help").stdout
    assert "standard input" in " ".join(with_help.split())


def test_an_epoch_left_out_is_refused_where_there_are_others(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=2)
    book.release(mechanism(), "ann", records=["c1"])
    book.release(mechanism(0.5), "ann", records=["c1"])  # still the one without a name
    assert not book.knows("2026-11")
    book.release(mechanism(), "ann", records=["c1"], epoch="2026-11")
    assert book.knows("2026-11")
    for call in (
        lambda: book.release(mechanism(), "ann", records=["c1"]),
        lambda: book.left("ann"),
        lambda: book.grant("ann", 1),
    ):
        with pytest.raises(sv.errors.ParameterError, match=r"the ledger knows 1, such as '2026-11'"):
            call()
    assert book.left("ann", "") == Fraction(1, 2)


def test_a_lifetime_caps_all_epochs_together(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.db", budget=2, lifetime=3)
    book.release(mechanism(2.0), "ann", records=["c1"], epoch="may")
    assert book.left("ann", "june") == 1
    book.release(mechanism(1.0), "ann", records=["c1"], epoch="june")
    assert book.total("ann") == 3
    with pytest.raises(sv.errors.BudgetError, match=r"needs ε = 0\.5, ε = 0 is left"):
        book.release(mechanism(0.5), "ann", records=["c1"], epoch="july")
    with pytest.raises(sv.errors.BudgetError):  # more in one epoch is not more in all
        book.grant("ann", 5, epoch="july")
    assert book.left("ann", "july") == 0
    with pytest.raises(sv.errors.BudgetError):
        book.release(mechanism(0.5), "ann", records=["c1"], epoch="july")
    assert book.left("bob", "july") == 2
    assert Ledger.open(tmp_path / "b.db").lifetime == 3
    with pytest.raises(sv.errors.ParameterError, match="at least the budget of one epoch"):
        Ledger.create(tmp_path / "c.db", budget=2, lifetime=1)


def test_the_command_shows_what_the_ledger_knows(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    place = tmp_path / "elsewhere.witness"
    made = run("ledger", "create", path, "--budget", "1/3", "--lifetime", 1, "--witness", place)
    assert made.returncode == 0, made.stderr
    assert place.exists()
    book = Ledger.open(path)
    book.release(mechanism(0.25), "ann", records=["c1"], epoch="may")
    book.release(mechanism(0.25), "ann", records=["c1"], epoch="june")
    book.release(mechanism(0.25), "bob", records=["c1"], epoch="june")
    facts = json.loads(run("ledger", "show", path, "--json").stdout)
    assert facts == {
        "path": str(path), "witness": str(place), "budget": "0.333333", "lifetime": "1", "users": 2,
        "epochs": [
            {"epoch": "june", "users": 2, "epsilon": "0.5"},
            {"epoch": "may", "users": 1, "epsilon": "0.25"},
        ],
    }  # fmt: skip
    spent = run("ledger", "show", path, "ann", "--epoch", "may", "--json")
    assert json.loads(spent.stdout) == {"epoch": "may", "left": "0.083333", "total": "0.5"}
    check_refused(run("ledger", "show", path, "--epoch", "may"), "--epoch needs a USER")
    assert run("ledger", "show", path, "bob", "--epoch", "may").stdout == "0.333333\n"
    check_refused(run("ledger", "show", path, "bob"), "name an epoch")
    check_refused(run("ledger", "show", path, "bob", "--epoch", ""), "--epoch is empty")
    assert run("ledger", "grant", path, "bob", 1, "--epoch", "june").returncode == 0
    assert json.loads(run("ledger", "show", path, "bob", "--epoch", "june", "--json").stdout) == {
        "left": "0.75", "total": "0.25", "epoch": "june",
    }  # fmt: skip
    for command in (["show"], ["show", "ann"], ["grant", "ann", "1"]):
        name, *rest = command
        check_refused(run("ledger", name, tmp_path / "no.db", *rest), "there is no ledger")
    assert not (tmp_path / "no.db").exists()
    assert "ann" not in run("ledger", "show", path).stdout
