"""From an estimate to a prior: positive everywhere, and no surer than the reports are.

The shares of the categories are taken as independent draws of a gamma law with the mean of an older prior (at
first the uniform one) and an unknown shape a, and an estimate p̂_i as the share with a normal error of
standard deviation s_i. The learned prior is the mean of the posterior,

    q_i ∝ E[x | p̂_i] = ∫ x·g_a(x/q⁰_i)·φ((p̂_i − x)/s_i) dx / ∫ g_a(x/q⁰_i)·φ((p̂_i − x)/s_i) dx,

averaged over the shapes by how likely each makes all estimates together (docs/learning.md).
"""

from __future__ import annotations

import math

import numpy as np

from ..checks import FloatArray
from ..errors import PriorError
from ..prior import Prior
from ..records import LARGEST_COUNT
from ..release.mechanism import Mechanism
from ..samplers.base import checked_prior
from .model import Model

SHAPES = np.geomspace(0.25, 16, 13)
"""Shapes of the gamma law: below 1 a few categories have most of the mass, far above 1 all are alike."""
NODES = 128
"""Points of the integral over a share, within `REACH` standard errors of the estimate."""
REACH = 8.0
SAMPLED = 4096
"""Categories that the shapes are weighed on; more cost time and change nothing."""
ROWS = 1 << 13
"""Categories whose integrals are computed at once."""
SPREAD = 0.001
"""The share of the older prior, at least: nothing that was not seen is impossible."""
NOISE = 2.0
"""Reports suffice for a prior where the expected squared noise is at most so many times the signal."""


def ranked(n: int) -> FloatArray:
    """The law over n categories that falls off like rank^-0.9: of a population of which nothing is known."""
    weights = np.arange(1, n + 1) ** -0.9
    return np.asarray(weights / weights.sum())


def reports_for_prior(model: Model) -> int:
    """How many reports a prior needs: until the noise, Σ_j v_j/m, is twice the signal ‖r − u‖² or less.

    v_j is the variance of one report's contribution if users are like the prior of the mechanism, r falls off
    like rank^-0.9 and u is uniform. It depends on public numbers alone.
    """
    n = len(model.prior)
    signal = float(((ranked(n) - 1 / n) ** 2).sum())
    if signal == 0:
        return 2
    needed = float(model.at(model.prior)[0].sum()) / (NOISE * signal)
    return max(2, math.ceil(min(needed, LARGEST_COUNT)))


def starting_law(older: Prior | None, model: Model) -> FloatArray:
    """The older prior, or that of the mechanism, in the order of its categories; none made from users.

    A mechanism whose prior was made from users is refused whatever the older prior is: its categories, the
    law of its reports and their inverse all contain that prior, so what is learned with it would too.
    """
    if isinstance(model.source, Mechanism) and model.source.provenance == "users":
        raise PriorError(
            "the prior of this mechanism was made from the users it serves, and what is learned from its "
            "reports is no more public: collect with a survey, or with a mechanism of a public prior"
        )
    if older is None:
        return model.prior
    if checked_prior(older).provenance == "users":
        raise PriorError(
            "the older prior was made from the users it serves: a mixture with it is not private"
        )
    if set(older.categories) != set(model.categories):
        raise PriorError("the older prior must have the categories of the mechanism")
    return older.probabilities[[older.index[name] for name in model.categories]]


def largest_epsilon(older: Prior | None, model: Model) -> float:
    """The largest ε of all reports behind a learned prior: these, and those of the priors it starts from."""
    rounds = [model.epsilon]
    if isinstance(model.source, Mechanism) and model.source.provenance == "learned":
        rounds.append(_stated(model.source.learned_epsilon, "the prior of this mechanism"))
    if older is not None and older.provenance == "learned":
        known = None if older.learned is None else older.learned.epsilon
        rounds.append(_stated(known, "the older prior"))
    return max(rounds)


def _stated(epsilon: str | float | None, whose: str) -> float:
    """The ε that an earlier prior was learned at; what is learned from it must be able to state one."""
    if epsilon is None:
        raise PriorError(
            f"{whose} was learned from private reports and does not state at which epsilon: start from one "
            f"that does, or from a public prior"
        )
    return float(epsilon)


def posterior_mean(values: FloatArray, errors: FloatArray, centre: FloatArray) -> FloatArray:
    """E[x | p̂] of every category, averaged over the shapes."""
    if len(values) == 1:
        return np.ones(1)
    step = max(1, len(values) // SAMPLED)
    evidence = np.array([_integrals(values[::step], errors[::step], centre[::step], a)[0] for a in SHAPES])
    weights = np.exp(evidence - evidence.max())
    weights[weights < 1e-3] = 0
    out = np.zeros(len(values))
    for a, weight in zip(SHAPES[weights > 0], weights[weights > 0] / weights.sum(), strict=True):
        out += weight * _integrals(values, errors, centre, a)[1]
    return out


def _integrals(
    values: FloatArray, errors: FloatArray, centre: FloatArray, shape: float
) -> tuple[float, FloatArray]:
    """The logarithm of the evidence for a shape, and E[x | p̂] for every category.

    By the midpoint rule; from 0 in x = span·y⁴, which takes the pole at 0 away.
    """
    mean, evidence = np.empty(len(values)), 0.0
    y = (np.arange(NODES) + 0.5) / NODES
    for begin in range(0, len(values), ROWS):
        part = slice(begin, begin + ROWS)
        value, error, prior = values[part, None], errors[part, None], centre[part, None]
        low = np.maximum(value - REACH * error, 0)
        span = np.maximum(value, 0) + REACH * error - low
        power = np.where(low > 0, 1, 4)
        x = low + span * y**power
        density = (shape - 1) * np.log(x) - shape * x / prior
        density -= ((value - x) / error) ** 2 / 2
        density += np.log(span * power * y ** (power - 1))
        top = density.max(axis=1)
        weights = np.exp(density - top[:, None])
        total = weights.sum(axis=1)
        scale = shape * np.log(shape / centre[part]) - math.lgamma(shape)
        mean[part] = (weights * x).sum(axis=1) / total
        evidence += float((np.log(total) + top + scale).sum())
    return evidence, mean
