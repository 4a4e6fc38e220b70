"""Small tables, as text and for notebooks."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

LISTED = 20
"""Rows that a notebook shows of a long list."""
_CELL = "padding:.15em .6em;white-space:nowrap"


def number(value: float | None) -> str:
    """Format with four digits that stay readable from 1e-9 to 1e9; a dash where there is no number."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "∞"
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3g}"


def facts(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """A card: a title, and a name and a value in each row."""
    lines = "".join(
        f'<tr><td style="{_CELL};text-align:left;opacity:.75">{html.escape(name)}</td>'
        f'<td style="padding:.15em .6em;text-align:left;max-width:46em">{html.escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f"<table>{_caption(title)}<tbody>{lines}</tbody></table>"


def _caption(title: str) -> str:
    if not title:
        return ""
    return f'<caption style="text-align:left;padding:.15em .6em">{html.escape(title)}</caption>'


class Described:
    """A result of a few facts, which shows the same ones as text and in a notebook."""

    def facts(self) -> tuple[str, Sequence[tuple[str, object]]]:
        """A title, and a name and a value of each fact."""
        raise NotImplementedError

    def __repr__(self) -> str:
        title, rows = self.facts()
        return "\n  ".join([title, *(f"{name}: {value}" for name, value in rows)])

    def _repr_html_(self) -> str:
        return facts(*self.facts())


@dataclass(frozen=True)
class Listing:
    """A table to be shown: its head and cells as text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    more: int = 0  # rows that are left out
    bold: Sequence[bool] = ()

    def text(self) -> str:
        """The columns aligned, between the title and the note."""
        table = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        rest = f"and {self.more:,} more" if self.more > 0 else ""
        return "\n".join(line for line in (self.title, *lines, rest, self.note) if line)

    def html(self) -> str:
        """The same for a notebook, with some rows in bold."""
        sides = ["left", *["right"] * (len(self.head) - 1)]
        names = [
            f'<th style="{_CELL};text-align:{side}">{html.escape(name)}</th>'
            for name, side in zip(self.head, sides, strict=True)
        ]
        body = []
        for i, row in enumerate(self.rows):
            bold = ";font-weight:bold" if self.bold and self.bold[i] else ""
            cells = [
                f'<td style="{_CELL};text-align:{side}{bold}">{html.escape(cell)}</td>'
                for side, cell in zip(sides, row, strict=True)
            ]
            body.append(f"<tr>{''.join(cells)}</tr>")
        note = f"<p><strong>{html.escape(self.note)}</strong></p>" if self.note else ""
        rest = f"<p>and {self.more:,} more</p>" if self.more > 0 else ""
        return (
            f"<table>{_caption(self.title)}<thead><tr>{''.join(names)}</tr></thead><tbody>{''.join(body)}</tbody></table>"
            f"{rest}{note}"
        )


class Listed:
    """A result of several rows, which shows itself as a table, as text and in a notebook."""

    rows: Any  # a tuple of dataclasses

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict per row."""
        return [asdict(row) for row in self.rows]

    def listing(self) -> Listing:
        """The table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.listing().text()

    def _repr_html_(self) -> str:
        return self.listing().html()
