"""What a notebook shows of a sampler: the facts that one chooses by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _html
from ..divergences import TV

if TYPE_CHECKING:
    from .base import Sampler
    from .joint import JointSampler


def sampler_html(sampler: Sampler) -> str:
    """The facts of a sampler, from its prior and ε alone."""
    options = [(name, f"{value:.4g}") for name, value in sampler.options.items()]
    rows: list[tuple[str, object]] = [
        ("epsilon", f"{sampler.epsilon:g}"),
        *options,
        ("categories", f"{len(sampler.prior):,}"),
        ("keeps the prior", "yes" if sampler.keeps_prior else "no"),
        ("one record is enough", "yes" if sampler.linear else "no"),
        ("distance from anybody, at most", f"{sampler.worst_case(TV):.4f} (total variation)"),
    ]
    return _html.facts(f"Sampler {sampler.name}", [*rows, *_warning(sampler)])


def joint_html(sampler: JointSampler) -> str:
    """The facts of a sampler that gives several samples."""
    rows: list[tuple[str, object]] = [
        ("samples", sampler.samples),
        ("epsilon", f"{sampler.epsilon:g} for all samples together"),
        ("categories", f"{len(sampler.prior):,}"),
        ("keeps the prior", "yes" if sampler.keeps_prior else "no"),
    ]
    return _html.facts(f"Several samples of {sampler.single.name}", [*rows, *_warning(sampler.single)])


def _warning(sampler: Sampler) -> list[tuple[str, object]]:
    made = sampler.prior.made_from_users
    return [("prior", "made from the users it serves: not public")] if made else []
