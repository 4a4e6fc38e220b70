"""What a collector serves, and the checks of a posted batch against it. No refusal repeats the content.

    {"reports": [{"mechanism": digest, "id": 32 hexadecimal digits, "category": name}, …]}

A file of groups adds "group" where groups share a mechanism. A batch is taken as a whole or not at all. A
refusal names the index of the first report that does not fit: its sender has the batch and can look.
Batches come at one rate for everybody, because no address is kept to distinguish senders by.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .._naming import is_text
from ..prior import Category
from ..release.file import ANY, parse_mechanisms, read_text
from ..release.mechanism import Mechanism

MOST_BYTES = 1 << 20
MOST_REPORTS = 1000
REPORT_BYTES = 150
"""Bytes of a short report. A body that is refused costs as much as reports of its size would."""
SECONDS = 2.0
"""How much of the rate a quiet time saves up."""
_FIELDS = frozenset({"mechanism", "id", "category"})
_WITH_GROUP = _FIELDS | {"group"}
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,15}", re.ASCII)

Row = tuple[bytes, str, int]
"""A report that fits: its id, its group, and the index of its category."""


@dataclass(frozen=True, eq=False)
class Served:
    """A mechanism file byte for byte, and the mechanisms in it: one, or one per group."""

    text: str
    mechanisms: Mapping[str, Mechanism]
    by: str | None

    @cached_property
    def content(self) -> bytes:
        """The file as it is sent."""
        return self.text.encode("utf-8")

    @cached_property
    def etag(self) -> str:
        """What a client that has the same bytes already names them by."""
        return f'"{hashlib.sha256(self.content).hexdigest()}"'

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digest of each group's mechanism."""
        return {group: mechanism.digest for group, mechanism in self.mechanisms.items()}

    @cached_property
    def groups_of(self) -> dict[str, list[str]]:
        """The groups of each digest: groups with equal priors have equal mechanisms."""
        groups: dict[str, list[str]] = {}
        for group, digest in self.digests.items():
            groups.setdefault(digest, []).append(group)
        return groups

    @cached_property
    def indices(self) -> dict[str, Mapping[Category, int]]:
        """The index of every answer in its mechanism, by digest."""
        return {digest: self.mechanisms[groups[0]].answer_index for digest, groups in self.groups_of.items()}


def read_served(path: Path) -> Served:
    """Read a mechanism file once, check it in full, and keep the very bytes that were checked."""
    return parse_served(read_text(path, ANY), str(path))


def parse_served(text: str, source: str) -> Served:
    """What a text describes; a worker process makes its own from the text that the first process read."""
    parsed = parse_mechanisms(text, source, ANY)
    return Served(text, parsed.mechanisms, parsed.by)


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


def read_batch(body: bytes, served: Served) -> list[Row]:
    """The reports of a batch, or the refusal of all of them."""
    strict: Any = {"object_pairs_hook": _once, "parse_int": _integer}
    try:
        plain = json.loads(body.decode("utf-8"), **strict, parse_float=_never, parse_constant=_never)
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
    return [_row(report, i, served) for i, report in enumerate(reports)]


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


def _row(report: dict[str, Any], i: int, served: Served) -> Row:
    """Report `i` of a batch as it is stored, if it is one of the mechanism that is served."""
    digest, group = report["mechanism"], report.get("group")
    groups = served.groups_of.get(digest)
    if groups is None:
        raise Refusal(422, "the report was made with another mechanism than the one that is served here", i)
    if group is None and len(groups) > 1:
        raise Refusal(422, "several groups share this mechanism: the report must name its group", i)
    if group is not None and (served.by is None or group not in groups):
        raise Refusal(422, "the mechanism is not that of the group", i)
    index = served.indices[digest].get(report["category"])
    if index is None:
        raise Refusal(422, "the category is not one of the mechanism's", i)
    return bytes.fromhex(report["id"]), groups[0] if group is None else group, index


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError
    return out


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    return int(text)


def _never(_: str) -> Any:
    raise ValueError


class Bucket:
    """Reports per second of this process. A batch may overdraw it, and whoever comes next waits for that."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._level = rate * SECONDS
        self._seen = clock()

    def wait(self) -> float:
        """Seconds until a batch is taken again; zero if one is taken now."""
        now = self._clock()
        self._level = min(self._rate * SECONDS, self._level + (now - self._seen) * self._rate)
        self._seen = now
        return 0.0 if self._level > 0 else -self._level / self._rate + 1 / self._rate

    def take(self, reports: int) -> None:
        """Pay for a batch."""
        self._level -= reports
