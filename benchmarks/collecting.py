"""The collector: reports per second from a load generator on the same machine, and its memory on the way."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import psutil

import sottovoce as sv

from .measure import Line

BATCH, BATCHES, SENDERS = 100, 4000, 4
LEAST = 5000
PRIOR = sv.Prior.from_counts({f"i{i}": 1 / (i + 1) for i in range(100)})


def bodies(digest: str, batches: int) -> list[bytes]:
    """Batches as a client sends them, made beforehand: the generator shares the cores with the collector."""
    return [
        json.dumps(
            {
                "reports": [
                    {"mechanism": digest, "id": secrets.token_hex(16), "category": f"i{i % 100}"}
                    for i in range(BATCH)
                ]
            }
        ).encode()
        for _ in range(batches)
    ]


@contextmanager
def running(folder: Path) -> Iterator[tuple[psutil.Process, int]]:
    """A collector that answers, and its port."""
    command = [sys.executable, "-m", "sottovoce", "collect", "serve", str(folder / "m.json"), "--port", "0"]
    command += ["--store", str(folder / "r.db")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline() if process.stderr is not None else ""
        port = int(re.findall(r":(\d+)/", line)[0])
        while True:
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/v1/mechanism")
            if connection.getresponse().status == 200:
                break
        connection.close()
        yield psutil.Process(process.pid), port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def resident(process: psutil.Process) -> float:
    """MiB of all processes of the collector."""
    every = [process, *process.children(recursive=True)]
    return float(sum(one.memory_info().rss for one in every) / 2**20)


def send(port: int, waiting: list[bytes], codes: list[int]) -> None:
    """Post batches over one connection until none is left."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    while True:
        try:
            body = waiting.pop()
        except IndexError:
            break
        connection.request("POST", "/v1/reports", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        codes.append(answer.status)
    connection.close()


def collecting() -> list[Line]:
    """Batches of 100 over four connections, into a new store."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        mechanism = sv.certify(sv.minimax_kernel(PRIOR, 2.0))
        mechanism.save(folder / "m.json")
        waiting, codes = bodies(mechanism.digest, BATCHES), list[int]()
        with running(folder) as (process, port):
            begin = time.perf_counter()
            senders = [threading.Thread(target=send, args=(port, waiting, codes)) for _ in range(SENDERS)]
            for sender in senders:
                sender.start()
            memory = {}
            for part in (0.1, 0.5, 0.99):
                while len(codes) < part * BATCHES:
                    time.sleep(0.01)
                memory[part] = resident(process)
            for sender in senders:
                sender.join()
            took = time.perf_counter() - begin
        if set(codes) != {202}:
            raise RuntimeError(f"answers other than 202: {set(codes)}")
        stored = int(sv.estimate(mechanism, folder / "r.db").reports)
    if stored != BATCH * BATCHES:
        raise RuntimeError(f"{stored} reports are stored, {BATCH * BATCHES} were sent")
    rate = stored / took
    what = f"{stored:,} reports in batches of {BATCH}, flushed before each answer"
    grown = memory[0.99] / memory[0.1]
    now, then = f"{memory[0.99]:.0f} MiB", f"{memory[0.1]:.0f} MiB"
    return [
        Line(what, f"{rate:,.0f}/s", f"{LEAST:,}/s", f"{rate / LEAST:.1f}×", "≥ 1×", rate >= LEAST),
        Line(
            "memory at the end against that after a tenth of them",
            now,
            then,
            f"{grown:.2f}×",
            "≤ 1.1×",
            grown <= 1.1,
        ),
    ]


SECTIONS = {"The collector": collecting}
