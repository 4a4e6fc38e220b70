"""Questions about samplers and the library's answers: `python tests/support/page_vectors.py` writes a file of them.

The page computes in JavaScript what the library computes; page/test/support/answers.js answers the same questions.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.divergences import Distance
from sottovoce.geometry import Geometry
from sottovoce.planning.compare import ComparisonRow
from sottovoce.planning.fitted import invented
from sottovoce.samplers import floors

FILE = Path(__file__).parent.parent / "vectors" / "page_samplers.json"
OTHERS = (sv.hockey_stick(2), sv.alpha(0.5), sv.alpha(3), sv.alpha(-1))
EXACT = ("q", "geometry", "fitted", "crowds", "stream")
"""What has to agree in every bit."""
MOST_NEAR = 20.0
"""Beyond it floors of `nearest` may be below 2^-62 with a cap of 1: a room of 2^62 units, which is one too many."""
CHOICES = {"keepPrior": "keep_prior", "oneRecord": "one_record", "sameForEverybody": "same_for_everybody"}

PRIORS: dict[str, list[float]] = {
    "one category": [5],
    "two": [1, 3],
    "two, one of them very rare": [1e-9, 1],
    "uniform": [1] * 5,
    "one dominant": [1000, 1, 2, 3],
    "very rare ones": [0.5, 1e-9, 0.3, 2e-9, 0.2],
    "ties": [3, 1, 3, 1, 1, 2],
    "halving": [2.0**-k for k in range(7)],
    "genres": [4012, 2300, 700, 64, 35, 35, 1],
    "three": [0.6, 0.3, 0.1],
    "almost alike": [1, 1 + 1e-9, 1 - 1e-9, 1],
    "long": [1 / (k + 1) for k in range(14)],
}
EPSILONS = [2.0, 1.0, 1.0, 0.5, 3.0, 2.0, 0.1, 4.0, 2.0, 10.0, 1e-3, 2.0]


def told(value: float | None) -> float | str | None:
    """Infinity, for which JSON has no number, as a word."""
    return "inf" if value == math.inf else value


def plain(values: Any) -> list[Any]:
    return [told(value) for value in np.asarray(values).tolist()]


def geometry_of(question: dict[str, Any]) -> Geometry:
    if question["positions"]:
        return sv.Line(question["positions"])
    made = question["geometry"]
    return Geometry(tuple(made["parents"]), tuple(made["lengths"]), made["unit"])


def sampler_of(prior: sv.Prior, epsilon: float, near: Geometry, name: str, options: Any) -> sv.Sampler:
    if name == "nearest":
        return sv.nearest(prior, epsilon, near, **options)
    return sv.SAMPLERS[name](prior, epsilon, **options)


def dense(user: list[Any], n: int) -> list[float]:
    if not isinstance(user[0], list):
        return user
    p = [0.0] * n
    for i, value in user:
        p[i] += value
    return p


def worst_of(sampler: sv.Sampler, measure: Distance) -> float | str | None:
    try:
        return told(sampler.worst_case(measure))
    except sv.errors.ParameterError:
        return None  # it is not known


def measured(prior: sv.Prior, epsilon: float, near: Geometry, asked: dict[str, Any]) -> dict[str, Any]:
    """What is asked about one sampler and one user."""
    sampler = sampler_of(prior, epsilon, near, asked["name"], asked["options"])
    user = dense(asked["user"], len(prior))
    measures: list[Distance] = [*sv.DIVERGENCES.values(), *OTHERS, sv.wasserstein(near)]
    row = sampler.kernel.apply(np.eye(len(prior))[-1]) if isinstance(sampler, sv.KernelSampler) else None
    return {
        "floor": plain(sampler.floor),
        "keeps": sampler.keeps_prior,
        "law": plain(sampler.distribution(user)),
        "row": None if row is None else plain(row),
        "itself": None if asked["name"] == "nearest" else plain(sv.bounds.released_as_itself(sampler)),
        "distances": [told(float(sampler.divergence(user, one))) for one in measures],
        "worst": [worst_of(sampler, one) for one in measures],
    }


def row_of(row: ComparisonRow) -> dict[str, Any]:
    numbers = {name: told(getattr(row, name)) for name in ("mean", "median", "p90", "p99", "maximum")}
    return {"name": row.sampler.split("(")[0], **numbers, "worstCase": told(row.worst_case)}


def chosen(prior: sv.Prior, epsilon: float, near: Geometry, asked: dict[str, Any]) -> dict[str, Any]:
    options = {CHOICES.get(key, key): value for key, value in asked["options"].items()}
    choice = sv.choose(prior, epsilon, limit=False, geometry=near if asked["near"] else None, **options)
    return {
        "best": row_of(choice.row),
        "second": choice.runner_up and row_of(choice.runner_up),
        "all": list(map(row_of, choice.table)),
    }


def digest_of(crowd: int, ranked: Any) -> str:
    """The digest of invented users: where they begin, their categories and their units, as 64-bit integers."""
    rows = invented(ranked, crowd=crowd)
    parts = (rows.indptr, rows.indices, rows.data)
    return hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()


def stream_of(prior: sv.Prior, epsilon: float, horizon: int) -> dict[str, Any] | None:
    """The integers of a stream; None where it cannot be certified."""
    try:
        engine: Any = sv.certify(sv.stream(prior, epsilon, horizon=horizon)).engine
    except (sv.errors.CertificateError, sv.errors.ParameterError):
        return None
    return {
        "prior": list(map(str, engine.prior)),
        "pace": list(engine.pace),
        "bounds": [str(engine.one), str(engine.start), str(engine.most)],
    }


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What the library answers."""
    prior, epsilon = sv.Prior.from_counts(question["weights"]), question["epsilon"]
    near = geometry_of(question)
    ranked = -np.sort(-prior.probabilities, kind="stable")
    choice = question["chosen"]
    reports = sv.survey(range(question["survey"]), max(epsilon, 1e-3))
    return {
        "q": plain(prior.probabilities),
        "geometry": {**near.plain(), "unit": near.unit},
        "optimal": [told(sv.bounds.optimal_utility(prior, epsilon, f)) for f in sv.DIVERGENCES.values()],
        "samplers": [measured(prior, epsilon, near, one) for one in question["samplers"]],
        "fitted": [dict(sv.fitted(prior, epsilon, **options).options) for options in question["fit"]],
        "crowds": [digest_of(crowd, ranked) for crowd in question["crowds"]],
        "chosen": None if choice is None else chosen(prior, epsilon, near, choice),
        "stream": stream_of(prior, epsilon, question["horizon"]),
        "survey": {"base": reports.base, "variance": told(reports.variance)},
    }


def some_user(rng: random.Random, weights: list[float]) -> list[Any]:
    """A point mass, the prior itself, a few categories, all of them, or a neighbour of the prior."""
    n = len(weights)
    few = rng.sample(range(n), min(n, rng.choice([1, 1, 2, 3, 8])))
    kind = rng.randrange(5)
    if kind < 2:
        shares = [rng.random() ** rng.choice([1, 6]) + 1e-12 for _ in few]
        return [[i, share / math.fsum(shares)] for i, share in zip(few, shares, strict=True)]
    base = weights if kind < 4 else [1.0] * n
    spread = [0.0, 0.0, 0.0, 2.0, 3.0][kind]
    moved = [weight * math.exp(rng.uniform(-spread, spread)) for weight in base]
    return [one / math.fsum(moved) for one in moved]


def some_options(
    rng: random.Random, prior: sv.Prior, epsilon: float, usual: bool
) -> list[tuple[str, dict[str, Any]]]:
    """Every sampler with options; the usual ones of some."""
    q = prior.probabilities
    exponent = rng.choice([0.0, 0.5, 1.0, rng.randrange(17) / 16, rng.random()])
    least, most = floors.power_range(q, epsilon, exponent)
    scale = min(max(least * (most / least) ** rng.random(), least), most)
    best = floors.kept_mass(floors.prior_minimax(q, epsilon), epsilon)
    given = {
        "blend": {"weight": rng.choice([0.0, 1.0, rng.random()])},
        "power_caps": {"scale": scale, "exponent": exponent},
        "local_minimax": {"gamma": 1 + rng.expovariate(0.2)},
    }
    plainly = [(name, {} if usual else given.get(name, {})) for name in sv.SAMPLERS]
    kept = {"exponent": exponent, "promise": rng.choice([0.5, 0.9, 0.99]) * best}
    share = 0.5 if usual else rng.uniform(0.1, 0.9)
    nearest = [("nearest", {"share": share})] if epsilon <= MOST_NEAR else []
    return [*plainly, ("power_caps", kept), *nearest]


def some_question(
    rng: random.Random, weights: list[float], epsilon: float, *, usual: bool = False, parts: int = 0
) -> dict[str, Any]:
    """A question about every sampler; `parts` says what is asked besides: 1 fitted and its users, 2 a choice."""
    n = len(weights)
    prior = sv.Prior.from_counts(weights)
    positions = [rng.choice([float(rng.randrange(9)), rng.uniform(-4, 4)]) for _ in range(n)]
    tree = sv.Tree.from_levels([rng.randrange(3) for _ in range(n)], lengths=[rng.random(), 1.0])
    on_line = rng.random() < 0.5
    options = rng.choice([{}, {}, {"keepPrior": False}, {"oneRecord": True}, {"sameForEverybody": True}])
    return {
        "weights": weights,
        "epsilon": epsilon,
        "positions": positions if on_line else None,
        "geometry": None if on_line else {**tree.plain(), "unit": tree.unit},
        "samplers": [
            {"name": name, "options": given, "user": some_user(rng, weights)}
            for name, given in some_options(rng, prior, epsilon, usual)
        ],
        "fit": [{}, {"tail": rng.random()}, {"promise": "best"}] if parts & 1 else [],
        "crowds": [0, 1] if parts & 1 else [],
        "chosen": {"near": n < 30 and epsilon <= MOST_NEAR and rng.random() < 0.3, "options": options}
        if parts & 2
        else None,
        "horizon": rng.choice([1, 2, 12, 52]),
        "survey": rng.choice([n, 100, 1000, 100_000]),
    }


def some_weights(rng: random.Random) -> list[float]:
    """Random priors of all shapes, some with ties and some with very rare categories.

    Two categories at least: with one, a·c is 1 up to rounding, which decides between a worst case of 0 and ∞.
    """
    n = rng.choice([2, 2, 3, 5, 8, 9, 18, 40, 150])
    kind = rng.randrange(5)
    if kind == 0:
        return [float(rng.randrange(1, 4)) for _ in range(n)]
    if kind == 1:
        return [1.0] * n
    spread = [0.0, 0.0, 1.0, 5.0, 10.0][kind]
    return [math.exp(rng.uniform(-spread, spread)) for _ in range(n)]


def some_epsilon(rng: random.Random) -> float:
    return rng.choice([1.0, 2.0, 100.0, math.exp(rng.uniform(-7, 3)), rng.uniform(0.1, 6)])


def cases() -> list[dict[str, Any]]:
    """The questions of the file, with their answers."""
    rng = random.Random("page")
    out = []
    for k, ((name, weights), epsilon) in enumerate(zip(PRIORS.items(), EPSILONS, strict=True)):
        asked = some_question(
            rng, list(map(float, weights)), epsilon, usual=k % 2 == 1, parts=3 if k % 3 else 1
        )
        found = {key: value if key in EXACT else short(value) for key, value in answer(asked).items()}
        out.append({"question": {"name": name, **asked}, "answer": found})
    return out


def short(value: Any) -> Any:
    """Fourteen digits of every number: the page has to agree in twelve."""
    if isinstance(value, dict):
        return {key: short(one) for key, one in value.items()}
    if isinstance(value, list):
        return list(map(short, value))
    return float(f"{value:.14g}") if isinstance(value, float) else value


def write() -> None:
    """Write the file, a line for every case."""
    lines = ",\n".join(json.dumps(case, separators=(",", ":"), allow_nan=False) for case in cases())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write()
