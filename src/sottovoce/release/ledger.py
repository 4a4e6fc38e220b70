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
import secrets
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .. import _naming, _validate
from .._atomic import real_path
from ..errors import BudgetError, ParameterError
from ..prior import Category
from ..users import UsersLike
from . import weights
from .ledger_store import Store, create_store, refused
from .mechanism import Mechanism
from .stream import StreamState

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


def budget_of(amount: Amount) -> int:
    """⌊amount·10⁶⌋, the amount taken as it is written: 0.3 is three tenths."""
    text = str(amount)
    try:
        # A long or exponential text could take minutes to turn into a fraction.
        value = Fraction(text) if len(text) <= 60 and "e" not in text.lower() else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None:
        raise ParameterError(f"budget must be a number such as 4, 0.5 or 1/3, got {text[:60]!r}")
    if not 0 < value <= LARGEST:
        raise ParameterError(f"budget must be greater than 0 and at most {LARGEST}, got {text}")
    micro = value.numerator * MICRO // value.denominator
    if micro < 1:
        raise ParameterError(f"budget must be at least 0.000001, got {text}")
    return micro


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """Releases with one mechanism for users of one group, checked by `request`: nothing can fail later."""

    mechanism: Mechanism
    users: tuple[str, ...]
    rows: Any
    group: str
    exact: bool = False  # every user is drawn alone

    @property
    def kind(self) -> tuple[str, str]:
        """What an answer is remembered under, besides user and epoch."""
        return self.mechanism.digest, self.group

    @property
    def life(self) -> str | None:
        """The stream that a user's state belongs to: one for each ε and group, whatever the prior is now."""
        epsilon = self.mechanism.epsilon
        return f"{epsilon.numerator}/{epsilon.denominator} {self.group}" if self.mechanism.streaming else None

    @property
    def draw(self) -> Callable[..., Any]:
        """What draws for rows that were checked."""
        return self.mechanism.draw_singly if self.exact else self.mechanism.draw

    def __repr__(self) -> str:
        return f"<Request of {len(self.users)} releases>"


def request(
    mechanism: Mechanism, users: Sequence[Category], p: UsersLike, *, group: str = "", exact: bool = False
) -> Request:
    """Check one row of p per user, whose names are brought to one form, before anybody is charged."""
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism must be a Mechanism, made by certify or load")
    if not _naming.is_text(group):
        raise ParameterError("group must be text")
    rows = mechanism.prepare(p)
    names = one_form(users)
    if len(names) != rows.shape[0]:
        raise ParameterError(f"there must be one row per user: {len(names)} users, {rows.shape[0]} rows")
    return Request(mechanism, names, rows, group, exact)


@dataclass(frozen=True, repr=False)
class Receipt:
    """What charging came to: how many releases were paid for now, and how many had been paid before.

    A new release of a stream that goes on is `continued`: its ε was charged before, and only has to fit into
    the budget of the epoch.
    """

    epoch: str
    charged: int
    continued: int
    repeated: int
    left_out: int  # releases left out because their user has too little left
    kept: tuple[_validate.IntArray, ...]  # for each request, which of its users may be released

    def __repr__(self) -> str:
        paid = f"{self.charged} charged" + (f", {self.continued} continued" if self.continued else "")
        return f"<Receipt: {paid}, {self.repeated} repeated, {self.left_out} left out>"


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
            "it would look like another person's name"
        )
    return text


def epoch_name(epoch: object) -> str:
    """An epoch's name in one form."""
    if type(epoch) is not str or len(epoch) > 100 or not _is_seen(epoch):
        raise ParameterError(
            "epoch must be printable text of at most 100 characters without surrounding white space or "
            "characters that cannot be seen, such as 2026-11"
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
        try:
            self._key = bytes.fromhex(self._store.fact("key"))
            self._budget = self._store.number("budget")
            self._lifetime = self._store.number("lifetime") if self._store.fact("lifetime") else None
            readable = len(self._key) == 32
        except (sqlite3.Error, ValueError):
            readable = False
        if not readable:
            self._store.close()
            raise self._store.unreadable()

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
        facts = {
            "key": secrets.token_hex(32),
            "budget": str(budget_of(budget)),
            "lifetime": "" if lifetime is None else str(budget_of(lifetime)),
        }
        if lifetime is not None and budget_of(lifetime) < budget_of(budget):
            raise ParameterError("lifetime must be at least the budget of one epoch")
        create_store(real_path(path), facts, None if witness is None else real_path(witness))
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
        sql = """SELECT name, COUNT(user), COALESCE(SUM(micro), 0) FROM epochs LEFT JOIN spent ON epoch = id
            GROUP BY id ORDER BY name"""
        with self._store.reading() as database:
            return tuple(
                EpochTotal(name, n, Fraction(micro, MICRO)) for name, n, micro in database.execute(sql)
            )

    def knows(self, epoch: str) -> bool:
        """Whether anything was ever charged or granted in an epoch."""
        with self._store.reading() as database:
            return _number(database, "epochs", epoch_name(epoch)) != NOBODY

    def users(self) -> int:
        """How many users were ever charged."""
        with self._store.reading() as database:
            return _value(database, "SELECT COUNT(DISTINCT user) FROM spent")

    def left(self, user: Category, epoch: str | None = None) -> Fraction:
        """How much ε a user may still spend in an epoch, within the lifetime if there is one."""
        key, name = self._hash(user_name(user)), self.epoch_meant(epoch)
        with self._store.reading() as database:
            return Fraction(self._left(database, key, _number(database, "epochs", name)), MICRO)

    def total(self, user: Category) -> Fraction:
        """How much ε a user has spent in all epochs together."""
        sql = "SELECT COALESCE(SUM(micro), 0) FROM spent WHERE user = ?"
        with self._store.reading() as database:
            return Fraction(_value(database, sql, (self._hash(user_name(user)),)), MICRO)

    def grant(self, user: Category, more: Amount, epoch: str | None = None) -> None:
        """Allow one user more ε in one epoch, and set their answers there aside: the next release is new.

        A release that was charged before the grant still gets the answers it was charged for.

        Raises
            BudgetError: the lifetime leaves nothing, so that the grant would buy nothing. Nothing changes.
        """
        key, micro, name = self._hash(user_name(user)), budget_of(more), self.epoch_meant(epoch)
        with self._store.exclusively() as database:
            number = _number(database, "epochs", name, enter=True)
            _add_grant(database, key, number, micro)
            if not self._left(database, key, number):
                raise BudgetError("the grant would leave this user nothing to spend; nothing was changed")

    def release(
        self,
        mechanism: Mechanism,
        user: Category,
        records: Iterable[Category],
        *,
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
        counts = weights.row_of(weights.from_records(records, mechanism.index), len(mechanism.categories))
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
        _validate.one_of(("error", "skip"), exhausted=exhausted)
        if len({asked.kind for asked in requests}) < len(requests):
            raise ParameterError("each mechanism and group must be asked for once")
        name = self.epoch_meant(epoch)
        keys = [[self._hash(user) for user in asked.users] for asked in requests]
        costs = [charge_of(asked.mechanism.epsilon) for asked in requests]
        with self._store.exclusively() as database:
            number = _number(database, "epochs", name)
            known = [_number(database, "kinds", *asked.kind) for asked in requests]
            kinds = [NOBODY - 1 - i if kind == NOBODY else kind for i, kind in enumerate(known)]
            _clear(database)
            lives: dict[str, list[int]] = {}  # requests of one life are charged once
            for users, kind, cost, asked in zip(keys, kinds, costs, requests, strict=True):
                _ask(database, users, kind, cost)
                if asked.life is not None:
                    _carry_on(database, kind, asked.life, number, lives.setdefault(asked.life, []))
                    lives[asked.life].append(kind)
            lacking = _find_lacking(database, self._money(number))
            if lacking and exhausted == "error":
                self._refuse(lacking, keys, costs, number)
            charged, continued, left_out = _count_new(database, number)
            kept = [np.array(_users_kept(database, kind, number), np.intp) for kind in kinds]
            if charged or continued:  # up to here nothing was written
                number = _number(database, "epochs", name, enter=True)
                for kind, asked in zip(kinds, requests, strict=True):
                    entered = _number(database, "kinds", *asked.kind, enter=True)
                    database.execute("UPDATE asked SET kind = ? WHERE kind = ?", (entered, kind))
                    if asked.life is not None:
                        begin = asked.mechanism.start().to_text()
                        _begin_streams(database, entered, asked.life, begin, number)
                _pay(database, number)
                self._store.count_commit()
        repeated = sum(map(len, keys)) - charged - continued - left_out
        return Receipt(name, charged, continued, repeated, left_out, tuple(kept))

    def answers(self, asked: Request, epoch: str, which: _validate.IntArray) -> list[Any]:
        """The answers of these users of a request that was charged; what was not drawn yet is drawn now."""
        users = [self._hash(asked.users[i]) for i in which.tolist()]
        with self._store.reading() as database:
            number = _number(database, "epochs", epoch)
            _ask_about(database, users, _number(database, "kinds", *asked.kind))
            positions = _positions(database, len(users), number)
            known = drawn_at = self._store.commits
        missing = [i for i, position in enumerate(positions) if position is None]
        if missing and asked.life is not None:
            positions, drawn_at = self._next_of_streams(asked, number, which, users)
        elif missing:
            self._store.testify()  # also for a charge that somebody else paid and could not use
            drawn = asked.draw(asked.rows[which[missing]])
            index = asked.mechanism.answer_index
            rows = [(users[i], index[new]) for i, new in zip(missing, drawn, strict=True)]
            with self._store.exclusively() as database:
                _enter_answers(database, rows, _number(database, "kinds", *asked.kind), number)
                now = _positions(database, len(users), number)  # a grant may have come between
                positions = [now[i] if old is None else old for i, old in enumerate(positions)]
                drawn_at = self._store.count_commit()
        self._store.testify()  # a store from before these answers must not be able to draw again
        with self._store.reading() as database:
            kept, commits = _positions(database, len(users), number), self._store.commits
        # A grant and a new charge, which are later commits, may set an answer aside; an older copy that was
        # written over the open file has no later commits.
        gone = [i for i, position in enumerate(positions) if kept[i] != position]
        fresh = set(missing) if gone else set()
        lost = any(commits <= (drawn_at if i in fresh else known) for i in gone)
        answers = asked.mechanism.answers
        if lost or any(position not in range(len(answers)) for position in positions):
            raise refused(f"an answer vanished from {self.path} or was changed")
        return [answers[position] for position in positions if position is not None]

    def _next_of_streams(
        self, asked: Request, epoch: int, which: _validate.IntArray, users: list[bytes]
    ) -> tuple[list[int | None], int]:
        """Draw for those without an answer, from their states: answers and new states in one commit.

        Nobody else draws meanwhile, so that no state is used twice.
        """
        mechanism, life = asked.mechanism, asked.life or ""
        self._store.testify()
        with self._store.exclusively() as database:
            kind = _number(database, "kinds", *asked.kind)
            _ask_about(database, users, kind)
            positions = _positions(database, len(users), epoch)
            states = self._states(database, mechanism, life, len(users))
            missing = [i for i, position in enumerate(positions) if position is None]
            after: list[tuple[str, bytes, str]] = []
            for step in sorted({states[i].step for i in missing}):
                these = [i for i in missing if states[i].step == step]
                rows = asked.rows[which[these]]
                answers, following = asked.draw(rows, [states[i] for i in these])
                for i, answer, state in zip(these, answers, following, strict=True):
                    positions[i] = mechanism.answer_index[answer]
                    after.append((state.to_text(), users[i], life))
            drawn = [(users[i], number) for i in missing if (number := positions[i]) is not None]
            _enter_answers(database, drawn, kind, epoch)
            database.executemany("UPDATE streams SET state = ? WHERE user = ? AND life = ?", after)
            commits = self._store.count_commit()
        return positions, commits

    def _states(
        self, database: sqlite3.Connection, mechanism: Mechanism, life: str, users: int
    ) -> list[StreamState]:
        """The state of every user asked about."""
        sql = "SELECT place, state FROM asked JOIN streams USING (user) WHERE life = ? ORDER BY place"
        try:
            rows = database.execute(sql, (life,)).fetchall()
            states = [mechanism.check_state(StreamState.from_text(text)) for _, text in rows]
        except ParameterError:
            states = []
        if len(states) != users:
            raise refused(f"a state in {self.path} was changed")
        return states

    def epoch_meant(self, epoch: str | None) -> str:
        """The epoch that is meant. Left out, it is the one without a name, unless the ledger knows others."""
        if epoch is not None:
            return epoch_name(epoch)
        others = [total.epoch for total in self.epochs() if total.epoch]
        if others:
            known = f"{len(others)}, such as {', '.join(map(repr, others[-6:]))}"
            raise ParameterError(f"name an epoch (epoch=, --epoch): the ledger knows {known}")
        return ""

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def _money(self, epoch: int) -> dict[str, int]:
        """What the questions about money need to know."""
        lifetime = _BOUNDLESS if self._lifetime is None else self._lifetime
        return {"budget": self._budget, "lifetime": lifetime, "epoch": epoch}

    def _left(self, database: sqlite3.Connection, user: bytes, epoch: int) -> int:
        """How many micro-ε a user may still spend."""
        sql = f"SELECT MIN({_EPOCH_LEFT}, {_LIFE_LEFT})".format(user=":user")
        return max(_value(database, sql, {**self._money(epoch), "user": user}), 0)

    def _hash(self, name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=self._key, digest_size=16).digest()

    def _refuse(self, lacking: int, keys: list[list[bytes]], costs: list[int], epoch: int) -> None:
        """Say how many users lack budget; for a single user, how much there is."""
        people, database = {key for users in keys for key in users}, self._store.database
        needs = f"SELECT COALESCE(MAX(need), 0) FROM (SELECT SUM(cost) AS need FROM ({_NEW}) GROUP BY user)"
        need = _value(database, needs, {"epoch": epoch})
        if len(people) == 1:
            left = self._left(database, next(iter(people)), epoch)
            has = f"ε = {epsilon_text(left)} is left"
            raise BudgetError(f"this release needs ε = {epsilon_text(need)}, {has}; nobody was charged")
        much = f"the ε = {epsilon_text(costs[0])} that a release needs" if len(costs) == 1 else "they need"
        raise BudgetError(
            f"{lacking} of {len(people)} users have less than {much}; nobody was charged. Users need up to "
            f"ε = {epsilon_text(need)} here, and the budget of an epoch is {epsilon_text(self._budget)}: "
            f"release at a smaller ε or in fewer groups, leave these users out (exhausted='skip', "
            f"--exhausted skip), or grant them more"
        )


# --- the entries -----------------------------------------------------------------------------------

# Each function is a question or a change inside a transaction of the store. What is asked stands in the
# temporary table `asked`, a row per user and kind of release (a mechanism and a group). The position of an
# answer that a grant has set aside is stored as -2 - position: a new charge takes its place, and until then
# whoever has charged before the grant finds it.

NOBODY = -1
"""The number of an epoch or kind that the ledger has not seen."""

_BOUNDLESS = 1 << 62

_NEW = """SELECT asked.user, asked.kind, asked.cost, asked.carried FROM asked
LEFT JOIN answers ON answers.user = asked.user AND answers.epoch = :epoch AND answers.kind = asked.kind
AND COALESCE(answers.position, 0) >= 0 WHERE answers.user IS NULL"""

_EPOCH_LEFT = """(:budget + COALESCE((SELECT micro FROM granted WHERE user = {user} AND epoch = :epoch), 0)
  - COALESCE((SELECT micro FROM spent WHERE user = {user} AND epoch = :epoch), 0)
  - COALESCE((SELECT SUM(micro) FROM carried WHERE user = {user} AND epoch = :epoch), 0))"""

_LIFE_LEFT = "(:lifetime - COALESCE((SELECT SUM(micro) FROM spent WHERE user = {user}), 0))"


_NUMBERED = {"epochs": ("name",), "kinds": ("mechanism", '"group"')}
"""The tables whose rows have numbers, and the columns that name a row."""


def _value(database: sqlite3.Connection, sql: str, given: Any = ()) -> int:
    """The one integer that a query returns."""
    return int(database.execute(sql, given).fetchone()[0])


def _number(database: sqlite3.Connection, table: str, *names: str, enter: bool = False) -> int:
    """The number of an epoch or of a kind (mechanism, group); NOBODY for a new one that is not entered."""
    columns = _NUMBERED[table]
    if enter:
        values = ", ".join("?" * len(columns))
        database.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({values})", names)
    known = " AND ".join(f"{column} = ?" for column in columns)
    row = database.execute(f"SELECT id FROM {table} WHERE {known}", names).fetchone()
    return NOBODY if row is None else int(row[0])


def _ask(database: sqlite3.Connection, users: Sequence[bytes], kind: int, cost: int) -> None:
    """Put users beside what is there to be asked about already."""
    order = sorted(range(len(users)), key=users.__getitem__)  # a table is filled fastest in its own order
    rows = ((users[i], kind, cost, i) for i in order)
    database.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, 0)", rows)


def _ask_about(database: sqlite3.Connection, users: Sequence[bytes], kind: int) -> None:
    """Ask about these users and nobody else; nothing is to be paid."""
    _clear(database)
    _ask(database, users, kind, 0)


def _clear(database: sqlite3.Connection) -> None:
    """Forget what was asked before."""
    for table in ("asked", "lacking", "drawn"):
        database.execute(f"DELETE FROM {table}")


def _find_lacking(database: sqlite3.Connection, money: dict[str, int]) -> int:
    """Enter the users who cannot pay for all that is new for them; return how many there are."""
    lacks = f"now > {_EPOCH_LEFT} OR ever > {_LIFE_LEFT}".format(user="wants.user")
    database.execute(
        f"INSERT INTO lacking SELECT user FROM (SELECT user, SUM(cost) AS now, "
        f"SUM(CASE WHEN carried THEN 0 ELSE cost END) AS ever FROM ({_NEW}) GROUP BY user) AS wants "
        f"WHERE {lacks}",
        money,
    )
    return _value(database, "SELECT COUNT(*) FROM lacking")


def _count_new(database: sqlite3.Connection, epoch: int) -> tuple[int, int, int]:
    """How many releases are new and paid for, new and of a stream that goes on, and new and lack budget."""
    sql = f"""SELECT COUNT(*) FILTER (WHERE lacking.user IS NULL AND NOT carried),
        COUNT(*) FILTER (WHERE lacking.user IS NULL AND carried), COUNT(lacking.user)
        FROM ({_NEW}) AS new LEFT JOIN lacking USING (user)"""
    paid, free, lacking = database.execute(sql, {"epoch": epoch}).fetchone()
    return paid, free, lacking


def _carry_on(database: sqlite3.Connection, kind: int, life: str, epoch: int, others: Sequence[int]) -> None:
    """Mark what goes on with a stream: nothing is charged, and its ε counts once in each epoch.

    `others` are kinds of the same life that are asked for together with this one.
    """
    begun = "EXISTS (SELECT 1 FROM streams WHERE streams.user = asked.user AND life = :life)"
    counted = (
        "EXISTS (SELECT 1 FROM carried WHERE carried.user = asked.user AND epoch = :epoch AND life = :life)"
    )
    told = {"kind": kind, "life": life, "epoch": epoch}
    database.execute(f"UPDATE asked SET carried = 1 WHERE kind = :kind AND {begun}", told)
    database.execute(f"UPDATE asked SET cost = 0 WHERE kind = :kind AND carried AND {counted}", told)
    for other in others:
        database.execute(
            "UPDATE asked SET cost = 0, carried = 1 "
            "WHERE kind = ? AND user IN (SELECT user FROM asked WHERE kind = ?)",
            (kind, other),
        )


def _begin_streams(database: sqlite3.Connection, kind: int, life: str, state: str, epoch: int) -> None:
    """Enter the state of everybody who has none and does not lack budget; the epoch counts the stream."""
    told = {"kind": kind, "life": life, "state": state, "epoch": epoch}
    these = "FROM asked WHERE kind = :kind AND user NOT IN (SELECT user FROM lacking)"
    database.execute(f"INSERT OR IGNORE INTO streams SELECT user, :life, :state {these}", told)
    counted = f"SELECT user, :epoch, :life, CASE WHEN carried THEN cost ELSE 0 END {these}"
    database.execute(f"INSERT OR IGNORE INTO carried {counted}", told)


def _users_kept(database: sqlite3.Connection, kind: int, epoch: int) -> list[int]:
    """Which of the users asked about for a kind may be released: those who have an answer, or can pay."""
    sql = """SELECT place FROM asked WHERE kind = :kind AND (
        user NOT IN (SELECT user FROM lacking)
        OR EXISTS (SELECT 1 FROM answers WHERE answers.user = asked.user AND answers.epoch = :epoch
                   AND answers.kind = asked.kind AND COALESCE(answers.position, 0) >= 0)
    ) ORDER BY place"""
    return [row[0] for row in database.execute(sql, {"kind": kind, "epoch": epoch})]


def _pay(database: sqlite3.Connection, epoch: int) -> None:
    """Charge what is new for everybody who does not lack budget, and open an answer for each."""
    paying = f"SELECT * FROM ({_NEW}) WHERE user NOT IN (SELECT user FROM lacking)"
    database.execute(
        f"INSERT INTO spent SELECT user, :epoch, SUM(cost) FROM ({paying}) WHERE NOT carried GROUP BY user "
        f"ON CONFLICT DO UPDATE SET micro = micro + excluded.micro",
        {"epoch": epoch},
    )
    database.execute(
        f"INSERT INTO answers SELECT user, :epoch, kind, NULL FROM ({paying}) WHERE true "
        f"ON CONFLICT DO UPDATE SET position = NULL",
        {"epoch": epoch},
    )


def _positions(database: sqlite3.Connection, users: int, epoch: int) -> list[int | None]:
    """The answer of every user asked about; None where it is paid and not drawn yet, NOBODY if not paid."""
    sql = """SELECT asked.place, MAX(answers.position, -2 - answers.position), answers.user IS NULL FROM asked
        LEFT JOIN answers ON answers.user = asked.user AND answers.epoch = ? AND answers.kind = asked.kind"""
    positions: list[int | None] = [NOBODY] * users
    for i, position, unpaid in database.execute(sql, (epoch,)):
        positions[i] = NOBODY if unpaid else position
    return positions


def _enter_answers(
    database: sqlite3.Connection, drawn: Sequence[tuple[bytes, int]], kind: int, epoch: int
) -> None:
    """Enter what was drawn; where another process was faster on the same charge, its answer stays."""
    database.execute("DELETE FROM drawn")
    database.executemany("INSERT INTO drawn VALUES (?, ?)", sorted(drawn))
    database.execute(
        "UPDATE answers SET position = drawn.position FROM drawn WHERE answers.user = drawn.user "
        "AND answers.epoch = ? AND answers.kind = ? AND answers.position IS NULL",
        (epoch, kind),
    )


def _add_grant(database: sqlite3.Connection, user: bytes, epoch: int, micro: int) -> None:
    """Allow a user more in an epoch, and set the answers there aside; what is not drawn yet stays paid."""
    database.execute(
        "INSERT INTO granted VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET micro = micro + excluded.micro",
        (user, epoch, micro),
    )
    sql = "UPDATE answers SET position = -2 - position WHERE user = ? AND epoch = ? AND position >= 0"
    database.execute(sql, (user, epoch))
