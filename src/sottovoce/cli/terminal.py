"""How the command line speaks: notes and errors beside the result, JSON for programs. It loads no numbers."""

from __future__ import annotations

import json
import math
import sys
import threading
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.markup import escape

from .._atomic import inf_to_null

console = Console()
errors = Console(stderr=True)
if not console.is_terminal:
    console.width = 250  # into a file or a pipe nothing is cut
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
        errors.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)
    elif not errors.quiet:
        print_line({"note": text})


def print_interruption(text: str, code: int) -> None:
    """The last line of a command that was interrupted, also of a quiet one."""
    if speaks_json():
        print_line({"note": text, "exit": code})
        return
    errors.quiet = False
    print_note(text)


def print_error(message: str, code: int) -> None:
    """What went wrong, in one line, also of a quiet command."""
    errors.quiet = False
    if speaks_json():
        print_line({"error": message, "exit": code})
    else:
        errors.print("error:", message, style="red", markup=False, soft_wrap=True, highlight=False)


def print_line(told: dict[str, Any]) -> None:
    """One object of JSON on a line of standard error, whole, at once; if nobody reads it, nothing happens."""
    with _one_line_at_a_time, suppress(OSError, ValueError):
        sys.stderr.write(json.dumps(told, ensure_ascii=True) + "\n")
        sys.stderr.flush()


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
