"""Releasing whole tables: `release_table` for frames, and `release_file`, which the command calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from . import checks
from .errors import ParameterError, PriorError, Setting, SottovoceError, TableError, UserDataError
from .groups import Groups
from .prior import FROM_USERS
from .records import Users
from .release.ledger import Ledger, Receipt, Request, request
from .release.mechanism import Mechanism, no_stream
from .tables import files
from .tables.files import DETECTED, Dialect
from .tables.reader import Writer, type_of
from .tables.users import CheckedUsers, ReadingKeywords, ReadingOptions, checked_users

BATCH = 100_000
"""Users that are drawn and remembered as one step."""
FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))
Drawn = tuple[str, Sequence[Any], Sequence[Any]]
"""A group, some of its users, and what they release."""


@dataclass(frozen=True)
class ReportForm:
    """The columns of a table of reports, a row for each user."""

    mechanisms: Mapping[str, Mechanism]
    user: str
    item: str
    by: str | None

    def __post_init__(self) -> None:
        if self.by is not None:
            checks.group_column(self.by, self.user, self.item)
        if len(set(self.names)) < len(self.names):
            raise ParameterError(
                Setting("user"), ", ", Setting("item"), " and ", Setting("by"),
                " must differ, and not be named epsilon or mechanism",
            )  # fmt: skip

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [*self.order, self.item, "epsilon", "mechanism"]

    @property
    def order(self) -> list[str]:
        """The columns whose names alone decide the order of the rows."""
        return [self.user, *([] if self.by is None else [self.by])]

    def part(self, group: str, who: Any, answers: Sequence[Any]) -> dict[str, Any]:
        """The reports of some users; one text stands for all rows that share it."""
        mechanism = self.mechanisms[group]
        terms = (str(mechanism.epsilon), mechanism.digest)
        values = [who, *([] if self.by is None else [group]), answers, *terms]
        return dict(zip(self.names, values, strict=True))

    def summary(self, count: int) -> str:
        """How many releases there are, and what each of them costs."""
        costs = sorted({mechanism.epsilon for mechanism in self.mechanisms.values()})
        epsilon = " or ".join(f"{float(cost):g}" for cost in costs)
        streaming = any(mechanism.streaming for mechanism in self.mechanisms.values())
        each = "for all releases of a stream" if streaming else "each"
        return f"{count:,} releases, one for each user and group, ε = {epsilon} {each}"


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
    provenance: str = "public",
    exact: bool = False,
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
        provenance: "users" releases with a mechanism whose prior was made from its users, for an experiment.
        exact: draw every user alone, as `Mechanism.release_many` does; what a ledger remembers stays.
        options: `unknown` ("prior" by default), `other`, `empty`, `unknown_groups`, `several_groups` of
            `read_users`. With another `unknown` a refusal, or the absence of a row, tells what a user has.

    Returns
        A table of the same kind: user, the group if there are groups, item, epsilon, mechanism.

    >>> import polars
    >>> import sottovoce as sv
    >>> frame = polars.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "b"]})
    >>> mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b"], [0.9, 0.1]), 2.0))
    >>> sv.release_table(frame, mechanism).columns
    ['user', 'item', 'epsilon', 'mechanism']
    """
    known = checked_mechanisms(mechanism, by, provenance)
    check_terms(known, ledger, epoch, exhausted)
    form = ReportForm(known, user, item, by)
    kind = type(frame)
    if (kind.__module__.split(".")[0], kind.__name__) not in FRAMES:
        raise ParameterError(
            f"frame must be a pandas, polars or pyarrow table, got {kind.__name__}; for files there is "
            f"`sottovoce release`, for Spark sottovoce.spark.release"
        )
    options.setdefault("unknown", "prior")
    named: dict[str, Any] = {"user": user, "item": item, "weight": weight, "by": by, "usual": ()}
    with checked_users(frame, known, options=ReadingOptions(**options), held=True, **named) as users:
        check_spellings(users, ledger, "the table")
        groups = next(users.batches)
    drawn = draw_batches(known, [groups], exact=exact)
    if ledger is not None:
        requests = requests_of(form, groups, exact=exact)
        receipt = ledger.charge(list(requests.values()), epoch=epoch, exhausted=exhausted)
        drawn = answers_of(ledger, requests, receipt, groups)
    columns: dict[str, list[Any]] = {name: [] for name in form.names}
    for name, who, answers in drawn:
        for column, values in form.part(name, who, answers).items():
            columns[column] += [values] * len(answers) if isinstance(values, str) else list(values)
    return getattr(kind, "from_pydict", kind)(columns)


def checked_mechanisms(
    given: Mechanism | Mapping[str, Mechanism], by: str | None, provenance: str
) -> Groups[Mechanism]:
    """The mechanisms by group; refused if a prior was made from its users, unless that is meant."""
    known = Groups.of(given, by)
    if not all(isinstance(mechanism, Mechanism) for mechanism in known.values()):
        raise ParameterError("mechanism must be a Mechanism, made by certify or load, or one per group")
    if provenance != "users" and any(mechanism.provenance == "users" for mechanism in known.values()):
        raise PriorError(f"{FROM_USERS} For an experiment pass ", Setting("provenance", "users"))
    return known


def check_spellings(users: CheckedUsers, ledger: Ledger | None, table: object) -> None:
    """Refuse names in several spellings, as a ledger does itself."""
    if ledger is None and (twice := users.cells.spelled_twice()):
        raise UserDataError(
            f"{table}: the names of {twice} users occur in several spellings (blanks around them, "
            f"Unicode forms): each spelling would be released by itself; make them one"
        )


def check_terms(
    known: Mapping[str, Mechanism], ledger: Ledger | None, epoch: str | None, exhausted: str
) -> None:
    """Refuse what needs a ledger, where there is none."""
    if ledger is None:
        if epoch is not None or exhausted != "error":
            raise ParameterError(
                Setting("epoch"), " and ", Setting("exhausted"), " need a ledger (", Setting("ledger"), ")"
            )
        no_stream(known.values(), "a release without a ledger")


def draw_batches(
    known: Mapping[str, Mechanism], batches: Iterable[Mapping[str, Users]], *, exact: bool = False
) -> Iterator[Drawn]:
    """Draw for the users of every group, batch by batch, without a ledger."""
    for groups in batches:
        for name, users in groups.items():
            if len(users):
                yield name, users.ids, known[name].release_many(users, exact=exact)


def requests_of(form: ReportForm, groups: Mapping[str, Users], *, exact: bool = False) -> dict[str, Request]:
    """What the users of every group ask of a ledger, which charges all of them in one commit."""
    by = form.by is not None
    return {
        name: request(form.mechanisms[name], users.ids, users.p, group=name if by else "", exact=exact)
        for name, users in groups.items()
        if len(users)
    }


def answers_of(
    ledger: Ledger, requests: Mapping[str, Request], receipt: Receipt, groups: Mapping[str, Users]
) -> Iterator[Drawn]:
    """What those who were charged release: drawn once, and remembered."""
    for (name, asked), kept in zip(requests.items(), receipt.kept, strict=True):
        for begin in range(0, len(kept), BATCH):
            part = kept[begin : begin + BATCH]
            answers = list(ledger.answers(asked, receipt.epoch, part))
            yield name, [groups[name].ids[i] for i in part.tolist()], answers


def spent(receipt: Receipt | None) -> str:
    """What a release that ends here has cost."""
    if receipt is None or not receipt.charged:
        return "nobody was charged"
    return f"{receipt.charged:,} releases were charged; running again costs nothing more"


# --- files ----------------------------------------------------------------------------------------------


Around = Callable[..., AbstractContextManager[Any]]  # shows a step while it runs (`cli.terminal.step`)


class _Silent:
    """A step that shows nothing, and signals that are not kept back."""

    def __call__(self, *_: object, **__: object) -> AbstractContextManager[Any]:
        return nullcontext(self)

    advance = ignore = held_back = __call__


SILENT = _Silent()
EVERY_USER = ReadingOptions(unknown="prior", empty="skip")


def release_file(
    mechanisms: Mapping[str, Mechanism],
    table: str | Path,
    output: str | Path | None,
    *,
    options: ReadingOptions = EVERY_USER,
    dialect: Dialect = DETECTED,
    ledger: Ledger | None = None,
    epoch: str | None = None,
    exhausted: str = "error",
    exact: bool = False,
    force: bool = False,
    dry_run: bool = False,
    progress: Around = SILENT,
    note: Callable[[str], object] = lambda text: None,
    warn: Callable[..., object] = lambda *parts, serious: None,
    signals: Any = SILENT,
    **columns: Any,
) -> str:
    """Release one private category per user of a file into a new file, and return what was done, in words.

    The guarantees of `release_table` hold, and the output is written whole or not at all. Without a ledger
    users are drawn in batches, and memory does not grow with the table. An interruption and every error tell
    what was charged. The order of the rows depends on the names of groups and users only. `columns` are those
    of `tables.users.checked_users`.

    With `dry_run`, or without an output, everything is read and checked, also the output, and what would
    happen is returned; nobody is charged and nothing is drawn. `warn` gets the parts of messages that are
    statistics of private data: they are for whoever releases.
    """
    table, output = Path(table), None if output is None else Path(output)
    by = columns.get("by")
    form = ReportForm(mechanisms, columns.get("user", "user"), columns.get("item", "item"), by)
    check_terms(mechanisms, ledger, epoch, exhausted)
    if output is not None:
        books = [] if ledger is None else [ledger.path, ledger.witness]
        files.check_writable(output, table, force=force)
        files.check_writable(output, *books, force=True)
    if ledger is not None:
        epoch = ledger.epoch_meant(epoch)  # before the table is read
    with ExitStack() as stack:
        shown = "standard input" if str(table) in ("-", "/dev/stdin") else table.name
        with progress("reading", shown):
            reading: Any = {"options": options, "dialect": dialect, "held": ledger is not None, **columns}
            users = stack.enter_context(checked_users(table, mechanisms, **reading))
        check_spellings(users, ledger, table)
        note(f"{table.name}: {users.how}.")
        if users.left.dropped and options.unknown == "prior":
            warn(*users.left.unknown_share(), serious=users.left.nearly_all_unknown)
        if any(mechanisms[name].provenance == "users" for name in users.cells.groups if name in mechanisms):
            note(FROM_USERS)
        if by is not None:
            note(f"The group of every user, column {by!r}, is published in clear.")
        if dry_run or output is None:
            return _dry_run(form, users, ledger, epoch, exhausted)
        work = _FileRelease(form, users, output, progress, note, signals)
        with work.costs_told():
            if ledger is None:
                note("No ledger: nothing stops a second release of the same users, and their ε adds up.")
                drawn = draw_batches(mechanisms, users.batches, exact=exact)
            else:
                drawn = work.charge(ledger, epoch, exhausted, exact)
            work.write(drawn, force)
        return f"{form.summary(work.count)}, into {work.target}"


def _dry_run(
    form: ReportForm, users: CheckedUsers, ledger: Ledger | None, epoch: str | None, exhausted: str
) -> str:
    """What a release of these users would come to, in words; a budget that does not suffice is refused."""
    nothing = "nobody was charged, nothing was drawn or written."
    if ledger is None:
        return f"Dry run: {form.summary(users.left.people)}. There is no ledger; {nothing}"
    requests = requests_of(form, next(users.batches))
    receipt = ledger.preview(list(requests.values()), epoch=epoch, exhausted=exhausted)
    count = sum(map(len, receipt.kept))
    return f"Dry run: {form.summary(count)}; {_paid(receipt, 'would be charged')}. So far {nothing}"


def _paid(receipt: Receipt, charged: str) -> str:
    """How many releases were charged or would be, and how many need no charge."""
    paid = f"{receipt.charged:,} releases {charged}, {receipt.repeated:,} repeated as they were at no cost"
    if receipt.continued:
        paid += f", {receipt.continued:,} of streams that go on, at no cost"
    if receipt.left_out:
        paid += f", {receipt.left_out:,} left out: their users have too little budget left"
    return paid


@dataclass
class _FileRelease:
    """A release into a file as it goes on: what was charged, drawn and written so far."""

    form: ReportForm
    users: CheckedUsers
    output: Path
    progress: Around
    note: Callable[[str], object]
    signals: Any
    receipt: Receipt | None = None
    count: int = 0
    written: bool = False

    @property
    def target(self) -> str:
        return "standard output" if files.is_standard(self.output) else str(self.output)

    @contextmanager
    def costs_told(self) -> Iterator[None]:
        """Whatever stops the release, the last line tells what it has cost."""
        try:
            yield
        except KeyboardInterrupt:
            self.signals.ignore()  # a second one must not take the last line away
            done = f"nothing was written, {spent(self.receipt)}"
            if self.written:
                done = f"{self.count:,} releases had been written into {self.target} already"
            elif files.is_standard(self.output):
                done = f"a part of the releases may have been read already, {spent(self.receipt)}"
            raise KeyboardInterrupt(done) from None
        except BrokenPipeError:
            cost = spent(self.receipt)
            self.note(f"standard output was closed: a part of the releases may have been read; {cost}")
            raise
        except OSError as problem:
            reason = f"cannot be written: {problem.strerror}"
            if isinstance(problem, FileExistsError):
                reason = "is there already, since a moment ago"
            raise TableError(f"{self.output} {reason}; {spent(self.receipt)}") from None
        except SottovoceError as problem:
            if self.receipt is None:
                raise
            raise type(problem)(*problem.args, f"; {spent(self.receipt)}") from None

    def charge(self, ledger: Ledger, epoch: str | None, exhausted: str, exact: bool) -> Iterator[Drawn]:
        """Charge the users of all groups in one commit; what they release is drawn as it is taken."""
        groups = next(self.users.batches)
        requests = requests_of(self.form, groups, exact=exact)
        if epoch is not None and not ledger.knows(epoch):
            shown = f"epoch {epoch!r}" if epoch else "the epoch without a name"
            within = "" if ledger.lifetime is None else ", as far as the lifetime allows"
            self.note(f"{shown} is new to this ledger: everybody has the whole budget in it{within}.")
        with self.progress("charging", f"{self.users.left.people:,} releases"), self.signals.held_back():
            receipt = ledger.charge(list(requests.values()), epoch=epoch, exhausted=exhausted)
            self.receipt = receipt
        self.note(f"{_paid(receipt, 'charged')}.")
        return answers_of(ledger, requests, receipt, groups)

    def write(self, drawn: Iterable[Drawn], force: bool) -> None:
        """Take what is drawn batch by batch, then let the output take its place at once."""
        total = self.users.left.people if self.receipt is None else sum(map(len, self.receipt.kept))
        integers = self.users.cells.named_by_integers()
        types: dict[str, type] = dict.fromkeys(self.form.names, str)
        types[self.form.user] = int if integers else str
        types[self.form.item] = type_of([each.answers[0] for each in self.form.mechanisms.values()])
        with Writer(types) as writer:
            with self.progress("releasing", total=total, unit="releases") as going:
                for group, who, answers in drawn:
                    names = list(map(int, who)) if integers else who
                    writer.add(self.form.part(group, names, answers))
                    self.count += len(answers)
                    going.advance(len(answers))
            wait = nullcontext() if files.is_standard(self.output) else self.signals.held_back()
            with self.progress("writing", self.target), wait:
                writer.save(self.output, replace=force)
                self.written = True
