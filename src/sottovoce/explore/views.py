"""What the page shows, as plain values: the page itself only wires these to sliders and charts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import FloatArray
from ..collecting.estimate import estimate
from ..divergences import TV
from ..errors import EstimateError, SottovoceError, TableError
from ..planning.cards import SHUFFLED_DELTA
from ..planning.compare import BEST_POSSIBLE
from ..planning.shuffling import at_a_glance
from ..prior import Prior
from ..release.certify import certify
from ..release.mechanism import Mechanism
from ..samplers.base import ClipSampler, Sampler
from ..samplers.catalogue import SAMPLERS
from ..tables.priors import read_priors
from ..tables.workbook import KINDS
from . import drawing, people, recommend, tiles
from .drawing import ESTIMATE, PERSON, TRUTH, Row, per_cent, text
from .names import plain
from .people import People

MOST_SHOWN = 60
"""Categories in a chart; more could not be told apart."""
AT_ONCE = 24
"""Categories up to which a chart folds nothing; beyond, the first dozen stand in front."""
IN_FRONT = 12
LARGEST_UPLOAD = 10_000_000
_NOT_PLAIN = (
    *(b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"PAR1", b"BZh"),
    *(b"\xfd7zXZ\x00", b"\x04\x22\x4d\x18", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"ARROW1"),
)
"""How compressed and binary tables begin: a small one may unfold into more than the machine holds."""


def uploaded_prior(content: bytes, name: str) -> Prior:
    """A prior from an uploaded file; the error, if any, names the file as the visitor knows it."""
    if len(content) > LARGEST_UPLOAD:
        raise TableError(f"{name} has more than 10 MB: name it on the command line")
    kind = Path(name).suffix.lower()
    if kind not in KINDS:
        kind = ".csv"
        if content.startswith(_NOT_PLAIN):
            raise TableError(f"{name} is compressed or binary: upload a plain CSV file or a workbook")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"upload{kind}"
        path.write_bytes(content)
        try:
            prior = next(iter(read_priors(path).priors.values()))
            certify(SAMPLERS["kernel_clip"](prior, 1.0), provenance="users")
        except SottovoceError as problem:
            raise type(problem)(str(problem).replace(str(path), name)) from None
    return prior


def in_front(prior: Prior, counts: FloatArray) -> tuple[list[int], list[int]]:
    """The categories a chart shows at once, the person's own first, and those that it folds."""
    own, others = people.own_first(counts, prior)
    order = (own + others)[:MOST_SHOWN]
    first = len(order) if len(prior) <= AT_ONCE else min(max(len(own), 3), IN_FRONT)
    return order[:first], order[first:]


def folded_words(prior: Prior, first: Sequence[int], rest: Sequence[int]) -> str:
    """What is folded, and what is not shown at all."""
    hidden = len(prior) - len(first) - len(rest)
    return f"{len(rest)} more categories" + (f" ({hidden:,} others are not drawn)" if hidden else "")


def box_chart(samplers: Sequence[Sampler], counts: FloatArray) -> str:
    """Per category: what may be released, the public share, and what each sampler releases."""
    prior, p = samplers[0].prior, people.shares(counts)
    box = next((one for one in samplers if isinstance(one, ClipSampler)), samplers[0])
    cap = np.minimum(np.exp(box.epsilon) * box.floor, 1.0)
    laws = {one.name: one.distribution(p) for one in samplers}

    def row(i: int) -> Row:
        own = {PERSON: float(p[i])} if p[i] > 0 else {}
        points = {**own, **{name: float(law[i]) for name, law in laws.items()}}
        words = (
            f"may be released with {per_cent(box.floor[i])} to {per_cent(cap[i])}; public "
            f"{per_cent(prior.probabilities[i])}; "
            + ", ".join(f"{name} {per_cent(value)}" for name, value in points.items())
        )
        return Row(
            str(prior.categories[i]), (float(box.floor[i]), float(cap[i])), float(prior.probabilities[i]),
            points=points, value=per_cent(laws[samplers[0].name][i]), words=words,
        )  # fmt: skip

    first, rest = in_front(prior, counts)
    smallest = min(
        float(box.floor[box.floor > 0].min()), *(float(law[law > 0].min()) for law in laws.values())
    )
    legend = drawing.legend(
        [PERSON, *laws],
        drawing.key("interval", f"allowed by {box.name}")
        + drawing.key("tick", "public share")
        + drawing.key("number", f"numbers: {plain(samplers[0].name).name}"),
    )
    chart = drawing.rows_chart(
        "What may be released and what is",
        [row(i) for i in first],
        [row(i) for i in rest],
        drawing.logarithmic(smallest),
        folded_words(prior, first, rest),
        f"Chances of release on a logarithmic scale; the numbers at the right: {samplers[0].name}.",
    )
    return chart + legend


def distances(samplers: Sequence[Sampler], p: FloatArray, those: People) -> str:
    """How far each release is from this person, from the people of the page, and at worst from anybody."""
    return tiles.distance_table(
        [
            (
                recommend.measured(one.prior, one.name, one.epsilon, those),
                float(one.divergence(p, TV)),
                one.worst_case(TV),
                one.keeps_prior,
            )
            for one in samplers
        ]
    )


_AXIS = drawing.Axis(0.0, 10.0, (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))


def own_cost(prior: Prior, names: Sequence[str], p: FloatArray, epsilon: float) -> str:
    """What privacy costs this person, over ε."""
    curves = {name: recommend.own_curve(prior, name, p) for name in names}
    return drawing.lines_chart("Distance from this person over ε", curves, epsilon, _AXIS)


def typical_cost(prior: Prior, names: Sequence[str], those: People, epsilon: float) -> str:
    """What privacy costs the people of the page on average, and the least that it can."""
    curves = {name: recommend.typical_curve(prior, name, those) for name in names}
    best = recommend.limit_curve(prior, those)
    if best:
        curves[BEST_POSSIBLE] = best
    return drawing.lines_chart("Typical distance from these people over ε", curves, epsilon, _AXIS)


def advice(prior: Prior, epsilon: float, those: People) -> str:
    """The recommendation, in one sentence with its numbers."""
    one, best = recommend.recommended(prior, epsilon, those), recommend.best_possible(prior, epsilon, those)
    possible = (
        f"the best possible typical distance is <b>{best:.3f}</b>"
        if best is not None
        else "the best possible takes too long here: ask <code>sottovoce compare --limit</code>"
    )
    whom = "people like these" if those.given else "people invented around the public data"
    return (
        f'<p class="sv-take">For {whom} at ε = {epsilon:g} take <b>{text(plain(one.sampler).name)}</b> '
        f"<small>{text(one.sampler)}</small></p><p>Typical distance <b>{one.typical:.3f}</b>, worst "
        f"<b>{one.worst:.3f}</b>; {possible}. 0 is a perfect draw from somebody's own data, 1 has nothing in "
        f"common with it.</p>"
    )


def leak_words(one: Sampler, counts: FloatArray) -> str:
    """The most that an observer can learn about this person from the answer, as odds."""
    place, factor = recommend.most_told(one, people.shares(counts))
    promise = float(np.exp(one.epsilon))
    return (
        f"<p>Somebody who thinks it 1 : 1 whether the answer is this person's or another's can come to "
        f"<b>{odds(factor)} : 1</b> at most, if the answer is <b>{text(one.prior.categories[place])}</b>. No "
        f"other answer points to them more.</p><p>Whoever the person is and whatever they hold, the odds "
        f"never change by more than e<sup>ε</sup> = <b>{odds(promise)}</b>, in either direction. With ten "
        f"answers it is ten times ε.</p>"
    )


def odds(factor: float) -> str:
    """A factor rounded upwards to three digits: what is called a most is one."""
    digits = max(0, 2 - int(np.floor(np.log10(factor))))
    scale = 10.0**digits
    return f"{np.ceil(factor * scale - 1e-9) / scale:,.{digits}f}"


def population_chart(mechanism: Mechanism, crowd: Any) -> tuple[str, str]:
    """What people hold, what they reported, and what a collector concludes; and that in words."""
    reports = list(mechanism.release_many(crowd))
    truth = np.asarray(crowd.mean(axis=0)).ravel()
    names = list(mechanism.categories)
    place = {name: i for i, name in enumerate(names)}
    share = np.bincount([place[one] for one in reports], minlength=len(names)) / len(reports)
    try:
        found = estimate(mechanism, reports)
    except EstimateError:
        found = None
    low = high = np.zeros(0)
    if found is not None and (found.unbiased or found.bounded):
        low, high = found.interval() if found.unbiased else found.possible()

    def row(i: int) -> Row:
        points, interval = {TRUTH: float(truth[i])}, None
        words = f"held {per_cent(truth[i])}, reported {per_cent(share[i])}"
        if len(low):
            interval = (float(low[i]), float(high[i]))
            words += f", concluded {per_cent(low[i])} to {per_cent(high[i])}"
        if found is not None and found.unbiased:
            points[ESTIMATE] = float(found.shares[i])
        return Row(str(names[i]), interval, None, float(share[i]), points, per_cent(share[i]), words)

    order = [int(i) for i in np.argsort(-np.maximum(truth, share), kind="stable")[:MOST_SHOWN]]
    first = order if len(names) <= AT_ONCE else order[:IN_FRONT]
    rest = order[len(first) :]

    def axis(places: Sequence[int]) -> drawing.Axis:
        ends = high[list(places)] if len(low) else np.zeros(1)
        return drawing.linear(float(max(truth.max(), share.max(), ends.max())))

    items = drawing.key("bar", "reports")
    if len(low):
        told = "95 % interval" if found is not None and found.unbiased else "where the truth must lie (95 %)"
        items += drawing.key("interval", told)
    series = [TRUTH, ESTIMATE] if found is not None and found.unbiased else [TRUTH]
    chart = drawing.rows_chart(
        "Truth, reports and estimate",
        [row(i) for i in first],
        [row(i) for i in rest],
        axis(first),
        f"{len(rest)} more categories",
        f"{len(reports):,} reports; the numbers at the right are their shares.",
        axis(rest) if rest else None,
    )
    nothing = "From this mechanism's reports one cannot tell what people hold."
    return chart + drawing.legend(series, items), nothing if found is None else found.summary()


def shuffled_words(mechanism: Mechanism, reports: int = 10_000) -> str:
    """What shuffling would add, and whom one has to trust for it."""
    local, central = float(mechanism.epsilon), at_a_glance(mechanism, reports, SHUFFLED_DELTA)
    if central >= 0.99 * local:
        return f"Shuffling {reports:,} reports would add nothing at ε = {local:g}: it takes more of them."
    return (
        f"If {reports:,} people release, and somebody whom they trust hands on their reports in random "
        f"order, all of it together is ({central:.2g}, {SHUFFLED_DELTA:g})-private for each of them, at "
        f"least. The ε = {local:g} of the single report holds whatever the shuffler does."
    )


def left(budget: float | None, spent: Sequence[float]) -> Fraction:
    """What is left of a budget, exactly; an empty field is a budget of nothing."""
    return Fraction(budget or 0) - sum(map(Fraction, spent), Fraction(0))
