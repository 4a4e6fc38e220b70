"""Private temporary folders: for their owner alone, and gone at the next start whatever ended their process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from workbooks import write_workbook

from sottovoce import temporary
from sottovoce.collecting import store
from sottovoce.tables import files, workbook
from sottovoce.tables.reader import Writer
from sottovoce.temporary import PREFIX, private_folder, remove_abandoned

USERS = "user,item\nsecret-ann,War\nsecret-bob,Drama\n"
PRIOR = "item,count\nWar,3\nDrama,5\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own, for this process and for those that it starts."""
    folder = tmp_path / "place"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose umask hides nothing, which waits for its standard input."""
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        umask=0,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not reached():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def holding(place: Path, text: str, encoding: str = "utf-8") -> list[Path]:
    """The files below a folder that hold a text."""
    files = [path for path in place.rglob("*") if path.is_file()]
    return [path for path in files if text.encode(encoding) in path.read_bytes()]


def check_private(folder: Path) -> None:
    """The folder is for its owner alone, and so is each file in it."""
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} <= {0o600}


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    assert process.wait() == -signal.SIGKILL


def run_any_command(folder: Path) -> None:
    """A command that reads no table, and so needs no temporary folder."""
    (folder / "names.txt").write_text("War\nDrama\n")
    command = [sys.executable, "-m", "sottovoce", "survey", "names.txt", "-e", "1", "--json"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def test_the_copy_of_a_pipe_that_kill_9_leaves_is_private_and_gone_at_the_next_start(
    place: Path, tmp_path: Path
) -> None:
    with started(["-m", "sottovoce", "prior", "-", "--item", "item", "--count", "none"]) as process:
        assert process.stdin is not None
        process.stdin.write(USERS.encode() + b"secret-cy,War\n" * 300_000)  # more than is read at once
        process.stdin.flush()  # the pipe stays open: the command waits for the rest of the table
        until(lambda: bool(holding(place, "secret-ann")) or process.poll() is not None)
        kill(process)
    (left,) = place.iterdir()
    check_private(left)
    run_any_command(tmp_path)
    assert list(place.iterdir()) == []


OPENED = """
import sys
from pathlib import Path
from sottovoce.tables.reader import opened
with opened(Path(sys.argv[1])):
    print("opened", flush=True)
    sys.stdin.read()
"""


def test_the_decoded_copy_that_kill_9_leaves_is_private_and_gone_at_the_next_start(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "users.csv").write_text(USERS, encoding="utf-16")
    with started(["-c", OPENED, str(tmp_path / "users.csv")]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"opened\n"
        kill(process)
    (left,) = place.iterdir()
    assert holding(left, "secret-ann")
    check_private(left)
    with private_folder() as folder:  # what reads a table removes what is left, too
        assert Path(folder).parent == place
        run_any_command(tmp_path)
        assert [str(path) for path in place.iterdir()] == [folder]


def test_a_folder_in_use_stays(place: Path, tmp_path: Path) -> None:
    """Its lock says so, and no process number, which may be given out again."""
    (tmp_path / "users.csv").write_text(USERS, encoding="utf-16")
    with started(["-c", OPENED, str(tmp_path / "users.csv")]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"opened\n"
        with private_folder() as mine:
            (Path(mine) / "table").write_text("mine")
            remove_abandoned()
            run_any_command(tmp_path)
            assert (Path(mine) / "table").read_text() == "mine"
            assert holding(place, "secret-ann")
        assert not Path(mine).exists()
        _, _ = process.communicate()
        assert process.returncode == 0
    assert list(place.iterdir()) == []


def abandoned(place: Path, name: str = f"{PREFIX}abcd1234", mode: int = 0o700) -> Path:
    """A folder as a dead process leaves it, with a folder and a link inside."""
    folder = place / name
    (folder / "spilled").mkdir(parents=True)
    (folder / "spilled" / "part").write_text("secret")
    (folder / "table.csv").write_text("secret")
    (folder / "link").symlink_to(place.parent / "elsewhere")
    folder.chmod(mode)
    return folder


def test_what_a_dead_process_left_is_removed_and_no_link_in_it_is_followed(place: Path) -> None:
    (place.parent / "elsewhere").mkdir()
    (place.parent / "elsewhere" / "kept").write_text("mine")
    abandoned(place)
    remove_abandoned()
    assert list(place.iterdir()) == []
    assert (place.parent / "elsewhere" / "kept").read_text() == "mine"


def test_what_another_may_have_put_there_stays(place: Path) -> None:
    """A link or a file of the name, a folder that others may enter, other names: none of them is ours."""
    target = place.parent / "target"
    target.mkdir(mode=0o700)
    (target / "kept").write_text("mine")
    (place / f"{PREFIX}linked00").symlink_to(target)
    (place / f"{PREFIX}filed000").write_text("mine")
    abandoned(place, f"{PREFIX}open0000", mode=0o777)
    abandoned(place, f"{PREFIX}group000", mode=0o750)
    for other in (f"{PREFIX}toolong00", f"{PREFIX}UPPER000", "sottovoce-abcd1234", "x" + PREFIX + "abcd1234"):
        abandoned(place, other)
    os.mkfifo(place / f"{PREFIX}fifo0000")
    before = sorted(place.rglob("*"))
    remove_abandoned()
    assert sorted(place.rglob("*")) == before
    assert (target / "kept").read_text() == "mine"


def test_the_folder_of_another_account_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = abandoned(place)
    mine = os.geteuid()
    monkeypatch.setattr(temporary, "_is_trusted", lambda _: True)
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    remove_abandoned()
    assert left.exists()


@pytest.mark.parametrize(
    ("mode", "trusted"), [(0o700, True), (0o755, True), (0o1777, True), (0o777, False), (0o770, False)]
)
def test_nothing_is_removed_where_others_may_rename_what_is_ours(
    place: Path, mode: int, trusted: bool
) -> None:
    left = abandoned(place)
    place.chmod(mode)
    remove_abandoned()
    assert left.exists() is not trusted


def test_a_folder_that_was_removed_while_it_was_made_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its lock a folder looks like an abandoned one to another start."""
    real, seen = temporary._locked, list[str]()

    def locked_late(path: str) -> int | None:
        if not seen:
            remove_abandoned()
        seen.append(path)
        return real(path)

    monkeypatch.setattr(temporary, "_locked", locked_late)
    with private_folder() as folder:
        assert [folder] == seen[1:]
        check_private(Path(folder))
    assert list(place.iterdir()) == []


def test_a_place_without_locks_or_that_cannot_be_listed_keeps_nobody_from_working(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = abandoned(place)

    def fails(*_: object) -> None:
        raise OSError(9, "no locks here")

    with monkeypatch.context() as patched:
        patched.setattr("fcntl.flock", fails)
        remove_abandoned()
        with private_folder() as folder:
            check_private(Path(folder))
    assert list(place.iterdir()) == [left]
    monkeypatch.setattr(tempfile, "tempdir", str(place / "nowhere"))
    remove_abandoned()


def test_every_copy_is_for_its_owner_alone_whatever_the_umask(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result before it is copied to its place, a backup of a store, and the sheet of a workbook."""
    modes = []

    def copied(source: Path, *_: object, **__: object) -> None:
        modes.append((source.name, stat.S_IMODE(source.stat().st_mode)))

    monkeypatch.setattr(files, "copy_whole", copied)
    monkeypatch.setattr(store, "copy_whole", copied)
    store.create_store(tmp_path / "r.db")
    before = os.umask(0)
    try:
        for kind in ("csv", "parquet", "json"):
            with Writer({"user": str}) as table:
                table.add({"user": ["secret-ann"]})
                table.save(tmp_path / f"out.{kind}")
        store.back_up(tmp_path / "r.db", tmp_path / "copy.db")
        with private_folder() as folder:
            write_workbook(tmp_path / "users.xlsx", [["item"], ["War"]])
            workbook._ask(tmp_path / "users.xlsx", folder, None, None)
            check_private(Path(folder))
            assert len(list(Path(folder).iterdir())) == 1
    finally:
        os.umask(before)
    names = ["written.csv", "written.parquet", "written.json", "copy.db"]
    assert modes == [(name, 0o600) for name in names]
