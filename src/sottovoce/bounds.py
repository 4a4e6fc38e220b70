"""The theory in numbers: bounds on every user, one category, and a user at a known distance from the prior.

    import sottovoce as sv
    sv.bounds.optimal_utility(prior, 2.0, sv.TV)

The proofs are in docs/paper.md.
"""

from __future__ import annotations

import math

import numpy as np

from . import checks
from .checks import FloatArray
from .divergences import FDivergence, checked_f
from .errors import ParameterError
from .prior import Prior
from .samplers.base import ClipSampler, KernelSampler, Sampler, checked_prior

__all__ = ["diagonal_bound", "distance_factor", "optimal_utility", "released_as_itself"]


def optimal_utility(prior: Prior, epsilon: float, f: FDivergence) -> float:
    """The paper's Γ_f(q, ε): the best worst case of any ε-private *linear* sampler that keeps q.

    Γ_f = g(t) with t = a·q_min/(a·q_min + 1 − q_min), a = e^ε and g(t) = t·f(1/t) + (1−t)·f(0). It
    depends on the prior only through its smallest probability.

    Reference: Zamanlooy, Diaz, Asoodeh (2025), Theorem 1.

    >>> from sottovoce import TV
    >>> round(optimal_utility(Prior(["A", "B"], [0.5, 0.5]), 2.0, TV), 3)
    0.119
    """
    q = checked_prior(prior).probabilities
    rarest = int(q.argmin())
    others = float(q[:rarest].sum() + q[rarest + 1 :].sum())  # 1 − q_min would lose it near one
    boosted = math.exp(checks.privacy(epsilon)) * float(q[rarest])
    return checked_f(f).of_point_mass(boosted / (boosted + others), others / (boosted + others))


def released_as_itself(sampler: Sampler) -> FloatArray:
    """Per category i the least probability t_i with which a draw of i is released as i.

    Let X be a draw from the user's p, and Z the release. A linear sampler takes X as the record it chose,
    and Pr(Z = i | X = i) = t_i = K_ii. A clip sampler has t_i = min(a·c_i, 1 − Σc + c_i), a = e^ε, and X
    and Z can be drawn together such that Pr(Z = i | X = i) ≥ t_i.

    Guarantees
        Q(p)_i ≥ t_i·p_i for every user p and every category i, with equality for the user who holds i
        alone. The worst case in total variation is 1 − min t_i: no user's release differs from a draw of
        their own with a larger probability.

    Raises
        ParameterError: the sampler is neither a ClipSampler nor a KernelSampler.

    >>> from sottovoce import kernel_clip
    >>> released_as_itself(kernel_clip(Prior(["War", "Drama"], [0.25, 0.75]), math.log(3))).round(4).tolist()
    [0.5, 0.8333]
    """
    if isinstance(sampler, KernelSampler):
        return np.array(sampler.kernel.diagonal)
    if isinstance(sampler, ClipSampler):
        c = sampler.floor
        return np.minimum(np.minimum(math.exp(sampler.epsilon) * c, 1 - float(c.sum()) + c), 1.0)
    raise ParameterError(f"sampler must be a ClipSampler or a KernelSampler, got {type(sampler).__name__}")


def diagonal_bound(prior: Prior, epsilon: float) -> FloatArray:
    """Per category i the largest K_ii of any ε-private kernel K that keeps the prior.

    a·q_i/(a·q_i + 1 − q_i) where q_i ≤ ½, and 1 − (1 − q_i)/(a·(1 − q_i) + q_i) where q_i > ½, a = e^ε.
    The paper's Lemma 3 has the first expression for every q_i; above ½ no kernel attains it, and the second
    is smaller. Each category's bound is attained, by a kernel of its own.

    Reference: Zamanlooy, Diaz, Asoodeh (2025), Lemma 3; docs/paper.md for q_i > ½.

    >>> diagonal_bound(Prior(["War", "Drama"], [0.25, 0.75]), math.log(3)).round(4).tolist()
    [0.5, 0.8333]
    """
    q, a = checked_prior(prior).probabilities, math.exp(checks.privacy(epsilon))
    rest = 1 - q
    return np.where(q <= 0.5, a * q / (a * q + rest), 1 - rest / (a * rest + q))


def distance_factor(prior: Prior, epsilon: float) -> float:
    """The paper's sampler moves a user by at most this times the user's distance to the prior.

    D_f(p‖pK) ≤ D_f(p‖q)/(1 + (e^ε − 1)·q_min) for every p and every f, K the kernel of `minimax_kernel`. For
    TV the paper has the factor 2; equality holds there for every p between q and the point mass on the rarest
    category, and no ε-private kernel that keeps q has a smaller factor.

    Reference: docs/paper.md.

    >>> round(distance_factor(Prior(["A", "B"], [0.01, 0.99]), 2.0), 3)
    0.94
    """
    return 1 / (1 + math.expm1(checks.privacy(epsilon)) * checked_prior(prior).smallest)
