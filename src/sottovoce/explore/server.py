"""The server of the page: one process, one port of this machine, one secret, and an end that is one."""

from __future__ import annotations

import mimetypes
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import marimo
import uvicorn

from .guard import Guard

PAGE = Path(__file__).parent / "app.py"
PATIENCE = 1.0
"""Seconds that open pages and running requests are given at the end."""


class _Server(uvicorn.Server):
    """A server that tells open pages about its end before it closes their connections."""

    def __init__(self, guard: Guard) -> None:
        # h11 alone: one reading of a request line and of its headers, wherever this is installed. The access
        # log and the messages below "critical" would write the token down.
        super().__init__(
            uvicorn.Config(
                guard,
                http="h11",
                loop="asyncio",
                lifespan="off",
                access_log=False,
                log_config=None,
                log_level="critical",
                proxy_headers=False,
                server_header=False,
            )
        )
        self._guard = guard

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Dismiss the pages, then close."""
        await self._guard.dismiss()
        await super().shutdown(sockets)


def serve(listener: socket.socket, *, browser: bool, say: Callable[[str], None]) -> NoReturn:
    """Serve the page until a signal comes, and end the process: no thread of it can outlive this call."""
    mimetypes.add_type("text/javascript", ".js")  # some systems map it to text/plain, which nosniff refuses
    port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
    page = marimo.create_asgi_app(quiet=True, include_code=False).with_app(path="/", root=str(PAGE)).build()
    server = _Server(Guard(page, token, port))
    address = f"http://127.0.0.1:{port}/{token}/"
    stopped = _signals()
    # A thread of its own: whatever the event loop or a computing kernel does, signals are answered.
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while thread.is_alive() and not server.started and not stopped:
        thread.join(0.02)
    folder = None
    with suppress(OSError, ValueError, SystemExit):  # a terminal that is gone is told nothing
        say(f"{address} — everything stays on this machine; stop with Ctrl-C")
    if browser and not stopped:
        folder = _open_browser(address)
    while thread.is_alive() and not stopped:
        thread.join(0.1)
    server.should_exit = True
    thread.join(PATIENCE)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError, ValueError, SystemExit):
        say("stopped" if stopped else "the page ended by itself")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    # Kernels are threads that nothing can interrupt; leaving them behind is the only end that is certain.
    os._exit(0 if stopped else 1)


def _signals() -> list[int]:
    """A list that any of the ending signals is added to; more of them change nothing.

    A hang-up counts even where it was to be ignored (nohup): a page with private histories ends with its
    terminal. The handler takes no lock, because it may run while the main thread holds it.
    """
    caught: list[int] = []
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: caught.append(number))
    return caught


def _open_browser(address: str) -> str:
    """Open the address through a file that only this account can read; return the file's folder.

    Arguments of a process can be read by every account of the machine, so the address must not be one.
    """
    folder = tempfile.mkdtemp(prefix="sottovoce-")
    file = Path(folder) / "open.html"
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as page:
        page.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={address}"><title>sottovoce explorer</title>'
            f'<a href="{address}">Open the explorer</a>\n'
        )

    def opening() -> None:
        with suppress(OSError, webbrowser.Error):
            webbrowser.open(file.as_uri())

    threading.Thread(target=opening, daemon=True).start()  # a browser in the terminal returns when it is left
    return folder
