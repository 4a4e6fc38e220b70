"""Plain names of the samplers, and one sentence about each: what a visitor reads first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plain:
    """A name in plain words, and one sentence of explanation."""

    name: str
    sentence: str


NAMES = {
    "fitted": Plain(
        "made to measure",
        "Its room for every category is chosen on people invented from the public data; it looks at nobody "
        "and is usually the closest on average.",
    ),
    "prior_minimax": Plain(
        "fair to everyone",
        "The person it serves worst is served as well as any private method that keeps the public data can.",
    ),
    "kernel_clip": Plain(
        "close to each person",
        "It takes the limits of the paper's table and releases what is nearest to the person within them.",
    ),
    "minimax_kernel": Plain(
        "the paper's table",
        "A fixed table leads from what one holds to what is released; a collector can undo it and estimate "
        "what everybody holds.",
    ),
    "relative_mollifier": Plain(
        "true to the typical",
        "Every category may rise and fall by the same factor: almost perfect for people close to the public "
        "data, poor for unusual ones.",
    ),
    "blend": Plain(
        "half way between",
        "Half way between “true to the typical” and “close to each person”.",
    ),
    "power_caps": Plain(
        "tempered",
        "A ceiling for every category that grows with the root of its public share; “made to measure” "
        "chooses such a ceiling for you.",
    ),
    "local_minimax": Plain(
        "fair to the nearby",
        "Made for people within a certain factor of the public data, and private for everybody else too.",
    ),
    "global_minimax": Plain(
        "without public data",
        "It ignores the public data: the best for the person served worst when nothing is known, and people "
        "like the public are distorted.",
    ),
    "randomized_response": Plain(
        "the classic coin",
        "Tell the truth with a certain chance, else name any other category: simple, and it ignores the "
        "public data.",
    ),
    "rr_with_prior": Plain(
        "the classic, common answers only",
        "The classic coin on the most common categories; rare ones are never released.",
    ),
}
FIRST = ("fitted", "prior_minimax", "kernel_clip", "minimax_kernel", "relative_mollifier")
"""The samplers that the panel shows at once; the others are folded."""
CHOSEN = ("fitted", "kernel_clip", "minimax_kernel")
"""The samplers that are checked when the page opens."""


def plain(sampler: str) -> Plain:
    """The plain name; a sampler that has none is called by its own."""
    return NAMES.get(sampler, Plain(sampler.replace("_", " "), "A sampler of the catalogue."))


def two_lines(sampler: str) -> str:
    """Both names for the label of a box, the technical one beneath; components take inline styles only."""
    small = "display:block;font-size:12px;opacity:.85"
    return f'{plain(sampler).name} <span style="{small}">{sampler}</span>'
