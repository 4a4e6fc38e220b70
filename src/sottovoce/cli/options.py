"""The options that several commands share, and what their texts mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from shlex import quote
from typing import Any

import click

from ..divergences import DIVERGENCES, TV, Distance, FDivergence, alpha, hockey_stick
from ..errors import ParameterError
from ..geometry import Geometry, wasserstein
from ..planning.choose import choose
from ..planning.fitted import fitted
from ..prior import Prior
from ..release.file import Policy
from ..samplers import catalogue
from ..samplers.base import Sampler
from ..samplers.nearest import nearest
from ..samplers.stream import stream
from ..tables import files
from ..tables.files import DETECTED, SEPARATORS, Dialect, kind_of
from ..tables.priors import NEAR_KEYS, Near, PublicData, read_priors
from ..tables.users import ReadingOptions, read_user_groups
from ..tables.workbook import KINDS
from ..users import Users
from .app import Option
from .terminal import PICTURES, print_note, reading_of

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
SEPARATOR_NAMES = {character: name for name, character in SEPARATORS.items()}
MOST_EPSILONS = 1000
"""The largest number of epsilons in a range: more are a slip of the finger."""


def option(*names: str, panel: str = "Options", **settings: Any) -> Decorator:
    """Declare an option in a panel of the help; a default that says something is shown."""
    default = settings.get("default")
    shown = default not in (None, False, 0) and not settings.get("is_flag") and not settings.get("multiple")
    settings.setdefault("show_default", shown)
    return click.option(*names, cls=Option, panel=panel, **settings)


def column(name: str, text: str, **settings: Any) -> Decorator:
    """Declare the name of a column."""
    return option(name, metavar="COLUMN", panel="Columns", help=text, **settings)


def packed(record: Callable[..., Any], name: str, *declared: Decorator) -> Decorator:
    """Declare options whose values a command gets together, as what `record` makes of them."""
    keys = set(signature(record).parameters)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(**values: Any) -> Any:
            own = {key: values.pop(key) for key in keys & values.keys()}
            return function(**values, **{name: record(**own)})

        decorated: Callable[..., Any] = call
        for decorator in reversed(declared):
            decorated = decorator(decorated)
        return decorated

    return decorate


def _hyphened(names: Iterable[str]) -> list[str]:
    return [name.replace("_", "-") for name in names]


# ---------------------------------------------------------------- samplers, divergences, epsilons


def _parse(text: str, what: str, known: list[str]) -> tuple[str, dict[str, Any]]:
    """Split name:key=value,key=value; hyphens and underscores are the same, so are cases of letters."""
    head, _, tail = text.partition(":")
    name = head.strip().lower().replace("-", "_")
    if name not in known:
        near = get_close_matches(name, known, n=1)
        meant = f"; did you mean {_hyphened(near)[0]}?" if near else ""
        raise ParameterError(f"{what} must be one of {', '.join(_hyphened(known))}, got {head!r}{meant}")
    options: dict[str, Any] = {}
    for pair in filter(None, tail.split(",")):
        key, equals, value = pair.partition("=")
        try:
            number = value if (key.strip(), value) == ("promise", "best") else float(value)
        except ValueError:
            equals = ""
        if not equals or key.strip() in options:
            raise ParameterError(f"{what} options look like {head}:name=number, each once, got {pair!r}")
        options[key.strip()] = number
    return name, options


def parse_epsilons(texts: Sequence[str]) -> list[float]:
    """2 → 2; 1,2,4 → 1, 2, 4; 1:8 → 1, 2, …, 8; 1:2:0.5 → 1, 1.5, 2; each number once."""
    epsilons: list[float] = []
    for text in texts:
        if re.fullmatch("[0-9]+,[0-9]+", text.strip(), re.ASCII):
            one, other = text.strip().split(",")
            raise ParameterError(
                f"epsilon {text} may be one number or two: write -e {one}.{other} or -e {one} -e {other}"
            )
    for piece in (piece.strip() for text in texts for piece in text.split(",")):
        numbers: list[Decimal] = []
        with suppress(InvalidOperation):
            numbers = [Decimal(part.strip()) for part in piece.split(":")]
        if len(numbers) == 1 and not numbers[0].is_snan():
            epsilons.append(float(numbers[0]))
        elif 2 <= len(numbers) <= 3 and all(number.is_finite() for number in numbers):
            epsilons += _steps(piece, *numbers)
        else:
            form = "a number, a list such as 1,2,4 or a range such as 1:8 or 1:8:0.5"
            raise ParameterError(f"epsilon must be {form}, got {piece!r}")
    return list(dict.fromkeys(epsilons))


def _steps(piece: str, first: Decimal, last: Decimal, step: Decimal = Decimal(1)) -> list[float]:
    """Return the numbers of a range, both ends included, counted in decimals: 0.1:0.3:0.1 has three."""
    try:
        fits = step > 0 and 0 <= (last - first) / step < MOST_EPSILONS
    except ArithmeticError:
        fits = False
    if not fits:
        form = f"first:last or first:last:step, upwards, at most {MOST_EPSILONS} numbers"
        raise ParameterError(f"a range of epsilons is {form}, got {piece!r}")
    return [float(first + i * step) for i in range(int((last - first) / step) + 1)]


def auto(prior: Prior, epsilon: float) -> Sampler:
    """Return what `sottovoce choose` recommends for this prior and ε, on users invented from the prior."""
    return choose(prior, epsilon, limit=False).sampler


SAMPLERS: dict[str, Callable[..., Sampler]] = {"fitted": fitted, **catalogue.SAMPLERS}
"""Every sampler that can be named, apart from auto."""
_PARAMETRIC = {"alpha": (alpha, "order"), "hockey_stick": (hockey_stick, "gamma")}
SAMPLER_NAMES = (
    f"{', '.join(_hyphened(SAMPLERS))}, nearest; parameters as in blend:weight=0.3, fitted:promise=best"
)
DIVERGENCE_NAMES = f"{', '.join(_hyphened(DIVERGENCES))}, alpha:order=2, hockey-stick:gamma=2, w1"


def parse_sampler(text: str, *, streams: bool = False) -> tuple[Callable[..., Any], dict[str, Any]]:
    """kernel-clip, blend:weight=0.3 → its constructor and options; with `streams` stream:horizon=12 too."""
    known: dict[str, Callable[..., Any]] = {**SAMPLERS, "auto": auto, "nearest": nearest}
    if streams:
        known["stream"] = stream
    elif text.partition(":")[0] == "stream":
        raise ParameterError("design -s stream makes a stream; in Python, compare_over_time compares one")
    name, options = _parse(text, "sampler", list(known))
    make = known[name]
    parameters = signature(known[name]).parameters.values()
    keywords = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    allowed = [keyword for keyword in keywords if keyword not in ("geometry", "paced")]
    for key in options:
        if key not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no option"
            raise ParameterError(f"sampler {name.replace('_', '-')} {takes}, got {key!r}")
    if "horizon" in options:
        horizon = options["horizon"]
        if not horizon >= 0 or horizon % 1:
            raise ParameterError("horizon must be a number of releases such as 12; 0 plans without an end")
        options["horizon"] = int(horizon) or None
    return make, options


def parse_near(text: str | None) -> Near | None:
    """position=year → its columns."""
    if text is None:
        return None
    parents: list[str] = []
    given: dict[str, str] = {}
    for pair in text.split(","):
        key, value = (part.strip() for part in pair.partition("=")[::2])
        if key not in NEAR_KEYS or not value:
            raise ParameterError(f"--near takes {'=COLUMN, '.join(NEAR_KEYS)}=COLUMN, got {pair!r}")
        if key in given:
            raise ParameterError(f"--near takes each key once, and only parent several times; got {text!r}")
        if key == "parent":
            parents.append(value)
        else:
            given[key] = value
    return Near(parents=tuple(parents), **given)


def placed(make: Callable[..., Any], geometry: Geometry | None) -> Callable[..., Any]:
    """The constructor with the geometry that it needs or takes."""
    if make is nearest and geometry is None:
        raise ParameterError("sampler nearest needs --near, the columns that say which categories are near")
    return partial(make, geometry=geometry) if make in (nearest, stream) else make


def parse_divergence(text: str) -> FDivergence | None:
    """tv, alpha:order=2 → the divergence; w1 → None, which stands for the W1 of --near."""
    if text.strip().lower() == "w1":
        return None
    name, options = _parse(text, "divergence", [*DIVERGENCES, *_PARAMETRIC])
    make, parameter = _PARAMETRIC.get(name, (None, None))
    if list(options) != ([] if parameter is None else [parameter]):
        form = name if parameter is None else f"{name}:{parameter}=2"
        raise ParameterError(f"divergence must be written {form.replace('_', '-')}, got {text!r}")
    return DIVERGENCES[name] if make is None else make(*options.values())


def in_place(measures: Iterable[FDivergence | None], geometry: Geometry | None) -> list[Distance]:
    """The divergences with W1 for None; with a geometry W1 is added where nothing was named."""
    listed = list(measures) or ([TV] if geometry is None else [None, TV])
    if geometry is None:
        if None in listed:
            raise ParameterError("divergence w1 needs --near, the columns that say which categories are near")
        return [measure for measure in listed if measure is not None]
    return [wasserstein(geometry) if measure is None else measure for measure in listed]


def complete(names: Sequence[str]) -> Callable[..., list[str]]:
    """Complete one of these names in the shell; hyphens and underscores are the same."""

    def completed(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in _hyphened(names) if name.startswith(incomplete.lower().replace("_", "-"))]

    return completed


complete_sampler = complete([*SAMPLERS, "auto"])
complete_divergence = complete([*DIVERGENCES, *(f"{name}:{key}=" for name, (_, key) in _PARAMETRIC.items())])
epsilons_option = option(
    "--epsilon", "-e", "epsilons", required=True, multiple=True, metavar="NUMBERS", panel="Samplers",
    callback=lambda _context, _option, texts: parse_epsilons(texts),
    help="Privacy parameter; several as 1,2,4 or 1:8 or 1:8:0.5.",
)  # fmt: skip

# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Reading:
    """How one table is written: the dialect, and whether it has a column for each category."""

    dialect: Dialect = DETECTED
    wide: bool = False

    def as_typed(self) -> str:
        """Return the settings of --read, as a user types them."""
        dialect = {k: v for k, v in asdict(self.dialect).items() if v != getattr(DETECTED, k)}
        return ",".join(f"{key}={SEPARATOR_NAMES.get(value, value)}" for key, value in dialect.items())


def readings(texts: Sequence[str], *tables: Path) -> list[Reading]:
    """Return how each table is written: separator=;,sheet=Survey/Members,wide → one value for each table."""
    allowed = [field.name for field in fields(Dialect)]
    settings: dict[str, list[str]] = {}
    for pair in (pair for text in texts for pair in text.split(",")):
        key, equals, value = pair.partition("=")
        key = key.strip()
        values = [value] if value == "/" else value.split("/")
        fits = key == "wide" and not equals
        if key in allowed:
            fits = all(values) and len(values) in (1, len(tables))
        if not fits or key in settings:
            raise ParameterError(
                f"--read takes {'=…, '.join(allowed)}=… and wide, each once, with commas between them; got "
                f"{pair!r} (write separator=comma for a comma, and sheet=1/2 for the sheets of two tables)"
            )
        settings[key] = values * (len(tables) // len(values))
    wide = settings.pop("wide", None) is not None
    workbooks = {"", *KINDS} & {kind_of(path) for path in tables}  # a pipe may hold anything
    if "sheet" in settings and not workbooks:
        raise ParameterError(f"--read sheet=… is for workbooks ({', '.join(KINDS)}): leave it out")
    return [
        Reading(Dialect(**{key: values[k] for key, values in settings.items()}), wide)
        for k in range(len(tables))
    ]


def parse_as(text: str | None, option_name: str, *others: str) -> tuple[str, str | None]:
    """as=NAME → ("as", NAME); one of the others → (it, None)."""
    kind, _, name = (text or "").partition("=")
    if kind == "as" and name.strip():
        return "as", name.strip()
    if text not in others:
        raise ParameterError(f"{option_name} must be {', '.join(others)} or as=NAME, got {text!r}")
    return text, None


def reading_options(
    unknown: str,
    unknown_groups: str = "error",
    several_groups: str = "allow",
    empty: str = "skip",
    choices: tuple[str, ...] = ("error", "drop"),
) -> ReadingOptions:
    """Return what to do with rows that do not fit, where --unknown may be as=NAME."""
    kind, name = parse_as(unknown, "--unknown", *choices)
    more: Any = {"empty": empty, "unknown_groups": unknown_groups, "several_groups": several_groups}
    return ReadingOptions(kind, **more) if name is None else ReadingOptions("other", name, **more)


def left_out(unknown: str) -> ReadingOptions:
    """The same for a comparison: with --unknown drop, users and groups of which nothing is left go too."""
    if unknown == "drop":
        return reading_options(unknown, unknown_groups="drop")
    return reading_options(unknown, empty="error")


@dataclass(frozen=True)
class Columns:
    """The columns of a command's tables, and the texts of --read."""

    item: str = "item"
    user: str | None = None
    weight: str | None = None
    count: str | None = None
    by: str | None = None
    near: str | None = None
    read: tuple[str, ...] = ()

    def public(self, path: Path, reading: Reading, **more: Any) -> PublicData:
        """Read the priors of a table of public data."""
        names: Any = {"item": self.item, "count": self.count, "by": self.by, "near": parse_near(self.near)}
        with reading_of(path):
            return read_priors(path, **names, dialect=reading.dialect, ask=self.count != "none", **more)

    def histories(
        self, path: Path, public: PublicData, reading: Reading, options: ReadingOptions
    ) -> tuple[dict[str, Users], str]:
        """Read the users of every group, and how they were counted."""
        settings = {"options": options, "dialect": reading.dialect, "wide": reading.wide}
        with reading_of(path):
            return read_user_groups(path, public.priors, **self.private, by=public.by, **settings)

    @property
    def private(self) -> dict[str, Any]:
        """The columns of a table of users."""
        return {"user": self.user, "item": self.item, "weight": self.weight}

    def as_typed(self, reading: Reading) -> str:
        """Return the options that read one public table, as a user types them."""
        options = {
            "item": None if self.item == "item" else self.item,
            "count": self.count,
            "near": self.near,
            "read": reading.as_typed(),
        }
        return "".join(f" --{name} {quote(value)}" for name, value in options.items() if value)


@dataclass(frozen=True)
class Output:
    """Where a result goes: into a file, a picture, or as JSON to standard output."""

    output: Path | None = None
    picture: Path | None = None
    force: bool = False
    as_json: bool = False

    def check(self, *inputs: Path, kind: str = "") -> None:
        """Refuse what cannot be written, before any work; a `kind` of file has to end in .json."""
        if self.output is not None:
            if self.as_json and files.is_standard(self.output):
                raise ParameterError("-o - and --json both write to standard output: choose one")
            files.check_writable(self.output, *inputs, force=self.force)
            if kind and self.output.suffix.lower() != ".json":
                raise ParameterError(f"{self.output} cannot be written: a {kind} file ends in .json")
        if (path := self.picture) is None:
            return
        if path.suffix.lower() not in PICTURES or not path.parent.is_dir() or path.is_dir():
            raise ParameterError(
                f"{path} cannot be drawn: name a .png, .pdf or .svg file in a folder that exists"
            )
        if path.exists() and not self.force:
            raise ParameterError(
                f"{path} is there already: choose another name, or pass --force to replace it"
            )

    def write_rows(self, rows: list[dict[str, Any]]) -> bool:
        """Write the rows where a file is named, and return whether standard output has them now."""
        if self.output is None:
            return False
        files.write_rows(rows, self.output, replace=self.force)
        if not files.is_standard(self.output):
            print_note(f"written to {self.output}")
        return files.is_standard(self.output)


PATH = click.Path(path_type=Path)


def path_argument(name: str, **settings: Any) -> Decorator:
    """Declare a file as argument."""
    return click.argument(name, type=PATH, **settings)


prior_argument = path_argument("prior_file", metavar="PRIOR")
mechanism_argument = path_argument("mechanism_file", metavar="MECHANISM")
item_option = column("--item", "The category.", default="item")
count_option = column(
    "--count", "Public amounts; default count, weight or probability if there. none: every row counts once."
)
by_option = column("--by", "Group: one prior per group. A user in two groups counts once in each.")
user_option = column("--user", "The user.", default="user")
weight_option = column("--weight", "The users' amounts; default weight or count if there.")
read_option = option(
    "--read", multiple=True, metavar="SETTINGS", panel="Columns",
    help="How a table is written, such as separator=;,decimal=comma (keys: separator, encoding, decimal, "
    "sheet, missing, wide; see sottovoce help tables). With two tables sheet=1/2 is one for each.",
)  # fmt: skip
private_columns = packed(Columns, "columns", user_option, item_option, weight_option, read_option)
near_option = option(
    "--near", metavar="COLUMNS", panel="Columns",
    help="What is near what: position=COLUMN, parent=COLUMN (of each level), or latitude=…,longitude=…",
)  # fmt: skip
public_columns = packed(Columns, "columns", item_option, count_option, by_option, read_option)
placed_columns = packed(Columns, "columns", item_option, count_option, by_option, near_option, read_option)
all_columns = packed(
    Columns, "columns", user_option, item_option, weight_option, count_option, by_option, near_option,
    read_option,
)  # fmt: skip
unknown_option = option(
    "--unknown", default="error", metavar="WHAT", panel="Users",
    help="Items (and groups) that the prior lacks: error, drop their rows, or as=NAME, a category of it.",
)  # fmt: skip
force_option = option("--force", is_flag=True, panel="Output", help="Replace an output file that exists.")
json_option = option(
    "--json", "as_json", is_flag=True, panel="Output", help="Print JSON for programs; null is infinity."
)


def output_options(text: str = "Also write the rows (.csv, .parquet or .json).") -> Decorator:
    """Declare -o with this help, --force and --json."""
    file = option("--output", "-o", type=PATH, panel="Output", help=text)
    return packed(Output, "output", file, force_option, json_option)


provenance_option = option(
    "--provenance", default="public", type=click.Choice(("public", "users")),
    help="Accepted origin of the prior; users: also one made from the users it serves, as an experiment.",
)  # fmt: skip
policy_options = packed(
    Policy,
    "policy",
    option(
        "--max-epsilon", type=float, panel="Budget", help="Refuse a mechanism with a larger epsilon.",
        callback=lambda _context, _option, value: "any" if value is None else value,
    ),
    option("--digest", panel="Budget", help="Refuse any file but the one with this digest (see design -o)."),
    provenance_option,
)  # fmt: skip
