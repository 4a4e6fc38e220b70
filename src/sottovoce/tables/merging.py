"""Rare categories of public data added up into one: a mapping that everybody may know.

Rows of users that the prior has no category for are counted as the same one (`tally.users_of`). Both mappings
look at one row at a time and are fixed before any user is read, so privacy is what it was; what changes is p,
which from then on has the merged category and not its parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._validate import FloatArray
from ..errors import PriorError
from ..prior import Category

SHOWN = 12
"""Names of public categories in a message: enough to see the mistake."""


@dataclass(frozen=True)
class Counts:
    """What was counted for each category of one prior, and the categories that were merged into another."""

    names: list[Category]
    counts: FloatArray
    merged: tuple[Category, ...] = ()


def merge_rare(
    groups: Mapping[str, Counts], name: str, below: float | None, *, shared: bool
) -> dict[str, Counts]:
    """The counts with the rare categories added up into `name`: those without a count, or below a number.

    A category called `name` takes the others, however rare it is itself. Groups that share their categories
    (`shared`) still do: what is rare in one of them is merged in all of them.
    """
    masks = {group: _rare(one, name, below) for group, one in groups.items()}
    if shared and masks:
        everywhere: npt.NDArray[np.bool_] = np.logical_or.reduce(list(masks.values()))
        masks = dict.fromkeys(masks, everywhere)
    return {group: _merged(one, masks[group], name) for group, one in groups.items()}


def _rare(one: Counts, name: str, below: float | None) -> npt.NDArray[np.bool_]:
    rare = one.counts == 0 if below is None else one.counts < below
    if name in one.names:
        rare[one.names.index(name)] = False
    return rare


def _merged(one: Counts, rare: npt.NDArray[np.bool_], name: str) -> Counts:
    if not rare.any():
        return one
    kept = [category for category, gone in zip(one.names, rare.tolist(), strict=True) if not gone]
    gone = tuple(category for category, gone in zip(one.names, rare.tolist(), strict=True) if gone)
    counts, added = one.counts[~rare], float(one.counts[rare].sum())
    if name in kept:
        counts[kept.index(name)] += added
        return Counts(kept, counts, gone)
    return Counts([*kept, name], np.append(counts, added), gone)


def check_merged(one: Counts, name: str, *, smoothing: float, public: bool) -> None:
    """Refuse a merged category without a count, and one that took all others; they are named if public."""
    if not one.merged:
        return
    if len(one.names) == 1:
        raise PriorError(
            f"all {len(one.merged)} categories are rare, and {name!r} would be the only one left: merge "
            f"fewer (rare_below=, --rare-below)"
        )
    if one.counts[one.names.index(name)] == 0 and not smoothing:
        more = "N"
        if public and (one.counts > 0).any():
            more = str(math.floor(float(one.counts[one.counts > 0].min())) + 1)
        raise PriorError(
            f"the {len(one.merged)} categories to be merged into {name!r}{listed(one.merged, public)} have "
            f"no count together: merge more of them (rare_below={more}, --rare-below {more}), merge them "
            f"into a category that has one, or smooth (smoothing=, --smoothing)"
        )


def listed(names: tuple[Category, ...], public: bool) -> str:
    """The names in brackets, if they are public; the first of them, if they are many."""
    if not public:
        return ""
    shown = [*map(repr, names[:SHOWN]), *(["…"] if len(names) > SHOWN else [])]
    return f" ({', '.join(shown)})"
