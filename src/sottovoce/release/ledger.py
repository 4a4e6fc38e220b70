"""A budget of ε per user and epoch that is never under-charged, and answers that are never drawn twice.

Every release is charged ⌈ε·10⁶⌉ micro-ε before anything is drawn. What was released is remembered under
(mechanism, group, user, epoch), so asking again returns the same answer and costs nothing.

The order is fixed: everything is checked, and what is refused has cost nobody anything; then the charge is
committed to disk, the witness written, the category drawn, the answer committed, the answer returned. If
power fails in between, ε was charged and nothing came out; the next request draws on that charge.

Costs are integer micro-ε, rounded up; budgets are rounded down. Names of users and epochs have one form
(Unicode NFC) and nothing in them that cannot be seen, so that one person has one budget however the name was
typed.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..atomic import real_path
from ..core.stream import StreamState
from ..errors import BudgetError, ParameterError, Setting
from ..records import Category, UsersLike, row_of_weights, weights_of_records
from .ledger_store import Store, create_store, refused
from .mechanism import Mechanism, fraction_text

MICRO = 1_000_000
LARGEST = 10**9
"""The largest budget or grant, in ε: far above any use, far below what 64-bit sums of micro-ε can hold."""

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What counts as printable and leaves no ink: fillers, joiners and variation selectors."""

Amount = Fraction | float | int | str


def charge_of(epsilon: Fraction) -> int:
    """⌈ε·10⁶⌉: what a release costs."""
    return -(-epsilon.numerator * MICRO // epsilon.denominator)


def budget_of(amount: Amount, parameter: str = "budget") -> int:
    """⌊amount·10⁶⌋, the amount taken as it is written: 0.3 is three tenths."""
    text = str(amount)
    try:
        # A long or exponential text could take minutes to turn into a fraction.
        value = Fraction(text) if len(text) <= 60 and "e" not in text.lower() else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None:
        raise ParameterError(
            Setting(parameter), f" must be a number such as 4, 0.5 or 1/3, got {text[:60]!r}"
        )
    if not Fraction(1, MICRO) <= value <= LARGEST:
        raise ParameterError(
            Setting(parameter), f" must be at least 0.000001 and at most {LARGEST}, got {text}"
        )
    return value.numerator * MICRO // value.denominator


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """Releases with one mechanism for users of one group, checked by `request`: nothing can fail later."""

    mechanism: Mechanism
    users: tuple[str, ...]
    rows: Any
    group: str
    exact: bool = False  # every user is drawn alone

    @property
    def kind(self) -> dict[str, str | None]:
        """What an answer is remembered under, besides user and epoch: a row of the table `kinds`."""
        return {"mechanism": self.mechanism.digest, '"group"': self.group, "life": self.life}

    @property
    def life(self) -> str | None:
        """The stream that a user's state belongs to: one for each ε and group, whatever the prior is now."""
        return f"{fraction_text(self.mechanism.epsilon)} {self.group}" if self.mechanism.streaming else None

    @property
    def draw(self) -> Callable[..., Any]:
        """What draws for rows that were checked."""
        return partial(self.mechanism.draw, exact=True) if self.exact else self.mechanism.draw


def request(
    mechanism: Mechanism, users: Sequence[Category], p: UsersLike, *, group: str = "", exact: bool = False
) -> Request:
    """Check one row of p per user, whose names are brought to one form, before anybody is charged."""
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism must be a Mechanism, made by certify or load")
    if not checks.is_text(group):
        raise ParameterError("group must be text")
    rows = mechanism.prepare(p)
    names = one_form(users)
    if len(names) != rows.shape[0]:
        raise ParameterError(f"there must be one row per user: {len(names)} users, {rows.shape[0]} rows")
    return Request(mechanism, names, rows, group, exact)


@dataclass(frozen=True)
class Receipt:
    """What charging came to: how many releases were paid for now, and how many had been paid before."""

    epoch: str
    charged: int
    continued: int  # new releases of streams that go on: charged before, they only have to fit into the epoch
    repeated: int
    left_out: int  # releases left out because their user has too little left
    kept: tuple[checks.IntArray, ...] = field(repr=False)  # which users of each request may be released


@dataclass(frozen=True)
class EpochTotal:
    """What was charged in one epoch, all users together."""

    epoch: str
    users: int
    epsilon: Fraction


def one_form(users: Sequence[Category]) -> tuple[str, ...]:
    """The users' names in the form that budgets are kept under; a refused name is never shown."""
    if isinstance(users, str | bytes):
        raise ParameterError("users must be a sequence of names, got a single one")
    names = tuple(map(user_name, users))
    if len(set(names)) != len(names):
        raise ParameterError("users must be distinct within one request, in Unicode's NFC")
    return names


def user_name(user: Category) -> str:
    """One user's name in one form: 7, "7" and numpy's own strings are the same user."""
    if not isinstance(user, str | int | np.integer) or isinstance(user, bool):
        raise ParameterError("user must be a string or an integer")
    if not isinstance(user, str) and abs(int(user)) >= 1 << 128:
        raise ParameterError("user must be an integer below 2^128; use a string")
    text = unicodedata.normalize("NFC", str.__str__(user) if isinstance(user, str) else str(int(user)))
    if not text or not _is_seen(text):
        raise ParameterError(
            "user must be printable text without surrounding white space or characters that cannot be seen: "
            "it would look like another person's name",
        )
    return text


def epoch_name(epoch: object) -> str:
    """An epoch's name in one form."""
    if type(epoch) is not str or len(epoch) > 100 or not _is_seen(epoch):
        raise ParameterError(
            Setting("epoch"),
            " must be printable text of at most 100 characters without surrounding white space or "
            "characters that cannot be seen, such as 2026-11",
        )
    return unicodedata.normalize("NFC", epoch)


def _is_seen(text: str) -> bool:
    """Whether a name shows all that it is; the one white space that is printable to Python is U+0020."""
    return text.isprintable() and text == text.strip() and (text.isascii() or not _UNSEEN.search(text))


def epsilon_text(micro: int) -> str:
    """Micro-ε as a decimal number, exactly."""
    whole, rest = divmod(micro, MICRO)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


class Ledger:
    """A budget of ε per user and epoch, in one SQLite file and its witness.

    Guarantees
        Released ⊆ charged, through crashes, power loss and any number of processes; what is refused has
        charged nobody. Users are stored as keyed hashes, with the key in the same file: no list of names, but
        whoever has the file can test a guess. What it cannot notice: database *and* witness rolled back
        together. A stream is charged once, at its first release, and its ε counts in every epoch in which it
        goes on, so that what an epoch reveals stays within its budget; in all epochs together it counts once.
        Its state is kept here, is private, and changes in the same commit as the answer.

    Make one, once, with `Ledger.create(path, budget=4)`; use it with `Ledger.open(path)`.
    """

    def __init__(self, path: str | Path) -> None:
        self._store = Store(real_path(path))
        self.path, self.witness = self._store.path, self._store.witness
        stated = self._store.stated
        self._key, self._budget, self._lifetime = stated.key, stated.budget, stated.lifetime

    def __repr__(self) -> str:
        lifetime = "" if self._lifetime is None else f", {epsilon_text(self._lifetime)} in all"
        return f"<Ledger {self.path.name}: ε = {epsilon_text(self._budget)} per user and epoch{lifetime}>"

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Open a ledger that was made before; a missing one is refused, never made."""
        return cls(path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        budget: Amount,
        lifetime: Amount | None = None,
        witness: str | Path | None = None,
    ) -> Ledger:
        """Start an empty ledger that allows every user `budget` of ε in each epoch.

        `lifetime` is the most a user may spend in all epochs together; a grant does not raise it. `witness`
        may stand on another volume, out of reach of a snapshot of this one; its place is remembered.

        Raises
            LedgerError: something is there already, or the files cannot be made. Nobody's file is touched.
        """
        most, ever = budget_of(budget), None if lifetime is None else budget_of(lifetime, "lifetime")
        if ever is not None and ever < most:
            raise ParameterError(Setting("lifetime"), " must be at least the budget of one epoch")
        create_store(real_path(path), most, ever, None if witness is None else real_path(witness))
        return cls(path)

    @property
    def budget(self) -> Fraction:
        """What every user may spend in one epoch."""
        return Fraction(self._budget, MICRO)

    @property
    def lifetime(self) -> Fraction | None:
        """What every user may spend in all epochs together, or None where that has no bound."""
        return None if self._lifetime is None else Fraction(self._lifetime, MICRO)

    def epochs(self) -> tuple[EpochTotal, ...]:
        """The epochs in which something was charged or granted, by name."""
        sql = """SELECT name, COUNT(DISTINCT CASE WHEN ever > 0 THEN user END), COALESCE(SUM(ever), 0)
            FROM epochs LEFT JOIN entries ON epoch = id GROUP BY id ORDER BY name"""
        rows = self._store.rows(sql)
        return tuple(EpochTotal(name, users, Fraction(micro, MICRO)) for name, users, micro in rows)

    def knows(self, epoch: str) -> bool:
        """Whether anything was ever charged or granted in an epoch."""
        return bool(self._store.rows("SELECT 1 FROM epochs WHERE name = ?", [epoch_name(epoch)]))

    def users(self) -> int:
        """How many users were ever charged."""
        ((count,),) = self._store.rows("SELECT COUNT(DISTINCT user) FROM entries WHERE ever > 0")
        return int(count)

    def left(self, user: Category, epoch: str | None = None) -> Fraction:
        """How much ε a user may still spend in an epoch, within the lifetime if there is one."""
        key, name = self._hash(user_name(user)), {"name": self.epoch_meant(epoch)}
        with self._store.reading() as database:
            left = min(self._left(database, key, _number(database, "epochs", name)))
        return Fraction(max(left, 0), MICRO)

    def total(self, user: Category) -> Fraction:
        """How much ε a user has spent in all epochs together."""
        ((_, ever),) = self._store.rows(_SPENT, [NOBODY, self._hash(user_name(user))])
        return Fraction(ever, MICRO)

    def grant(self, user: Category, more: Amount, epoch: str | None = None) -> None:
        """Allow one user more ε in one epoch, and set their answers there aside: the next release is new.

        A release that was charged before the grant still gets the answers it was charged for.

        Raises
            BudgetError: the lifetime leaves nothing, so that the grant would buy nothing. Nothing changes.
        """
        key, micro, name = (
            self._hash(user_name(user)),
            budget_of(more, "more"),
            {"name": self.epoch_meant(epoch)},
        )
        with self._store.exclusively() as database:
            number = _number(database, "epochs", name, enter=True)
            database.execute(
                "INSERT INTO entries VALUES (?, ?, ?, NULL, ?, 0) "
                "ON CONFLICT DO UPDATE SET here = here + excluded.here",
                (key, number, _GRANT, -micro),
            )
            sql = "UPDATE entries SET answer = -2 - answer WHERE user = ? AND epoch = ? AND answer >= 0"
            database.execute(sql, (key, number))
            if min(self._left(database, key, number)) <= 0:
                raise BudgetError("the grant would leave this user nothing to spend; nothing was changed")

    def release(
        self,
        mechanism: Mechanism,
        user: Category,
        *,
        records: Iterable[Category],
        epoch: str | None = None,
        group: str = "",
    ) -> Any:
        """Release for one user, or return what was released before; charge only for something new.

        Raises
            UserDataError: the records are no list. Nobody is charged. (Unknown ones count for nothing.)
            BudgetError: not enough ε is left; says how much is. Nobody is charged.
            LedgerError: the store was lost, rolled back or damaged. Nothing is released.
        """
        if not isinstance(mechanism, Mechanism):
            raise ParameterError("mechanism must be a Mechanism, made by certify or load")
        counts = row_of_weights(weights_of_records(records, mechanism.index), len(mechanism.categories))
        (answer,) = self.release_batch(mechanism, [user], counts, epoch=epoch, group=group)
        return answer

    def release_batch(
        self,
        mechanism: Mechanism,
        users: Sequence[Category],
        p: UsersLike,
        *,
        epoch: str | None = None,
        group: str = "",
    ) -> list[Any]:
        """Release for every user and row of p; all who have no answer yet are charged in one commit.

        All or nothing: when one user has too little left, or anything is wrong with the data, nobody is
        charged. The message says how many lack budget (for a single user: how much is left), never which.
        """
        asked = request(mechanism, users, p, group=group)
        receipt = self.charge([asked], epoch=epoch)
        return self.answers(asked, receipt.epoch, np.arange(len(asked.users)))

    def charge(
        self, requests: Sequence[Request], *, epoch: str | None = None, exhausted: str = "error"
    ) -> Receipt:
        """Charge every release that has no answer yet, all requests in one commit, or nobody.

        With exhausted="skip", users who cannot pay for all that is new for them are left out instead; what
        they were answered before is theirs still.
        """
        _check_requests(requests, exhausted)
        name = self.epoch_meant(epoch)
        with self._store.exclusively() as database:
            bill = self._bill(database, requests, name, exhausted)
            if any(bill.paid):  # up to here nothing was written
                number = _number(database, "epochs", {"name": name}, enter=True)
                for asked, charges in zip(requests, bill.paid, strict=True):
                    _pay(database, asked, charges, number)
                self._store.count_commit()
        return bill.receipt(name)

    def preview(
        self, requests: Sequence[Request], *, epoch: str | None = None, exhausted: str = "error"
    ) -> Receipt:
        """The receipt that `charge` would give now, or the refusal of it or `answers`; nobody is charged."""
        _check_requests(requests, exhausted)
        name = self.epoch_meant(epoch)
        with self._store.reading() as database:
            self._store.check()
            bill = self._bill(database, requests, name, exhausted)
            number = _number(database, "epochs", {"name": name})
            for asked, charges, out in zip(requests, bill.paid, bill.left_out, strict=True):
                self._check_answers(database, asked, number, charges, set(out))
        return bill.receipt(name)

    def _check_answers(
        self,
        database: sqlite3.Connection,
        asked: Request,
        epoch: int,
        charges: Sequence[_Charge],
        left_out: set[int],
    ) -> None:
        """Refuse where `answers` would, after these charges: an answer or a state was changed."""
        users = [self._hash(user) for user in asked.users]
        answers = _answers(database, users, epoch, _number(database, "kinds", asked.kind))
        new = {charge.row for charge in charges}
        old = set(range(len(users))) - new - left_out
        undrawn = {row for row in old if answers[row] is None}
        self._check_known(asked, [answers[row] for row in sorted(old - undrawn)])
        if asked.life is not None:
            begun = "SELECT EXISTS (SELECT 1 FROM streams WHERE user = ? AND life = ?)"
            about = [(row, (users[row], asked.life)) for row in sorted(new)]
            going_on = {row for row, key in about if database.execute(begun, key).fetchone()[0]}
            self._states(database, asked, [users[row] for row in sorted(undrawn | going_on)])

    def _check_known(self, asked: Request, answers: Iterable[int | None], *, lost: bool = False) -> None:
        """Refuse answers that the mechanism cannot have given."""
        if lost or any(answer not in range(len(asked.mechanism.answers)) for answer in answers):
            raise refused(f"an answer vanished from {self.path} or was changed")

    def _bill(
        self, database: sqlite3.Connection, requests: Sequence[Request], name: str, exhausted: str
    ) -> _Bill:
        """What every request costs; refused if somebody cannot pay, unless they may be left out."""
        keys = [[self._hash(user) for user in asked.users] for asked in requests]
        number, begun = _number(database, "epochs", {"name": name}), set[tuple[bytes, str]]()
        new = [_new_charges(database, *each, number, begun) for each in zip(requests, keys, strict=True)]
        here, ever = Counter[bytes](), Counter[bytes]()
        for charge in chain.from_iterable(new):
            here[charge.user] += charge.here
            ever[charge.user] += charge.ever
        left = {user: self._left(database, user, number) for user in here}
        lacking = {user for user in here if here[user] > left[user][0] or ever[user] > left[user][1]}
        if lacking and exhausted == "error":
            raise self._too_little(len(lacking), len({*chain.from_iterable(keys)}), here, left)
        paid = [[charge for charge in charges if charge.user not in lacking] for charges in new]
        out = [[charge.row for charge in charges if charge.user in lacking] for charges in new]
        return _Bill([len(users) for users in keys], paid, out)

    def answers(self, asked: Request, epoch: str, which: checks.IntArray) -> list[Any]:
        """The answers of these users of a request that was charged; what was not drawn yet is drawn now."""
        users = [self._hash(asked.users[i]) for i in which.tolist()]
        with self._store.reading() as database:
            key = _number(database, "epochs", {"name": epoch}), _number(database, "kinds", asked.kind)
            answers, known = _answers(database, users, *key), self._store.facts().commits
        missing, drawn_at = [i for i in _in_order(users) if answers[i] is None], known
        if missing:
            self._store.testify()  # also for a charge that somebody else paid and could not use
            drawing, drawn = missing, [] if asked.life else asked.draw(asked.rows[which[missing]])
            with self._store.exclusively() as database:
                if asked.life:  # nobody else draws meanwhile, so that no state is used twice
                    now = _answers(database, users, *key)
                    drawing = [i for i in missing if now[i] is None]
                    rows = asked.rows[which[drawing]]
                    drawn = self._next_of_streams(database, asked, [users[i] for i in drawing], rows)
                index = asked.mechanism.answer_index
                entered = [(users[i], index[answer]) for i, answer in zip(drawing, drawn, strict=True)]
                _enter_answers(database, entered, *key)
                now = _answers(database, users, *key)  # a grant may have come between
                answers = [now[i] if old is None else old for i, old in enumerate(answers)]
                drawn_at = self._store.count_commit()
        self._store.testify()  # a store from before these answers must not be able to draw again
        with self._store.reading() as database:
            kept, commits = _answers(database, users, *key), self._store.facts().commits
        # A grant and a new charge, which are later commits, may set an answer aside; an older copy that was
        # written over the open file has no later commits.
        gone, fresh = [i for i, answer in enumerate(answers) if kept[i] != answer], set(missing)
        lost = any(commits <= (drawn_at if i in fresh else known) for i in gone)
        self._check_known(asked, answers, lost=lost)
        names = asked.mechanism.answers
        return [names[answer] for answer in answers if answer is not None]

    def _next_of_streams(
        self, database: sqlite3.Connection, asked: Request, users: Sequence[bytes], rows: Any
    ) -> list[Any]:
        """Draw for users from their states, and enter the next states."""
        drawn, states = asked.draw(rows, self._states(database, asked, users))
        after = [(state.to_text(), user, asked.life) for user, state in zip(users, states, strict=True)]
        database.executemany("UPDATE streams SET state = ? WHERE user = ? AND life = ?", after)
        return list(drawn)

    def _states(
        self, database: sqlite3.Connection, asked: Request, users: Sequence[bytes]
    ) -> list[StreamState]:
        """The states of users' streams, each checked; one that is missing was changed."""
        sql = "SELECT COALESCE((SELECT state FROM streams WHERE user = ? AND life = ?), '')"
        texts = [database.execute(sql, (user, asked.life)).fetchone()[0] for user in users]
        try:
            return [asked.mechanism.check_state(StreamState.from_text(text)) for text in texts]
        except ParameterError:
            raise refused(f"a state in {self.path} was changed") from None

    def epoch_meant(self, epoch: str | None) -> str:
        """The epoch that is meant. Left out, it is the one without a name, unless the ledger knows others."""
        if epoch is not None:
            return epoch_name(epoch)
        others = [
            name for (name,) in self._store.rows("SELECT name FROM epochs WHERE name != '' ORDER BY name")
        ]
        if others:
            known = f"{len(others)}, such as {', '.join(map(repr, others[-6:]))}"
            raise ParameterError("name an epoch (", Setting("epoch"), f"): the ledger knows {known}")
        return ""

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def _left(self, database: sqlite3.Connection, user: bytes, epoch: int) -> tuple[int, int]:
        """How many micro-ε a user may still spend in an epoch, and in all of them."""
        here, ever = database.execute(_SPENT, (epoch, user)).fetchone()
        return self._budget - here, (_BOUNDLESS if self._lifetime is None else self._lifetime) - ever

    def _hash(self, name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=self._key, digest_size=16).digest()

    def _too_little(
        self, lacking: int, users: int, needs: Counter[bytes], left: Mapping[bytes, tuple[int, int]]
    ) -> BudgetError:
        """How many users lack budget; for a single user, how much there is."""
        need = epsilon_text(max(needs.values()))
        if users == 1:
            (amounts,) = left.values()
            has = f"ε = {epsilon_text(max(min(amounts), 0))} is left"
            return BudgetError(f"this release needs ε = {need}, {has}; nobody was charged")
        return BudgetError(
            f"{lacking} of {users} users have less than they need; nobody was charged. Users need up to "
            f"ε = {need} here, and the budget of an epoch is {epsilon_text(self._budget)}: release at a "
            f"smaller ε or in fewer groups, leave these users out (",
            Setting("exhausted", "skip"),
            "), or grant them more",
        )


# --- the entries -----------------------------------------------------------------------------------

# An entry is what one kind of release has cost a user in one epoch, and its answer. `here` counts in the
# epoch and `ever` in all epochs together. A grant is an entry of a kind of its own with a negative cost. An
# answer that a grant has set aside is stored as -2 - answer: a new charge takes its place, and until then
# whoever has charged before the grant finds it.

_BOUNDLESS = 1 << 62
NOBODY = -1
"""The number of an epoch or kind that the ledger has not seen, and the answer of a user who did not pay."""
_GRANT = 0
"""The kind of a grant: kinds of releases are numbered from 1."""

_SPENT = """SELECT COALESCE(SUM(here) FILTER (WHERE epoch = ?), 0), COALESCE(SUM(ever), 0)
FROM entries WHERE user = ?"""
_STREAM = """SELECT EXISTS (SELECT 1 FROM streams WHERE user = :user AND life = :life), EXISTS (
SELECT 1 FROM entries JOIN kinds ON kind = id WHERE user = :user AND epoch = :epoch AND life = :life)"""
_ENTRY = "FROM entries WHERE user = ? AND epoch = ? AND kind = ?"


def _number(
    database: sqlite3.Connection, table: str, names: Mapping[str, str | None], *, enter: bool = False
) -> int:
    """The number of an epoch or a kind; NOBODY for a new one that is not entered."""
    if enter:
        values = ", ".join("?" * len(names))
        sql = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({values})"
        database.execute(sql, tuple(names.values()))
    known = " AND ".join(f"{column} IS ?" for column in names)
    row = database.execute(f"SELECT id FROM {table} WHERE {known}", tuple(names.values())).fetchone()
    return NOBODY if row is None else int(row[0])


class _Charge(NamedTuple):
    """What a release without an answer costs a user in the epoch, and in all epochs together."""

    row: int
    user: bytes
    here: int
    ever: int


@dataclass(frozen=True)
class _Bill:
    """The charges of some requests: who pays, and which rows are left out because their user cannot."""

    users: list[int]  # how many, of each request
    paid: list[list[_Charge]]
    left_out: list[list[int]]

    def receipt(self, epoch: str) -> Receipt:
        """What it comes to."""
        charged = sum(charge.ever > 0 for charge in chain.from_iterable(self.paid))
        releases, paid, left_out = sum(self.users), sum(map(len, self.paid)), sum(map(len, self.left_out))
        rows = zip(self.users, self.left_out, strict=True)
        kept = tuple(np.delete(np.arange(users), out) for users, out in rows)
        return Receipt(epoch, charged, paid - charged, releases - paid - left_out, left_out, kept)


def _check_requests(requests: Sequence[Request], exhausted: str) -> None:
    checks.one_of(("error", "skip"), exhausted=exhausted)
    if len({(asked.mechanism.digest, asked.group) for asked in requests}) < len(requests):
        raise ParameterError("each mechanism and group must be asked for once")


def _in_order(users: Sequence[bytes]) -> list[int]:
    """The users in the order of the table, in which it is read and filled fastest."""
    return sorted(range(len(users)), key=users.__getitem__)


def _new_charges(
    database: sqlite3.Connection,
    asked: Request,
    users: Sequence[bytes],
    epoch: int,
    begun: set[tuple[bytes, str]],
) -> list[_Charge]:
    """What the releases that have no answer cost.

    A stream that goes on costs nothing more, and its ε counts once in each epoch. `begun` collects the
    streams that are asked for together, perhaps by several files.
    """
    kind, cost = _number(database, "kinds", asked.kind), charge_of(asked.mechanism.epsilon)
    answered, charges = f"SELECT 1 {_ENTRY} AND COALESCE(answer, 0) >= 0", []
    for i in _in_order(users):
        user = users[i]
        if database.execute(answered, (user, epoch, kind)).fetchone():
            continue
        goes_on = counted = False
        if asked.life is not None:
            about = {"user": user, "life": asked.life, "epoch": epoch}
            goes_on, counted = database.execute(_STREAM, about).fetchone()
            if (user, asked.life) in begun:
                goes_on = counted = True
            begun.add((user, asked.life))
        charges.append(_Charge(i, user, 0 if counted else cost, 0 if goes_on else cost))
    return charges


def _pay(database: sqlite3.Connection, asked: Request, charges: Sequence[_Charge], epoch: int) -> None:
    """Enter charges with answers to be drawn, and the state of each stream that begins."""
    kind = _number(database, "kinds", asked.kind, enter=True)
    rows = [(charge.user, epoch, kind, charge.here, charge.ever) for charge in charges]
    database.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, NULL, ?, ?) ON CONFLICT DO UPDATE "
        "SET answer = NULL, here = here + excluded.here, ever = ever + excluded.ever",
        rows,
    )
    if asked.life is not None:
        begin = asked.mechanism.start().to_text()
        states = [(user, asked.life, begin) for user, *_ in rows]
        database.executemany("INSERT OR IGNORE INTO streams VALUES (?, ?, ?)", states)


def _answers(database: sqlite3.Connection, users: Sequence[bytes], epoch: int, kind: int) -> list[int | None]:
    """The answer of every user; None where it is paid and not drawn yet, NOBODY if it is not paid."""
    sql = f"SELECT MAX(answer, -2 - answer) {_ENTRY}"
    answers: list[int | None] = [NOBODY] * len(users)
    for i in _in_order(users):
        for (answer,) in database.execute(sql, (users[i], epoch, kind)):
            answers[i] = answer
    return answers


def _enter_answers(
    database: sqlite3.Connection, drawn: Sequence[tuple[bytes, int]], epoch: int, kind: int
) -> None:
    """Enter what was drawn; where another process was faster on the same charge, its answer stays."""
    rows = [(answer, user, epoch, kind) for user, answer in drawn]
    sql = "UPDATE entries SET answer = ? WHERE user = ? AND epoch = ? AND kind = ? AND answer IS NULL"
    database.executemany(sql, rows)
