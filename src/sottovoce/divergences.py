"""How far a released law is from the private one: f-divergences as frozen records.

D_f(p‖x) = Σ_i x_i f(p_i/x_i), private law first, released law second, natural logarithms. Every f
here is written in its non-negative form (a multiple of t − 1 added, which changes no divergence
between distributions), so that no sum has terms of both signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from . import checks
from .checks import FloatArray
from .errors import ParameterError
from .geometry import Wasserstein


@dataclass(frozen=True)
class FDivergence:
    """An f-divergence: a convex f with f(1) = 0 and its two limits.

    Parameters
        name: how tables call it.
        f: vectorised over arrays of t > 0.
        at_zero: f(0) = lim f(t) as t → 0, the price of releasing what the user does not have.
        at_infinity: lim f(t)/t as t → ∞, the price of never releasing what the user has.
            Either limit may be ``math.inf``.
        slope: f(t) − t·f'(t), the derivative of x·f(p/x) by x at t = p/x; only `limit` needs it. Where f has
            a kink, that of any tangent.

    Raises
        ParameterError: f(1) ≠ 0, f visibly not convex, or a limit or slope that contradicts f.

    >>> le_cam = FDivergence("le-cam", lambda t: (1 - t) ** 2 / (2 * t + 2), 0.5, 0.5)
    >>> float(le_cam([1.0, 0.0], [0.5, 0.5]))
    0.3333333333333333
    """

    name: str
    f: Callable[[FloatArray], FloatArray] = field(compare=False)
    at_zero: float
    at_infinity: float
    slope: Callable[[FloatArray], FloatArray] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        grid = np.concatenate([np.geomspace(1e-6, 1, 121), np.geomspace(1, 1e6, 121)[1:]])
        values = np.asarray(self.f(grid), dtype=np.float64)
        if values.shape != grid.shape or not np.all(np.isfinite(values)):
            self._refuse("map an array of t > 0 to finite values of the same shape")
        if abs(values[120]) > 1e-12:
            self._refuse(f"have f(1) = 0, got {values[120]:g}")
        slopes = np.diff(values) / np.diff(grid)
        rounding = 1e-9 * (1 + np.abs(slopes[1:]) + np.abs(values[1:-1]) / grid[1:-1])
        if np.any(np.diff(slopes) < -rounding):
            self._refuse("be convex on t > 0")
        with np.errstate(over="ignore"):
            ends = np.asarray(self.f(np.array([1e-100, 1e100])), dtype=np.float64)
        # Convexity puts f(0) above each tangent and the limit of f(t)/t above each slope; a finite limit must
        # be close to f itself far out (within 2e-3: slow powers have not quite arrived).
        if not _limit(self.at_zero, values[0] - slopes[0] * grid[0], ends[0]):
            self._refuse(f"have at_zero = lim f(t) as t → 0, got {self.at_zero}")
        if not _limit(self.at_infinity, slopes[-1], ends[1] / 1e100):
            self._refuse(f"have at_infinity = lim f(t)/t as t → ∞, got {self.at_infinity}")
        if self.slope is not None and not _tangents(grid, values, np.asarray(self.slope(grid))):
            self._refuse("have slope = f(t) − t·f'(t)")

    def _refuse(self, condition: str) -> None:
        raise ParameterError(f"f of divergence {self.name!r} must {condition}")

    def __call__(self, p: npt.ArrayLike, x: npt.ArrayLike) -> FloatArray:
        """D_f(p‖x) along the last axis of two arrays of distributions."""
        private, released = np.broadcast_arrays(*(np.asarray(law, dtype=np.float64) for law in (p, x)))
        on_support = np.where(private > 0, released, 0.0)
        rest = np.where(private > 0, 0.0, released).sum(axis=-1)
        return self.on_support(private, on_support, rest)

    def on_support(self, p: FloatArray, x: FloatArray, rest: FloatArray) -> FloatArray:
        """D_f from x where p > 0 and the total `rest` of x where p = 0 (x is 0 there)."""
        both = x > 0
        ratio = np.divide(p, x, out=np.ones_like(p), where=both)
        with np.errstate(over="ignore"):  # beyond 1e308 the answer is infinity
            terms = np.where(both, x * self.f(ratio), 0.0)
        value = terms.sum(axis=-1) + _times(self.at_zero, rest)
        if not both.all():
            value = value + _times(self.at_infinity, np.where(both, 0.0, p).sum(axis=-1))
        return np.asarray(np.maximum(value, 0.0))  # Jensen: below zero there is only rounding

    def of_point_mass(self, own: float, rest: float) -> float:
        """g(t) = t·f(1/t) + (1−t)·f(0): D_f of a point mass whose own category has probability t = own.

        `rest` is 1 − t, given apart because near t = 1 a subtraction would lose it.
        """
        return float(self.on_support(np.ones(1), np.array([min(own, 1.0)]), np.asarray(rest)))

    def __repr__(self) -> str:
        return f"FDivergence({self.name!r})"


def _times(price: float, mass: FloatArray) -> FloatArray:
    """price·mass with ∞·0 = 0."""
    if math.isinf(price):
        return np.where(mass > 0, math.inf, 0.0)
    return price * mass


def _limit(stated: float, least: float, seen: float) -> bool:
    """Whether a stated limit is not below what convexity demands and, if finite, close to what is seen."""
    if not isinstance(stated, int | float) or not stated >= least - 1e-6 * (1 + abs(least)):
        return False
    if math.isinf(stated):
        return seen > 100
    return abs(stated - seen) <= 2e-3 * (1 + abs(stated))


def _tangents(t: FloatArray, values: FloatArray, slope: FloatArray) -> bool:
    """Whether the tangents with f'(t) = (f(t) − slope)/t stay below f at the neighbours of t."""
    if slope.shape != t.shape or not np.all(np.isfinite(slope)):
        return False
    derivative = (values - slope) / t
    step = np.diff(t)
    rounding = 1e-9 * (1 + np.abs(values) + np.abs(derivative) * t)
    after = values[1:] >= values[:-1] + derivative[:-1] * step - rounding[1:]
    before = values[:-1] >= values[1:] - derivative[1:] * step - rounding[1:]
    return bool(after.all() and before.all())


def _half_distance(t: FloatArray) -> FloatArray:
    return np.abs(t - 1) / 2


def _kl(t: FloatArray) -> FloatArray:
    return t * np.log(t) - t + 1


def _reverse_kl(t: FloatArray) -> FloatArray:
    return t - 1 - np.log(t)


def _square(t: FloatArray) -> FloatArray:
    return (t - 1) ** 2


def _root_square(t: FloatArray) -> FloatArray:
    return (np.sqrt(t) - 1) ** 2


def _jensen_shannon(t: FloatArray) -> FloatArray:
    middle = (t + 1) / 2
    return (t * np.log(t / middle) - np.log(middle)) / 2


def _above(gamma: float, t: FloatArray) -> FloatArray:
    return np.maximum(t - gamma, 0.0)


def _power(order: float, t: FloatArray) -> FloatArray:
    return np.asarray((t**order - 1 - order * (t - 1)) / (order * (order - 1)))


def _half_distance_slope(t: FloatArray) -> FloatArray:
    return np.sign(1 - t) / 2


def _jensen_shannon_slope(t: FloatArray) -> FloatArray:
    return np.asarray(-np.log((t + 1) / 2) / 2)


def _above_slope(gamma: float, t: FloatArray) -> FloatArray:
    return np.where(t > gamma, -gamma, 0.0)


def _power_slope(order: float, factor: float, t: FloatArray) -> FloatArray:
    return np.asarray(factor * (-np.log(t) if order == 0 else (1 - t**order) / order))


TV = FDivergence("tv", _half_distance, 0.5, 0.5, _half_distance_slope)
"""Total variation, ½Σ|p − x|: the least probability that the release differs from a draw of p."""

KL = FDivergence("kl", _kl, 1.0, math.inf, partial(_power_slope, 1.0, 1.0))
"""Kullback–Leibler, Σ p log(p/x), in nats."""

CHI2 = FDivergence("chi2", _square, 1.0, math.inf, partial(_power_slope, 2.0, 2.0))
"""Pearson's χ², Σ (p − x)²/x."""

HELLINGER2 = FDivergence("hellinger2", _root_square, 1.0, 1.0, partial(_power_slope, 0.5, 0.5))
"""Squared Hellinger without the half, Σ (√p − √x)², between 0 and 2."""

JS = FDivergence("js", _jensen_shannon, math.log(2) / 2, math.log(2) / 2, _jensen_shannon_slope)
"""Jensen–Shannon, ½KL(p‖m) + ½KL(x‖m) with m = (p+x)/2, between 0 and log 2."""

REVERSE_KL = FDivergence("reverse_kl", _reverse_kl, math.inf, 1.0, partial(_power_slope, 0.0, 1.0))
"""KL(x‖p) = Σ x log(x/p): infinite as soon as the user lacks a category that can be released."""

DIVERGENCES: dict[str, FDivergence] = {d.name: d for d in (TV, KL, CHI2, HELLINGER2, JS, REVERSE_KL)}
"""The divergences without a parameter, by name."""


def hockey_stick(gamma: float) -> FDivergence:
    """E_γ(p‖x) = Σ (p − γx)₊ with γ ≥ 1; γ = 1 is total variation.

    >>> float(hockey_stick(2)([1.0, 0.0], [0.25, 0.75]))
    0.5
    """
    g = checks.at_least(1, gamma=gamma)
    return FDivergence(f"hockey_stick({g:g})", partial(_above, g), 0.0, 1.0, partial(_above_slope, g))


def alpha(order: float) -> FDivergence:
    """The power divergence Σ x((p/x)^α − 1)/(α(α−1)) of order α, the f-divergence inside Rényi's.

    Rényi's divergence of order α is log(1 + α(α−1)·D)/(α−1), increasing in D. Orders 1 and 0 are
    KL and reverse KL, order 2 is χ²/2, order ½ is twice the squared Hellinger distance. Orders
    closer to 0 or 1 than 0.05, but not equal, are refused: the formula loses its digits there.

    >>> float(alpha(2)([1.0, 0.0], [0.5, 0.5])), alpha(1) is KL
    (0.5, True)
    """
    a = checks.real(order=order)
    if a in (0.0, 1.0):
        return KL if a == 1 else REVERSE_KL
    if min(abs(a), abs(a - 1)) < 0.05 * (1 - 1e-9):
        raise ParameterError(f"order must be 0, 1 or at least 0.05 away from both, got {a}")
    if abs(a) > 40:
        raise ParameterError(f"order must lie between -40 and 40, got {a}")

    at_zero = 1 / a if a > 0 else math.inf
    at_infinity = 1 / (1 - a) if a < 1 else math.inf
    slope = partial(_power_slope, a, 1.0)
    return FDivergence(f"alpha({a:g})", partial(_power, a), at_zero, at_infinity, slope)


Distance: TypeAlias = FDivergence | Wasserstein
"""How far a law is from another: an f-divergence, or the W1 of a geometry."""


def checked(f: Distance) -> Distance:
    """Refuse a name or a function where a divergence is meant."""
    if not isinstance(f, FDivergence | Wasserstein):
        raise ParameterError(
            f"f must be a divergence such as sottovoce.TV, got {type(f).__name__}; "
            f"by name: sottovoce.DIVERGENCES['tv']"
        )
    return f


def checked_f(f: Distance) -> FDivergence:
    """Refuse W1 too, where only an f-divergence has an answer."""
    if isinstance(f, Wasserstein):
        raise ParameterError("an f-divergence is needed here, such as sottovoce.TV, not W1")
    checked(f)
    return f
