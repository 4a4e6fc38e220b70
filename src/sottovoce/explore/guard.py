"""The guard in front of the page: it answers its owner's browser, and refuses everybody else alike.

The page shows private histories, and a port of 127.0.0.1 can be reached by every account of the machine and
by every web page that the browser has open. So a request has to name the secret of this run as the first part
of its path (a cookie would be sent to every port), this host and, from a browser, this origin; and of what
marimo offers only what the page itself asks for is passed on.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FILE = r"[A-Za-z0-9_-][A-Za-z0-9_.-]*"
_READ = (
    r"/|/health|/sse|/favicon\.ico|/manifest\.json|/logo\.png|/apple-touch-icon\.png|/public-files-sw\.js"
    rf"|/android-chrome-[0-9x]+\.png|/assets/{_FILE}|/@file/{_FILE}"
)
ALLOWED = {
    "GET": re.compile(_READ.encode()),
    "POST": re.compile(rb"/api/kernel/set_ui_element_value"),
    "websocket": re.compile(rb"/ws"),
}
"""What the page asks for, as it stands in the request: no escapes, no dots in front, no doubled slashes."""
_SHUT_DOWN = "MARIMO_SHUTDOWN"  # the reason on which marimo's page does not try to connect again


class Guard:
    """An ASGI application that passes on what may be seen under /<token>/ and refuses the rest."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._prefix = f"/{token}/".encode()
        self._hosts = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}
        self._headers = _response_headers(port)
        self._open: dict[int, Send] = {}
        self._ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it without saying why."""
        path = self._passed_path(scope)
        if path is None:
            await self._refuse(scope, receive, send)
            return
        # marimo never sees the token: it can neither log it nor put it into an answer
        headers = [(name, value) for name, value in scope["headers"] if name != b"referer"]
        inner = {**scope, "path": path.decode("ascii"), "raw_path": path, "headers": headers}
        if scope["type"] == "websocket":
            await self._pass_websocket(inner, receive, send)
        else:
            await self._app(inner, receive, self._with_headers(send))

    async def dismiss(self) -> None:
        """Tell every open page that this is the end.

        A page that kept trying to connect would tell the token to whoever is given the port next, and would
        show what that one sends.
        """
        self._ended = True
        for send in list(self._open.values()):
            with suppress(Exception):  # a page that has just gone need not be told
                await send({"type": "websocket.close", "code": 1000, "reason": _SHUT_DOWN})

    def _passed_path(self, scope: Scope) -> bytes | None:
        """The path behind the token, or None where the request must be refused."""
        if self._ended or scope["type"] not in ("http", "websocket"):
            return None
        raw: bytes = scope.get("raw_path") or b""
        known = secrets.compare_digest(raw[: len(self._prefix)], self._prefix)
        path = raw[len(self._prefix) - 1 :]
        routes = ALLOWED.get("websocket" if scope["type"] == "websocket" else scope["method"])
        if not known or routes is None or not routes.fullmatch(path):
            return None
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or hosts[0] not in self._hosts:  # another name for this machine: DNS rebinding
            return None
        if origins not in ([], [b"http://" + hosts[0]]):
            return None
        return path if _from_here(scope, path) else None

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same answer to everything, so that nothing can be learnt from it."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            headers = [*self._headers, (b"content-type", b"text/plain"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": b"refused\n"})

    async def _pass_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a WebSocket on and remember it while it is open."""
        key = id(scope)

        async def guarded(message: Message) -> None:
            if self._ended:
                return
            await send(message)
            if message["type"] == "websocket.accept":
                self._open[key] = send
            elif message["type"] == "websocket.close":
                self._open.pop(key, None)

        try:
            await self._app(scope, receive, guarded)
        finally:
            self._open.pop(key, None)

    def _with_headers(self, send: Send) -> Send:
        """Answers with our headers in place of marimo's, which allow every origin."""
        ours = {name for name, _ in self._headers}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [
                    (name, value)
                    for name, value in message.get("headers", [])
                    if name.lower() not in ours and not name.lower().startswith(b"access-control-")
                ]
                message = {**message, "headers": [*kept, *self._headers]}
            await send(message)

        return guarded


def _values(scope: Scope, name: bytes) -> list[bytes]:
    """All values of a header."""
    return [value for header, value in scope["headers"] if header.lower() == name]


def _from_here(scope: Scope, path: bytes) -> bool:
    """Whether the browser, if it says so at all, says that this page itself or its user asks.

    "same-site" is no more than "cross-site" here: every port of this host is the same site. Another page may
    only bring the user to ours, in a window of its own: so does the file that opens the browser.
    """
    if all(value in (b"none", b"same-origin") for value in _values(scope, b"sec-fetch-site")):
        return True
    mode, destination = _values(scope, b"sec-fetch-mode"), _values(scope, b"sec-fetch-dest")
    arrives = mode == [b"navigate"] and destination == [b"document"]
    return arrives and scope["type"] == "http" and path == b"/" and not scope["query_string"]


def _response_headers(port: int) -> list[tuple[bytes, bytes]]:
    """What every answer tells the browser: do not keep, frame, share or guess, and ask no other host."""
    sockets = f"ws://127.0.0.1:{port} ws://localhost:{port}"
    policy = (
        "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; "  # marimo and Vega need both
        f"connect-src 'self' data: blob: {sockets}; "
        "base-uri 'self'; form-action 'none'; object-src 'none'; frame-ancestors 'none'"
    )
    headers = {
        "cache-control": "no-store",
        "content-security-policy": policy,
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
    return [(name.encode(), value.encode()) for name, value in headers.items()]
