"""One call for "release a table with a ledger": histories in, reports out, in the same kind of table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Unpack

import narwhals as nw
import numpy as np

from .collecting.model import model_prior
from .errors import ParameterError, PriorError
from .planning.prior_check import check_public, moments
from .prior import FROM_USERS
from .release.charges import Request, request
from .release.ledger import Ledger
from .release.mechanism import Mechanism
from .tables.options import ReadingKeywords
from .tables.read import read_users
from .users import Users

BATCH = 100_000
SAMPLE = "sample"


def release_table(
    frame: Any,
    mechanism: Mechanism | Mapping[str, Mechanism],
    *,
    user: str = "user",
    item: str = "item",
    weight: str | None = None,
    by: str | None = None,
    ledger: Ledger | None = None,
    epoch: str | None = None,
    exhausted: str = "error",
    prior_is_public: bool = False,
    accept_prior_from_users: bool = False,
    **options: Unpack[ReadingKeywords],
) -> Any:
    """Release one private category per user of a table, as `sottovoce release` does.

    Guarantees
        Everything is checked before anybody is charged or anything drawn; what is refused has cost nobody
        anything. With a ledger all users of all groups are charged in one commit, and asking again returns
        the same answers at no cost. Without one nothing stops a second release, and the ε of both add up.

    Parameters
        frame: a pandas, polars or pyarrow table of histories, a row per user and record.
        mechanism: one mechanism, or with `by` one per group (`load_groups`).
        user, item, weight, by: the columns; the group of every user is published in clear.
        ledger, epoch, exhausted: as for `Ledger.charge`.
        prior_is_public: release although the prior cannot be told from these users' average.
        accept_prior_from_users: release with a mechanism that says its prior was made from its users.
        options: `unknown`, `other`, `empty`, `unknown_groups`, `several_groups` of `read_users`.

    Returns
        A table of the same kind: user, group if there are groups, item, epsilon, mechanism, and with several
        samples a row for each of them, numbered in the column `sample`.

    >>> import polars
    >>> import sottovoce as sv
    >>> frame = polars.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "b"]})
    >>> mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.9, 0.1]), 2.0))
    >>> sv.release_table(frame, mechanism, prior_is_public=True).columns
    ['user', 'item', 'epsilon', 'mechanism']
    """
    if isinstance(mechanism, Mapping) != (by is not None):
        raise ParameterError("a mechanism per group needs the group column by=, and only then")
    known = dict(mechanism) if isinstance(mechanism, Mapping) else {"all": mechanism}
    if not all(isinstance(one, Mechanism) for one in known.values()):
        raise ParameterError("mechanism must be a Mechanism, made by certify or load, or one per group")
    if any(one.prior_from_users for one in known.values()) and not accept_prior_from_users:
        raise PriorError(f"{FROM_USERS} For an experiment say accept_prior_from_users=True")
    if ledger is None and (epoch is not None or exhausted != "error"):
        raise ParameterError("epoch and exhausted need a ledger")
    several = any(one.samples > 1 for one in known.values())
    names = [user, item, "epsilon", "mechanism", *([SAMPLE] if several else []), *([by] if by else [])]
    if len(set(names)) < len(names):
        raise ParameterError(f"user, item and by must differ, and not be one of {', '.join(names[2:])}")
    kind = _kind(frame)
    read: Any = read_users(
        frame, prior=known if by else known["all"], user=user, item=item, weight=weight, by=by, **options
    )
    groups: dict[str, Users] = {
        name: one for name, one in (read if by else {"all": read}).items() if len(one)
    }
    if not prior_is_public:
        _check_public(known, groups)
    answers = _answers(known, groups, ledger, epoch, exhausted, grouped=by is not None)
    columns: dict[str, list[Any]] = {name: [] for name in (user, by, item, "epsilon", "mechanism") if name}
    if several:
        columns[SAMPLE] = []
    for name, (who, drawn) in answers.items():
        one, k = known[name], known[name].samples
        rows = len(drawn) * k
        columns[user] += who if k == 1 else [person for person in who for _ in range(k)]
        columns[item] += drawn if k == 1 else [category for answer in drawn for category in answer]
        columns["epsilon"] += [str(one.epsilon)] * rows
        columns["mechanism"] += [one.digest] * rows
        if by is not None:
            columns[by] += [name] * rows
        if several:
            columns[SAMPLE] += list(range(1, k + 1)) * len(drawn)
    return nw.from_dict(columns, backend=kind).to_native()


def _kind(frame: Any) -> Any:
    """What kind of table it is, or a refusal that names the way for other kinds."""
    try:
        found = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ParameterError(
            f"frame must be a pandas, polars or pyarrow table, got {type(frame).__name__}; for files there "
            f"is `sottovoce release`, for Spark sottovoce.spark.release"
        ) from None
    return found.implementation


def _check_public(known: Mapping[str, Mechanism], groups: Mapping[str, Users]) -> None:
    looked = [name for name in groups if not known[name].prior_from_users]
    doubtful = check_public(
        {name: model_prior(known[name]) for name in looked},
        {name: moments(groups[name]) for name in looked},
        "prior_is_public=True",
    )
    if doubtful:
        warnings.warn(doubtful, stacklevel=3)


def _answers(
    known: Mapping[str, Mechanism],
    groups: Mapping[str, Users],
    ledger: Ledger | None,
    epoch: str | None,
    exhausted: str,
    *,
    grouped: bool,
) -> dict[str, tuple[list[Any], list[Any]]]:
    """Who may be released in each group, and what they release; with a ledger everybody is charged first."""
    if ledger is None:
        return {name: (list(one.ids), list(known[name].release_many(one))) for name, one in groups.items()}
    asked: dict[str, Request] = {
        name: request(known[name], one.ids, one.p, group=name if grouped else "")
        for name, one in groups.items()
    }
    receipt = ledger.charge(list(asked.values()), epoch=epoch, exhausted=exhausted)
    found = {}
    for (name, one), kept in zip(asked.items(), receipt.kept, strict=True):
        parts = [kept[begin : begin + BATCH] for begin in range(0, len(kept), BATCH)]
        drawn = [answer for part in parts for answer in ledger.answers(one, receipt.epoch, part)]
        found[name] = [groups[name].ids[int(i)] for i in np.asarray(kept)], drawn
    return found
