"""Priors in JSON: what `sottovoce prior -o` writes and is read again, and objects {item: count}."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _naming
from .._atomic import write_whole
from ..errors import ParameterError, PriorError, TableError
from ..prior import Category, Prior
from .counted_priors import prior_of
from .merging import Counts, listed, merge_rare
from .options import PriorOptions

FORMAT = "sottovoce-prior"


@dataclass(frozen=True)
class PublicData:
    """Priors by group (one, under "all", where there are no groups), the group column, and how counted."""

    priors: dict[str, Prior]
    by: str | None
    how: str


def write_priors(data: PublicData, path: Path, *, replace: bool = True) -> None:
    """Write priors as one JSON file that `read_priors` reads again, whole or not at all."""
    groups = {
        name: {"categories": list(prior.categories), "probabilities": prior.probabilities.tolist()}
        for name, prior in data.priors.items()
    }
    plain = {
        "format": FORMAT,
        "version": 1,
        "by": data.by,
        "made_from_users": any(prior.made_from_users for prior in data.priors.values()),
        "how": data.how,
        "groups": groups,
    }
    write_whole(json.dumps(plain, ensure_ascii=False, indent=0) + "\n", path, replace=replace)


def from_json(
    loaded: dict[str, Any], by: str | None, options: PriorOptions, given: Mapping[str, Any]
) -> PublicData:
    """The priors of a JSON object; `given` are options that only a table can honour, and which are said."""
    ready = loaded.get("format") == FORMAT
    kept = ("merge_rare",) if ready else ("merge_rare", "rare_below", "smoothing")
    _only_for_tables({key: value for key, value in given.items() if key not in kept}, ready)
    return _parsed(loaded, by, options) if ready else _from_object(loaded, by, options)


def merged_said(merged: tuple[Category, ...], options: PriorOptions, *, public: bool) -> str:
    """How many rare categories were merged, and which, if they are public."""
    if options.merge_rare is None:
        return ""
    what = "without a count" if options.rare_below is None else f"below {options.rare_below:g}"
    if not merged:
        return f"; no category {what}: nothing merged"
    return f"; {len(merged):,} categories {what} merged into {options.merge_rare!r}{listed(merged, public)}"


def _parsed(loaded: dict[str, Any], by: str | None, options: PriorOptions) -> PublicData:
    """The priors of a file that `write_priors` wrote."""
    grouped_by, marked, groups = (loaded.get(key) for key in ("by", "made_from_users", "groups"))
    if not isinstance(groups, dict) or not groups or not all(map(_naming.is_text, groups)):
        raise TableError("this is not a prior file of version 1")
    named = set(groups) == {"all"} if grouped_by is None else isinstance(grouped_by, str)
    if loaded.get("version") != 1 or type(marked) is not bool or not named:
        raise TableError("this is not a prior file of version 1")
    if grouped_by is not None:
        _naming.group_column(grouped_by)
    if by is not None and by != grouped_by:
        have = f"its groups are named by {grouped_by!r}" if grouped_by else "it has no groups"
        raise TableError(f"--by {by} does not fit this prior: {have}")
    priors = {}
    for name, one in groups.items():
        if not isinstance(one, dict) or set(one) != {"categories", "probabilities"}:
            raise TableError("this is not a prior file of version 1")
        priors[name] = Prior(one["categories"], one["probabilities"], made_from_users=marked)
    if options.merge_rare is not None and any(
        options.merge_rare not in prior.index for prior in priors.values()
    ):
        raise PriorError(
            f"this is a prior that is made already, and it has no category {options.merge_rare!r}: name one "
            f"that it has, or make it anew from its table (sottovoce prior --merge rare=NAME --rare-below N)"
        )
    return PublicData(priors, grouped_by, f"a prior file ({loaded.get('how')})")


def _only_for_tables(options: Mapping[str, Any], ready: bool) -> None:
    """Refuse options that a JSON object of counts, or a ready prior, cannot honour."""
    given = [name for name, value in options.items() if value and value != "rows"]
    if given:
        what = "a prior that is made already" if ready else "a JSON object of counts"
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"{flags} is for tables, and this is {what}: make the prior anew from its table")


def _from_object(loaded: dict[str, Any], by: str | None, options: PriorOptions) -> PublicData:
    """The priors of a JSON object of counts."""
    if not loaded:
        raise TableError("the object is empty")
    if by is not None:
        _naming.group_column(by)
    grouped = all(isinstance(amounts, dict) for amounts in loaded.values())
    if by is not None and not grouped:
        raise TableError("with --by the object must be {group: {category: amount}}")
    if by is None and grouped:
        raise TableError("the object holds groups: say --by with the name of the group column")
    if not all(map(_naming.is_text, loaded)):
        raise TableError("the object has names that are no text")
    objects = {"all": loaded} if by is None else loaded
    names = list(dict.fromkeys(name for amounts in objects.values() for name in amounts))
    groups = {group: {name: amounts.get(name, 0) for name in names} for group, amounts in objects.items()}
    how = "amounts from the JSON object"
    if options.merge_rare is None:
        smoothing = options.smoothing
        priors = {group: Prior.from_counts(one, smoothing=smoothing) for group, one in groups.items()}
        return PublicData(priors, by, how)
    for one in groups.values():
        Prior.from_counts(one, smoothing=1.0)  # refuses what is no count
    counts = {group: Counts(names, np.array(list(one.values()), float)) for group, one in groups.items()}
    merged = merge_rare(counts, options.merge_rare, options.rare_below, shared=True)
    priors = {group: prior_of(one, options) for group, one in merged.items()}
    gone = next(iter(merged.values())).merged  # the same in all groups
    return PublicData(priors, by, how + merged_said(gone, options, public=True))
