"""Loaded first by every process of `make coverage`: a reader of tables ends by itself, and saves what it ran.

The asking process kills its reader when it needs it no more, and a killed process saves nothing. Here the
reader's input is closed first, which ends it, and it is killed only if it is still busy a moment later.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

_MOMENT = 2.0
_kill = subprocess.Popen.kill


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None and process.poll() is None:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_MOMENT)
    _kill(process)


subprocess.Popen.kill = _end  # type: ignore[method-assign,assignment]
