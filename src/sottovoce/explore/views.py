"""What the page shows, as plain values: the page itself only wires these to sliders and charts."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import FloatArray
from ..catalogue import SAMPLERS
from ..divergences import TV
from ..errors import SottovoceError, UserDataError
from ..estimation import Estimate, estimate
from ..inputs import read_priors
from ..mechanism import Mechanism
from ..prior import Prior
from ..samplers import ClipSampler, KernelSampler, Sampler

EPSILONS = np.linspace(0.5, 10, 20)
LARGEST_HEAT_MAP = 40
Rows = list[dict[str, Any]]


def uploaded_prior(content: bytes, name: str) -> Prior:
    """A prior from an uploaded file; the error, if any, names the file as the visitor knows it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (Path(name).name or "upload.csv")
        path.write_bytes(content)
        try:
            priors = read_priors(path).priors
        except SottovoceError as problem:
            raise type(problem)(str(problem).replace(str(path), path.name)) from None
    return next(iter(priors.values()))


def typed_user(text: str, prior: Prior) -> FloatArray:
    """A user from lines such as "Drama 3": a category and how often; the last word is the number."""
    counts = np.zeros(len(prior))
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = re.fullmatch(r"(.+?)[\s:,=]+([0-9]+(?:\.[0-9]+)?)", line)
        if match is None or match[1] not in prior.index:
            raise UserDataError("each line is a category of the prior and a number, such as: Drama 3")
        counts[prior.index[match[1]]] += float(match[2])
    if not 0 < counts.sum() < 1e15:
        raise UserDataError("the user needs at least one record: write a category and a number")
    p: FloatArray = counts / counts.sum()
    return p


def as_text(p: FloatArray, prior: Prior, records: int = 20) -> str:
    """A user as lines that can be edited."""
    counts = np.round(p * records).astype(int)
    order = np.argsort(-counts, kind="stable")
    return "\n".join(f"{prior.categories[i]} {counts[i]}" for i in order.tolist() if counts[i])


def make(prior: Prior, epsilon: float, names: Sequence[str]) -> list[Sampler]:
    """The chosen samplers."""
    return [SAMPLERS[name](prior, epsilon) for name in names]


def box_rows(samplers: Sequence[Sampler], p: FloatArray) -> tuple[Rows, Rows]:
    """Per category the allowed interval and the prior; and a point per law: the user's, each released one."""
    prior = samplers[0].prior
    order = np.argsort(-prior.probabilities, kind="stable").tolist()
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
    for i, name in enumerate(mechanism.categories):
        rows.append({"category": str(name), "what": "users hold", "share": float(held[i])})
        rows.append({"category": str(name), "what": "released", "share": released[name] / len(answers)})
    return rows, answers


def estimate_rows(mechanism: Mechanism, answers: Sequence[Any], truth: FloatArray) -> tuple[Rows, Estimate]:
    """What a collector would conclude from the answers, beside the truth."""
    found = estimate(mechanism, list(answers))
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
    return rows, found


def left(budget: float, spent: Sequence[float]) -> Fraction:
    """What is left of a budget, exactly."""
    return Fraction(budget) - sum(map(Fraction, spent), Fraction(0))
