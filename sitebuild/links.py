"""Where a file of the repository stands in the site, and links that lead there. Needs no other package.

The Markdown files link to each other as they lie in the repository, so that they can be read there. In the
site README.md is the first page and docs/ is the root. What lies elsewhere goes below repository/.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages that do not lie in docs/, and what they are called in the site."""

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")

ELSEWHERE = re.compile(
    r"<(?:script|link|img|source|iframe)\b[^>]*\s(?:src|href)=[\"']?(?:https?:)?//[^\"'\s>]*"
    r"|(?:url\(|@import )[\"']?(?:https?:)?//[^\"')\s]*"
)
"""A script, style, font or picture that a page would fetch from another host."""


def place_of(path: str) -> str:
    """What a file of the repository is called in the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"repository/{path}")


def target_of(source: str, link: str) -> str | None:
    """The file of the repository that a link means; None for an address of the web."""
    if "://" in link or link.startswith("mailto:"):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if (ROOT / path).is_dir():
        path = posixpath.join(path, "README.md")
    if path.startswith("..") or not (ROOT / path).is_file():
        raise FileNotFoundError(f"{source} links to {link}, which is no file of the repository")
    return path


def targets_of(source: str, text: str) -> list[str]:
    """All files of the repository that a page links to."""
    return [target for found in LINK.finditer(text) if (target := target_of(source, found[2]))]


def rewritten(source: str, text: str) -> str:
    """The text with its links as they are in the site."""
    here = posixpath.dirname(place_of(source)) or "."

    def moved(found: re.Match[str]) -> str:
        target = target_of(source, found[2])
        link = found[2] if target is None else posixpath.relpath(place_of(target), here)
        return f"{found[1]}{link}{found[3]}"

    return LINK.sub(moved, text)
