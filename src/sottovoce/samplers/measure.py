"""D_f between every user and the law that the user releases, from the user's own categories alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .._validate import FloatArray
from ..divergences import FDivergence
from .blocks import Block, blocks

if TYPE_CHECKING:
    from scipy import sparse


def divergence_on_support(
    rows: sparse.csr_array[np.float64],
    divergence: FDivergence,
    law: Callable[[Block[np.float64]], FloatArray],
    released: int,
) -> FloatArray:
    """D_f(p‖x) of every user, from the released law x on the user's own categories.

    D_f(p‖x) = Σ_{p_i>0} x_i f(p_i/x_i) + f(0)·(1 − Σ_{p_i>0} x_i): the categories a user does not
    have enter only through their total probability. That total is zero only for a user who has all
    the categories that are ever `released`; counting decides it, since 1 − Σx is blurred by rounding.
    """
    values = np.empty(rows.shape[0])
    for block in blocks(rows):
        x = law(block)
        nothing_else = np.count_nonzero(x, axis=1) == released
        rest = np.where(nothing_else, 0.0, np.maximum(1 - x.sum(axis=1), np.finfo(np.float64).tiny))
        values[block.rows] = divergence.on_support(block.p, x, rest)
    return values
