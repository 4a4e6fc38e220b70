"""What the collector knows about a mechanism: categories, prior, and how to undo it where that can be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..checks import FloatArray, IntArray
from ..core.box import BoxEngine
from ..core.kernel import KernelEngine, ResponseEngine
from ..core.nearest import NearestEngine
from ..core.stream import StreamEngine
from ..core.survey import Numbers, SurveyEngine
from ..divergences import TV
from ..errors import EstimateError
from ..records import Category
from ..release.mechanism import Mechanism
from ..samplers.base import ClipSampler, KernelSampler, Sampler, check_own, known_worst_case, label
from ..samplers.kernels import MatrixKernel, MinimaxKernel, ResponseKernel, sum_after, sum_before
from ..samplers.survey import LARGEST_TRANSFORM, collisions

_NUMBER = re.compile("[1-9][0-9]{0,15}", re.ASCII)


@dataclass(frozen=True, eq=False)
class Model:
    """A mechanism as the collector sees it; not `linear` where reports only tell the released law."""

    name: str
    categories: Sequence[Category]
    prior: FloatArray
    epsilon: float
    kernel: Kernel
    linear: bool  # whether the kernel undoes the reports; of several groups, whether that of each does
    worst_distance: float  # the largest TV between a user's law and the law released for them
    digest: str | None = None
    source: Mechanism | Sampler | None = None  # None for several groups together

    @property
    def answers(self) -> Sequence[Category]:
        """What can be reported: the categories or, of a survey, the numbers of its reports."""
        return self.source.answers if isinstance(self.source, Mechanism) else self.categories

    def indices(self, names: Iterable[Any], *, as_text: bool = False) -> IntArray:
        """The index of each of the names among the answers, or -1; as text, where a file has nothing else."""
        index: Mapping[Any, int]
        if isinstance(self.source, Mechanism):
            index = self.source.answer_index
        else:
            index = {name: i for i, name in enumerate(self.categories)}
        if as_text and isinstance(index, Numbers):
            names = [int(text) if text == "0" or _NUMBER.fullmatch(text) else -1 for text in map(str, names)]
        elif as_text:
            names, index = map(str, names), {str(name): i for name, i in index.items()}
        return np.array([index.get(name, -1) for name in names], dtype=np.intp)

    @property
    def floor(self) -> FloatArray | None:
        """The floor of a clip mechanism; None for anything else."""
        source = self.source
        if isinstance(source, ClipSampler):
            return source.floor
        if isinstance(source, Mechanism) and type(source.engine) is BoxEngine:
            return np.array(source.engine.box.low, dtype=np.float64) / float(1 << source.bits)
        return None

    def of_prior(self) -> FloatArray:
        """The law of a report if every user is like the prior."""
        if self.linear or self.source is None or self.source.keeps_prior:
            return self.kernel.apply(self.prior)
        if isinstance(self.source, Mechanism):
            engine = self.source.engine
            weights = list(enumerate(engine.prior_weights()))
            return np.array([float(share) for share in engine.law(weights)])
        return self.source.distribution(self.prior)

    def at(self, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variance of one report's contribution to each value and its reach, if the users are like p."""
        with np.errstate(all="ignore"):
            second, reach = self.kernel.inverse_columns(self.kernel.apply(p))
            return np.maximum(second - p**2, 0.0), reach


class AsReleased:
    """The kernel of what is not linear: nothing is undone, and values are those of the released law."""

    def apply(self, p: FloatArray) -> FloatArray:
        """Users like the prior are released as the prior."""
        return p

    def inverse(self, y: FloatArray) -> FloatArray:
        """The reports themselves."""
        return y

    def inverse_columns(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A report contributes 1 to the category that it names, and 0 to the others."""
        return y.copy(), np.full(len(y), 1.0 if len(y) > 1 else 0.0)


class CertifiedKernel:
    """The integer kernel that was shipped, not the real-valued one it approximates.

    Its inverse is the closed form's, corrected by what the closed form leaves over: the integers differ from
    it by a relative 2^-44 or, for hard priors and large ε, more.
    """

    def __init__(self, engine: KernelEngine, epsilon: float) -> None:
        kernel = engine.kernel
        total = kernel.total
        low, own, prior = (np.array(part, dtype=np.int64) for part in (kernel.low, kernel.own, kernel.prior))
        before, behind = np.cumsum(low) - low, total - np.cumsum(prior)
        self._order = np.array(engine.order, dtype=np.intp)
        self._low, self._own, self._q = low / total, own / total, prior / total
        rest = (total - before - own) / total  # R_x, what row x spreads over the categories after x
        self._tail = np.divide(rest, behind / total, out=np.zeros(len(low)), where=behind > 0)
        self.closed = MinimaxKernel(self._unsort(self._q), epsilon)

    def _unsort(self, values: FloatArray) -> FloatArray:
        out = np.empty_like(values)
        out[self._order] = values
        return out

    def apply(self, p: FloatArray) -> FloatArray:
        """pK with the integers' entries."""
        p = p[self._order]
        return self._unsort(self._low * sum_after(p) + self._own * p + self._q * sum_before(p * self._tail))

    def inverse(self, y: FloatArray) -> FloatArray:
        """yK⁻¹, the closed form corrected until what is left over stops shrinking."""
        p = self.closed.inverse(y)
        left = y - self.apply(p)
        for step in range(40):
            better = p + self.closed.inverse(left)
            rest = y - self.apply(better)
            if step >= 2 and np.abs(rest).max() >= np.abs(left).max() / 2:
                break
            p, left = better, rest
        return p

    def inverse_columns(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The closed form's, which is close enough for an error bar."""
        return self.closed.inverse_columns(y)


class SurveyKernel:
    """The reports of a survey, undone by one Fourier transform of size f^d.

    With y_sr the share of the reports with question s and answer r, category w has the support
    C(w) = Σ_s y[s, h_s(w)] = (1/f)·Σ_x Y(x)·ω^⟨x,w⟩ over all vectors x of F_f^d, where ω = e^(2πi/f),
    Y(k·v_s) = Σ_r y_sr·ω^(−kr) for k = 1 … f − 1, and Y(0) = Σ y.
    """

    def __init__(self, engine: SurveyEngine) -> None:
        self._engine, self._shape = engine, (engine.base,) * engine.digits
        if engine.base**engine.digits > max(LARGEST_TRANSFORM, 2 * engine.categories):
            raise EstimateError("this survey has too many different reports to be estimated from")
        total = 1 << engine.bits
        self._own, self._other = engine.own / total, engine.other / total
        same = collisions(engine.base, engine.digits)
        self.other_support = same * self._own + (1 - same) * self._other
        self._gap = self._own - self.other_support
        if self._gap <= 0:
            raise EstimateError("reports of this survey tell nothing: right and wrong answers are as likely")

    @cached_property
    def _vectors(self) -> IntArray:
        """k·v_s as one integer for every question s and every k."""
        base, questions = self._engine.base, np.arange(self._engine.questions)
        rest, multiple = self._engine.vectors(questions)[:, None], np.arange(base)
        out = np.zeros((len(questions), base), dtype=np.int64)
        for j in range(self._engine.digits):
            rest, digit = np.divmod(rest, base)
            out += digit * multiple % base * base**j
        return out

    def support(self, y: FloatArray) -> FloatArray:
        """The sum of y over the reports that support each category."""
        from scipy import fft

        base, values = self._engine.base, y.reshape(-1, self._engine.base)
        spectrum = np.empty(base**self._engine.digits, dtype=np.complex128)
        spectrum[self._vectors] = fft.fft(values, axis=1)
        spectrum[0] = values.sum()
        whole = fft.ifftn(spectrum.reshape(self._shape), norm="forward", overwrite_x=True)
        return np.asarray(whole.real.ravel()[: self._engine.categories] / base)

    def apply(self, p: FloatArray) -> FloatArray:
        """pK, the law of the reports."""
        from scipy import fft

        padded = np.zeros(self._engine.base**self._engine.digits)
        padded[: len(p)] = p
        spectrum = fft.fftn(padded.reshape(self._shape)).ravel()
        right = fft.ifft(spectrum[self._vectors], axis=1).real.ravel()
        law = self._other * p.sum() + (self._own - self._other) * np.maximum(right, 0)
        return np.asarray(law / self._engine.questions)

    def inverse(self, y: FloatArray) -> FloatArray:
        """(C − P₀)/(P₁ − P₀)."""
        return np.asarray((self.support(y) - self.other_support * y.sum()) / self._gap)

    def inverse_columns(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A report contributes (1 − P₀)/(P₁ − P₀) to the categories that it supports, else −P₀/(P₁ − P₀)."""
        support, low = np.clip(self.support(y), 0, 1), self.other_support
        second = (support * (1 - low) ** 2 + (1 - support) * low**2) / self._gap**2
        return second, np.full(len(second), 1 / self._gap)


Kernel = AsReleased | CertifiedKernel | SurveyKernel | MinimaxKernel | ResponseKernel | MatrixKernel
"""What can undo reports: it has pK, yK⁻¹, and of every column of K⁻¹ the second moment and the range."""


def model_of(mechanism: Mechanism | Sampler) -> Model:
    """What a collector can do with the reports of this mechanism; refuses what cannot be identified."""
    if isinstance(mechanism, Mechanism):
        return _of_mechanism(mechanism)
    check_own(mechanism)
    linear = isinstance(mechanism, KernelSampler)
    kernel = mechanism.kernel if isinstance(mechanism, KernelSampler) else AsReleased()
    if isinstance(kernel, ResponseKernel):
        _check_response(label(mechanism), bool(kernel.kept.all()))
    prior, worst = mechanism.prior, known_worst_case(mechanism, TV)
    if worst is None:
        worst = 1 - float(np.min(mechanism.floor))
    about = (label(mechanism), prior.categories, prior.probabilities, mechanism.epsilon)
    return Model(*about, kernel, linear, worst, source=mechanism)


def _of_mechanism(mechanism: Mechanism) -> Model:
    engine, epsilon = mechanism.engine, float(mechanism.epsilon)
    kernel: Kernel = AsReleased()
    weights = np.array(engine.prior_weights(), dtype=np.int64)
    worst = 0.0
    if isinstance(engine, KernelEngine):
        kernel = CertifiedKernel(engine, epsilon)
    elif isinstance(engine, ResponseEngine):
        _check_response(mechanism.sampler, len(engine.kept) == engine.categories)
        kernel = ResponseKernel(np.ones(engine.categories, dtype=bool), epsilon)
    elif isinstance(engine, NearestEngine):
        worst = 1 - min(engine.box.low) / engine.box.total  # of any law in the box
    elif isinstance(engine, BoxEngine):  # 1 − min_i min(high_i, N − Σ_{j≠i} low_j)/N, at a user with only i
        box, spare = engine.box, engine.box.total - sum(engine.box.low)
        most = min(min(high, spare + low) for low, high in zip(box.low, box.high, strict=True))
        worst = 1 - most / box.total
    elif isinstance(engine, StreamEngine):
        worst = 1 - min(engine.prior) / sum(engine.prior)  # a later step may be as the prior itself
    elif isinstance(engine, SurveyEngine):
        kernel = SurveyKernel(engine)
    about = (mechanism.sampler, mechanism.categories, weights / weights.sum(), epsilon)  # by 2^k
    linear = not isinstance(kernel, AsReleased)
    return Model(*about, kernel, linear, worst, mechanism.digest, mechanism)


def _check_response(name: str, invertible: bool) -> None:
    if not invertible:
        raise EstimateError(
            f"{name} never releases some of its categories, so their share cannot be told from the reports; "
            f"collect with minimax_kernel or randomized_response, or at a larger epsilon"
        )
