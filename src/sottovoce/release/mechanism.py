"""A mechanism: certified integers that release for a user, and the document that states them.

There is no float in this file. A mechanism exists only after its certificate has been checked, whether it was
made from a sampler or read from a file. The digest of a document is the SHA-256 of its canonical form: JSON
without the digest, with sorted keys, no spaces, in ASCII.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, overload

import numpy as np

from .. import listing
from ..atomic import write_whole
from ..core import randomness
from ..core.arithmetic import exp_below
from ..core.box import BoxEngine
from ..core.constants import BITS
from ..core.engine import Engine, Weights, only_fields, row_weights
from ..core.kernel import KernelEngine, ResponseEngine
from ..core.nearest import NearestEngine, NearestStreamEngine
from ..core.stream import StreamEngine, StreamState
from ..core.stream_many import Steps, StreamStates
from ..core.survey import Numbers, SurveyEngine
from ..errors import CertificateError, ParameterError, Setting
from ..prior import ORIGINS, PROVENANCES, learned_from
from ..records import (
    Category,
    Users,
    UsersLike,
    check_labels,
    rows_for,
    unknown_records,
    weights_of_law,
    weights_of_records,
    weights_of_rows,
)

ENGINES = (
    BoxEngine, KernelEngine, ResponseEngine, StreamEngine, SurveyEngine, NearestEngine, NearestStreamEngine
)  # fmt: skip
"""Everything that may draw; each checks its own certificate."""

FORMAT = "sottovoce-mechanism"
PROVENANCE = "provenance"
"""The field that names where the prior comes from; a document of a public prior does not have it."""
LEARNED = ("learned_reports", "learned_epsilon", "learned_mechanism")
"""Options of a mechanism whose prior was learned: from how many reports, at which ε, of which mechanism."""
_STATED = re.compile(r"[0-9]{1,3}(\.[0-9]{1,25})?(e-[0-9]{1,2})?", re.ASCII)
"""How the option of that ε is written: the digits of a double between 0 and 100."""

SEAM = '","'
"""Between two texts of a list in the canonical form."""

_WHOLES = re.compile(r"(?:0|[1-9][0-9]{0,19}+)(?:,(?:0|[1-9][0-9]{0,19}+))*+", re.ASCII)


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """An ε-locally private release in exact integer arithmetic.

    Guarantees
        For every two users and everything that can be released, Pr[release] differs by a factor of at most
        A ≤ e^ε, as an inequality between integers that was checked when the mechanism was made or loaded.
        Randomness comes from the operating system only; a release draws the same number of random bytes
        whatever the data are. In a stream ε covers all releases of a user that carry the state on.

    Make one with `certify(sampler)` or `load(path)`.
    """

    sampler: str
    options: Mapping[str, str]
    categories: Sequence[Category]  # a tuple or a range
    epsilon: Fraction
    ratio: Fraction
    engine: Engine
    keeps_prior: bool
    prior_digest: str
    provenance: str = "public"  # of the prior; one made from its "users" is not covered by the promise above
    bits: int = BITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))
        if not isinstance(self.categories, range):
            object.__setattr__(self, "categories", tuple(self.categories))
        recheck(self)
        self.engine.prepare()

    def __getstate__(self) -> dict[str, Any]:
        return {**only_fields(self), "options": dict(self.options)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def origin(self) -> str:
        """Where the prior comes from, in words, as the file states it."""
        reports, epsilon, mechanism = (self.options.get(name, "") for name in LEARNED)
        if self.provenance != "learned" or not re.fullmatch("[0-9]{1,16}", reports, re.ASCII):
            return ORIGINS[self.provenance]
        return learned_from(int(reports), epsilon, mechanism)

    @property
    def learned_epsilon(self) -> str | None:
        """The largest ε of the reports that a learned prior comes from, as the file writes it."""
        text = self.options.get(LEARNED[1], "")
        states = self.provenance == "learned" and _STATED.fullmatch(text)
        return text if states else None

    @property
    def streaming(self) -> bool:
        """Whether a release takes a state and gives back the next one."""
        return isinstance(self.engine, StreamEngine)

    @cached_property
    def index(self) -> Mapping[Category, int]:
        """Where each category stands."""
        return MappingProxyType({name: i for i, name in enumerate(self.categories)})

    @property
    def answers(self) -> Sequence[Category]:
        """What a release can be: the categories or, of a survey, the numbers of its reports."""
        return range(self.engine.reports) if isinstance(self.engine, SurveyEngine) else self.categories

    @cached_property
    def answer_index(self) -> Mapping[Category, int]:
        """The index of each of the answers."""
        return Numbers(self.engine.reports) if isinstance(self.engine, SurveyEngine) else self.index

    @cached_property
    def _names(self) -> Any:
        names = np.empty(len(self.categories), dtype=object)
        names[:] = list(self.categories)
        return names

    def _named(self, positions: Any) -> Any:
        """The answers at these positions."""
        return positions.astype(object) if isinstance(self.engine, SurveyEngine) else self._names[positions]

    @overload
    def release(
        self, *, records: Iterable[Category] | None = ..., p: UsersLike | None = ...,
        state: None = ..., unknown: str = ...,
    ) -> str | int: ...  # fmt: skip

    @overload
    def release(
        self, *, records: Iterable[Category] | None = ..., p: UsersLike | None = ...,
        state: StreamState = ..., unknown: str = ...,
    ) -> tuple[str | int, StreamState]: ...  # fmt: skip

    def release(
        self,
        *,
        records: Iterable[Category] | None = None,
        p: UsersLike | None = None,
        state: StreamState | None = None,
        unknown: str = "prior",
    ) -> Any:
        """Release one category for one user, from their records or their distribution p.

        Draws the same number of bytes from the operating system whatever the data are. Calling it twice for
        the same data spends ε twice: use a ledger to stop that. A stream takes the user's state, at first
        `start()`, and gives back the category and the next state. Keep that one and forget the old one: a
        state that is used twice spends ε twice.

        Records that are no categories count for nothing, and a user without records (or with p = 0) is
        released as the public: as a user whose counts are the weights of the prior. With unknown="error" both
        are refused, and a refusal tells whoever sees it, and whoever chose the categories, what the user has.
        Missing values (None, NaN) count for nothing too. What by its form is no list of names is refused: a
        table, tuples, nothing but floats, one number for each category (for integer categories only if one of
        them is a fraction), and for categories that are texts an array of integers.

        Raises
            UserDataError: p is not a distribution, or records are no names; with unknown="error" also no
                record or an unknown one. Nothing is released.
            RandomnessError: the operating system failed. Nothing is released.
        """
        held = self._held(records, p, unknown)
        if self.streaming:
            return self.step(held, self.check_state(state), *randomness.words(1, self.bits))
        if state is not None:
            raise ParameterError("only a stream takes a state")
        return self.answers[self.engine.position(held, randomness.words(self.engine.words, self.bits))]

    def unknown(self, records: Iterable[Category]) -> int:
        """How many of a user's records are no category and count for nothing. The number is private."""
        return unknown_records(records, self.index)

    def _held(
        self, records: Iterable[Category] | None, p: UsersLike | None, unknown: str = "prior"
    ) -> Weights:
        """One user's integers."""
        if records is not None and p is None:
            return weights_of_records(records, self.index, unknown)
        if p is not None and records is None:
            check_labels(p, self.categories)
            return weights_of_law(p, len(self.categories))
        raise ParameterError("pass either records= or p=, one of them")

    def start(self) -> StreamState:
        """The state of a user before the first release of a stream."""
        return StreamState(self.epsilon, 0, *self._engine().first())

    def lost(self, releases: int = 0, *, last: Category | None) -> StreamState:
        """The state of a device that lost R after so many releases, and made the release `last`.

        It releases from the public law of the step and stays that way: nothing more is spent, and nothing is
        learned. With persistence this law lies around the last release, so `last` must be what this device
        released last, from its own record, never from a collector's. It is named as in the mechanism that
        released it; the state is good for every other file with the same ε.

        last=None: nothing was released, or the last release is lost too. Then the prior is released and, with
        persistence, ε holds only for losses that do not depend on the data.
        """
        engine, index = self._engine(), None if last is None else self._index_of_release(last)
        return self.check_state(StreamState(self.epsilon, releases, engine.one, engine.most, index))

    def _index_of_release(self, category: Category) -> int:
        """Where a category stands that was released before."""
        known = isinstance(category, str | int | np.integer) and not isinstance(category, bool)
        if not known or category not in self.index:
            raise ParameterError("last must be a category of the mechanism that released it, or None")
        return self.index[category]

    def after(self, state: StreamState, p: UsersLike, category: Category) -> StreamState:
        """The state that follows the release of a category: for planning, and for replaying attacks."""
        engine, checked = self._engine(), self.check_state(state)
        law = engine.next_law(weights_of_law(p, len(self.categories)), checked)
        index = self.index[category]
        return self._stepped(checked, index, *law.weight(index))[1]

    def _engine(self) -> StreamEngine:
        if not isinstance(self.engine, StreamEngine):
            raise ParameterError("this mechanism is no stream; design one with sottovoce.stream")
        return self.engine

    def check_state(self, state: StreamState | None) -> StreamState:
        """The state, if it is one of a stream with this ε; others are refused."""
        if not isinstance(state, StreamState):
            raise ParameterError("a stream needs the user's state: mechanism.start() for the first release")
        engine = self._engine()
        inside = state.is_well_formed() and engine.one <= state.low <= state.high <= engine.most
        if not inside or not 0 <= state.step < 1 << 62 or state.epsilon != self.epsilon:
            raise ParameterError("the state is not one of a stream with this epsilon")
        if state.last is not None and not 0 <= state.last < len(self.categories):
            return replace(state, last=None)  # of an earlier file, with more categories
        return state

    def step(self, held: Weights, state: StreamState, word: int) -> tuple[Category, StreamState]:
        """What a word releases for a user of a stream, and the next state; both were checked."""
        engine = self._engine()
        return self._stepped(state, *engine.drawn(engine.next_law(held, state), word))

    def _stepped(
        self, state: StreamState, index: int, prior: int, units: int
    ) -> tuple[Category, StreamState]:
        low, high = self._engine().moved(state.low, state.high, prior, units)
        last = index if self._engine().persistence else None
        return self.categories[index], StreamState(self.epsilon, state.step + 1, low, high, last)

    def release_many(
        self, p: UsersLike | Users, states: Sequence[StreamState] | None = None, *, exact: bool = False
    ) -> Any:
        """Release one category per row of p, dense or sparse.

        A stream takes a state for each row, and gives back the categories and the next states.

        Rows of floats are distributions, rows of integers are counts, rows of zeros are users without
        records, released as the public; `Users` are their distributions, if they were read with these
        categories. All rows are checked before any randomness is drawn, and nothing is returned unless every
        row was released.

        With `exact` every user is drawn alone, by the path of `release`, which the proofs are about. It
        takes about thirty times as long, and gives the same from the same words.
        """
        return self.draw(self.prepare(p), states, exact=exact)

    def prepare(self, p: UsersLike | Users) -> Any:
        """Check one row of p per user and turn it into integers; nothing is drawn."""
        return weights_of_rows(rows_for(p, self), len(self.categories))

    def draw(self, rows: Any, states: Sequence[StreamState] | None = None, *, exact: bool = False) -> Any:
        """Release one category per prepared row. A single row takes the path of `release`, without tables."""
        if self.streaming:
            return self._draw_streams(rows, states, exact)
        if states is not None:
            raise ParameterError("only a stream takes states")
        engine, positions = self.engine, np.empty(rows.shape[0], dtype=np.int64)
        if exact or len(positions) == 1:
            for i in range(len(positions)):
                words = randomness.words(engine.words, self.bits)
                positions[i] = engine.position(row_weights(rows, i), words)
            return self._named(positions)

        def take(part: slice, words: Any) -> None:
            positions[part] = engine.positions(rows[part], words)

        engine.prepare(many=True)
        self._in_batches(len(positions), take)
        return self._named(positions)

    def _draw_streams(self, rows: Any, states: Sequence[StreamState] | None, exact: bool) -> Any:
        """One step for every row; with persistence, or a geometry, one row after another."""
        users, engine = rows.shape[0], self._engine()
        if states is None or len(states) != users:
            raise ParameterError("a stream takes a state for every row")
        if exact or users == 1 or engine.persistence or type(engine) is not StreamEngine:
            before, words = list(map(self.check_state, states)), randomness.words(users, self.bits)
            drawn = [self.step(row_weights(rows, i), before[i], words[i]) for i in range(users)]
            return np.array([category for category, _ in drawn], dtype=object), [state for _, state in drawn]
        columns, steps = self._columns(states), self._steps
        positions, after = np.empty(users, dtype=np.int64), np.empty_like(columns)

        def take(part: slice, words: Any) -> None:
            positions[part], after[:, part] = steps.step(rows[part], words[0], columns[:, part])

        self._in_batches(users, take)
        return self._names[positions], StreamStates(self.epsilon, after)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self._engine())

    def _columns(self, states: Sequence[StreamState]) -> Any:
        """`check_state` for many, as columns."""
        if not isinstance(states, StreamStates):
            states = StreamStates.of(self.epsilon, list(map(self.check_state, states)))
        engine, (step, low, high) = self._engine(), states.columns
        inside = (step >> 62 == 0) & (engine.one <= low) & (low <= high) & (high <= engine.most)
        if states.epsilon != self.epsilon or not inside.all():
            raise ParameterError("the states are not those of a stream with this epsilon")
        return states.columns

    def _in_batches(self, users: int, take: Callable[[slice, Any], None]) -> None:
        """Call `take` with the rows and the words of every batch, on as many threads as help.

        Words are drawn one batch after another, in the order of the rows, so that the same words give the
        same answer however many threads there are.
        """
        most, words = self.engine.batch, self.engine.words
        begins, turn = iter(range(0, users, most)), Lock()

        def batches(_: int) -> None:
            while True:
                with turn:
                    begin = next(begins, None)
                    if begin is None:
                        return
                    part = slice(begin, min(begin + most, users))
                    drawn = randomness.word_arrays(words, part.stop - begin, self.bits)
                take(part, drawn)

        threads = min(-(-users // most), processors())
        if threads <= 1:
            batches(0)
            return
        with ThreadPoolExecutor(max_workers=threads) as pool:
            list(pool.map(batches, range(threads)))  # an error of any of them is raised

    def law(
        self,
        *,
        records: Iterable[Category] | None = None,
        p: UsersLike | None = None,
        state: StreamState | None = None,
    ) -> list[Fraction]:
        """The exact law of what a user with these records, or this p, releases, in the order of the answers.

        Of a stream it is that of the next release of a user with this state.
        """
        held = self._held(records, p)
        if not self.streaming:
            return self.engine.law(held)
        engine, checked = self._engine(), self.check_state(state)
        law = engine.next_law(held, checked)
        return [Fraction(units, engine.total) for units in engine.units(law)]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole mechanism: equal digests, equal behaviour."""
        return digest_of(self.document())

    def save(self, path: str | Path, *, replace: bool = True) -> None:
        """Write the mechanism as one JSON file, whole or not at all."""
        plain = {**self.document(), "digest": self.digest}
        write_whole(json.dumps(plain, ensure_ascii=False, indent=0) + "\n", Path(path), replace=replace)

    def document(self) -> dict[str, Any]:
        """Everything a client in any language needs, as plain values, without the digest."""
        return self.heading() | self.engine.fields()

    def heading(self) -> dict[str, Any]:
        """The part of the document that every kind of mechanism has."""
        return {
            "format": FORMAT,
            "version": self.engine.version,
            "sampler": self.sampler,
            "options": dict(self.options),
            "categories": list(self.categories),
            "epsilon": fraction_text(self.epsilon),
            "ratio": fraction_text(self.ratio),
            "bits": self.bits,
            "keeps_prior": self.keeps_prior,
            "prior_digest": self.prior_digest,
            **({PROVENANCE: self.provenance} if self.provenance != "public" else {}),
            "kind": self.engine.kind,
        }

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Mechanism) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        mark = "" if self.provenance == "public" else f", prior {self.origin}"
        size = f"{len(self.categories)} categories"
        return f"<Mechanism {self.sampler} on {size}, epsilon={self.epsilon}{mark}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the facts that a client checks."""
        rows: list[tuple[str, object]] = [
            ("epsilon", f"{self.epsilon}"),
            ("categories", f"{len(self.categories):,}"),
            ("keeps the prior", "yes" if self.keeps_prior else "no"),
            ("prior", self.origin),
            ("certificate", f"holds, in whole units of 2^-{self.bits}"),
            ("digest", self.digest),
        ]
        return listing.facts(f"Mechanism {self.sampler}", rows)


def no_stream(mechanisms: Iterable[Mechanism], what: str) -> None:
    """Refuse streams where nobody keeps their state."""
    if any(mechanism.streaming for mechanism in mechanisms):
        raise ParameterError(
            f"{what} keeps no state, and this mechanism is a stream: use a ledger (",
            Setting("ledger"),
            "), or mechanism.release(records=…, state=…) in Python",
        )


def processors() -> int:
    """How many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def recheck(mechanism: Mechanism) -> None:
    """Check the whole certificate again, in exact arithmetic; raise if anything is off."""
    engine, size = mechanism.engine, len(mechanism.categories)
    if type(mechanism.bits) is not int or not 1 <= mechanism.bits <= BITS:
        raise CertificateError(f"bits must be a whole number from 1 to {BITS}")
    if mechanism.provenance not in PROVENANCES:
        raise CertificateError(f"provenance must be one of {', '.join(PROVENANCES)}")
    if mechanism.ratio != exp_below(mechanism.epsilon):
        raise CertificateError("the ratio A is not the certified lower bound of e^ε")
    if len(set(mechanism.categories)) != size:
        raise CertificateError("categories must be distinct: one is named twice")
    if type(engine) not in ENGINES:  # not isinstance: a subclass could check what it likes
        raise CertificateError("this kind of mechanism is unknown")
    engine.check(mechanism.ratio, size, mechanism.bits)
    if mechanism.keeps_prior != engine.keeps_prior():
        raise CertificateError("the claim about keeping the prior is wrong")


def digest_of(plain: dict[str, Any], wholes: Mapping[str, str] | None = None) -> str:
    """SHA-256 of the canonical form of a document without its digest.

    `wholes` are its lists of integers if they have been joined already (`joined_wholes`).
    """
    known = joined_wholes(plain) if wholes is None else wholes
    state = hashlib.sha256(b"{")
    for i, name in enumerate(sorted(plain)):
        state.update(f"{',' if i else ''}{_canonical(name)}:".encode("ascii"))
        wholes_text = known.get(name)
        text = _canonical(plain[name]) if wholes_text is None else f'["{wholes_text.replace(",", SEAM)}"]'
        state.update(text.encode("ascii"))
    state.update(b"}")
    return state.hexdigest()


def joined_wholes(plain: Mapping[str, Any]) -> dict[str, str]:
    """The fields that are lists of integers as text, each joined by commas: to be read and to be hashed.

    A million of them are written out several times faster this way than by a JSON writer.
    """
    lists = {name: joined(value) for name, value in plain.items() if isinstance(value, list)}
    return {name: text for name, text in lists.items() if text is not None}


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def fraction_text(value: Fraction) -> str:
    """A fraction as "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"


def joined(values: list[Any]) -> str | None:
    """All as one text, which is fast to look at; None unless each has 1 to 20 digits, no leading zeros."""
    try:
        text = ",".join(values)
    except TypeError:  # one of them is no text
        return None
    fits = text.count(",") == len(values) - 1 and _WHOLES.fullmatch(text) is not None
    return text if fits else None
