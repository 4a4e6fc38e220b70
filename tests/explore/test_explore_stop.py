"""The explorer ends when it is ended: by every signal, from a closed terminal, with pages open, at once."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil
import pytest

pytest.importorskip("marimo")
from explorer import Explorer, exploring, read_address

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def last_words(explorer: Explorer) -> str:
    assert explorer.process.stderr is not None
    return explorer.process.stderr.read()


@pytest.mark.parametrize(
    ("number", "visited"),
    [
        (signal.SIGINT, False),
        *(pytest.param(number, True, marks=pytest.mark.full) for number in SIGNALS),
        *(
            pytest.param(number, False, marks=pytest.mark.full)
            for number in SIGNALS
            if number != signal.SIGINT
        ),
    ],
)
def test_a_signal_to_the_process_alone_ends_everything(number: signal.Signals, visited: bool) -> None:
    with exploring("--no-browser") as explorer:
        if visited:
            explorer.open_page()
        assert psutil.Process(explorer.process.pid).children() == []
        os.kill(explorer.process.pid, number)
        explorer.ended()
        assert explorer.process.returncode == 0
        assert last_words(explorer) == "stopped\n"


def test_an_open_page_is_told_not_to_come_back() -> None:
    with exploring("--no-browser") as explorer:
        page = explorer.open_page()
        explorer.process.terminate()
        explorer.ended()
        assert explorer.process.returncode == 0
        rest = b""
        while more := page.recv(65536):
            rest += more
        assert rest.endswith(b"\x88\x11\x03\xe8MARIMO_SHUTDOWN")  # a close frame: 1000 and the reason


@pytest.mark.full
def test_impatience_changes_nothing() -> None:
    with exploring("--no-browser") as explorer:
        explorer.open_page()
        for _ in range(20):
            if explorer.process.poll() is None:
                os.kill(explorer.process.pid, signal.SIGINT)
            time.sleep(0.02)
        explorer.ended()
        assert explorer.process.returncode == 0
        assert last_words(explorer) == "stopped\n"


@pytest.mark.full
def test_a_busy_kernel_does_not_delay_the_end(tmp_path: Path) -> None:
    prior = tmp_path / "wide.csv"
    prior.write_text("item,count\n" + "".join(f"{i},{1 + i % 7}\n" for i in range(60_000)))
    with exploring(prior, "--no-browser") as explorer:
        explorer.open_page()
        process = psutil.Process(explorer.process.pid)
        before, end = process.cpu_times().user, time.monotonic() + 300
        while process.cpu_times().user - before < 0.5:  # it computes
            assert time.monotonic() < end
            time.sleep(0.02)
        explorer.process.terminate()
        explorer.ended()
        assert explorer.process.returncode == 0


@pytest.mark.full
def test_a_reader_that_is_gone_is_no_trouble() -> None:
    with exploring("--no-browser") as explorer:
        assert explorer.process.stderr is not None
        explorer.process.stderr.close()
        explorer.process.terminate()
        explorer.ended()
        assert explorer.process.returncode == 0


@pytest.mark.parametrize("visited", [pytest.param(False, marks=pytest.mark.full), True])
def test_a_closed_terminal_ends_everything(visited: bool) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sottovoce", "explore", "--no-browser"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    explorer = Explorer(process, 0, "")
    try:
        explorer.port, explorer.path = read_address(master)
        if visited:
            explorer.open_page()
        os.close(master)
        explorer.ended()
        assert process.returncode == 0
    finally:
        explorer.close()
