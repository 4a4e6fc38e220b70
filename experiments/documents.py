"""Tables inside documents, between markers, so that no number is typed by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sottovoce.demo import EPSILONS, averages, demo_comparison, demo_data

from . import choosing

ROOT = Path(__file__).parent.parent


def demo_table() -> str:
    """The comparison that `sottovoce demo` prints, as Markdown."""
    head = ["sampler", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "keeps q"]
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * len(EPSILONS)}|:---:|"]
    for name, cells, keeps in averages(demo_comparison(demo_data())):
        lines.append(f"| `{name}` | {' | '.join(cells)} | {'yes' if keeps else 'no'} |")
    return "\n".join(lines)


BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "demo": ("README.md", demo_table),
    "choosing": ("docs/choosing.md", choosing.table),
}


def rendered(name: str) -> tuple[Path, str, str]:
    """The document of a block, its text now, and its text with the block made anew."""
    file, make = BLOCKS[name]
    path = ROOT / file
    text = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{file} has no block named {name}")
    return path, text, pattern.sub(lambda match: f"{match[1]}{make()}\n{match[2]}", text)


def update() -> list[str]:
    """Rewrite every block; return the documents that changed."""
    changed = []
    for name in BLOCKS:
        path, before, after = rendered(name)
        if before != after:
            path.write_text(after, encoding="utf-8")
            changed.append(path.name)
    return changed
