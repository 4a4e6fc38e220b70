"""The command explore: write the page with data inside, and open it."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from dataclasses import replace
from pathlib import Path

import click

from .. import demo
from .._atomic import write_whole
from ..errors import ParameterError
from ..explore import Source, page
from ..groups import Groups
from ..prior import Prior
from ..tables.files import Dialect
from ..tables.users import ReadingOptions
from . import options
from .app import Command
from .options import PATH, Columns, as_typed, option
from .terminal import plain, print_note, print_text, step

USERS = {"path": "sottovoce-demo/members.csv", "user": "user", "item": "item"}
DEMO = Source(
    "sottovoce-demo/survey.csv",
    by="group",
    users=USERS,
    note="The data are those of the invented film club: `sottovoce demo` writes these files.",
)
LOOKED_AT = ReadingOptions(unknown="drop", empty="skip", unknown_groups="drop", several_groups="allow")
"""Users are looked at here, not released: what the prior lacks is left out."""


@click.command("explore", cls=Command)
@options.path_argument("prior_file", metavar="[PRIOR]", required=False)
@options.path_argument("users_file", metavar="[USERS]", required=False)
@option("--epsilon", "-e", type=float, default=2.0, help="Where the page begins; its mechanism has this ε.")
@option("--include-users", is_flag=True, help="Put the private users of USERS inside the page.")
@options.all_columns
@option("--output", "-o", type=PATH, panel="Output", help="Write the page to this .html file; open nothing.")
@options.force_option
def command(
    prior_file: Path | None,
    users_file: Path | None,
    epsilon: float,
    include_users: bool,
    columns: Columns,
    output: Path | None,
    force: bool,
) -> None:
    """Write a page and open it in the browser: move ε, pick a sampler, shape a person, see what is released.

    The page is one file that computes everything in the browser and sends nothing; mail it, archive it, or
    put it on a web server. PRIOR is public data, by default the demo's. USERS are private: they are inside
    only with --include-users, and the page then says so.

    \b
    Examples:
      sottovoce explore
      sottovoce explore survey.csv --by group -e 4
      sottovoce explore survey.csv members.csv --include-users -o page.html
    """
    _check(prior_file, users_file, include_users, output, force)
    priors, source, geometry, users = Groups(demo.demo_data().priors, "group"), DEMO, None, None
    if prior_file is not None:
        tables = [prior_file] if users_file is None else [prior_file, users_file]
        written = options.dialects(columns.read, *tables)
        public = columns.public(prior_file, written[0])
        print_note(f"{prior_file.name}: {plain(public.how)}.")
        priors, geometry = public.priors, public.geometry
        source = _source(prior_file, users_file if include_users else None, columns, written, priors)
        if include_users and users_file is not None:
            users, how = columns.histories(users_file, public, written[1], LOOKED_AT)
            print_note(f"{users_file.name}: {how}.")
    with step("computing", "the limits", total=len(priors), unit="groups") as going:
        made = page(
            priors,
            source,
            epsilon=epsilon,
            geometry=geometry,
            users=users,
            progress=lambda part: going.reached(part * len(priors)),
        )
    path = output or Path(tempfile.mkdtemp(prefix="sottovoce-")) / "page.html"
    write_whole(made, path, 0o600 if users else 0o666, replace=force)
    print_text(str(path))
    if output is None and not _opened(path):
        print_note("No browser was found here: open the file yourself.")


def _check(
    prior_file: Path | None, users_file: Path | None, include_users: bool, output: Path | None, force: bool
) -> None:
    """Refuse what does not fit together or cannot be written, before any work."""
    if include_users and users_file is None:
        raise ParameterError("--include-users needs USERS, the table whose users are put inside the page")
    if users_file is not None and not include_users:
        print_note(f"{users_file.name} is private and was not read: --include-users puts it inside the page.")
    if output is None:
        return
    if output.suffix.lower() not in (".html", ".htm") or not output.parent.is_dir() or output.is_dir():
        raise ParameterError(f"{output} cannot be written: name an .html file in a folder that exists")
    if os.path.lexists(output) and not force:
        raise ParameterError(f"{output} is there already: choose another name, or pass --force to replace it")


def _source(
    prior_file: Path,
    users_file: Path | None,
    columns: Columns,
    written: list[Dialect],
    priors: Groups[Prior],
) -> Source:
    """The files and options of the commands that the page prints; of a file elsewhere the name alone."""
    prior, users = (None if path is None else _shown(path) for path in (prior_file, users_file))
    made = Source(str(prior), columns.item, columns.count, priors.by, columns.near, as_typed(written[0]))
    if users is None:
        return made
    own = {"user": columns.user, "item": columns.item, "weight": columns.weight}
    return replace(made, users={"path": users, **own, "read": as_typed(written[1])})


def _shown(path: Path) -> str:
    """A path as it was typed, or the name alone: a page that is passed on tells no folder of its owner."""
    return path.name if path.is_absolute() or ".." in path.parts else str(path)


def _opened(path: Path) -> bool:
    """Whether a browser took the page."""
    try:
        return webbrowser.open(path.absolute().as_uri())
    except webbrowser.Error:
        return False
