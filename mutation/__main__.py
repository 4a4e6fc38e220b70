"""`make mutants`: change release/ in small ways, one at a time, and see whether the tests notice.

    make mutants                      a sample of every file, everything of exact.py and box.py
    make mutants MODULE=exact         one file
    make mutants SAMPLE=0             everything (hours)

Which tests run which line is found once, and kept in build/mutants/; COVER=1 finds it again. What survives is
listed with the change. A change that nothing can notice stands with its reason in docs/mutants.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from . import covering
from .operators import Mutant, mutants_of
from .running import ROOT, Bench, preload, stages, within

ROOM = "release"
WHOLE = ("exact.py", "box.py")
"""Files of which every mutant is tried, whatever the sample: what a certificate and a draw rest on."""
PAGE = ROOT / "docs" / "mutants.md"
PLACE = ROOT / "build" / "mutants"
TESTS = ("tests/release", "tests/collecting", "tests/test_checked_rows.py", "tests/test_bad_input.py")
FIRST = ["tests/release/test_edges.py", "tests/release/test_edges_more.py"]
"""What is tried before the tests of the line: seconds that kill most mutants of exact arithmetic."""
EVERYDAY = "not full and not spark and not browser and not proofs"
_ROW = re.compile(r"^\| `(?P<file>[\w.]+)` \| `(?P<before>.+?)` \| `(?P<after>.+?)` \| .+ \|$", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    name: str
    file: str
    line: int
    kind: str
    before: str
    after: str
    status: str
    tests: int
    left_out: int  # tests of the line that were too slow to be run
    seconds: float


def equivalents(page: str) -> set[tuple[str, str, str]]:
    """The changes that the page says no test can notice: file, before, after."""
    return {
        (row["file"], row["before"].replace("\\|", "|"), row["after"].replace("\\|", "|"))
        for row in _ROW.finditer(page)
    }


def chosen(file: str, source: str, sample: int, seed: str) -> list[Mutant]:
    """The mutants of a file to be tried, in the order of its lines."""
    every = mutants_of(file, source)
    taken: list[Callable[[], Mutant]] = every
    if sample and file not in WHOLE and len(every) > sample:
        numbers = list(range(len(every)))
        random.Random(f"{seed} {file}").shuffle(numbers)  # a larger sample holds the smaller one
        taken = [every[number] for number in sorted(numbers[:sample])]
    return [make() for make in taken]


def judged(
    bench: Bench, mutants: list[Mutant], known: covering.Covering, file: str, same: set[tuple[str, str, str]]
) -> Iterator[Verdict]:
    """Try mutants one after the other; what the page calls equivalent is believed."""
    inner = f"{ROOM}/{file}"
    for mutant in mutants:
        every = known.tests(file, mutant.line)
        tests = within(every, known.seconds)
        begin, status = time.monotonic(), "no test"
        believed = (file, mutant.before, mutant.after) in same
        for some in [FIRST, *stages(tests, known.seconds)] if tests and not believed else []:
            limit = 8 + 2 * sum(known.seconds.get(test, 0.0) for test in some)
            status, _ = bench.run(inner, mutant.source, some, limit)
            if status.startswith("killed"):
                break
        yield Verdict(
            mutant.name, file, mutant.line, mutant.kind, mutant.before, mutant.after, status,
            len(tests), len(every) - len(tests), round(time.monotonic() - begin, 2),
        )  # fmt: skip


def table(verdicts: list[Verdict], same: set[tuple[str, str, str]]) -> str:
    """Mutants by file: killed, by running out of time, equivalent, surviving, and the score."""
    lines = ["| file | mutants | killed | of these by time | equivalent | survived | score |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|"]
    total: Counter[str] = Counter()
    for file in sorted({one.file for one in verdicts}):
        found = counted([one for one in verdicts if one.file == file], same)
        total += found
        lines.append(row(f"`{file}`", found))
    return "\n".join([*lines, row("all", total)])


def counted(verdicts: list[Verdict], same: set[tuple[str, str, str]]) -> Counter[str]:
    """How many were killed, are equivalent, survived."""
    found: Counter[str] = Counter()
    for one in verdicts:
        killed = one.status.startswith("killed")
        equal = not killed and (one.file, one.before, one.after) in same
        found["killed" if killed else "equivalent" if equal else "survived"] += 1
        found["time"] += one.status == "killed: time"
    return found


def row(name: str, found: Counter[str]) -> str:
    """One line of the table."""
    judged_on = found["killed"] + found["survived"]
    score = f"{100 * found['killed'] / judged_on:.1f} %" if judged_on else "–"
    numbers = [judged_on + found["equivalent"], found["killed"], found["time"], found["equivalent"]]
    return f"| {name} | {' | '.join(map(str, numbers))} | {found['survived']} | {score} |"


def main() -> int:
    """Try them, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description="Small faults in release/.")
    parser.add_argument("--module", default="", help="one file of release/, without .py")
    parser.add_argument("--sample", type=int, default=8, help="mutants of each file; 0 for all")
    parser.add_argument("--seed", default="faults on purpose")
    parser.add_argument("--cover", action="store_true", help="find again which tests run which lines")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--survivors", action="store_true", help="try again only what survived")
    parser.add_argument("--doubt", action="store_true", help="try also what the page calls equivalent")
    options = parser.parse_args()
    if options.cover or not covering.WRITTEN.is_file():
        cover()
    known = covering.read()
    written = PLACE / "verdicts.json"
    before = [] if options.again or not written.is_file() else json.loads(written.read_text("utf-8"))
    verdicts = {one["name"]: Verdict(**one) for one in before}
    if options.survivors:
        verdicts = {name: one for name, one in verdicts.items() if one.status.startswith("killed")}
    folder = ROOT / "src" / "sottovoce" / ROOM
    files = [path for path in sorted(folder.glob("*.py")) if options.module in ("", path.stem)]
    files.sort(key=lambda path: path.name not in WHOLE)
    same = equivalents(PAGE.read_text(encoding="utf-8"))
    preload()
    bench = Bench(PLACE / "copy")
    if not verdicts:
        every = sorted({test for lines in known.lines.values() for tests in lines.values() for test in tests})
        status, last = bench.run(f"{ROOM}/exact.py", None, within(every, {}), 1800)
        if status != "survived":  # then every mutant would seem to be killed
            print(f"the tests fail without a mutant: {last}; COVER=1 finds the tests again")
            return 1
    for path in files:
        mutants = chosen(path.name, path.read_text(encoding="utf-8"), options.sample, options.seed)
        mutants = [one for one in mutants if one.name not in verdicts]
        for one in judged(bench, mutants, known, path.name, set() if options.doubt else same):
            verdicts[one.name] = one
            written.write_text(json.dumps([asdict(one) for one in verdicts.values()], indent=0), "utf-8")
            if not one.status.startswith("killed") and (one.file, one.before, one.after) not in same:
                print(f"{one.name} {one.status}: {one.before}  →  {one.after}", flush=True)
    wanted = [one for one in verdicts.values() if one.file in {path.name for path in files}]
    text = table(wanted, same)
    (PLACE / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


def cover() -> None:
    """Run the tests of the room once and write down which lines each of them runs."""
    place = {"MUTATED": str(ROOT / "src" / "sottovoce" / ROOM), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutation.covering", "-p", "no:xdist"]
    subprocess.run([*command, "-m", EVERYDAY, *TESTS], cwd=ROOT, env={**os.environ, **place}, check=True)


if __name__ == "__main__":
    sys.exit(main())
