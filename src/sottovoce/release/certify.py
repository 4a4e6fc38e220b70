"""From a sampler in floats to a mechanism in integers, certified.

Floats only *propose* here. Whatever they propose is turned into integers and then has to pass the
certificate of the mechanism, which looks at integers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from .. import checks
from ..checks import FloatArray
from ..core.arithmetic import Box, certified_box, exp_below, integer_kernel, times_below
from ..core.box import BoxEngine
from ..core.constants import BITS
from ..core.engine import Engine
from ..core.kernel import KernelEngine, ResponseEngine
from ..core.nearest import NearestEngine, NearestStreamEngine
from ..core.stream import RATIO_BITS, StreamEngine
from ..core.survey import SurveyEngine
from ..core.tree import IntegerTree
from ..errors import CertificateError, ParameterError, PriorError, Setting
from ..geometry import Geometry
from ..prior import FROM_USERS, PROVENANCES, Prior, shortest_text
from ..samplers.base import BoxSampler, ClipSampler, KernelSampler, Sampler, check_own, is_ours
from ..samplers.kernels import MinimaxKernel, ResponseKernel
from ..samplers.nearest import NearestSampler
from ..samplers.stream import Stream
from ..samplers.survey import Survey
from .mechanism import LEARNED, Mechanism


def certify(sampler: Sampler | Stream | Survey, *, provenance: str = "public") -> Mechanism:
    """Turn a sampler into a mechanism that releases in exact integer arithmetic.

    Guarantees
        The mechanism is ε-locally private exactly, for the ε of the sampler taken at its exact binary value;
        its law is the sampler's up to about 16·n·e^ε/2^62, for the kernel also a relative 2^-44. Clip
        samplers that keep the prior keep its integer weights exactly. A `Stream` gives a mechanism whose
        releases together cost the ε of the stream.

    Parameters
        provenance: "users" certifies although the prior was made from the users it serves; the mechanism then
            states it, which every client can see.

    Raises
        CertificateError: a category is too rare for N = 2^62 units (of a stream 2^40), or ε too small for the
            categories.
        PriorError: the prior was made from the users it serves, and that was not accepted.

    >>> from sottovoce import kernel_clip
    >>> mechanism = certify(kernel_clip(Prior(["a", "b"], [0.25, 0.75]), 1.0))
    >>> mechanism.release(records=["a", "a", "b"]) in ("a", "b")
    True
    """
    checks.one_of(PROVENANCES, provenance=provenance)
    if not isinstance(sampler, Stream | Survey):
        check_own(sampler)
    if not is_ours(sampler):
        raise _without_integers(sampler)
    if sampler.prior.provenance == "users" != provenance:
        raise PriorError(f"{FROM_USERS} For an experiment pass ", Setting("provenance", "users"))
    return certify_with(sampler, BITS)


def certify_with(sampler: Sampler | Stream | Survey, bits: int) -> Mechanism:
    """`certify` with N = 2^bits; fewer bits are for tests that enumerate every draw."""
    ratio = exp_below(Fraction(sampler.epsilon))
    kernel = sampler.kernel if isinstance(sampler, KernelSampler) else None
    if not isinstance(kernel, MinimaxKernel):
        return _mechanism(sampler, _engine(sampler, ratio, bits), ratio, bits)
    for engine in _kernels(prior_weights(sampler.prior, 1 << bits), ratio, bits):
        try:
            return _mechanism(sampler, engine, ratio, bits)
        except CertificateError:
            continue
    rarest = sampler.prior.categories[int(np.argmin(sampler.prior.probabilities))]
    raise CertificateError(
        f"the kernel cannot be certified in units of 2^-{bits}: epsilon is too small or too large for "
        f"{len(sampler.prior)} categories, or {rarest!r} is too rare; merge rare categories"
    )


def _engine(sampler: Sampler | Stream | Survey, ratio: Fraction, bits: int) -> Engine:
    """What draws for a sampler that is not the paper's; nothing is certified yet."""
    n, total = len(sampler.prior), 1 << bits
    if isinstance(sampler, Stream):
        return _stream(sampler, ratio, bits)
    if isinstance(sampler, Survey) and sampler.base is not None:
        return SurveyEngine(sampler.base, *_response_weights(sampler.base, ratio, bits), n, bits)
    prior = tuple(prior_weights(sampler.prior, total))
    if isinstance(sampler, ClipSampler):
        return BoxEngine(_box(sampler, prior, ratio, total), prior)
    if isinstance(sampler, NearestSampler):
        box = _box(sampler, prior, ratio, total)
        return NearestEngine(box, prior, geometry=_integers(sampler.geometry))
    if isinstance(sampler, Survey):
        kept = tuple(range(n))
    elif isinstance(sampler, KernelSampler) and isinstance(sampler.kernel, ResponseKernel):
        kept = tuple(np.flatnonzero(sampler.kernel.kept).tolist())
    else:
        raise _without_integers(sampler)
    return ResponseEngine(kept, *_response_weights(len(kept), ratio, bits), n, prior, bits)


def _without_integers(sampler: Sampler | Stream | Survey) -> ParameterError:
    return ParameterError(
        f"sampler {sampler.name!r} has a rule or a matrix of its own, for which there are no exact "
        "integers: it can be compared; a floor of your own can be certified, as a ClipSampler"
    )


def _mechanism(sampler: Sampler | Stream | Survey, engine: Engine, ratio: Fraction, bits: int) -> Mechanism:
    """The mechanism of an engine, if its certificate holds: it is checked here, and only here."""
    options = {key: repr(float(value)) for key, value in sampler.options.items()}
    if (learned := sampler.prior.learned) is not None:
        values = str(learned.reports), shortest_text(learned.epsilon), learned.mechanism
        options |= dict(zip(LEARNED, values, strict=True))
    return Mechanism(
        sampler=sampler.name,
        options=options,
        categories=sampler.prior.categories,
        epsilon=Fraction(sampler.epsilon),
        ratio=ratio,
        engine=engine,
        keeps_prior=engine.keeps_prior(),
        prior_digest=sampler.prior.digest,
        provenance=sampler.prior.provenance,
        bits=bits,
    )


def prior_weights(prior: Prior, total: int) -> list[int]:
    """The prior as integers ≥ 1 that add up to N: ⌊q·N⌋, the rest one each to the likeliest."""
    units = _units(prior.probabilities, total)
    for i, unit in enumerate(units):
        if unit < 1:
            raise CertificateError(
                f"category {prior.categories[i]!r} is too rare to certify: its probability is below "
                f"2^-{total.bit_length() - 1}; merge it with another"
            )
    spare = total - sum(units)
    order = np.argsort(-prior.probabilities, kind="stable").tolist()
    each, some = divmod(spare, len(units))
    for rank, i in enumerate(order):
        units[i] += each + (rank < some)
    if min(units) < 1:  # the probabilities added up to a little more than one
        rarest = prior.categories[units.index(min(units))]
        raise CertificateError(f"category {rarest!r} is too rare to certify")
    return units


def _units(values: FloatArray, total: int) -> list[int]:
    """⌊value·N⌋ exactly: scaling a double by a power of two loses nothing."""
    power = total.bit_length() - 1
    return [int(math.ldexp(value, power)) for value in values.tolist()]


def _box(sampler: BoxSampler, prior: Sequence[int], ratio: Fraction, total: int) -> Box:
    """The sampler's floor in whole units; where the prior is kept, moved by a unit so that it stays kept."""
    low = _units(sampler.floor, total)
    if sampler.keeps_prior:
        up, down = ratio.numerator, ratio.denominator
        low = [min(max(unit, -(-w * down // up)), w) for unit, w in zip(low, prior, strict=True)]
    low = [max(unit, 1) for unit in low]
    missing = total - sum(min(times_below(ratio, unit), total) for unit in low)
    if missing > 0:  # rounding down the floor may have closed the box by a few units
        step = -(-missing // len(low)) + 1
        low = [unit + step for unit in low]
    return certified_box(low, ratio, total)


def _stream(sampler: Stream, ratio: Fraction, bits: int) -> StreamEngine:
    """The prior in whole units, and R before the first release between 1 and A."""
    prior = prior_weights(sampler.prior, 1 << (bits - RATIO_BITS * bits // BITS))
    begin = exp_below(Fraction(sampler.start)) if sampler.start > 0 else Fraction(1)
    made = StreamEngine(tuple(prior), 0, sampler.pace, sampler.persistence, ratio, bits)
    if sampler.geometry is not None:
        made = NearestStreamEngine(**vars(made), geometry=_integers(sampler.geometry))
    return replace(made, start=min(int(begin * made.one), made.most))


def _integers(geometry: Geometry) -> IntegerTree:
    """The tree and its integer lengths, without the unit: all that a law depends on."""
    return IntegerTree(geometry.parents, geometry.lengths)


def _response_weights(values: int, ratio: Fraction, bits: int) -> tuple[int, int]:
    """other = ⌈N/(A+k−1)⌉ and own what is left, at most A·other."""
    whole = ratio + values - 1
    other = -(-(whole.denominator << bits) // whole.numerator) if values > 1 else 0
    return (1 << bits) - (values - 1) * other, other


def _kernels(prior: list[int], ratio: Fraction, bits: int) -> Iterator[KernelEngine]:
    """The integer kernel with a slack of 2^-44 of A, then 64 times as much, …: the first that certifies."""
    order = sorted(range(len(prior)), key=prior.__getitem__)
    ascending = [prior[i] for i in order]
    for power in range(44, 1, -6):
        kernel = integer_kernel(ascending, ratio, 1 << bits, slack=Fraction(1, 1 << power))
        yield KernelEngine(kernel, tuple(order), bits)
