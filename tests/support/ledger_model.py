"""A model of the ledger: explicit states, the steps that each state allows, and a search of all schedules.

One user asks for several kinds of release (a mechanism and a group), each of which costs one unit. A process
opens the ledger and asks; a request runs through the phases of `RIGHT`, and each phase is one atomic step: a
transaction of the store, the writing of the witness, or something inside the process. Between any two steps
another process may go on, a process may be killed, the operator may grant one unit more, and somebody may keep
a copy of the database and later put it back, while the witness stays: as a new file in place of the old one
(restore), or written over the bytes of the file that processes have open (overwrite).

A drawn answer is a number that was never drawn before, so that a second draw cannot look like the first by
chance. Numbers of answers and words of commits that nothing refers to any more are used again (`canonical`):
so the states are finitely many, and a search without a bound on the depth ends.

A `Rules` other than `Rules()` is a ledger with a planted fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

T = TypeVar("T")

UNPAID, PENDING, GONE = -1, -2, -3
"""Instead of the number of an answer: not paid; paid and not drawn yet; looked for and not found."""

OFF, IDLE = "off", "idle"
RIGHT = ("charge", "look", "testify", "draw", "enter", "testify again", "show")
"""The phases of a request, in the order of `Ledger.release`."""

BUDGET_REFUSED, LEDGER_REFUSED, SHOWN, NOTHING = "no budget", "no ledger", "shown", "nothing"


class Answer(NamedTuple):
    """What the ledger has of one kind; an answer that a grant has set aside keeps its number."""

    number: int = UNPAID
    aside: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the next request for it is charged."""
        return self.number == UNPAID or self.aside


class Database(NamedTuple):
    """What is in the file. The last three are no part of the real one: the invariants look at them."""

    spent: int
    granted: int
    answers: tuple[Answer, ...]
    commits: int
    word: int
    charges: tuple[int, ...]  # how often each kind was charged
    charged_at: tuple[int, ...]  # the commit that charged each kind last
    entered: frozenset[tuple[int, int]]  # all answers that were ever entered, with their kinds


class Process(NamedTuple):
    """A process: the phase that its next step runs, and what it keeps in memory."""

    phase: str = OFF
    kind: int = 0
    seen: int = GONE  # the answer that it is going to show
    drawn: int = GONE
    due: int = 0  # the commit of the charge that it draws on; the invariants look at it
    replaced: bool = False  # the file at the path is no longer the one that it has open
    balance: int = 0  # what was spent when the ledger was opened; only for a lost update


class State(NamedTuple):
    """Everything: the two files, the copy of one of them, the processes, and what users have seen."""

    database: Database
    witness: tuple[int, int]  # commits and word
    backup: Database | None
    processes: tuple[Process, ...]
    shown: frozenset[tuple[int, int]]  # kind and answer
    grants: int
    rollbacks: int
    drawn_too_early: bool = False  # before a rollback, something was drawn whose charge was not witnessed


class Step(NamedTuple):
    """A step, and the process that makes it; -1 is somebody who has access to the file."""

    name: str
    process: int = -1
    kind: int = 0

    def __str__(self) -> str:
        kind = f" {self.kind}" if self.name == "ask" else ""
        return self.name + kind + (f" by {self.process}" if self.process >= 0 else "")


class Outcome(NamedTuple):
    """What the user of a process sees of a step."""

    what: str = NOTHING
    number: int = GONE


@dataclass(frozen=True)
class Size:
    """How large a model is."""

    kinds: int = 2
    budget: int = 1
    processes: int = 2
    grants: int = 0
    rollbacks: int = 1
    in_place: bool = False


@dataclass(frozen=True)
class Rules:
    """How the ledger goes about a request; the default is what it does."""

    order: tuple[str, ...] = RIGHT
    pays_late: bool = False  # an answer is entered that nobody has paid
    witness_written: bool = True
    witness_asked: bool = True
    draws_again: bool = False
    confirms: bool = True  # the last writing of the witness looks whether the answer is still there
    balance_kept: bool = False  # what was spent is read when the ledger is opened, and written back later


RULES = Rules()

FAULTS: Mapping[str, Rules] = {
    "draw before charge": Rules(
        order=("draw", "charge", "look", "testify", "enter", "testify again", "show")
    ),
    "shown before it is committed": Rules(
        order=("charge", "look", "testify", "draw", "show", "enter", "testify again")
    ),
    "charge after the answer": Rules(
        order=("look", "testify", "draw", "enter", "testify again", "show", "charge"), pays_late=True
    ),
    "the witness is not written": Rules(witness_written=False),
    "the witness is not asked": Rules(witness_asked=False),
    "no witness before the draw": Rules(order=tuple(p for p in RIGHT if p != "testify")),
    "no witness before the answer is shown": Rules(order=tuple(p for p in RIGHT if p != "testify again")),
    "drawn again on a repeated request": Rules(draws_again=True),
    "lost update": Rules(balance_kept=True),
}


def initial(size: Size) -> State:
    """An empty ledger, and no process that has opened it."""
    none = (0,) * size.kinds
    database = Database(0, 0, (Answer(),) * size.kinds, 0, 0, none, none, frozenset())
    return State(database, (0, 0), None, (Process(),) * size.processes, frozenset(), 0, 0)


def trusted(state: State) -> bool:
    """Whether the database is neither behind its witness nor has gone another way."""
    commits, word = state.witness
    database = state.database
    return database.commits > commits or (database.commits == commits and database.word == word)


# --- steps -----------------------------------------------------------------------------------------------


def steps(state: State, size: Size) -> Iterator[Step]:
    """The steps that are possible."""
    for i, process in enumerate(state.processes):
        if process.phase == OFF:
            yield Step("open", i)
            continue
        if process.phase == IDLE:
            yield from (Step("ask", i, kind) for kind in range(size.kinds))
            if state.grants < size.grants:
                yield Step("grant", i)
        else:
            yield Step("go on", i)
        yield Step("crash", i)
    if size.rollbacks > state.rollbacks:
        if state.backup != state.database:
            yield Step("copy")
        if state.backup not in (None, state.database):
            yield Step("overwrite" if size.in_place else "restore")


def advance(state: State, step: Step, size: Size, rules: Rules) -> tuple[State, Outcome]:
    """The state after a step, and what can be seen of it."""
    if step.name == "copy":
        return state._replace(backup=state.database), Outcome()
    if step.name in ("restore", "overwrite"):
        assert state.backup is not None
        processes = state.processes
        if step.name == "restore":
            processes = tuple(p if p.phase == OFF else p._replace(replaced=True) for p in processes)
        older = state._replace(database=state.backup, processes=processes, rollbacks=state.rollbacks + 1)
        return older, Outcome()
    process = state.processes[step.process]
    if step.name == "crash":
        return _with(state, step.process, Process()), Outcome()
    if step.name == "open":
        if rules.witness_asked and not trusted(state):
            return state, Outcome(LEDGER_REFUSED)
        balance = state.database.spent if rules.balance_kept else 0
        return _with(state, step.process, Process(IDLE, balance=balance)), Outcome()
    if step.name == "grant":
        if process.replaced or (rules.witness_asked and not trusted(state)):
            return state, Outcome(LEDGER_REFUSED)
        database = state.database
        aside = tuple(a._replace(aside=a.number >= 0) for a in database.answers)
        more = database._replace(granted=database.granted + 1, answers=aside)
        return state._replace(database=more, grants=state.grants + 1), Outcome()
    if step.name == "ask":
        process = process._replace(phase=rules.order[0], kind=step.kind)
    return _run(state, step.process, process, size, rules)


def _with(state: State, i: int, process: Process) -> State:
    """The state with another process number i."""
    return state._replace(processes=(*state.processes[:i], process, *state.processes[i + 1 :]))


def _run(state: State, i: int, process: Process, size: Size, rules: Rules) -> tuple[State, Outcome]:
    """Run the phase of a process: a refusal ends the request, else the next phase is to come."""
    phase = process.phase
    asks = phase in ("charge", "testify", "enter", "testify again")
    if asks and (process.replaced or (rules.witness_asked and not trusted(state))):
        return _ended(state, i, process, Outcome(LEDGER_REFUSED))
    outcome = Outcome()
    if phase == "charge":
        charged = _charged(state, process, size, rules)
        if charged is None:
            return _ended(state, i, process, Outcome(BUDGET_REFUSED))
        state = state._replace(database=charged)
    elif phase == "look":
        number = UNPAID if process.replaced else state.database.answers[process.kind].number
        process = process._replace(seen=_looked(number, rules), due=state.database.charged_at[process.kind])
    elif phase == "draw":
        process = process._replace(drawn=_unused(state), seen=PENDING)
        early = state.rollbacks == 0 and not 0 < process.due <= state.witness[0]
        state = state._replace(drawn_too_early=state.drawn_too_early or early)
    elif phase == "enter":
        database = _entered(state, process, rules)
        now = database.answers[process.kind].number
        process = process._replace(seen=GONE if now == UNPAID else now, drawn=GONE, due=0)
        state = state._replace(database=database)
    elif phase == "show":
        number = process.drawn if process.seen == PENDING else process.seen
        state = state._replace(shown=state.shown | {(process.kind, number)})
        outcome = Outcome(SHOWN, number)
    else:  # both that testify
        if rules.witness_written and state.witness[0] != state.database.commits:
            state = state._replace(witness=(state.database.commits, state.database.word))
        lost = process.seen == GONE or (rules.confirms and _is_lost(state.database, process))
        if phase == "testify again" and lost:
            return _ended(state, i, process, Outcome(LEDGER_REFUSED))
    following = _following(process, rules)
    if following is None:
        return _ended(state, i, process, outcome)
    return _with(state, i, process._replace(phase=following)), outcome


def _ended(state: State, i: int, process: Process, outcome: Outcome) -> tuple[State, Outcome]:
    """The state after a request: the ledger stays open."""
    return _with(state, i, Process(IDLE, replaced=process.replaced, balance=process.balance)), outcome


def _following(process: Process, rules: Rules) -> str | None:
    """The next phase of a request; whoever has found an answer draws none."""
    at = rules.order.index(process.phase)
    for phase in rules.order[at + 1 :]:
        found = process.phase == "look" and process.seen != PENDING
        if not found or phase in ("testify again", "show", "charge"):
            return phase
    return None


def _charged(state: State, process: Process, size: Size, rules: Rules) -> Database | None:
    """The database after the charge, as it was if there is nothing to charge, None if budget is lacking."""
    database, word = state.database, _unused_word(state)
    kind, answer = process.kind, database.answers[process.kind]
    owed = rules.pays_late and database.charges[kind] == 0
    if not answer.is_new and not owed:
        return database
    spent = process.balance if rules.balance_kept else database.spent
    if spent + 1 > size.budget + database.granted:
        return None
    commits = database.commits + 1
    return database._replace(
        spent=spent + 1,
        answers=database.answers if owed else _put(database.answers, kind, Answer(PENDING)),
        commits=commits,
        word=word,
        charges=_put(database.charges, kind, database.charges[kind] + 1),
        charged_at=_put(database.charged_at, kind, commits),
    )


def _looked(number: int, rules: Rules) -> int:
    """What a request makes of what it finds."""
    if rules.draws_again or (rules.pays_late and number == UNPAID):
        return PENDING
    return GONE if number == UNPAID else number


def _entered(state: State, process: Process, rules: Rules) -> Database:
    """The database after an answer was entered; where another process was faster, its answer stays."""
    database, word = state.database, _unused_word(state)
    kind, number = process.kind, database.answers[process.kind].number
    answers, entered = database.answers, database.entered
    if number == PENDING or rules.draws_again or (rules.pays_late and number == UNPAID):
        answers = _put(answers, kind, Answer(process.drawn))
        entered = entered | {(kind, process.drawn)}
    return database._replace(answers=answers, entered=entered, commits=database.commits + 1, word=word)


def _is_lost(database: Database, process: Process) -> bool:
    """Whether the answer that a process is going to show is no longer one that was entered."""
    return (process.kind, process.seen) not in database.entered


def _put(values: tuple[T, ...], i: int, value: T) -> tuple[T, ...]:
    return (*values[:i], value, *values[i + 1 :])


# --- numbers and words that are used again -----------------------------------------------------------------


def _databases(state: State) -> tuple[Database, ...]:
    return (state.database,) if state.backup is None else (state.database, state.backup)


def _numbers(state: State) -> list[int]:
    """The answers that something refers to, each once, in an order that does not depend on their numbers."""
    found = [answer.number for one in _databases(state) for answer in one.answers]
    found += [number for process in state.processes for number in (process.seen, process.drawn)]
    found += [number for _, number in sorted(state.shown)]
    found += [number for one in _databases(state) for _, number in sorted(one.entered)]
    return [number for number in dict.fromkeys(found) if number >= 0]


def _unused(state: State) -> int:
    """An answer that nothing refers to."""
    return max(_numbers(state), default=-1) + 1


def _unused_word(state: State) -> int:
    """A word that no commit has which something refers to."""
    return max(state.witness[1], *(one.word for one in _databases(state))) + 1


def canonical(state: State) -> State:
    """The same state with other numbers and words: 0, 1, … in the order in which they are found."""
    new = {number: i for i, number in enumerate(_numbers(state))}
    words = dict.fromkeys([state.database.word, state.witness[1], *(d.word for d in _databases(state))])
    names = {word: i for i, word in enumerate(words)}
    if all(a == b for a, b in new.items()) and all(a == b for a, b in names.items()):
        return state

    def pairs(given: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        return frozenset((kind, new[number]) for kind, number in given)

    def database(one: Database) -> Database:
        answers = tuple(
            answer._replace(number=new.get(answer.number, answer.number)) for answer in one.answers
        )
        return one._replace(answers=answers, entered=pairs(one.entered), word=names[one.word])

    return state._replace(
        database=database(state.database),
        backup=None if state.backup is None else database(state.backup),
        witness=(state.witness[0], names[state.witness[1]]),
        processes=tuple(
            process._replace(
                seen=new.get(process.seen, process.seen), drawn=new.get(process.drawn, process.drawn)
            )
            for process in state.processes
        ),
        shown=pairs(state.shown),
    )


# --- invariants ----------------------------------------------------------------------------------------------


def broken(state: State, size: Size) -> str | None:
    """The first promise that a state breaks."""
    database = state.database
    allowed = size.budget + state.grants
    if database.spent > size.budget + database.granted or len(state.shown) > allowed:
        return "more was charged or shown than the budget allows"
    if sum(database.charges) != database.spent:
        return "a charge was lost"
    if state.drawn_too_early:
        return "something was drawn before its charge was committed and witnessed"
    for kind in range(size.kinds):
        answers = [number for other, number in state.shown if other == kind]
        if len(answers) > 1 + state.grants:
            return "a repeated request showed another answer"
        if trusted(state) and len(answers) > database.charges[kind]:
            return "more answers were shown than paid for"
    if trusted(state) and not state.shown <= database.entered:
        return "an answer was shown that is not in a ledger which would release"
    return None


def broken_by(before: State, after: State, outcome: Outcome) -> str | None:
    """The promise that a step breaks: a ledger behind its witness changes nothing and draws nothing new."""
    if trusted(before):
        return None
    if before.witness != after.witness or before.database.commits < after.database.commits:
        return "a ledger behind its witness went on"
    fresh = after.shown - before.shown
    if outcome.what == SHOWN and fresh and not _was_promised(before, fresh):
        return "a ledger behind its witness released something"
    return None


def _was_promised(state: State, fresh: frozenset[tuple[int, int]]) -> bool:
    """Whether a process only had to show these: they were entered and witnessed before the rollback."""
    return any(p.phase == "show" and (p.kind, p.seen) in fresh for p in state.processes)


# --- the search ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A promise that is broken, and the shortest schedule that breaks it."""

    promise: str
    schedule: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Found:
    """What a search has seen: every state with the step that led there first, and the first fault."""

    size: Size
    origins: dict[State, tuple[State, Step] | None]
    transitions: int
    depth: int  # of the deepest state
    complete: bool  # no state was left out
    fault: Fault | None

    def __str__(self) -> str:
        more = "all schedules" if self.complete else f"all schedules of up to {self.depth} steps"
        return f"{len(self.origins):,} states, {self.transitions:,} transitions, depth {self.depth}: {more}"

    def schedule(self, state: State) -> tuple[Step, ...]:
        """A shortest schedule that leads to a state."""
        return _schedule(self.origins, state)


def _schedule(origins: Mapping[State, tuple[State, Step] | None], state: State) -> tuple[Step, ...]:
    taken: list[Step] = []
    while (origin := origins[state]) is not None:
        state, step = origin
        taken.append(step)
    return tuple(reversed(taken))


def search(size: Size, rules: Rules = RULES, depth: int | None = None, *, judged: bool = True) -> Found:
    """Breadth first through all schedules of up to `depth` steps; where it is judged, to the first fault."""
    first = canonical(initial(size))
    origins: dict[State, tuple[State, Step] | None] = {first: None}
    layer, deep, transitions = [first], 0, 0
    while layer and (depth is None or deep < depth):
        following = []
        for state in layer:
            for step in steps(state, size):
                raw, outcome = advance(state, step, size, rules)
                after = canonical(raw)
                transitions += 1
                promise = broken(after, size) or broken_by(state, raw, outcome)
                if judged and promise is not None:
                    fault = Fault(promise, (*_schedule(origins, state), step))
                    return Found(size, origins, transitions, deep + 1, False, fault)
                if after not in origins:
                    origins[after] = state, step
                    following.append(after)
        layer = following
        deep += bool(layer)
    return Found(size, origins, transitions, deep, not layer, None)


def tours(found: Found, rules: Rules = RULES, longest: int = 60) -> Iterator[tuple[Step, ...]]:
    """Schedules from the beginning that together take every transition between the states that were found."""
    size, origins = found.size, found.origins
    left = {state: list(steps(state, size)) for state in origins}

    def take(state: State, step: Step) -> State:
        if step in left[state]:
            left[state].remove(step)
        return canonical(advance(state, step, size, rules)[0])

    for state in reversed(origins):  # the deepest first: the way there takes others
        while left[state]:
            walk, here = list(found.schedule(state)), next(iter(origins))
            for step in walk:
                here = take(here, step)
            while left.get(here) and len(walk) < longest:
                walk.append(left[here][0])
                here = take(here, walk[-1])
            yield tuple(walk)
