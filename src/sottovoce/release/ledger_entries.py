"""The entries of a ledger as sets: who has no answer yet, who has too little left, what is paid and answered.

Each function is a question or a change inside a transaction of the store. What is asked stands in the
temporary table `asked`, a row per user and kind of release (a mechanism and a group). The position of an
answer that a grant has set aside is stored as -2 - position: a new charge takes its place, and until then who
has charged before the grant finds it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

NOBODY = -1
"""The number of an epoch or kind that the ledger has not seen."""

_BOUNDLESS = 1 << 62

_NEW = """SELECT asked.user, asked.kind, asked.cost FROM asked
LEFT JOIN answers ON answers.user = asked.user AND answers.epoch = :epoch AND answers.kind = asked.kind
AND COALESCE(answers.position, 0) >= 0 WHERE answers.user IS NULL"""

_LEFT = """MIN(
  :budget + COALESCE((SELECT micro FROM granted WHERE user = {user} AND epoch = :epoch), 0)
          - COALESCE((SELECT micro FROM spent WHERE user = {user} AND epoch = :epoch), 0),
  :lifetime - COALESCE((SELECT SUM(micro) FROM spent WHERE user = {user}), 0))"""


def bounds(budget: int, lifetime: int | None, epoch: int) -> dict[str, int]:
    """What the questions about money need to know."""
    return {"budget": budget, "lifetime": _BOUNDLESS if lifetime is None else lifetime, "epoch": epoch}


def epoch_number(database: sqlite3.Connection, name: str) -> int:
    """The number of an epoch, or NOBODY."""
    row = database.execute("SELECT id FROM epochs WHERE name = ?", (name,)).fetchone()
    return NOBODY if row is None else int(row[0])


def new_epoch(database: sqlite3.Connection, name: str) -> int:
    """The number of an epoch, entered if it is new."""
    database.execute("INSERT OR IGNORE INTO epochs (name) VALUES (?)", (name,))
    return epoch_number(database, name)


def kind_number(database: sqlite3.Connection, mechanism: str, group: str) -> int:
    """The number of a mechanism in a group, or NOBODY."""
    sql = 'SELECT id FROM kinds WHERE mechanism = ? AND "group" = ?'
    row = database.execute(sql, (mechanism, group)).fetchone()
    return NOBODY if row is None else int(row[0])


def new_kind(database: sqlite3.Connection, mechanism: str, group: str) -> int:
    """The number of a mechanism in a group, entered if it is new."""
    database.execute('INSERT OR IGNORE INTO kinds (mechanism, "group") VALUES (?, ?)', (mechanism, group))
    return kind_number(database, mechanism, group)


def ask(database: sqlite3.Connection, users: Sequence[bytes], kind: int, cost: int) -> None:
    """Put users beside what is there to be asked about already."""
    order = sorted(range(len(users)), key=users.__getitem__)  # a table is filled fastest in its own order
    rows = ((users[place], kind, cost, place) for place in order)
    database.executemany("INSERT INTO asked VALUES (?, ?, ?, ?)", rows)


def ask_about(database: sqlite3.Connection, users: Sequence[bytes], mechanism: str, group: str) -> None:
    """Ask about these users and nobody else; nothing is to be paid."""
    clear(database)
    ask(database, users, kind_number(database, mechanism, group), 0)


def clear(database: sqlite3.Connection) -> None:
    """Forget what was asked before."""
    for table in ("asked", "lacking", "drawn"):
        database.execute(f"DELETE FROM {table}")


def left(database: sqlite3.Connection, user: bytes, money: dict[str, int]) -> int:
    """How many micro-ε a user may still spend."""
    found = database.execute(f"SELECT {_LEFT.format(user=':user')}", {**money, "user": user}).fetchone()
    return max(int(found[0]), 0)


def find_lacking(database: sqlite3.Connection, money: dict[str, int]) -> int:
    """Enter the users who cannot pay for all that is new for them; return how many there are."""
    left_of_user = _LEFT.format(user="wants.user")
    database.execute(
        f"INSERT INTO lacking SELECT user FROM (SELECT user, SUM(cost) AS need FROM ({_NEW}) GROUP BY user) "
        f"AS wants WHERE need > {left_of_user}",
        money,
    )
    return int(database.execute("SELECT COUNT(*) FROM lacking").fetchone()[0])


def cost_of_new(database: sqlite3.Connection, epoch: int) -> int:
    """What everything that is new would cost."""
    sql = f"SELECT COALESCE(SUM(cost), 0) FROM ({_NEW})"
    return int(database.execute(sql, {"epoch": epoch}).fetchone()[0])


def count_new(database: sqlite3.Connection, epoch: int) -> tuple[int, int]:
    """How many releases are new and paid for, and how many are new and lack budget."""
    sql = f"SELECT COUNT(*), COUNT(lacking.user) FROM ({_NEW}) AS new LEFT JOIN lacking USING (user)"
    new, lacking = database.execute(sql, {"epoch": epoch}).fetchone()
    return new - lacking, lacking


def places_kept(database: sqlite3.Connection, kind: int, epoch: int) -> list[int]:
    """Which of the users asked about for a kind may be released: those who have an answer, or can pay."""
    sql = """SELECT place FROM asked WHERE kind = :kind AND (
        user NOT IN (SELECT user FROM lacking)
        OR EXISTS (SELECT 1 FROM answers WHERE answers.user = asked.user AND answers.epoch = :epoch
                   AND answers.kind = asked.kind AND COALESCE(answers.position, 0) >= 0)
    ) ORDER BY place"""
    return [row[0] for row in database.execute(sql, {"kind": kind, "epoch": epoch})]


def pay(database: sqlite3.Connection, epoch: int) -> None:
    """Charge what is new for everybody who does not lack budget, and open an answer for each."""
    paying = f"SELECT * FROM ({_NEW}) WHERE user NOT IN (SELECT user FROM lacking)"
    database.execute(
        f"INSERT INTO spent SELECT user, :epoch, SUM(cost) FROM ({paying}) WHERE true GROUP BY user "
        f"ON CONFLICT DO UPDATE SET micro = micro + excluded.micro",
        {"epoch": epoch},
    )
    database.execute(
        f"INSERT INTO answers SELECT user, :epoch, kind, NULL FROM ({paying}) WHERE true "
        f"ON CONFLICT DO UPDATE SET position = NULL",
        {"epoch": epoch},
    )


def positions(database: sqlite3.Connection, users: int, epoch: int) -> list[int | None]:
    """The answer of every user asked about; None where it is paid and not drawn yet, NOBODY if not paid."""
    sql = """SELECT asked.place, MAX(answers.position, -2 - answers.position), answers.user IS NULL FROM asked
        LEFT JOIN answers ON answers.user = asked.user AND answers.epoch = ? AND answers.kind = asked.kind"""
    found: list[int | None] = [NOBODY] * users
    for place, position, unpaid in database.execute(sql, (epoch,)):
        found[place] = NOBODY if unpaid else position
    return found


def enter_answers(
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


def add_grant(database: sqlite3.Connection, user: bytes, epoch: int, micro: int) -> None:
    """Allow a user more in an epoch, and set the answers there aside; what is not drawn yet stays paid."""
    database.execute(
        "INSERT INTO granted VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET micro = micro + excluded.micro",
        (user, epoch, micro),
    )
    sql = "UPDATE answers SET position = -2 - position WHERE user = ? AND epoch = ? AND position >= 0"
    database.execute(sql, (user, epoch))


def epoch_totals(database: sqlite3.Connection) -> list[tuple[str, int, int]]:
    """Name, users and micro-ε of every epoch."""
    sql = """SELECT name, COUNT(user), COALESCE(SUM(micro), 0) FROM epochs LEFT JOIN spent ON epoch = id
        GROUP BY id ORDER BY name"""
    return [(str(name), int(users), int(micro)) for name, users, micro in database.execute(sql)]


def spent_in_all(database: sqlite3.Connection, user: bytes) -> int:
    """What a user has spent in all epochs together."""
    sql = "SELECT COALESCE(SUM(micro), 0) FROM spent WHERE user = ?"
    return int(database.execute(sql, (user,)).fetchone()[0])


def users_in_all(database: sqlite3.Connection) -> int:
    """How many users were ever charged."""
    return int(database.execute("SELECT COUNT(DISTINCT user) FROM spent").fetchone()[0])
