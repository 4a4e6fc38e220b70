"""The collector's application: the mechanism file, the client, reports, and the estimate as it is now."""

from __future__ import annotations

import asyncio
import json
import math
import mimetypes
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
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
from starlette.types import ASGIApp, Scope

from .batches import MOST_BYTES, Refusal, read_batch
from .guard import Guard
from .live import Live
from .page import read_page
from .rate import Bucket, cost_of_refused
from .served import Served
from .settings import Settings
from .writer import Writer

SECONDS_FOR_A_BODY = 20.0
_JSON = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)
_SERVED_FILE = re.compile(
    r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*\.(?:m?js|ts|json|map)"
)
_REASONS = {
    404: "there is nothing here: see /v1/mechanism, /v1/reports and /client/",
    405: "this is asked with another method",
}

Answer = Callable[[Request], Awaitable[Response]]


def make_app(settings: Settings, served: Served, say: Callable[[str], None]) -> ASGIApp:
    """The application of one process; the store is opened when it starts and closed when it ends."""
    writer = Writer(settings.store, served.digests, say)
    _ = served.places  # made now, not while the first sender waits

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(writer.close)

    mimetypes.add_type("text/javascript", ".js")  # some systems map it to text/plain, which nosniff refuses
    mimetypes.add_type("text/javascript", ".mjs")
    routes: list[Route | Mount] = [
        Route("/v1/mechanism", _mechanism(served)),
        Route("/v1/reports", _reports(served, writer, Bucket(settings.rate)), methods=["POST"]),
        Mount("/client", _client(settings.client)),
    ]
    if settings.page:
        routes += [
            Route("/", _page()),
            Route("/v1/estimate", _estimate(Live(served, settings.store, writer.numbers))),
        ]
    shared = []
    if settings.origins:
        shared = [
            Middleware(
                CORSMiddleware,
                allow_origins=settings.origins,
                allow_methods=["GET", "POST"],
                allow_headers=["content-type"],
                expose_headers=["etag", "retry-after"],
            )
        ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=shared,
        exception_handlers={HTTPException: _no_route, Refusal: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return Guard(app, settings.names, shared=bool(settings.origins))


def _mechanism(served: Served) -> Answer:
    async def answer(request: Request) -> Response:
        """The mechanism file, byte for byte."""
        headers = {"etag": served.etag, "cache-control": "no-cache"}
        known = [
            one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")
        ]
        if served.etag in known or known == ["*"]:
            return Response(status_code=304, headers=headers)
        return Response(served.content, media_type="application/json", headers=headers)

    return answer


def _reports(served: Served, writer: Writer, bucket: Bucket) -> Answer:
    async def answer(request: Request) -> Response:
        """Take a batch: checked as a whole, stored as a whole, and answered when it is on the disk."""
        wait = bucket.wait()
        if wait > 0:
            return _json(
                429, {"error": "reports come too fast for this collector: send the batch again later"}, wait
            )
        if not _JSON.fullmatch(request.headers.get("content-type", "").strip()):
            raise Refusal(415, "a batch is sent as content-type application/json")
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Refusal(415, "a batch is sent as it is, without a content-encoding")
        body = await _body(request)
        try:
            rows = read_batch(body, served)
        except Refusal:
            bucket.take(cost_of_refused(len(body)))
            raise
        bucket.take(len(rows))
        await asyncio.wrap_future(writer.store(rows))
        return _json(202, {"accepted": len(rows)})

    return answer


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


def _estimate(live: Live) -> Answer:
    lock = asyncio.Lock()

    async def answer(_: Request) -> Response:
        """What the reports tell up to now; one computation at a time, whoever asks."""
        async with lock:
            return Response(await asyncio.to_thread(live.answer), media_type="application/json")

    return answer


def _page() -> Answer:
    page = read_page()

    async def answer(_: Request) -> Response:
        """The live page."""
        headers = {"content-security-policy": page.policy}
        return Response(page.content, media_type="text/html", headers=headers)

    return answer


class _Client(StaticFiles):
    """The files of the JavaScript client: code and types, and nothing else that may lie in the folder."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if not _SERVED_FILE.fullmatch(path.replace("\\", "/")):
            raise HTTPException(404, "the client has no such file")
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "no-cache"
        return answer


def _client(folder: Path | None) -> ASGIApp:
    if folder is not None:
        return _Client(directory=folder)

    async def missing(scope: Scope, receive: Any, send: Any) -> None:
        error = {
            "error": "this collector has no JavaScript client: start it with --client and the client's folder"
        }
        await _json(404, error)(scope, receive, send)

    return missing


def _json(status: int, content: dict[str, Any], wait: float | None = None) -> Response:
    headers = {} if wait is None else {"retry-after": str(math.ceil(wait))}
    return Response(json.dumps(content), status, headers, "application/json")


async def _refused(_: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, Refusal):
        raise refusal
    answer = _json(refusal.status, refusal.body(), 1.0 if refusal.status == 503 else None)
    if refusal.status in (408, 413):  # the rest of the body is not read
        answer.headers["connection"] = "close"
    return answer


async def _no_route(_: Request, problem: Exception) -> Response:
    if not isinstance(problem, HTTPException):
        raise problem
    reason = _REASONS.get(problem.status_code, problem.detail)
    answer = _json(problem.status_code, {"error": reason})
    answer.headers.update(problem.headers or {})
    return answer


async def _failed(_request: Request, _problem: Exception) -> Response:
    return _json(500, {"error": "the collector failed; nothing of this request was accepted"})
