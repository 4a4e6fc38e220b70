"""Ctrl-C while a command is still importing its libraries: the process ends, without a traceback.

A module of its own and the first one that the package imports, because numpy and scipy alone take longer than
a second Ctrl-C. Only a process that runs the command is touched; a program that imports the library is not.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)  # nothing is open yet, and an exception would be printed with its traceback


def quiet() -> None:
    """End at once on Ctrl-C, unless somebody has decided otherwise; `heard` takes it back."""
    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def heard() -> None:
    """Let Ctrl-C be a KeyboardInterrupt again, which a command can catch."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command() -> bool:
    """Whether this process runs `sottovoce` or `python -m sottovoce`."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if name == "-m":  # what it is called until the package is imported
        given = sys.orig_argv
        return any(pair == ("-m", "sottovoce") for pair in itertools.pairwise(given))
    return name in ("sottovoce", "sottovoce.exe")


if _is_command():
    quiet()
