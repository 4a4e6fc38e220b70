"""The named samplers, each a constructor (prior, epsilon, *, options) -> Sampler.

A new sampler is one floor function, one constructor here and one line in SAMPLERS; every contract
test then applies to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from .. import checks
from ..checks import FloatArray
from ..errors import ParameterError
from ..prior import Prior
from . import floors
from .base import ClipSampler, KernelSampler, Sampler, checked_prior
from .kernels import MinimaxKernel, ResponseKernel, most_likely


def minimax_kernel(prior: Prior, epsilon: float) -> KernelSampler:
    """The paper's sampler, Q(p) = pK: a minimax one among the *linear* samplers that keep the prior.

    Its worst case is the smallest that a linear sampler which keeps the prior can have. It is not the only
    such sampler, nor the best of them for every user: docs/paper.md has another with a larger diagonal.

    Guarantees
        ε-locally private; keeps the prior; its worst case equals `bounds.optimal_utility` for every
        f-divergence at once; D_f(p‖pK) ≤ `bounds.distance_factor`·D_f(p‖q).

    Raises
        ParameterError: epsilon is not in (0, 100].

    Reference: Zamanlooy, Diaz, Asoodeh (2025), Theorem 2 and Algorithm 1.

    >>> from sottovoce import TV
    >>> s = minimax_kernel(Prior(["A", "B"], [0.01, 0.99]), 2.0)
    >>> round(s.worst_case(TV), 3), s.keeps_prior
    (0.931, True)
    """
    epsilon = checks.privacy(epsilon)
    kernel = MinimaxKernel(checked_prior(prior).probabilities, epsilon)
    return KernelSampler("minimax_kernel", prior, epsilon, kernel)


def kernel_clip(prior: Prior, epsilon: float) -> ClipSampler:
    """The paper's floor with the best rule: never worse than `minimax_kernel`, for any user and any f.

    c = floor of the paper's kernel, K_jj = e^ε·c_j, Q(p) = clip(p/r; c, e^ε·c).

    Guarantees
        ε-locally private; keeps the prior; D_f(p‖Q(p)) ≤ D_f(p‖pK) for every p and every f, because
        pK lies in the same box; the same worst case as the paper's sampler.

    >>> import sottovoce as sv
    >>> prior, user = Prior(["A", "B"], [0.2, 0.8]), [0.5, 0.5]
    >>> bool(kernel_clip(prior, 1.0).divergence(user, sv.KL)
    ...      < minimax_kernel(prior, 1.0).divergence(user, sv.KL))
    True
    """
    epsilon = checks.privacy(epsilon)
    floor = floors.kernel(checked_prior(prior).probabilities, epsilon)
    return ClipSampler("kernel_clip", prior, epsilon, floor)


def prior_minimax(prior: Prior, epsilon: float) -> ClipSampler:
    """Minimax over *all* ε-private samplers that keep the prior, linear or not.

    c = clip(θ/a; q/a, q), a = e^ε, θ the root of θ(1−1/a) + Σ clip(θ/a; q_i/a, q_i) = 1.

    Guarantees
        ε-locally private; keeps the prior; worst case g(min(a·q_min, θ)), below which no sampler that
        keeps q can go. Where 1/(a+n−1) ≤ q ≤ a/(a+n−1) this equals the optimum without any prior.

    >>> from sottovoce import TV
    >>> prior = Prior(["A", "B", "C"], [0.2, 0.3, 0.5])
    >>> bool(prior_minimax(prior, 2.0).worst_case(TV) < minimax_kernel(prior, 2.0).worst_case(TV))
    True
    """
    epsilon = checks.privacy(epsilon)
    floor = floors.prior_minimax(checked_prior(prior).probabilities, epsilon)
    return ClipSampler("prior_minimax", prior, epsilon, floor)


def relative_mollifier(prior: Prior, epsilon: float) -> ClipSampler:
    """Equal room above and below the prior: q·e^(−ε/2) ≤ x ≤ q·e^(ε/2).

    Guarantees
        ε-locally private; keeps the prior; good for users close to the prior, poor in the worst case.

    Reference: Husain, Balle, Cranko, Nock (2020).

    >>> relative_mollifier(Prior.uniform(["a", "b"]), 2.0).floor.round(4).tolist()
    [0.1839, 0.1839]
    """
    epsilon = checks.privacy(epsilon)
    floor = floors.relative(checked_prior(prior).probabilities, epsilon)
    return ClipSampler("relative_mollifier", prior, epsilon, floor)


def local_minimax(prior: Prior, epsilon: float, *, gamma: float | None = None) -> ClipSampler:
    """A floor κ·q made for users within a factor gamma of the prior, q/γ ≤ p ≤ γq.

    c = κ·q with κ = (γ+1)/(γ+e^ε) when γ² > e^ε. Otherwise such users fit the relative mollifier unchanged,
    and its floor is used.

    Guarantees
        ε-locally private for *every* user; keeps the prior. With γ² > e^ε, the users within the factor have
        TV(p, Q(p)) ≤ (γ² − e^ε)/((γ+1)(γ+e^ε)). When that is the best possible is in docs/paper.md.

    Parameters
        gamma: at least 1; by default 2·e^(ε/2), twice as far as the relative mollifier can follow.

    Reference: Ghoukasian, Lee, Asoodeh (2025), Locally Optimal Private Sampling.

    >>> local_minimax(Prior.uniform(["a", "b"]), 2.0, gamma=2.0) # doctest: +ELLIPSIS
    <local_minimax(gamma=2) on 2 categories, epsilon=2>
    """
    epsilon = checks.privacy(epsilon)
    g = 2 * math.exp(epsilon / 2) if gamma is None else checks.at_least(1, gamma=gamma)
    floor = floors.local(checked_prior(prior).probabilities, epsilon, g)
    return ClipSampler("local_minimax", prior, epsilon, floor, {} if gamma is None else {"gamma": g})


def blend(prior: Prior, epsilon: float, *, weight: float = 0.5) -> ClipSampler:
    """Between the relative mollifier (weight 0) and `kernel_clip` (weight 1).

    c = relative^(1−w) · kernel^w, category by category.

    Guarantees
        ε-locally private and keeps the prior, for every weight, which must not be chosen by looking at
        private users.

    >>> blend(Prior.uniform(["a", "b"]), 1.0, weight=1.5)
    Traceback (most recent call last):
    sottovoce.errors.ParameterError: weight must lie between 0 and 1, got 1.5
    """
    epsilon = checks.privacy(epsilon)
    w = checks.fraction(weight=weight)
    floor = floors.blend(checked_prior(prior).probabilities, epsilon, w)
    return ClipSampler("blend", prior, epsilon, floor, {"weight": w})


def power_caps(
    prior: Prior,
    epsilon: float,
    *,
    scale: float | None = None,
    exponent: float = 0.5,
    promise: float | None = None,
) -> ClipSampler:
    """No category above cap = s·q^β: two parameters between the relative mollifier and `prior_minimax`.

    cap_i = clip(s·q_i^β; q_i, min(1, a·q_i)), c = cap/a, a = e^ε. The exponent β = 1 boosts every category
    by the same factor, as the relative mollifier; β = 0 gives every category the same cap, the shape of
    `prior_minimax`.

    Guarantees
        ε-locally private and keeps the prior, for every scale and exponent: `fitted` chooses them for you.

    Parameters
        scale: s, between min q^(1−β) and a·max q^(1−β), beyond which every user gets the prior. By default
            √a·exp(−(1−β)·H), H the prior's entropy: a record of the prior is boosted by √a on average.
        exponent: β, between 0 and 1.
        promise: t, and no possible user is further than 1 − t from their own data (total variation). The
            floor is raised to t/a and, where its sum demands it, moved towards that of `prior_minimax`.

    Raises
        ParameterError: scale or exponent out of range, or no sampler that keeps the prior can keep the
            promise.

    >>> prior = Prior(["A", "B"], [0.2, 0.8])
    >>> power_caps(prior, 1.0, scale=0.9, exponent=0.5).floor.round(4).tolist()
    [0.1481, 0.2961]
    """
    epsilon = checks.privacy(epsilon)
    q, b = checked_prior(prior).probabilities, checks.fraction(exponent=exponent)
    least, most = floors.power_range(q, epsilon, b)
    if scale is None:
        s = math.exp(epsilon / 2 - (1 - b) * math.fsum((-q * np.log(q)).data))  # the same on every machine
        s = min(max(s, least), most)
    else:
        s = checks.positive(scale=scale)
    if not least <= s <= most:
        raise ParameterError(
            f"scale must lie between {least:.6g} and {most:.6g} for this prior, epsilon and exponent, "
            f"got {s:.6g}: outside it everybody would get the prior"
        )
    floor = floors.power_caps(q, epsilon, s, b)
    options = {**({} if scale is None else {"scale": s}), "exponent": b}
    if promise is not None:
        options["promise"] = checked_promise(q, epsilon, promise)
        reference = floors.prior_minimax(q, epsilon)
        floor = floors.promised(floor, reference, epsilon, options["promise"])
    return ClipSampler("power_caps", prior, epsilon, floor, options)


def checked_promise(q: FloatArray, epsilon: float, promise: float | str) -> float:
    """A promise as a number; "best" is the largest that any sampler that keeps the prior can keep."""
    largest = floors.kept_mass(floors.prior_minimax(q, epsilon), epsilon)
    if promise == "best":
        return largest
    kept = checks.at_least(0, promise=promise)
    if kept > largest * (1 + 1e-12):
        raise ParameterError(
            f"promise must be at most {largest:.6g} here: no sampler that keeps the prior promises more; got "
            f"{kept:g}"
        )
    return min(kept, largest)


def global_minimax(prior: Prior, epsilon: float) -> ClipSampler:
    """Minimax over all samplers when nothing has to be kept: c_i = 1/(e^ε + n − 1).

    Guarantees
        ε-locally private; worst case that of randomized response, and never further from any user
        than it; ignores the prior, which is kept only if it happens to lie in the box.

    Reference: Park, Asoodeh, Lee (2024).

    >>> global_minimax(Prior(["a", "b"], [0.01, 0.99]), 1.0).keeps_prior
    False
    """
    epsilon = checks.privacy(epsilon)
    return ClipSampler("global_minimax", prior, epsilon, floors.uniform(len(checked_prior(prior)), epsilon))


def randomized_response(prior: Prior, epsilon: float) -> KernelSampler:
    """The classic: the truth with probability e^ε/(e^ε+n−1), else any other category alike.

    Guarantees
        ε-locally private; keeps only the uniform prior (and at a huge ε any prior, to rounding).

    Reference: Warner (1965); Kairouz, Oh, Viswanath (2016) for n categories.

    >>> randomized_response(Prior.uniform(["a", "b"]), math.log(3)).matrix().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    epsilon = checks.privacy(epsilon)
    kernel = ResponseKernel(np.ones(len(checked_prior(prior)), dtype=bool), epsilon)
    return KernelSampler("randomized_response", prior, epsilon, kernel)


def rr_with_prior(prior: Prior, epsilon: float) -> KernelSampler:
    """Randomized response on the k most likely categories, k chosen to release the truth most often.

    k maximises e^ε/(e^ε+k−1)·Σ_{top k} q. Categories outside the top k are never released.

    Guarantees
        ε-locally private; the largest probability of releasing the truth when users follow the prior;
        worst-case total variation 1 as soon as a category is dropped.

    Reference: Ghazi, Golowich, Kumar, Manurangsi, Zhang (2021), RRWithPrior.

    >>> rr_with_prior(Prior(["a", "b", "c"], [0.6, 0.39, 0.01]), 1.0).floor.round(3).tolist()
    [0.269, 0.269, 0.0]
    """
    epsilon = checks.privacy(epsilon)
    kernel = ResponseKernel(most_likely(checked_prior(prior).probabilities, epsilon), epsilon)
    return KernelSampler("rr_with_prior", prior, epsilon, kernel)


SAMPLERS: Mapping[str, Callable[..., Sampler]] = MappingProxyType({
    "minimax_kernel": minimax_kernel,
    "kernel_clip": kernel_clip,
    "prior_minimax": prior_minimax,
    "blend": blend,
    "power_caps": power_caps,
    "relative_mollifier": relative_mollifier,
    "local_minimax": local_minimax,
    "global_minimax": global_minimax,
    "randomized_response": randomized_response,
    "rr_with_prior": rr_with_prior,
})  # fmt: skip
"""Every sampler by name, read-only; pass a sampler of your own to `compare` or `check_sampler` as it is."""
