"""A choice: one sampler at one ε, with the reasons, in plain words."""

from __future__ import annotations

import html
from dataclasses import dataclass
from shlex import quote

from ..prior import FROM_USERS
from ..samplers.base import Sampler, label
from .comparison import Comparison, ComparisonRow
from .limit import Limit

MEASURES = {"mean": "mean", "p99": "99th percentile", "maximum": "maximum", "worst_case": "worst case"}


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """What `choose` recommends, and why.

    `sampler` is ready to be certified. `row` holds its numbers and `runner_up` those of the second best;
    `table` those of every sampler that was considered at this ε. They are about the users named in
    `measured_on`, which are public or invented. `cheaper` says why the next smaller ε that was tried does not
    do. `limit` is the best that any ε-private sampler could do for these users, `above_limit` how far this
    one is above it in mean + tail·maximum.
    """

    sampler: Sampler
    row: ComparisonRow
    runner_up: ComparisonRow | None
    table: Comparison
    limit: Limit | None
    measured_on: str
    from_public_users: bool
    targets: tuple[str, ...]
    reason: str
    cheaper: str | None
    tail: float

    @property
    def epsilon(self) -> float:
        """The privacy parameter of the choice."""
        return self.sampler.epsilon

    @property
    def above_limit(self) -> float | None:
        """mean + tail·maximum of the choice minus the proven lower bound of the limit."""
        if self.limit is None:
            return None
        return self.row.mean + (self.tail * self.row.maximum if self.tail else 0.0) - self.limit.lower_bound

    @property
    def as_typed(self) -> str:
        """The sampler as the command line takes it, bit for bit: fitted, or power-caps:scale=…,exponent=…"""
        name, options = self.sampler.name, dict(self.sampler.options)
        if name == "fitted":
            if not self.from_public_users:
                return name
            name = "power_caps"  # which takes the parameters that were found on them
        given = ",".join(f"{key}={value!r}" for key, value in options.items())
        return name.replace("_", "-") + (f":{given}" if given else "")

    def command(self, prior: str = "PRIOR", output: str = "mechanism.json") -> str:
        """The command that designs and certifies this choice."""
        short = f"{self.epsilon:g}"
        epsilon = short if float(short) == self.epsilon else repr(self.epsilon)
        return f"sottovoce design {quote(prior)} -e {epsilon} -s {self.as_typed} -o {quote(output)}"

    def words(self) -> str:
        """The recommendation, its reason, the runner-up, the limit: a sentence a line."""
        lines = [f"Take {label(self.sampler)} at epsilon {self.epsilon:g}.", self.reason]
        lines += [f"It meets: {one}." for one in self.targets]
        if self.cheaper is not None:
            lines.append(self.cheaper)
        row = self.row
        lines.append(
            f"Distance to the user's own data (total variation): mean {row.mean:.4f}, 99th percentile "
            f"{row.p99:.4f}, maximum {row.maximum:.4f}; for any possible user at most {row.worst_case:.4f}."
        )
        if self.runner_up is not None:
            lines.append(f"Second is {self.runner_up.sampler}: {_wins(self.runner_up, row)}.")
        if self.limit is not None:
            kept = " that keeps the prior" if self.limit.keep_prior else ""
            own = self.limit.lower_bound + (self.above_limit or 0.0)
            lines.append(
                f"The limit: the best private sampler{kept} has a mean + {self.tail:g}·maximum between "
                f"{self.limit.lower_bound:.4f} and {self.limit.objective:.4f} for these users; "
                f"this one has {own:.4f}."
            )
        lines.append(f"Measured on {self.measured_on}. Your users may differ.")
        if self.sampler.prior.made_from_users:
            lines.append(FROM_USERS)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.words()

    def __repr__(self) -> str:
        return f"<choice: {label(self.sampler)} at epsilon={self.epsilon:g}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the words, and the table below them."""
        said = "<br>".join(map(html.escape, self.words().splitlines()))
        return f"<p>{said}</p><pre>{html.escape(self.command())}</pre>{self.table._repr_html_()}"


def _wins(second: ComparisonRow, first: ComparisonRow) -> str:
    """In which numbers the second is better than the first."""
    better = [
        f"a lower {words}, {theirs:.4f} against {ours:.4f}"
        for name, words in MEASURES.items()
        if (theirs := getattr(second, name)) < (ours := getattr(first, name)) - 5e-5
    ]
    return "it has " + ", and ".join(better) if better else "it is better in nothing"
