"""What the page shows, as plain values: the page itself only wires these to sliders and charts."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import FloatArray
from ..collecting.estimation import Estimate, estimate
from ..collecting.model import model_prior
from ..divergences import TV
from ..errors import EstimateError, SottovoceError, TableError, UserDataError
from ..planning.cards import SHUFFLED_DELTA
from ..planning.shuffling import at_a_glance
from ..prior import Prior
from ..release.certify import certify
from ..release.mechanism import Mechanism
from ..samplers.base import ClipSampler, KernelSampler, Sampler
from ..samplers.catalogue import SAMPLERS
from ..tables.inputs import read_priors

EPSILONS = np.linspace(0.5, 10, 20)
LARGEST_HEAT_MAP = 40
MOST_SHOWN = 60
"""Categories in a chart, the likeliest ones; more could not be told apart."""
LARGEST_UPLOAD = 10_000_000
_NOT_PLAIN = (
    *(b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"PAR1", b"BZh"),
    *(b"\xfd7zXZ\x00", b"\x04\x22\x4d\x18", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"ARROW1"),
)
"""How compressed and binary tables begin: a small one may unfold into more than the machine holds."""
Rows = list[dict[str, Any]]


def uploaded_prior(content: bytes, name: str) -> Prior:
    """A prior from an uploaded file; the error, if any, names the file as the visitor knows it."""
    if len(content) > LARGEST_UPLOAD:
        raise TableError(f"{name} has more than 10 MB: name it on the command line")
    if content.startswith(_NOT_PLAIN):
        raise TableError(f"{name} is compressed or binary: upload a plain CSV file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload.csv"
        path.write_bytes(content)
        try:
            prior = next(iter(read_priors(path).priors.values()))
            certify(SAMPLERS["kernel_clip"](prior, 1.0), accept_prior_from_users=True)
        except SottovoceError as problem:
            raise type(problem)(str(problem).replace(str(path), name)) from None
    return prior


def shown(text: object) -> str:
    """Text for the page: names are data, and must not become markup that could ask another host."""
    return re.sub(r"([\\\\`*_{}\[\]()#+!|~$-])", r"\\\1", html.escape(str(text), quote=False))


def likeliest(prior: Prior) -> list[int]:
    """The categories a chart shows, the likeliest first."""
    return [int(i) for i in np.argsort(-prior.probabilities, kind="stable")[:MOST_SHOWN]]


def typed_user(text: str, prior: Prior) -> FloatArray:
    """A user from lines such as "Drama 3": a category and how often; the last word is the number."""
    counts = np.zeros(len(prior))
    places = {str(name).strip(): i for i, name in enumerate(prior.categories)}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = re.fullmatch(r"(.+?)\s*([0-9]+(?:\.[0-9]+)?)", line)
        names = [] if match is None else [match[1].strip(), match[1].strip().rstrip(":,=").strip()]
        place = next((places[name] for name in names if name in places), None)
        if match is None or place is None:
            raise UserDataError("each line is a category of the prior and a number, such as: Drama 3")
        counts[place] += float(match[2])
    if not 0 < counts.sum() < 1e15:
        raise UserDataError("the user needs at least one record: write a category and a number")
    p: FloatArray = counts / counts.sum()
    return p


def as_text(p: FloatArray, prior: Prior, records: int = 20) -> str:
    """A user as lines that can be edited."""
    counts = np.ceil(p * records - 0.5).astype(int)
    if not counts.any():  # spread too thin: its largest shares, once each
        counts[np.argsort(-p, kind="stable")[:records]] = 1
    order = np.argsort(-counts, kind="stable")
    return "\n".join(f"{prior.categories[i]} {counts[i]}" for i in order.tolist() if counts[i])


def make(prior: Prior, epsilon: float, names: Sequence[str]) -> list[Sampler]:
    """The chosen samplers."""
    return [SAMPLERS[name](prior, epsilon) for name in names]


def box_rows(samplers: Sequence[Sampler], p: FloatArray) -> tuple[Rows, Rows]:
    """Per category the allowed interval and the prior; and a point per law: the user's, each released one."""
    prior = samplers[0].prior
    order = likeliest(prior)
    box = next((one for one in samplers if isinstance(one, ClipSampler)), samplers[0])
    cap = np.minimum(np.exp(box.epsilon) * box.floor, 1.0)
    intervals = [
        {
            "category": str(prior.categories[i]),
            "floor": float(box.floor[i]),
            "cap": float(cap[i]),
            "prior": float(prior.probabilities[i]),
        }
        for i in order
    ]
    laws = {"the user": p, **{one.name: one.distribution(p) for one in samplers}}
    points = [
        {"category": str(prior.categories[i]), "law": name, "probability": float(law[i])}
        for name, law in laws.items()
        for i in order
    ]
    return intervals, points


def distance_table(samplers: Sequence[Sampler], p: FloatArray) -> str:
    """How far each release is from this user, and at worst from anybody, as Markdown."""
    lines = ["| sampler | this user | worst user | keeps the public data |", "|---|---:|---:|:---:|"]
    for one in samplers:
        own, worst = float(one.divergence(p, TV)), one.worst_case(TV)
        lines.append(f"| {one.name} | {own:.4f} | {worst:.4f} | {'yes' if one.keeps_prior else 'no'} |")
    return "\n".join(lines)


def tradeoff_rows(prior: Prior, names: Sequence[str], p: FloatArray) -> Rows:
    """Total variation against epsilon, for the worst user and for this one."""
    rows: Rows = []
    for name in names:
        for epsilon in EPSILONS.tolist():
            one = SAMPLERS[name](prior, epsilon)
            rows.append(
                {"sampler": name, "epsilon": epsilon, "whom": "the worst user", "TV": one.worst_case(TV)}
            )
            own = float(one.divergence(p, TV))
            rows.append({"sampler": name, "epsilon": epsilon, "whom": "this user", "TV": own})
    return rows


def kernel_rows(sampler: Sampler) -> Rows | None:
    """The kernel as a heat map, where there is one and it can be read."""
    if not isinstance(sampler, KernelSampler) or len(sampler.prior) > LARGEST_HEAT_MAP:
        return None
    names, matrix = [str(name) for name in sampler.prior.categories], sampler.matrix()
    return [
        {"held": a, "released": b, "probability": float(matrix[i, j])}
        for i, a in enumerate(names)
        for j, b in enumerate(names)
    ]


def simulated_rows(mechanism: Mechanism, users: FloatArray) -> tuple[Rows, list[Any]]:
    """One release each of invented users: how often each category, beside what the users hold."""
    answers = list(mechanism.release_many(users))
    held, released = users.mean(axis=0), dict.fromkeys(mechanism.categories, 0)
    for answer in answers:
        released[answer] += 1
    rows = []
    for i in np.argsort(-model_prior(mechanism), kind="stable")[:MOST_SHOWN].tolist():
        name = mechanism.categories[i]
        rows.append({"category": str(name), "what": "users hold", "share": float(held[i])})
        rows.append({"category": str(name), "what": "released", "share": released[name] / len(answers)})
    return rows, answers


def estimate_rows(
    mechanism: Mechanism, answers: Sequence[Any], truth: FloatArray
) -> tuple[Rows, Estimate] | None:
    """What a collector would conclude from the answers, beside the truth; None where nothing can be told."""
    try:
        found = estimate(mechanism, list(answers))
    except EstimateError:
        return None
    if not found.unbiased:
        return None
    low, high = found.interval()
    rows = [
        {
            "category": str(name),
            "prior": float(found.model.prior[i]),
            "estimate": float(found.values[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "truth": float(truth[i]),
        }
        for i, name in enumerate(found.categories)
    ]
    order = np.argsort(-found.model.prior, kind="stable")[:MOST_SHOWN].tolist()
    return [rows[i] for i in order], found


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
