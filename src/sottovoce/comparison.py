"""Many samplers × many users × many divergences, as one tidy table.

A comparison looks at the users' true data. Its numbers are for choosing a sampler on data you may
look at; they are not themselves private and must not be published about private users.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from ._validate import FloatArray
from .divergences import TV, FDivergence, checked
from .errors import ParameterError
from .samplers import Sampler, label
from .users import rows_for


@dataclass(frozen=True)
class ComparisonRow:
    """How one sampler serves one group of users in one divergence."""

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
    worst_case: float
    keeps_prior: bool


@dataclass(frozen=True)
class Comparison:
    """A tidy table: one row per group × epsilon × sampler × divergence. Tables add up with ``+``."""

    rows: tuple[ComparisonRow, ...]

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.rows + other.rows)

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict per row."""
        return [asdict(row) for row in self.rows]

    def to_polars(self) -> Any:
        """The table as a polars DataFrame (needs polars)."""
        import polars

        return polars.DataFrame(self.to_dicts())

    def __str__(self) -> str:
        names = [field.name for field in fields(ComparisonRow)]
        table = [names, *([_cell(getattr(row, name)) for name in names] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)
        return "\n".join(lines)


def compare(
    users: object,
    samplers: Sampler | Iterable[Sampler],
    divergences: FDivergence | Sequence[FDivergence] = TV,
    *,
    group: str = "all",
) -> Comparison:
    """How far each sampler's release is from each user, summarised over the users.

    `users` come from `read_users`, or are a vector, an (m, n) array or scipy.sparse in the samplers' order.
    Memory
    is bounded by the non-zeros of the users plus one block.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["A", "B"], [0.3, 0.7])
    >>> table = sv.compare([[0.3, 0.7], [0.5, 0.5]], sv.kernel_clip(prior, 1.0), [sv.TV, sv.KL])
    >>> [(row.divergence, row.users, row.keeps_prior) for row in table]
    [('tv', 2, True), ('kl', 2, True)]
    """
    chosen = [samplers] if isinstance(samplers, Sampler) else list(samplers)
    measures = [divergences] if isinstance(divergences, FDivergence) else list(map(checked, divergences))
    if not all(isinstance(one, Sampler) for one in chosen):
        raise ParameterError("samplers must be samplers, such as sottovoce.kernel_clip(prior, epsilon)")
    if not chosen or not measures:
        raise ParameterError("samplers and divergences must not be empty")
    rows = []
    for sampler in chosen:
        for measure in measures:
            values = np.atleast_1d(sampler.divergence(rows_for(users, sampler.prior), measure))
            rows.append(
                ComparisonRow(
                    group=group,
                    epsilon=sampler.epsilon,
                    sampler=label(sampler),
                    divergence=measure.name,
                    users=len(values),
                    **summarise(values),
                    worst_case=sampler.worst_case(measure),
                    keeps_prior=sampler.keeps_prior,
                )
            )
    return Comparison(tuple(rows))


def summarise(values: FloatArray) -> dict[str, float]:
    """Mean, median, 90th and 99th percentile and maximum of one number per user.

    Percentiles interpolate linearly, except that with infinite values among the users they are order
    statistics (the next larger value): between a number and infinity there is nothing to interpolate.
    """
    method: Literal["linear", "higher"] = "linear" if np.all(np.isfinite(values)) else "higher"
    median, p90, p99 = np.quantile(values, np.array([0.5, 0.9, 0.99]), method=method)
    return {
        "mean": float(values.mean()),
        "median": float(median),
        "p90": float(p90),
        "p99": float(p99),
        "maximum": float(values.max()),
    }


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else f"{value:.4g}"
    return str(value)
