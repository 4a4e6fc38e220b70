"""What a collector serves: the text of a mechanism file, and the mechanisms that its reports are of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..prior import Category
from ..release.justified_text import read_justified
from ..release.mechanism import Mechanism, one_sample_each
from ..release.mechanism_file import parse_mechanisms
from ..release.policy import ANY


@dataclass(frozen=True, eq=False)
class Served:
    """A mechanism file byte for byte, and the mechanisms in it: one under "all", or one per group."""

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
        return {group: one.digest for group, one in self.mechanisms.items()}

    @cached_property
    def groups_of(self) -> dict[str, list[str]]:
        """The groups of each digest: groups with equal priors have equal mechanisms."""
        found: dict[str, list[str]] = {}
        for group, digest in self.digests.items():
            found.setdefault(digest, []).append(group)
        return found

    @cached_property
    def places(self) -> dict[str, dict[Category, int]]:
        """The place of every category in its mechanism, by digest."""
        return {
            self.digests[groups[0]]: {
                name: place for place, name in enumerate(self.mechanisms[groups[0]].categories)
            }
            for groups in self.groups_of.values()
        }


def read_served(path: Path) -> Served:
    """Read a mechanism file once, check it in full, and keep the very bytes that were checked."""
    return parse_served(read_justified(path, ANY.max_categories), str(path))


def parse_served(text: str, source: str) -> Served:
    """What a text describes; a worker process makes its own from the text that the first process read."""
    found = parse_mechanisms(text, source, ANY)
    one_sample_each(found.mechanisms.values(), "the collector")
    return Served(text, found.mechanisms, found.by)
