"""The command line as a whole: all commands, and how a failure is told."""

from __future__ import annotations

import os
import sys

from . import (  # noqa: F401  (each registers its commands)
    audit_commands,
    estimate_commands,
    explore_command,
    ledger_commands,
    release_commands,
    table_commands,
)
from ._terminal import errors
from .commands import app
from .errors import SottovoceError

__all__ = ["app", "run"]


def run() -> None:
    """Run the command; a bad input is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ε shows ?, not a traceback
    try:
        app(standalone_mode=True)
    except SottovoceError as problem:
        _stop(str(problem))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as problem:
        _stop(f"{problem.filename or 'file'}: {problem.strerror or type(problem).__name__}")


def _stop(message: str) -> None:
    errors.print("error:", message, style="red", markup=False, soft_wrap=True, highlight=False)
    raise SystemExit(2) from None
