"""The rows that the command release writes, part by part, and what they have cost so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..release.ledger import Receipt, Request
from ..release.mechanism import Mechanism
from ..releasing import SAMPLE, report_columns, requests_of, several_samples
from ..users import Users


@dataclass
class ReleasedRows:
    """What is to be released, and the columns that have come out, part by part."""

    mechanisms: dict[str, Mechanism]
    groups: dict[str, Users]
    names: tuple[str, str | None, str]
    parts: list[dict[str, object]] = field(default_factory=list)
    count: int = 0
    receipt: Receipt | None = None
    written: bool = False
    whole_names: bool = False  # whether users are named by whole numbers where they come from

    @property
    def several(self) -> bool:
        """Whether every row says which sample it is."""
        return several_samples(self.mechanisms)

    def add(self, group: str, who: Sequence[object], answers: Sequence[Any]) -> None:
        """Add what these users of a group have released."""
        user, by, item = self.names
        who = [int(str(one)) for one in who] if self.whole_names else who
        part = report_columns(self.mechanisms[group], who, answers, (user, item), numbered=self.several)
        place = {by: group} if by else {}
        self.parts.append({user: part.pop(user), **place, **part})
        self.count += len(answers)

    def table(self) -> list[dict[str, object]]:
        """All parts; where nobody was released, one without rows."""
        user, by, item = self.names
        names = (user, by, item, "epsilon", "mechanism", SAMPLE if self.several else None)
        return self.parts or [{name: [] for name in names if name}]

    def requests(self) -> dict[str, Request]:
        """What is asked of a ledger, by group."""
        return requests_of(self.mechanisms, self.groups, grouped=self.names[1] is not None)

    def spent(self) -> str:
        """What an interruption or a failure has cost, in words."""
        if self.receipt is None or not self.receipt.charged:
            return "nobody was charged"
        return f"{self.receipt.charged:,} releases were charged; running again costs nothing more"

    def epsilons(self) -> str:
        """What a release costs, in words."""
        costs = sorted({mechanism.epsilon for mechanism in self.mechanisms.values()})
        return f"ε = {' or '.join(f'{float(cost):g}' for cost in costs)}"

    def each(self) -> str:
        """What every user has released, in words."""
        if not self.several:
            return "one category"
        numbers = sorted({one.samples for one in self.mechanisms.values()})
        return f"{' or '.join(map(str, numbers))} samples, a row each,"
