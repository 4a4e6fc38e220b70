"""The running command: killed at any moment it loses no answered report and doubles none."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil
import pytest

pytest.importorskip("uvicorn")
from collector import JSON, Running, batch, collecting, listening, report, rows_of, write_mechanism

import sottovoce as sv
from sottovoce.release.file import ANY

Reports = list[dict[str, object]]


class Load:
    """Threads that post batches as fast as they are answered, and remember what was answered 202."""

    def __init__(self, port: int, digest: str, size: int) -> None:
        self.port, self.digest, self.size = port, digest, size
        self.sent: list[Reports] = []
        self.answered: list[Reports] = []
        self.strange: list[int] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._post) for _ in range(3)]
        for thread in self._threads:
            thread.start()

    def _post(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        while not self._over.is_set():
            reports = [report(self.digest) for _ in range(self.size)]
            self.sent.append(reports)
            try:
                connection.request("POST", "/v1/reports", batch(reports), dict(JSON))
                status = connection.getresponse()
                status.read()
            except (OSError, HTTPException):
                connection.close()
                self._over.wait(0.02)
                continue
            if status.status == 202:
                self.answered.append(reports)
            else:
                self.strange.append(status.status)
        connection.close()

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def loading(running: Running, digest: str, size: int = 20) -> Iterator[Load]:
    load = Load(running.port, digest, size)
    try:
        yield load
    finally:
        load.end()


def ids(batches: list[Reports]) -> list[bytes]:
    return [bytes.fromhex(str(one["id"])) for reports in batches for one in reports]


def until_answered(load: Load, batches: int) -> None:
    """Wait until the load was answered some more; how long that takes says nothing."""
    goal, end = len(load.answered) + batches, time.monotonic() + 300
    while len(load.answered) < goal:
        assert time.monotonic() < end
        time.sleep(0.002)


def killed_again_and_again(folder: Path, rounds: int) -> None:
    """Kill at random moments, start again, and compare what is stored with what was answered."""
    path, store = write_mechanism(folder), folder / "r.db"
    digest = sv.load(path, policy=ANY).digest
    chance = random.Random(5)
    sent: list[Reports] = []
    answered: list[Reports] = []
    for _ in range(rounds):
        with collecting(path, store) as running, loading(running, digest) as load:
            until_answered(load, chance.randrange(1, 30))
            time.sleep(chance.random() * 0.02)
            running.kill()
            load.end()
        assert load.strange == []
        assert load.answered
        sent += load.sent
        answered += load.answered
        stored = {row[0] for row in rows_of(store)}
        assert set(ids(answered)) <= stored <= set(ids(sent))
        for reports in load.sent:  # a batch is there as a whole or not at all
            assert len(stored & set(ids([reports]))) in (0, len(reports))
    with collecting(path, store) as running:
        for reports in (*load.sent, *answered[-20:]):
            assert running.post(reports)[0] == 202
    stored = {row[0] for row in rows_of(store)}
    assert set(ids([*answered, *load.sent])) <= stored <= set(ids(sent))


def test_killed_at_any_moment_it_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 2)


@pytest.mark.full
def test_killed_thirty_times(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_clean_end_loses_nothing_that_was_answered(tmp_path: Path, number: signal.Signals) -> None:
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    digest = sv.load(path, policy=ANY).digest
    with collecting(path, store) as running:
        with loading(running, digest) as load:
            until_answered(load, 20)
            os.kill(running.process.pid, number)
            assert running.process.wait(timeout=300) == 0
        assert listening(running.port) == []
        assert running.last_words() == "stopped\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "r.db"]  # the log was taken in
    stored = {row[0] for row in rows_of(store)}
    assert set(ids(load.answered)) <= stored <= set(ids(load.sent))


def test_what_is_estimated_grows_with_the_store(tmp_path: Path) -> None:
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    mechanism = sv.load(path, policy=ANY)
    with collecting(path, store) as running, loading(running, mechanism.digest) as load:
        seen = []
        for _ in range(5):
            until_answered(load, 5)
            least = len(ids(load.answered))
            found = sv.estimate(mechanism, store).reports
            assert least <= found <= len(ids(load.sent))
            seen.append(found)
        assert seen == sorted(seen)


def test_no_address_user_or_time_is_kept_or_said(tmp_path: Path) -> None:
    """A client with a mark in every place where one could be: none of them is in a file or in the output."""
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    marks = {"User-Agent": "markedagent", "Cookie": "id=markedcookie", "X-Forwarded-For": "192.0.2.123"}
    marks |= {
        "Referer": "http://marked.example/",
        "Forwarded": "for=192.0.2.123",
        "Authorization": "Bearer mark",
    }
    digest, begin = sv.load(path, policy=ANY).digest, int(time.time())
    with collecting(path, store) as running:
        ports = []
        for category in ("War", "Drama", "unheard"):
            stream = socket.create_connection(("127.0.0.1", running.port))
            ports.append(stream.getsockname()[1])
            connection = HTTPConnection("127.0.0.1", running.port)
            connection.sock = stream
            body = batch([report(digest, category)])
            connection.request("POST", "/v1/reports?user=markeduser", body, {**marks, **dict(JSON)})
            answer = connection.getresponse()
            assert answer.status == (422 if category == "unheard" else 202)
            names = {name.lower() for name, _ in answer.getheaders()}
            assert not names & {"set-cookie", "server", "date"}
            answer.read()
            connection.close()
        end = int(time.time())
        files = [one.read_bytes() for one in tmp_path.iterdir() if one.name.startswith("r.db")]
        assert len(files) == 3  # the store, its log, and their index
        running.process.terminate()
        said = running.last_words().encode()
        running.process.wait(timeout=300)
    files += [store.read_bytes(), said]
    assert said == b"stopped\n"
    wanted = [b"mark", b"unheard", b"192.0.2", b"127.0.0.1", bytes([127, 0, 0, 1])]
    wanted += [str(port).encode() for port in ports]
    for second in range(begin, end + 1):  # as text, or as the low four bytes of a number
        wanted += [str(second).encode(), second.to_bytes(4, "big"), second.to_bytes(4, "little")]
    for content in files:
        for mark in wanted:  # the digest is public, and may hold the digits of a port by chance
            assert mark not in content.replace(digest.encode(), b""), mark


@pytest.mark.full
def test_memory_stays_flat_under_load(tmp_path: Path) -> None:
    """Ten times the reports take no more memory: they wait nowhere, and no list grows with them."""
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    with collecting(path, store) as running:
        process = psutil.Process(running.process.pid)
        with loading(running, sv.load(path, policy=ANY).digest, 1000) as load:
            until_answered(load, 40)
            before = process.memory_info().rss
            until_answered(load, 400)
            after = process.memory_info().rss
        print(f"{(after - before) / 2**20:.1f} MiB more after {len(ids(load.answered)):,} reports")
        # 400,000 reports more; a list of their ids alone would take 400,000 · (16 + 33 + 8) bytes = 22 MiB.
        assert after - before < 8 << 20


def test_a_half_request_does_not_keep_the_collector_from_ending(tmp_path: Path) -> None:
    path = write_mechanism(tmp_path)
    with collecting(path, tmp_path / "r.db") as running:
        stream = socket.create_connection(("127.0.0.1", running.port))
        head = "POST /v1/reports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        stream.sendall(f"{head}Content-Length: 5000\r\n\r\n{{".encode())
        time.sleep(0.2)
        running.process.terminate()
        assert running.process.wait(timeout=300) == 0
        with suppress(OSError):
            stream.close()
