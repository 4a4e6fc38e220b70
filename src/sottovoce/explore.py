"""The explorer: one HTML file with data inside that computes in the browser and sends nothing.

The page itself is `page.html`, built from the folder page/ of the repository. Here the data are put into it:
priors, the limits that only Python computes, the certified mechanism of the marked ε and, if their owner
wants, users.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ._atomic import inf_to_null
from .errors import CertificateError, ParameterError
from .geometry import Geometry
from .groups import Groups
from .planning.choose import GAP, Choice, choose, people
from .planning.limit import limit
from .prior import Prior
from .release.certify import certify
from .release.file import mechanisms_text
from .users import Users

PAGE = Path(__file__).with_name("page.html")
HOLE = '<script type="application/json" id="data">null</script>'
MOST_CATEGORIES = 20_000
MOST_USERS = 1_000
"""Users of a group inside a page: the first ones."""
LARGEST_MECHANISM = 100_000
"""Characters of a mechanism inside a page: for a larger one the page shows the command."""
LIMITED = 300
"""Categories up to which the limit is computed while the user waits."""
LIMITS, FEW = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0), 20
"""For so few categories the limit is computed at these ε too: with more the user would wait."""


@dataclass(frozen=True)
class Source:
    """Where the data come from, as a command names it: the page prints commands with it."""

    prior: str
    item: str = "item"
    count: str | None = None
    by: str | None = None
    near: str | None = None
    read: str = ""
    users: Mapping[str, str | None] | None = None  # path, user, item, weight, read
    note: str = ""


@dataclass(frozen=True)
class Result:
    """A table that the page shows below everything else."""

    title: str
    words: str
    head: Sequence[str]
    rows: Iterable[Sequence[str]]


def page(
    priors: Groups[Prior],
    source: Source,
    *,
    epsilon: float = 2.0,
    geometry: Geometry | None = None,
    users: Mapping[str, Users] | None = None,
    results: Sequence[Result] = (),
    progress: Callable[[float], object] | None = None,
) -> str:
    """The page as HTML, with these data inside.

    `users` are inside only if they are passed, at most 1,000 of each group, and the page says so in red.
    """
    for prior in priors.values():
        if len(prior) > MOST_CATEGORIES:
            raise ParameterError(
                f"{len(prior):,} categories are too many for a page, which takes {MOST_CATEGORIES:,}: "
                f"merge rare ones (sottovoce prior --rare)"
            )
    told = progress or (lambda part: None)
    choices, groups = {}, []
    for number, (name, prior) in enumerate(priors.items(), start=1):
        choices[name] = choose(prior, epsilon, limit=len(prior) <= LIMITED, geometry=geometry)
        limits = _limits(choices[name], geometry)
        own = {"users": _amounts(users[name])} if users is not None and name in users else {}
        facts = {"name": name, "categories": list(prior.categories), "weights": prior.probabilities.tolist()}
        groups.append({**facts, "provenance": prior.provenance, "limits": limits, **own})
        told(number / len(priors))
    data = {
        "source": asdict(source),
        "groups": groups,
        "exact": True,
        "epsilon": epsilon,
        "mechanism": _mechanism(choices, priors.by),
        "geometry": None if geometry is None else _tree(geometry),
        "includesUsers": None if users is None else _inside(users),
        "results": [{**asdict(result), "rows": [list(row) for row in result.rows]} for result in results],
    }
    text = json.dumps(inf_to_null(data), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    before, hole, after = PAGE.read_text(encoding="utf-8").partition(HOLE)
    if not hole:
        raise AssertionError("page.html has no place for data: build it again (make page)")
    return before + hole.replace("null", text) + after


def _limits(choice: Choice, geometry: Geometry | None) -> list[dict[str, float]]:
    """At some ε: the proven lower bound of mean + tail·maximum, and the mean of a sampler that is near it."""
    if choice.limit is None:
        return []
    prior = choice.sampler.prior
    made = {choice.epsilon: choice.limit}
    if len(prior) <= FEW and geometry is None:
        rows, _ = people(prior, None)
        for epsilon in LIMITS:
            if epsilon not in made:
                made[epsilon] = limit(prior, epsilon, rows, relative_gap=GAP)
    return [
        {"epsilon": epsilon, "lower": each.lower_bound, "mean": each.mean} for epsilon, each in made.items()
    ]


def _mechanism(choices: Mapping[str, Choice], by: str | None) -> dict[str, Any] | None:
    """The certified file of what is recommended, unless it is too large or its prior is not public."""
    if any(choice.sampler.prior.provenance == "users" for choice in choices.values()):
        return None
    try:
        text, _ = mechanisms_text({name: certify(choice.sampler) for name, choice in choices.items()}, by)
    except CertificateError:
        return None
    if len(text) > LARGEST_MECHANISM:
        return None
    samplers = {name: choice.sampler.name for name, choice in choices.items()}
    return {"text": text, "epsilon": next(iter(choices.values())).epsilon, "samplers": samplers}


def _tree(geometry: Geometry) -> dict[str, Any]:
    return {"parents": list(geometry.parents), "lengths": list(geometry.lengths), "unit": geometry.unit}


def _amounts(users: Users) -> list[list[tuple[int, float]]]:
    """Of each of the first users, the categories they have and how much of each."""
    rows = []
    for k in range(min(len(users), MOST_USERS)):
        begin, end = users.p.indptr[k : k + 2]
        total = 1.0 if users.amounts is None else float(users.amounts[k])
        shares = (total * users.p.data[begin:end]).round(9).tolist()
        rows.append(list(zip(users.p.indices[begin:end].tolist(), shares, strict=True)))
    return rows


def _inside(users: Mapping[str, Users]) -> str:
    """How many users are inside."""
    total = sum(map(len, users.values()))
    inside = sum(min(len(each), MOST_USERS) for each in users.values())
    return f"{inside:,} users" if inside == total else f"{inside:,} of {total:,} users"
