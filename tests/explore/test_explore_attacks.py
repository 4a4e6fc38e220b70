"""Other pages of the owner's browser, which know the explorer's port and its secret, and get nothing.

Needs Debian's chromium and playwright (`make test-browser`) and skips visibly without them.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("marimo")
from explorer import Explorer, chromium, exploring, need_browser


@pytest.fixture(scope="module")
def explorer() -> Iterator[Explorer]:
    need_browser()
    with exploring("--no-browser") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


ATTACK = """async ({address, socket, asset}) => {
    const told = {};
    const fetched = async (name, how) => {
        try { told[name] = (await (await fetch(address + (how.path || ""), how)).text()).length }
        catch { told[name] = "refused" }
    };
    await fetched("page", {});
    await fetched("page without cors", {mode: "no-cors"});
    const upload = {path: "api/kernel/set_ui_element_value", method: "POST", mode: "no-cors", body: "{}"};
    await fetched("upload", upload);
    const loaded = (tag, src) => new Promise(done => {
        const element = document.createElement(tag);
        element.onload = () => done("loaded"); element.onerror = () => done("refused");
        element.src = src; document.body.append(element);
    });
    told.script = await loaded("script", address + asset);
    told.picture = await loaded("img", address + "logo.png");
    told.socket = await new Promise(done => {
        const one = new WebSocket(socket);
        one.onopen = () => done("open"); one.onerror = () => done("refused");
    });
    await loaded("iframe", address);
    const opened = window.open(address);
    await new Promise(done => setTimeout(done, 3000));
    told.window = opened === null || opened.closed ? "refused" : "held";
    return told;
}"""


class Elsewhere(BaseHTTPRequestHandler):
    """Another server on this machine, with a page of its own."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def other_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["evil.test", "127.0.0.1", "localhost"])
def test_another_page_that_knows_the_secret_gets_nothing(
    explorer: Explorer, browser: Any, other_port: int, name: str
) -> None:
    asset = re.search(r"\./(assets/[^\"]+\.js)", explorer.ask(explorer.path).body.decode())[1]  # type: ignore[index]
    with browser.new_context() as context:
        page = context.new_page()
        answers: list[tuple[str, int]] = []
        page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        page.goto(f"http://{name}:{other_port}/")
        socket = explorer.address.replace("http", "ws") + "ws?session_id=s_abcdef"
        told = page.evaluate(ATTACK, {"address": explorer.address, "socket": socket, "asset": asset})
        assert told == dict.fromkeys(told, "refused")
        assert len(told) == 7
        assert not [one for one in answers if one[0].startswith(explorer.address) and one[1] != 403]
        assert not [frame for frame in page.frames if "marimo" in frame.content()]


@pytest.mark.browser
def test_another_name_for_this_machine_is_refused(explorer: Explorer, browser: Any) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        answer = page.goto(f"http://evil.test:{explorer.port}{explorer.path}")
        assert answer.status == 403
        assert page.inner_text("body").strip() == "refused"
        reached = page.evaluate("fetch('.').then(answer => answer.status)")
        assert reached == 403
        assert page.goto(explorer.address).status == 200


@pytest.mark.browser
def test_the_file_that_opens_the_browser_leads_to_the_page_with_its_data(
    browser: Any, tmp_path: Path
) -> None:
    (tmp_path / "prior.csv").write_text("item,count\na,3\nb,1\n")
    (tmp_path / "users.csv").write_text("user,item\nu,a\nu,b\nv,a\n")
    files = [tmp_path / "prior.csv", tmp_path / "users.csv"]
    with exploring(*files, environment={"BROWSER": "true", "TMPDIR": str(tmp_path)}) as running:
        page = browser.new_page()
        file = next(path for _ in range(200) for path in [*tmp_path.glob("*/open.html"), *pause()])
        page.goto(file.as_uri())
        page.wait_for_url(running.address)
        page.get_by_text("file: all, 2 categories").first.wait_for(timeout=90_000)
        page.get_by_text("a user from the data").first.wait_for()
        os.kill(running.process.pid, 15)
        assert running.ended() < 2
        asked: list[str] = []
        page.on("websocket", lambda socket: asked.append(socket.url))
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(4000)
        assert asked == []  # nobody who is given the port next is told the secret
        page.close()


def pause() -> list[Path]:
    time.sleep(0.05)
    return []
