"""The command line as a whole: all commands, and how a failure is told."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

import typer

from .._starting import INTERRUPTED, heard
from ..errors import SottovoceError
from . import (  # noqa: F401  (each registers its command)
    amplify,
    audit,
    choose,
    collect,
    compare,
    demo,
    design,
    estimate,
    explore,
    ledger,
    prior,
    release,
    samples,
)
from .app import app
from .terminal import errors, print_note

__all__ = ["app", "run"]


def run() -> None:
    """Run the command; a bad input is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ε shows ?, not a traceback
    command = typer.main.get_command(app)
    _listen(command)
    try:
        command(standalone_mode=True)
    except SottovoceError as problem:
        _stop(str(problem))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as problem:
        _stop(f"{problem.filename or 'file'}: {problem.strerror or type(problem).__name__}")
    except KeyboardInterrupt as stop:
        _interrupted(stop)


def _listen(command: Any) -> None:
    """Tell Ctrl-C in one line and end on a request to end, in both cases with the terminal as it was.

    A command that catches KeyboardInterrupt says its own last line, and leaves with typer.Exit(130).
    """
    invoke = command.invoke

    def invoked(context: Any) -> Any:
        try:
            heard()
            return invoke(context)
        except KeyboardInterrupt as stop:
            _interrupted(stop)

    command.invoke = invoked
    sys.unraisablehook = _raised_again
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _asked_to_end)


def _interrupted(stop: KeyboardInterrupt) -> None:
    _ignore_signals()  # a second one must not cut the line in two
    errors.show_cursor(True)
    print_note(" ".join(["interrupted", *map(str, stop.args)]))
    raise SystemExit(INTERRUPTED) from None


def _asked_to_end(number: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    errors.show_cursor(True)
    raise SystemExit(128 + number)


def _ignore_signals() -> None:
    """The end has begun: what comes now would only interrupt it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _raised_again(lost: Any) -> None:
    """A Ctrl-C that arrives where Python cannot raise, such as in a destructor, arrives again."""
    if lost.exc_type is KeyboardInterrupt:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)


def _stop(message: str) -> None:
    errors.print("error:", message, style="red", markup=False, soft_wrap=True, highlight=False)
    raise SystemExit(2) from None
