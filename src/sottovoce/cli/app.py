"""The command line as a whole: commands by name, their help, failures in one line, signals."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from shlex import quote
from types import FrameType, MappingProxyType
from typing import Any, Self

import click

from .. import __version__
from ..errors import Setting, SottovoceError
from ..temporary import remove_abandoned
from .terminal import errors, plain, print_error, print_interruption

COMMANDS = {
    "prior": "Count public data into a prior, or into one per group.",
    "plan": "Without public data: what share of the users should answer a survey.",
    "survey": "Without public data: design private reports to learn a prior from.",
    "choose": "Recommend one sampler and, for a target, the smallest epsilon that meets it.",
    "compare": "Measure how far each sampler's release is from each user's own data.",
    "design": "Describe one sampler; with -o also certify it as a mechanism.",
    "ledger": "Create and read a ledger: a budget of epsilon per user and epoch.",
    "release": "Release one private category per user, in exact arithmetic.",
    "collect": "Serve mechanism files, store private reports; export and back up.",
    "estimate": "Estimate what the users are like on average, from their reports.",
    "audit": "Check a certificate again and test the releases as a black box.",
    "amplify": "Compute what shuffling adds: the central epsilon of many reports.",
    "explore": "Open a page in the browser: move ε, pick samplers, shape a user.",
    "demo": "Run the whole way on two thousand invented film lovers.",
    "help": "Read about a command or a topic in the terminal.",
}
"""Every command in the order in which a user needs it. The key is also the name of its module."""
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Option(click.Option):
    """An option with the panel of the help in which it stands, and the parameters it is typed for.

    `stands_for` are parameters of the library that have no option of their own: for each of them what is
    typed behind this one, with {} for the value.
    """

    def __init__(
        self,
        *arguments: Any,
        panel: str = "Options",
        stands_for: Mapping[str, str] = MappingProxyType({}),
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.panel = panel
        self.stands_for = stands_for


def as_typed(parts: Iterable[object], command: click.Command) -> str:
    """A message of the library with the options of this command in place of the parameters it names."""
    return "".join(_option_of(part, command) if isinstance(part, Setting) else str(part) for part in parts)


def _typed(setting: Setting, command: click.Command) -> str:
    """A parameter as a user of the command types it; what the command does not have stays as in Python."""
    name, value = setting.parameter, setting.value
    for declared in command.params:
        flag = max(declared.opts, key=len)
        if isinstance(declared, click.Argument) and name == declared.name:
            return str(declared.make_metavar(click.Context(command)))
        if isinstance(declared, click.Option) and name in (declared.name, flag.strip("-").replace("-", "_")):
            return flag if value is None or declared.is_flag else f"{flag} {quote(str(value))}"
        behind = getattr(declared, "stands_for", {}).get(name)
        if behind is not None:
            return f"{flag} {behind.format('…' if value is None else quote(str(value)))}"
    return str(setting)


def _option_of(setting: Setting, command: click.Command) -> str:
    """The parameter as this command takes it, or else as `sottovoce prior` does, where priors are made."""
    typed = _typed(setting, command)
    if typed != str(setting) or command.name == "prior":
        return typed
    prior = app.get_command(click.Context(app), "prior")
    elsewhere = str(setting) if prior is None else _typed(setting, prior)
    return typed if elsewhere == str(setting) else f"sottovoce prior {elsewhere}"


class Refused(click.ClickException):
    """An error of the library, in the words of the command that met it."""


class Command(click.Command):
    """A command whose help lists the arguments and then the options panel by panel."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the library names its options."""
        try:
            return super().invoke(ctx)
        except SottovoceError as problem:
            raise Refused(as_typed(problem.args, self)) from problem

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and not isinstance(option, click.Argument):
                panels.setdefault(getattr(option, "panel", "Output"), []).append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records, col_max=26)


class Commands(click.Group):
    """The commands of `COMMANDS`, each imported when it is needed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Bring --quiet to the front: it is one option of all commands, and may stand behind any of them."""
        end = args.index("--") if "--" in args else len(args)
        if "--quiet" in args[:end]:
            args = ["--quiet", *(word for word in args[:end] if word != "--quiet"), *args[end:]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of this command."""
        if cmd_name not in COMMANDS:
            return None
        home = import_module(f".{cmd_name}", __package__)
        command: click.Command = getattr(home, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C ends it with one line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            _interrupted(str(stopped))


def _print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        versions = [f"{name} {import_module(name).__version__}" for name in ("numpy", "scipy", "duckdb")]
        python, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
        click.echo(f"sottovoce {__version__}\npython {python}, {', '.join(versions)}; {system}")
        context.exit()


@click.group(
    cls=Commands,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Try: sottovoce demo, then sottovoce explore.",
)
@click.option("--quiet", is_flag=True, help="No notes and bars, errors stay; before or behind a command.")
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version, and those of the libraries on which results depend.",
)
def app(quiet: bool) -> None:
    """A device releases one category (a film genre, a website, a place) that looks like a draw from its
    user's own data, and no answer is more than e^ε times likelier from one user than from another.
    """
    errors.quiet = quiet
    remove_abandoned()


# ---------------------------------------------------------------- one run: failures and signals


def run() -> None:
    """Run the command; a bad option or a bad input is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ε shows ?, not a traceback
    errors.quiet = False
    sys.unraisablehook = _raise_again
    try:
        with signals:
            code = app.main(prog_name="sottovoce", standalone_mode=False)
        raise SystemExit(code if isinstance(code, int) else 0)
    except SottovoceError as problem:
        _stop(str(problem))
    except Refused as problem:
        _stop(problem.message)
    except click.ClickException as problem:
        _misused(problem)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as problem:
        _stop(f"{problem.filename or 'file'}: {problem.strerror or type(problem).__name__}")
    except (KeyboardInterrupt, click.Abort):
        _interrupted("")


def _misused(problem: click.ClickException) -> None:
    """Report a command, option or argument that does not exist or is missing, in one line."""
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        problem.show()
        raise SystemExit(problem.exit_code) from None
    context = getattr(problem, "ctx", None)
    where = f" See: {context.command_path} --help" if context is not None else ""
    _stop(f"{plain(' '.join(problem.format_message().split()))}{where}")


def _stop(message: str) -> None:
    print_error(message)
    raise SystemExit(2) from None


class Interruptions:
    """Inside, Ctrl-C, a request to end and a closed terminal raise KeyboardInterrupt, or wait their turn."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._held = False
        self._pending = False

    def __enter__(self) -> Self:
        self.number = int(signal.SIGINT)
        if threading.current_thread() is threading.main_thread():  # no other thread may set a handler
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
                    self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        if self._held:
            self._pending = True
        else:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """From here on nothing interrupts: the end has begun."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self._before = {}

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let a step end before an interruption counts; what it has done can then be told truly."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt


signals = Interruptions()
"""Those of the command that runs."""


def _interrupted(told: str) -> None:
    """End a command that was interrupted; only a request to end from another program needs no answer."""
    signals.ignore()  # a second one must not cut the line in two
    errors.show_cursor(True)
    if told or signals.number == signal.SIGINT:
        print_interruption(f"interrupted: {told}" if told else "interrupted")
    raise SystemExit(128 + signals.number) from None


def _raise_again(lost: Any) -> None:
    """Send a Ctrl-C again that arrived where Python cannot raise, such as in a destructor."""
    if lost.exc_type is KeyboardInterrupt:
        for delay in (0.01, 0.1, 1.0):  # on a busy machine it can arrive while its timer still starts
            with suppress(KeyboardInterrupt):
                threading.Timer(delay, os.kill, (os.getpid(), signals.number)).start()
                return
    else:
        sys.__unraisablehook__(lost)
