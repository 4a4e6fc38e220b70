"""Files are read by a process of its own, so that a damaged one cannot end the process that asks.

Rust's readers abort where memory for an absurd size is missing, and catch Ctrl-C for themselves. Here the
asking process only waits, in Python: it hears every signal, and what happens to the reader becomes one line.
The answer comes back through a pipe and never lies on a disk. The reader is kept for the next file; it ends
when the asking process does, however that ends, because its standard input then closes.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import errors

PART, VALUE, REFUSED, BROKEN, END = b"P", b"V", b"R", b"B", b"."
WHILE_READING = "while reading: nothing was released, no result was written"
"""What a KeyboardInterrupt says that ended the reading of a file."""
_HEAD = 9  # a tag, and a length in eight bytes
_LARGEST_PART = 1 << 32
_WAIT = 0.2
"""Seconds of one wait: a signal that comes just before a wait begins is heard after it."""


class ReaderError(Exception):
    """The reader failed, or ended without an answer; says how, in a word or two, without any data."""


class _Gone(Exception):
    """The reader has ended; its exit code."""


def ask(
    room: str, verb: str, path: Path, *, meanwhile: Callable[[], None] | None = None, **arguments: Any
) -> Any:
    """What `verb` of the module `room` says about a file, asked in the reader's process.

    A value of JSON, or for tables of polars the list of their parts, each an Arrow stream. `meanwhile` runs
    here while the reader works; if it raises, the reader ends.
    """
    request = {"room": room, "verb": verb, "path": os.path.abspath(path), "arguments": arguments}
    while True:
        kept = bool(_idle)
        reader = _idle.pop() if kept else _Reader()
        code = 0
        try:
            reader.send(request)
            if meanwhile is not None:
                meanwhile()
            answer = reader.answer()
        except _Gone as gone:
            code = gone.args[0]
            reader.end()
            if kept and code == 0:  # it had waited long enough: ask a new one
                continue
            answer = [(BROKEN, json.dumps(_how(code)).encode())]
        except BaseException as problem:
            reader.end()
            if isinstance(problem, KeyboardInterrupt):
                problem.args = (WHILE_READING,)
            raise
        else:
            _keep(reader)
        return _taken(answer, path)


def _taken(answer: list[tuple[bytes, Any]], path: Path) -> Any:
    """The parts or the value of an answer, or its error."""
    for tag, content in answer:
        if tag == VALUE:
            return json.loads(content)
        if tag == REFUSED:
            name, message = json.loads(content)
            raise getattr(errors, name)(message.replace(os.path.abspath(path), str(path)))
        if tag == BROKEN:
            raise ReaderError(json.loads(content))
    return [content for _, content in answer]


def _how(code: int) -> str:
    if code >= 0:
        return "its reader did not start" if code else "its reader ended"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"its reader broke down, {name}: a damaged file, or too little memory"


def framed(tag: bytes, content: Any) -> Iterator[Any]:
    """A piece of an answer as it goes through the pipe."""
    yield tag + memoryview(content).nbytes.to_bytes(_HEAD - 1, "little")
    yield content


class _Reader:
    """A process of `sottovoce.reader`, its input and its output."""

    def __init__(self) -> None:
        if find_spec("polars") is None:
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
        if not sys.executable or getattr(sys, "frozen", False):
            raise ReaderError("there is no Python to start its reader with")
        places = [place or os.getcwd() for place in sys.path]
        process = None
        with suppress(OSError):
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.reader"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
                start_new_session=True,  # Ctrl-C in a terminal goes to the asking process alone
            )
        if process is None or process.stdin is None or process.stdout is None:
            raise ReaderError("its reader did not start")
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    @property
    def _output(self) -> int:
        return self._stdout.fileno()

    def send(self, request: dict[str, Any]) -> None:
        """Send a request."""
        view = memoryview(json.dumps(request).encode() + b"\n")
        try:
            while view:
                view = view[os.write(self._stdin.fileno(), view) :]
        except BrokenPipeError:
            raise _Gone(self._process.wait()) from None

    def answer(self) -> list[tuple[bytes, Any]]:
        """Wait for the answer, all pieces up to its end."""
        pieces: list[tuple[bytes, Any]] = []
        while True:
            head = self._exactly(_HEAD)
            size = int.from_bytes(head[1:], "little")
            if size > _LARGEST_PART:
                raise _Gone(-signal.SIGABRT)
            content = self._exactly(size)
            if head[:1] == END:
                return pieces
            pieces.append((bytes(head[:1]), content))

    def _exactly(self, size: int) -> bytearray:
        content = bytearray(size)
        view = memoryview(content)
        while view:
            if not self._selector.select(_WAIT):
                continue
            count = os.readv(self._output, [view])
            if not count:
                raise _Gone(self._process.wait())
            view = view[count:]
        return content

    def running(self) -> bool:
        """Whether it can be asked again."""
        return self._process.poll() is None

    def end(self) -> None:
        """End it now, whatever it is doing."""
        self._process.kill()
        self.let_go()
        self._process.wait()

    def let_go(self) -> None:
        """Close the pipes; without them the process ends by itself."""
        self._selector.close()
        for pipe in (self._stdin, self._stdout):
            pipe.close()

    def forget(self) -> None:
        """After a fork: leave the process to whoever started it."""
        self.let_go()
        self._process.returncode = 0


_idle: list[_Reader] = []


def _keep(reader: _Reader) -> None:
    """Keep one reader for the next file."""
    if _idle or not reader.running():
        reader.end()
    else:
        _idle.append(reader)


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _forget_all() -> None:
    while _idle:
        _idle.pop().forget()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_forget_all)
