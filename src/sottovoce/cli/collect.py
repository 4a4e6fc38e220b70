"""The command collect: serve a mechanism file and receive reports."""

from __future__ import annotations

import errno
import math
import os
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

from ..errors import ParameterError
from ..prior import FROM_USERS
from .app import Command
from .options import PATH, mechanism_argument, option
from .terminal import plain, print_note


@click.command("collect", cls=Command)
@mechanism_argument
@option(
    "--store", type=PATH, required=True, help="File of the reports (SQLite); created if it does not exist."
)
@option("--host", default="127.0.0.1", help="Address to listen on; others reach any but this machine's.")
@option("--port", default=8000, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.")
@option("--workers", default=1, type=click.IntRange(1, 64), help="Processes that share port and store.")
@option(
    "--name", "names", multiple=True,
    help="Host name to answer to; repeat for several. Default this machine's names, or with --host all.",
)  # fmt: skip
@option(
    "--origin", "origins", multiple=True,
    help="Site whose pages may send reports, such as https://example.org; repeat for several.",
)  # fmt: skip
@option("--rate", default=10_000.0, help="Reports per second that each process accepts.")
@option("--page/--no-page", default=None, help="The live page at /; default only without --host and --name.")
def collect_command(
    mechanism_file: Path,
    store: Path,
    host: str,
    port: int,
    workers: int,
    names: tuple[str, ...],
    origins: tuple[str, ...],
    rate: float,
    page: bool | None,
) -> None:
    """Serve a mechanism file, and store the private reports that devices send back.

    Reports are posted to /v1/reports and answered when they are on the disk; one sent twice is stored once.
    Stored are a random id and the category: no user, no address, no time. TLS belongs in front, in a proxy.

    \b
    Examples:
      sottovoce collect mechanism.json --store reports.db
      sottovoce collect mechanism.json --store reports.db --workers 2 \\
          --origin https://example.org
      sottovoce collect mechanism.json --store reports.db \\
          --name collect.example.org --no-page
      sottovoce estimate mechanism.json reports.db
    """
    if any(find_spec(needed) is None for needed in ("starlette", "uvicorn")):
        raise ParameterError("the collector needs starlette and uvicorn: pip install 'sottovoce[collect]'")
    if not 1 <= rate < math.inf:
        raise ParameterError(f"rate must be at least 1 report per second, got {rate:g}")
    from ..collecting.store import create_store, open_store, stored_total
    from ..serving import app, batches, server

    ours = app.is_this_machine(host)
    chosen = app.Settings(
        store=Path(os.path.realpath(store)),
        names=app.checked_names(host, names),
        origins=app.checked_origins(origins),
        client=app.find_client(),
        rate=rate,
        page=ours and not names if page is None else page,
    )
    served = batches.read_served(mechanism_file)
    listener = listening(host, port)
    if not os.path.lexists(chosen.store):
        with suppress(FileExistsError):  # another collector was quicker: both share its store
            create_store(chosen.store, served.digests)
    database, _ = open_store(chosen.store, served.digests)
    reports = stored_total(database)
    database.close()
    if any(mechanism.provenance == "users" for mechanism in served.mechanisms.values()):
        print_note(FROM_USERS)
    address = f"[{host}]" if ":" in host else host
    live = "; live page at /" if chosen.page else ""
    print_note(
        f"http://{address}:{listener.getsockname()[1]}/ — collecting into {plain(store)}, which holds "
        f"{reports:,} reports{live}; stop with Ctrl-C"
    )
    twins = next((groups for groups in served.groups_of.values() if len(groups) > 1), None)
    if twins:
        such_as = " and ".join(map(plain, twins[:2]))
        print_note(
            f"{len(twins)} groups share a mechanism, such as {such_as}: their reports must name their group"
        )
    if not ours or names:
        print_note(
            "No TLS here: put a proxy in front that has it. The proxy sees addresses and times, and its log "
            "may keep them: switch that off."
        )
    code = server.serve(listener, chosen, served, workers)
    print_note("stopped" if code == 0 else "the collector ended by itself")
    raise SystemExit(code)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
        # asyncio does this for sockets that name their protocol only; else an answer waits 40 ms for its end.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as problem:
        reason = "is taken" if problem.errno == errno.EADDRINUSE else f"cannot be used: {problem.strerror}"
        raise ParameterError(
            f"port {port} of {host} {reason}; choose another with --port or --host"
        ) from None
