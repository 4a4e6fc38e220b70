"""What `make` installs is pinned with hashes, names no registry, and is what runs here."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
NEEDS = (
    "cli",
    "collect",
    "dev",
    "spark",
    "browser",
    "docs",
    "fuzz",
)  # they share one environment; each of APART has its own
APART = ("lock", "lowest")
APART_FILES = {f"locks/{name}.txt" for name in APART}
LOWEST = ("numpy", "scipy", "duckdb")  # what locks/lowest.txt holds at the lowest version that is supported
FILES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("Makefile", "pyproject.toml", *(f"locks/{need}.txt" for need in (*NEEDS, *APART)))
}
LOCK_FILES = sorted(name for name in FILES if name.startswith("locks/"))

HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
ELSEWHERE = {
    "an address": re.compile(r"\w://|\bfile:|\b(?:[\w-]+\.)+(?:org|com|net|io|dev)\b"),
    "an index option": re.compile(
        r"--(?:extra-|default-)?index\b|\bindex[-]url\b|\bfind-links\b|\btrusted-host\b|_INDEX|\s-i\s|tool\.uv"
    ),
    "a path of one machine": re.compile(
        r"(?<![\w.)])/(?:home|root|tmp|usr|opt|var|etc|mnt|srv|work|Users|private)/|\b[A-Z]:\\"
    ),
}

Installed = Callable[[str], str | None]


def installed_here(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def logical_lines(text: str) -> list[str]:
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def pins(text: str) -> Iterator[tuple[str, Requirement | None]]:
    """Each line of a lock with its requirement, or with None if it is not one exact, hashed requirement."""
    for line in logical_lines(text):
        wanted, *hashes = re.split(r"\s+(?=--)", line)
        try:
            requirement = Requirement(wanted)
        except InvalidRequirement:
            yield wanted, None
            continue
        exact = re.fullmatch(r"==[^*,]+", str(requirement.specifier)) and not requirement.url
        hashed = hashes and all(HASH.fullmatch(word) for word in hashes)
        yield wanted, requirement if exact and hashed else None


def version(pin: Requirement) -> str:
    return str(pin.specifier).removeprefix("==")


def read_locks(files: Mapping[str, str]) -> tuple[dict[str, dict[str, Requirement]], list[str]]:
    locks: dict[str, dict[str, Requirement]] = {}
    faults = []
    for file in LOCK_FILES:
        locks[file] = {}
        for line, pin in pins(files[file]):
            if pin is None:
                faults.append(f"{file}: {line} is not an exact version with sha256 hashes")
                continue
            name = canonicalize_name(pin.name)
            others = [lock for other, lock in locks.items() if APART_FILES.isdisjoint((file, other))]
            before = [lock[name] for lock in others if name in lock]
            if name in locks[file] or any(
                one.marker is None or version(one) != version(pin) for one in before
            ):
                faults.append(f"{file}: {name} is pinned twice")
            locks[file][name] = pin
    return locks, faults


def without(project: dict[str, Any], extras: Collection[str]) -> dict[str, Any]:
    """The project as if it did not have these extras."""
    needs = project["project"]["optional-dependencies"]
    kept = {name: lines for name, lines in needs.items() if name not in extras}
    return {**project, "project": {**project["project"], "optional-dependencies": kept}}


def requirement_faults(project: dict[str, Any], pinned: Mapping[str, Requirement]) -> Iterator[str]:
    own = project["project"]["name"]
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["project"]["dependencies"], *(line for extra in extras for line in extra)]
    build = [Requirement(line) for line in project["build-system"]["requires"]]
    for requirement in (*map(Requirement, wanted), *build):
        pin = pinned.get(canonicalize_name(requirement.name))
        if requirement.name == own:
            continue
        if pin is None:
            yield f"{requirement} is not in the locks"
        elif not requirement.specifier.contains(version(pin), prereleases=True):
            yield f"{requirement} does not allow the locked {pin}"
    for requirement in build:
        if not re.fullmatch(r"==[^*,]+", str(requirement.specifier)):
            yield f"{requirement} builds the package and is not pinned"


def lowest_faults(project: dict[str, Any], lowest: Mapping[str, Requirement]) -> Iterator[str]:
    """The lowest versions are those that pyproject.toml names."""
    lines = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["tables"]]
    named = {requirement.name: requirement for requirement in map(Requirement, lines)}
    for name in LOWEST:
        floor = re.search(r">=([\d.]+)", str(named[name].specifier))
        if floor is None or name not in lowest or Version(version(lowest[name])) != Version(floor[1]):
            yield f"locks/lowest.txt does not hold the lowest version of {named[name]}"


def makefile_faults(text: str) -> Iterator[str]:
    if not re.search(r"^LOCKED\s*:= --require-hashes --only-binary :all:$", text, re.MULTILINE):
        yield "Makefile: LOCKED does not ask for hashes and wheels"
    for line in logical_lines(text):
        if not re.search(r"^@?.*(?:\$\(PIP\)|pip3? install)", line) or re.match(r"PIP\s*:=", line):
            continue
        from_lock = "$(LOCKED)" in line and re.search(r"(?:-r locks/[a-z]+\.txt)$", line)
        local = re.search(r"--no-index --no-deps --no-build-isolation -e \.$", line)
        if not (from_lock or local) or re.search(r"--no-binary (?!pyspark )", line):
            yield f"Makefile: {line} installs something without a hash"


def installed_faults(locks: Mapping[str, Mapping[str, Requirement]], installed: Installed) -> Iterator[str]:
    for need in NEEDS:
        for name, pin in locks[f"locks/{need}.txt"].items():
            found = installed(name)
            if pin.marker is not None and not pin.marker.evaluate():
                continue
            if found is None and need in ("cli", "collect", "dev"):
                yield f"{name} is not installed"
            if found is not None and found != version(pin):
                yield f"{name} {found} is installed, the lock says {version(pin)}"


def supply_faults(files: Mapping[str, str], installed: Installed) -> list[str]:
    locks, faults = read_locks(files)
    for file, text in files.items():
        for what, pattern in ELSEWHERE.items():
            faults += [f"{file} holds {what}: {found}" for found in pattern.findall(text)]
    project = tomllib.loads(files["pyproject.toml"])
    lowest = locks.pop("locks/lowest.txt")
    pinned = {name: pin for lock in locks.values() for name, pin in lock.items()}
    for these in (pinned, lowest):
        optional = set() if these is pinned else {"spark", "browser", "docs", "fuzz"}
        faults += requirement_faults(without(project, optional), these)
    faults += lowest_faults(project, lowest)
    faults += makefile_faults(files["Makefile"])
    faults += installed_faults(locks, installed)
    return faults


def test_what_make_installs_is_pinned_hashed_and_running_here() -> None:
    assert supply_faults(FILES, installed_here) == []


def test_every_lock_is_looked_at() -> None:
    assert sorted(f"locks/{path.name}" for path in (ROOT / "locks").iterdir()) == LOCK_FILES


def test_make_installs_again_when_a_lock_changes() -> None:
    stamps = {
        "$(SMALL)": "cli",
        "$(READY)": "dev",
        "$(SPARK)": "spark",
        "$(BROWSER)": "browser",
        "$(DOCS)": "docs",
        "$(FUZZ)": "fuzz",
        "$(LOCKER)/.ready": "lock",
        "$(MATRIX)/lowest/.ready": "lowest",
        "$(MATRIX)/%/.ready": "dev",
    }
    for stamp, need in stamps.items():
        assert re.search(rf"^{re.escape(stamp)}:.* locks/{need}\.txt", FILES["Makefile"], re.MULTILINE), stamp


PLANTED = [  # file, pattern, what it becomes, the fault that must be reported
    ("locks/cli.txt", r"numpy==.*\n(?:    --hash.*\n)+", "", "numpy>=2.0 is not in the locks"),
    ("locks/spark.txt", r"pyspark==.*\n(?:    --hash.*\n?)+", "", "pyspark>=4.0 is not in the locks"),
    ("locks/cli.txt", r"(scipy==\S+) \\\n(?:    --hash.*\n)+", r"\1\n", "scipy==.* is not an exact version"),
    ("locks/cli.txt", r"numpy==", "numpy>=", "numpy>=.* is not an exact version"),
    ("locks/cli.txt", r"numpy==2\.4\.6", "numpy==2.*", r"numpy==2\.\* is not an exact version"),
    ("locks/cli.txt", r"sha256:", "md5:", "click==.* is not an exact version"),
    ("locks/lock.txt", r"sha256:[0-9a-f]{4}", "sha256:", "==.* is not an exact version"),
    ("locks/cli.txt", r"numpy==\S+", "numpy==1.26.0", "numpy>=2.0 does not allow the locked numpy==1.26.0"),
    ("locks/dev.txt", r"\A", "-e .\n", r"-e \. is not an exact version"),
    ("locks/dev.txt", r"\A", "--index simple\n", "holds an index option"),
    ("locks/dev.txt", r"\A", "# made in /home/me/project\n", "holds a path of one machine"),
    ("locks/dev.txt", r"\A", "# from registry.example.org\n", "holds an address"),
    ("locks/browser.txt", r"playwright==\S+", "playwright @ https://host/p.whl", "holds an address"),
    ("locks/browser.txt", r"playwright==\S+", "numpy==2.0.0", "numpy is pinned twice"),
    ("locks/docs.txt", r"mkdocstrings==.*\n(?:    --hash.*\n?)+", "", "mkdocstrings.* is not in the locks"),
    ("locks/docs.txt", r"mkdocs==\S+", "numpy==2.0.0", "numpy is pinned twice"),
    ("locks/lowest.txt", r"duckdb==1\.5\.0", "duckdb==1.5.1", "does not hold the lowest version of duckdb"),
    ("locks/lowest.txt", r"numpy==.*\n(?:    --hash.*\n)+", "", "the lowest version of numpy>=2.0"),
    (
        "locks/lowest.txt",
        r"(scipy==\S+) \\\n(?:    --hash.*\n)+",
        r"\1\n",
        "scipy==.* is not an exact version",
    ),
    ("locks/lowest.txt", r"duckdb==\S+", "numpy==2.0.0", "numpy is pinned twice"),
    ("pyproject.toml", r"\"scipy>=1.13\"", '"scipy>=1.14"', "the lowest version of scipy>=1.14"),
    ("Makefile", r"-r locks/dev\.txt", "-i simple -r locks/dev.txt", "Makefile holds an index option"),
    ("Makefile", r"-r locks/dev\.txt", "-r /opt/dev.txt", "Makefile holds a path of one machine"),
    ("Makefile", r"-r locks/dev\.txt", "'numpy'", "installs something without a hash"),
    ("Makefile", r"\$\(LOCKED\) -r locks/dev\.txt", "-r locks/dev.txt", "installs something without a hash"),
    ("Makefile", r"--no-binary pyspark", "--no-binary :all:", "installs something without a hash"),
    ("Makefile", r"--no-index ", "", "installs something without a hash"),
    ("Makefile", r"--require-hashes ", "", "LOCKED does not ask for hashes"),
    ("pyproject.toml", r"hatchling==\S+\"", 'hatchling>=1.26"', "builds the package and is not pinned"),
    (
        "pyproject.toml",
        r"hatchling==\S+\"",
        'hatchling==1.26.0"',
        "hatchling==1.26.0 does not allow",
    ),
    ("pyproject.toml", r"\"ruff>=", '"no-such-tool", "ruff>=', "no-such-tool is not in the locks"),
    ("pyproject.toml", r"\"numpy>=2.0\"", '"numpy>=99"', "numpy>=99 does not allow the locked"),
    ("pyproject.toml", r"\Z", "[tool.uv]\n", "pyproject.toml holds an index option"),
    ("pyproject.toml", r"\Z", "# see ftp://host/simple\n", "pyproject.toml holds an address"),
]


@pytest.mark.full
@pytest.mark.parametrize(("file", "pattern", "planted", "fault"), PLANTED)
def test_a_planted_fault_is_reported(file: str, pattern: str, planted: str, fault: str) -> None:
    changed = re.sub(pattern, planted, FILES[file], count=1)
    assert changed != FILES[file]
    assert any(re.search(fault, line) for line in supply_faults({**FILES, file: changed}, installed_here))


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "found", "fault"),
    [
        ("numpy", "2.0.0", "numpy 2.0.0 is installed, the lock says"),
        ("hatchling", None, "hatchling is not installed"),
        ("pyspark", "3.5.0", "pyspark 3.5.0 is installed, the lock says"),
        ("pyspark", None, ""),  # Spark is installed on demand
        ("colorama", None, ""),  # its marker names another system
    ],
)
def test_another_version_than_the_lock_is_reported(name: str, found: str | None, fault: str) -> None:
    faults = supply_faults(FILES, lambda asked: found if asked == name else installed_here(asked))
    assert len(faults) == bool(fault)
    assert not fault or faults[0].startswith(fault)


@pytest.mark.parametrize("folder", ["page", "tests/browser", "tests/types"])
def test_what_npm_installs_is_pinned_with_hashes_and_names_no_registry(folder: str) -> None:
    text = (ROOT / folder / "package-lock.json").read_text(encoding="utf-8")
    own, *packages = json.loads(text)["packages"].values()
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages)
    assert "resolved" not in text
    assert all(version[0].isdigit() for version in own["devDependencies"].values())


def strangers(files: Mapping[str, int]) -> list[str]:
    """Files that do not belong here: data of another kind than text and pictures, or above 400,000 bytes."""
    texts = "py pyi md txt json toml yml yaml css js jsx mjs cjs ts cff csv html typed v ml sh conf service"
    kinds = {"", ".png", ".svg", *(f".{kind}" for kind in texts.split())}
    return [name for name, size in files.items() if Path(name).suffix not in kinds or size > 400_000]


def test_the_tree_holds_no_data_of_others() -> None:
    """Private and borrowed data stay outside; a pickle of them was committed once."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    names = [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]
    assert not strangers({name: (ROOT / name).stat().st_size for name in names})
    assert strangers({"ml.pkl": 10, "docs/a.md": 10, "docs/large.md": 400_001}) == ["ml.pkl", "docs/large.md"]


def container_faults(text: str) -> Iterator[str]:
    """What an image would take by a name that may mean something else tomorrow."""
    lines = logical_lines(text)
    for line in lines:
        if line.startswith("FROM ") and not re.fullmatch(
            r"FROM [\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}( AS \w+)?", line
        ):
            yield f"{line} names an image without its digest"
    for command in (part for line in lines for part in line.split("&&") if "pip install" in part):
        locked = re.search(r"--require-hashes --only-binary :all:( -r locks/[a-z]+\.txt)+\s*$", command)
        own = re.search(r"--no-index --no-deps --no-build-isolation \.\s*$", command)
        if not (locked or own):
            yield f"{command.strip()} installs something without a hash"


CONTAINER = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")


def test_the_container_has_one_base_by_its_digest_and_installs_with_hashes() -> None:
    assert list(container_faults(CONTAINER)) == []
    assert len({line.split()[1] for line in logical_lines(CONTAINER) if line.startswith("FROM ")}) == 1
    assert len(list(container_faults(re.sub(r"@sha256:\w+", "", CONTAINER)))) == 2
    for option in ("--require-hashes", "--no-index"):
        assert len(list(container_faults(CONTAINER.replace(option, "")))) == 1


def test_what_the_container_installs_is_all_that_a_collector_needs() -> None:
    """Whatever the requirements of the extra require in turn, on the Python of the image."""
    (python,) = set(re.findall(r"^FROM python:(\d+\.\d+)[\w.-]*@", CONTAINER, re.MULTILINE))
    locks, _ = read_locks(FILES)
    named = re.findall(r"-r (locks/[a-z]+\.txt)", CONTAINER)
    system = {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": "linux"}
    system |= {"platform_system": "Linux", "implementation_name": "cpython", "extra": ""}
    there = {
        name
        for file in named
        for name, pin in locks[file].items()
        if pin.marker is None or pin.marker.evaluate(system)
    }
    extras = tomllib.loads(FILES["pyproject.toml"])["project"]["optional-dependencies"]
    waiting = [line for need in ("collect", "cli", "tables") for line in extras[need]]
    needed = set[str]()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or requirement.marker.evaluate(system)
        if wanted and name not in needed | {"sottovoce"}:
            needed.add(name)
            waiting += metadata.requires(name) or []
    assert needed <= there
    assert not there & {"pytest", "mypy", "ruff"}


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_make_targets_and_pin_actions_by_hash(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+)[a-z% -]*:", FILES["Makefile"], re.MULTILINE)) | {"matrix-lowest"}
    text = path.read_text(encoding="utf-8")
    called = [
        word for line in re.findall(r"run: make (.*)", text) for word in line.split() if "=" not in word
    ]
    assert called
    assert set(called) <= targets
    assert all(re.fullmatch(r"[0-9a-f]{40}", pin) for pin in re.findall(r"uses: \S+@(\S+)", text))
