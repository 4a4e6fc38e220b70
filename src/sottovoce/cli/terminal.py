"""How the command line speaks: notes and errors beside the result, JSON for programs. It loads no numbers."""

from __future__ import annotations

import json
import math
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from .._atomic import inf_to_null

if TYPE_CHECKING:
    from rich.progress import Progress, Task

console = Console()
errors = Console(stderr=True)
if not console.is_terminal:
    console.width = 250  # into a file or a pipe nothing is cut
NOT_PRIVATE = "Measured on the users' true data: for choosing a sampler, not for publishing."


def be_quiet(wanted: bool) -> None:
    """From now on no remarks, spinners and bars on standard error; what went wrong is still said."""
    if wanted:
        errors.quiet = True


def print_note(text: str, *, always: bool = False) -> None:
    """A remark beside the result, on standard error, out of the way of programs; `always` even if quiet."""
    if always:
        errors.quiet = False
    errors.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)


def working(what: str) -> AbstractContextManager[object]:
    """A spinner beside work of unknown length, where there is a terminal to show it."""
    return errors.status(what) if errors.is_terminal else nullcontext()


def progress_bar(*, shown: bool = True) -> Progress:
    """A bar with the rate and the time left on standard error, where there is a terminal to show it."""
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Left
    from rich.text import Text

    class Rate(ProgressColumn):
        """Steps a second, once it is known."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.3g}/s", style="dim")

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Rate(), Left())
    return Progress(*columns, console=errors, transient=True, disable=not shown or not errors.is_terminal)


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
