"""Small pictures: the kernel as a map, answers as tiles, a budget as a bar, a table of distances."""

from __future__ import annotations

from collections.abc import Sequence

from ..samplers.base import KernelSampler, Sampler
from .drawing import colour_of, figure, per_cent, text
from .names import plain
from .recommend import Measured

LARGEST_MAP = 40
"""Categories up to which a map of the kernel can be read."""


def kernel_map(sampler: Sampler) -> str | None:
    """The kernel as a map of squares, where there is one and it can be read."""
    if not isinstance(sampler, KernelSampler) or len(sampler.prior) > LARGEST_MAP:
        return None
    names, matrix = [str(name) for name in sampler.prior.categories], sampler.matrix()
    step = 100 / len(names)
    squares = "".join(
        f'<rect x="{step * j:.2f}%" y="{step * i:.2f}%" width="{step:.2f}%" height="{step:.2f}%" '
        f'fill="var(--sv-accent)" fill-opacity="{max(matrix[i, j], 0.02) ** 0.6:.3f}">'
        f"<title>{text(a)} held, {text(b)} released: {per_cent(matrix[i, j])}</title></rect>"
        for i, a in enumerate(names)
        for j, b in enumerate(names)
    )
    labels = "".join(f"<span>{text(a)}</span>" for a in names)
    body = (
        f'<div class="sv-map"><div class="sv-map-names" aria-hidden="true">{labels}</div>'
        f'<svg width="100%" height="100%" aria-hidden="true">{squares}</svg></div>'
    )
    own = "; ".join(f"{a}: {per_cent(matrix[i, i])}" for i, a in enumerate(names))
    return figure(f"The kernel of {sampler.name}", body, f"How often one's only category is released. {own}.")


def distance_table(rows: Sequence[tuple[Measured, float, float, bool]]) -> str:
    """Per sampler: the distance from this person, from the people of the page, and from anybody."""
    lines = "".join(
        f'<tr><th scope="row"><i class="sv-dot" style="background:{colour_of(one.sampler)}"></i>'
        f"{text(plain(one.sampler).name)}<small>{text(one.sampler)}</small></th>"
        f"<td>{own:.4f}</td><td>{one.typical:.4f}</td><td>{one.worst:.4f}</td><td>{anybody:.4f}</td>"
        f"<td>{'yes' if keeps else 'no'}</td></tr>"
        for one, own, anybody, keeps in rows
    )
    heads = ("sampler", "this person", "typical", "worst here", "worst possible", "keeps the public data")
    head = "".join(f'<th scope="col">{one}</th>' for one in heads)
    return (
        f'<div class="sv-scroll" tabindex="0" role="region" aria-label="Table of distances"><table '
        f'class="sv-table"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
    )


def answers(spent: Sequence[tuple[str, float]], most: int = 40) -> str:
    """Released categories as tiles, the newest first; a refusal is a tile without an answer."""
    if not spent:
        return '<p class="sv-soft">Nothing released yet.</p>'
    tiles = "".join(
        f'<li class="sv-tile">{text(answer)}</li>' if cost else '<li class="sv-tile sv-no">refused</li>'
        for answer, cost in reversed(spent[-most:])
    )
    return f'<ul class="sv-tiles" aria-label="Released, the newest first">{tiles}</ul>'


def budget_bar(left: float, budget: float) -> str:
    """The budget as a bar that empties."""
    share = 100 * min(max(left / budget, 0.0), 1.0) if budget > 0 else 0.0
    return (
        f'<div class="sv-budget" role="meter" aria-label="Budget left" aria-valuemin="0" '
        f'aria-valuemax="{budget:g}" aria-valuenow="{left:g}"><i style="width:{share:.1f}%"></i></div>'
        f'<p class="sv-soft">Left of the budget: <b>{left:g}</b> of {budget:g}.</p>'
    )
