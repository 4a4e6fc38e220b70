"""Randomized response on a chosen set of categories: the kernel of two of the baselines.

A user's category x inside the set is released as it is with probability a/(a+k−1) and as each other
member with 1/(a+k−1), a = e^ε, k the size of the set; a category outside it becomes a uniform member.
With the whole domain as the set this is k-ary randomized response (Warner 1965).
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._validate import FloatArray
from .blocks import Block
from .minimax import refuse_large_matrix


class ResponseKernel:
    """Randomized response that only ever releases the categories marked in `kept`.

    Guarantees
        ε-locally private: a column of the set holds only 1/(a+k−1), a/(a+k−1) and 1/k, which lies
        between them; a column outside it is zero.

    >>> ResponseKernel(np.array([True, True]), math.log(3)).matrix().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    def __init__(self, kept: np.typing.NDArray[np.bool_], epsilon: float) -> None:
        self.epsilon = epsilon
        self.kept = kept
        self._k = int(kept.sum())
        self._other = 1 / (math.expm1(epsilon) + self._k)

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def floor(self) -> FloatArray:
        """The column minima: 1/(a+k−1) in the set, 0 outside; read-only."""
        c = np.where(self.kept, self._other, 0.0)
        c.setflags(write=False)
        return c

    @property
    def diagonal(self) -> FloatArray:
        """How often each category is released as it is: never, outside the set."""
        return np.where(self.kept, math.exp(self.epsilon) * self._other, 0.0)

    def least_kept(self) -> tuple[float, float]:
        """The smallest K_ii, and 1 − K_ii = (k−1)/(a+k−1); zero and one when a category is dropped."""
        if self._k < len(self):
            return 0.0, 1.0
        return math.exp(self.epsilon) * self._other, (self._k - 1) * self._other

    def _law(self, p: FloatArray, kept: np.typing.NDArray[np.bool_], outside: FloatArray) -> FloatArray:
        """x_j = (a−1)p_j/(a+k−1) + (1 − outside)/(a+k−1) + outside/k on the set.

        `outside` is the user's mass outside the set, summed there: 1 − inside would leave a rounding
        error that is large beside a tiny floor.
        """
        common = (1 - outside) * self._other + outside / self._k
        boost = math.expm1(self.epsilon) * self._other
        return np.where(kept, boost * p + common[..., None], 0.0)

    def apply(self, p: FloatArray) -> FloatArray:
        """pK along the last axis."""
        return self._law(p, self.kept, np.where(self.kept, 0.0, p).sum(axis=-1))

    def on_support(self, block: Block[np.float64]) -> FloatArray:
        """(pK)_j for the categories j the users have."""
        kept = self.kept[block.columns] & (block.p > 0)
        return self._law(block.p, kept, np.where(kept, 0.0, block.p).sum(axis=1))

    def row(self, i: int) -> FloatArray:
        """Row i of K."""
        p = np.zeros(len(self))
        p[i] = 1.0
        return self.apply(p)

    @property
    def invertible(self) -> bool:
        """Whether what users hold can be read off what they release: only if no category is dropped."""
        return self._k == len(self)

    def inverse(self, y: FloatArray) -> FloatArray:
        """yK⁻¹ along the last axis: p_j = ((a+n−1)·y_j − Σy)/(a−1)."""
        y = np.asarray(y, dtype=np.float64)
        p: FloatArray = (y / self._other - y.sum(axis=-1, keepdims=True)) / math.expm1(self.epsilon)
        return p

    def back(self, v: FloatArray) -> FloatArray:
        """Kv; K is symmetric when no category is dropped."""
        out: FloatArray = self._other * (math.expm1(self.epsilon) * v + v.sum(axis=-1, keepdims=True))
        return out

    def inverse_columns(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per category j: Σ_z y_z·W_zj², and max_z W_zj − min_z W_zj, for W = K⁻¹."""
        rest = -1 / math.expm1(self.epsilon)
        own = rest - rest / self._other
        second = y * own**2 + (np.sum(y) - y) * rest**2
        return second, np.full(len(self), own - rest if len(self) > 1 else 0.0)

    def matrix(self) -> FloatArray:
        """All of K as an n × n array."""
        refuse_large_matrix(len(self))
        return self.apply(np.eye(len(self)))


def most_likely(q: FloatArray, epsilon: float) -> np.typing.NDArray[np.bool_]:
    """The k most likely categories, k maximising a/(a+k−1)·Σ_{top k} q (Ghazi et al. 2021, RRWithPrior).

    Among equally likely categories the objective is monotone in k, so a best k never needs to cut
    through a tie; only ends of ties are considered and the answer does not depend on their order.
    When two k are equally good the larger one is taken: it drops fewer categories.
    """
    order = np.argsort(-q, kind="stable")
    descending = q[order]
    ends = np.flatnonzero(np.append(descending[1:] < descending[:-1], True))
    truth = np.cumsum(descending)[ends] / (math.expm1(epsilon) + ends + 1)
    best = ends[np.flatnonzero(truth >= truth.max() * (1 - 1e-13))[-1]]
    kept = np.zeros(len(q), dtype=bool)
    kept[order[: best + 1]] = True
    return kept
