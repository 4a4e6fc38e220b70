"""Locally private sampling with public data: every public name, imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"
_HOME = {
    "bounds": ".bounds",
    "errors": ".errors",
    "Estimate": ".collecting.estimate",
    "estimate": ".collecting.estimate",
    "how_many": ".collecting.estimate",
    "whole_population": ".collecting.estimate",
    "CHI2": ".divergences",
    "DIVERGENCES": ".divergences",
    "HELLINGER2": ".divergences",
    "JS": ".divergences",
    "KL": ".divergences",
    "REVERSE_KL": ".divergences",
    "TV": ".divergences",
    "FDivergence": ".divergences",
    "alpha": ".divergences",
    "hockey_stick": ".divergences",
    "Line": ".geometry",
    "Tree": ".geometry",
    "wasserstein": ".geometry",
    "plot_box": ".pictures.plots",
    "choose": ".planning.choose",
    "Comparison": ".planning.compare",
    "compare": ".planning.compare",
    "PublicUsers": ".planning.fitted",
    "fitted": ".planning.fitted",
    "limit": ".planning.limit",
    "compare_over_time": ".planning.over_time",
    "plan": ".planning.plan",
    "amplify": ".planning.shuffling",
    "Prior": ".prior",
    "Users": ".records",
    "audit": ".release.audit",
    "certify": ".release.certify",
    "Policy": ".release.file",
    "load": ".release.file",
    "load_groups": ".release.file",
    "Ledger": ".release.ledger",
    "Mechanism": ".release.mechanism",
    "release_table": ".releasing",
    "ClipSampler": ".samplers.base",
    "KernelSampler": ".samplers.base",
    "Sampler": ".samplers.base",
    "check_sampler": ".samplers.base",
    "SAMPLERS": ".samplers.catalogue",
    "blend": ".samplers.catalogue",
    "global_minimax": ".samplers.catalogue",
    "kernel_clip": ".samplers.catalogue",
    "local_minimax": ".samplers.catalogue",
    "minimax_kernel": ".samplers.catalogue",
    "power_caps": ".samplers.catalogue",
    "prior_minimax": ".samplers.catalogue",
    "randomized_response": ".samplers.catalogue",
    "relative_mollifier": ".samplers.catalogue",
    "rr_with_prior": ".samplers.catalogue",
    "nearest": ".samplers.nearest",
    "stream": ".samplers.stream",
    "survey": ".samplers.survey",
    "Dialect": ".tables.files",
    "build_prior": ".tables.priors",
    "read_users": ".tables.users",
}
"""The module of every public name (`bounds` and `errors` are modules). Type checkers read `__init__.pyi`."""
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")
    try:
        home = import_module(_HOME[name], __name__)
        value = home if _HOME[name] == f".{name}" else getattr(home, name)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"sottovoce.{name} needs {missing.name}; install it with: pip install 'sottovoce[cli]'"
        ) from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
