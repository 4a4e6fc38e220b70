"""The privacy blanket of a mechanism: how much of every user's law is the same for everybody."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..errors import ParameterError
from ..release.box_engine import BoxEngine
from ..release.exact import check_kernel
from ..release.joint_engine import JointEngine
from ..release.linear_engines import KernelEngine, ResponseEngine
from ..release.mechanism import Mechanism
from ..samplers.base import Sampler

UPWARDS = 1e-12
"""Doubles of a sampler's floor are rounded outwards by this."""


@dataclass(frozen=True)
class Blanket:
    """ε, the largest ratio of a law to the floor, and γ = Σc, rounded so that no bound gets too small."""

    epsilon: float
    ratio: float
    mass: float


def blanket_of(mechanism: Mechanism | Sampler) -> Blanket:
    """The blanket of a certified mechanism, from its integers, or of a sampler, from its floor."""
    if isinstance(mechanism, Mechanism):
        floor = certified_floor(mechanism)
        mass = math.nextafter(float(floor), 0)
        epsilon = float(mechanism.epsilon)
        ratio = math.nextafter(float(mechanism.ratio), math.inf)
    elif isinstance(mechanism, Sampler):
        mass = float(np.sum(mechanism.floor)) * (1 - UPWARDS)
        epsilon = mechanism.epsilon
        ratio = math.exp(epsilon) * (1 + UPWARDS)
    else:
        raise ParameterError(f"mechanism must be a Mechanism or a sampler, got {type(mechanism).__name__}")
    return Blanket(epsilon, ratio, min(mass, 1.0))


def certified_floor(mechanism: Mechanism) -> Fraction:
    """The smallest weights of all that can be released, added up, as a share of all units.

    Of several samples it is the floor of the tuples, (Σlow)^k/N^k: a tuple is what is shuffled.
    """
    total = 1 << mechanism.bits * mechanism.samples
    return Fraction(_floor_units(mechanism), total)


def _floor_units(mechanism: Mechanism) -> int:
    engine = mechanism.engine
    if isinstance(engine, JointEngine):
        floors: int = sum(engine.box.low) ** engine.samples
        return floors
    if isinstance(engine, BoxEngine):
        return sum(engine.box.low)
    if isinstance(engine, KernelEngine):
        return check_kernel(engine.kernel, mechanism.ratio)
    if isinstance(engine, ResponseEngine):
        k, total = len(engine.kept), 1 << mechanism.bits
        if k == 1:
            return total
        lowest = min(engine.own, engine.other, total // k)  # a record that is not kept draws one of k alike
        return k * lowest
    raise ParameterError("this kind of mechanism has no floor")
