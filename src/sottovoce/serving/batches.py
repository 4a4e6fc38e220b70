"""The checks of a posted batch: what it must look like, and why it is refused. No reason repeats the content.

    {"reports": [{"mechanism": digest, "id": 32 hexadecimal digits, "category": name}, …]}

A file of groups adds "group" where groups share a mechanism. A batch is taken as a whole or not at all. A
refusal names the place of the first report that does not fit: its sender has the batch and can look.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .._naming import is_text
from ..prior import Category
from .served import Served

MOST_BYTES = 1 << 20
MOST_REPORTS = 1000
_FIELDS = frozenset({"mechanism", "id", "category"})
_WITH_GROUP = _FIELDS | {"group"}
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,15}", re.ASCII)

NOT_JSON = "the body must be JSON in UTF-8, with every name once and whole numbers only"
NOT_A_BATCH = 'the body must be {"reports": [...]} and nothing else'
NOT_SOME = f"a batch holds 1 to {MOST_REPORTS} reports"
NOT_A_REPORT = 'a report must be {"mechanism", "id", "category"} and, where groups are served, "group"'
NOT_AN_ID = "id must be 32 lower-case hexadecimal digits"
NOT_NAMED = "mechanism and group must be text, category text or a whole number"
FOREIGN = "the report was made with another mechanism than the one that is served here"
UNKNOWN = "the category is not one of the mechanism's"
WHICH_GROUP = "several groups share this mechanism: the report must name its group"
NOT_ITS_GROUP = "the mechanism is not that of the group"

Row = tuple[bytes, str, int]
"""A report that fits: its id, its group, and the place of its category."""


class Refusal(Exception):
    """Why a request is refused: a status, a reason in plain words, and the place of the report in a batch."""

    def __init__(self, status: int, reason: str, report: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.report = report

    def body(self) -> dict[str, Any]:
        """The refusal as it is answered."""
        return {"error": self.reason} | ({} if self.report is None else {"report": self.report})


def read_batch(body: bytes, served: Served) -> list[Row]:
    """The reports of a batch, or the refusal of all of them."""
    try:
        plain = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_once,
            parse_int=_whole,
            parse_float=_never,
            parse_constant=_never,
        )
    except (ValueError, RecursionError):
        raise Refusal(400, NOT_JSON) from None
    if type(plain) is not dict or list(plain) != ["reports"] or type(plain["reports"]) is not list:
        raise Refusal(400, NOT_A_BATCH)
    reports = plain["reports"]
    if not 0 < len(reports) <= MOST_REPORTS:
        raise Refusal(413 if reports else 400, NOT_SOME)
    rows = []
    for place, report in enumerate(reports):
        problem = _malformed(report)
        if problem:
            raise Refusal(400, problem, place)
    for place, report in enumerate(reports):
        try:
            rows.append(_row(report, served))
        except Refusal as refusal:
            raise Refusal(refusal.status, refusal.reason, place) from None
    return rows


def _malformed(report: Any) -> str | None:
    """Why something is no report of any mechanism."""
    if type(report) is not dict or report.keys() not in (_FIELDS, _WITH_GROUP):
        return NOT_A_REPORT
    category = report["category"]
    texts = [report["mechanism"], report.get("group", "")]
    if type(category) is not int:  # true is no whole number
        texts.append(category)
    if not all(map(is_text_or_empty, texts)):
        return NOT_NAMED
    if type(report["id"]) is not str or not _ID.fullmatch(report["id"]):
        return NOT_AN_ID
    return None


def is_text_or_empty(value: object) -> bool:
    """Whether a value is text without half a surrogate pair; a category may be the empty text."""
    return value == "" or is_text(value)


def _row(report: dict[str, Any], served: Served) -> Row:
    """A report as it is stored, if it is one of the mechanism that is served."""
    digest, group = report["mechanism"], report.get("group")
    groups = served.groups_of.get(digest)
    if groups is None:
        raise Refusal(422, FOREIGN)
    if group is None:
        if len(groups) > 1:
            raise Refusal(422, WHICH_GROUP)
        group = groups[0]
    elif served.by is None or group not in groups:
        raise Refusal(422, NOT_ITS_GROUP)
    category: Category = report["category"]
    place = served.places[digest].get(category)
    if place is None:
        raise Refusal(422, UNKNOWN)
    return bytes.fromhex(report["id"]), group, place


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError
    return out


def _whole(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    return int(text)


def _never(_: str) -> Any:
    raise ValueError
