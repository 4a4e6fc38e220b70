"""About where I live: sixty nights in an invented town, one move, four ways to publish a place every night.

    python examples/places/town.py                 the table, then the page with the map
    python examples/places/town.py --people 400    the table of docs/places.md

The town is 20 km wide, in cells of 2 km, and its density is public. All move once, after thirty nights.
Published every night: a cell of a stream with one epsilon for all nights; a cell of `nearest` at epsilon/60;
the home moved by one secret offset; the home with fresh noise. Each is attacked with what thirty nights show.
"""

from __future__ import annotations

import argparse
import json
import webbrowser
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import sottovoce as sv

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parent.parent / "clients" / "js" / "src"
WIDTH, CELL, NIGHTS, MOVE = 20.0, 2.0, 60, 30
CENTRES = ((9, 10, 2.2, 1.0), (14, 5, 1.2, 0.5), (5, 15, 1.4, 0.4), (15, 15, 1.0, 0.35), (4, 4, 1.0, 0.25))
"""East, north, spread in kilometres, and weight."""
PERSISTENCE, NOISE = 0.99, 1.0
"""The stream's share on the last release, and the mean length of an offset in kilometres."""
ORIGIN, DEGREE = (45.0, 9.0), 111.195


@dataclass(frozen=True)
class Town:
    """Cells with their middles in kilometres, the public density, and what is near what."""

    middles: np.ndarray
    prior: sv.Prior
    tree: sv.Tree

    def cell_of(self, homes: np.ndarray) -> np.ndarray:
        """The cell of each home."""
        per_side = int(WIDTH / CELL)
        east, north = np.clip(homes // CELL, 0, per_side - 1).astype(int).T
        return north * per_side + east


def invent_town() -> Town:
    """The same town every time."""
    steps = (np.arange(int(WIDTH / CELL)) + 0.5) * CELL
    middles = np.array([(east, north) for north in steps for east in steps])
    fine = [(a, b) for a in (-0.75, -0.25, 0.25, 0.75) for b in (-0.75, -0.25, 0.25, 0.75)]
    density = np.full(len(middles), 0.16)
    for east, north, spread, weight in CENTRES:
        for shift in fine:
            far = ((middles + np.array(shift) * CELL / 2 - (east, north)) ** 2).sum(axis=1)
            density += weight * np.exp(-far / (2 * spread**2))
    north, east = (
        ORIGIN[0] + middles[:, 1] / DEGREE,
        ORIGIN[1] + middles[:, 0] / DEGREE / np.cos(np.radians(45.09)),
    )
    return Town(
        middles, sv.Prior(range(len(middles)), density / density.sum()), sv.Tree.from_points(north, east)
    )


def invent_people(town: Town, people: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two homes each, drawn from the density."""
    cells = rng.choice(len(town.middles), (2, people), p=town.prior.probabilities)
    first, second = town.middles[cells] + rng.uniform(-CELL / 2, CELL / 2, (2, people, 2))
    return first, second


def offsets(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Noise of the planar Laplace distribution."""
    angle, length = rng.uniform(0, 2 * np.pi, shape), rng.gamma(2, NOISE / 2, shape)
    return np.stack([length * np.cos(angle), length * np.sin(angle)], axis=-1)


# --- four ways to publish, night by night: arrays of nights × people × 2 ---------------------------------


def by_stream(town: Town, homes: np.ndarray, epsilon: float) -> tuple[sv.Mechanism, np.ndarray]:
    """The mechanism, and the cells that it releases."""
    mechanism = sv.certify(sv.stream(town.prior, epsilon, persistence=PERSISTENCE, geometry=town.tree))
    states, out = [mechanism.start()] * homes.shape[1], []
    everyone = np.eye(len(town.middles), dtype=np.int64)
    for night in homes:
        cells, states = mechanism.release_many(everyone[town.cell_of(night)], states)
        out.append(cells.astype(int))
    return mechanism, np.array(out)


def by_splitting(town: Town, homes: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The laws of all cells at ε/60, and the cells that are released."""
    sampler = sv.nearest(town.prior, epsilon / NIGHTS, town.tree)
    mechanism, everyone = sv.certify(sampler), np.eye(len(town.middles), dtype=np.int64)
    cells = [mechanism.release_many(everyone[town.cell_of(night)]).astype(int) for night in homes]
    return sampler.distribution(everyone.astype(float)), np.array(cells)


# --- attacks: what thirty nights tell somebody who knows the town and the method ---------------------------


def best_guess(town: Town, posterior: np.ndarray) -> np.ndarray:
    """The middle of the cell with the smallest expected distance."""
    apart = np.linalg.norm(town.middles[:, None] - town.middles, axis=2)
    return town.middles[(posterior @ apart).argmin(axis=-1)]


def posterior_of_stream(town: Town, mechanism: sv.Mechanism, released: np.ndarray) -> np.ndarray:
    """Bayes' rule over all homes: the exact law of every night, and the state that each home would have."""
    everyone = np.eye(len(town.middles))
    log = np.log(town.prior.probabilities)
    for home in range(len(town.middles)):
        state = mechanism.start()
        for cell in released.tolist():
            log[home] += np.log(float(mechanism.law(p=everyone[home], state=state)[cell]))
            state = mechanism.after(state, everyone[home], cell)
    weights = np.exp(log - log.max())
    return weights / weights.sum()


def posterior_of_split(town: Town, laws: np.ndarray, released: np.ndarray) -> np.ndarray:
    """The same where every night is drawn anew."""
    log = np.log(town.prior.probabilities) + np.log(laws[:, released]).sum(axis=1)
    weights = np.exp(log - log.max())
    return weights / weights.sum()


Guesses = tuple[np.ndarray, np.ndarray, np.ndarray]
"""After one night, after thirty, and the homes that the second are about."""


@dataclass(frozen=True)
class Outcome:
    """Mean distances in kilometres: published before and after the move, and the guess of an attacker."""

    method: str
    epsilon: str
    before: float
    after: float
    one_night: float
    attack: float
    how: str


def measure(people: int, epsilons: tuple[float, ...] = (8.0, 16.0), attacked: int = 40) -> list[Outcome]:
    """All methods on the same people; Bayes' rule is for the first `attacked` of them."""
    town, rng = invent_town(), np.random.default_rng(2026)
    first, second = invent_people(town, people, rng)
    homes = np.array([first] * MOVE + [second] * (NIGHTS - MOVE))
    some, out = min(attacked, people), []

    def outcome(method: str, epsilon: str, published: np.ndarray, guesses: Guesses, how: str) -> None:
        off = np.linalg.norm(published - homes, axis=2)
        early, late, true = guesses
        pairs = (early, first[: len(early)]), (late, true[: len(late)])
        wrong = [float(np.linalg.norm(guess - home, axis=-1).mean()) for guess, home in pairs]
        out.append(Outcome(method, epsilon, float(off[:MOVE].mean()), float(off[MOVE:].mean()), *wrong, how))

    for epsilon in epsilons:
        mechanism, cells = by_stream(town, homes, epsilon)
        early, late = (
            best_guess(
                town, np.array([posterior_of_stream(town, mechanism, cells[:nights, i]) for i in range(some)])
            )
            for nights in (1, MOVE)
        )
        published = town.middles[cells]
        outcome(
            "stream", f"{epsilon:g} for ever", published, (early, late, first), f"Bayes' rule ({some} people)"
        )
    for epsilon in epsilons:
        laws, cells = by_splitting(town, homes, epsilon)
        early, late = (
            best_guess(
                town, np.array([posterior_of_split(town, laws, cells[:nights, i]) for i in range(people)])
            )
            for nights in (1, MOVE)
        )
        outcome("split", f"{epsilon:g}/60 a night", town.middles[cells], (early, late, first), "Bayes' rule")
    fixed = homes + offsets(rng, (people,))
    known = fixed[-1] - (fixed[0] - first)
    outcome("fixed offset", "none", fixed, (fixed[0], known, second), "knows the first home: subtracts")
    fresh = homes + offsets(rng, (NIGHTS, people))
    outcome(
        "fresh noise", "none for 60 nights", fresh, (fresh[0], fresh[:MOVE].mean(axis=0), first), "averages"
    )
    return out


def table(found: list[Outcome]) -> str:
    """As Markdown."""
    lines = [
        "| published | ε | before the move | after it | guess after one night | after thirty | how |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for one in found:
        far = " | ".join(f"{number:.2f} km" for number in (one.before, one.after, one.one_night, one.attack))
        lines.append(f"| {one.method} | {one.epsilon} | {far} | {one.how} |")
    return "\n".join(lines)


# --- the page ----------------------------------------------------------------------------------------------


def site(town: Town) -> Starlette:
    """The page, the JavaScript client, and the mechanisms with the map."""
    known: dict[str, object] = {"width": WIDTH, "cell": CELL, "nights": NIGHTS, "move": MOVE, "noise": NOISE}
    known["density"] = town.prior.probabilities.tolist()
    for epsilon in (8.0, 16.0):
        for name, sampler in (
            ("stream", sv.stream(town.prior, epsilon, persistence=PERSISTENCE, geometry=town.tree)),
            ("split", sv.nearest(town.prior, epsilon / NIGHTS, town.tree)),
        ):
            made = sv.certify(sampler)
            known[f"{name} {epsilon:g}"] = {**made.document(), "digest": made.digest}
    headers = {"content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'"}

    async def page(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or "index.html"
        kind = {"html": "text/html", "css": "text/css", "js": "text/javascript"}[name.rpartition(".")[2]]
        return Response((HERE / name).read_bytes(), media_type=kind, headers=headers)

    async def facts(_: Request) -> Response:
        return Response(json.dumps(known), media_type="application/json", headers=headers)

    return Starlette(
        routes=[
            *(Route(path, page) for path in ("/", "/places.css", "/places.js")),
            Route("/town.json", facts),
            Route("/favicon.ico", lambda _: Response(status_code=204)),
            Mount("/client", StaticFiles(directory=CLIENT)),
        ]
    )


def main() -> None:
    """Print the table and serve the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, help="print the table for so many people, and no page")
    parser.add_argument("--port", type=int, default=8766)
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    asked = parser.parse_args()
    if asked.people:
        print(table(measure(asked.people, attacked=asked.people // 4)))
        return
    print("simulating 60 people, 4 of them attacked by Bayes' rule …", flush=True)
    print(table(measure(60, attacked=4)))
    address = f"http://127.0.0.1:{asked.port}/"
    print(f"\nthe map: {address}   (Ctrl-C ends it)", flush=True)
    if not asked.no_open:
        webbrowser.open(address)
    uvicorn.run(site(invent_town()), host="127.0.0.1", port=asked.port, log_level="warning")


if __name__ == "__main__":
    main()
