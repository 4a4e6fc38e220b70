"""Locally private sampling with public data: the public names, and nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import bounds
    from .collecting.estimate import Estimate, estimate, how_many, whole_population
    from .collecting.verdict import Verdict, verdict
    from .divergences import (
        CHI2,
        DIVERGENCES,
        HELLINGER2,
        JS,
        KL,
        REVERSE_KL,
        TV,
        FDivergence,
        alpha,
        hockey_stick,
    )
    from .errors import (
        BudgetError,
        CertificateError,
        EstimateError,
        LedgerError,
        MechanismFileError,
        NotLinearError,
        ParameterError,
        PriorError,
        RandomnessError,
        SottovoceError,
        StoreError,
        TableError,
        TargetError,
        UserDataError,
    )
    from .pictures.plots import plot_box, plot_comparison, plot_estimate, plot_tradeoff
    from .planning.choose import Choice, choose
    from .planning.compare import Comparison, ComparisonRow, compare
    from .planning.fitted import PublicUsers, fitted
    from .planning.limit import Limit, limit
    from .planning.several import SamplesRow, compare_samples
    from .planning.shuffling import amplified, amplified_delta, local_epsilon_for, reports_for
    from .prior import Prior
    from .release.audit import AuditReport, audit
    from .release.certify import certify
    from .release.file import Policy, load, load_groups
    from .release.ledger import Ledger
    from .release.mechanism import Mechanism
    from .releasing import release_table
    from .samplers.base import ClipSampler, KernelSampler, Sampler
    from .samplers.catalogue import (
        SAMPLERS,
        blend,
        global_minimax,
        kernel_clip,
        local_minimax,
        minimax_kernel,
        power_caps,
        prior_minimax,
        randomized_response,
        relative_mollifier,
        rr_with_prior,
        trimmed,
    )
    from .samplers.joint import JointSampler, several
    from .tables.files import Dialect
    from .tables.priors import build_prior
    from .tables.query import count_table
    from .tables.tally import Tally
    from .tables.users import read_users
    from .users import Users

__version__ = "0.2.0"

__all__ = [
    "CHI2",
    "DIVERGENCES",
    "HELLINGER2",
    "JS",
    "KL",
    "REVERSE_KL",
    "SAMPLERS",
    "TV",
    "AuditReport",
    "BudgetError",
    "CertificateError",
    "Choice",
    "ClipSampler",
    "Comparison",
    "ComparisonRow",
    "Dialect",
    "Estimate",
    "EstimateError",
    "FDivergence",
    "JointSampler",
    "KernelSampler",
    "Ledger",
    "LedgerError",
    "Limit",
    "Mechanism",
    "MechanismFileError",
    "NotLinearError",
    "ParameterError",
    "Policy",
    "Prior",
    "PriorError",
    "PublicUsers",
    "RandomnessError",
    "Sampler",
    "SamplesRow",
    "SottovoceError",
    "StoreError",
    "TableError",
    "Tally",
    "TargetError",
    "UserDataError",
    "Users",
    "Verdict",
    "alpha",
    "amplified",
    "amplified_delta",
    "audit",
    "blend",
    "bounds",
    "build_prior",
    "certify",
    "choose",
    "compare",
    "compare_samples",
    "count_table",
    "estimate",
    "fitted",
    "global_minimax",
    "hockey_stick",
    "how_many",
    "kernel_clip",
    "limit",
    "load",
    "load_groups",
    "local_epsilon_for",
    "local_minimax",
    "minimax_kernel",
    "plot_box",
    "plot_comparison",
    "plot_estimate",
    "plot_tradeoff",
    "power_caps",
    "prior_minimax",
    "randomized_response",
    "read_users",
    "relative_mollifier",
    "release_table",
    "reports_for",
    "rr_with_prior",
    "several",
    "trimmed",
    "verdict",
    "whole_population",
]

# Where each name lives; a room is loaded when one of its names is first asked for.
_ROOMS = {
    "collecting.estimate": "Estimate estimate how_many whole_population",
    "collecting.verdict": "Verdict verdict",
    "divergences": "CHI2 DIVERGENCES HELLINGER2 JS KL REVERSE_KL TV FDivergence alpha hockey_stick",
    "errors": (
        "BudgetError CertificateError EstimateError LedgerError MechanismFileError NotLinearError "
        "ParameterError PriorError RandomnessError SottovoceError StoreError TableError TargetError "
        "UserDataError"
    ),
    "pictures.plots": "plot_box plot_comparison plot_estimate plot_tradeoff",
    "planning.choose": "Choice choose",
    "planning.compare": "Comparison ComparisonRow compare",
    "planning.fitted": "PublicUsers fitted",
    "planning.limit": "Limit limit",
    "planning.several": "SamplesRow compare_samples",
    "planning.shuffling": "amplified amplified_delta local_epsilon_for reports_for",
    "prior": "Prior",
    "release.audit": "AuditReport audit",
    "release.certify": "certify",
    "release.ledger": "Ledger",
    "release.mechanism": "Mechanism",
    "release.file": "Policy load load_groups",
    "releasing": "release_table",
    "samplers.base": "ClipSampler KernelSampler Sampler",
    "samplers.catalogue": (
        "SAMPLERS blend global_minimax kernel_clip local_minimax minimax_kernel power_caps "
        "prior_minimax randomized_response relative_mollifier rr_with_prior trimmed"
    ),
    "samplers.joint": "JointSampler several",
    "tables.files": "Dialect",
    "tables.query": "count_table",
    "tables.priors": "build_prior",
    "tables.users": "read_users",
    "tables.tally": "Tally",
    "users": "Users",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "bounds":  # a public module, loaded like the rooms
        return import_module(".bounds", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")
    try:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"sottovoce.{name} needs {missing.name}; install it with: pip install 'sottovoce[cli]'"
        ) from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
