"""What a target is, where it keeps its files, and how any target is run without a guide."""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sottovoce.errors import SottovoceError

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
PLACE = "FUZZING_FOLDER"
"""The variable that names a folder for all files: a guided process leaves without cleaning up."""
MOST_SECONDS = 10
LONGEST_MESSAGE = 4000


class Finding(AssertionError):
    """Something that must not happen; no input of any kind may lead to it."""


@dataclass(frozen=True)
class Target:
    """Something that reads from outside.

    `check` says whether bytes were accepted; whatever else it raises is a finding. `mutate` makes other bytes
    of some, with the form that the target expects. `rooms` are the files whose coverage is told.
    """

    name: str
    check: Callable[[bytes], bool]
    seeds: Callable[[], Sequence[bytes]]
    mutate: Callable[[bytes, random.Random], bytes]
    rooms: tuple[str, ...]
    longest: int = 20_000
    weight: int = 1
    """Its part of the seconds."""
    everyday: int = 100
    """Executions in the ordinary test."""


def in_memory() -> Path | None:
    """Where files are in memory, if the machine has such a place."""
    memory = Path("/dev/shm")  # noqa: S108  (only fresh folders of random names in it)
    return memory if memory.is_dir() else None


@cache
def folder() -> Path:
    """A folder of this process, removed at the end; `python -m fuzzing` removes what is left."""
    made = Path(tempfile.mkdtemp(prefix="fuzzing-", dir=os.environ.get(PLACE) or in_memory()))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def written(name: str, data: bytes) -> Path:
    """A file of this process with these bytes."""
    path = folder() / name
    path.write_bytes(data)
    return path


def kept(name: str) -> list[bytes]:
    """The inputs of a target that are kept in the tree; bytes stand in the file as latin-1 text."""
    path = CORPUS / f"{name}.json"
    if not path.is_file():
        return []
    return [text.encode("latin-1") for text in json.loads(path.read_text(encoding="utf-8"))]


@contextmanager
def refusals() -> Iterator[list[str]]:
    """Take errors of the library for refusals, and look at their words; anything else goes on."""
    said: list[str] = []
    try:
        yield said
    except SottovoceError as problem:
        text = str(problem)
        if not text or len(text) > LONGEST_MESSAGE or any(c in text for c in "\n\r\x1b\x00"):
            raise Finding(f"a refusal of strange words: {text[:200]!r}") from problem
        said.append(text)


def holds(condition: bool, promise: str) -> None:
    """A promise about what was accepted."""
    if not condition:
        raise Finding(promise)


def run_blindly(target: Target, executions: int, seed: str) -> Counter[str]:
    """The kept inputs and the seeds, then so many mutants of them; a finding is raised with its input."""
    rng = random.Random(f"{target.name} {seed}")
    pool = [*kept(target.name), *target.seeds()]
    given = len(pool)
    found: Counter[str] = Counter()
    for number in range(given + executions):
        data = pool[number] if number < given else target.mutate(rng.choice(pool), rng)[: target.longest]
        try:
            with _limited():
                accepted = target.check(data)
        except Exception as problem:
            raise Finding(
                f"{target.name}: {type(problem).__name__}: {problem} from {data[:2000]!r}"
            ) from problem
        found["accepted" if accepted else "refused"] += 1
        if accepted and len(pool) < 200:
            pool.append(data)
    return found


@contextmanager
def _limited() -> Iterator[None]:
    """End what hangs."""

    def stop(*_: Any) -> None:
        raise Finding(f"it took more than {MOST_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
