"""The command collect: serve mechanism files and receive reports; export and back up what was received."""

from __future__ import annotations

import errno
import os
import socket
from importlib.util import find_spec
from pathlib import Path

import click

from ..collecting import store as stores
from ..errors import ParameterError
from ..prior import FROM_USERS
from ..release.file import ANY, load_mechanisms
from ..tables import files
from .app import Command
from .options import PATH, force_option, mechanism_argument, option, path_argument
from .terminal import plain, print_note


@click.group("collect")
def collect_command() -> None:
    """Serve mechanism files, store private reports; export and back up.

    Stored are a random id, the mechanism and the category: no user, no address, no time.
    """


@collect_command.command("serve", cls=Command)
@click.argument("mechanism_files", type=PATH, metavar="MECHANISM...", nargs=-1, required=True)
@option(
    "--store", type=PATH, required=True, help="File of the reports (SQLite); created if it does not exist."
)
@option("--host", default="127.0.0.1", help="Address to listen on; others reach any but this machine's.")
@option("--port", default=8000, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.")
@option(
    "--name", "names", multiple=True,
    help="Host name to answer to; repeat for several. Default this machine's names, or with --host all.",
)  # fmt: skip
@option(
    "--origin", "origins", multiple=True,
    help="Site whose pages may send reports, such as https://example.org; repeat for several.",
)  # fmt: skip
@option("--key-file", type=PATH, help="File of keys, one per line: reports are taken with one of them only.")
@option("--read-key-file", type=PATH, help="The same for the estimate, the export and the metrics.")
@option(
    "--page/--no-page", default=None,
    help="The live page at /, the estimate, the export and the metrics; default only with --read-key-file, "
    "or without --host and --name.",
)  # fmt: skip
def serve(
    mechanism_files: tuple[Path, ...],
    store: Path,
    host: str,
    port: int,
    names: tuple[str, ...],
    origins: tuple[str, ...],
    key_file: Path | None,
    read_key_file: Path | None,
    page: bool | None,
) -> None:
    """Serve mechanism files, and store the reports that are sent back.

    Reports are posted to /v1/reports and answered when they are on the disk; one sent twice is stored once.
    Of several mechanism files each is at /v1/mechanism?digest=…. TLS belongs in front, in a proxy.

    \b
    Examples:
      sottovoce collect serve mechanism.json --store reports.db
      sottovoce collect serve autumn.json winter.json --store reports.db
      sottovoce collect serve mechanism.json --store reports.db \\
          --name collect.example.org --origin https://example.org \\
          --read-key-file read.keys
    """
    if any(find_spec(needed) is None for needed in ("starlette", "uvicorn")):
        raise ParameterError("the collector needs starlette and uvicorn: pip install 'sottovoce[collect]'")
    from ..serving import app, batches, server

    local = app.is_this_machine(host) and not names
    settings = app.Settings(
        store=Path(os.path.realpath(store)),
        names=app.checked_names(host, names),
        origins=app.checked_origins(origins),
        page=(local or read_key_file is not None) if page is None else page,
        keys={"reports": app.read_keys(key_file), "read": app.read_keys(read_key_file)},
    )
    served = [batches.read_served(path) for path in mechanism_files]
    listener = listening(host, port)
    collector = server.server_of(settings, served)
    with stores.reading(settings.store) as database:
        reports = sum(stores.stored_totals(database).values())
    if any(mechanism.provenance == "users" for one in served for mechanism in one.mechanisms.values()):
        print_note(FROM_USERS)
    address = f"[{host}]" if ":" in host else host
    live = "; live page at /" if settings.page else ""
    print_note(
        f"http://{address}:{listener.getsockname()[1]}/ — collecting into {plain(store)}, which holds "
        f"{reports:,} reports{live}; stop with Ctrl-C"
    )
    if not local:
        print_note("No TLS here: put a proxy in front that has it, and switch off its log of addresses.")
    collector.run(sockets=[listener])
    print_note("stopped" if collector.stopped else "the collector ended by itself")
    raise SystemExit(0 if collector.stopped else 1)


@collect_command.command("export", cls=Command)
@mechanism_argument
@path_argument("store", metavar="STORE")
@option(
    "--output", "-o", type=PATH, required=True, panel="Output",
    help="File of the reports (.csv, .parquet or .json), or - for CSV.",
)  # fmt: skip
@force_option
def export(mechanism_file: Path, store: Path, output: Path, force: bool) -> None:
    """Write the reports of a mechanism file, one in a row, also while they are collected.

    The table holds what the store does, and `sottovoce estimate` reads it like the store.

    \b
    Examples:
      sottovoce collect export mechanism.json reports.db -o reports.parquet
    """
    files.check_writable(output, mechanism_file, store, force=force)
    from ..tables.reader import Writer, type_of

    mechanisms = load_mechanisms(mechanism_file, policy=ANY).mechanisms
    reports, parts = 0, stores.export(store, mechanisms)
    (columns,) = next(parts)
    answers = type_of([mechanism.answers[0] for mechanism in mechanisms.values()])
    with Writer({name: answers if name == "item" else str for name in columns}) as table:
        for rows in parts:
            table.add({name: [row[i] for row in rows] for i, name in enumerate(columns)})
            reports += len(rows)
        table.save(output, replace=force)
    print_note(f"{reports:,} reports written to {output}")


@collect_command.command("backup", cls=Command)
@path_argument("store", metavar="STORE")
@path_argument("copy", metavar="COPY")
def backup(store: Path, copy: Path) -> None:
    """Copy a store as of one moment, whole or not at all, also while reports are collected.

    The copy is a store like the first. COPY is never overwritten.

    \b
    Examples:
      sottovoce collect backup reports.db /other/volume/reports.db
    """
    print_note(f"{stores.back_up(store, copy):,} reports copied to {copy}")


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
