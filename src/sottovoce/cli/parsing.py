"""Samplers and divergences as one types them: fitted, blend:weight=0.3,trimmed=1, alpha:order=2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, cast

from .. import divergences
from ..divergences import DIVERGENCES, FDivergence
from ..errors import ParameterError
from ..planning.choose import choose
from ..planning.fitted import fitted
from ..prior import Prior
from ..samplers import catalogue
from ..samplers.base import ClipSampler, Sampler
from ..samplers.catalogue import MARK, trimmed
from ..tables.files import is_standard

MOST_EPSILONS = 1000
"""Numbers in a range: more are a slip of the finger."""


def _parse(text: str, what: str, known: list[str]) -> tuple[str, dict[str, float]]:
    """Split name:key=value,key=value; hyphens and underscores are the same, so are cases of letters."""
    head, _, tail = text.partition(":")
    name = head.strip().lower().replace("-", "_")
    if name not in known:
        near = get_close_matches(name, known, n=1)
        meant = f"; did you mean {near[0].replace('_', '-')}?" if near else ""
        raise ParameterError(f"{what} must be one of {_listed(known)}, got {head!r}{meant}")
    options: dict[str, float] = {}
    for pair in filter(None, tail.split(",")):
        key, equals, value = pair.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not equals or key.strip() in options:
            raise ParameterError(f"{what} options look like {head}:name=number, each once, got {pair!r}")
        options[key.strip()] = number
    return name, options


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", "-") for name in names)


def parse_epsilons(texts: Sequence[str]) -> list[float]:
    """2 → 2; 1,2,4 → 1, 2, 4; 1:8 → 1, 2, …, 8; 1:2:0.5 → 1, 1.5, 2; each number once."""
    found: list[float] = []
    for piece in (piece.strip() for text in texts for piece in text.split(",")):
        numbers: list[Decimal] = []
        with suppress(InvalidOperation):
            numbers = [Decimal(part.strip()) for part in piece.split(":")]
        if len(numbers) == 1:
            found.append(float(numbers[0]))
        elif 2 <= len(numbers) <= 3 and all(one.is_finite() for one in numbers):
            found += _steps(piece, *numbers)
        else:
            raise ParameterError(
                f"epsilon must be a number, a list such as 1,2,4 or a range such as 1:8 or 1:8:0.5, "
                f"got {piece!r}"
            )
    return list(dict.fromkeys(found))


def _steps(piece: str, first: Decimal, last: Decimal, step: Decimal = Decimal(1)) -> list[float]:
    """The numbers of a range, both ends included, counted in decimals: 0.1:0.3:0.1 has three."""
    if step <= 0 or last < first or (last - first) / step >= MOST_EPSILONS:
        raise ParameterError(
            f"a range of epsilons is first:last or first:last:step, upwards, at most {MOST_EPSILONS} "
            f"numbers, got {piece!r}"
        )
    return [float(first + i * step) for i in range(int((last - first) / step) + 1)]


def auto(prior: Prior, epsilon: float) -> Sampler:
    """What `sottovoce choose` recommends for this prior and ε, on users invented from the prior."""
    return choose(prior, epsilon, limit=False).sampler


def fitted_by_prior(prior: Prior, epsilon: float, *, tail: float | None = None) -> Sampler:
    """`fitted` with nothing but the prior: users would have to be declared public."""
    return fitted(prior, epsilon, tail=tail)


SAMPLERS: dict[str, Callable[..., Sampler]] = {"fitted": fitted_by_prior, **catalogue.SAMPLERS}
"""Every sampler that a command can be asked for by name, apart from auto."""

_TAKES = {"alpha": "order", "hockey_stick": "gamma"}
SAMPLER_NAMES = f"One of {_listed(SAMPLERS)}; options as in blend:weight=0.3"
DIVERGENCE_NAMES = f"One of {_listed(DIVERGENCES)}, alpha:order=2, hockey-stick:gamma=2"
"""For the help of the commands that take them."""


def complete_sampler(incomplete: str) -> list[str]:
    """The names of samplers that begin so, for the shell."""
    return _beginning(incomplete, [*SAMPLERS, "auto"])


def complete_divergence(incomplete: str) -> list[str]:
    """The names of divergences that begin so, for the shell."""
    return _beginning(incomplete, [*DIVERGENCES, *(f"{name}:{key}=" for name, key in _TAKES.items())])


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    shown = [name.replace("_", "-") for name in names]
    return [name for name in shown if name.startswith(incomplete.lower().replace("_", "-"))]


def parse_sampler(text: str) -> tuple[Callable[..., Sampler], dict[str, float]]:
    """kernel-clip, blend:weight=0.3 → its constructor and options."""
    known = {**SAMPLERS, "auto": auto}
    name, options = _parse(text, "sampler", list(known))
    make = known[name]
    if options.get(MARK) == 1:  # of any clip sampler
        options.pop(MARK)
        make = _trimmed(make)
    own = signature(known[name]).parameters.values()
    allowed = [one.name for one in own if one.kind is one.KEYWORD_ONLY]
    for key in options:
        if key not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no option"
            raise ParameterError(f"sampler {name.replace('_', '-')} {takes}, got {key!r}")
    return make, options


def _trimmed(make: Callable[..., Sampler]) -> Callable[..., Sampler]:
    def made(*arguments: Any, **options: Any) -> Sampler:
        return trimmed(cast(ClipSampler, make(*arguments, **options)))

    return made


def parse_divergence(text: str) -> FDivergence:
    """tv, alpha:order=2 → the divergence."""
    name, options = _parse(text, "divergence", [*DIVERGENCES, *_TAKES])
    if list(options) != ([_TAKES[name]] if name in _TAKES else []):
        form = f"{name}:{_TAKES[name]}=2" if name in _TAKES else name
        raise ParameterError(f"divergence must be written {form.replace('_', '-')}, got {text!r}")
    if name in DIVERGENCES:
        return DIVERGENCES[name]
    made: FDivergence = getattr(divergences, name)(*options.values())
    return made


def check_one_result(output: Path | None, as_json: bool) -> None:
    """Refuse two results on standard output."""
    if as_json and is_standard(output):
        raise ParameterError("-o - and --json both want standard output: choose one")


def check_picture(path: Path | None, force: bool) -> None:
    """Refuse a picture that cannot be drawn, or that would replace a file nobody said to replace."""
    fits = path is None or (path.suffix.lower() in (".png", ".pdf", ".svg") and path.parent.is_dir())
    if not fits or (path is not None and path.is_dir()):
        raise ParameterError(
            f"{path} cannot be drawn: name a .png, .pdf or .svg file in a folder that exists"
        )
    if path is not None and path.exists() and not force:
        raise ParameterError(f"{path} is there already: choose another name, or say --force to replace it")
