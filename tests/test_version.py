"""One version: in the source, the package's metadata, the command, the changelog and the citation."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from command import run

import sottovoce as sv

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "sottovoce" / "__init__.py"


def stated() -> str:
    """The version that the source states."""
    (found,) = re.findall(
        r'^__version__ = "(\d+\.\d+\.\d+)"$', SOURCE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return str(found)


def test_the_source_is_the_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert "version" in project["project"]["dynamic"]
    assert ROOT / project["tool"]["hatch"]["version"]["path"] == SOURCE


def test_the_build_backend_reads_it() -> None:
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    assert ProjectMetadata(str(ROOT), PluginManager()).version == stated()


def test_the_package_and_the_command_say_it() -> None:
    if Path(sv.__file__).resolve() != SOURCE.resolve():
        pytest.skip("another copy of the package is imported")
    assert sv.__version__ == stated()
    assert run("--version").stdout.splitlines()[0] == f"sottovoce {stated()}"


def test_the_installation_says_it() -> None:
    installed = metadata.distribution("sottovoce")
    origin = (installed.read_text("direct_url.json") or "").replace("\\", "/")
    if ROOT.resolve().as_posix() + '"' not in origin:
        pytest.skip("what is installed here is another checkout, or a built package")
    assert installed.version == stated(), "the installation is older than the source: run make"


def test_the_javascript_client_says_it() -> None:
    package = json.loads((ROOT / "clients" / "js" / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == stated()


def test_the_changelog_begins_with_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d|unreleased)$", text, re.MULTILINE)
    assert len(sections) == len(re.findall(r"^## ", text, re.MULTILINE))
    assert sections[0][0] == stated()
    numbers = [tuple(map(int, version.split("."))) for version, _ in sections]
    assert numbers == sorted(set(numbers), reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


def test_the_citation_says_it() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [stated()]
    assert not re.search(r"doi|://", text)  # none was given, and none is invented
