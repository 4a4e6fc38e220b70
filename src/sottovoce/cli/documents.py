"""The documents that `sottovoce help` shows: the topics, where the files are, and one section of a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ..errors import ParameterError
from .lazily import COMMANDS

PACKAGED = Path(__file__).with_name("docs")
"""Where the documents are in an installed package: pyproject.toml puts them there."""
IN_CHECKOUT = Path(__file__).resolve().parents[3] / "docs"
"""Where they are in a checkout."""


@dataclass(frozen=True)
class Topic:
    """A document, or the section of it that stands under a heading."""

    file: str
    heading: str | None = None


TOPICS = {
    "tutorial": Topic("tutorial.md"),
    "budget": Topic("tutorial.md", "7. Release for a panel, within a budget"),
    "choosing": Topic("choosing.md"),
    "samplers": Topic("choosing.md", "The samplers"),
    "targets": Topic("choosing.md", "Let it choose"),
    "epsilon": Topic("choosing.md", "Choosing ε"),
    "tables": Topic("tables.md"),
    "public-prior": Topic("tables.md", "A prior must be public"),
    "collecting": Topic("collecting.md"),
    "estimating": Topic("estimating.md"),
    "poisoning": Topic("estimating.md", "Poisoning"),
    "guarantees": Topic("guarantees.md"),
    "privacy": Topic("guarantees.md", "The claim"),
    "groups": Topic("guarantees.md", "Groups are published in clear"),
    "shuffling": Topic("guarantees.md", "What shuffling adds"),
    "not-covered": Topic("guarantees.md", "What is not covered"),
    "manners": Topic("manners.md"),
    "reading": Topic("manners.md", "Reading"),
    "progress": Topic("manners.md", "Progress"),
    "exit-codes": Topic("manners.md", "Exit codes"),
    "format": Topic("format.md"),
    "notation": Topic("notation.md"),
    "policy": Topic("policy.md"),
}
"""What can be asked for beside the commands: documents, each followed by sections of it."""

_HEADING = re.compile(r"(#+) +(.+?) *#* *$")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def find_documents() -> Path | None:
    """The folder of the documents: the packaged one, the checkout's, or none."""
    if PACKAGED.is_dir():
        return PACKAGED
    return IN_CHECKOUT if (IN_CHECKOUT / "manners.md").is_file() else None


def find_topic(name: str) -> Topic:
    """The topic of this name; hyphens and underscores are the same, so are cases of letters."""
    meant = name.strip().lower().replace("_", "-")
    if meant in TOPICS:
        return TOPICS[meant]
    near = get_close_matches(meant, [*COMMANDS, *TOPICS], n=1)
    words = f"; did you mean {near[0]}?" if near else "."
    raise ParameterError(f"there is no topic {name!r}{words} See: sottovoce help")


def title(topic: Topic) -> str:
    """What a topic is about, in the document's own words."""
    if topic.heading is not None:
        return re.sub(r"^\d+\. ", "", topic.heading).replace("`", "")
    first = _text(topic).partition("\n")[0]
    return first.lstrip("# ").replace("`", "")


def markdown(topic: Topic) -> str:
    """The text of a topic for a terminal: links and pictures as words, comments left out."""
    return _in_words(_section(_COMMENT.sub("", _text(topic)), topic), topic.file)


def _text(topic: Topic) -> str:
    folder = find_documents()
    if folder is None:
        raise ParameterError(
            "the documents are not part of this installation: install it again, or read them in docs/"
        )
    return (folder / topic.file).read_text(encoding="utf-8")


def _section(text: str, topic: Topic) -> str:
    """From the heading to the next one that is as high."""
    if topic.heading is None:
        return text
    level = 0
    found: list[str] = []
    for line, heading in zip(text.splitlines(), _headings(text), strict=True):
        if heading is not None:
            if found and heading[0] <= level:
                break
            if heading[1] == topic.heading:
                level = heading[0]
        if level:
            found.append(line)
    if not found:
        raise ParameterError(f"{topic.file} has no section {topic.heading!r}: the package is damaged")
    return "\n".join(found) + "\n"


def _headings(text: str) -> list[tuple[int, str] | None]:
    """For every line its level and words if it is a heading; what stands in a block of code is none."""
    found: list[tuple[int, str] | None] = []
    for line, code in zip(text.splitlines(), _in_code(text), strict=True):
        match = None if code else _HEADING.match(line)
        found.append((len(match[1]), match[2]) if match else None)
    return found


def _in_code(text: str) -> list[bool]:
    """For every line whether it belongs to a block of code between fences."""
    found, inside = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        found.append(inside or fence)
        inside ^= fence
    return found


def _in_words(text: str, file: str) -> str:
    """Links to other documents name the topic to ask for; pictures say what they show."""
    lines = zip(text.splitlines(), _in_code(text), strict=True)
    return "\n".join(line if code else _LINK.sub(lambda m: _said(m, file), line) for line, code in lines)


def _said(link: re.Match[str], file: str) -> str:
    picture, words, target = link.groups()
    if picture:
        return f"(picture: {words})"
    if "://" in target:
        return words if words == target else f"{words} ({target})"
    document, _, anchor = target.partition("#")
    for name, topic in reversed(TOPICS.items()):  # whole documents last: a section says more
        where = _anchor(topic.heading) if topic.heading else anchor
        if document == topic.file != file and anchor == where:
            return f"{words} (help {name})"
    whole = next((name for name, one in TOPICS.items() if one == Topic(document)), None)
    return words if whole is None or document == file else f"{words} (help {whole})"


def _anchor(heading: str) -> str:
    """How a heading is named in a link."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")
