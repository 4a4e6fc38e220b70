"""The estimate as it is now, for the live page: computed once for everybody who asks, and not too often."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atomic import inf_to_null
from ..checks import FloatArray
from ..collecting.estimate import TOGETHER, Estimate, estimate, whole_population
from ..collecting.store import Key, counts_in, reading
from ..errors import SottovoceError
from .batches import Served

MOST_ROWS = 25
MOST_GROUPS = 12
SHOWN = ("category", "reports", "prior", "share", "low", "high", "mark")
"""What a row shows of a category."""
LEAST_REST, REST = 1.0, 10.0
"""Seconds between two computations: at least so many, and so many times what the last one took."""


@dataclass
class Live:
    """The estimate of one file: post-processing, which costs no privacy; its cost follows the categories."""

    served: Served
    store: Path
    numbers: Mapping[Key, int]
    clock: Callable[[], float] = time.monotonic
    _due: float = -1.0
    _answer: bytes = b""

    def answer(self, mechanisms: list[str]) -> bytes:
        """JSON of the estimate, at most a little old, with the digests of all files that are served."""
        begin = self.clock()
        if begin >= self._due or not self._answer:
            facts = self._now() | {"mechanism": self.served.digest, "mechanisms": mechanisms}
            self._answer = json.dumps(inf_to_null(facts)).encode("ascii")
            end = self.clock()
            self._due = end + max(LEAST_REST, REST * (end - begin))
        return self._answer

    def _now(self) -> dict[str, Any]:
        with reading(self.store) as database:
            counts = {
                group: counts_in(database, self.numbers[mechanism.digest, group], len(mechanism.answers))
                for group, mechanism in self.served.mechanisms.items()
            }
        total = int(sum(reports.sum() for reports in counts.values()))
        first = next(iter(self.served.mechanisms.values()))
        facts = {"reports": total, "sampler": first.sampler, "epsilon": float(first.epsilon)}
        return {**facts, "groups": self._groups(counts) if total else []}

    def _groups(self, counts: dict[str, FloatArray]) -> list[dict[str, Any]]:
        """The whole population first, if there are groups, then the groups with the most reports."""
        estimates: dict[str, Estimate] = {}
        silent: list[dict[str, Any]] = []
        for group, reports in sorted(counts.items(), key=lambda pair: -float(pair[1].sum())):
            try:
                estimates[group] = estimate(self.served.mechanisms[group], reports)
            except SottovoceError as problem:  # one report, or a mechanism that cannot be undone
                facts = {"group": group, "reports": int(reports.sum())}
                silent.append({**facts, "verdict": f"{problem}.", "rows": []})
        shown = [_shown(group, shares) for group, shares in list(estimates.items())[:MOST_GROUPS]]
        if len(estimates) > 1:
            shown.insert(0, _shown(TOGETHER, whole_population(estimates)))
        return [*shown, *silent[: max(0, MOST_GROUPS - len(shown))]]


def _shown(group: str, shares: Estimate) -> dict[str, Any]:
    """What the page shows of one estimate: the verdict, what the numbers are, and the largest of them."""
    rows = sorted(shares.to_dicts(), key=lambda row: -row["estimate"])
    return {
        "group": group,
        "reports": int(shares.reports),
        "verdict": shares.verdict().summary(),
        "note": shares.summary(),
        "level": shares.level,
        "unbiased": shares.unbiased,
        "left_out": len(rows[MOST_ROWS:]),
        "rows": [{name: row[name] for name in SHOWN} for row in rows[:MOST_ROWS]],
    }
