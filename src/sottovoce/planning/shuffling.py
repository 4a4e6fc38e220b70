"""What shuffling adds: the central (ε′, δ) of many reports of one mechanism whose order is hidden.

A mechanism with floor c draws from the same law c/γ, γ = Σc, with probability γ, whoever the user is: the
privacy blanket (Balle, Bell, Gascón, Nissim 2019). For m reports and e = e^ε′,

    δ(ε′) ≤ (1/m)·E[(V_1 + … + V_m)₊],   V = (x(Z) − e·x′(Z))/c(Z) for Z ~ c with probability γ, else 0,

x and x′ the laws of one user's two possible data. Every x/c lies between 1 and a = e^ε and has mean 1/γ. An
expectation of a convex function of a sum grows when a term is spread at the same mean, so x/c and x′/c are
pushed to the ends 1 and a, and made to differ as often as they can: with α = (1 − γ)/(a − 1) and t = (2α −
γ)₊,

    V = a − e with probability α − t,  1 − a·e with α − t,  1 − e with γ − 2α + t,  a·(1 − e) with t.

So the bound knows of the mechanism its ε and the sum of its floor, and nothing else.

The sum is computed on a grid. Each value is split between its two neighbours on the grid at the same mean,
which again only spreads it. The law is tilted by e^{λV}, so that its mean is zero; then the m-th power of its
Fourier transform is exact to rounding where it matters, however small δ is. What lies outside the window
(Bernstein's inequality) and the rounding of the transform are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .. import checks
from ..checks import FloatArray
from ..core.arithmetic import check_kernel
from ..core.box import BoxEngine
from ..core.kernel import KernelEngine, ResponseEngine
from ..core.stream import StreamEngine
from ..core.survey import SurveyEngine
from ..errors import ParameterError, Setting
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler, check_own

OUTSIDE = 1e-30
"""Probability outside the window, under the tilted law, at most."""
MOST_REPORTS = 10**8
UNIT = 2.0**-52
UPWARDS = 1e-12
"""Doubles of a sampler's floor are rounded outwards by this."""


def amplify(mechanism: Mechanism | Sampler, reports: int, delta: float) -> float:
    """The central ε′ of so many shuffled reports at this δ: an upper bound, never above the local ε.

    Guarantees
        If `reports` users release once each with this mechanism, all of them honestly, and only the reports
        in random order are seen, then whoever sees them learns about any one user at most what (ε′, δ)
        differential privacy allows. It needs a shuffler that people trust; the mechanism's own ε holds
        whatever the shuffler does. A visible group is a population of its own: count its reports alone.
        Monotone: more reports or a larger δ never give a larger ε′ (up to the rounding of the result).

    Raises
        ParameterError: reports not between 2 and 10⁸, or delta not between 0 and 1.

    >>> import sottovoce as sv
    >>> sampler = sv.kernel_clip(sv.Prior(["A", "B"], [0.3, 0.7]), 1.0)
    >>> sv.amplify(sampler, 10_000, 1e-6) < 0.1
    True
    """
    blanket, m = blanket_of(mechanism), checks.whole_at_least(2, reports=reports)
    if m > MOST_REPORTS:
        most = f"{MOST_REPORTS:,}, got {m:,}"
        raise ParameterError(Setting("reports"), f" must be at most {most}: give fewer, ε′ only grows")
    wanted = checks.positive(delta=delta)
    if not 1e-100 <= wanted < 1:
        raise ParameterError(Setting("delta"), f" must lie between 1e-100 and 1, got {wanted:g}")
    rough = _smallest(lambda central: _bound(blanket, m, central, 4) <= wanted, 0.0, blanket.epsilon)
    return _smallest(lambda central: _bound(blanket, m, central) <= wanted, 0.9 * rough, rough)


@dataclass(frozen=True)
class Blanket:
    """ε, the largest ratio of a law to the floor, and γ = Σc, rounded so that no bound gets too small."""

    epsilon: float
    ratio: float
    mass: float


def blanket_of(mechanism: Mechanism | Sampler) -> Blanket:
    """The blanket of a certified mechanism, from its integers, or of a sampler, from its floor."""
    if isinstance(mechanism, Mechanism):
        mass = math.nextafter(float(certified_floor(mechanism)), 0)
        epsilon = float(mechanism.epsilon)
        ratio = math.nextafter(float(mechanism.ratio), math.inf)
    else:
        check_own(mechanism)
        mass = float(np.sum(mechanism.floor)) * (1 - UPWARDS)
        epsilon = mechanism.epsilon
        ratio = math.exp(epsilon) * (1 + UPWARDS)
    return Blanket(epsilon, ratio, min(mass, 1.0))


def certified_floor(mechanism: Mechanism) -> Fraction:
    """The smallest weights of all that can be released, added up, as a share of all units.

    Of a stream it is 1/R₀, for all its releases together: a transcript is what is shuffled.
    """
    engine, total = mechanism.engine, 1 << mechanism.bits
    if isinstance(engine, StreamEngine):
        return Fraction(engine.one, engine.start)
    if isinstance(engine, BoxEngine):
        return Fraction(sum(engine.box.low), total)
    if isinstance(engine, KernelEngine):
        return Fraction(check_kernel(engine.kernel, mechanism.ratio), total)
    if isinstance(engine, ResponseEngine):
        k = len(engine.kept)  # a record that is not kept draws one of k alike
        return Fraction(k * min(engine.own, engine.other, total // k) if k > 1 else total, total)
    if isinstance(engine, SurveyEngine):
        return Fraction(engine.base * min(engine.own, engine.other), total)
    raise ParameterError("this kind of mechanism has no floor")


def _smallest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest ε′ between the two that fits, from above, to a 10,000th of itself; `high` fits."""
    while high - low > 1e-4 * high and high > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _atoms(blanket: Blanket, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """The four values of V that are not 0, and their probabilities."""
    a, e, gamma = blanket.ratio, math.exp(epsilon), blanket.mass
    alpha = (1 - gamma) / (a - 1)
    both = max(2 * alpha - gamma, 0.0)
    values = np.array([a - e, 1 - a * e, 1 - e, a * (1 - e)])
    chances = np.array([alpha - both, alpha - both, max(gamma - 2 * alpha, 0.0), both])
    return values, chances


def _bound(blanket: Blanket, m: int, epsilon: float, fineness: int = 16) -> float:
    """The upper bound on δ(ε′); `fineness` steps of the grid to the spread of one V, fewer for a large m."""
    if epsilon >= blanket.epsilon or blanket.mass >= 1:
        return 0.0
    values, chances = _atoms(blanket, epsilon)
    spread = math.sqrt(float(chances @ values**2))
    steps = min(fineness, 16 if m <= 10**6 else 8 if m <= 10**7 else 4)
    while steps >= 1:
        expectation = _expectation(values, chances, spread / steps, m)
        if expectation is not None:
            return min(1.0, expectation / m)
        steps //= 2  # a coarser grid gives a bound too
    return 1.0


def _split(values: FloatArray, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Each value between the whole numbers next to it, at the same mean; the value 0 takes the rest."""
    low = np.floor(values)
    part = values - low
    split = np.concatenate([chances * (1 - part), chances * part, [max(1 - chances.sum(), 0.0)]])
    return np.concatenate([low, low + 1, [0.0]]), split


def _tilted(exponents: FloatArray, chances: FloatArray) -> tuple[float, FloatArray]:
    """log E[e^{λV}], and the tilted probabilities."""
    top = float(exponents.max())
    weights = chances * np.exp(exponents - top)
    total = float(weights.sum())
    return top + math.log(total), weights / total


def _tilt(steps: FloatArray, chances: FloatArray, step: float) -> float:
    """λ ≥ 0 under which the mean is 0, about: any λ > 0 gives a bound, this one a good one."""
    scale = step * float(np.abs(steps).max())

    def mean(tilt: float) -> float:
        return float(_tilted(tilt * steps * step, chances)[1] @ steps)

    low, high = 0.0, 1 / scale
    while mean(high) < 0 and high < 700 / scale:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < 0 else (low, middle)
    return max(high, 1e-9 / scale)


def _expectation(values: FloatArray, chances: FloatArray, step: float, m: int) -> float | None:
    """E[(ΣV)₊] = E[e^{λV}]^m · E_λ[e^{−λS}·S₊], what was left out added; None if it takes too fine a grid."""
    steps, split = _split(values / step, chances)
    tilt = _tilt(steps, split, step)
    log_moment, tilted = _tilted(tilt * steps * step, split)
    mean = float(tilted @ steps)
    deviation = float(tilted @ (steps - mean) ** 2)
    reach = float(np.abs(steps - mean).max())
    log_outside = math.log(2 / OUTSIDE)
    radius = reach * log_outside / 3 + math.sqrt(
        (reach * log_outside / 3) ** 2 + 2 * m * deviation * log_outside
    )  # Bernstein: 2·exp(−r²/(2(mσ² + b·r/3))) = OUTSIDE
    size = 1 << max(4, math.ceil(math.log2(2 * radius + 3)))
    if size > 1 << 22:  # entries of a transform
        return None
    centre = round(m * mean)
    frequency = np.fft.rfftfreq(size)
    law = np.zeros(len(frequency), dtype=np.complex128)
    for offset, chance in zip(steps - mean, tilted, strict=True):
        law += chance * np.exp(-2j * np.pi * frequency * offset)
    with np.errstate(under="ignore"):
        power = np.exp(m * np.log(np.where(law == 0, 1e-300, law)))
        power *= np.exp(2j * np.pi * frequency * (centre - m * mean))
    around = np.fft.irfft(power, size)
    offsets = np.fft.fftfreq(size, 1 / size)
    sums = step * (centre + offsets)
    gain = np.where(sums > 0, sums * np.exp(-tilt * np.maximum(sums, 0)), 0.0)
    rounding = UNIT * (8 * m + 64 * math.log2(size)) * float(gain.sum())
    inside = float(np.maximum(around, 0) @ gain)
    outside = 4 * OUTSIDE / (math.e * tilt)
    total = inside + rounding * float(np.abs(power).mean()) + outside
    largest = 1 + abs(log_moment) + tilt * step * float(np.abs(steps).max())
    exponent = m * log_moment + math.log(max(total, 1e-300)) + 16 * m * UNIT * largest  # roundings of V
    return math.exp(min(exponent, 700.0))
