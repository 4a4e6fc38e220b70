"""The page that `explore` writes: what is inside, what is not, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command import check_refused, run

import sottovoce as sv
from sottovoce.cli.explore import Source, page
from sottovoce.groups import Groups
from sottovoce.planning.choose import people
from sottovoce.prior import FROM_USERS
from sottovoce.release.file import ANY

COUNTS = {"Drama": 40, "Comedy": 30, "War": 20, "Western": 10}


def inside(text: str) -> dict[str, Any]:
    """The data of a page."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    loaded: dict[str, Any] = json.loads(found)
    return loaded


def one(prior: sv.Prior) -> Groups[sv.Prior]:
    return Groups({"all": prior})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{name},{count}\n" for name, count in COUNTS.items())
    (tmp_path / "prior.csv").write_text(f"item,count\n{rows}")
    (tmp_path / "users.csv").write_text(
        "user,item\nsecret-ann,War\nsecret-ann,War\nsecret-bob,Drama\nsecret-bob,Opera\n"
    )
    return tmp_path


def test_the_prior_the_limits_and_the_certified_mechanism_are_inside(tmp_path: Path) -> None:
    prior = sv.Prior.from_counts(COUNTS)
    data = inside(page(one(prior), Source("prior.csv"), epsilon=1.5))
    (group,) = data["groups"]
    assert group["categories"] == list(COUNTS)
    assert group["weights"] == prior.probabilities.tolist()  # bit for bit
    choice = sv.choose(prior, 1.5)
    assert choice.limit is not None
    limits = {each["epsilon"]: each for each in group["limits"]}
    assert limits[1.5]["lower"] == choice.limit.lower_bound
    assert limits[1.5]["mean"] == choice.limit.mean
    rows, _ = people(prior, None)
    bound = sv.limit(prior, 4.0, rows, tail=0.3, relative_gap=0.02)
    assert limits[4.0]["lower"] == pytest.approx(bound.lower_bound, rel=0, abs=1e-12)
    (tmp_path / "m.json").write_text(data["mechanism"]["text"])
    loaded = sv.load(tmp_path / "m.json", policy=ANY)
    assert loaded.digest == sv.certify(choice.sampler).digest
    assert data["mechanism"]["samplers"] == {"all": choice.sampler.name}
    assert "users" not in group


def test_groups_have_one_mechanism_file(tmp_path: Path) -> None:
    priors = {"young": sv.Prior.from_counts(COUNTS), "old": sv.Prior.uniform(COUNTS)}
    data = inside(page(Groups(priors, "age"), Source("prior.csv", by="age")))
    (tmp_path / "m.json").write_text(data["mechanism"]["text"])
    assert set(sv.load_groups(tmp_path / "m.json", policy=ANY)) == {"young", "old"}
    assert [group["name"] for group in data["groups"]] == ["young", "old"]


def test_what_a_name_holds_is_text_and_no_script() -> None:
    evil = "</script><script>alert(1)</script><!--"
    text = page(one(sv.Prior([evil, "b"], [0.5, 0.5])), Source(evil))
    assert text.count("<script") == page(one(sv.Prior(["a", "b"], [0.5, 0.5])), Source("p")).count("<script")
    assert inside(text)["groups"][0]["categories"] == [evil, "b"]


def test_only_the_pages_own_script_may_run_and_nothing_may_be_fetched() -> None:
    text = page(one(sv.Prior.uniform(["a", "b"])), Source("p"))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    assert re.findall(r"(?:src|href)=[\"']?([^\"' >]+)", text.partition("<script")[0]) == []


def test_a_prior_made_from_its_users_has_no_mechanism_and_says_so() -> None:
    data = inside(page(one(sv.Prior(["a", "b"], [0.5, 0.5], provenance="users")), Source("p")))
    assert data["mechanism"] is None
    assert data["groups"][0]["provenance"] == "users"


def test_a_geometry_is_inside() -> None:
    prior = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
    line = sv.Line([1950.0, 1990.0, 2000.0])
    data = inside(page(one(prior), Source("p", near="position=year"), geometry=line))
    assert data["geometry"]["parents"] == list(line.parents)
    assert data["groups"][0]["limits"] == []  # none in W1


def test_the_command_takes_no_users(folder: Path) -> None:
    """Whoever wants to look at users drops their table onto the page: a page that is written holds none."""
    done = run("explore", "prior.csv", "users.csv", "-o", "page.html", cwd=folder)
    check_refused(done, "unexpected extra argument")
    assert not (folder / "page.html").exists()


def test_a_page_of_a_table_of_users_comes_with_the_warning_of_prior(folder: Path) -> None:
    """What the page shows is then about its users: who passes it on must know."""
    warned = run("prior", "users.csv", "--count", "none", cwd=folder)
    done = run("explore", "users.csv", "--count", "none", "-o", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    for stderr in (warned.stderr, done.stderr):
        assert " ".join(FROM_USERS.split()) in " ".join(stderr.split())
    public = run("explore", "prior.csv", "-o", "public.html", cwd=folder)
    assert " ".join(FROM_USERS.split()) not in " ".join(public.stderr.split())


def test_a_page_tells_no_folder_of_its_owner(folder: Path) -> None:
    run("explore", folder / "prior.csv", "-o", "page.html", cwd=folder)
    assert inside((folder / "page.html").read_text("utf-8"))["source"]["prior"] == "prior.csv"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prior.csv", "-o", "page.txt"], "its name must end in .html or .htm"),
        (["prior.csv", "-o", "nowhere/page.html"], "there is no folder nowhere"),
        (["prior.csv", "-o", "there.html"], "is there already"),
        (["prior.csv", "-e", "0"], "epsilon must be"),
    ],
)
def test_what_is_refused_writes_nothing(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "there.html").write_text("kept")
    before = sorted(folder.iterdir())
    done = run("explore", *arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.html").read_text() == "kept"


def test_too_many_categories_are_refused() -> None:
    with pytest.raises(sv.errors.ParameterError, match="too many for a page"):
        page(one(sv.Prior.uniform(range(20_001))), Source("p"))


def test_a_page_of_the_demo_is_small(tmp_path: Path) -> None:
    run("explore", "-o", "page.html", cwd=tmp_path)
    assert (tmp_path / "page.html").stat().st_size <= 400_000
