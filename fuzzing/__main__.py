"""`make fuzz SECONDS=600`: every target for its part of the seconds, then what was run, reached and found.

    python -m fuzzing --seconds 600 [--target NAME] [--keep]

With Atheris (Linux; `make fuzz` installs it) the targets are guided by what they cover. Without it the same
targets run on blind mutants of the same inputs, and that is said. The exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from . import clients
from .target import PLACE, Finding, Target, in_memory, run_blindly
from .targets import TARGETS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "fuzz"
LEAST_SECONDS = 5
_DONE = re.compile(r"^#(\d+)\s+\S+.*?cov: (\d+) ft: (\d+) corp: (\d+)", re.MULTILINE)
_RUNS = re.compile(r"^stat::number_of_executed_units:\s+(\d+)|^Done (\d+) runs", re.MULTILINE)


@dataclass(frozen=True)
class Told:
    """What a target came to."""

    name: str
    seconds: float
    executions: int
    edges: int
    inputs: int
    reached: str
    findings: int

    def row(self) -> str:
        """A line of the table."""
        cells = [
            self.name,
            f"{self.seconds:.0f}",
            f"{self.executions:,}",
            self.edges or "–",
            self.inputs,
            self.reached,
        ]
        return f"| {' | '.join(map(str, cells))} | {self.findings} |"


HEAD = "| target | seconds | executions | edges | inputs | lines reached | findings |\n" + "|---" * 7 + "|"


def main() -> int:
    """Run the targets one after the other."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description="Fuzz what reads from outside.")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--target", choices=[*TARGETS, clients.NAME])
    parser.add_argument("--keep", action="store_true", help="keep a small choice of inputs in the tree")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    guided = find_spec("atheris") is not None
    if not guided:
        print("Atheris is not installed: the targets run on blind mutants")
    weights = {target.name: target.weight for target in TARGETS.values()} | {clients.NAME: 1}
    wanted = [options.target] if options.target else list(weights)
    whole = sum(weights[name] for name in wanted)
    found = []
    print(HEAD, flush=True)
    for name in wanted:
        seconds = max(options.seconds * weights[name] // whole, LEAST_SECONDS)
        told = (
            _clients(seconds) if name == clients.NAME else _run(TARGETS[name], seconds, guided, options.keep)
        )
        print(told.row(), flush=True)
        found.append(told)
    total = Told(
        "all", sum(one.seconds for one in found), sum(one.executions for one in found), 0,
        sum(one.inputs for one in found), "", sum(one.findings for one in found),
    )  # fmt: skip
    print(total.row())
    if total.findings:
        print(f"findings: see {FOLDER / 'findings'}")
    return int(total.findings > 0)


def _run(target: Target, seconds: int, guided: bool, keep: bool) -> Told:
    before = _findings(target.name)
    begin = time.monotonic()
    executions = edges = 0
    while (left := int(seconds - (time.monotonic() - begin))) >= 1:
        if not guided:
            executions += _blindly(target, begin, seconds)
            break
        done, edges = _guided(target.name, left)
        executions += done  # a hang or too much memory ends the process, and another one goes on
    taken = time.monotonic() - begin
    command = [
        sys.executable,
        "-m",
        "fuzzing.replay",
        target.name,
        str(FOLDER),
        *(["--keep"] if keep else []),
    ]
    shown = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
    reached = "–"
    inputs = 0
    if shown.returncode == 0:
        plain = json.loads(shown.stdout.splitlines()[-1])
        inputs = plain["inputs"]
        reached = f"{plain['reached']} of {plain['lines']} ({100 * plain['reached'] / plain['lines']:.0f} %)"
    return Told(target.name, taken, executions, edges, inputs, reached, len(_findings(target.name) - before))


def _guided(name: str, seconds: int) -> tuple[int, int]:
    """Executions and edges of one process."""
    command = [sys.executable, "-m", "fuzzing.guided", name, str(seconds), str(FOLDER)]
    log = FOLDER / f"{name}.log"
    with log.open("wb") as file:
        subprocess.run(command, cwd=ROOT, env=_environment(), stdout=file, stderr=file, check=False)
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = _DONE.findall(text)
    if not lines:
        raise RuntimeError(f"the target {name} did not start: see {log}")
    runs = [int(a or b) for a, b in _RUNS.findall(text)]
    return max([int(lines[-1][0]), *runs]), int(lines[-1][1])


def _blindly(target: Target, begin: float, seconds: int) -> int:
    executions = number = 0
    while time.monotonic() - begin < seconds:
        number += 1
        try:
            executions += run_blindly(target, 50, str(number)).total()
        except Finding as finding:
            place = FOLDER / "findings"
            place.mkdir(exist_ok=True)
            (place / f"{target.name}-blind-{number}.txt").write_text(str(finding), encoding="utf-8")
    return executions


def _clients(seconds: int) -> Told:
    begin = time.monotonic()
    folders = [FOLDER / "corpus" / name for name in ("mechanisms", "groups")]
    more = [path.read_bytes() for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    findings = 0
    told = "no Node: SKIPPED"
    executions = 0
    try:
        found = clients.run(seconds, str(os.getpid()), more)
        executions = found["files"] + found["draws"]
        if found:
            told = f"{found['files']:,} files, {found['accepted']:,} accepted, {found['draws']:,} draws"
    except Finding as finding:
        findings = 1
        (FOLDER / "findings").mkdir(exist_ok=True)
        (FOLDER / "findings" / f"{clients.NAME}.txt").write_text(str(finding), encoding="utf-8")
        told = "they disagree"
    return Told(clients.NAME, time.monotonic() - begin, executions, 0, len(more), told, findings)


def _findings(name: str) -> set[Path]:
    return {
        path
        for path in (FOLDER / "findings").glob(f"{name}-*")
        if path.suffix != ".txt" or "blind" in path.name
    }


def _environment() -> dict[str, str]:
    """Where the oracles of the tests are found."""
    places = [str(ROOT / "tests" / "support"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fuzzing-", dir=in_memory()) as place:
        os.environ[PLACE] = place
        sys.exit(main())
