"""The estimate as it is now, for the live page: computed once for everybody who asks, and not too often.

All that it shows is made from reports that were private before they were sent: post-processing, which costs
no privacy. Its cost follows the categories, not the reports, and it rests ten times as long as it took.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._atomic import inf_to_null
from .._validate import FloatArray
from ..collecting.estimation import Estimate, estimate
from ..collecting.population import EVERYBODY, whole_population
from ..collecting.store import counts_in, reading
from ..collecting.verdict import Verdict, verdict
from ..errors import SottovoceError
from .served import Served

MOST_ROWS = 25
MOST_GROUPS = 12
LEAST_REST, REST = 1.0, 10.0
"""Seconds between two computations: at least so many, and so many times what the last one took."""


class Live:
    """The last answer, and when a new one is due."""

    def __init__(
        self, served: Served, path: Path, numbers: dict[str, int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._served = served
        self._path = path
        self._numbers = numbers
        self._clock = clock
        self._due = -1.0
        self._answer = b""

    def answer(self) -> bytes:
        """JSON of the estimate, at most a little old."""
        begin = self._clock()
        if begin >= self._due or not self._answer:
            self._answer = json.dumps(inf_to_null(self._now())).encode("ascii")
            end = self._clock()
            self._due = end + max(LEAST_REST, REST * (end - begin))
        return self._answer

    def _now(self) -> dict[str, Any]:
        with reading(self._path) as database:
            counts = {
                group: counts_in(database, self._numbers[group], len(one.categories))
                for group, one in self._served.mechanisms.items()
            }
        total = int(sum(one.sum() for one in counts.values()))
        some = next(iter(self._served.mechanisms.values()))
        facts = {"reports": total, "sampler": some.sampler, "epsilon": float(some.epsilon)}
        if total == 0:
            return {**facts, "groups": []}
        return {**facts, "groups": self._groups(counts)}

    def _groups(self, counts: dict[str, FloatArray]) -> list[dict[str, Any]]:
        """The whole population first, if there are groups, then the groups with the most reports."""
        ordered = sorted(counts, key=lambda group: -float(counts[group].sum()))
        found: dict[str, Estimate] = {}
        silent: list[dict[str, Any]] = []
        for group in ordered:
            reports = int(counts[group].sum())
            try:
                found[group] = estimate(self._served.mechanisms[group], counts[group])
            except SottovoceError as problem:  # one report, or a mechanism that cannot be undone
                silent.append({"group": group, "reports": reports, "verdict": f"{problem}.", "rows": []})
        shown = [_shown(group, one, verdict(one)) for group, one in list(found.items())[:MOST_GROUPS]]
        if len(found) > 1:
            everybody = whole_population(found)
            shown.insert(0, _shown(EVERYBODY, everybody, verdict(everybody, list(found.values()))))
        return [*shown, *silent[: max(0, MOST_GROUPS - len(shown))]]


def _shown(group: str, found: Estimate, told: Verdict) -> dict[str, Any]:
    """What the page shows of one estimate: the verdict, what the numbers are, and the largest of them."""
    low, high = found.interval()
    largest = (-found.values).argsort(kind="stable")[:MOST_ROWS]
    return {
        "group": group,
        "reports": int(found.reports),
        "verdict": told.words(),
        "note": found.words(),
        "level": found.level,
        "left_out": len(found.values) - len(largest),
        "rows": [
            {
                "category": found.categories[i],
                "reports": int(found.counts[i]),
                "prior": float(found.model.prior[i]),
                "share": float(found.shares[i]),
                "low": float(low[i]),
                "high": float(high[i]),
            }
            for i in largest.tolist()
        ],
    }
