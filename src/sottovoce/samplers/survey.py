"""Surveys: private reports to learn a population from, where there is no public data.

A device draws one of the user's records, category i, and a random question s out of σ. The answer to s is
h_s(i) = Σ_j v_j·w_j mod f, with f a prime, w the digits of i in base f and v those of the question; it goes
through randomized response on f values. The report is the pair of question and answer, one integer below σ·f.

Questions are the points v of a projective space over F_f: the vectors of d digits whose first non-zero digit
is 1, so σ = (f^d − 1)/(f − 1), with the least d for which f^d ≥ n. Two categories have the same answer to
exactly (f^(d−1) − 1)/(f − 1) questions. So with P₁ = a/(a + f − 1) the chance that a report supports its own
category, P₀ the chance that it supports another one, and m reports of which C_i support i,

    p̂_i = (C_i/m − P₀)/(P₁ − P₀)   is unbiased, with a variance near P₀(1 − P₀)/((P₁ − P₀)²·m),

at the best f about 4a/((a − 1)²·m) whatever n is. Randomized response on the categories themselves has about
(n − 2 + a)/((a − 1)²·m): less for few categories.

This is projective geometry response (Feldman, Nelson, Nguyen and Talwar 2022) without its one report that
supports no category, and equally local hashing (Wang et al. 2017) with linear functions as the hashes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .. import checks
from ..core.survey import digits_of
from ..errors import ParameterError
from ..prior import Prior
from ..records import Category

LARGEST_TRIED = 1 << 12
"""Primes are tried up to this: more values of an answer gain nothing unless ε is above 8."""
LARGEST_TRANSFORM = 1 << 24
"""f^d, the size of the Fourier transform of an estimate, stays below this or twice the categories."""
LARGEST_VARIANCE = 1e12
"""A survey in which no feasible number of reports tells anything is refused."""


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """What `survey` designs. `certify` makes it a mechanism, whose reports `estimate` understands.

    `base` is f, the number of values of an answer; None asks for the category itself.
    """

    prior: Prior
    epsilon: float
    base: int | None
    name: str = "survey"
    options: Mapping[str, float] = field(default_factory=dict)  # nothing is chosen by the caller

    @property
    def variance(self) -> float:
        """m times the variance of the estimate of a rare category from m reports."""
        return response_variance(len(self.prior), self.base, self.epsilon)

    def __repr__(self) -> str:
        how = "randomized response" if self.base is None else f"questions with {self.base} answers"
        return f"<survey of {len(self.prior):,} categories by {how}, epsilon={self.epsilon:g}>"


def survey(categories: Iterable[Category], epsilon: float) -> Survey:
    """Design a survey: one private report per user, from which `estimate` learns what users are like.

    Take it where only the population matters, or to learn a prior where there is no public data
    (`Estimate.as_prior`). The report is one integer, or with few categories one category; it is made to be
    counted, and nothing should be personalised with it.

    Guarantees
        ε-local privacy. The variance of the estimates is the smallest of randomized response and of questions
        with any prime number f < 4096 of answers: about 4e^ε/((e^ε − 1)²·m) for many categories.

    >>> survey(["Drama", "War", "Comedy"], 1.0)
    <survey of 3 categories by randomized response, epsilon=1>
    >>> survey(range(1000), 1.0)
    <survey of 1,000 categories by questions with 3 answers, epsilon=1>

    Reference: Feldman, Nelson, Nguyen, Talwar 2022, "Private frequency estimation via projective geometry".
    """
    prior, epsilon = Prior.uniform(categories), checks.privacy(epsilon)
    n = len(prior)
    most = max(LARGEST_TRANSFORM, 2 * n)
    bases = [None, *(f for f in _primes(LARGEST_TRIED) if f ** digits_of(n, f) <= most and f < n)]
    made = Survey(prior, epsilon, min(bases, key=lambda f: response_variance(n, f, epsilon)))
    if made.variance > LARGEST_VARIANCE:
        raise ParameterError(f"epsilon must be larger for a survey: at {epsilon:g} nothing can be learned")
    return made


def collisions(base: int, digits: int) -> float:
    """The share of questions to which two categories have the same answer."""
    return float((base ** (digits - 1) - 1) / (base**digits - 1))


def response_variance(categories: int, base: int | None, epsilon: float) -> float:
    """P₀(1 − P₀)/(P₁ − P₀)², for randomized response on f values to questions, or on the categories."""
    values = categories if base is None else base
    if values == 1:
        return 0.0
    same = 0.0 if base is None else collisions(base, digits_of(categories, base))
    small = math.exp(-epsilon)  # in the ratio to the own answer, so that a large ε does not overflow
    own = 1 / (1 + (values - 1) * small)
    other = own * small
    support = same * own + (1 - same) * other
    return support * (1 - support) / (own - support) ** 2 if own - support > 1e-150 else math.inf


def _primes(most: int) -> list[int]:
    """The primes up to a number."""
    return [f for f in range(2, most + 1) if all(f % d for d in range(2, math.isqrt(f) + 1))]
