"""The mechanism files that a collector serves, and the checks of a batch, whose form docs/format.md has.

A batch is taken as a whole or not at all. A refusal never repeats the content, but names the index of the
first report that does not fit: its sender has the batch and can look.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ..checks import is_text
from ..collecting.store import Key
from ..errors import ParameterError
from ..groups import Groups
from ..records import Category
from ..release.file import ANY, no_duplicates, parse_mechanisms, read_text
from ..release.mechanism import Mechanism

MOST_BYTES = 1 << 20
MOST_REPORTS = 1000
_FIELDS = frozenset({"mechanism", "id", "category"})
_WITH_GROUP = _FIELDS | {"group"}
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,15}", re.ASCII)

Row = tuple[bytes, Key, int]
"""A report that fits: its id, its mechanism and group, and the index of its category."""


@dataclass(frozen=True, eq=False)
class Served:
    """A mechanism file byte for byte, and the mechanisms in it: one, or one per group."""

    content: bytes
    digest: str
    mechanisms: Groups[Mechanism]

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digest of each group's mechanism."""
        return {group: mechanism.digest for group, mechanism in self.mechanisms.items()}

    @property
    def keys(self) -> list[Key]:
        """What the store knows these mechanisms by."""
        return [(digest, group) for group, digest in self.digests.items()]


def read_served(path: Path) -> Served:
    """Read a mechanism file once, check it in full, and keep the very bytes that were checked."""
    return parse_served(read_text(path, ANY), str(path))


def parse_served(text: str, source: str) -> Served:
    """What a text describes."""
    parsed = parse_mechanisms(text, source, ANY)
    return Served(text.encode("utf-8"), parsed.digest, parsed.mechanisms)


class Reportable(NamedTuple):
    """A mechanism that reports may name: its groups, whether they have names, and where its answers are."""

    groups: list[str]
    named: bool
    indices: Mapping[Category, int]


def reportable(files: Iterable[Served]) -> dict[str, Reportable]:
    """The mechanisms of all files by their digest; groups of one file with equal priors share a mechanism."""
    known: dict[str, Reportable] = {}
    for served in files:
        own: dict[str, Reportable] = {}
        for group, mechanism in served.mechanisms.items():
            fresh = Reportable([], served.mechanisms.by is not None, mechanism.answer_index)
            own.setdefault(mechanism.digest, fresh).groups.append(group)
        if not known.keys().isdisjoint(own):
            raise ParameterError("two of the files hold the same mechanism: serve one of them")
        known |= own
    return known


class Refusal(Exception):
    """Why a request is refused: a status, a reason in plain words, and the index of the report in a batch."""

    def __init__(self, status: int, reason: str, report: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.report = report

    def body(self) -> dict[str, Any]:
        """The refusal as it is answered."""
        return {"error": self.reason} | ({} if self.report is None else {"report": self.report})


def read_batch(body: bytes, known: Mapping[str, Reportable]) -> list[Row]:
    """The reports of a batch, or the refusal of all of them."""
    numbers: Any = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), _integer)
    try:
        plain = json.loads(body.decode("utf-8"), object_pairs_hook=no_duplicates, **numbers)
    except (ValueError, RecursionError):
        reason = "the body must be JSON in UTF-8, with every name once and integers only"
        raise Refusal(400, reason) from None
    if type(plain) is not dict or list(plain) != ["reports"] or type(plain["reports"]) is not list:
        raise Refusal(400, 'the body must be {"reports": [...]} and nothing else')
    reports = plain["reports"]
    if not 0 < len(reports) <= MOST_REPORTS:
        raise Refusal(413 if reports else 400, f"a batch holds 1 to {MOST_REPORTS} reports")
    for i, report in enumerate(reports):
        problem = _malformed(report)
        if problem:
            raise Refusal(400, problem, i)
    return [_row(report, i, known) for i, report in enumerate(reports)]


def _malformed(report: Any) -> str | None:
    """Why something is no report of any mechanism."""
    if type(report) is not dict or report.keys() not in (_FIELDS, _WITH_GROUP):
        return 'a report must be {"mechanism", "id", "category"} and, where groups are served, "group"'
    texts = [report["mechanism"], report.get("group", "")]
    if type(report["category"]) is not int:  # true is no integer
        texts.append(report["category"])
    if not all(map(is_text, texts)):
        return "mechanism and group must be text, category text or an integer"
    if type(report["id"]) is not str or not _ID.fullmatch(report["id"]):
        return "id must be 32 lower-case hexadecimal digits"
    return None


def _row(report: dict[str, Any], i: int, known: Mapping[str, Reportable]) -> Row:
    """Report `i` of a batch as it is stored, if it is one of a mechanism that is served."""
    digest, group = report["mechanism"], report.get("group")
    mechanism = known.get(digest)
    if mechanism is None:
        raise Refusal(422, "the report was made with another mechanism than those that are served here", i)
    if group is None and len(mechanism.groups) > 1:
        raise Refusal(422, "several groups share this mechanism: the report must name its group", i)
    if group is not None and not (mechanism.named and group in mechanism.groups):
        raise Refusal(422, "the mechanism is not that of the group", i)
    index = mechanism.indices.get(report["category"])
    if index is None:
        raise Refusal(422, "the category is not one of the mechanism's", i)
    return bytes.fromhex(report["id"]), (digest, mechanism.groups[0] if group is None else group), index


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    return int(text)
