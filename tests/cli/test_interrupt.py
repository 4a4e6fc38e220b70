"""Ctrl-C and a request to end, at any moment of a command: obeyed at once, in one line, with no traceback."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "sottovoce"]
PROMPT = 20.0
"""Seconds within which a signal is obeyed on a machine that has other things to do as well."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    rng = random.Random(1)
    parts = [
        "".join(f"user-{rng.randrange(300_000)},i{rng.randrange(100)}\n" for _ in range(50_000))
        for _ in range(10)
    ]
    with (folder / "t.csv").open("w") as file:
        file.write("user,item\n")
        for _ in range(20):
            file.writelines(parts)
    (folder / "prior.csv").write_text("item,count\n" + "".join(f"i{k},1\n" for k in range(100)))
    return folder


def await_reading(process: int, table: Path) -> None:
    """Wait until a command has opened its table and a connection holds it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                if descriptor.readlink() == table:
                    return
        time.sleep(0.002)
    raise AssertionError("the table was not read")


def commands(folder: Path) -> list[list[str]]:
    table, prior = str(folder / "t.csv"), str(folder / "prior.csv")
    return [
        ["prior", table, "--user", "user", "-o", str(folder / "made.json")],
        ["compare", prior, table, "-e", "1", "-s", "kernel-clip", "-o", str(folder / "made.csv")],
    ]


def interrupted(folder: Path, which: int, delay: float, number: int) -> tuple[int, str, list[str]]:
    """Send a signal so long after reading has begun: the exit code, what was said, temporary files left."""
    with tempfile.TemporaryDirectory() as temporary:
        process = subprocess.Popen(
            [*COMMAND, *commands(folder)[which]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": temporary},
        )
        await_reading(process.pid, folder / "t.csv")
        time.sleep(delay)
        process.send_signal(number)
        _, said = process.communicate(timeout=PROMPT)
        return process.returncode, said, os.listdir(temporary)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("which", [0, 1], ids=["prior", "compare"])
def test_ctrl_c_while_a_file_is_read(large: Path, which: int, delay: float) -> None:
    code, said, left = interrupted(large, which, delay, signal.SIGINT)
    assert code == 130, said
    assert said.startswith("interrupted")
    assert said.count("\n") == 1, said
    assert left == []
    assert not list(large.glob("made*"))


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_is_obeyed_forty_times(large: Path) -> None:
    rng = random.Random(40)
    for k in range(40):
        code, said, left = interrupted(large, k % 2, rng.uniform(0, 1), signal.SIGINT)
        assert (code, said.count("\n"), left) == (130, 1, []), said


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("delay", [0.0, 0.3, 0.6])
def test_a_request_to_end_is_quiet_and_leaves_no_files(large: Path, delay: float) -> None:
    code, said, left = interrupted(large, 0, delay, signal.SIGTERM)
    assert (code, said, left) == (143, "", [])


def test_the_cursor_comes_back(large: Path) -> None:
    """In a terminal a spinner hides the cursor; after Ctrl-C it is there again."""
    ours, theirs = pty.openpty()
    arguments = commands(large)[0]
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown, end, sent = b"", time.monotonic() + 60, False
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
        if not sent and b"\x1b[?25l" in shown:
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(ours)
    assert process.wait(PROMPT) == 130, shown
    assert sent
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")
    assert b"Traceback" not in shown


WHILE_IMPORTING = """
import os, signal, sys

module, number = sys.argv[1], int(sys.argv[2])

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Finder())
sys.argv = ["sottovoce", "compare", "--help"]
from sottovoce.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["numpy", "scipy", "click", "rich", "sottovoce.cli.app"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_a_signal_while_a_command_imports(module: str, number: int) -> None:
    """Before the package is reached Python itself answers, which is out of reach."""
    command = [sys.executable, "-c", WHILE_IMPORTING, module, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (128 + number, -number), (done.returncode, done.stderr)
    assert done.stderr.count("\n") <= 1, done.stderr


A_PROGRAM = """
import os, signal, sottovoce
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_a_program_that_imports_the_library_keeps_its_signals() -> None:
    done = subprocess.run([sys.executable, "-c", A_PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


PLANTED = """
import click, os, signal, sys
from sottovoce.cli import app as cli

def waits():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass

def destroys():
    class Late:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000): pass
    Late()
    import time
    time.sleep(60)

cli.COMMANDS.update(waits="", destroys="")
cli.Commands.get_command = lambda self, ctx, name: click.Command(name, callback=globals()[name])
sys.argv = ["sottovoce", *sys.argv[1:]]
cli.run()
"""


@pytest.mark.parametrize("name", ["waits", "destroys"])
def test_ctrl_c_is_one_line_also_where_python_cannot_raise(name: str) -> None:
    command = [sys.executable, "-c", PLANTED, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
