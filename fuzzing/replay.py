"""What the inputs of a target cover, and the few of them that cover the same.

    python -m fuzzing.replay NAME FOLDER [--keep]

Line coverage of the target's rooms over all inputs, import included. With --keep, a small choice of short
inputs that reaches the same lines is written into the tree.
"""

from __future__ import annotations

import json
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src" / "sottovoce"
MOST_BYTES = 9_000
LONGEST_KEPT = 2_500


def main(name: str, folder: Path, keep: bool) -> None:
    """Print one line of JSON: lines, lines reached, inputs."""
    import coverage

    data_file = folder / f"{name}.coverage"
    measured = coverage.Coverage(data_file=str(data_file), source=[str(SOURCE)], config_file=False)
    measured.erase()
    measured.start()
    from .target import kept
    from .targets import TARGETS

    target = TARGETS[name]
    stored = sorted((folder / "corpus" / name).glob("*"))
    inputs = [*kept(name), *target.seeds(), *(path.read_bytes() for path in stored)]
    for number, data in enumerate(inputs):
        measured.switch_context(str(number))
        try:
            target.check(data)
        except Exception:  # noqa: S112  (findings are told by the run itself)
            continue
        finally:
            measured.switch_context("")
    measured.stop()
    measured.save()
    lines = reached = 0
    covers: dict[int, set[tuple[str, int]]] = {}
    found = measured.get_data()
    for file in found.measured_files():
        inner = Path(file).relative_to(SOURCE).as_posix()
        if not any(fnmatch(inner, room) for room in target.rooms):
            continue
        _, statements, _, missing, _ = measured.analysis2(file)
        lines += len(statements)
        reached += len(statements) - len(missing)
        for line, numbers in found.contexts_by_lineno(file).items():
            for one in filter(None, numbers):
                covers.setdefault(int(one), set()).add((inner, line))
    if keep:
        _keep(name, inputs, covers)
    print(json.dumps({"lines": lines, "reached": reached, "inputs": len(inputs)}))


def _keep(name: str, inputs: list[bytes], covers: dict[int, set[tuple[str, int]]]) -> None:
    """Greedily the inputs with the most new lines, short ones first; seeds are made anew and not kept."""
    from .target import CORPUS
    from .targets import TARGETS

    seeds = set(TARGETS[name].seeds())
    have: set[Any] = set().union(*(covers[i] for i in covers if inputs[i] in seeds), set())
    left = [i for i in covers if inputs[i] not in seeds and len(inputs[i]) <= LONGEST_KEPT]
    chosen: list[str] = []
    while left:
        best = max(left, key=lambda i: (len(covers[i] - have), -len(inputs[i])))
        size = sum(len(json.dumps(text)) for text in chosen) + len(inputs[best])
        if not covers[best] - have or size > MOST_BYTES:
            break
        have |= covers[best]
        chosen.append(inputs[best].decode("latin-1"))
        left.remove(best)
    CORPUS.mkdir(exist_ok=True)
    text = json.dumps(sorted(chosen, key=lambda one: (len(one), one)), indent=0)
    (CORPUS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), "--keep" in sys.argv)
