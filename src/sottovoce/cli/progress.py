"""Long steps as they go on: a bar or a counter on a terminal, lines of JSON for programs, or nothing."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ParameterError
from .terminal import errors, manner, plain, print_line, speaks_json

if TYPE_CHECKING:
    from rich.progress import Progress, Task

Made = TypeVar("Made")
WAYS = ("bar", "json", "none")
SOONEST, LATEST = 0.2, 1.0
"""Seconds between two lines of JSON: at least, and at most even if nothing has changed."""
RECENT = 10.0
"""Seconds over which a rate is taken."""


def choose_way(way: str) -> None:
    """How steps are shown from now on: the callback of --progress."""
    if way not in WAYS:
        raise ParameterError(f"progress must be one of {', '.join(WAYS)}, got {way!r}")
    manner.progress = way


def complete_way(incomplete: str) -> list[str]:
    """The ways that begin so, for the shell."""
    return [way for way in WAYS if way.startswith(incomplete)]


def asked_for_lines(arguments: Sequence[str]) -> bool:
    """Whether a command line says --progress json, which an error about its other words has to know."""
    return "--progress=json" in arguments or ("--progress", "json") in pairwise(arguments)


class Step:
    """A part of a command that may take long: how much is done, of how much, since when.

    `done` is None where nobody can look inside; `total` is None where it is not known.
    """

    def __init__(self, name: str, of: str | None, total: float | None, unit: str, done: float | None) -> None:
        self.name, self.of, self.unit = name, of, unit
        self.total, self.done = total, done
        self.heard: Callable[[], object] = lambda: None
        self._begin = time.monotonic()
        self._seen: deque[tuple[float, float]] = deque([(self._begin, 0)])

    def advance(self, more: float = 1) -> None:
        """So much more is done."""
        self.reached((self.done or 0) + more)

    def after(self, made: Made) -> Made:
        """One more is done, and this is it."""
        self.advance()
        return made

    def reached(self, done: float) -> None:
        """So much is done in all."""
        self.done = done
        self._seen.append((time.monotonic(), done))
        while len(self._seen) > 2 and self._seen[-1][0] - self._seen[0][0] > RECENT:
            self._seen.popleft()
        self.heard()

    def line(self, *, finished: bool = False) -> dict[str, Any]:
        """The step as it stands, for programs; null where something is not known.

        The rate is that of the last seconds, because a step may have slow parts; at the end that of it all.
        """
        now = time.monotonic()
        seconds = now - self._begin
        if finished and self.done is None:
            self.done = self.total
        since, before = (self._begin, 0.0) if finished else self._seen[0]
        rate = None if not self.done or now <= since else (self.done - before) / (now - since)
        left = None if not rate or self.total is None else max(self.total - (self.done or 0), 0) / rate
        left = 0.0 if finished else left  # also of an audit that needed fewer draws
        return {
            "step": self.name,
            "of": self.of,
            "done": self.done,
            "total": self.total,
            "unit": self.unit,
            "seconds": round(seconds, 3),
            "rate": None if not rate else float(f"{rate:.6g}"),
            "left": None if left is None else round(left, 3),
            "finished": finished,
        }


@contextmanager
def step(
    name: str,
    of: object = None,
    *,
    total: float | None = None,
    unit: str = "",
    counted: bool = True,
) -> Iterator[Step]:
    """A step while it runs; `counted` says that its parts are told with `advance` or `reached`.

    A step that is not counted is done as a whole: at its end, all of `total` is.
    """
    one = Step(name, None if of is None else plain(of), total, unit, 0 if counted else None)
    if speaks_json():
        with _lines(one):
            yield one
    elif manner.progress == "none" or not errors.is_terminal or errors.quiet:
        yield one
    else:
        with _bar(one):
            yield one


def working(name: str, of: object = None) -> AbstractContextManager[Step]:
    """A step of which nothing is known but that it runs."""
    return step(name, of, counted=False)


def reading_of(path: Path) -> AbstractContextManager[Step]:
    """The step that reads a table: its size is known, and not how far its reader is."""
    size = path.stat().st_size if path.is_file() else None
    shown = "standard input" if str(path) in ("-", "/dev/stdin") else path.name
    return step("reading", shown, total=size, unit="bytes", counted=False)


@contextmanager
def _lines(one: Step) -> Iterator[None]:
    """A line at the beginning, lines while it runs, and one at the end, unless it fails."""
    print_line(one.line())
    ended = threading.Event()
    teller = threading.Thread(target=_tell, args=(one, ended), daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
    print_line(one.line(finished=True))


def _tell(one: Step, ended: threading.Event) -> None:
    told, when = one.done, time.monotonic()
    while not ended.wait(SOONEST):
        if one.done != told or time.monotonic() - when >= LATEST:
            told, when = one.done, time.monotonic()
            print_line(one.line())


@contextmanager
def _bar(one: Step) -> Iterator[None]:
    """A bar with the rate and the time left where the way is known, else a spinner with what is."""
    with _drawn(one) as progress:
        name = one.name if one.of is None else f"{one.name} {one.of}"
        task = progress.add_task(name, total=one.total if one.done is not None else None)
        one.heard = lambda: progress.update(task, completed=one.done)
        yield


def _drawn(one: Step) -> Progress:
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """So much a second, once it is known."""

        def render(self, task: Task) -> Text:
            return Text("" if not task.speed else f"{in_short(task.speed)} {one.unit}/s", style="dim")

    class Amount(ProgressColumn):
        """How much is done, or of how much it is."""

        def render(self, task: Task) -> Text:
            amount = one.total if one.done is None else one.done
            return Text("" if amount is None else f"{in_short(amount)} {one.unit}", style="dim")

    what = TextColumn("{task.description}", markup=False)
    known = one.total is not None and one.done is not None
    columns: list[Any] = [what, BarColumn(bar_width=20), TaskProgressColumn(), Rate(), TimeRemainingColumn()]
    if not known:
        columns = [SpinnerColumn(), what, Amount(), Rate(), TimeElapsedColumn()]
    return Progress(*columns, console=errors, transient=True)


def in_short(amount: float) -> str:
    """A number of at most four digits, with a letter for thousands and more.

    >>> in_short(37512), in_short(213_467_534), in_short(7.25), in_short(950)
    ('37.5k', '213M', '7.25', '950')
    """
    for letter in ("", "k", "M", "G"):
        if amount < 999.5 or letter == "G":
            return f"{amount:.3g}{letter}" if amount < 999.5 else f"{amount:,.0f}{letter}"
        amount /= 1000
    raise AssertionError("unreachable: the last letter takes everything")
