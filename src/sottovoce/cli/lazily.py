"""The commands by name, each imported when it is asked for: `--help` needs none of them, a command one."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .._starting import heard
from .progress import choose_way, complete_way
from .terminal import be_quiet

COMMANDS = {
    "prior": "Count public data into a prior, or into one per group.",
    "choose": "One recommendation: a sampler and, for a target, the smallest epsilon that meets it.",
    "compare": "How far each sampler's release is from each user's own data.",
    "samples": "What several samples per user are worth: released together, separately, or one alone, for "
    "the same ε.",
    "design": "A card for one sampler: what it keeps and how bad it can get; with -o also a certified "
    "mechanism.",
    "ledger": "A budget of epsilon per user and epoch: make one on purpose, and see what was charged.",
    "release": "Release one private category per user, in exact arithmetic, from the operating system's "
    "randomness.",
    "collect": "Serve a mechanism file, and store the private reports that devices send back.",
    "estimate": "What the users are like on average, from their private reports; first of all, whether that "
    "can be told.",
    "audit": "Check the certificate again in exact arithmetic, and test the releases as a black box.",
    "amplify": "What shuffling adds: the central epsilon of many reports whose order nobody sees.",
    "explore": "A page in the browser: move ε, pick samplers, shape a user, and see what is released.",
    "demo": "Two thousand invented film lovers: a prior, a comparison, releases, an estimate and a page of "
    "it all.",
    "help": "Read about a command or a topic, here in the terminal.",
}
"""Every command in the order in which one meets it, with the first line of its help; a test compares them."""


def _quietly(
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", callback=be_quiet, expose_value=False, help="No notes beside the result; errors stay."
        ),
    ] = False,
    progress: Annotated[
        str,
        typer.Option(
            "--progress",
            callback=choose_way,
            expose_value=False,
            metavar="WAY",
            help="How long steps are shown: bar (on a terminal), json (lines for programs) or none.",
            autocompletion=complete_way,
        ),
    ] = "bar",
) -> None:
    """The holder of the options that every command has."""


class _Commands(MutableMapping[str, Any]):
    """Commands by name: those registered already, and those whose module is still to be imported."""

    def __init__(self, ready: MutableMapping[str, Any]) -> None:
        self._ready = {name: _prepared(one) for name, one in ready.items()}

    def __getitem__(self, name: str) -> Any:
        if name not in self._ready:
            if name not in COMMANDS:
                raise KeyError(name)
            self._ready[name] = _prepared(_imported(name))
        return self._ready[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._ready[name] = command

    def __delitem__(self, name: str) -> None:
        del self._ready[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*COMMANDS, *self._ready]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _imported(name: str) -> Any:
    """The command, or the group of commands, that a module registers."""
    module = import_module(f".{name}", __package__)
    app = typer.Typer(rich_markup_mode="rich", add_completion=False)
    if hasattr(module, "ledger_app"):
        return typer.main.get_group(module.ledger_app)
    from .app import app as whole

    found = next(
        one for one in whole.registered_commands if getattr(one.callback, "__module__", "") == module.__name__
    )
    app.registered_commands = [found]
    return typer.main.get_command(app)


def _prepared(command: Any) -> Any:
    """With --quiet and --progress, and with Ctrl-C heard from the moment on at which its work begins."""
    for one in getattr(command, "commands", {}).values():
        _prepared(one)
    if hasattr(command, "commands"):
        _tidy(command)
        return command
    holder = typer.Typer(add_completion=False)
    holder.command()(_quietly)
    command.params.extend(typer.main.get_command(holder).params)
    _tidy(command)
    invoke = command.invoke

    def invoked(context: Any) -> Any:
        heard()
        return invoke(context)

    command.invoke = invoked
    return command


def _tidy(command: Any) -> None:
    """A help that fits: paragraphs flow, and an option that takes no value does not seem to take one."""
    if command.help:
        paragraphs = command.help.split("\n\n")
        command.help = "\n\n".join(
            one if one.startswith("\b") else " ".join(one.split()) for one in paragraphs
        )
    own_help = command.get_help_option

    def help_option(context: Any) -> Any:
        found = own_help(context)
        for one in (*command.params, *([found] if found is not None else [])):
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return found

    command.get_help_option = help_option


class Lazily(TyperGroup):
    """The commands in the order in which one meets them, none imported before it is needed."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Commands(self.commands)
        _tidy(self)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands: names and first lines, for which no module is needed."""
        given, self.commands = (
            self.commands,
            {name: TyperCommand(name, help=COMMANDS[name]) for name in COMMANDS},
        )
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = given
