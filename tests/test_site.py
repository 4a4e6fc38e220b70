"""The site of `make docs`, as far as it can be checked without mkdocs: names, pages, links, assets."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

import sottovoce as sv
from sitebuild.house_style import as_markdown
from sitebuild.links import ELSEWHERE, PAGES, rewritten, target_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    else:
        yield value


def test_every_public_name_has_one_entry_in_the_reference() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")]
    entries = [name for page in pages for name in re.findall(r"^::: sottovoce\.(\w+)$", page, re.MULTILINE)]
    assert sorted(entries) == sorted([*sv.__all__, "spark"])


def test_the_list_of_the_reference_names_each_page_and_its_entries() -> None:
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[[^]]+\]\((\w+\.md)\) \| (.*) \|$", index, re.MULTILINE))
    for path in (DOCS / "reference").glob("*.md"):
        if path.name != "index.md":
            entries = re.findall(r"^::: sottovoce\.(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            named = re.findall(r"`(?:sottovoce\.)?(\w+)`", listed.pop(path.name))
            assert named == entries, path.name
    assert listed == {}


def test_the_navigation_holds_every_page_once() -> None:
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(leaves(CONFIG["nav"])) == sorted([*pages, *PAGES.values(), "try.html"])
    for path in PAGES:
        assert (ROOT / path).is_file(), path


def test_the_site_asks_no_other_host() -> None:
    assert CONFIG["theme"]["font"] is False
    assert not [text for text in leaves(CONFIG) if isinstance(text, str) and re.search(r"//|^www\.", text)]
    assert "offline" in CONFIG["plugins"]
    own = [*CONFIG["extra"]["polyfills"], *CONFIG["extra_css"], *CONFIG.get("extra_javascript", [])]
    assert any("iframe-worker" in name for name in own)  # else the offline plugin adds one from elsewhere
    for name in own:
        assert "//" not in re.sub(r"^//.*", "", (DOCS / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for path in DOCS.rglob("*.svg"):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in text, path.name


@pytest.mark.parametrize(
    ("page", "foreign"),
    [
        ('<script src="https://host/a.js"></script>', True),
        ("<script src=//host/a.js></script>", True),
        ('<link rel="stylesheet" href="https://host/a.css">', True),
        ('<img alt="x" src="http://host/a.png">', True),
        ("@font-face { src: url('https://host/f.woff2') }", True),
        ('<a href="https://host/page">a link is not fetched</a>', False),
        ('<script src="../javascripts/a.js"></script>', False),
        ('<img alt="see https://host" src="images/a.png">', False),
    ],
)
def test_a_foreign_asset_is_seen(page: str, foreign: bool) -> None:
    assert bool(ELSEWHERE.search(page)) == foreign


@pytest.mark.parametrize(
    ("source", "link", "moved"),
    [
        ("README.md", "docs/choosing.md#which-estimator", "choosing.md#which-estimator"),
        ("README.md", "docs/images/demo.png", "images/demo.png"),
        ("README.md", "SECURITY.md", "security.md"),
        ("docs/guarantees.md", "../SECURITY.md", "security.md"),
        ("docs/tutorial.md", "tables.md", "tables.md"),
        ("docs/reference/tables.md", "../tables.md", "../tables.md"),
        ("docs/reference/tables.md", "../../README.md", "../index.md"),
        ("docs/guarantees.md", "../tests/vectors", "repository/tests/vectors/README.md"),
        ("docs/guarantees.md", "../LICENSE", "repository/LICENSE"),
        ("docs/guarantees.md", "#what-holds", "#what-holds"),
        ("README.md", "https://host/page", "https://host/page"),
    ],
)
def test_links_lead_to_where_a_file_is_in_the_site(source: str, link: str, moved: str) -> None:
    assert rewritten(source, f"See [this]({link}).") == f"See [this]({moved})."


def test_a_link_to_nothing_stops_the_build() -> None:
    with pytest.raises(FileNotFoundError):
        target_of("README.md", "docs/no-such-page.md")
    with pytest.raises(FileNotFoundError):
        target_of("README.md", "../outside.md")


def docstrings() -> Iterator[tuple[str, str]]:
    for name in sv.__all__:
        value = getattr(sv, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield name, inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for method, one in vars(value).items():
                written = inspect.isroutine(one) or isinstance(one, property | cached_property)
                if written and not method.startswith("_"):
                    yield f"{name}.{method}", inspect.getdoc(one) or ""


def test_docstrings_keep_their_words_and_doctests_are_code() -> None:
    for name, text in docstrings():
        shown = as_markdown(text)
        words = re.sub(r"^```\w*$", "", shown, flags=re.MULTILINE)
        assert re.findall(r"\w+", words) == re.findall(r"\w+", text), name
        outside = re.sub(r"^```\w+\n.*?^```$", "", shown, flags=re.DOTALL | re.MULTILINE)
        assert ">>>" not in outside, name
        assert not re.search(r"^    ", outside, re.MULTILINE), name  # Markdown would take it for code


def test_sections_become_lists_and_names_links() -> None:
    raises = "Raises\n    PriorError: zero,\n        or less.\n    TableError: no."
    text = f"As `Prior`.\n\n{raises}\n\nGuarantees\n    It holds."
    assert as_markdown(text, ["Prior", "PriorError"]) == (
        "As [`Prior`][sottovoce.Prior].\n\n**Raises**\n\n"
        "- [`PriorError`][sottovoce.PriorError]: zero, or less.\n- `TableError`: no.\n\n"
        "**Guarantees**\n\nIt holds."
    )
