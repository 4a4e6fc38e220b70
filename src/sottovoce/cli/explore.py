"""The command that opens the explorer in the browser."""

from __future__ import annotations

import errno
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ParameterError
from .app import (
    Decimal,
    Encoding,
    Missing,
    Separator,
    Sheets,
    app,
)
from .tables import dialects_said
from .terminal import print_note


@app.command()
def explore(
    prior_file: Annotated[
        Path | None, typer.Argument(help="Public data to start with; default the demo's.", show_default=False)
    ] = None,
    users_file: Annotated[
        Path | None,
        typer.Argument(help="Private histories to look at, on this machine only.", show_default=False),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port on this machine; default a free one.", show_default=False)
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, open nothing.")
    ] = False,
    separator: Separator = None,
    encoding: Encoding = None,
    missing: Missing = "error",
    decimal: Decimal = None,
    sheet: Sheets = None,
) -> None:
    """A page in the browser: move ε, pick samplers, shape a user, and see what is released.

    The address holds a secret: whoever has it sees what you see, until the command ends.

    \b
    Examples:
      sottovoce explore
      sottovoce explore survey.csv members.csv --port 8080 --no-browser
    """
    if any(find_spec(name) is None for name in ("marimo", "uvicorn")):
        raise ParameterError("the explorer needs marimo: pip install 'sottovoce[explore]'")
    if port is not None and not 0 < port < 65536:
        raise ParameterError(f"port must be between 1 and 65535, got {port}")
    from ..explore import given

    tables = [path for path in (prior_file, users_file) if path is not None]
    written = dialects_said(tables, separator, encoding, missing, decimal, sheet)
    given.give(given.read_given(prior_file, users_file, written))
    listener = _listening(port)
    from ..explore import server  # after the port: marimo takes seconds to load

    server.serve(listener, browser=not no_browser, say=print_note)


def _listening(port: int | None) -> socket.socket:
    """A socket that listens on this machine only: on the port asked for, or on one that is free."""
    try:
        return socket.create_server(("127.0.0.1", port or 0))
    except OSError as problem:
        reason = "is taken" if problem.errno == errno.EADDRINUSE else f"cannot be used: {problem.strerror}"
        raise ParameterError(f"port {port or '(any)'} {reason}; choose another with --port") from None
