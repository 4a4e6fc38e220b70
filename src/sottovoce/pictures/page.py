"""A page of results: one HTML file that holds its pictures and asks nothing of the network."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from .._atomic import write_whole
from ..demo import DemoData, DemoRelease, averages
from ..planning.cards import Card
from ..planning.comparison import Comparison

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; } code { background: #f3f3f3; padding: 0 .2rem; overflow-wrap: anywhere; }
.quiet { color: #666; }
"""


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A table; every cell is text, never markup."""
    first = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def picture(path: Path, words: str) -> str:
    """A picture inside the page, with words for those who cannot see it."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{html.escape(words)}" src="data:image/png;base64,{data}">'


def demo_report(
    data: DemoData,
    comparison: Comparison,
    card: Card,
    released: DemoRelease,
    pictures: Sequence[tuple[Path, str]],
    path: Path,
) -> Path:
    """Write the demo's page, whole or not at all."""
    prior = data.priors[released.group]
    order = (-prior.probabilities).argsort(kind="stable").tolist()
    epsilons = list(dict.fromkeys(row.epsilon for row in comparison))
    found = released.found
    low, high = found.interval()
    total = sum(map(len, released.answers.values()))
    mechanism = released.mechanisms[released.group]
    facts = [
        ("sampler", card.sampler),
        ("epsilon", f"{card.epsilon:g}"),
        ("keeps the public data", "yes" if card.keeps_prior else "no"),
        ("worst case, total variation", f"{card.worst_cases[0].this:.4f}"),
        ("the paper's best linear sampler, at worst", f"{card.worst_cases[0].paper_bound:.4f}"),
        ("certificate", f"checked; digest {mechanism.digest[:16]}…"),
    ]
    parts = [
        "<h1>A film club, in a quiet voice</h1>",
        f"<p>{total:,} invented members, {len(prior)} genres. A public survey gives each age group a prior. "
        "Each member releases <strong>one</strong> genre: it resembles their own history as far as ε-local "
        "differential privacy allows, and somebody who is like the public is released undistorted.</p>",
        *(picture(*one) for one in pictures[:1]),
        f"<h2>The public prior, members {html.escape(released.group)}</h2>",
        table(("genre", "share"), [(prior.categories[i], f"{prior.probabilities[i]:.3f}") for i in order]),
        "<h2>Which sampler</h2>",
        "<p>Distance to each member's own taste (total variation), mean / maximum over the members, averaged "
        "over the groups. 0 is a perfect draw of their own.</p>",
        table(
            ("sampler", *(f"ε = {epsilon:g}" for epsilon in epsilons), "keeps q"),
            [(name, *cells, "yes" if keeps else "no") for name, cells, keeps in averages(comparison)],
        ),
        "<h2>A certified mechanism</h2>",
        table(("fact", ""), facts),
        f"<p>{total:,} releases took {released.seconds * 1e3:.0f} ms: "
        f"{total / released.seconds:,.0f} a second, in exact integer arithmetic, from the operating system's "
        "randomness.</p>",
        "<h2>What the collector learns</h2>",
        f"<p>For this the members {html.escape(released.group)} released once more, through a linear "
        f"mechanism at ε = {found.model.epsilon:g}: what they spent adds up.</p>",
        f"<p>{html.escape(found.words())}</p>",
        *(picture(*one) for one in pictures[1:]),
        table(
            ("genre", "prior", "truth", "estimate", "95 % interval"),
            [
                (
                    prior.categories[i],
                    f"{prior.probabilities[i]:.3f}",
                    f"{released.truth[i]:.3f}",
                    f"{found.values[i]:.3f}",
                    f"{low[i]:.3f} … {high[i]:.3f}",
                )
                for i in order
            ],
        ),
        '<p class="quiet">All of this is invented and was computed on this machine. Next: <code>sottovoce '
        "compare --help</code>, <code>docs/tables.md</code>, <code>docs/guarantees.md</code>.</p>",
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    page = (
        f"<!doctype html><html lang=en><head>{head}<title>sottovoce demo</title><style>{STYLE}</style></head>"
    )
    write_whole(f"{page}<body>{''.join(parts)}</body></html>\n", path)
    return path
