"""How a collector is run, and what it serves: plain values that every worker process is given or makes."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import ParameterError
from ..prior import Category
from ..release.file import ANY, parse_mechanisms, read_text
from ..release.mechanism import Mechanism, one_sample_each

THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "[::1]"})
CLIENT = Path(__file__).with_name("client")
"""Where the packaged client is."""
IN_CHECKOUT = Path(__file__).resolve().parents[3] / "clients" / "js"
"""Where it is in a checkout."""
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", re.ASCII)
_NAME = re.compile(r"[a-z0-9.-]{1,253}|\[[0-9a-f:]+\]", re.ASCII)


@dataclass(frozen=True)
class Settings:
    """The store, the names that are answered to (none: all), and what is served beside the reports."""

    store: Path
    names: frozenset[str] = THIS_MACHINE
    origins: frozenset[str] = frozenset()
    client: Path | None = None
    rate: float = 10_000.0
    page: bool = True


def is_this_machine(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_names(host: str, names: Sequence[str]) -> frozenset[str]:
    """The names to answer to: those given, and this machine's where nobody else is listened to.

    An address that others reach has names that are not known here; without --name it answers to all of them.
    """
    given = frozenset(name.strip().lower() for name in names)
    for name in given:
        if not _NAME.fullmatch(name):
            raise ParameterError(f"name must be a host name without a port, got {name!r}")
    if is_this_machine(host):
        return THIS_MACHINE | given
    return (given | {f"[{host}]" if ":" in host else host.lower()} | THIS_MACHINE) if given else frozenset()


def checked_origins(origins: Sequence[str]) -> frozenset[str]:
    """Origins as a browser writes them; "*" and a path are refused."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ParameterError(f"origin must look like https://example.org, without a path, got {origin!r}")
    return frozenset(origins)


def find_client() -> Path | None:
    """The folder of the JavaScript client: the packaged one, the checkout's, or none."""
    if CLIENT.is_dir():
        return CLIENT
    return IN_CHECKOUT if (IN_CHECKOUT / "package.json").is_file() else None


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
    one_sample_each(parsed.mechanisms.values(), "the collector")
    return Served(text, parsed.mechanisms, parsed.by)
