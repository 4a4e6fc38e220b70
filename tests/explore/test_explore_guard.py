"""Whom the explorer refuses: everybody but its owner's browser, by real requests to a real server."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("marimo")
from explorer import Explorer, exploring

from sottovoce.explore.guard import Guard

API = "api/kernel/set_ui_element_value"
SOCKET = "ws?session_id=s_abcdef"
OTHER = "A" * 43


@pytest.fixture(scope="module")
def explorer() -> Iterator[Explorer]:
    with exploring("--no-browser") as running:
        yield running


@pytest.fixture(scope="module")
def asset(explorer: Explorer) -> str:
    page = explorer.ask(explorer.path).body.decode()
    return re.search(r"\./(assets/[^\"]+\.js)", page)[1]  # type: ignore[index]


def statuses(explorer: Explorer, prefix: str, asset: str, headers: Any = None) -> set[int]:
    """What the page, an asset, an upload and a WebSocket under a prefix are answered."""
    return {
        explorer.ask(prefix, headers).status,
        explorer.ask(f"{prefix}{asset}", headers).status,
        explorer.ask(f"{prefix}{API}", headers, method="POST").status,
        explorer.knock(f"{prefix}{SOCKET}", headers),
    }


def test_the_owner_is_served(explorer: Explorer, asset: str) -> None:
    assert len(explorer.token) >= 43  # 32 bytes
    for host in (explorer.host, f"localhost:{explorer.port}"):
        for headers in ([("Host", host)], [("Host", host), ("Origin", f"http://{host}")]):
            assert explorer.ask(explorer.path, headers).status == 200
            assert explorer.ask(explorer.path + asset, headers).status == 200
            assert explorer.knock(explorer.path + SOCKET, headers) == 101
            # marimo's own answer: there is no session of that name
            assert explorer.ask(explorer.path + API, headers, method="POST").status not in (403, 404)


@pytest.mark.parametrize(
    "prefix",
    [
        "/",
        "//",
        f"/{OTHER}/",
        "/{token}",
        "/{start}/",
        "/{token}A/",
        "/{lower}/",
        "//{token}/",
        "/{token}//",
        "/./{token}/",
        "/x/../{token}/",
        "/x/%2e%2e/{token}/",
        "/%2F{token}/",
        "/{escaped}/",
        "/{token}%2F",
        "/{token}/../{token}/",
        "/{token}/assets/../",
        "/{token}/%2e/",
        "\\{token}\\",
        "/{start}?{token}/",
        "/?token={token}&",
        "/?access_token={token}&",
        f"/{OTHER}/?token={{token}}&",
        "http://127.0.0.1/{token}/",
    ],
)
def test_without_the_secret_in_its_place_nothing_is_served(
    explorer: Explorer, asset: str, prefix: str
) -> None:
    token = explorer.token
    assert token
    escaped = f"%{ord(token[0]):02x}{token[1:]}"
    filled = prefix.format(token=token, start=token[:-1], lower=token.swapcase(), escaped=escaped)
    assert statuses(explorer, filled, asset) <= {400, 403}


def test_a_refusal_says_nothing(explorer: Explorer) -> None:
    answers = [explorer.ask(target) for target in ("/", f"/{OTHER}/", explorer.path + "api/status")]
    assert {answer.body for answer in answers} == {b"refused\n"}
    assert len({tuple(name for name in answer.headers if name != "date") for answer in answers}) == 1


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Host", "")],
        [("Host", "127.0.0.1")],
        [("Host", "evil.test:{port}")],
        [("Host", "127.0.0.1:{port}.evil.test")],
        [("Host", "127.0.0.1.evil.test:{port}")],
        [("Host", "localhost:{port}0")],
        [("Host", "[::1]:{port}")],
        [("Host", "{host}"), ("Host", "{host}")],
        [("Host", "{host}"), ("Host", "evil.test")],
        [("Host", "{host}"), ("Origin", "null")],
        [("Host", "{host}"), ("Origin", "")],
        [("Host", "{host}"), ("Origin", "http://evil.test")],
        [("Host", "{host}"), ("Origin", "http://evil.test:{port}")],
        [("Host", "{host}"), ("Origin", "https://{host}")],
        [("Host", "{host}"), ("Origin", "http://{host}.evil.test")],
        [("Host", "{host}"), ("Origin", "http://127.0.0.1")],
        [("Host", "{host}"), ("Origin", "http://127.0.0.1:1")],
        [("Host", "{host}"), ("Origin", "http://localhost:{port}")],  # another account may serve [::1]
        [("Host", "{host}"), ("Origin", "http://{host}"), ("Origin", "http://evil.test")],
        [("Host", "{host}"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors")],
        [("Host", "{host}"), ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")],
    ],
)
def test_other_hosts_and_origins_are_refused_with_the_right_secret(
    explorer: Explorer, asset: str, headers: list[tuple[str, str]]
) -> None:
    filled = [(name, value.format(port=explorer.port, host=explorer.host)) for name, value in headers]
    assert statuses(explorer, explorer.path, asset, filled) <= {400, 403}
    if not headers:
        assert explorer.ask(explorer.path, [], version="1.0").status == 403


def test_every_answer_closes_the_doors_of_the_browser(explorer: Explorer, asset: str) -> None:
    own = [("Host", explorer.host), ("Origin", f"http://{explorer.host}")]
    for target in (explorer.path, explorer.path + asset, "/", explorer.path + "health"):
        headers = explorer.ask(target, own).headers
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert not [name for name in headers if name.startswith("access-control-") or name == "set-cookie"]


def leaves(routes: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """All routes below mounted ones, with their paths."""
    for route in routes:
        path = before + route.path
        yield from leaves(route.routes, path) if getattr(route, "routes", None) else [(path, route)]


def test_with_the_secret_only_the_page_is_reachable(explorer: Explorer) -> None:
    """Every route of marimo is asked for; what is not the page is refused by us, before marimo is asked."""
    from marimo._server.api.router import build_routes

    found = dict(leaves(build_routes()))
    assert {"/terminal/ws", "/api/kernel/run", "/api/files/update", "/api/export/html"} <= set(found)
    open_routes = set()
    for path, route in leaves(build_routes()):
        target = explorer.path + re.sub(r"\{[^}]*\}", "x", path.lstrip("/"))
        for method in sorted(getattr(route, "methods", None) or ()):
            if explorer.ask(target, method=method).status != 403:
                open_routes.add((method, path))
        if explorer.knock(f"{target}?session_id=s_abcdef") != 403:
            open_routes.add(("websocket", path))
    assert open_routes == {
        ("GET", "/"),
        ("GET", "/health"),
        ("GET", "/sse"),
        ("GET", "/@file/{filename_and_length:path}"),
        ("GET", "/public-files-sw.js"),
        ("POST", f"/{API}"),
        ("websocket", "/ws"),
    }
    for method in ("OPTIONS", "HEAD", "PUT", "DELETE", "TRACE"):
        assert explorer.ask(explorer.path, method=method).status == 403
    assert b"def _sources" not in explorer.ask(explorer.path).body


def answered(
    headers: list[tuple[bytes, bytes]], path: bytes = b"/t/", query: bytes = b"", **more: Any
) -> int:
    """What the guard alone answers to a request as a server would hand it over."""
    sent: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        assert "t/" not in scope["path"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody reads the body")

    scope = {"type": "http", "method": "GET", "raw_path": path, "query_string": query, "headers": headers}
    asyncio.run(Guard(page, "t", 80)({**scope, **more}, receive, send))
    return int(sent[0].get("status", 0)) if sent else 0


def test_what_a_server_might_let_through_is_refused_by_the_guard() -> None:
    host, site, mode = (b"host", b"127.0.0.1:80"), b"sec-fetch-site", (b"sec-fetch-mode", b"navigate")
    arrival = [host, (site, b"cross-site"), mode, (b"sec-fetch-dest", b"document")]
    assert answered([host]) == answered([host, (site, b"none")]) == answered(arrival) == 200
    assert answered([host, host]) == answered([]) == 403
    assert answered([host, (b"Origin", b"http://127.0.0.1:80"), (b"origin", b"null")]) == 403
    assert answered([host], raw_path=None) == answered([host], b"/t/assets/..") == 403
    assert answered([*arrival, (site, b"cross-site")], b"/t/health") == 403
    assert answered(arrival, query=b"file=x") == 403
    assert answered([host, (site, b"cross-site"), mode, (b"sec-fetch-dest", b"iframe")]) == 403
    assert answered([host, (site, b"same-origin"), (site, b"cross-site")]) == 403
    assert answered([host], type="lifespan") == 0


# --- the port, and where the secret must not be ---


def test_ports_are_free_ones_and_a_taken_one_is_refused(explorer: Explorer) -> None:
    with exploring("--no-browser") as other:
        assert other.port != explorer.port
        assert other.token != explorer.token
    command = [sys.executable, "-m", "sottovoce", "explore", "--no-browser", "--port"]
    with socket.create_server(("0.0.0.0", 0)) as everywhere:  # noqa: S104  (an old server of all addresses)
        for port in (explorer.port, everywhere.getsockname()[1], 0, 65536):
            done = subprocess.run(
                [*command, str(port)], capture_output=True, text=True, check=False, timeout=300
            )
            assert done.returncode == 2
            assert done.stderr.startswith("error: port ")
            assert done.stderr.count("\n") == 1
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with exploring("--no-browser", "--port", port) as asked:
        assert asked.port == port
        assert {one.laddr.ip for one in psutil.net_connections() if one.laddr.port == port} == {"127.0.0.1"}
        with socket.socket() as second:  # two listeners would share the visitors
            second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="in use"):
                second.bind(("127.0.0.1", port))


def test_the_secret_is_in_no_argument_list_and_the_browser_gets_a_private_file(tmp_path: Path) -> None:
    record, browser = tmp_path / "arguments", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$0" "$@" > {record}.new\nmv {record}.new {record}\n')
    browser.chmod(0o700)
    environment = {"BROWSER": str(browser), "TMPDIR": str(tmp_path)}
    with exploring(environment=environment) as running:
        for _ in range(6000):
            if record.exists():
                break
            time.sleep(0.05)
        asked = record.read_text().split("\n")[1]
        lines = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
        assert not [line for line in [*lines, record.read_text()] if running.token in line]
        file = Path(asked.removeprefix("file://"))
        assert f"url={running.address}" in file.read_text()
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        running.process.terminate()
        running.ended()
        assert not file.parent.exists()
