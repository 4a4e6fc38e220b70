"""Streams: any number of releases of one user for one ε.

The likelihood of the whole transcript is bounded, not that of each release. With q_t the public law of step
t and A = e^ε, a device keeps one number R, 1 ≤ R ≤ A; release t is drawn from a law x with

    q_t/R ≤ x ≤ (A/R)·q_t,    and then    R ← R·x(z)/q_t(z).

So Pr(z_1 … z_T) = Π q_t(z_t)·R_T/R_0, in which only R_T depends on the user, and 1 ≤ R_T ≤ A: the transcript
is ε-private, whatever T is, however p_t changes and whatever rule picks x. The law x = q_t is always allowed.

The rule here: cap the ratio x/q at (A/R)^θ_t, a public pace, and take of the laws that are nearest to p_t in
total variation the one that is nearest to q_t: it moves R the least. The law itself is built in integers, see
`sottovoce.core.stream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import checks, listing
from ..core.constants import MOST_STEPS, PACE, PERSISTENCE
from ..errors import ParameterError
from ..geometry import Geometry, checked_geometry
from ..prior import Prior
from .base import checked_prior, prior_warning

LARGEST = 27.0  # the largest ε of a stream: e^ε must be below 2^40
ENDLESS = 52  # a stream without a horizon always goes on as if it had so many releases left
PERSISTENT_START = 3.0  # the start of a stream with persistence: 5 % of the first release is the floor
_SPENT, _POWER = 1.5, 0.75  # θ = 1.5/(releases left)^0.75 ≤ 1: chosen on users of MovieLens 100K


@dataclass(frozen=True, eq=False, repr=False)
class Stream:
    """The public settings of a stream, made by `stream`. `certify` makes it a mechanism.

    `start` is the logarithm of R before the first release: e^-start·q is the floor of the first one. `pace`
    is θ of every release in 256ths; the last one holds for all that follow. `persistence` is the share of the
    public law that lies on what was released last, in 1024ths.
    """

    prior: Prior
    epsilon: float
    start: float
    pace: tuple[int, ...]
    persistence: int = 0
    name: str = "stream"
    geometry: Geometry | None = None

    @property
    def keeps_prior(self) -> bool:
        """Whether a user equal to the prior is released as the prior; with persistence it is not so."""
        return self.persistence == 0

    @property
    def options(self) -> Mapping[str, float]:
        """The settings that can be chosen."""
        return {"start": self.start}

    def __repr__(self) -> str:
        return f"<stream on {len(self.prior)} categories, epsilon={self.epsilon:g} for all of them>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("releases", "any number"),
            ("epsilon", f"{self.epsilon:g} for all of them together"),
            ("categories", f"{len(self.prior):,}"),
            ("keeps the prior", "yes" if self.keeps_prior else "no"),
        ]
        return listing.facts("Stream", [*rows, *prior_warning(self.prior)])


def stream(
    prior: Prior,
    epsilon: float,
    *,
    horizon: int | None = 12,
    start: float | None = None,
    paced: bool | None = None,
    persistence: float = 0.0,
    geometry: Geometry | None = None,
) -> Stream:
    """Design a stream: any number of releases of a user for one ε, whatever their data do in between.

    Guarantees
        The whole transcript of a user is ε-private, without δ and without a limit on its length. A user whose
        data equal the public law of a step (without persistence: the prior) is released exactly as that law.
        A device that lost its state releases the public law from then on and stays private; with persistence
        it has to know its last release, or the loss must not depend on the data.

    Parameters
        horizon: for how many releases the budget is planned. Later ones get what is left. None plans as if
            there were always 52 left.
        start: the logarithm of R before the first release, above 0 and below ε (at the ends nothing but the
            prior could be released); by default chosen by horizon, with persistence ε/4 and at most 3.
        paced: False spends as much as is nearest to the user now, and leaves what is left to later releases:
            the default with persistence, where only changes cost much.
        persistence: the share of the public law of a release that lies on the user's last release, for data
            that rarely change: repeating oneself then costs little. 0 to 0.999.
        geometry: a `Line` or a `Tree`: every step takes the law that is nearest in W1, as `nearest` does.

    >>> stream(Prior.uniform(["a", "b", "c"]), 8.0, horizon=52)
    <stream on 3 categories, epsilon=8 for all of them>
    """
    n, total = len(checked_prior(prior)), checks.privacy(epsilon)
    if total > LARGEST:
        raise ParameterError(f"the epsilon of a stream must be at most {LARGEST:g}, got {epsilon}")
    kept = checks.at_least(0, persistence=persistence)
    if kept > (PERSISTENCE - 1) / PERSISTENCE:
        raise ParameterError(f"persistence must be at most 0.999, got {persistence}")
    steps = None if horizon is None else checks.whole_at_least(1, horizon=horizon)
    if steps is not None and steps > MOST_STEPS:
        raise ParameterError(f"horizon must be at most {MOST_STEPS}, got {horizon}")
    if start is not None:
        begin = checks.positive(start=start)
        if begin >= total:
            raise ParameterError(f"start must be below epsilon, {total:g}, got {start}")
    elif kept:
        begin = min(total / 4, PERSISTENT_START)
    else:  # from half of ε for one release down to a quarter for many
        begin = total * (0.25 + 0.25 / (steps or ENDLESS) ** 0.5)
    pace: tuple[int, ...] = (PACE,)
    if paced or (paced is None and not kept):
        left = [ENDLESS] if steps is None else range(steps, 0, -1)
        pace = tuple(min(PACE, max(1, int(PACE * _SPENT / releases**_POWER))) for releases in left)
    near = None if geometry is None else checked_geometry(geometry, n)
    return Stream(prior, total, begin, pace, int(kept * PERSISTENCE), geometry=near)
