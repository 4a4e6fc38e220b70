"""What the command line prints: results, notes and errors beside them, progress bars, JSON for programs."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..atomic import inf_to_null
from ..errors import ParameterError
from ..listing import number as number

Made = TypeVar("Made")


class _Beside(Console):
    """Standard error. A closed one must not abort a command, which may already have charged users."""

    def on_broken_pipe(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


NOT_PRIVATE = "Measured on the users' true data: for choosing a sampler, not for publishing."
console = Console()
errors = _Beside(stderr=True)
if not console.is_terminal:
    console.width = 250  # into a file or a pipe nothing is cut


def print_note(text: str) -> None:
    """Print a remark beside the result, on standard error."""
    with suppress(OSError):  # a full disk must not cost users a release that they have paid for
        errors.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)


def print_interruption(text: str) -> None:
    """Print the last line of an interrupted command, also of a quiet one, unless standard error is stuck."""
    errors.quiet = False
    with suppress(OSError, ValueError, TypeError, AttributeError):  # closed, or no file that can be polled
        if not select.select([], [sys.stderr], [], 2.0)[1]:  # seconds
            return
    print_note(text)


def print_error(message: str) -> None:
    """Print what went wrong, in one line, also of a quiet command."""
    errors.quiet = False
    with suppress(OSError):
        errors.print("error:", message, style="red", markup=False, soft_wrap=True, highlight=False)


def print_json(value: Any) -> None:
    """Print JSON on standard output; null stands for infinity, which JSON does not have."""
    if sys.stdout is None:
        raise ParameterError("standard output is closed: there is no place for the JSON")
    sys.stdout.write(json.dumps(inf_to_null(value), indent=2, ensure_ascii=True) + "\n")


def print_text(text: str, style: str | None = None) -> None:
    """Print a part of the result as it is, however long its lines are."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_facts(rows: Sequence[tuple[str, object]]) -> None:
    """Print a name and a value in every line; values may have markup."""
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(name, str(value))
    console.print(grid)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Sequence[str] = (),
    title: str | None = None,
    padding: tuple[int, ...] = (0, 1),
) -> None:
    """Print a table without lines; columns in `left` are text, the others numbers, which are never cut."""
    shown = Table(box=None, header_style="bold", title=title, padding=padding)  # type: ignore[arg-type]
    for column in columns:
        text = column in left
        shown.add_column(column, justify="left" if text else "right", no_wrap=not text, overflow="fold")
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def plain(value: object) -> str:
    """Replace control characters, which could rewrite a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def shown_text(value: object) -> str:
    """Make a name harmless for a terminal: neither markup nor control characters."""
    return escape(plain(value))


class Step:
    """A part of a command that may take long; `show` draws how much of it is done."""

    def __init__(self, show: Callable[[float], object] = lambda done: None) -> None:
        self._show, self._done = show, 0.0

    def reached(self, done: float) -> None:
        """Set what is done in all."""
        self._done = done
        self._show(done)

    def advance(self, more: float = 1) -> None:
        """Add to what is done."""
        self.reached(self._done + more)

    def after(self, made: Made) -> Made:
        """Count one more, and return it."""
        self.advance()
        return made


@contextmanager
def step(name: str, of: object = None, *, total: float | None = None, unit: str = "") -> Iterator[Step]:
    """Show a bar with rate and remaining time on a terminal; without a total a spinner with the time."""
    if errors.quiet or not errors.is_terminal:
        yield Step()
        return
    from rich import progress as bars

    class Rate(bars.ProgressColumn):
        def render(self, task: bars.Task) -> str:
            return f"{task.speed:,.3g} {unit}/s" if task.speed and unit else ""

    what = bars.TextColumn("{task.description}", markup=False)
    columns: list[Any] = [bars.SpinnerColumn(), what, bars.TimeElapsedColumn()]
    if total is not None:
        columns = [what, bars.BarColumn(20), bars.TaskProgressColumn(), Rate(), bars.TimeRemainingColumn()]
    with bars.Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(name if of is None else f"{name} {plain(of)}", total=total)
        yield Step(lambda done: progress.update(task, completed=done))
