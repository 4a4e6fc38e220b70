"""What a release costs, what is asked of a ledger, and what it gives back: plain values, checked first.

Costs are whole micro-ε, rounded up; budgets are rounded down. Names of users and epochs have one form
(Unicode NFC) and nothing in them that cannot be seen, so that one person has one budget however the name was
typed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import _naming
from .._validate import IntArray
from ..errors import ParameterError
from ..prior import Category
from ..users import UsersLike
from .mechanism import Mechanism

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
    """Releases with one mechanism for the users of one group, checked: nothing in it can fail later.

    Make one with `request`.
    """

    mechanism: Mechanism
    users: tuple[str, ...]
    rows: Any
    group: str

    @property
    def kind(self) -> tuple[str, str]:
        """What an answer is remembered under, besides user and epoch."""
        return self.mechanism.digest, self.group

    def __repr__(self) -> str:
        return f"<Request of {len(self.users)} releases>"


def request(mechanism: Mechanism, users: Sequence[Category], p: UsersLike, *, group: str = "") -> Request:
    """Check one row of p per user, whose names are brought to one form, before anybody is charged."""
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism must be a Mechanism, made by certify or load")
    if not _naming.is_text(group):
        raise ParameterError("group must be text")
    if len(mechanism.categories) ** mechanism.samples >= 1 << 63:
        raise ParameterError(
            f"a ledger remembers a release as one number below 2^63: {mechanism.samples} samples of "
            f"{len(mechanism.categories)} categories do not fit; take fewer samples or merge categories"
        )
    rows = mechanism.prepare(p)
    names = one_form(users)
    if len(names) != rows.shape[0]:
        raise ParameterError(f"there must be one row per user: {len(names)} users, {rows.shape[0]} rows")
    return Request(mechanism, names, rows, group)


@dataclass(frozen=True, repr=False)
class Receipt:
    """What charging came to: how many releases were paid for now, and how many had been paid before."""

    epoch: str
    charged: int
    repeated: int
    left_out: int  # releases left out because their user has too little left
    kept: tuple[IntArray, ...]  # for each request, which of its users may be released

    def __repr__(self) -> str:
        return f"<Receipt: {self.charged} charged, {self.repeated} repeated, {self.left_out} left out>"


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
        raise ParameterError(
            "users must be distinct within one request (letters are compared in Unicode's NFC)"
        )
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
