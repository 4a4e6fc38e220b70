"""One target for some seconds, guided by what it covers: the process that `python -m fuzzing` starts.

    python -m fuzzing.guided NAME SECONDS FOLDER

Atheris follows the library's own code and hands inputs that reach something new to be changed further. An
exception is written down with its input, once for each place, and the run goes on; what hangs or takes a
gigabyte ends the process, and libFuzzer leaves its input in the same folder.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import random
import re
import sys
import traceback
from pathlib import Path
from typing import Any

SKIPPED = ("sottovoce.spark", "sottovoce.__main__", "sottovoce.tables.spark")
SEED = 17


def main(name: str, seconds: int, folder: Path) -> None:
    """Fuzz, and never return."""
    import atheris

    with atheris.instrument_imports(include=["sottovoce"]):
        _import_all()
        from .target import kept
        from .targets import TARGETS
    target = TARGETS[name]
    corpus, findings = folder / "corpus" / name, folder / "findings"
    for place in (corpus, findings):
        place.mkdir(parents=True, exist_ok=True)
    for data in [*kept(name), *target.seeds()]:
        (corpus / hashlib.sha256(data).hexdigest()[:20]).write_bytes(data)
    seen: set[str] = set()

    def one(data: bytes) -> None:
        try:
            target.check(data)
        except Exception as problem:
            _write_down(problem, data, findings / name, seen)

    def mutated(data: bytes, longest: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.7:
            own: bytes = target.mutate(bytes(data), rng)
            return own[:longest]
        changed: bytes = atheris.Mutate(data, longest)
        return changed

    options = [
        f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=1024", f"-max_len={target.longest}",
        f"-artifact_prefix={findings / name}-", f"-seed={SEED}", "-len_control=0", "-reload=0",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=mutated)
    atheris.Fuzz()


def _import_all() -> None:
    """Every module of the library: one that is imported later would not be followed."""
    import sottovoce

    for found in pkgutil.walk_packages(sottovoce.__path__, "sottovoce."):
        if not found.name.startswith(SKIPPED):
            importlib.import_module(found.name)


def _write_down(problem: Exception, data: bytes, prefix: Path, seen: set[str]) -> None:
    """The input of an exception, once for each kind of exception and place in the library."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if "sottovoce" in frame.filename]
    said = re.sub("[0-9]+", "", str(problem))[:60]
    key = f"{type(problem).__name__} {own[-1] if own else ''} {said}"
    if key in seen:
        return
    seen.add(key)
    mark = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:12]
    Path(f"{prefix}-{mark}").write_bytes(data)
    Path(f"{prefix}-{mark}.txt").write_text("".join(traceback.format_exception(problem)), encoding="utf-8")


if __name__ == "__main__":
    arguments: list[Any] = sys.argv[1:]
    main(arguments[0], int(arguments[1]), Path(arguments[2]))
