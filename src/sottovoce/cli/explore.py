"""The command explore: open the explorer in the browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from ..errors import ParameterError
from .app import Command
from .collect import listening
from .options import option, path_argument, read_option, readings
from .terminal import print_note


@click.command("explore", cls=Command)
@path_argument("prior_file", metavar="[PRIOR]", required=False)
@path_argument("users_file", metavar="[USERS]", required=False)
@option("--port", type=int, help="Port on this machine; default a free one.")
@option("--no-browser", is_flag=True, help="Print the address, open nothing.")
@read_option
def command(
    prior_file: Path | None,
    users_file: Path | None,
    port: int | None,
    no_browser: bool,
    read: tuple[str, ...],
) -> None:
    """Open a page in the browser: move ε, pick samplers, shape a user, and see what is released.

    PRIOR is public data to start with, by default the demo's; USERS are private histories that stay on this
    machine. The address holds a secret: whoever has it sees what you see, until the command ends.

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
    written = [reading.dialect for reading in readings(read, *tables)]
    given.give(given.read_given(prior_file, users_file, written))
    listener = listening("127.0.0.1", port or 0)
    from ..explore import server  # after the port: marimo takes seconds to load

    server.serve(listener, browser=not no_browser, say=print_note)
