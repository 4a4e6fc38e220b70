"""The kernels of the linear samplers: the paper's in closed form, and randomized response on a set.

Zamanlooy, Diaz, Asoodeh (2025) build the optimal linear sampler by a recursion over matrices, in O(n³) time
and O(n²) memory, for a prior that must already be sorted. Unrolled, the recursion is two vectors, O(n log n)
to build, O(n) to apply, to invert and to store. With q ascending, a = e^ε, S_i = Σ_{j≥i} q_j and
D_i = (a−1)q_i + S_i,

    M_1 = 1,  M_{i+1} = M_i (1 − q_i/D_i),  c_i = M_i q_i/D_i

    K_ij = c_j (j < i),   K_ii = a·c_i,   K_ij = (c_i/q_i)·q_j (j > i).

Randomized response on a set of k categories releases a category of the set as it is with probability
a/(a+k−1) and as each other member with 1/(a+k−1); a category outside the set becomes a uniform member. With
the whole domain as the set this is k-ary randomized response (Warner 1965).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from ..checks import FloatArray, IntArray
from ..errors import ParameterError
from .blocks import Block

ROUNDING = 1e-9
"""How far, relative to one, the rows and columns of a matrix of your own may be from what is asked."""
LARGEST_MATRIX = 10_000
"""Beyond this an n × n matrix and what it takes to make it need more than 4 GiB."""


class Kernel(ABC):
    """A kernel over n categories in the caller's order."""

    epsilon: float

    @abstractmethod
    def __len__(self) -> int:
        """n."""

    @abstractmethod
    def apply(self, p: FloatArray) -> FloatArray:
        """pK along the last axis."""

    def matrix(self) -> FloatArray:
        """All of K as an n × n array."""
        if len(self) > LARGEST_MATRIX:
            raise ParameterError(
                f"matrix is limited to {LARGEST_MATRIX} categories, this sampler has {len(self)}; use "
                f"distribution(p)"
            )
        return np.minimum(self.apply(np.eye(len(self))), 1.0)


class MinimaxKernel(Kernel):
    """The ε-private kernel K with qK = q and the largest possible smallest diagonal.

    Guarantees
        Up to rounding: c_j ≤ K_ij ≤ a·c_j in every column, hence ε-local privacy; qK = q; q_i K_ij = q_j K_ji
        (reversible); the diagonal is non-decreasing in q.

    ``floor`` is c, the minimum of every column but that of the largest category, where all entries are above.

    >>> kernel = MinimaxKernel(np.array([0.25, 0.75]), epsilon=math.log(3))
    >>> kernel.matrix().round(4).tolist()
    [[0.5, 0.5], [0.1667, 0.8333]]
    """

    def __init__(self, q: FloatArray, epsilon: float) -> None:
        self.epsilon = epsilon
        self._order = np.argsort(q, kind="stable")
        self._q = q[self._order]
        share = np.multiply(self._q, math.expm1(epsilon))
        share += _sum_from(self._q)
        np.divide(self._q, share, out=share)  # q_i / D_i
        log_m = sum_before(np.log1p(-share))
        share *= np.exp(log_m, out=log_m)
        # c/q falls with the rank. Where rounding says otherwise, by an ulp or so, privacy decides.
        share /= self._q
        np.minimum.accumulate(share, out=share)
        share *= self._q
        self._c = share

    def __len__(self) -> int:
        return len(self._q)

    @cached_property
    def _rank(self) -> IntArray:
        return np.argsort(self._order)

    def _unsort(self, values: FloatArray) -> FloatArray:
        out = np.empty_like(values)
        out[..., self._order] = values
        return out

    @cached_property
    def floor(self) -> FloatArray:
        """The floor c of the box that holds every pK, read-only."""
        c = self._unsort(self._c)
        c.setflags(write=False)
        return c

    @property
    def diagonal(self) -> FloatArray:
        """K_ii = a·c_i: how often each category is released as it is."""
        return np.minimum(math.exp(self.epsilon) * self.floor, 1.0)

    def keeps(self, q: FloatArray) -> bool:
        """Whether it was made for this prior."""
        return np.array_equal(q[self._order], self._q)

    def least_kept(self) -> tuple[float, float]:
        """K_ii of the rarest category, the smallest, and 1 − K_ii = (c_1/q_1)·Σ_{j>1} q_j."""
        own = min(math.exp(self.epsilon) * float(self._c[0]), 1.0)
        return own, float(self._c[0] / self._q[0] * self._q[1:].sum())

    def apply(self, p: FloatArray) -> FloatArray:
        """pK along the last axis, with two cumulative sums."""
        p = p[..., self._order]
        boosted = sum_after(p) + math.exp(self.epsilon) * p
        return self._unsort(self._c * boosted + self._q * sum_before(p * (self._c / self._q)))

    def on_support(self, block: Block) -> FloatArray:
        """(pK)_j for the categories j the users have, at the cost of those alone."""
        last = len(self)
        rank = np.where(block.p > 0, self._rank[block.columns], last)
        order = np.argsort(rank, axis=1)
        p = np.take_along_axis(block.p, order, axis=1)
        where = np.minimum(np.take_along_axis(rank, order, axis=1), last - 1)
        c, q = self._c[where], self._q[where]
        boosted = sum_after(p) + math.exp(self.epsilon) * p
        x = np.where(p > 0, c * boosted + q * sum_before(p * (c / q)), 0.0)
        out = np.empty_like(x)
        np.put_along_axis(out, order, x, axis=1)
        return out

    def inverse(self, y: FloatArray) -> FloatArray:
        """yK⁻¹ along the last axis: the p with pK = y, in O(n).

        In the eigenvectors of K, with λ_i = (a−1)c_i and S_i = Σ_{j≥i} q_j,
        β_i = (y_i S_{i+1} − q_i Σ_{j>i} y_j)/(λ_i q_i S_i S_{i+1}) for i < n, β_n = 0 and
        p_j = q_j (Σy + β_j S_{j+1} − Σ_{i<j} β_i q_i).
        """
        y = np.asarray(y, dtype=np.float64)[..., self._order]
        total = _sum_from(self._q)
        after = np.append(total[1:], 0.0)
        scale = math.expm1(self.epsilon) * self._c * self._q * total * after
        beta = np.divide(y * after - self._q * sum_after(y), scale, out=np.zeros_like(y), where=after > 0)
        p = y.sum(axis=-1, keepdims=True) + beta * after - sum_before(beta * self._q)
        return self._unsort(self._q * p)

    def inverse_columns(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per category j: Σ_z y_z·W_zj², and max_z W_zj − min_z W_zj, for W = K⁻¹, in O(n).

        W has the kernel's shape. With λ_j = (a−1)c_j, S_j = Σ_{i≥j} q_i, r_j = 1/(λ_j S_j) for j < n, r_n = 0
        and G_j = Σ_{i<j} q_i r_i/S_{i+1}:  W_zj = q_j(1 + G_j − r_j) for z > j,
        q_j(1 + G_j) + S_{j+1} r_j for z = j,  q_j(1 + G_z − r_z) for z < j.
        """
        q, total = self._q, _sum_from(self._q)
        rate = 1 / (math.expm1(self.epsilon) * self._c * total)
        rate[-1] = 0.0
        step = q * rate
        step[:-1] /= total[1:]
        grown = 1 + sum_before(step)
        del step
        own = q * grown
        own[:-1] += total[1:] * rate[:-1]
        del total
        tau = grown - rate
        del grown, rate
        y = np.asarray(y, dtype=np.float64)[self._order]
        second = tau**2 * sum_after(y)
        second += sum_before(y * tau**2)
        second *= q**2
        second += own**2 * y
        del y
        lower = tau * q  # the entries below the diagonal, all alike; the last column has none
        lower[-1] = own[-1]
        largest, smallest = np.maximum(own, lower), np.minimum(own, lower)
        np.maximum(largest[1:], q[1:] * np.maximum.accumulate(tau[:-1]), out=largest[1:])
        np.minimum(smallest[1:], q[1:] * np.minimum.accumulate(tau[:-1]), out=smallest[1:])
        largest -= smallest
        return self._unsort(second), self._unsort(largest)


class ResponseKernel(Kernel):
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

    def on_support(self, block: Block) -> FloatArray:
        """(pK)_j for the categories j the users have."""
        kept = self.kept[block.columns] & (block.p > 0)
        return self._law(block.p, kept, np.where(kept, 0.0, block.p).sum(axis=1))

    def inverse(self, y: FloatArray) -> FloatArray:
        """yK⁻¹ along the last axis: p_j = ((a+n−1)·y_j − Σy)/(a−1)."""
        y = np.asarray(y, dtype=np.float64)
        p: FloatArray = (y / self._other - y.sum(axis=-1, keepdims=True)) / math.expm1(self.epsilon)
        return p

    def inverse_columns(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per category j: Σ_z y_z·W_zj², and max_z W_zj − min_z W_zj, for W = K⁻¹."""
        rest = -1 / math.expm1(self.epsilon)
        own = rest - rest / self._other
        second = y * own**2 + (np.sum(y) - y) * rest**2
        return second, np.full(len(self), own - rest if len(self) > 1 else 0.0)


class MatrixKernel(Kernel):
    """A kernel of your own, as an n × n array with one row per category that a user may hold.

    Guarantees
        Every row sums to one, and every column has max ≤ e^ε·min (up to rounding): ε-local privacy.

    >>> MatrixKernel(np.eye(2), 1.0)
    Traceback (most recent call last):
    sottovoce.errors.ParameterError: kernel is not private at epsilon 1: column 0 has entries from 0 to 1, ...
    """

    def __init__(self, matrix: FloatArray, epsilon: float) -> None:
        self.epsilon = epsilon
        self._k = np.array(matrix, dtype=np.float64)
        n = len(self._k)
        if self._k.shape != (n, n) or not np.allclose(self._k.sum(axis=1), 1, rtol=0, atol=ROUNDING):
            raise ParameterError("kernel must be an n × n array whose rows sum to one")
        self.floor, largest = self._k.min(axis=0), self._k.max(axis=0)
        broken = np.flatnonzero(
            (self.floor < 0) | (largest > math.exp(epsilon) * self.floor * (1 + ROUNDING))
        )
        if len(broken):
            j = int(broken[0])
            raise ParameterError(
                f"kernel is not private at epsilon {epsilon:g}: column {j} has entries from "
                f"{self.floor[j]:.4g} to {largest[j]:.4g}, and e^ε times the smallest is the upper bound"
            )

    def __len__(self) -> int:
        return len(self._k)

    @property
    def diagonal(self) -> FloatArray:
        """K_ii: how often each category is released as it is."""
        return self._k.diagonal()

    def least_kept(self) -> tuple[float, float]:
        """The smallest K_ii, and 1 − K_ii as a sum that does not cancel."""
        i = int(self.diagonal.argmin())
        return float(self._k[i, i]), float(np.delete(self._k[i], i).sum())

    def apply(self, p: FloatArray) -> FloatArray:
        """pK along the last axis."""
        return np.asarray(p @ self._k)

    def on_support(self, block: Block) -> FloatArray:
        """(pK)_j for the categories j the users have."""
        rows = zip(block.p, block.columns, strict=True)
        return np.where(block.p > 0, [p @ self._k[np.ix_(own, own)] for p, own in rows], 0.0)

    def inverse(self, y: FloatArray) -> FloatArray:
        """yK⁻¹ along the last axis."""
        return np.asarray(y @ self._undone)

    def inverse_columns(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per category j: Σ_z y_z·W_zj², and max_z W_zj − min_z W_zj, for W = K⁻¹."""
        return y @ self._undone**2, np.ptp(self._undone, axis=0)

    @cached_property
    def _undone(self) -> FloatArray:
        if np.linalg.matrix_rank(self._k) < len(self):
            raise ParameterError("the kernel has no inverse: its reports only tell the released law")
        return np.asarray(np.linalg.inv(self._k))


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


def _cumulative(values: FloatArray) -> FloatArray:
    """Cumulative sum along the last axis, in blocks of 1024 and over their totals: an error of √n, not n."""
    n, block = values.shape[-1], 1024
    if n <= 4 * block:
        return np.cumsum(values, axis=-1)
    whole = n - n % block
    out = np.empty(values.shape)
    parts = out[..., :whole].reshape(*values.shape[:-1], -1, block)
    np.cumsum(values[..., :whole].reshape(parts.shape), axis=-1, out=parts)
    totals = np.cumsum(parts[..., -1], axis=-1)
    parts[..., 1:, :] += totals[..., :-1, None]
    out[..., whole:] = np.cumsum(values[..., whole:], axis=-1) + totals[..., -1:]
    return out


def _sum_from(values: FloatArray) -> FloatArray:
    """Σ_{j≥i} along the last axis, added up from the far end so that it never cancels."""
    return _cumulative(values[..., ::-1])[..., ::-1]


def sum_after(values: FloatArray) -> FloatArray:
    """Σ_{j>i} along the last axis."""
    out = np.zeros_like(values)
    out[..., :-1] = _sum_from(values[..., 1:])
    return out


def sum_before(values: FloatArray) -> FloatArray:
    """Σ_{j<i} along the last axis."""
    out = np.zeros_like(values)
    out[..., 1:] = _cumulative(values[..., :-1])
    return out
