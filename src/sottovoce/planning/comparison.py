"""A comparison: one row per group, ε, sampler and divergence, and the questions one asks of such a table."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .. import _validate
from .._html import bar
from ..prior import FROM_USERS

STATISTICS = ("mean", "median", "p90", "p99", "maximum", "worst_case")
BEST_POSSIBLE = "best possible"
"""The sampler's name in a row of the limit: what no ε-private sampler that keeps the prior can beat."""


@dataclass(frozen=True)
class ComparisonRow:
    """How one sampler serves one group of users in one divergence.

    `worst_case` is None in the row of the limit, which knows these users only. `above_limit` is how far
    mean + tail·maximum is above the proven lower bound of the limit, where the limit was asked for; it can
    be negative for a sampler that does not keep the prior.
    """

    group: str
    epsilon: float
    sampler: str
    divergence: str
    users: int
    mean: float
    median: float
    p90: float
    p99: float
    maximum: float
    worst_case: float | None
    keeps_prior: bool
    prior_from_users: bool = False  # then the prior is not public: see `prior.FROM_USERS`
    above_limit: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A tidy table: one row per group × epsilon × sampler × divergence. Tables add up with ``+``.

    `rows` are in the order in which they were asked for. `all_groups` holds the same numbers over the users
    of all groups together, if there are several. What is printed is sorted by the mean, with the best marked.
    """

    rows: tuple[ComparisonRow, ...]
    all_groups: tuple[ComparisonRow, ...] = ()

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.rows + other.rows, self.all_groups + other.all_groups)

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def best(self, statistic: str = "mean", *, keeps_prior: bool = True) -> Comparison:
        """The best sampler of every group, ε and divergence; by default among those that keep the prior.

        A group in which no sampler keeps the prior is missing from the answer.
        """
        _validate.one_of(STATISTICS, statistic=statistic)
        return Comparison(
            tuple(_best(self.rows, statistic, keeps_prior).values()),
            tuple(_best(self.all_groups, statistic, keeps_prior).values()),
        )

    def limits(self) -> Comparison:
        """The rows of the limit, where it was asked for."""
        return Comparison(tuple(row for row in self.rows if row.sampler == BEST_POSSIBLE))

    def sorted(self, statistic: str = "mean") -> Comparison:
        """The same rows: within each group, ε and divergence the smallest first, the limit before all."""
        _validate.one_of(STATISTICS, statistic=statistic)
        return Comparison(_sorted(self.rows, statistic), _sorted(self.all_groups, statistic))

    def marks(self, statistic: str = "mean") -> dict[ComparisonRow, str]:
        """`best` for the best row that keeps the prior, `best without q` where another one is better.

        Where only one sampler was compared, nothing is marked.
        """
        _validate.one_of(STATISTICS, statistic=statistic)
        found: dict[ComparisonRow, str] = {}
        for rows in (self.rows, self.all_groups):
            entered = Counter(_key(row) for row in rows if row.sampler != BEST_POSSIBLE)
            rivals = [row for row in rows if entered[_key(row)] > 1]
            keeping = _best(rivals, statistic, True)
            for key, row in _best(rivals, statistic, False).items():
                if key not in keeping or _value(row, statistic) < _value(keeping[key], statistic):
                    found[row] = "best without q"
            found |= dict.fromkeys(keeping.values(), "best")
        return found

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict per row."""
        return [asdict(row) for row in self.rows]

    def to_polars(self) -> Any:
        """The table as a polars DataFrame (needs polars)."""
        import polars

        return polars.DataFrame(self.to_dicts(), infer_schema_length=None)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame (needs pandas)."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def __str__(self) -> str:
        names, lines = self._shown()
        table = [names, *lines]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        return "\n".join([*text, *([FROM_USERS] if self.prior_from_users else [])])

    def _repr_html_(self) -> str:
        """What a notebook shows: the same table, with a bar under the mean and the maximum."""
        names, lines = self._shown()
        ordered = self.sorted()
        style = "text-align:right;padding:.15em .6em;white-space:nowrap"
        head = "".join(f'<th style="{style}">{html.escape(name)}</th>' for name in names)
        body = []
        for row, line in zip(ordered.rows + ordered.all_groups, lines, strict=True):
            bold = ";font-weight:bold" if line[-1] else ""
            cells = [
                f'<td style="{style}{bold}{bar(getattr(row, name)) if name in ("mean", "maximum") else ""}">'
                f"{html.escape(cell)}</td>"
                for name, cell in zip(names, line, strict=True)
            ]
            body.append(f"<tr>{''.join(cells)}</tr>")
        warning = f"<p><strong>{html.escape(FROM_USERS)}</strong></p>" if self.prior_from_users else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{warning}"

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """The columns that say something, and the cells, sorted and marked."""
        ordered, marks = self.sorted(), self.marks()
        rows = ordered.rows + ordered.all_groups
        limited = any(row.above_limit is not None for row in rows)
        names = ["group", "epsilon", "sampler", "divergence", "users", *STATISTICS, "keeps_prior"]
        names += ["above_limit"] * limited
        lines = [[*(_cell(getattr(row, name)) for name in names), marks.get(row, "")] for row in rows]
        return [*names, "best"], lines

    @property
    def prior_from_users(self) -> bool:
        """Whether any row was measured against a prior made from the users it serves."""
        return any(row.prior_from_users for row in self.rows)


def _key(row: ComparisonRow) -> tuple[str, float, str]:
    return row.group, row.epsilon, row.divergence


def _value(row: ComparisonRow, statistic: str) -> float:
    value = getattr(row, statistic)
    return math.inf if value is None else float(value)


def _best(
    rows: Iterable[ComparisonRow], statistic: str, keeps_prior: bool
) -> dict[tuple[str, float, str], ComparisonRow]:
    found: dict[tuple[str, float, str], ComparisonRow] = {}
    for row in rows:
        if row.sampler == BEST_POSSIBLE or (keeps_prior and not row.keeps_prior):
            continue
        held = found.get(_key(row))
        if held is None or _value(row, statistic) < _value(held, statistic):
            found[_key(row)] = row
    return found


def _sorted(rows: Iterable[ComparisonRow], statistic: str) -> tuple[ComparisonRow, ...]:
    """Groups, epsilons and divergences stay in the order in which they first appear."""
    places: dict[tuple[str, float, str], list[ComparisonRow]] = {}
    for row in rows:
        places.setdefault(_key(row), []).append(row)
    ordered = (
        sorted(block, key=lambda row: (row.sampler != BEST_POSSIBLE, _value(row, statistic)))
        for block in places.values()
    )
    return tuple(row for block in ordered for row in block)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:.4g}"
    return str(value)
