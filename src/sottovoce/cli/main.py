"""The command line as a whole: all commands, and how a failure is told."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

import typer

from .._starting import INTERRUPTED
from ..errors import SottovoceError
from .app import app
from .progress import asked_for_lines, choose_way
from .terminal import errors, plain, print_error, print_interruption, speak_normally, speaks_json

__all__ = ["app", "run"]


def run() -> None:
    """Run the command; a bad option or a bad input is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ε shows ?, not a traceback
    speak_normally()
    if asked_for_lines(sys.argv[1:]):  # an error in the words before it is told in the same way
        choose_way("json")
    command = typer.main.get_command(app)
    _listen(command)
    try:
        code = command(standalone_mode=False)
        raise SystemExit(code if isinstance(code, int) else 0)
    except SottovoceError as problem:
        _stop(str(problem))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as problem:
        _stop(f"{problem.filename or 'file'}: {problem.strerror or type(problem).__name__}")
    except KeyboardInterrupt as stop:
        _interrupted(stop)
    except Exception as problem:
        if not hasattr(problem, "format_message"):  # typer's errors; their class moved between its versions
            raise
        _misused(problem)


def _misused(problem: Any) -> None:
    """A command, option or argument that does not exist or is missing: what there is, in one line."""
    words = problem.format_message().strip()
    if not words:  # the help was shown instead
        raise SystemExit(problem.exit_code) from None
    near = getattr(problem, "possibilities", None)
    if near:
        words = f"{problem.message}. Did you mean {' or '.join(sorted(near))}?"
    context = getattr(problem, "ctx", None)
    where = f" See: {context.command_path} --help" if context is not None else ""
    _stop(f"{plain(' '.join(words.split()))}{where}")


def _listen(command: Any) -> None:
    """Tell Ctrl-C in one line and end on a request to end, in both cases with the terminal as it was.

    A command that catches KeyboardInterrupt says its own last line, and leaves with typer.Exit(130).
    """
    invoke = command.invoke

    def invoked(context: Any) -> Any:
        try:
            return invoke(context)
        except KeyboardInterrupt as stop:
            _interrupted(stop)

    command.invoke = invoked
    sys.unraisablehook = _raised_again
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _asked_to_end)


def _interrupted(stop: KeyboardInterrupt) -> None:
    _ignore_signals()  # a second one must not cut the line in two
    _show_cursor()
    print_interruption(" ".join(["interrupted", *map(str, stop.args)]), INTERRUPTED)
    raise SystemExit(INTERRUPTED) from None


def _asked_to_end(number: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    _show_cursor()
    raise SystemExit(128 + number)


def _show_cursor() -> None:
    """A bar hides it; lines of JSON do not."""
    if not speaks_json():
        errors.show_cursor(True)


def _ignore_signals() -> None:
    """The end has begun: what comes now would only interrupt it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _raised_again(lost: Any) -> None:
    """A Ctrl-C that arrives where Python cannot raise, such as in a destructor, arrives again."""
    if lost.exc_type is KeyboardInterrupt:
        for delay in (0.01, 0.1, 1.0):  # on a busy machine it can arrive while its timer still starts
            with suppress(KeyboardInterrupt):
                threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
                return
    else:
        sys.__unraisablehook__(lost)


def _stop(message: str) -> None:
    print_error(message, 2)
    raise SystemExit(2) from None
