"""A mechanism file, validated in full: its size, schema, digest and certificate, and the client's policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..atomic import write_whole
from ..core.constants import BITS, LARGEST_INTEGER
from ..core.engine import Engine
from ..errors import MechanismFileError, ParameterError, Setting
from ..groups import Groups
from ..prior import PROVENANCES, shortest_text
from ..records import Category
from .mechanism import ENGINES, FORMAT, PROVENANCE, Mechanism, digest_of, joined, joined_wholes

GROUPS = "sottovoce-mechanisms"
VERSION = 1
COMMON = frozenset({
    "format", "version", "kind", "sampler", "options", "categories", "epsilon", "ratio", "bits",
    "keeps_prior", "prior_digest", "digest",
})  # fmt: skip
"""The fields of every document; each engine names, writes and reads those of its own kind."""
NEWEST = max(engine.version for engine in ENGINES)

_ENGINES: dict[str, type[Engine]] = {engine.kind: engine for engine in ENGINES}
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_RATIO = re.compile(r"([0-9]{1,80})/([0-9]{1,400})", re.ASCII)


# --- what a client accepts -------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """What a client accepts, whatever a file says.

    Parameters
        max_epsilon: the largest ε, or "any". It may be left out where the digest is stated: one of the two
            must be, so that nobody's ε comes from a stranger's file by mistake.
        max_categories: the most categories, in all groups of a file together; it bounds the size of the file.
        digest: the one file that is expected, as 64 hexadecimal digits, or None for any. For a file of groups
            it is the digest of the whole file: its group column, its group names and every mechanism.
        provenance: "public" refuses a mechanism whose prior was made from the users it serves.
        max_learned_epsilon: the largest ε of the private reports that a prior may have been learned from. A
            learned prior that does not state its ε, and a prior made from users, are refused then.
        categories: the names that are expected, in any order; a file with others, with fewer or with more is
            refused. Whoever writes the file cannot choose then what is asked.
    """

    max_epsilon: Fraction | int | float | str | None = None
    max_categories: int = 1_000_000
    digest: str | None = None
    provenance: str = "users"
    categories: Iterable[Category] | None = None
    max_learned_epsilon: Fraction | int | float | str | None = None

    def __post_init__(self) -> None:
        if self.max_epsilon is None and self.digest is None:
            raise ParameterError(
                "a policy needs max_epsilon, the largest ε that may be spent, or the digest of the file; "
                "Policy(max_epsilon='any') accepts what the file says"
            )
        if self.categories is not None:
            object.__setattr__(self, "categories", _expected(self.categories))
        if self.max_epsilon not in (None, "any"):
            _check_bound(self.max_epsilon, "max_epsilon")
        if self.max_learned_epsilon is not None:
            _check_bound(self.max_learned_epsilon, "max_learned_epsilon")
        if type(self.max_categories) is not int or self.max_categories < 1:
            raise ParameterError(f"max_categories must be an integer ≥ 1, got {self.max_categories!r}")
        if self.digest is not None and not _is_digest(self.digest):
            raise ParameterError("digest must be the 64 hexadecimal digits, in lower case, of a whole digest")
        checks.one_of(("public", "users"), provenance=self.provenance)


ANY = Policy(max_epsilon="any")
"""Accepts every file that certifies itself: for programs that release nothing."""


def _check_bound(value: Any, name: str) -> None:
    """Refuse a bound that is no number above 0."""
    try:
        bound = Fraction(value)
    except (ValueError, OverflowError, TypeError, ZeroDivisionError):
        bound = Fraction(0)
    if bound <= 0:
        raise ParameterError(f"{name} must be a number above 0, got {value!r}")


def _expected(categories: object) -> frozenset[Category]:
    """The expected names: all text or all integers, each once."""
    if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
        raise ParameterError("categories must be a list of names")
    names = list(categories)
    if set(map(type, names)) not in ({str}, {int}) or len(set(names)) != len(names):
        raise ParameterError("categories must be names, all strings or all integers, each once")
    return frozenset(names)


ALLOWANCE, CATEGORY_BYTES = 1 << 16, 1 << 10
"""Bytes that every file may take, and more for each category that the policy accepts."""
MOST_GROUPS = 10_000


def read_text(path: Path, rules: Policy) -> str:
    """Read a file of mechanisms as UTF-8 text; one that is too large for the policy is not read further."""
    most = ALLOWANCE + CATEGORY_BYTES * rules.max_categories
    try:
        if not path.is_file() and path.exists():
            raise MechanismFileError(f"{path} cannot be read: it is not a regular file")
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise MechanismFileError(
                f"{path} has more than {most:,} bytes, which is too large for {rules.max_categories:,} "
                f"categories, the most that the policy accepts (max_categories)"
            )
        return data.decode("utf-8")
    except OSError as problem:
        raise MechanismFileError(f"{path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise MechanismFileError(f"{path} cannot be read: it is not UTF-8") from None


def _given(path: str | Path, policy: object) -> tuple[str, str, Policy]:
    """A file's text and name, and the policy that it is checked against; there is no default."""
    if isinstance(policy, Policy):
        return read_text(Path(path), policy), str(path), policy
    raise ParameterError(
        "a policy is needed, such as policy=Policy(max_epsilon=2) or Policy(digest=…): it decides how much "
        "privacy a file may cost; Policy(max_epsilon='any') accepts what the file says"
    )


# --- reading and writing ---------------------------------------------------------------------------


@dataclass(frozen=True)
class MechanismFile:
    """What a file holds: one mechanism or one per group, and the digest of the whole."""

    mechanisms: Groups[Mechanism]
    digest: str

    @property
    def by(self) -> str | None:
        """The group column."""
        return self.mechanisms.by


def load(path: str | Path, *, policy: Policy | None = None) -> Mechanism:
    """Read a mechanism, check its certificate in full, and hold it against the client's policy.

    Raises
        MechanismFileError: unreadable, not a mechanism, wrong digest, or refused by the policy.
        CertificateError: the integers do not certify what the file claims.
    """
    return parse(*_given(path, policy))


def save_mechanisms(
    mechanisms: Mapping[str, Mechanism], by: str | None, path: Path, *, replace: bool = True
) -> str:
    """Write one mechanism as its own file, or several as a file of groups; return the digest to pin it by."""
    text, digest = mechanisms_text(mechanisms, by)
    write_whole(text, path, replace=replace)
    return digest


def mechanisms_text(mechanisms: Mapping[str, Mechanism], by: str | None) -> tuple[str, str]:
    """The text of a file of one mechanism or, with a group column, of several; and its digest."""
    if by is None:
        (mechanism,) = mechanisms.values()
        plain = mechanism.document()
    elif all(map(_is_label, mechanisms)):
        groups = {name: {**made.document(), "digest": made.digest} for name, made in mechanisms.items()}
        plain = {"format": GROUPS, "version": VERSION, "by": checks.group_column(by), "groups": groups}
    else:
        raise ParameterError("names of groups must be printable text of at most 100 characters")
    digest = digest_of(plain)
    return json.dumps({**plain, "digest": digest}, ensure_ascii=False, indent=0) + "\n", digest


def load_groups(path: str | Path, *, policy: Policy | None = None) -> dict[str, Mechanism]:
    """Read the mechanisms of a file made with groups (`design --by`), each checked as `load` checks one.

    The file names a group column of its own; that name is the collector's and not returned here. Whoever
    releases decides which column of the users is published as their group.
    """
    return dict(load_mechanisms(path, policy=policy).mechanisms)


def load_mechanisms(path: str | Path, *, policy: Policy | None = None) -> MechanismFile:
    """Read a file of one mechanism or of groups; the policy's digest is that of the whole file."""
    return parse_mechanisms(*_given(path, policy))


def parse_mechanisms(text: str, source: str, rules: Policy) -> MechanismFile:
    """Build the one mechanism or the mechanisms of groups that a text describes, or refuse it."""
    plain = _parsed(text, source)
    if not isinstance(plain, dict) or plain.get("format") != GROUPS:
        mechanism = build(plain, source, rules)
        return MechanismFile(Groups.of(mechanism, None), mechanism.digest)
    stated, by = plain.pop("digest", None), plain.get("by")
    groups: Any = plain.get("groups")
    fits = set(plain) == {"format", "version", "by", "groups"}
    fits = fits and type(plain["version"]) is int and plain["version"] == VERSION
    names = list(groups) if isinstance(groups, dict) else []
    if not fits or not 1 <= len(names) <= MOST_GROUPS or not all(map(_is_label, [by, *names])):
        raise MechanismFileError(f"{source} does not have the fields of a file of groups")
    digest = _checked_digest(plain, stated, source, rules, "file")
    try:
        by = checks.group_column(by)
    except ParameterError as problem:
        raise MechanismFileError(f"{source} is refused: ", *problem.args) from None
    lists = [plain.get("categories") for plain in groups.values() if isinstance(plain, dict)]
    total = sum(len(names) for names in lists if isinstance(names, list))
    if total > rules.max_categories:  # together
        size = f"{total} categories in {len(groups)} groups"
        raise MechanismFileError(f"{source} has {size}, the policy allows {rules.max_categories}")
    rest = replace(rules, max_epsilon=rules.max_epsilon or "any", digest=None)  # the whole file was expected
    mechanisms = {name: build(each, f"{source}, group {name!r}", rest) for name, each in groups.items()}
    return MechanismFile(Groups(mechanisms, by), digest)


def parse(text: str, source: str, rules: Policy) -> Mechanism:
    """Build the mechanism that a text describes, or refuse it."""
    return build(_parsed(text, source), source, rules)


def _checked_digest(
    plain: dict[str, Any],
    stated: object,
    source: str,
    rules: Policy,
    what: str,
    wholes: Mapping[str, str] | None = None,
) -> str:
    """The digest of a document, if it is the stated one and the one that the policy expects."""
    try:
        digest = digest_of(plain, wholes)
    except (RecursionError, ValueError):
        raise MechanismFileError(f"{source} does not have the fields of a mechanism file") from None
    if stated != digest:
        raise MechanismFileError(f"{source} was changed: its digest is not that of its content")
    if rules.digest is not None and rules.digest != digest:
        raise MechanismFileError(f"{source} is not the expected {what}: its digest is {digest[:16]}…")
    return digest


def _parsed(text: str, source: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=no_duplicates,
            parse_constant=_no_number,
            parse_float=_no_number,
            parse_int=_plain_integer if "-0" in text else None,  # a name may hold it: then it costs time only
        )
    except (ValueError, RecursionError):
        prior = '"sottovoce-prior"' in text[:200]
        what = "it is a prior (make one from it: sottovoce design)" if prior else "it is not valid JSON"
        if not prior and Path(source).suffix.lower() != ".json":
            what += "; are the two files the other way round?"
        raise MechanismFileError(f"{source} is not a mechanism file: {what}") from None


def build(plain: Any, source: str, rules: Policy) -> Mechanism:
    """Build the mechanism that a document describes, or refuse it."""
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        if isinstance(plain, dict) and plain.get("format") == GROUPS:
            raise MechanismFileError(f"{source} holds a mechanism per group: read it with load_groups")
        raise MechanismFileError(
            f"{source} is not a mechanism file: its format is not {FORMAT!r} "
            f"(make one with: sottovoce design … -o)"
        )
    version, kind = plain.get("version"), plain.get("kind")
    engine = _ENGINES.get(kind) if isinstance(kind, str) else None
    known = {VERSION, NEWEST} if engine is None else {engine.version}  # each kind has one version
    if type(version) is not int or version not in known or plain.get("bits") != BITS:
        known_versions = f"this library reads versions {VERSION} to {NEWEST}, each with its own kinds"
        raise MechanismFileError(f"{source} has an unknown version: {known_versions}")
    provenance = plain.get(PROVENANCE, "public")  # which is never written: one mechanism, one document
    marked = {PROVENANCE} if provenance in PROVENANCES[1:] else set()
    if engine is None or set(plain) != COMMON | engine.own_fields | marked:
        raise MechanismFileError(f"{source} does not have the fields of a mechanism file")
    names, epsilon = _names(plain["categories"], source, rules), read_fraction(plain["epsilon"], source)
    allowed = 100 if rules.max_epsilon in (None, "any") else rules.max_epsilon
    if not 0 < epsilon <= 100 or epsilon > Fraction(allowed):
        raise MechanismFileError(f"{source} has epsilon {float(epsilon):g}, the policy allows {allowed}")
    stated, wholes = plain.pop("digest"), joined_wholes(plain)
    digest = _checked_digest(plain, stated, source, rules, "mechanism", wholes)
    options = plain["options"]
    typed = isinstance(plain["keeps_prior"], bool) and isinstance(options, dict)
    texts = [plain["sampler"], *options, *options.values()] if typed else []
    if not typed or not all(map(_is_label, texts)) or not _is_digest(plain["prior_digest"]):
        raise MechanismFileError(f"{source} does not have the fields of a mechanism file")
    ratio = read_fraction(plain["ratio"], source)
    if provenance == "users" != rules.provenance:
        raise MechanismFileError(
            f"{source} says that its prior was made from the users it serves; the policy wants a "
            f"public one (for an experiment: ",
            Setting("provenance", "users"),
            ")",
        )
    drawn = engine.read(Fields(plain, source, len(names), BITS, wholes), ratio)
    same = {name: plain[name] for name in ("sampler", "options", "keeps_prior", "prior_digest")}
    mechanism = Mechanism(
        **same, categories=names, epsilon=epsilon, ratio=ratio, engine=drawn, provenance=provenance
    )
    # 1.0 for 1, "6/4" for "3/2": one mechanism, one way to write it. The rest is text, or read by its type;
    # the weights and places of an engine have been read in the one way in which they can be written.
    heading = {name: value for name, value in plain.items() if name not in engine.own_fields}
    if type(plain["bits"]) is not int or mechanism.heading() != heading:
        raise MechanismFileError(f"{source} is not written in the canonical way")
    if rules.max_learned_epsilon is not None:
        _check_learned(mechanism, source, rules.max_learned_epsilon)
    mechanism.__dict__["digest"] = digest  # the same document: it need not be written out again
    return mechanism


def _check_learned(mechanism: Mechanism, source: str, most: Any) -> None:
    """Refuse a prior that was learned at a larger ε than the policy allows, or states none."""
    if mechanism.provenance == "public":
        return
    stated = mechanism.learned_epsilon
    if stated is None:
        raise MechanismFileError(
            f"{source} does not state at which epsilon its prior was learned; the policy bounds it "
            f"(max_learned_epsilon)"
        )
    if Fraction(float(stated)) > Fraction(most):
        raise MechanismFileError(
            f"{source} has a prior learned from reports at epsilon {shortest_text(float(stated))}, the "
            f"policy allows {most} (max_learned_epsilon)"
        )


def _names(values: object, source: str, rules: Policy) -> tuple[Category, ...]:
    if not isinstance(values, list) or not values:
        raise MechanismFileError(f"{source} has no categories")
    if len(values) > rules.max_categories:
        size = f"{len(values)} categories"
        raise MechanismFileError(f"{source} has {size}, the policy allows {rules.max_categories}")
    if set(map(type, values)) not in ({str}, {int}):
        raise MechanismFileError(f"{source} must name its categories by strings or by integers")
    if type(values[0]) is int and max(map(abs, values)) >= LARGEST_INTEGER:
        raise MechanismFileError(f"{source} names a category by an integer beyond 2^53")
    if type(values[0]) is str and not checks.is_text("".join(values)):
        raise MechanismFileError(f"{source} names a category by something that is not text")
    if rules.categories is not None and rules.categories != set(values):
        raise MechanismFileError(f"{source} does not have the categories that the policy expects")
    return tuple(values)  # that they are distinct is part of the certificate


def _is_label(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100 and value.isprintable()


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; refused if a name stands in it twice."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError
    return out


def _no_number(_: str) -> Any:
    """No field holds a fraction or an exponent: 1.0 and 1e0 are not ways to write 1."""
    raise ValueError


def _plain_integer(text: str) -> int:
    if text == "-0":
        raise ValueError
    return int(text)


@dataclass(frozen=True)
class Fields:
    """The fields of a document that nobody has checked yet; each is refused if it is not right."""

    plain: Mapping[str, Any]
    source: str
    size: int  # how many categories it has
    bits: int
    joined: Mapping[str, str]  # its lists of integers

    def wholes(self, name: str) -> tuple[int, ...]:
        """One integer up to 2^bits for each category."""
        values = self.plain[name]
        if not isinstance(values, list) or len(values) != self.size:
            raise MechanismFileError(f"{self.source} does not have one weight per category")
        return self._wholes(self.joined.get(name), self.size)

    def whole(self, name: str, bits: int | None = None) -> int:
        """A single integer, up to 2^bits of the document or of the caller."""
        return self._wholes(joined([self.plain[name]]), 1, bits)[0]

    def _wholes(self, text: str | None, size: int, bits: int | None = None) -> tuple[int, ...]:
        bits = self.bits if bits is None else bits
        if text is None:
            form = "an integer of at most 20 digits, without leading zeros"
            raise MechanismFileError(f"{self.source} has a weight that is not {form}")
        wholes = np.fromstring(text, dtype=np.int64, sep=",")  # beyond 2^63 it gives the largest there is
        if len(wholes) != size or int(wholes.max()) > 1 << bits:
            raise MechanismFileError(f"{self.source} has a weight above 2^{bits}")
        return tuple(wholes.tolist())

    def positions(self, name: str) -> tuple[int, ...]:
        """Positions of categories."""
        values = self.plain[name]
        fits = isinstance(values, list) and set(map(type, values)) <= {int}  # true is no position
        if not fits or (values and not (min(values) >= 0 and max(values) < self.size)):
            raise MechanismFileError(f"{self.source} names a category that is not there")
        return tuple(values)


def read_fraction(value: object, source: str) -> Fraction:
    """A fraction of a document, or a refusal."""
    match = _RATIO.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[2]) == 0:
        raise MechanismFileError(f"{source} does not state epsilon and the ratio as whole fractions")
    return Fraction(int(match[1]), int(match[2]))
