"""The demo's page: one HTML file that holds its pictures and asks nothing of the network.

What it looks like stands in report.html, a template; here its values are filled in.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from .._atomic import write_whole
from .._html import Listing, facts
from ..demo import DemoData, DemoRelease, averages
from ..planning.cards import Card
from ..planning.compare import Comparison


def picture(path: Path, description: str) -> str:
    """A picture inside the page, with a description for those who cannot see it."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{html.escape(description)}" src="data:image/png;base64,{data}">'


def demo_report(
    data: DemoData,
    comparison: Comparison,
    card: Card,
    released: DemoRelease,
    pictures: Sequence[tuple[Path, str]],
    path: Path,
) -> Path:
    """Write the demo's page, whole or not at all."""
    prior, shares = data.priors[released.group], released.found
    order = (-prior.probabilities).argsort(kind="stable").tolist()
    epsilons = list(dict.fromkeys(row.epsilon for row in comparison))
    low, high = shares.interval()
    columns = (prior.probabilities, released.truth, shares.values)
    estimated = [
        (str(prior.categories[i]), *(f"{c[i]:.3f}" for c in columns), f"{low[i]:.3f} … {high[i]:.3f}")
        for i in order
    ]
    sampled = [(name, *cells, "yes" if keeps else "no") for name, cells, keeps in averages(comparison)]
    filled = {
        "verdict": _verdict(comparison, card, released),
        "members": f"{sum(map(len, released.answers.values())):,}",
        "genres": str(len(prior)),
        "comparison_picture": picture(*pictures[0]),
        "samplers": Listing(("sampler", *(f"ε = {e:g}" for e in epsilons), "keeps q"), sampled).html(),
        "facts": facts("", _facts(card, released)),
        "group": html.escape(released.group),
        "collecting": f"{shares.model.epsilon:g}",
        "words": html.escape(shares.summary()),
        "estimate_picture": picture(*pictures[1]),
        "estimate": Listing(("genre", "prior", "truth", "estimate", "95 % interval"), estimated).html(),
    }
    template = Template(files(__package__).joinpath("report.html").read_text(encoding="utf-8"))
    write_whole(template.substitute(filled), path)
    return path


def _verdict(comparison: Comparison, card: Card, released: DemoRelease) -> str:
    """What to take from the page, in three sentences."""
    name = card.sampler.split("(")[0]
    mine = [row for row in comparison if row.sampler == name and row.epsilon == card.epsilon]
    mean, most = (sum(getattr(row, what) for row in mine) / len(mine) for what in ("mean", "maximum"))
    total = sum(map(len, released.answers.values()))
    sentences = [
        f"<b>Take {html.escape(name)}</b>: at ε = {card.epsilon:g} the released genre is {mean:.3f} away "
        f"from an honest draw of the member's own on average (total variation), {most:.3f} for the "
        f"worst-served.",
        f"<b>Private by certificate</b>: no answer is more than {math.exp(card.epsilon):.3g} times likelier "
        f"from one member than from another. {total:,} releases took {released.seconds * 1e3:.0f} ms.",
        f"<b>What can be learnt</b>: {html.escape(released.found.verdict().summary())}",
    ]
    return "\n".join(f"<p>{sentence}</p>" for sentence in sentences)


def _facts(card: Card, released: DemoRelease) -> list[tuple[str, object]]:
    return [
        ("sampler", card.sampler),
        ("epsilon", f"{card.epsilon:g}"),
        ("keeps the public data", "yes" if card.keeps_prior else "no"),
        ("worst case, total variation", f"{card.worst_cases[0].this:.4f}"),
        ("the paper's best linear sampler, at worst", f"{card.worst_cases[0].paper_bound:.4f}"),
        ("certificate", "checked, in integers"),
        ("digest", f"{released.mechanisms[released.group].digest[:16]}… in mechanism.json"),
        ("releases", "from the operating system's randomness"),
    ]
