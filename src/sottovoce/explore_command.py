"""The command that opens the explorer in the browser."""

from __future__ import annotations

import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ._terminal import print_note
from .commands import app
from .errors import ParameterError
from .inputs import read_priors


@app.command()
def explore(
    prior_file: Annotated[
        Path | None, typer.Argument(help="Public data to start with; default the demo's.", show_default=False)
    ] = None,
    users_file: Annotated[
        Path | None,
        typer.Argument(help="Private histories to look at, on this machine only.", show_default=False),
    ] = None,
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 2718,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, open nothing.")
    ] = False,
) -> None:
    """A page in the browser: move ε, pick samplers, shape a user, and see what is released.

    \b
    Examples:
      sottovoce explore
      sottovoce explore survey.csv members.csv --port 8080 --no-browser
    """
    if find_spec("marimo") is None or find_spec("altair") is None:
        raise ParameterError("the explorer needs marimo and altair: pip install 'sottovoce[explore]'")
    if not 0 < port < 65536:
        raise ParameterError(f"port must be between 1 and 65535, got {port}")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise ParameterError(f"port {port} is taken: choose another with --port")
    page = Path(__file__).parent / "explore" / "app.py"
    command = [sys.executable, "-m", "marimo", "--quiet", "run", str(page), "--port", str(port), "--no-token"]
    command += ["--headless"] if no_browser else []
    arguments = []
    if prior_file is not None:
        read_priors(prior_file)  # refused here, in one line, and not on the page
        arguments += ["--prior", str(prior_file.resolve())]
    if users_file is not None:
        arguments += ["--users", str(users_file.resolve())]
    print_note(f"http://127.0.0.1:{port} — everything stays on this machine; stop with Ctrl-C")
    try:
        raise typer.Exit(subprocess.run([*command, "--", *arguments], check=False).returncode)
    except KeyboardInterrupt:
        print_note("stopped")
