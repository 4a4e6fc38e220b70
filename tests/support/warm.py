"""A process that has imported the command line, and forks one process for every command that a test runs.

A command spends most of its time on importing. Here the libraries are imported once; each command is still a
process of its own, with its own exit code, folder and output. What a command imports on its way is imported
here after it, so that the next command finds it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from importlib import import_module


def main() -> int:
    """Run commands, a request a line; in the process of a command, return its exit code."""
    import duckdb  # noqa: F401
    import matplotlib.figure  # noqa: F401

    from sottovoce.cli.app import COMMANDS

    for name in COMMANDS:
        import_module(f"sottovoce.cli.{name}")

    gc.freeze()  # a collection in a process of a command would copy what it shares with this one
    for line in sys.stdin:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        child = os.fork()
        if child == 0:
            before = len(sys.modules)
            code = command(**json.loads(line))
            os.write(writer, "\n".join(list(sys.modules)[before:]).encode())
            leave(code)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        learn(reader)
    return 0


def learn(reader: int) -> None:
    """Import what a command has imported; one that was killed told nothing."""
    os.set_blocking(reader, False)
    with contextlib.suppress(BlockingIOError):
        for name in os.read(reader, 1 << 16).decode().splitlines():
            with contextlib.suppress(ImportError):
                import_module(name)
    os.close(reader)
    gc.freeze()


def leave(code: int) -> None:
    """End the process of a command at once: DuckDB's threads do not survive a fork."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def command(arguments: list[str], cwd: str, stdin: str, stdout: str, stderr: str) -> int:
    """Run one command with its input and its output in files."""
    os.chdir(cwd)
    places = [stdin, stdout, stderr]
    for number, place in enumerate(places):
        opened = os.open(place, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (the one it had belongs to the tests)
    sys.argv = ["sottovoce", *arguments]
    from sottovoce.__main__ import main as run

    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
