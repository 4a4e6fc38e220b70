"""The cards of the page: headings, words and the frame around what is drawn. All of it is HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._validate import FloatArray
from ..prior import Prior
from ..release.mechanism import Mechanism
from . import recommend
from .drawing import figure, text
from .names import FIRST, plain
from .people import People, number


def paragraph(words: object) -> str:
    """Plain words as a paragraph."""
    return f'<p class="sv-soft">{text(words)}</p>'


CAUTION = (
    '<details class="sv-note"><summary>How this is computed</summary><p>On at most 200 of the people shown '
    "here: the smallest mean + 0.3 × worst distance (total variation) among the samplers that keep the "
    "public data. The best possible is a proven bound: no private method that keeps the public data has a "
    "smaller mean distance from these people. "
    "These people are private: a sampler that is chosen because it suits them tells a little about them. "
    "<code>sottovoce choose</code> decides from the public data alone.</p></details>"
)
BOX = paragraph(
    "The bar is what may be released, the upright line the public share. A larger ε makes the bars longer. "
    "Categories the person does not have are still released now and then: that is the privacy."
)
COST = paragraph("Distance from this person's own data over ε. Lower is better; the upright line is your ε.")
DISTANCES = paragraph(
    "Total variation: 0 is a perfect draw from the person's own data, 1 has nothing in common with it."
)
MANY = paragraph(
    "Simulated people like those of the data release one category each: what they hold, what they reported, "
    "and what a collector can conclude."
)
KERNEL = paragraph(
    "Each line is what is released for somebody who holds only that category: the stronger, the more often."
)
NO_KERNEL = paragraph("Check minimax_kernel or randomized_response (up to 40 categories) to see a kernel.")
TAKE = paragraph("The certified mechanism, for sv.load and sottovoce release.")


def title() -> str:
    """What the page is about."""
    return (
        '<header class="sv-wide sv-head"><h1>In a quiet voice</h1><p>Everybody\'s own data stay with them; '
        "each person releases <b>one</b> category. It should look like a draw from their own data, yet say "
        "little about them. How little is set by <b>ε</b>: no answer is more than e<sup>ε</sup> times "
        "likelier from one person than from another. Somebody who is like the public data is released "
        "undistorted.</p></header>"
    )


def card(name: str, *parts: str, wide: bool = False) -> str:
    """One card with its heading."""
    kind = "sv-card sv-wide" if wide else "sv-card"
    return (
        f'<section class="{kind}" aria-label="{text(name)}"><h2>{text(name)}</h2>{"".join(parts)}</section>'
    )


def row(*elements: str) -> str:
    """Controls beside each other, wrapped where there is no room."""
    return f'<div class="sv-controls">{"".join(elements)}</div>'


def about(prior: Prior, source: str, crowd: People, left_out: str) -> str:
    """The public data and the people in one line."""
    mark = " <b>Made from the users it serves: not public.</b>" if prior.provenance == "users" else ""
    users = f" Users: {text(left_out)}." if left_out else ""
    who = f"{len(crowd):,} people" if crowd.given else "no people given: some are invented"
    return f"{text(source)}, {len(prior):,} categories, rarest {prior.smallest:.2g}; {who}.{mark}{users}"


def _choice(name: str, box: str) -> str:
    """A sampler to be checked, with its sentence on hover and on tap."""
    one = plain(name)
    return (
        f'<div class="sv-choice" title="{text(one.sentence)}">{box}<details class="sv-what"><summary '
        f'aria-label="What is {text(one.name)}?">?</summary><p>{text(one.sentence)}</p></details></div>'
    )


def panel(
    *,
    data: Sequence[str],
    about: str,
    problem: str,
    epsilon: str,
    samplers: Mapping[str, str],
    person: str,
) -> str:
    """The controls, which stay in view; on a phone ε alone, and the others behind one tap."""
    first = "".join(_choice(name, samplers[name]) for name in FIRST)
    others = [_choice(name, box) for name, box in samplers.items() if name not in FIRST]
    wrong = f'<p class="sv-problem" role="alert">{text(problem)}</p>' if problem else ""
    return (
        f'<nav class="sv-panel" aria-label="Controls"><div class="sv-first">{epsilon}'
        '<label class="sv-toggle"><input type="checkbox" id="sv-more"><span>all controls</span></label>'
        "</div>"
        f'<div class="sv-rest"><div class="sv-group" role="group" aria-label="Person">{person}</div>'
        f'<div class="sv-group" role="group" aria-label="Public data">{"".join(data)}'
        f'<p class="sv-soft">an upload has the columns item and count</p>{wrong}'
        f'<p class="sv-soft">{about}</p></div>'
        f'<div class="sv-group" role="group" aria-label="Samplers"><p class="sv-soft">samplers</p>{first}'
        f'<details class="sv-fold"><summary>{len(others)} more</summary>{"".join(others)}</details></div>'
        f"</div></nav>"
    )


def person(
    counts: FloatArray,
    prior: Prior,
    own: Sequence[int],
    buttons: Mapping[str, str],
    box: str,
    mistake: str,
) -> str:
    """The person's own history as bars with their counts, each with two buttons, and as text."""
    total, held = float(counts.sum()), int((counts > 0).sum())
    largest = float(counts.max())
    bars = "".join(
        f'<div class="sv-row sv-edit"><span class="sv-name" title="{text(prior.categories[i])}">'
        f'{text(prior.categories[i])}</span><div class="sv-own" title="click to add one">'
        f'<i style="width:{100 * counts[i] / largest:.1f}%"></i><b>{_grouped(counts[i])}</b></div>'
        f'<span class="sv-step">{buttons[f"−{i}"]}{buttons[f"+{i}"]}</span></div>'
        for i in own
    )
    hidden = held - len(own)
    more = f'<p class="sv-soft">and {hidden:,} more categories, in the text below</p>' if hidden > 0 else ""
    wrong = f'<p class="sv-problem" role="alert">{text(mistake)}</p>' if mistake else ""
    records, kinds = "record" if total == 1 else "records", "category" if held == 1 else "categories"
    words = f"<p><b>{_grouped(total)}</b> {records} in {held:,} {kinds}. Click a bar to add one record.</p>"
    told = "; ".join(f"{prior.categories[i]} {number(counts[i])}" for i in own)
    return (
        words
        + figure("This person's records", bars, told)
        + more
        + wrong
        + f'<div class="sv-text">{box}</div>'
    )


def _grouped(count: float) -> str:
    """A count with its thousands apart."""
    return f"{int(count):,}" if float(count).is_integer() else number(count)


def typical(prior: Prior, crowd: People) -> str:
    """What the second picture of costs shows, and whether it has the line of the best possible."""
    drawn = recommend.best_possible(prior, recommend.CURVE[0], crowd) is not None
    line = (
        "No private method that keeps the public data goes below the thick line."
        if drawn
        else "The best possible takes too long to compute here; sottovoce compare --limit tells it."
    )
    return paragraph(f"Mean distance over ε. {line}")


def released_by(mechanism: Mechanism) -> str:
    """Which mechanism releases, and how."""
    return (
        f'<p class="sv-soft">From the certified mechanism <code>{text(mechanism.sampler)}</code> '
        f"({mechanism.digest[:16]}), in exact integers, with the operating system's randomness.</p>"
    )


def refusal(spent: Sequence[tuple[str, float]]) -> str:
    """Why the last release was refused, if it was."""
    if not spent or spent[-1][1]:
        return ""
    why = f"<b>Refused</b>: {text(spent[-1][0])}. Each release spends its ε."
    return f'<p class="sv-problem" role="status">{why}</p>'


def concluded(words: str) -> str:
    """What the collector concludes."""
    return f"<p><b>What the collector concludes.</b> {text(words)}</p>"
