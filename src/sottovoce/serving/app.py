"""The collector's application: mechanism files, reports, and what an operator looks at.

A port of 127.0.0.1 can be reached by every web page that a browser on this machine has open, under a name of
the page's own that leads here (DNS rebinding). So a collector that listens on this machine alone answers to
this machine's names and to those that the operator named. No cookie is ever set, and none is read.
"""

from __future__ import annotations

import asyncio
import base64
import csv
import hashlib
import hmac
import io
import ipaddress
import json
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..collecting.store import create_store, export, reading, stored_totals
from ..errors import ParameterError
from ..groups import Groups
from ..release.mechanism import Mechanism
from .batches import MOST_BYTES, Refusal, Served, read_batch, reportable
from .live import Live
from .metrics import Metrics
from .operations import OPERATIONS, Operation, openapi
from .writer import Writer

PAGE = Path(__file__).with_name("page.html")
THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "[::1]"})
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", re.ASCII)
_NAME = re.compile(r"[a-z0-9.-]{1,253}|\[[0-9a-f:]+\]", re.ASCII)

PIECE = 1 << 15
"""Bytes of an answer that are handed to a connection at once; the next ones wait until it has taken them."""
MOST_EXPORTS = 4
"""Exports that are made or sent at once: each has a file of its own in TMPDIR until it is sent."""
SECONDS_FOR_A_BODY = 20.0
_KEY = re.compile(rb"[A-Za-z0-9._~+/=-]{20,200}")
_JSON = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)
_REFUSED_WITH = {
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},  # the rest of the body is not read
    413: {"connection": "close"},
    421: {"connection": "close"},
    503: {"retry-after": "1"},
}
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True)
class Settings:
    """The store, the names that are answered to (none: all), and the keys that operations need."""

    store: Path
    names: frozenset[str] = THIS_MACHINE
    origins: frozenset[str] = frozenset()
    page: bool = True
    keys: Mapping[str, frozenset[bytes]] = field(default_factory=dict)


def is_this_machine(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_names(host: str, names: Sequence[str]) -> frozenset[str]:
    """The names to answer to: those given, and this machine's where nobody else is listened to.

    An address that others reach has names that are not known here: unless some are given, it answers to
    all of them.
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


def read_keys(path: Path | None) -> frozenset[bytes]:
    """The SHA-256 of each key of a file, which has one key per line; without a file there are none."""
    if path is None:
        return frozenset()
    lines = [line.strip() for line in path.read_bytes().splitlines() if line.strip()]
    if not lines or not all(map(_KEY.fullmatch, lines)):
        raise ParameterError(
            f"{path} must hold one key per line, each of 20 to 200 letters, digits and -._~+/= (make one "
            f"with: openssl rand -hex 32)"
        )
    return frozenset(hashlib.sha256(key).digest() for key in lines)


OPENED = frozenset({"/v1/reports", "/v1/mechanism"})
"""The paths that --origin opens: pages of these sites may fetch a mechanism, and send reports."""


class _Shared(CORSMiddleware):
    """What pages of other sites may do."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let every other path be answered as to a page of no site at all."""
        called = super().__call__ if scope.get("path") in OPENED else self.app
        await called(scope, receive, send)


def make_app(settings: Settings, files: Sequence[Served], say: Callable[[str], None]) -> ASGIApp:
    """The application of one process; the store is opened when it starts and closed when it ends."""
    answers = _Answers(settings, files, say)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(answers.close)

    routes = [answers.route(operation) for operation in answers.operations]
    handlers: Any = {HTTPException: _no_route, Exception: _failed}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False
    if not settings.origins:
        return guarded(app, settings.names, opened=frozenset())
    allowed: Any = {"allow_origins": settings.origins, "allow_methods": ["GET", "POST"]}
    allowed |= {"allow_headers": ["authorization", "content-type"]}
    # Around the whole application, not among its middleware: a page must be able to read a 500, too.
    shared = _Shared(app, **allowed, expose_headers=["etag", "retry-after"])
    return guarded(shared, settings.names, opened=OPENED)


class _Answers:
    """What a collector answers: a method for each operation, as `OPERATIONS` describes it."""

    def __init__(self, settings: Settings, files: Sequence[Served], say: Callable[[str], None]) -> None:
        self.operations = [operation for operation in OPERATIONS if settings.page or not operation.live]
        self._settings, self._files, self._say = settings, files, say
        self._known = reportable(files)
        if not os.path.lexists(settings.store):
            with suppress(FileExistsError):  # another collector was quicker: both share its store
                create_store(settings.store)
        self._writer = Writer(settings.store, [key for served in files for key in served.keys], say)
        self.close = self._writer.close
        self._metrics = Metrics()
        self._live = {served.digest: Live(served, settings.store, self._writer.numbers) for served in files}
        self._reading = asyncio.Lock()
        self._exports = asyncio.Semaphore(MOST_EXPORTS)

    def route(self, operation: Operation) -> Route:
        """The route of an operation, which asks for a key first where keys are set."""
        handler = getattr(self, operation.name)
        keys = self._settings.keys.get(operation.key)

        async def answer(request: Request) -> Response:
            begin = time.perf_counter()
            try:
                if keys:
                    _check_key(request, keys)
                response: Response = await handler(request)
            except Refusal as refusal:
                response = _refused(refusal)
            if operation.name == "reports":
                self._metrics.answered(response.status_code, time.perf_counter() - begin)
            return response

        return Route(operation.path, answer, methods=[operation.method])

    def _file(self, request: Request) -> Served:
        """The mechanism file that a request names by its digest, or the first one."""
        digest = request.query_params.get("digest", self._files[0].digest)
        for served in self._files:
            if served.digest == digest:
                return served
        raise Refusal(404, "no mechanism file with this digest is served here")

    async def mechanism(self, request: Request) -> Response:
        served = self._file(request)
        etag = f'"{served.digest}"'
        headers = {"etag": etag, "cache-control": "no-cache"}
        tags = request.headers.get("if-none-match", "").split(",")
        known = [tag.strip().removeprefix("W/") for tag in tags]
        if etag in known or known == ["*"]:
            return Response(status_code=304, headers=headers)
        return Response(served.content, media_type="application/json", headers=headers)

    async def reports(self, request: Request) -> Response:
        """Take a batch: checked as a whole, stored as a whole, and answered when it is on the disk."""
        if not _JSON.fullmatch(request.headers.get("content-type", "").strip()):
            raise Refusal(415, "a batch is sent as content-type application/json")
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Refusal(415, "a batch is sent as it is, without a content-encoding")
        body = await _body(request)
        self._metrics.received(len(body))
        rows = read_batch(body, self._known)
        self._metrics.stored(await asyncio.wrap_future(self._writer.store(rows)), len(rows))
        return _json(202, {"accepted": len(rows)})

    async def estimate(self, request: Request) -> Response:
        """What the reports tell up to now; one computation at a time, whoever asks."""
        live, mechanisms = self._live[self._file(request).digest], list(self._live)
        async with self._reading:
            return Response(await asyncio.to_thread(live.answer, mechanisms), media_type="application/json")

    async def export(self, request: Request) -> Response:
        mechanisms, group = self._file(request).mechanisms, request.query_params.get("group")
        if group is not None:
            if mechanisms.by is None or group not in mechanisms:
                raise Refusal(404, "the mechanism file has no such group")
            mechanisms = Groups({group: mechanisms[group]}, mechanisms.by)
        if self._exports.locked():
            raise Refusal(503, "the collector is sending as many exports as it does at once: ask again later")
        return _Export(lambda file: self._write(mechanisms, file), self._exports)

    def _write(self, mechanisms: Groups[Mechanism], file: BinaryIO) -> None:
        """Write the reports of one moment to a file, as CSV."""
        try:
            for rows in export(self._settings.store, mechanisms):
                part = io.StringIO()
                csv.writer(part, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
                file.write(part.getvalue().encode())
            file.flush()
        except OSError as problem:
            self._say(f"an export was not sent: its temporary file: {problem.strerror}")
            raise

    async def healthz(self, _: Request) -> Response:
        """Whether the store takes writes, by a write that changes nothing."""
        try:
            await asyncio.wrap_future(self._writer.store([]))
        except Refusal:
            why = "the store takes no writes; the collector's standard error has the reason\n"
            return Response(why, 503, media_type="text/plain")
        return Response("ok\n", media_type="text/plain")

    async def metrics(self, _: Request) -> Response:
        return Response(await asyncio.to_thread(self._measured), media_type="text/plain; version=0.0.4")

    def _measured(self) -> str:
        path, numbers = self._settings.store, self._writer.numbers
        with reading(path) as database:
            totals = stored_totals(database)
        stored = {
            served.digest: sum(totals.get(numbers[key], 0) for key in served.keys) for served in self._files
        }
        there = [file for file in (path, path.with_name(f"{path.name}-wal")) if file.exists()]
        return self._metrics.text(stored, sum(file.stat().st_size for file in there))

    async def openapi(self, _: Request) -> Response:
        keyed = [kind for kind, keys in self._settings.keys.items() if keys]
        return _json(200, openapi(self.operations, keyed))

    async def page(self, _: Request) -> Response:
        """The live page: only its own script and style may run, and only this host is asked."""
        content = PAGE.read_bytes()
        script, style = (_hash(content, tag) for tag in (b"script", b"style"))
        policy = f"{_POLICY}; script-src {script}; style-src {style}; connect-src 'self'"
        return Response(content, media_type="text/html", headers={"content-security-policy": policy})


def _check_key(request: Request, keys: Iterable[bytes]) -> None:
    """Refuse a request that does not come with one of the keys; how long that takes tells nothing of them."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    digest = hashlib.sha256(key.strip().encode("latin-1")).digest()
    if scheme.lower() != "bearer" or not sum(hmac.compare_digest(digest, known) for known in keys):
        raise Refusal(401, "this needs a key of the operator's: Authorization: Bearer, then the key")


class _Export(Response):
    """A table that is written to a private file, and then sent from there.

    A transaction that a reader could hold open by reading slowly would keep SQLite from emptying its log, in
    which the reports are in the order of their arrival: it ends before the first byte is sent. The file has
    mode 0600 and no name, so that nothing is left of it however the process ends.
    """

    def __init__(self, write: Callable[[BinaryIO], None], places: asyncio.Semaphore) -> None:
        super().__init__()
        self._write, self._places = write, places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the file, send it, and give the place back, whatever happens."""
        async with self._places:
            with tempfile.TemporaryFile() as file:
                await asyncio.to_thread(self._write, file)
                size = {"content-length": str(file.seek(0, os.SEEK_END))}
                file.seek(0)
                answer = StreamingResponse(_parts(file), headers=size, media_type="text/csv")
                await answer(scope, receive, send)


async def _parts(file: BinaryIO) -> AsyncIterator[bytes]:
    while part := await asyncio.to_thread(file.read, PIECE):
        yield part


async def _body(request: Request) -> bytes:
    """The body of a request, no longer and no slower than a batch may be."""
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise Refusal(413, f"a batch has at most {MOST_BYTES} bytes")
    except TimeoutError:
        raise Refusal(408, "the batch came too slowly") from None
    except ClientDisconnect:
        raise Refusal(400, "the batch did not come to its end") from None
    return bytes(body)


def _hash(content: bytes, tag: bytes) -> str:
    """The hash of the one inline script or style, as a policy writes it."""
    (inside,) = re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), content, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside).digest()).decode('ascii')}'"


def _json(status: int, content: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    return Response(json.dumps(content), status, headers, "application/json")


def _refused(refusal: Refusal) -> Response:
    return _json(refusal.status, refusal.body(), _REFUSED_WITH.get(refusal.status))


async def _no_route(_: Request, problem: HTTPException) -> Response:
    reason = "there is nothing here: see /openapi.json" if problem.status_code == 404 else problem.detail
    return _json(problem.status_code, {"error": reason}, problem.headers)


async def _failed(_request: Request, _problem: Exception) -> Response:
    return _json(500, {"error": "the collector failed; nothing of this request was accepted"})


def guarded(app: ASGIApp, names: frozenset[str], *, opened: frozenset[str]) -> ASGIApp:
    """An application that answers to these names, to all if there are none.

    Its answers have our headers, and are sent in pieces. Pages of other sites may use the paths `opened`.
    """
    public = {name.encode(): value.encode() for name, value in _HEADERS.items()}
    closed = public | {b"cross-origin-resource-policy": b"same-origin"}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        headers = public if scope.get("path") in opened else closed

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": list((headers | dict(message.get("headers", []))).items())}
            for piece in _pieces(message):
                await send(piece)

        if scope["type"] == "http" and names and _name_of(scope) not in names:
            refusal = _refused(Refusal(421, "this collector does not serve this host name"))
            await refusal(scope, receive, send_guarded)
        else:
            await app(scope, receive, send_guarded)

    return answer


def _pieces(message: Message) -> Iterator[Message]:
    """A message as several with little of the body in each: the server sends one when the last was taken."""
    body = message.get("body", b"")
    if message["type"] != "http.response.body" or len(body) <= PIECE:
        yield message
        return
    for begin in range(0, len(body), PIECE):
        end = begin + PIECE
        more = end < len(body) or message.get("more_body", False)
        yield {**message, "body": body[begin:end], "more_body": more}


def _name_of(scope: Scope) -> str | None:
    """The host that a request names, without its port; None where it names none or several."""
    hosts: list[bytes] = [value for header, value in scope["headers"] if header == b"host"]
    if len(hosts) != 1:
        return None
    text = hosts[0].decode("latin-1").lower()
    head, colon, port = text.rpartition(":")
    return head if colon and port.isascii() and port.isdigit() else text
