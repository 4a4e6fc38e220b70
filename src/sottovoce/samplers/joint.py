"""Several samples from one budget: a clip sampler at ε/k, and the box of its k-tuples.

k releases at ε/k each have a law on k-tuples that lies in the joint box [c^⊗k, e^ε·c^⊗k], c the floor at ε/k.
Answering with the best point of that box instead costs the same ε and is never further from p^⊗k, for any
user and any f-divergence. The law itself is built in integers: see `sottovoce.release.joint`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .. import _html, _validate
from ..errors import ParameterError
from ..prior import Prior
from .base import ClipSampler, Sampler, prior_warning
from .catalogue import kernel_clip

MOST_SAMPLES = 16
"""The most samples of one release: with more, hardly any category of a user could be told from another."""


@dataclass(frozen=True, eq=False, repr=False)
class JointSampler:
    """k samples per user for one ε: the joint clip above the floor of a sampler at ε/k. Made by `several`."""

    single: ClipSampler
    epsilon: float
    samples: int

    @property
    def name(self) -> str:
        """The name of the sampler whose floor is used."""
        return self.single.name

    @property
    def options(self) -> Mapping[str, float]:
        """The options of that sampler."""
        return self.single.options

    @property
    def prior(self) -> Prior:
        """The public distribution q."""
        return self.single.prior

    @property
    def keeps_prior(self) -> bool:
        """Whether a user equal to the prior releases k independent draws from it."""
        return self.single.keeps_prior

    def __repr__(self) -> str:
        return (
            f"<{self.samples} samples of {self.name} on {len(self.prior)} categories, "
            f"epsilon={self.epsilon:g} for all of them>"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("samples", self.samples),
            ("epsilon", f"{self.epsilon:g} for all samples together"),
            ("categories", f"{len(self.prior):,}"),
            ("keeps the prior", "yes" if self.keeps_prior else "no"),
        ]
        return _html.facts(f"Several samples of {self.name}", [*rows, *prior_warning(self.prior)])


def several(
    prior: Prior,
    epsilon: float,
    *,
    samples: int,
    sampler: Callable[..., Sampler] = kernel_clip,
    **options: float,
) -> JointSampler:
    """Design a release of several samples per user that costs ε for all of them together.

    Guarantees
        ε is the whole cost, not that of one sample. The joint law of a user's samples is never further from
        independent draws of their own distribution than separate releases at ε/samples, in any f-divergence;
        it keeps the prior if the sampler does. `certify` turns it into a mechanism.

    Parameters
        samples: how many categories one release gives, 2 to 16.
        sampler: the constructor of a clip sampler, such as `fitted` or `blend`; it is called with
            ε/samples. The floor of that sampler is what is used.
        options: what the constructor takes besides.

    >>> several(Prior.uniform(["a", "b", "c"]), 4.0, samples=2)
    <2 samples of kernel_clip on 3 categories, epsilon=4 for all of them>
    """
    k = _validate.whole_at_least(2, samples=samples)
    if k > MOST_SAMPLES:
        raise ParameterError(f"samples must be at most {MOST_SAMPLES}, got {k}")
    total = _validate.privacy(epsilon)
    if not callable(sampler):
        raise ParameterError(
            "sampler must be a constructor such as sottovoce.fitted, not a name or a sampler"
        )
    single = sampler(prior, total / k, **options)
    if not isinstance(single, ClipSampler):
        raise ParameterError(
            f"several samples need a clip sampler, and {getattr(single, 'name', sampler)} is not one; take "
            f"kernel_clip, which has the floor of minimax_kernel, fitted, blend or prior_minimax"
        )
    return JointSampler(single, total, k)
