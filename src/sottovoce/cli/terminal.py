"""How the command line speaks: notes and errors beside the result, JSON for programs. It loads no numbers."""

from __future__ import annotations

import json
import math
import os
import select
import sys
import threading
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.markup import escape

from .._atomic import inf_to_null


class _Beside(Console):
    """Standard error. Whoever stops reading it does not end a command: it may have charged people already."""

    def on_broken_pipe(self) -> None:
        """From now on nothing is said."""
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


console = Console()
errors = _Beside(stderr=True)
if not console.is_terminal:
    console.width = 250  # into a file or a pipe nothing is cut
LAST_LINE = 2.0
"""Seconds that the last line of a command waits for somebody to read what stands before it."""
NOT_PRIVATE = "Measured on the users' true data: for choosing a sampler, not for publishing."
_one_line_at_a_time = threading.Lock()


class _Manner:
    """How long steps are shown: as a bar, as lines of JSON, or not at all."""

    progress = "bar"


manner = _Manner()


def speak_normally() -> None:
    """Forget what an earlier command was asked for."""
    errors.quiet = False
    manner.progress = "bar"


def speaks_json() -> bool:
    """Whether all that is said on standard error is JSON, an object a line."""
    return manner.progress == "json"


def be_quiet(wanted: bool) -> None:
    """From now on no remarks, spinners and bars on standard error; what went wrong is still said."""
    if wanted:
        errors.quiet = True


def print_note(text: str) -> None:
    """A remark beside the result, on standard error, out of the way of programs."""
    if not speaks_json():
        with suppress(OSError):  # a full disk must not cost people a release that they have paid for
            errors.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)
    elif not errors.quiet:
        print_line({"note": text})


def print_interruption(text: str, code: int) -> None:
    """The last line of a command that was interrupted, also of a quiet one."""
    if speaks_json():
        print_line({"note": text, "exit": code}, LAST_LINE)
        return
    errors.quiet = False
    if _is_read(LAST_LINE):
        print_note(text)


def print_error(message: str, code: int) -> None:
    """What went wrong, in one line, also of a quiet command."""
    errors.quiet = False
    if speaks_json():
        print_line({"error": message, "exit": code}, LAST_LINE)
        return
    with suppress(OSError):
        errors.print("error:", message, style="red", markup=False, soft_wrap=True, highlight=False)


def print_line(told: dict[str, Any], patience: float = 0.0) -> None:
    """One object of JSON on a line of standard error, whole, at once; it is dropped if nobody reads."""
    with _one_line_at_a_time, suppress(OSError, ValueError):
        if sys.stderr is None or not _is_read(patience):
            return
        sys.stderr.write(json.dumps(told, ensure_ascii=True) + "\n")
        sys.stderr.flush()


def _is_read(patience: float) -> bool:
    """Whether standard error takes a line within so many seconds: a pipe that nobody reads gets full."""
    try:
        return bool(select.select([], [sys.stderr], [], patience)[1])
    except (OSError, ValueError, TypeError, AttributeError):  # closed, or no place that can be asked
        return True


def plain(value: object) -> str:
    """Text without control characters, which could rewrite a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def shown_text(value: object) -> str:
    """A name as it can be printed anywhere: markup and control characters made harmless."""
    return escape(plain(value))


def number(value: float) -> str:
    """Four digits that stay readable from 1e-9 to 1e9."""
    if math.isinf(value):
        return "∞"
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3g}"


def print_json(value: Any) -> None:
    """JSON on standard output; null stands for infinity, which JSON does not have."""
    sys.stdout.write(json.dumps(inf_to_null(value), indent=2, ensure_ascii=True) + "\n")
