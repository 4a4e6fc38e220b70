"""A film club on the web: each tab is a member who visits twenty times; the club hears one genre a visit.

A visit is one step of a stream: all of them together cost one epsilon. Beside it the page shows what would be
heard if epsilon were split over the visits, and without protection. A survey of many members follows.

    python examples/web/club.py

Two servers run on this machine. The club's own site serves the page and the JavaScript client. The collector
(`sottovoce collect`) serves the mechanism, takes reports from that site alone, and shows the estimate.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import sottovoce as sv
from sottovoce.demo import demo_data

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parent.parent / "clients" / "js"
EPSILON, GROUP = 4.0, "25 to 44"
LIFETIME, VISITS = 8.0, 20
"""What all visits of a member cost together, and how many are planned."""


def site(collector: str, digest: str, survey: dict[str, int], visits: dict[str, sv.Mechanism]) -> Starlette:
    """The club's site: the page, the client, and what the page has to know, the pinned digests among it."""
    known = {"collector": collector, "digest": digest, "epsilon": EPSILON, "survey": survey}
    known |= {"lifetime": LIFETIME, "visits": VISITS}
    known |= {name: mechanism.digest for name, mechanism in visits.items()}
    files = {name: json.dumps({**one.document(), "digest": one.digest}) for name, one in visits.items()}
    policy = f"default-src 'self'; connect-src 'self' {collector}; base-uri 'none'; frame-ancestors 'none'"
    headers = {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }

    async def page(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or "index.html"
        kind = {"html": "text/html", "css": "text/css", "js": "text/javascript"}[name.rpartition(".")[2]]
        return Response((HERE / name).read_bytes(), media_type=kind, headers=headers)

    async def settings(_: Request) -> Response:
        return Response(json.dumps(known), media_type="application/json", headers=headers)

    async def mechanism(request: Request) -> Response:
        text = files.get(request.path_params["name"])
        if text is None:
            return Response(status_code=404)
        return Response(text, media_type="application/json", headers=headers)

    async def nothing(_: Request) -> Response:
        return Response(status_code=204)

    return Starlette(
        routes=[
            *(Route(path, page) for path in ("/", "/club.css", "/club.js")),
            Route("/club.json", settings),
            Route("/visits/{name}", mechanism),
            Route("/favicon.ico", nothing),
            Mount("/client", StaticFiles(directory=CLIENT / "src")),
        ]
    )


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def listening(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a process listens; not longer than it lives."""
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.1)
    return False


def main() -> None:
    """Start both servers, say where they are, and end both together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=8030, help="of the club's site; 0 for any")
    parser.add_argument("--collector-port", type=int, default=8031, help="of the collector; 0 for any")
    parser.add_argument("--store", type=Path, help="where reports are kept; by default they go with the demo")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")
    options = parser.parse_args()
    port, other = options.port or free_port(), options.collector_port or free_port()
    prior, survey = demo_data().priors[GROUP], demo_data().survey[GROUP]
    mechanism = sv.certify(sv.minimax_kernel(prior, EPSILON))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mechanism.json"
        mechanism.save(file)
        origin, collector = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{other}"
        store = options.store or Path(folder) / "reports.db"
        command = [sys.executable, "-m", "sottovoce", "collect", "serve", file, "--store", store]
        command += ["--port", other, "--origin", origin, "--page"]
        collecting = subprocess.Popen([str(part) for part in command])
        counts = {str(name): int(count) for name, count in zip(prior.categories, survey, strict=True)}
        visits = {
            "stream": sv.certify(sv.stream(prior, LIFETIME, horizon=VISITS)),
            "split": sv.certify(sv.fitted(prior, int(LIFETIME / VISITS * 2**20) / 2**20)),  # charges round up
        }
        app = site(collector, mechanism.digest, counts, visits)
        server = uvicorn.Server(uvicorn.Config(app, port=port, access_log=False, log_level="warning"))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a request to end takes the collector along
        try:
            if not listening(other, collecting):
                sys.exit("the collector did not start, so neither does the club")
            print(f"the club       {origin}/   (every tab is a member)", flush=True)
            print(f"what is learnt {collector}/", flush=True)
            if not options.no_browser:
                webbrowser.open(origin)
            with contextlib.suppress(KeyboardInterrupt):
                server.run()
        finally:
            collecting.send_signal(signal.SIGTERM)
            collecting.wait(timeout=30)


if __name__ == "__main__":
    main()
