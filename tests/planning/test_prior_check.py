"""Careless priors: made from the users they serve, from part of them, or from a table of people."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import oracles
import pytest
from command import check_refused, run, write
from scipy import sparse

import sottovoce as sv
from sottovoce.collecting.model import model_of
from sottovoce.planning.prior_check import distance, made_from
from sottovoce.tables import priors as priors_table
from sottovoce.tables.priors import PriorOptions

NAMES = [f"c{i}" for i in range(18)]
TRUTH = np.random.default_rng(5).dirichlet(np.full(18, 2.0))


def people(count: int, seed: int, spread: float = 5.0, truth: np.ndarray = TRUTH) -> sv.Users:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(spread * truth, size=count)
    return sv.Users(tuple(range(count)), sparse.csr_array(p), NAMES, amounts=rng.integers(1, 90, count) / 1.0)


def part(users: sv.Users, places: np.ndarray) -> sv.Users:
    amounts = None if users.amounts is None else users.amounts[places]
    return sv.Users(tuple(users.ids[i] for i in places), users.p[places], NAMES, amounts=amounts)


def average(users: sv.Users, digits: int = 17) -> np.ndarray:
    q = np.round(np.asarray(users.p.mean(axis=0)).ravel(), digits)
    law: np.ndarray = np.maximum(q, 1e-9) / np.maximum(q, 1e-9).sum()
    return law


def verdict(q: np.ndarray, users: sv.Users) -> bool:
    return made_from(q, [users])


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_that_of_the_definition(seed: int) -> None:
    users = people(40, seed)
    q = np.random.default_rng(seed).dirichlet(np.ones(18))
    listed = users.p.toarray().tolist()
    assert distance(q, users.p, np.ones(40))[0] == pytest.approx(
        oracles.chance_ratio(q.tolist(), listed, [1.0] * 40), rel=1e-9
    )
    assert users.amounts is not None
    amounts = list(users.amounts)
    assert distance(q, users.p, users.amounts)[0] == pytest.approx(
        oracles.chance_ratio(q.tolist(), listed, amounts), rel=1e-9
    )
    halves = [part(users, np.arange(20)), part(users, np.arange(20, 40))]
    mean = average(users)
    assert made_from(mean, halves)
    assert not made_from(q, halves)


@pytest.mark.parametrize("count", [20, 200, 2000])
def test_the_users_own_average_is_recognised_also_rounded_to_six_digits(count: int) -> None:
    for seed in range(10):
        users = people(count, seed)
        assert verdict(average(users), users) is True
        assert verdict(average(users, 6), users) is True


@pytest.mark.parametrize(("count", "share"), [(200, 0.9), (2000, 0.75), (2000, 0.5), (700, 0.5)])
def test_the_average_of_a_subset_or_a_first_batch_is_recognised(count: int, share: float) -> None:
    """Three quarters are closer than chance allows; half are within the sharp chance of 2,000 users."""
    caught = 0
    for seed in range(20):
        users = people(count, seed)
        chosen = np.arange(int(share * count))  # users are alike: the first ones are a subset like any other
        caught += verdict(average(part(users, chosen), 6), users) is True
    assert caught >= 19


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_a_crowd_that_the_users_are_part_of_is_recognised(share: float) -> None:
    caught = 0
    for seed in range(20):
        crowd = people(2000, seed)
        caught += verdict(average(crowd, 6), part(crowd, np.arange(int(share * 2000)))) is True
    assert caught >= 19


def test_other_peoples_data_are_not_suspected() -> None:
    """A public survey about others: another average, or the same one known from few people."""
    rng = np.random.default_rng(1)
    shifted = TRUTH * np.exp(rng.normal(0, 0.25, 18))
    for seed in range(20):
        assert verdict(shifted / shifted.sum(), people(2000, seed)) is False
        assert verdict(average(people(100, seed + 100)), people(2000, seed)) is False


def test_a_flawless_prior_is_seldom_refused() -> None:
    found = [verdict(TRUTH, people(200, seed)) for seed in range(200)]
    assert (
        found.count(True) <= 9
    )  # one in a hundred by design for each weighting: P(more than 9 of 200) < 1e-4
    assert [verdict(TRUTH, people(5, seed)) for seed in range(50)].count(False) >= 48  # five fit anything


@pytest.mark.parametrize("size", [49, 98, 140, 400])
def test_a_uniform_prior_in_whole_numbers_is_nobodys(size: int) -> None:
    """Units of rounding make it not quite uniform; the users may be anything."""
    q = model_of(sv.certify(sv.kernel_clip(sv.Prior.uniform(range(size)), 1.0))).prior
    for seed in range(5):
        skewed = np.random.default_rng(seed).dirichlet(0.3 * np.exp(-np.arange(size) / 9) + 1e-3, size=50)
        held = sv.Users(tuple(range(50)), sparse.csr_array(skewed), range(size))
        assert not made_from(q, [held])


def test_what_cannot_be_told() -> None:
    users = people(300, 0)
    assert not made_from(np.full(18, 1 / 18), [users])  # a uniform prior is nobody's
    assert not made_from(average(part(users, np.arange(1))), [part(users, np.arange(1))])
    alike = sv.Users(tuple(range(50)), sparse.csr_array(np.tile([0.2, 0.8], (50, 1))), ["a", "b"])
    assert not made_from(np.array([0.4, 0.6]), [alike])
    assert made_from(np.array([0.2, 0.8]), [alike])


@pytest.mark.skipif(not os.environ.get("SOTTOVOCE_DATA"), reason="set SOTTOVOCE_DATA to the folder of ml-1m")
def test_real_public_data_are_far_from_real_users() -> None:
    from experiments import movielens

    for prior, users in movielens.data(Path(os.environ["SOTTOVOCE_DATA"]), "all-genres").values():
        held = sv.Users(tuple(range(len(users))), sparse.csr_array(users), list(prior.categories))
        assert distance(prior.probabilities, held.p, np.ones(len(held)))[0] > 15
        assert not made_from(prior.probabilities, [held])
        everyone = np.asarray(users.mean(axis=0)).ravel()
        assert verdict(everyone, held) is True


# --- through the command -----------------------------------------------------------------------------


def histories(folder: Path, count: int, seed: int, name: str = "users.csv") -> Path:
    rng = np.random.default_rng(seed)
    lines = ["user,item"]
    for user in range(count):
        p = rng.dirichlet(5 * TRUTH)
        lines += [f"u{user:05d},{NAMES[i]}" for i in rng.choice(18, 12, p=p)]
    return write(folder, name, "\n".join(lines) + "\n")


@pytest.mark.parametrize("kind", ["all", "first", "rounded"])
def test_compare_tells_priors_made_from_part_of_its_users(tmp_path: Path, kind: str) -> None:
    """The owner of the data is told when planning; a release does not depend on it."""
    users = histories(tmp_path, 1500, 3)
    items = [line.split(",")[1] for line in users.read_text().splitlines()[1:]]
    chosen = items if kind != "first" else items[: len(items) // 2]
    counts = {name: chosen.count(name) for name in NAMES}
    values = counts if kind != "rounded" else {n: round(c / len(items), 6) for n, c in counts.items()}
    prior = write(tmp_path, "p.csv", "item,weight\n" + "".join(f"{n},{v}\n" for n, v in values.items()))
    asked = ["-e", 1, "-s", "kernel-clip", "--json"]
    told = json.loads(run("compare", prior, users, *asked).stdout)
    assert all(row["provenance"] == "users" for row in told["rows"])
    others = histories(tmp_path, 150, 99, "others.csv")  # a survey of other people, and fewer of them
    counted = run("prior", others, "--provenance", "public", "--smoothing", 1, "-o", tmp_path / "q.json")
    assert counted.returncode == 0, counted.stderr
    told = json.loads(run("compare", tmp_path / "q.json", users, *asked).stdout)
    assert not any(row["provenance"] == "users" for row in told["rows"])


@pytest.mark.parametrize(
    ("table", "marked", "said"),
    [
        ("device,item\nu,a\nu,b\nv,a\n", True, "the values of 'device' recur with several items"),
        ("id,item,count\n7,a,2\n7,b,1\n8,b,1\n9,c,2\n", True, "the values of 'id' recur"),
        ("item,when,who\na,1,x\nb,2,x\na,3,y\n", True, "the values of 'who' recur"),
        ("group,item,count\nx,a,2\nx,b,1\ny,a,1\ny,b,5\n", False, "if they are groups, count by 'group'"),
        ("item,count\na,2\nb,1\n", False, ""),
        ("item,count,note\na,2,one\nb,1,two\n", False, ""),
        ("item,count,source\na,2,survey\nb,1,survey\n", False, ""),  # one value for all: no people
        ("item,count,language\na,2,x\nb,1,x\nc,4,y\n", False, ""),  # each item once: a list of items
        (
            "who,item,count\n" + "".join(f"u{u},{i},{(u + ord(i)) % 3}\n" for u in range(101) for i in "ab"),
            True,
            "the values of 'who' recur",
        ),  # a melted wide table is a full cross table, and a hundred values are people
    ],
)
def test_a_table_that_looks_like_people_is_marked(
    tmp_path: Path, table: str, marked: bool, said: str
) -> None:
    path = write(tmp_path, "t.csv", table)
    data = priors_table.read_priors(path)
    assert (data.priors["all"].provenance == "users") is marked
    assert said in data.how
    assert priors_table.read_priors(path, provenance="public").priors["all"].provenance == "public"
    design = run("design", path, "-e", 1, "-o", tmp_path / "m.json")
    if marked:
        check_refused(design, said)
        assert not (tmp_path / "m.json").exists()
        assert run("prior", path, "--provenance", "public", "-o", tmp_path / "p.json").returncode == 0
        assert run("design", tmp_path / "p.json", "-e", 1, "-o", tmp_path / "m.json").returncode == 0
    else:
        assert design.returncode == 0, design.stderr


def test_a_named_group_column_is_no_suspect(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "land,item,count\nx,a,2\nx,b,1\ny,a,1\n")
    assert (
        priors_table.read_priors(path).priors["all"].provenance == "users"
    )  # not a full cross table: perhaps people
    grouped = priors_table.read_priors(path, by="land", options=PriorOptions(smoothing=1))
    assert any(prior.provenance == "public" for prior in grouped.priors.values())
