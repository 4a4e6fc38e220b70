"""The house style of docstrings as Markdown. Plain text in, plain text out; needs no other package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

SECTION = re.compile(r"[A-Z][a-z]+$")
"""A line such as `Guarantees` or `Raises`, with indented lines below it."""

ENTRY = re.compile(r"(\w+(?:, \w+)*): (.+)")
"""The beginning of an entry of a section: names, a colon, words."""

CODE = re.compile(r"`([A-Za-z_]\w*)`")


def as_markdown(docstring: str, known: Iterable[str] = ()) -> str:
    """A docstring with headings, lists and code blocks; names in `known` become links.

    >>> print(as_markdown("Say how.\\n\\nRaises\\n    ValueError: never.\\n\\n>>> 1 + 1\\n2"))
    Say how.
    <BLANKLINE>
    **Raises**
    <BLANKLINE>
    - `ValueError`: never.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    names = frozenset(known)
    return "\n\n".join(_linked(block, names) for part in _parts(docstring) for block in part)


def _parts(docstring: str) -> Iterator[list[str]]:
    """The blocks of each part that stands between empty lines."""
    for part in re.split(r"\n\s*\n", docstring.strip("\n")):
        lines = part.split("\n")
        if lines[0].startswith(">>>"):
            yield ["\n".join(["```pycon", *lines, "```"])]
        elif len(lines) > 1 and SECTION.match(lines[0]) and lines[1].startswith("    "):
            yield [f"**{lines[0]}**", *_section([line[4:] for line in lines[1:]])]
        elif all(line.startswith("    ") for line in lines):
            yield ["\n".join(["```python", *(line[4:] for line in lines), "```"])]
        else:
            yield [part]


def _section(lines: list[str]) -> list[str]:
    """The body of a section: a list where it has entries, otherwise the sentences as they are."""
    if not ENTRY.match(lines[0]):
        return ["\n".join(lines)]
    entries: list[str] = []
    for line in lines:
        found = ENTRY.match(line)
        if found:
            shown = ", ".join(f"`{name}`" for name in found[1].split(", "))
            entries.append(f"- {shown}: {found[2]}")
        else:
            entries[-1] += f" {line.strip()}"
    return ["\n".join(entries)]


def _linked(block: str, known: frozenset[str]) -> str:
    """The names of the library in a block become references to their entry."""
    if block.startswith("```"):
        return block
    return CODE.sub(
        lambda found: f"[{found[0]}][sottovoce.{found[1]}]" if found[1] in known else found[0], block
    )
