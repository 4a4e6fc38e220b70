"""Releasing whole tables: what the command and `release_table` share, and the one call for a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from .errors import ParameterError, PriorError
from .prior import FROM_USERS
from .release.ledger import Ledger, Request, request
from .release.mechanism import Mechanism
from .tables.users import ReadingKeywords, maker_like, read_with, release_options
from .users import Users

BATCH = 100_000
"""Users that are drawn and remembered as one step."""
SAMPLE = "sample"
"""The column that numbers the samples of one user, where there are several."""


def several_samples(mechanisms: Mapping[str, Mechanism]) -> bool:
    """Whether any mechanism gives several samples: then every row says which sample it is."""
    return any(one.samples > 1 for one in mechanisms.values())


def report_columns(
    mechanism: Mechanism,
    who: Sequence[object],
    answers: Sequence[Any],
    columns: tuple[str, str],
    *,
    numbered: bool,
) -> dict[str, Any]:
    """The reports of some users: a row for each sample; what is the same in all rows stands there once."""
    (user, item), k = columns, mechanism.samples
    found: dict[str, Any] = {
        user: who if k == 1 else [one for one in who for _ in range(k)],
        item: answers if k == 1 else [one for answer in answers for one in answer],
        "epsilon": str(mechanism.epsilon),
        "mechanism": mechanism.digest,
    }
    return found | ({SAMPLE: list(range(1, k + 1)) * len(answers)} if numbered else {})


def requests_of(
    mechanisms: Mapping[str, Mechanism], groups: Mapping[str, Users], *, grouped: bool
) -> dict[str, Request]:
    """What is asked of a ledger, by group; everything is checked, and nobody is charged."""
    return {
        name: request(mechanisms[name], users.ids, users.p, group=name if grouped else "")
        for name, users in groups.items()
        if len(users)
    }


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
    accept_prior_from_users: bool = False,
    **options: Unpack[ReadingKeywords],
) -> Any:
    """Release one private category per user of a table, as `sottovoce release` does.

    Guarantees
        Everything is checked before anybody is charged or anything drawn; what is refused has cost nobody
        anything. With a ledger all users of all groups are charged in one commit, and asking again returns
        the same answers at no cost; so does a call after one that was interrupted. Without a ledger nothing
        stops a second release, and the ε of both add up.

        Every user of the table gets a row, whatever the user has: unknown items and rows without an item or
        an amount count for nothing, and a user without records is released as the public. What users have
        decides neither whether something is released nor in which order.

    Parameters
        frame: a pandas, polars or pyarrow table of histories, a row per user and record.
        mechanism: one mechanism, or with `by` one per group (`load_groups`).
        user, item, weight, by: the columns; the group of every user is published in clear.
        ledger, epoch, exhausted: as for `Ledger.charge`.
        accept_prior_from_users: release with a mechanism that says its prior was made from its users.
        options: `unknown` ("prior" by default), `other`, `empty`, `unknown_groups`, `several_groups` of
            `read_users`. With another `unknown` a refusal, or the absence of a row, tells what a user has.

    Returns
        A table of the same kind: user, the group if there are groups, item, epsilon, mechanism, and with
        several samples a row for each of them, numbered in the column `sample`.

    >>> import polars
    >>> import sottovoce as sv
    >>> frame = polars.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "b"]})
    >>> mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.9, 0.1]), 2.0))
    >>> sv.release_table(frame, mechanism).columns
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
    numbered = several_samples(known)
    names = [user, item, "epsilon", "mechanism", *([SAMPLE] if numbered else []), *([by] if by else [])]
    if len(set(names)) < len(names):
        raise ParameterError(f"user, item and by must differ, and not be one of {', '.join(names[2:])}")
    make = maker_like(frame)
    whose = known if by else known["all"]
    how = release_options(**options)
    read: Any = read_with(how, frame, None, whose, user=user, item=item, weight=weight, by=by)
    found: dict[str, Users] = read if by else {"all": read}
    groups = {name: one for name, one in found.items() if len(one)}
    order = (user, by, item, *names[2 : 4 + numbered])
    columns: dict[str, list[Any]] = {name: [] for name in order if name is not None}
    answers = _answers(known, groups, ledger, epoch, exhausted, grouped=by is not None)
    for name, (who, drawn) in answers.items():
        part = report_columns(known[name], who, drawn, (user, item), numbered=numbered)
        part |= {by: name} if by is not None else {}
        rows = len(drawn) * known[name].samples
        for column, values in part.items():
            columns[column] += [values] * rows if isinstance(values, str) else values
    return make(columns)


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
    asked = requests_of(known, groups, grouped=grouped)
    receipt = ledger.charge(list(asked.values()), epoch=epoch, exhausted=exhausted)
    found = {}
    for (name, one), kept in zip(asked.items(), receipt.kept, strict=True):
        parts = [kept[begin : begin + BATCH] for begin in range(0, len(kept), BATCH)]
        drawn = [answer for part in parts for answer in ledger.answers(one, receipt.epoch, part)]
        found[name] = [groups[name].ids[i] for i in kept.tolist()], drawn
    return found
