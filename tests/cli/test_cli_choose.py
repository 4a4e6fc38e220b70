"""`sottovoce choose`, and what `compare` and `design` take from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import check_refused, run, write

import sottovoce as sv
from sottovoce.release.file import ANY, load_mechanisms

SURVEY = "item,count\ncomedy,500\ndrama,300\nhorror,150\nwestern,50\n"
GROUPED = "group,item,count\nnorth,a,5\nnorth,b,3\nnorth,c,2\nsouth,a,1\nsouth,b,1\nsouth,c,8\n"
PANEL = "user,item,weight\n" + "".join(
    f"u{k},{item},{1 + (k * step) % 7}\n"
    for k in range(30)
    for step, item in enumerate(("comedy", "drama", "horror", "western"), start=1)
)
PRIOR = sv.Prior.from_counts({"comedy": 500, "drama": 300, "horror": 150, "western": 50})


def test_the_command_says_what_the_library_chose_and_its_command_designs_it(tmp_path: Path) -> None:
    survey = write(tmp_path, "survey.csv", SURVEY)
    done = run("choose", survey, "--mean-at-most", "0.05")
    assert done.returncode == 0, done.stderr
    found = sv.choose(PRIOR, mean_at_most=0.05)
    assert found.words() in done.stdout
    command = done.stdout.strip().splitlines()[-1].split()
    assert command[:2] == ["sottovoce", "design"]
    assert run(*command[1:], cwd=tmp_path).returncode == 0
    (made,) = load_mechanisms(tmp_path / "mechanism.json", policy=ANY).mechanisms.values()
    assert made.digest == sv.certify(found.sampler).digest


def test_public_users_choose_other_parameters_and_the_command_carries_them(tmp_path: Path) -> None:
    survey, panel = write(tmp_path, "survey.csv", SURVEY), write(tmp_path, "panel.csv", PANEL)
    done = run("choose", survey, panel, "--source", "a published panel", "-e", "2", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    (one,) = said["choices"]
    users = sv.read_users(panel, user="user", item="item", weight="weight", prior=PRIOR)
    found = sv.choose(PRIOR, 2.0, sv.PublicUsers(users.p, source="a published panel"))
    assert one["words"] == found.words().splitlines()
    assert "30 public users (a published panel)" in one["words"][-1]
    assert one["sampler"] == found.as_typed
    assert f"-s {found.as_typed} " in said["design"]


def test_groups_get_one_command_or_are_told_apart(tmp_path: Path) -> None:
    survey = write(tmp_path, "survey.csv", GROUPED)
    done = run("choose", survey, "--by", "group", "-e", "1", "--one-record")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Take minimax_kernel at epsilon 1.") == 2
    assert done.stdout.strip().endswith("-e 1 -s minimax-kernel -o mechanism.json --by group")
    out = tmp_path / "auto.json"
    assert run("design", survey, "-e", "1", "-s", "auto", "--by", "group", "-o", out).returncode == 0
    for name, made in load_mechanisms(out, policy=ANY).mechanisms.items():
        counts = {"north": [5, 3, 2], "south": [1, 1, 8]}[name]
        chosen = sv.choose(sv.Prior.from_counts(dict(zip("abc", counts, strict=True))), 1.0, limit=False)
        assert made.digest == sv.certify(chosen.sampler).digest


def test_what_design_takes_unless_told_otherwise(tmp_path: Path) -> None:
    survey, out = write(tmp_path, "survey.csv", SURVEY), tmp_path / "m.json"
    assert run("design", survey, "-e", "2", "-o", out).returncode == 0
    (made,) = load_mechanisms(out, policy=ANY).mechanisms.values()
    assert made.digest == sv.certify(sv.fitted(PRIOR, 2.0)).digest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-e", "1", "--nobody-above", "0.1"],
            "the best is 0.8641 with fitted(scale=1.042, exponent=0.625, promise=0.1359)",
        ),
        ([], "pass --epsilon, or a target"),
        (["--share-within", "0.1"], "share_within and reports belong together"),
        (["-e", "2", "panel.csv"], "public users need --source"),
        (["-e", "2", "--source", "a panel"], "which is missing"),
        (["-e", "2", "panel.csv", "--source", " "], "source must say in words"),
    ],
)
def test_refusals_are_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    write(tmp_path, "survey.csv", SURVEY)
    write(tmp_path, "panel.csv", PANEL)
    check_refused(run("choose", "survey.csv", *arguments, cwd=tmp_path), message)


def test_a_group_that_cannot_be_served_is_named(tmp_path: Path) -> None:
    survey = write(tmp_path, "survey.csv", GROUPED)
    done = run("choose", survey, "--by", "group", "-e", "1", "--mean-at-most", "0.0001")
    check_refused(done, "group 'north': no sampler meets")


def test_compare_with_the_limit_sorted(tmp_path: Path) -> None:
    survey, panel = write(tmp_path, "survey.csv", SURVEY), write(tmp_path, "panel.csv", PANEL)
    done = run("compare", survey, panel, "-e", "2", "--limit", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert rows[0]["sampler"] == "best possible"
    assert rows[0]["worst_case"] is None
    assert [row["mean"] for row in rows[1:]] == sorted(row["mean"] for row in rows[1:])
    assert all(row["above_limit"] >= -1e-12 for row in rows if row["keeps_prior"])
    printed = run("compare", survey, panel, "-e", "2", "--limit").stdout
    assert "best possible" in printed
    assert printed.startswith("ε = 2: lowest mean ")
    assert printed.splitlines()[1].split()[-1] == "mark"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--unknown", "users"], "--unknown must be"),
    ],
)
def test_compare_refuses(tmp_path: Path, arguments: list[str], message: str) -> None:
    survey, panel = write(tmp_path, "survey.csv", SURVEY), write(tmp_path, "panel.csv", PANEL)
    check_refused(run("compare", survey, panel, "-e", "2", *arguments), message)
