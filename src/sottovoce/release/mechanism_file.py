"""Reading a mechanism file: everything in it is doubted, and the certificate is checked again in full."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _naming
from .._atomic import write_whole
from ..errors import MechanismFileError, ParameterError
from ..prior import LARGEST_INTEGER, Category
from .box_engine import Engine
from .document import COMMON, FORMAT, MARK, VERSION, Fields, digest_of, joined_wholes, read_fraction
from .exact import BITS
from .justified_text import read_justified
from .mechanism import ENGINES, Mechanism
from .policy import Policy, checked_policy

GROUPS = "sottovoce-mechanisms"
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ENGINES: dict[str, type[Engine]] = {engine.kind: engine for engine in ENGINES}
NEWEST = max(engine.version for engine in ENGINES)


@dataclass(frozen=True)
class MechanismFile:
    """What a file holds: one mechanism (under "all", no group column) or one per group, and its digest."""

    mechanisms: dict[str, Mechanism]
    by: str | None
    digest: str


def load(path: str | Path, *, policy: Policy | None = None) -> Mechanism:
    """Read a mechanism, check its certificate in full, and hold it against the client's policy.

    The policy states the largest ε or the digest that is accepted: `Policy(max_epsilon=2)`. To accept the ε
    of any file, say so: `Policy(max_epsilon="any")`.

    Raises
        MechanismFileError: unreadable, not a mechanism, wrong digest, or refused by the policy.
        CertificateError: the integers do not certify what the file claims.
    """
    rules = checked_policy(policy)
    return parse(read_justified(Path(path), rules.max_categories), str(path), rules)


def save_mechanisms(
    mechanisms: Mapping[str, Mechanism], by: str | None, path: Path, *, replace: bool = True
) -> str:
    """Write one mechanism as its own file, or several as a file of groups; return the digest to pin it by."""
    if by is None:
        (mechanism,) = mechanisms.values()
        mechanism.save(path, replace=replace)
        return mechanism.digest
    if not all(map(_is_label, mechanisms)):
        raise ParameterError("names of groups must be printable text of at most 100 characters")
    groups = {name: {**one.document(), "digest": one.digest} for name, one in mechanisms.items()}
    plain = {"format": GROUPS, "version": VERSION, "by": _naming.group_column(by), "groups": groups}
    digest = digest_of(plain)
    text = json.dumps({**plain, "digest": digest}, ensure_ascii=False, indent=0) + "\n"
    write_whole(text, path, replace=replace)
    return digest


def load_groups(path: str | Path, *, policy: Policy | None = None) -> dict[str, Mechanism]:
    """Read the mechanisms of a file made with groups (`design --by`), each checked as `load` checks one.

    The file names a group column of its own; that name is the collector's and not returned here. Whoever
    releases decides which column of the users is published as their group.
    """
    return load_mechanisms(path, policy=policy).mechanisms


def load_mechanisms(path: str | Path, *, policy: Policy | None = None) -> MechanismFile:
    """Read a file of one mechanism or of groups; the policy's digest is that of the whole file."""
    rules = checked_policy(policy)
    return parse_mechanisms(read_justified(Path(path), rules.max_categories), str(path), rules)


def parse_mechanisms(text: str, source: str, rules: Policy) -> MechanismFile:
    """Build the one mechanism or the mechanisms of groups that a text describes, or refuse it."""
    plain = _json(text, source)
    if not isinstance(plain, dict) or plain.get("format") != GROUPS:
        mechanism = build(plain, source, rules)
        return MechanismFile({"all": mechanism}, None, mechanism.digest)
    stated, groups, by = plain.pop("digest", None), plain.get("groups"), plain.get("by")
    fits = set(plain) == {"format", "version", "by", "groups"}
    if not fits or type(plain["version"]) is not int or plain["version"] != VERSION:
        raise MechanismFileError(f"{source} does not have the fields of a file of groups")
    if not isinstance(groups, dict) or not groups or not all(map(_is_label, [by, *groups])):
        raise MechanismFileError(f"{source} does not have the fields of a file of groups")
    found = _canonical_digest(plain, source)
    if stated != found:
        raise MechanismFileError(f"{source} was changed: its digest is not that of its content")
    if rules.digest is not None and rules.digest != found:
        raise MechanismFileError(f"{source} is not the expected file: its digest is {found[:16]}…")
    try:
        by = _naming.group_column(by)
    except ParameterError as problem:
        raise MechanismFileError(f"{source} is refused: {problem}") from None
    _check_total(groups, source, rules)
    each = replace(rules, max_epsilon=rules.max_epsilon or "any", digest=None)  # the whole file was expected
    mechanisms = {name: build(one, f"{source}, group {name!r}", each) for name, one in groups.items()}
    return MechanismFile(mechanisms, by, found)


def _check_total(groups: Mapping[str, Any], source: str, rules: Policy) -> None:
    """Refuse groups that have too many categories together."""
    lists = [one["categories"] for one in groups.values() if isinstance(one, dict) and "categories" in one]
    total = sum(len(names) for names in lists if isinstance(names, list))
    if total > rules.max_categories:
        raise MechanismFileError(
            f"{source} has {total} categories in {len(groups)} groups, the policy allows "
            f"{rules.max_categories}"
        )


def parse(text: str, source: str, rules: Policy) -> Mechanism:
    """Build the mechanism that a text describes, or refuse it."""
    return build(_json(text, source), source, rules)


def _canonical_digest(plain: dict[str, Any], source: str, wholes: Mapping[str, str] | None = None) -> str:
    try:
        return digest_of(plain, wholes)
    except (RecursionError, ValueError):
        raise MechanismFileError(f"{source} does not have the fields of a mechanism file") from None


def _json(text: str, source: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_number,
            parse_float=_no_number,
            parse_int=_plain_whole if "-0" in text else None,  # a name may hold it: then it costs time only
        )
    except (ValueError, RecursionError):
        raise MechanismFileError(f"{source} is not a mechanism file: it is not valid JSON") from None


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
        raise MechanismFileError(
            f"{source} has an unknown version: this library reads versions {VERSION} to {NEWEST}, each with "
            f"its own kinds"
        )
    marked = plain.get(MARK) is True  # false is never written: one mechanism, one document
    if engine is None or set(plain) != COMMON | engine.own_fields | ({MARK} if marked else set()):
        raise MechanismFileError(f"{source} does not have the fields of a mechanism file")
    names, epsilon = _names(plain["categories"], source, rules), read_fraction(plain["epsilon"], source)
    limit = rules.limit
    if not 0 < epsilon <= 100 or (limit is not None and epsilon > limit):
        allowed = 100 if limit is None else rules.max_epsilon
        raise MechanismFileError(f"{source} has epsilon {float(epsilon):g}, the policy allows {allowed}")
    stated, wholes = plain.pop("digest"), joined_wholes(plain)
    found = _canonical_digest(plain, source, wholes)
    if stated != found:
        raise MechanismFileError(f"{source} was changed: its digest is not that of its content")
    if rules.digest is not None and rules.digest != found:
        raise MechanismFileError(f"{source} is not the expected mechanism: its digest is {found[:16]}…")
    if not isinstance(plain["keeps_prior"], bool) or not _is_text_map(plain["options"]):
        raise MechanismFileError(f"{source} does not have the fields of a mechanism file")
    if not _is_label(plain["sampler"]) or not _matches(_HEX, plain["prior_digest"]):
        raise MechanismFileError(f"{source} does not have the fields of a mechanism file")
    ratio = read_fraction(plain["ratio"], source)
    if marked and rules.require_public_prior:
        raise MechanismFileError(
            f"{source} says that its prior was made from the users it serves; the policy wants a "
            f"public one (for an experiment: --accept-prior-from-users)"
        )
    drawn = engine.read(Fields(plain, source, len(names), BITS, wholes), ratio)
    if drawn.samples > rules.max_samples:
        raise MechanismFileError(
            f"{source} releases {drawn.samples} samples at once, the policy allows {rules.max_samples}"
        )
    mechanism = Mechanism(
        sampler=plain["sampler"],
        options=plain["options"],
        categories=names,
        epsilon=epsilon,
        ratio=ratio,
        engine=drawn,
        keeps_prior=plain["keeps_prior"],
        prior_digest=plain["prior_digest"],
        prior_from_users=marked,
    )
    # 1.0 for 1, "6/4" for "3/2": one mechanism, one way to write it. The rest is text, or read by its type;
    # the weights and places of an engine have been read in the one way in which they can be written.
    exact = type(plain["bits"]) is int
    read = engine.own_fields | {"categories"}  # the names are the very ones of the document
    heading = {name: value for name, value in plain.items() if name not in read}
    if not exact or mechanism.heading(names=False) != heading:
        raise MechanismFileError(f"{source} is not written in the canonical way")
    mechanism.__dict__["digest"] = found  # the same document: it need not be written out again
    return mechanism


def _names(values: object, source: str, rules: Policy) -> tuple[Category, ...]:
    if not isinstance(values, list) or not values:
        raise MechanismFileError(f"{source} has no categories")
    if len(values) > rules.max_categories:
        raise MechanismFileError(
            f"{source} has {len(values)} categories, the policy allows {rules.max_categories}"
        )
    if set(map(type, values)) not in ({str}, {int}):
        raise MechanismFileError(f"{source} must name its categories by strings or by integers")
    if type(values[0]) is int and max(map(abs, values)) >= LARGEST_INTEGER:
        raise MechanismFileError(f"{source} names a category by an integer beyond 2^53")
    if type(values[0]) is str and not _naming.is_text("".join(values)):
        raise MechanismFileError(f"{source} names a category by something that is not text")
    if rules.categories is not None and rules.categories != set(values):
        raise MechanismFileError(f"{source} does not have the categories that the policy expects")
    return tuple(values)  # that they are distinct is part of the certificate


def _is_label(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100 and value.isprintable()


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_text_map(value: object) -> bool:
    return isinstance(value, dict) and all(_is_label(k) and _is_label(v) for k, v in value.items())


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError
    return out


def _no_number(_: str) -> Any:
    """No field holds a fraction or an exponent: 1.0 and 1e0 are not ways to write 1."""
    raise ValueError


def _plain_whole(text: str) -> int:
    if text == "-0":
        raise ValueError
    return int(text)
