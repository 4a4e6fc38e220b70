"""The collector's application: the mechanism file, the client, reports, and the estimate as it is now.

A port of 127.0.0.1 can be reached by every web page that a browser on this machine has open, under a name of
the page's own that leads here (DNS rebinding). So a collector that listens on this machine alone answers to
this machine's names and to those that were named with --name. No cookie is ever set, and none is read.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import json
import math
import mimetypes
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .._atomic import inf_to_null
from .._validate import FloatArray
from ..collecting.estimate import TOGETHER, Estimate, estimate, whole_population
from ..collecting.store import counts_in, reading
from ..errors import ParameterError, SottovoceError
from .batches import MOST_BYTES, REPORT_BYTES, Bucket, Refusal, Served, read_batch
from .writer import Writer

PAGE = Path(__file__).with_name("page.html")
THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "[::1]"})
CLIENT = Path(__file__).with_name("client")
IN_CHECKOUT = Path(__file__).resolve().parents[3] / "clients" / "js"
"""Where the packaged client is, and where it is in a checkout."""
_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", re.ASCII)
_NAME = re.compile(r"[a-z0-9.-]{1,253}|\[[0-9a-f:]+\]", re.ASCII)

SECONDS_FOR_A_BODY = 20.0
MOST_ROWS = 25
MOST_GROUPS = 12
LEAST_REST, REST = 1.0, 10.0
"""Seconds between two computations: at least so many, and so many times what the last one took."""

_JSON = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)
_SERVED_FILE = re.compile(
    r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*\.(?:m?js|ts|json|map)"
)
_REASONS = {
    404: "there is nothing here: see /v1/mechanism, /v1/reports and /client/",
    405: "this is asked with another method",
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


def make_app(settings: Settings, served: Served, say: Callable[[str], None]) -> ASGIApp:
    """The application of one process; the store is opened when it starts and closed when it ends."""
    writer = Writer(settings.store, served.digests, say)
    answers = _Answers(served, writer, Bucket(settings.rate), Live(served, settings.store, writer.numbers))
    _ = served.indices  # made now, not while the first sender waits

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(writer.close)

    routes: list[Route | Mount] = [
        Route("/v1/mechanism", answers.mechanism),
        Route("/v1/reports", answers.reports, methods=["POST"]),
    ]
    if settings.client is not None:
        for kind in (".js", ".mjs"):  # some systems map them to text/plain, which nosniff refuses
            mimetypes.add_type("text/javascript", kind)
        routes.append(Mount("/client", _Client(directory=settings.client)))
    if settings.page:
        routes += [Route("/", _page()), Route("/v1/estimate", answers.estimate)]
    shared = []
    if settings.origins:
        methods: Any = {"allow_origins": settings.origins, "allow_methods": ["GET", "POST"]}
        headers: Any = {"allow_headers": ["content-type"], "expose_headers": ["etag", "retry-after"]}
        shared = [Middleware(CORSMiddleware, **methods, **headers)]
    handlers: Any = {HTTPException: _no_route, Refusal: _refused, Exception: _failed}
    app = Starlette(routes=routes, lifespan=lifespan, middleware=shared, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, settings.names, shared=bool(settings.origins))


class _Answers:
    """What a collector answers at /v1/."""

    def __init__(self, served: Served, writer: Writer, bucket: Bucket, live: Live) -> None:
        self._served, self._writer, self._bucket, self._live = served, writer, bucket, live
        self._lock = asyncio.Lock()

    async def mechanism(self, request: Request) -> Response:
        """The mechanism file, byte for byte."""
        headers = {"etag": self._served.etag, "cache-control": "no-cache"}
        tags = request.headers.get("if-none-match", "").split(",")
        known = [tag.strip().removeprefix("W/") for tag in tags]
        if self._served.etag in known or known == ["*"]:
            return Response(status_code=304, headers=headers)
        return Response(self._served.content, media_type="application/json", headers=headers)

    async def reports(self, request: Request) -> Response:
        """Take a batch: checked as a whole, stored as a whole, and answered when it is on the disk."""
        wait = self._bucket.wait()
        if wait > 0:
            return _json(429, "reports come too fast for this collector: send the batch again later", wait)
        if not _JSON.fullmatch(request.headers.get("content-type", "").strip()):
            raise Refusal(415, "a batch is sent as content-type application/json")
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Refusal(415, "a batch is sent as it is, without a content-encoding")
        body = await _body(request)
        try:
            rows = read_batch(body, self._served)
        except Refusal:
            self._bucket.take(1 + len(body) // REPORT_BYTES)
            raise
        self._bucket.take(len(rows))
        await asyncio.wrap_future(self._writer.store(rows))
        return _json(202, {"accepted": len(rows)})

    async def estimate(self, _: Request) -> Response:
        """What the reports tell up to now; one computation at a time, whoever asks."""
        async with self._lock:
            return Response(await asyncio.to_thread(self._live.answer), media_type="application/json")


class Live:
    """The estimate as it is now, for the live page: computed once for everybody who asks, and not too often.

    All that it shows is made from reports that were private before they were sent: post-processing, which
    costs no privacy. Its cost follows the categories, not the reports.
    """

    def __init__(
        self, served: Served, path: Path, numbers: dict[str, int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._served = served
        self._path = path
        self._numbers = numbers
        self._clock = clock
        self._due = -1.0
        self._answer = b""

    def answer(self) -> bytes:
        """JSON of the estimate, at most a little old."""
        begin = self._clock()
        if begin >= self._due or not self._answer:
            self._answer = json.dumps(inf_to_null(self._now())).encode("ascii")
            end = self._clock()
            self._due = end + max(LEAST_REST, REST * (end - begin))
        return self._answer

    def _now(self) -> dict[str, Any]:
        with reading(self._path) as database:
            counts = {
                group: counts_in(database, self._numbers[group], len(mechanism.answers))
                for group, mechanism in self._served.mechanisms.items()
            }
        total = int(sum(reports.sum() for reports in counts.values()))
        first = next(iter(self._served.mechanisms.values()))
        facts = {"reports": total, "sampler": first.sampler, "epsilon": float(first.epsilon)}
        return {**facts, "groups": self._groups(counts) if total else []}

    def _groups(self, counts: dict[str, FloatArray]) -> list[dict[str, Any]]:
        """The whole population first, if there are groups, then the groups with the most reports."""
        estimates: dict[str, Estimate] = {}
        silent: list[dict[str, Any]] = []
        for group, reports in sorted(counts.items(), key=lambda pair: -float(pair[1].sum())):
            try:
                estimates[group] = estimate(self._served.mechanisms[group], reports)
            except SottovoceError as problem:  # one report, or a mechanism that cannot be undone
                facts = {"group": group, "reports": int(reports.sum())}
                silent.append({**facts, "verdict": f"{problem}.", "rows": []})
        shown = [_shown(group, shares) for group, shares in list(estimates.items())[:MOST_GROUPS]]
        if len(estimates) > 1:
            shown.insert(0, _shown(TOGETHER, whole_population(estimates)))
        return [*shown, *silent[: max(0, MOST_GROUPS - len(shown))]]


def _shown(group: str, shares: Estimate) -> dict[str, Any]:
    """What the page shows of one estimate: the verdict, what the numbers are, and the largest of them."""
    low, high = shares.interval()
    largest = (-shares.values).argsort(kind="stable")[:MOST_ROWS]
    return {
        "group": group,
        "reports": int(shares.reports),
        "verdict": shares.verdict().summary(),
        "note": shares.summary(),
        "level": shares.level,
        "left_out": len(shares.values) - len(largest),
        "rows": [
            {
                "category": shares.categories[i],
                "reports": int(shares.support[i]),
                "prior": float(shares.model.prior[i]),
                "share": float(shares.shares[i]),
                "low": float(low[i]),
                "high": float(high[i]),
            }
            for i in largest.tolist()
        ],
    }


async def _body(request: Request) -> bytes:
    """The body of a request, no longer and no slower than a batch may be."""
    too_large = Refusal(413, f"a batch has at most {MOST_BYTES} bytes")
    stated = request.headers.get("content-length", "")
    if stated.isascii() and stated.isdigit() and int(stated[:20]) > MOST_BYTES:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise too_large
    except TimeoutError:
        raise Refusal(408, "the batch came too slowly") from None
    except ClientDisconnect:
        raise Refusal(400, "the batch did not come to its end") from None
    return bytes(body)


def _page() -> Callable[[Request], Awaitable[Response]]:
    content = PAGE.read_bytes()
    script, style = (_hash(content, tag) for tag in (b"script", b"style"))
    policy = f"{_POLICY}; script-src {script}; style-src {style}; connect-src 'self'"

    async def answer(_: Request) -> Response:
        """The live page: only its own script and style may run, and only this host is asked."""
        return Response(content, media_type="text/html", headers={"content-security-policy": policy})

    return answer


def _hash(content: bytes, tag: bytes) -> str:
    """The hash of the one inline script or style, as a policy writes it."""
    (inside,) = re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), content, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside).digest()).decode('ascii')}'"


class _Client(StaticFiles):
    """The files of the JavaScript client: code and types, and nothing else that may lie in the folder."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if not _SERVED_FILE.fullmatch(path.replace("\\", "/")):
            raise HTTPException(404, "the client has no such file")
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "no-cache"
        return answer


def _json(status: int, content: str | dict[str, Any], wait: float | None = None) -> Response:
    """An answer; text is the reason of a refusal."""
    headers = {} if wait is None else {"retry-after": str(math.ceil(wait))}
    body = json.dumps({"error": content} if isinstance(content, str) else content)
    return Response(body, status, headers, "application/json")


async def _refused(_: Request, refusal: Refusal) -> Response:
    answer = _json(refusal.status, refusal.body(), 1.0 if refusal.status == 503 else None)
    if refusal.status in (408, 413):  # the rest of the body is not read
        answer.headers["connection"] = "close"
    return answer


async def _no_route(_: Request, problem: HTTPException) -> Response:
    answer = _json(problem.status_code, _REASONS.get(problem.status_code, problem.detail))
    answer.headers.update(problem.headers or {})
    return answer


async def _failed(_request: Request, _problem: Exception) -> Response:
    return _json(500, "the collector failed; nothing of this request was accepted")


class Guard:
    """An ASGI application that passes on requests to one of its names, all requests if it has none."""

    def __init__(self, app: ASGIApp, names: frozenset[str], *, shared: bool) -> None:
        self._app = app
        self._names = names
        headers = _HEADERS | ({} if shared else {"cross-origin-resource-policy": "same-origin"})
        self._headers = {name.encode(): value.encode() for name, value in headers.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or answer that it went astray."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":  # there are no WebSockets here
            await send({"type": "websocket.close", "code": 1008})
        elif self._names and _name_of(scope) not in self._names:
            answer = _json(421, "this collector has another name: see --name")
            answer.headers["connection"] = "close"
            await answer(scope, receive, self._with_headers(send))
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
