"""Two published attacks on a private function, written from their papers and from nothing of this library.

The distinguishability attack of Arcolezi and Gambs ("Revisiting Locally Differentially Private Protocols",
LDP-Auditor, 2024): an attacker who knows the protocol sees one output and says which of two inputs it came
from. The rates of right and of false accusations bound ε from below: ε ≥ ln(TPR/FPR).

DP-Sniper of Bichsel, Steffen, Bogunovic and Vechev (2021): a logistic regression learns which of two inputs
an output came from; the event "the posterior is above t, and at t by a coin" has probability about c under
the second input; fresh outputs bound the ratio of its two probabilities from below.

Both bounds are Clopper and Pearson's, with an error that the caller divides over all that it looks at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

Draw = Callable[[int], npt.NDArray[np.int64]]
"""So many outputs for one input, as numbers from zero."""
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Event:
    """A set of outputs, each with the probability that the attacker's coin puts it in."""

    chances: Vector

    def happened(self, outputs: npt.NDArray[np.int64], rng: np.random.Generator) -> int:
        """How many outputs are in it."""
        return int(np.count_nonzero(rng.random(len(outputs)) < self.chances[outputs]))


def least(successes: int, trials: int, error: float) -> float:
    """The probability that is exceeded except with this error: Clopper and Pearson's lower end."""
    return 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, error))


def most(successes: int, trials: int, error: float) -> float:
    """The same from above."""
    return 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - error))


def bound(event: Event, first: Draw, second: Draw, draws: int, error: float, seed: int) -> float:
    """A lower bound on ε from fresh outputs of both inputs; each end takes half of the error."""
    rng = np.random.default_rng(seed)
    ours, theirs = event.happened(first(draws), rng), event.happened(second(draws), rng)
    above, below = least(ours, draws, error / 2), most(theirs, draws, error / 2)
    return float(np.log(above / below)) if above > 0 else -np.inf


def distinguishability(
    first: Draw, second: Draw, laws: tuple[Vector, Vector], draws: int, error: float
) -> float:
    """LDP-Auditor: the attacker accuses the first input where the protocol makes it the more likely one.

    For randomized response that is the paper's rule for it: the output is the input.
    """
    accused = Event((laws[0] > laws[1]).astype(np.float64))
    return bound(accused, first, second, draws, error, seed=1)


def sniper(
    first: Draw, second: Draw, outputs: int, *, training: int, draws: int, chance: float, error: float
) -> float:
    """DP-Sniper for two inputs: learn, choose the event of probability about `chance`, and bound."""
    learnt = posterior(first(training), second(training), outputs)
    event = threshold_event(learnt, np.bincount(second(training), minlength=outputs) / training, chance)
    return bound(event, first, second, draws, error, seed=2)


def posterior(first: Any, second: Any, outputs: int) -> Vector:
    """Logistic regression on the output as an indicator, by Newton's steps with a little ridge.

    The classifier gives each output the probability that it came from the first input.
    """
    counts = np.stack([np.bincount(first, minlength=outputs), np.bincount(second, minlength=outputs)])
    counts = counts.astype(np.float64)
    ridge = 1.0
    w = np.zeros(outputs)
    for _ in range(50):
        p = 1 / (1 + np.exp(-w))
        slope = counts[0] * (1 - p) - counts[1] * p - ridge * w
        w = w + slope / (counts.sum(axis=0) * p * (1 - p) + ridge)
        w = np.clip(w, -30, 30)
    return np.asarray(1 / (1 + np.exp(-w)))


def threshold_event(learnt: Vector, shares: Vector, chance: float) -> Event:
    """{posterior > t}, and {posterior = t} by a coin, of probability `chance` under the second input."""
    chances = np.zeros(len(learnt))
    left = chance
    for value in np.unique(learnt)[::-1]:
        at = learnt == value
        share = float(shares[at].sum())
        chances[at] = 1.0 if share <= left else left / share
        left -= share
        if left <= 0:
            break
    return Event(chances)
