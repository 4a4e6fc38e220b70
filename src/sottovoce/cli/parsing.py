"""Samplers and divergences as one types them: fitted, blend:weight=0.3,trimmed=1, alpha:order=2."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, cast

from .. import divergences
from ..divergences import DIVERGENCES, FDivergence
from ..errors import ParameterError
from ..planning.choosing import choose
from ..planning.fitted import fitted
from ..prior import Prior
from ..samplers import catalogue
from ..samplers.base import ClipSampler, Sampler
from ..samplers.trimming import MARK, trimmed


def _parse(text: str, what: str, known: list[str]) -> tuple[str, dict[str, float]]:
    """Split name:key=value,key=value; hyphens and underscores are the same, so are cases of letters."""
    head, _, tail = text.partition(":")
    name = head.strip().lower().replace("-", "_")
    if name not in known:
        names = ", ".join(k.replace("_", "-") for k in known)
        raise ParameterError(f"{what} must be one of {names}, got {head!r}")
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


def auto(prior: Prior, epsilon: float) -> Sampler:
    """What `sottovoce choose` recommends for this prior and ε, on users invented from the prior."""
    return choose(prior, epsilon, limit=False).sampler


def fitted_by_prior(prior: Prior, epsilon: float, *, tail: float | None = None) -> Sampler:
    """`fitted` with nothing but the prior: users would have to be declared public."""
    return fitted(prior, epsilon, tail=tail)


SAMPLERS: dict[str, Callable[..., Sampler]] = {"fitted": fitted_by_prior, **catalogue.SAMPLERS}
"""Every sampler that a command can be asked for by name, apart from auto."""


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
    takes = {"alpha": "order", "hockey_stick": "gamma"}
    name, options = _parse(text, "divergence", [*DIVERGENCES, *takes])
    if list(options) != ([takes[name]] if name in takes else []):
        form = f"{name}:{takes[name]}=2" if name in takes else name
        raise ParameterError(f"divergence must be written {form.replace('_', '-')}, got {text!r}")
    if name in DIVERGENCES:
        return DIVERGENCES[name]
    made: FDivergence = getattr(divergences, name)(*options.values())
    return made


def check_picture(path: Path | None, force: bool) -> None:
    """Refuse a picture that cannot be drawn, or that would replace a file nobody said to replace."""
    fits = path is None or (path.suffix.lower() in (".png", ".pdf", ".svg") and path.parent.is_dir())
    if not fits or (path is not None and path.is_dir()):
        raise ParameterError(
            f"{path} cannot be drawn: name a .png, .pdf or .svg file in a folder that exists"
        )
    if path is not None and path.exists() and not force:
        raise ParameterError(f"{path} is there already: choose another name, or say --force to replace it")
