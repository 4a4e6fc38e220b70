"""The live page: one file, whose script and style are named by their hashes in its own security policy."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Page:
    """The page and the policy that a browser holds it to."""

    content: bytes
    policy: str


def read_page() -> Page:
    """Read the page; only the script and the style that stand in it may run, and only this host is asked."""
    content = _PAGE.read_bytes()
    script, style = (_hash(content, tag) for tag in (b"script", b"style"))
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(content, policy)


def _hash(content: bytes, tag: bytes) -> str:
    """The hash of the one inline script or style, as a policy writes it."""
    (inside,) = re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), content, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside).digest()).decode('ascii')}'"
