"""The process that reads files for another one: `python -m sottovoce.reader`, started by `reading`.

Requests come as JSON lines on standard input; answers leave as framed bytes where standard output was. What
a library prints goes nowhere (standard error is closed by `reading`): a panic may print what it was reading.
When the input ends, the process ends, whatever it is doing: then nobody waits for it any more.
"""

from __future__ import annotations

import io
import json
import os
import queue
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import SottovoceError
from .files import streams
from .reading import BROKEN, END, PART, REFUSED, VALUE, framed

IDLE_SECONDS = 10.0
LARGEST = 512 << 20
"""Bytes of memory after which a process is not kept for the next request."""
LEAST_MEMORY = 1 << 30
"""Bytes of memory that are always allowed: with too little polars waits for threads that cannot start."""


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked decides, and ends this process
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    with open(answers, "wb", buffering=0) as output:
        while True:
            try:
                request = requests.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                os._exit(0)
            _limit_memory()
            _answer(json.loads(request), output)
            if _memory_used() > LARGEST:
                os._exit(0)


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    """Pass requests on; at their end leave at once, in the middle of whatever is read."""
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)


def _answer(request: dict[str, Any], output: io.FileIO) -> None:
    """Send what the asked function returns, a table or several in parts, or how it failed."""
    try:
        found = call(**request)
        if isinstance(found, list | dict):
            _send(output, VALUE, json.dumps(found).encode())
        else:
            for part in streams(*found) if isinstance(found, tuple) else streams(found):
                _send(output, PART, part)
    except SottovoceError as problem:
        _send(output, REFUSED, json.dumps([type(problem).__name__, str(problem)]).encode())
    except BaseException as problem:  # every reader has its own errors; their text may quote data
        _send(output, BROKEN, json.dumps(type(problem).__name__).encode())
    _send(output, END, b"")


def call(room: str, verb: str, path: str, arguments: dict[str, Any]) -> Any:
    """Call a function of this package on a file."""
    return getattr(import_module(f"{__package__}.{room}"), verb)(Path(path), **arguments)


def _send(output: io.FileIO, tag: bytes, content: Any) -> None:
    for piece in framed(tag, content):
        view = memoryview(piece)
        while view.nbytes:
            view = view[output.write(view) or 0 :]


def _limit_memory() -> None:
    """Let this process, and not the machine, run out of memory; and leave no image of it on the disk."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        available = max(_available(), LEAST_MEMORY)
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most == resource.RLIM_INFINITY or available < most:
            resource.setrlimit(resource.RLIMIT_DATA, (available, most))
    except (ImportError, OSError, ValueError):  # a platform without limits has none to set
        return


def _available() -> int:
    """Bytes of memory that the machine can give, or very many if it does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = next(line.split() for line in lines if line.startswith("MemAvailable:"))
        return int(found[1]) << 10
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 1 << 62


def _memory_used() -> int:
    """The most memory this process has held, in bytes.

    On Linux `getrusage` also counts what the asking process held when it started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line.split() for line in lines if line.startswith("VmHWM:"))[1]) << 10
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


if __name__ == "__main__":
    main()
