"""The black-box half of an audit on any function from rows of counts to categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sottovoce.records import Category
from sottovoce.release import audit

Draw = Callable[[Any], Any]


def black_box(
    draw: Draw,
    categories: Sequence[Category],
    indices: list[int],
    *,
    epsilon: float,
    draws: int,
    confidence: float = 0.999,
) -> audit.AuditReport:
    """A lower bound on the ε of a function, from its draws alone."""
    users = audit._users(indices, categories)
    batches = audit.by_rows(draw, users, len(categories))
    finding = audit.search("function", batches, users, draws, 1 - confidence, lambda done: None)
    return audit.AuditReport("function", epsilon, "holds", confidence, (finding,))
