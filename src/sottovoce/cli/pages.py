"""A document in the terminal: Markdown with tables that stay readable at eighty columns, and code to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

WIDEST, PLAIN = 100, 80
"""Columns of a page on a wide terminal, and of one that goes into a file or a pipe."""
_STYLES = Theme({"markdown.code": "cyan", "markdown.h1": "bold underline", "markdown.h2": "bold"})


def print_page(console: Console, text: str) -> None:
    """Print a document: with styles on a terminal, else as plain text."""
    page = _Page(text, hyperlinks=False)
    if console.is_terminal:
        with console.use_theme(_STYLES):
            console.print(page, width=min(console.width, WIDEST), crop=False)
        return
    with console.capture() as held:
        console.print(page, width=PLAIN, crop=False)
    for line in held.get().splitlines():
        console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)


class _Heading(Heading):
    """A heading on the left; in plain text, where nothing is bold, it is underlined."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text
        rule = {"h1": "=", "h2": "-"}.get(self.tag)
        if rule and not console.is_terminal:
            yield Text(rule * min(self.text.cell_len, options.max_width))


class _Code(CodeBlock):
    """Code as it stands, indented, without a background: it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in str(self.text).rstrip().splitlines():
            yield Text(f"    {line}", no_wrap=True, overflow="ignore", style="markdown.code")


class _Table(TableElement):
    """Columns where every word and number fits; otherwise a block for each row, a line for each cell."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = [cell.content for cell in self.header.row.cells] if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in (self.body.rows if self.body else [])]
        columns = list(zip(*rows, strict=True))
        for gap in (2, 1):
            room = options.max_width - gap * (len(head) - 1)
            widths = fitted_widths(
                list(map(_narrowest, head, columns)), list(map(_widest, head, columns)), room
            )
            if widths:
                yield _side_by_side(head, rows, widths, gap)
                return
        yield from _stacked(head, rows)


def fitted_widths(narrowest: list[int], widest: list[int], room: int) -> list[int]:
    """Widths of columns that fill at most the room: the widest gives way first; none if there is no way.

    >>> fitted_widths([3, 5], [4, 30], 20)
    [4, 16]
    >>> fitted_widths([3, 5], [4, 30], 7)
    []
    """
    widths = list(widest)
    while sum(widths) > room:
        loose = [k for k, width in enumerate(widths) if width > narrowest[k]]
        if not loose:
            return []
        widths[max(loose, key=lambda k: widths[k])] -= 1
    return widths


def _side_by_side(head: list[Text], rows: list[list[Text]], widths: list[int], gap: int) -> Table:
    shown = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for heading, cell, width in zip(head, rows[0], widths, strict=True):
        name = heading.copy()
        name.stylize("bold")
        shown.add_column(name, justify=cell.justify or "left", width=width)
    tall = any(cell.cell_len > width for row in rows for cell, width in zip(row, widths, strict=True))
    for k, row in enumerate(rows):
        if k and tall:  # rows of several lines stand apart
            shown.add_row()
        shown.add_row(*row)
    return shown


def _stacked(head: list[Text], rows: list[list[Text]]) -> RenderResult:
    for row in rows:
        first = row[0].copy()
        first.justify = "left"
        first.stylize("bold")
        yield first
        cells = Table.grid(padding=(0, 2, 0, 0))
        for name, cell in zip(head[1:], row[1:], strict=True):
            value = cell.copy()
            value.justify = "left"
            cells.add_row(Text(name.plain, style="dim"), value)
        yield Padding(cells, (0, 0, 1, 2))


def _narrowest(heading: Text, cells: Sequence[Text]) -> int:
    """A column of numbers, which stand on the right, is not broken; other cells are, between words."""
    body = _longest_word(cells)
    if cells and cells[0].justify == "right":
        body = max(cell.cell_len for cell in cells)
    return max(body, _longest_word([heading]))


def _widest(heading: Text, cells: Sequence[Text]) -> int:
    return max(cell.cell_len for cell in (heading, *cells))


def _longest_word(cells: Sequence[Text]) -> int:
    return max((cell_len(word) for cell in cells for word in cell.plain.split()), default=1)


class _Page(Markdown):
    """Markdown with the elements above."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _Table,
    }
