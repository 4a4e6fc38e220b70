"""The command line in this process: any arguments end with a result, or with one line and exit code 2."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import signal
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import sottovoce as sv
from sottovoce.cli import app as command_line
from sottovoce.cli import collect
from sottovoce.release.file import save_mechanisms
from sottovoce.serving import server as collector

from .mutate import NUMBERS, WORDS
from .target import Finding, Target, folder, holds

FILES = [
    "prior.csv",
    "users.csv",
    "reports.csv",
    "m.json",
    "g.json",
    "prior.json",
    "l.db",
    "out.json",
    "none.csv",
    ".",
]
OPTIONS = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
OUTSIDE = re.compile(r"(^|=)[/~]+")
"""The beginning of a path that leads out of the folder: it is left out."""
SLOW = {"--draws": "2000", "--workers": "1", "--port": "0"}
"""Options whose value may honestly ask for hours, or for a port: they get this one."""
COMMANDS = [
    "prior", "choose", "compare", "design", "ledger create", "ledger show", "ledger grant",
    "release", "collect serve", "collect export", "collect backup", "estimate", "audit", "amplify", "explore",
]  # fmt: skip
SAMPLERS = [
    "kernel-clip", "blend:weight=0.3", "fitted", "auto", "randomized-response", "tv",
]  # fmt: skip
MOST_ARGUMENTS = 14


class _Listener:
    """A socket that nobody reaches."""

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1


class _Server:
    """A server that ends at once."""

    stopped = True

    def run(self, **_: object) -> None:
        """Serve nobody."""


@cache
def _files() -> dict[str, bytes]:
    """What the files that arguments name hold."""
    here = folder() / "made"
    here.mkdir()
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2]), 1.0))
    mechanism.save(here / "m.json")
    save_mechanisms({"x": mechanism}, "region", here / "g.json")
    sv.Ledger.create(here / "l.db", budget=100).close()
    users = "".join(f"u{i},{name}\n" for i, name in enumerate("abcabcaabb"))
    return {path.name: path.read_bytes() for path in here.iterdir()} | {
        "prior.csv": b"item,count\na,5\nb,3\nc,2\n",
        "users.csv": b"user,item\n" + users.encode(),
        "reports.csv": b"item\na\nb\na\n",
        "prior.json": b'{"a": 5, "b": 3, "c": 2}',
    }


@contextmanager
def _apart() -> Iterator[None]:
    """In a folder with these files and no others, and with servers that do not serve."""
    here, before = folder() / "arguments", Path.cwd()
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    for name, data in _files().items():
        (here / name).write_bytes(data)
    stubs: list[tuple[ModuleType, str, Any]] = [
        (collect, "listening", lambda *_: _Listener()),
        (webbrowser, "open", lambda *_: True),
        (collector, "server_of", lambda *_: _Server()),
    ]
    kept = [getattr(room, name) for room, name, _ in stubs]
    try:
        os.chdir(here)
        for room, name, stub in stubs:
            setattr(room, name, stub)
        yield
    finally:
        os.chdir(before)
        for (room, name, _), one in zip(stubs, kept, strict=True):
            setattr(room, name, one)


@cache
def options() -> list[str]:
    """Every option of every command, from the help."""
    found = set()
    for one in COMMANDS:
        _, shown = _run([*one.split(), "--help"])
        found |= set(OPTIONS.findall(shown))
    return sorted(found)


def _run(arguments: list[str]) -> tuple[Any, str]:
    """The exit code, and what was shown."""
    shown, before, hook = io.StringIO(), sys.argv, sys.unraisablehook
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    sys.argv = ["sottovoce", *arguments]
    code: Any = 0
    try:
        with _apart(), redirect_stdout(shown), redirect_stderr(shown):
            command_line.run()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv, sys.unraisablehook = before, hook
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return code, shown.getvalue()


def check(data: bytes) -> bool:
    """Run a command; its arguments are the lines of the input."""
    text = data.decode("utf-8", "surrogateescape").replace("\0", "").replace("..", "")
    arguments = [OUTSIDE.sub(r"\1", one) for one in text.split("\n")[:MOST_ARGUMENTS]]
    for place, one in enumerate(arguments[:-1]):
        if one in SLOW:
            arguments[place + 1] = SLOW[one]
        if one.split("=")[0] in SLOW:
            arguments[place] = f"{one.split('=')[0]}={SLOW[one.split('=')[0]]}"
    if "demo" in arguments:  # it takes seconds, and reads nothing
        return False
    code, shown = _run(arguments)
    holds(code in (0, 1, 2), f"the command ended with {code!r}")
    holds("Traceback" not in shown, "a traceback was shown")
    if code == 1 and "estimate" not in arguments and "audit" not in arguments:
        raise Finding(f"exit code 1: {shown[-300:]}")
    return bool(code == 0)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Arguments put in, taken out, changed, or another command before them."""
    words = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(words) + 1)
        choice = rng.random()
        if choice < 0.1:
            words[:1] = rng.choice(COMMANDS).split()
        elif choice < 0.35:
            words[at:at] = [rng.choice(options())]
        elif choice < 0.6:
            words[at:at] = [rng.choice(options()), rng.choice([*NUMBERS, *FILES, *SAMPLERS])]
        elif choice < 0.7:
            del words[at : at + 1]
        elif at < len(words):
            words[at] = rng.choice(
                [*NUMBERS, *FILES, *SAMPLERS, *WORDS, words[at] + rng.choice(WORDS), "a", "item"]
            )
    return "\n".join(words[:MOST_ARGUMENTS]).encode("utf-8", "surrogatepass")


def seeds() -> Sequence[bytes]:
    """A call of every command that does something."""
    return [
        line.replace(" ", "\n").encode()
        for line in (
            "prior prior.csv --top 2 --rare as=rest -o out.json",
            "choose prior.csv users.csv --source x -e 1 --json",
            "compare prior.csv users.csv -e 1 -s kernel-clip -d tv",
            "design prior.json -e 1 -s kernel-clip -o out.json",
            "ledger create out.json --budget 4",
            "ledger show l.db",
            "ledger show l.db u1 --epoch e1",
            "ledger grant l.db u1 1 --epoch e1",
            "release m.json users.csv --ledger l.db --epoch e1 -o out.csv",
            "release m.json users.csv --max-epsilon 2 --read separator=comma -o out.csv",
            "estimate m.json reports.csv --json",
            "audit m.json --draws 2000",
            "amplify m.json --reports 1000 --delta 1e-6",
            "collect m.json --store out.json --port 0",
            "explore prior.csv -o page.html",
            "--version",
        )
    ]


TARGETS = (Target("arguments", check, seeds, mutated, ("cli/*.py",), longest=4000, weight=3, everyday=25),)
