"""Small tables for notebooks: names as text, numbers with a bar behind them, on light and on dark pages."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

LISTED = 20
"""Rows that a notebook shows of a long list."""
_CELL = "padding:.15em .6em;white-space:nowrap"


def bar(value: float) -> str:
    """A bar as wide as the value, between 0 and 1, behind the number; faint on light and on dark."""
    width = 100 * min(max(value, 0.0), 1.0) if math.isfinite(value) else 100
    return f";background:linear-gradient(90deg,rgba(0,114,178,.3) {width:.1f}%,transparent {width:.1f}%)"


def facts(title: str, rows: Sequence[tuple[str, object]]) -> str:
    """A card: a title, and a name and a value in each row."""
    lines = "".join(
        f'<tr><td style="{_CELL};text-align:left;opacity:.75">{html.escape(name)}</td>'
        f'<td style="padding:.15em .6em;text-align:left;max-width:46em">{html.escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f"<table>{_caption(title)}<tbody>{lines}</tbody></table>"


def _caption(title: str) -> str:
    return f'<caption style="text-align:left;padding:.15em .6em">{html.escape(title)}</caption>'


def listed(
    title: str, head: Sequence[str], rows: Sequence[Sequence[object]], widths: Sequence[float], more: int = 0
) -> str:
    """A table whose second column has a bar of the stated width; `more` rows are left out."""
    names = "".join(
        f'<th style="{_CELL};text-align:{"left" if i == 0 else "right"}">{html.escape(name)}</th>'
        for i, name in enumerate(head)
    )
    body = []
    for row, width in zip(rows, widths, strict=True):
        cells = [
            f'<td style="{_CELL};text-align:{"left" if i == 0 else "right"}{bar(width) if i == 1 else ""}">'
            f"{html.escape(str(cell))}</td>"
            for i, cell in enumerate(row)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>")
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return (
        f"<table>{_caption(title)}<thead><tr>{names}</tr></thead><tbody>{''.join(body)}</tbody></table>{rest}"
    )
