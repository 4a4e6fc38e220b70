"""How a collector is run: a plain value that every worker process is given."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import ParameterError

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


def checked_names(host: str, names: list[str]) -> frozenset[str]:
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


def checked_origins(origins: list[str]) -> frozenset[str]:
    """Origins as a browser writes them; "*" and a path are refused."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ParameterError(f"origin must look like https://example.org, without a path, got {origin!r}")
    return frozenset(origins)


def find_client(folder: Path | None) -> Path | None:
    """The folder of the JavaScript client: the one named, the packaged one, the checkout's, or none."""
    if folder is not None:
        if not folder.is_dir():
            raise ParameterError(f"client must be a folder with the JavaScript client, got {folder}")
        return folder.resolve()
    if CLIENT.is_dir():
        return CLIENT
    return IN_CHECKOUT if (IN_CHECKOUT / "package.json").is_file() else None
