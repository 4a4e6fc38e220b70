"""What shuffling adds by our bound, beside published bounds that hold for any ε-private mechanism.

No package of the index that we could install computes amplification by shuffling for a local mechanism
(dp-accounting, autodp, opendp and prv-accountant do not). So the published theorems are computed here:

- clones: Feldman, McMillan, Talwar (2021), *Hiding Among the Clones*. The other reports hide a user at least
  as well as C ~ Bin(m − 1, e^−ε) of them would that throw a fair coin between the user's two reports.
- stronger clones: the same authors (2023), with C ~ Bin(m − 1, 2/(e^ε + 1)).

Both are numerical and exact to rounding for the pair of laws that their theorem names.

    python -m experiments.shuffling_rivals
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import gammaln

import sottovoce as sv

DELTA = 1e-6
SPREAD = 12.0
"""Standard deviations of C that are summed; what lies outside is added to δ."""
CASES: tuple[tuple[str, int, Callable[..., sv.Sampler]], ...] = (
    ("`randomized_response`, 2 categories", 2, sv.randomized_response),
    ("`randomized_response`, 18 categories", 18, sv.randomized_response),
    ("`kernel_clip`, 18 categories", 18, sv.kernel_clip),
    ("`kernel_clip`, 2,000 categories", 2000, sv.kernel_clip),
)
SETTINGS = ((1.0, 10_000), (4.0, 10_000), (4.0, 100_000), (8.0, 100_000))


def clones_delta(local: float, central: float, reports: int, chance: float) -> float:
    """δ(ε′) of the pair of laws (A + Δ, C − A + 1 − Δ), Δ = 1 with probability e^ε/(e^ε + 1), or 1 − that."""
    likely, logs = 1 / (1 + math.exp(-local)), gammaln(np.arange(reports + 2) + 1.0)
    mean, spread = (reports - 1) * chance, math.sqrt((reports - 1) * chance * (1 - chance))
    low = max(0, math.floor(mean - SPREAD * spread - 20))
    counts = np.arange(low, min(reports - 1, math.ceil(mean + SPREAD * spread + 20)) + 1)
    weights = stats.binom.pmf(counts, reports - 1, chance)
    total = max(1 - float(weights.sum()), 0.0)
    for count, weight in zip(counts.tolist(), weights.tolist(), strict=True):
        reach = SPREAD * math.sqrt(count) / 2 + 20
        heads = np.arange(max(0, math.floor(count / 2 - reach)), min(count, math.ceil(count / 2 + reach)) + 1)
        chances = np.exp(logs[count] - logs[heads] - logs[count - heads] - count * math.log(2))
        one, none = np.concatenate([[0.0], chances]), np.concatenate([chances, [0.0]])
        first, second = likely * one + (1 - likely) * none, (1 - likely) * one + likely * none
        total += weight * float(np.maximum(first - math.exp(central) * second, 0).sum())
        total += weight * max(1 - float(chances.sum()), 0.0)
    return total


def clones(local: float, reports: int, chance: float) -> float:
    """The ε′ at δ = 10⁻⁶, from above, to a thousandth."""
    low, high = 0.0, local
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if clones_delta(local, middle, reports, chance) <= DELTA else (middle, high)
    return high


def prior_of(n: int) -> sv.Prior:
    """q ∝ rank^−0.8, for two categories alike."""
    q = np.arange(1, n + 1) ** -0.8 if n > 2 else np.ones(n)
    return sv.Prior(list(range(n)), q / q.sum())


def table() -> str:
    """One row for each mechanism and setting; how much larger the others are."""
    lines = [
        "| mechanism | ε | reports | ours | clones/ours | stronger clones/ours |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    known: dict[tuple[float, int], tuple[float, float]] = {}
    for local, reports in SETTINGS:
        known[local, reports] = (
            clones(local, reports, math.exp(-local)),
            clones(local, reports, 2 / (math.exp(local) + 1)),
        )
    for name, n, make in CASES:
        for local, reports in SETTINGS:
            ours = sv.amplify(make(prior_of(n), local), reports, DELTA)
            cells = [f"{other / ours:.2f}×" for other in known[local, reports]]
            lines.append(f"| {name} | {local:g} | {reports:,} | {ours:.3g} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
