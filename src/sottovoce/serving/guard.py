"""The guard in front of the collector: which names it answers to, and what every answer tells a browser.

A port of 127.0.0.1 can be reached by every web page that a browser on this machine has open, under a name of
the page's own that leads here (DNS rebinding). So a collector that listens on this machine alone answers to
this machine's names and to those that were named with --name. No cookie is ever set, and none is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MISDIRECTED = b'{"error":"this collector has another name: see --name"}'
_PLAIN = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """An ASGI application that passes on requests to one of its names, all requests if it has none."""

    def __init__(self, app: ASGIApp, names: frozenset[str], *, shared: bool) -> None:
        self._app = app
        self._names = names
        headers = _PLAIN | ({} if shared else {"cross-origin-resource-policy": "same-origin"})
        self._headers = {name.encode(): value.encode() for name, value in headers.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or answer that it went astray."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":  # there are no WebSockets here
            await send({"type": "websocket.close", "code": 1008})
        elif self._names and _name_of(scope) not in self._names:
            headers = [
                *self._headers.items(),
                (b"content-type", b"application/json"),
                (b"connection", b"close"),
            ]
            await send({"type": "http.response.start", "status": 421, "headers": headers})
            await send({"type": "http.response.body", "body": MISDIRECTED})
        else:
            await self._app(scope, receive, self._with_headers(send))

    def _with_headers(self, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", []))
                there = {name.lower() for name, _ in given}
                own = [(name, value) for name, value in self._headers.items() if name not in there]
                message = {**message, "headers": [*given, *own]}
            await send(message)

        return guarded


def _name_of(scope: Scope) -> str | None:
    """The host that a request names, without its port; None where it names none or several."""
    hosts: list[bytes] = [value for header, value in scope["headers"] if header == b"host"]
    if len(hosts) != 1:
        return None
    text = hosts[0].decode("latin-1").lower()
    head, colon, port = text.rpartition(":")
    return head if colon and port.isascii() and port.isdigit() else text
