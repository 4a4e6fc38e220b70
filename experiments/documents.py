"""Tables inside documents, between markers, so that no number is typed by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sottovoce.demo import EPSILONS, averages, demo_comparison, demo_data

from . import choosing, synthetic

ROOT = Path(__file__).parent.parent


def demo_table() -> str:
    """The comparison that `sottovoce demo` prints, as Markdown."""
    head = ["sampler", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "keeps q"]
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * len(EPSILONS)}|:---:|"]
    for name, cells, keeps in averages(demo_comparison(demo_data())):
        lines.append(f"| `{name}` | {' | '.join(cells)} | {'yes' if keeps else 'no'} |")
    return "\n".join(lines)


BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "demo": ("docs/choosing.md", demo_table),
    "choosing": ("docs/choosing.md", choosing.table),
    "frontier": ("docs/choosing.md", choosing.frontier_table),
    "synthetic": ("docs/experiments.md", synthetic.table),
}


def rendered(name: str) -> tuple[Path, str, str]:
    """The document of a block, its text now, and its text with the block made anew."""
    file, make = BLOCKS[name]
    return ROOT / file, *replace_block(file, name, make())


def replace_block(file: str, name: str, content: str) -> tuple[str, str]:
    """The text of a document now, and with the block replaced."""
    text = (ROOT / file).read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{file} has no block named {name}")
    tight = "\n".join(_tight(line) for line in content.splitlines())
    return text, pattern.sub(lambda match: f"{match[1]}{tight}\n{match[2]}", text)


def _tight(line: str) -> str:
    """A row of a table without blanks around its bars; any other line as it is."""
    if not line.startswith("|"):
        return line
    return f"|{'|'.join(cell.strip() for cell in line.strip()[1:-1].split('|'))}|"


def write_block(file: str, name: str, content: str) -> None:
    """Put a block that needs data, or time, into its document."""
    (ROOT / file).write_text(replace_block(file, name, content)[1], encoding="utf-8")


def update() -> list[str]:
    """Rewrite every block that needs no data; return the documents that changed."""
    changed = []
    for name in BLOCKS:
        path, before, after = rendered(name)
        if before != after:
            path.write_text(after, encoding="utf-8")
            changed.append(path.name)
    return changed
