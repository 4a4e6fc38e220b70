"""Charges, repeats, grants, interruptions and reopenings in any order, against a model in fractions."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import sottovoce as sv
from sottovoce.release import ledger
from sottovoce.release.ledger import Ledger

PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
MECHANISMS = [
    sv.certify(sv.kernel_clip(PRIOR, 0.5)),
    sv.certify(sv.minimax_kernel(PRIOR, 1.0)),
    sv.certify(sv.blend(PRIOR, 1 / 3)),  # its charge is rounded up
]
USERS = ("ann", "bob", "cy")
EPOCHS = ("", "may", "june", "july")

Kind = tuple[int, str]  # which mechanism, and the group

amounts = st.sampled_from(["0.25", "1/3", "1", "2.5"])
users = st.sampled_from(USERS)
kinds = st.tuples(st.sampled_from(range(len(MECHANISMS))), st.sampled_from(["", "old"]))
asked = st.dictionaries(kinds, st.lists(users, min_size=1, unique=True), min_size=1, max_size=3)


def cost(kind: Kind) -> Fraction:
    """ε in millionths, rounded up."""
    return Fraction(math.ceil(MECHANISMS[kind[0]].epsilon * 10**6), 10**6)


def allowance(text: str) -> Fraction:
    """An amount in millionths, rounded down."""
    return Fraction(math.floor(Fraction(text) * 10**6), 10**6)


class LedgerMachine(RuleBasedStateMachine):
    """The model knows what was spent, granted and answered; the ledger must agree after every step."""

    @initialize(budget=st.sampled_from(["1", "4/3", "2.5"]), more=st.none() | amounts)
    def create(self, budget: str, more: str | None) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.budget = allowance(budget)
        self.lifetime = None if more is None else self.budget + allowance(more)
        self.book = Ledger.create(self.folder / "b.db", budget=budget, lifetime=self.lifetime)
        self.spent: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
        self.granted: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
        self.answers: dict[tuple[str, str, Kind], object] = {}  # None: charged, and not drawn yet
        self.seen: set[str] = set()

    def teardown(self) -> None:
        if hasattr(self, "book"):
            self.book.close()
            shutil.rmtree(self.folder)

    # --- the model -------------------------------------------------------------------------------

    def total(self, user: str) -> Fraction:
        return sum((self.spent[user, epoch] for epoch in EPOCHS), Fraction(0))

    def left(self, user: str, epoch: str) -> Fraction:
        left = self.budget + self.granted[user, epoch] - self.spent[user, epoch]
        if self.lifetime is not None:
            left = min(left, self.lifetime - self.total(user))
        return max(left, Fraction(0))

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Byte for byte the same files before and after."""
        before = self.files()
        yield
        assert self.files() == before

    @contextmanager
    def draws(self, *, fail: bool = False) -> Iterator[list[int]]:
        """The number of users of each draw; a draw fails as if the process were interrupted."""
        seen: list[int] = []
        real = sv.Mechanism.draw

        def drawing(mechanism: sv.Mechanism, rows: Any) -> Any:
            if fail:
                raise KeyboardInterrupt
            seen.append(rows.shape[0])
            return real(mechanism, rows)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sv.Mechanism, "draw", drawing)
            yield seen

    # --- what may happen -------------------------------------------------------------------------

    @rule(
        wanted=asked,
        epoch=st.sampled_from(EPOCHS),
        exhausted=st.sampled_from(["error", "skip"]),
        interrupted=st.booleans(),
    )
    def ask(self, wanted: dict[Kind, list[str]], epoch: str, exhausted: str, interrupted: bool) -> None:
        requests = [
            ledger.request(MECHANISMS[kind[0]], names, np.eye(3, dtype=int)[: len(names)], group=kind[1])
            for kind, names in wanted.items()
        ]
        need: defaultdict[str, Fraction] = defaultdict(Fraction)
        new = [
            (u, kind) for kind, names in wanted.items() for u in names if (u, epoch, kind) not in self.answers
        ]
        for user, kind in new:
            need[user] += cost(kind)
        lacking = {user for user in need if need[user] > self.left(user, epoch)}
        paying = [(user, kind) for user, kind in new if user not in lacking]
        if lacking and exhausted == "error":
            with self.unchanged(), pytest.raises(sv.errors.BudgetError, match="nobody was charged"):
                self.book.charge(requests, epoch=epoch, exhausted=exhausted)
            return
        before = self.files()
        receipt = self.book.charge(requests, epoch=epoch, exhausted=exhausted)
        assert (self.files() == before) == (not paying)
        kept = [
            [i for i, u in enumerate(names) if u not in lacking or (u, epoch, kind) in self.answers]
            for kind, names in wanted.items()
        ]
        for user, kind in paying:
            self.spent[user, epoch] += cost(kind)
            self.answers[user, epoch, kind] = None
            self.seen.add(epoch)
        assert receipt.epoch == epoch
        assert receipt.charged == len(paying)
        assert receipt.left_out == len(new) - len(paying)
        assert receipt.repeated == sum(map(len, wanted.values())) - len(new)
        assert [one.tolist() for one in receipt.kept] == kept
        for one, (kind, names), which in zip(requests, wanted.items(), receipt.kept, strict=True):
            self.take(one, epoch, kind, [names[i] for i in which], which, interrupted)

    def take(
        self, one: ledger.Request, epoch: str, kind: Kind, names: list[str], which: Any, interrupted: bool
    ) -> None:
        """The answers that were charged: those of before as they were, the others drawn once."""
        known = [self.answers[user, epoch, kind] for user in names]
        pending = known.count(None)
        if pending and interrupted:
            with self.unchanged_but_witness(), self.draws(fail=True), pytest.raises(KeyboardInterrupt):
                self.book.answers(one, epoch, which)
            self.reopen()
            return
        with self.draws() as seen:
            given = self.book.answers(one, epoch, which)
        assert sum(seen) == pending
        for user, before, answer in zip(names, known, given, strict=True):
            assert answer in PRIOR.categories
            assert before in (None, answer)
            self.answers[user, epoch, kind] = answer

    @contextmanager
    def unchanged_but_witness(self) -> Iterator[None]:
        before = self.files()["b.db"]
        yield
        assert self.files()["b.db"] == before

    @precondition(lambda self: any(self.answers.values()))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        drawn = sorted(key for key, answer in self.answers.items() if answer is not None)
        user, epoch, (number, group) = key = data.draw(st.sampled_from(drawn))
        with self.unchanged(), self.draws() as seen:
            again = self.book.release(MECHANISMS[number], user, records=["b", "c"], epoch=epoch, group=group)
        assert again == self.answers[key]
        assert seen == []

    @rule(user=users, more=amounts, epoch=st.sampled_from(EPOCHS))
    def grant(self, user: str, more: str, epoch: str) -> None:
        self.granted[user, epoch] += allowance(more)
        if not self.left(user, epoch):  # the lifetime leaves nothing: the grant would buy nothing
            self.granted[user, epoch] -= allowance(more)
            with self.unchanged(), pytest.raises(sv.errors.BudgetError, match="nothing was changed"):
                self.book.grant(user, more, epoch)
            return
        self.book.grant(user, more, epoch)
        self.seen.add(epoch)
        self.answers = {  # what is paid and not drawn stays paid
            key: answer for key, answer in self.answers.items() if key[:2] != (user, epoch) or answer is None
        }

    @rule()
    def reopen(self) -> None:
        with self.unchanged():
            self.book.close()
            self.book = Ledger.open(self.folder / "b.db")

    @rule(user=users, records=st.sampled_from(["abc", {"a": 1}, 3]), epoch=st.sampled_from(EPOCHS))
    def bad_records(self, user: str, records: Any, epoch: str) -> None:
        with self.unchanged(), pytest.raises(sv.errors.UserDataError):
            self.book.release(MECHANISMS[0], user, records=records, epoch=epoch)

    @precondition(lambda self: self.seen - {""})
    @rule(user=users)
    def without_an_epoch(self, user: str) -> None:
        with self.unchanged(), pytest.raises(sv.errors.ParameterError, match="name an epoch"):
            self.book.release(MECHANISMS[0], user, records=["a"])

    @rule(budget=amounts)
    def create_again(self, budget: str) -> None:
        with self.unchanged(), pytest.raises(sv.errors.LedgerError, match="never overwritten"):
            Ledger.create(self.folder / "b.db", budget=budget)

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def money_is_as_in_the_model(self) -> None:
        with self.unchanged():
            for user in USERS:
                assert self.book.total(user) == self.total(user)
                for epoch in EPOCHS:
                    assert self.book.left(user, epoch) == self.left(user, epoch)
        assert self.book.budget == self.budget
        assert self.book.lifetime == self.lifetime

    @invariant()
    def nobody_spends_more_than_allowed(self) -> None:
        for user in USERS:
            assert self.lifetime is None or self.book.total(user) <= self.lifetime
            for epoch in EPOCHS:
                assert self.spent[user, epoch] <= self.budget + self.granted[user, epoch]

    @invariant()
    def epochs_are_as_in_the_model(self) -> None:
        found = {one.epoch: (one.users, one.epsilon) for one in self.book.epochs()}
        assert found == {
            epoch: (
                sum(self.spent[user, epoch] > 0 for user in USERS),
                sum((self.spent[user, epoch] for user in USERS), Fraction(0)),
            )
            for epoch in self.seen
        }
        assert self.book.users() == sum(self.total(user) > 0 for user in USERS)
        assert all(self.book.knows(epoch) == (epoch in self.seen) for epoch in EPOCHS)


class TestLedger(LedgerMachine.TestCase):  # type: ignore[misc,valid-type]
    # A failure is told as it was found: to shrink it takes minutes, which the full run spends.
    settings = settings(
        max_examples=20, stateful_step_count=20, deadline=None, phases=[Phase.explicit, Phase.generate]
    )


@pytest.mark.full
class TestLedgerAtLength(LedgerMachine.TestCase):  # type: ignore[misc,valid-type]
    settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
