"""A budget of ε per user and epoch that is never under-charged, and answers that are never drawn twice.

Every release is charged ⌈ε·10⁶⌉ micro-ε before anything is drawn. What was released is remembered under
(mechanism, group, user, epoch), so asking again returns the same answer and costs nothing.

The order is fixed: everything is checked, and what is refused has cost nobody anything; then the charge is
committed to disk, the witness written, the category drawn, the answer committed, the answer returned. If
power fails in between, ε was charged and nothing came out; the next request draws on that charge.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .. import _validate
from .._atomic import real_path
from ..errors import BudgetError, LedgerError, ParameterError
from ..prior import Category
from ..users import UsersLike
from . import ledger_entries
from .charges import (
    MICRO,
    Amount,
    EpochTotal,
    Receipt,
    Request,
    budget_of,
    charge_of,
    epoch_name,
    epsilon_text,
    request,
    user_name,
)
from .ledger_entries import NOBODY
from .ledger_store import Store, create_store
from .mechanism import Mechanism

__all__ = ["Ledger", "budget_of", "charge_of"]


class Ledger:
    """A budget of ε per user and epoch, in one SQLite file and its witness.

    Guarantees
        Released ⊆ charged, through crashes, power loss and any number of processes; what is refused has
        charged nobody. Users are stored as keyed hashes, with the key in the same file: no list of names, but
        whoever has the file can test a guess. What it cannot notice: database *and* witness rolled back
        together.

    Make one, once, with `Ledger.create(path, budget=4)`; use it with `Ledger.open(path)`.
    """

    def __init__(self, path: str | Path) -> None:
        self._store = Store(real_path(path))
        try:
            self._key = bytes.fromhex(self._store.fact("key"))
            self._budget = self._store.number("budget")
            self._lifetime = self._store.number("lifetime") if self._store.fact("lifetime") else None
            readable = len(self._key) == 32
        except (sqlite3.Error, ValueError):
            readable = False
        if not readable:
            self._store.close()
            raise LedgerError(f"{self._store.path} is not a readable ledger; nothing is released")

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
    def path(self) -> Path:
        """Where the store is."""
        return self._store.path

    @property
    def witness(self) -> Path:
        """Where the witness is."""
        return self._store.witness

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
        with self._store.reading() as database:
            found = ledger_entries.epoch_totals(database)
        return tuple(EpochTotal(name, users, Fraction(micro, MICRO)) for name, users, micro in found)

    def knows(self, epoch: str) -> bool:
        """Whether anything was ever charged or granted in an epoch."""
        with self._store.reading() as database:
            return ledger_entries.epoch_number(database, epoch_name(epoch)) != NOBODY

    def users(self) -> int:
        """How many users were ever charged."""
        with self._store.reading() as database:
            return ledger_entries.users_in_all(database)

    def left(self, user: Category, epoch: str | None = None) -> Fraction:
        """How much ε a user may still spend in an epoch, within the lifetime if there is one."""
        key, name = self._hash(user_name(user)), self.epoch_meant(epoch)
        with self._store.reading() as database:
            money = self._money(ledger_entries.epoch_number(database, name))
            return Fraction(ledger_entries.left(database, key, money), MICRO)

    def total(self, user: Category) -> Fraction:
        """How much ε a user has spent in all epochs together."""
        with self._store.reading() as database:
            return Fraction(ledger_entries.spent_in_all(database, self._hash(user_name(user))), MICRO)

    def grant(self, user: Category, more: Amount, epoch: str | None = None) -> None:
        """Allow one user more ε in one epoch, and set their answers there aside: the next release is new.

        A release that was charged before the grant still gets the answers it was charged for.

        Raises
            BudgetError: the lifetime leaves nothing, so that the grant would buy nothing. Nothing changes.
        """
        key, micro, name = self._hash(user_name(user)), budget_of(more), self.epoch_meant(epoch)
        with self._store.exclusively() as database:
            number = ledger_entries.new_epoch(database, name)
            ledger_entries.add_grant(database, key, number, micro)
            if not ledger_entries.left(database, key, self._money(number)):
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
        counts = mechanism.prepare_records(records)
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
        if len({one.kind for one in requests}) < len(requests):
            raise ParameterError("each mechanism and group must be asked for once")
        name = self.epoch_meant(epoch)
        keys = [[self._hash(user) for user in one.users] for one in requests]
        costs = [charge_of(one.mechanism.epsilon) for one in requests]
        with self._store.exclusively() as database:
            number = ledger_entries.epoch_number(database, name)
            found = [ledger_entries.kind_number(database, *one.kind) for one in requests]
            kinds = [NOBODY - 1 - i if kind == NOBODY else kind for i, kind in enumerate(found)]
            ledger_entries.clear(database)
            for users, kind, cost in zip(keys, kinds, costs, strict=True):
                ledger_entries.ask(database, users, kind, cost)
            lacking = ledger_entries.find_lacking(database, self._money(number))
            if lacking and exhausted == "error":
                self._refuse(lacking, keys, costs, number)
            charged, left_out = ledger_entries.count_new(database, number)
            kept = [np.array(ledger_entries.places_kept(database, kind, number), np.intp) for kind in kinds]
            if charged:  # up to here nothing was written
                for kind, one in zip(kinds, requests, strict=True):
                    entered = ledger_entries.new_kind(database, *one.kind)
                    database.execute("UPDATE asked SET kind = ? WHERE kind = ?", (entered, kind))
                ledger_entries.pay(database, ledger_entries.new_epoch(database, name))
                self._store.count_commit()
        return Receipt(name, charged, sum(map(len, keys)) - charged - left_out, left_out, tuple(kept))

    def answers(self, asked: Request, epoch: str, which: _validate.IntArray) -> list[Any]:
        """The answers of these users of a request that was charged; what was not drawn yet is drawn now."""
        users = [self._hash(asked.users[i]) for i in which.tolist()]
        with self._store.reading() as database:
            ledger_entries.ask_about(database, users, *asked.kind)
            number = ledger_entries.epoch_number(database, epoch)
            found = ledger_entries.positions(database, len(users), number)
        if missing := [i for i, position in enumerate(found) if position is None]:
            self._store.testify()  # also for a charge that somebody else paid and could not use
            drawn = asked.mechanism.draw(asked.rows[which[missing]])
            rows = [(users[i], asked.mechanism.number_of(one)) for i, one in zip(missing, drawn, strict=True)]
            with self._store.exclusively() as database:
                kind = ledger_entries.kind_number(database, *asked.kind)
                ledger_entries.enter_answers(database, rows, kind, number)
                now = ledger_entries.positions(database, len(users), number)  # a grant may have come between
                found = [now[i] if position is None else position for i, position in enumerate(found)]
                self._store.count_commit()
        self._store.testify()  # a store from before these answers must not be able to draw again
        if any(position not in asked.mechanism.numbers for position in found):
            raise LedgerError(f"an answer vanished from {self.path} or was changed; nothing is released")
        return [asked.mechanism.answer_of(position) for position in found if position is not None]

    def epoch_meant(self, epoch: str | None) -> str:
        """The epoch that is meant. Left out, it is the one without a name, unless the ledger knows others."""
        if epoch is not None:
            return epoch_name(epoch)
        others = [one.epoch for one in self.epochs() if one.epoch]
        if others:
            shown = ", ".join(map(repr, others[-6:]))
            raise ParameterError(
                f"epoch must be said (epoch=, --epoch): the ledger knows {len(others)}, such as {shown}"
            )
        return ""

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def _money(self, epoch: int) -> dict[str, int]:
        return ledger_entries.bounds(self._budget, self._lifetime, epoch)

    def _hash(self, name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=self._key, digest_size=16).digest()

    def _refuse(self, lacking: int, keys: list[list[bytes]], costs: list[int], epoch: int) -> None:
        """Say how many users lack budget; for a single user, how much there is."""
        people = {key for users in keys for key in users}
        if len(people) == 1:
            need = ledger_entries.cost_of_new(self._store.database, epoch)
            left = ledger_entries.left(self._store.database, next(iter(people)), self._money(epoch))
            raise BudgetError(
                f"this release needs ε = {epsilon_text(need)}, ε = {epsilon_text(left)} is left; "
                f"nobody was charged"
            )
        much = f"the ε = {epsilon_text(costs[0])} that a release needs" if len(costs) == 1 else "they need"
        raise BudgetError(f"{lacking} of {len(people)} users have less than {much}; nobody was charged")
