"""Samplers, divergences and epsilons as users type them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from inspect import getfullargspec
from typing import Any

from ..divergences import DIVERGENCES, TV, Distance, FDivergence, alpha, hockey_stick
from ..errors import ParameterError
from ..geometry import Geometry, wasserstein
from ..planning.fitted import fitted
from ..prior import Prior
from ..samplers import catalogue
from ..samplers.base import Sampler
from ..samplers.nearest import nearest
from ..samplers.stream import stream
from .options import option


def hyphened(names: Iterable[str]) -> list[str]:
    """The names as they are typed."""
    return [name.replace("_", "-") for name in names]


def auto(prior: Prior, epsilon: float) -> Sampler:
    """Return what `sottovoce choose` recommends for this prior and ε, on users invented from the prior."""
    from ..planning.choose import choose

    return choose(prior, epsilon, limit=False).sampler


SAMPLERS: dict[str, Callable[..., Sampler]] = {"fitted": fitted, **catalogue.SAMPLERS}
"""The samplers that are compared where none is named."""
EVERY: dict[str, Callable[..., Any]] = {**SAMPLERS, "auto": auto, "nearest": nearest, "stream": stream}
PARAMETRIC = {"alpha": (alpha, "order"), "hockey_stick": (hockey_stick, "gamma")}
SAMPLER_NAMES = (
    f"{', '.join(hyphened(SAMPLERS))}, nearest; parameters as in blend:weight=0.3, fitted:promise=best"
)
DIVERGENCE_NAMES = f"{', '.join(hyphened(DIVERGENCES))}, alpha:order=2, hockey-stick:gamma=2, w1"


def _parse(text: str, what: str, known: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Split name:key=value,key=value; hyphens and underscores are the same, so are cases of letters."""
    head, _, tail = text.partition(":")
    name = head.strip().lower().replace("-", "_")
    if name not in known:
        near = get_close_matches(name, known, n=1)
        meant = f"; did you mean {hyphened(near)[0]}?" if near else ""
        raise ParameterError(f"{what} must be one of {', '.join(hyphened(known))}, got {head!r}{meant}")
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


def parse_sampler(text: str, *, streams: bool = False) -> partial[Any]:
    """kernel-clip, blend:weight=0.3 → its constructor with options; with `streams` stream:horizon=12 too."""
    if text.partition(":")[0] == "stream" and not streams:
        raise ParameterError("design -s stream makes a stream; in Python, compare_over_time compares one")
    name, options = _parse(text, "sampler", [each for each in EVERY if streams or each != "stream"])
    allowed = [key for key in getfullargspec(EVERY[name]).kwonlyargs if key not in ("geometry", "paced")]
    for key in options:
        if key not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no option"
            raise ParameterError(f"sampler {name.replace('_', '-')} {takes}, got {key!r}")
    if "horizon" in options:
        horizon = options["horizon"]
        if not horizon >= 0 or horizon % 1:
            raise ParameterError("horizon must be a number of releases such as 12; 0 plans without an end")
        options["horizon"] = int(horizon) or None
    return partial(EVERY[name], **options)


def with_geometry(makers: Sequence[partial[Any]], geometry: Geometry | None) -> list[partial[Any]]:
    """The constructors with the geometry that they need or take; all of them where none is named."""
    if not makers:
        makers = [partial(make) for make in (*SAMPLERS.values(), *([nearest] if geometry else []))]
    if geometry is None and any(make.func is nearest for make in makers):
        raise ParameterError("sampler nearest needs --near, the columns that say which categories are near")
    return [partial(make, geometry=geometry) if make.func in (nearest, stream) else make for make in makers]


def parse_divergence(text: str) -> FDivergence | None:
    """tv, alpha:order=2 → the divergence; w1 → None, which stands for the W1 of --near."""
    if text.strip().lower() == "w1":
        return None
    name, options = _parse(text, "divergence", [*DIVERGENCES, *PARAMETRIC])
    make, parameter = PARAMETRIC.get(name, (None, None))
    if list(options) != ([] if parameter is None else [parameter]):
        form = name if parameter is None else f"{name}:{parameter}=2"
        raise ParameterError(f"divergence must be written {form.replace('_', '-')}, got {text!r}")
    return DIVERGENCES[name] if make is None else make(*options.values())


def in_geometry(measures: Iterable[FDivergence | None], geometry: Geometry | None) -> list[Distance]:
    """The divergences with W1 for None; with a geometry W1 is added where nothing was named."""
    listed = list(measures) or ([TV] if geometry is None else [None, TV])
    if geometry is None:
        if None in listed:
            raise ParameterError("divergence w1 needs --near, the columns that say which categories are near")
        return [measure for measure in listed if measure is not None]
    return [wasserstein(geometry) if measure is None else measure for measure in listed]


def parse_epsilons(texts: Sequence[str]) -> list[float]:
    """2 → 2; 1,2,4 → 1, 2, 4; each number once."""
    epsilons: list[float] = []
    for text in texts:
        if re.fullmatch("[0-9]+,[0-9]+", text.strip(), re.ASCII):
            first, second = text.strip().split(",")
            raise ParameterError(
                f"epsilon {text} may be one number or two: write -e {first}.{second} "
                f"or -e {first} -e {second}"
            )
        try:
            epsilons += map(float, text.split(","))
        except ValueError:
            raise ParameterError(f"epsilon must be a number, or a list such as 1,2,4, got {text!r}") from None
    return list(dict.fromkeys(epsilons))


def each(parse: Callable[[str], Any]) -> Callable[..., list[Any]]:
    """The callback of an option that may be repeated."""
    return lambda _context, _option, texts: [parse(text) for text in texts]


epsilons_option = option(
    "--epsilon", "-e", "epsilons", required=True, multiple=True, metavar="NUMBERS", panel="Samplers",
    callback=lambda _context, _option, texts: parse_epsilons(texts),
    help="Privacy parameter; several as 1,2,4.",
)  # fmt: skip
