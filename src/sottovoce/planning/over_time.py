"""Streams over time: the mechanism that would be shipped, simulated on the users' records of every release.

Like `compare` it looks at the users' true data: its numbers are for choosing, and not for publishing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.engine import row_weights
from ..divergences import TV, FDivergence, checked_f
from ..errors import ParameterError
from ..records import UsersLike, distributions, rows_for
from ..release.certify import certify
from ..samplers.stream import Stream
from .compare import Comparison, ComparisonRow, make_row
from .fitted import fitted
from .statistics import summarise


def compare_over_time(
    steps: Sequence[UsersLike], sampler: Stream, divergence: FDivergence = TV
) -> Comparison:
    """A stream beside `fitted` at ε/releases for each release; a "group" of rows is one release.

    `steps` are the users' distributions at every release, a row per user. A user with an empty row is
    released as the prior at that step, and not counted there. The mechanism to be shipped is simulated.

    >>> import sottovoce as sv
    >>> prior = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
    >>> table = sv.compare_over_time([[[0.7, 0.2, 0.1]] * 50] * 4, sv.stream(prior, 8.0, horizon=4))
    >>> [(row.group, row.sampler) for row in table][:3]
    [('release 1', 'stream'), ('release 1', 'fitted'), ('release 2', 'stream')]
    """
    if not isinstance(sampler, Stream) or sampler.persistence:
        raise ParameterError("sampler must be a stream without persistence")
    prior, f = sampler.prior, checked_f(divergence)
    laws = [distributions(rows_for(users, prior), len(prior), empty=True) for users in steps]
    if not laws or len({law.shape[0] for law in laws}) > 1:
        raise ParameterError("steps must be one table per release, with the same users in the same order")
    mechanism, generator = certify(sampler, provenance="users"), np.random.default_rng(0)
    engine: Any = mechanism.engine
    alone, rows = fitted(prior, sampler.epsilon / len(laws)), list[ComparisonRow]()
    bounds = [engine.first()] * laws[0].shape[0]
    for step, law in enumerate(laws):
        counts, moved = mechanism.prepare(law), np.zeros(law.shape[0])
        for i, word in enumerate(generator.integers(0, engine.total, law.shape[0]).tolist()):
            held = row_weights(counts, i)
            drawn = engine.step_law(held, *engine.ratios(*bounds[i], step))
            bounds[i] = engine.moved(*bounds[i], *engine.drawn(drawn, word)[1:])
            if held:
                p = np.array([count for _, count in held], dtype=np.float64)
                units = [drawn.weight(index)[1] for index, _ in held]
                rest = np.asarray((engine.total - sum(units)) / engine.total)
                moved[i] = f.on_support(p / p.sum(), np.array(units) / engine.total, rest)
        here = np.diff(law.indptr) > 0
        if not here.any():
            raise ParameterError("steps must have a user with records each")
        apart = np.atleast_1d(alone.divergence(law[here], f))
        split = make_row(f"release {step + 1}", alone, f, apart)
        numbers: dict[str, Any] = {"sampler": sampler.name, "epsilon": sampler.epsilon, "worst_case": None}
        rows += [replace(split, **numbers | summarise(moved[here])), split]
    return Comparison(tuple(rows))
