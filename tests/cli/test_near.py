"""The option --near: positions, parents and coordinates of a public table, through the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run

import sottovoce as sv
from sottovoce.release.file import ANY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        f"{1990 + k},{10 + k},{'early' if k < 4 else 'late'},{45 + k / 100},{9 + k % 3 / 10}"
        for k in range(8)
    ]
    (tmp_path / "years.csv").write_text("item,count,part,lat,lon\n" + "\n".join(rows) + "\n")
    records = [f"u{i},{1990 + (i + j) % 8}" for i in range(20) for j in range(3)]
    (tmp_path / "members.csv").write_text("user,item\n" + "\n".join(records) + "\n")
    return tmp_path


def test_compare_adds_nearest_and_w1(folder: Path) -> None:
    told = run(
        "compare", "years.csv", "members.csv", "-e", 2, "--near", "position=item", "--json", cwd=folder
    )
    assert told.returncode == 0, told.stderr
    rows = json.loads(told.stdout)["rows"]
    assert {row["divergence"] for row in rows} == {"w1", "tv"}
    means = {row["sampler"]: row["mean"] for row in rows if row["divergence"] == "w1"}
    assert min(means, key=means.__getitem__) == "nearest"
    prior = sv.Prior.from_counts({1990 + k: 10 + k for k in range(8)})
    users = [[(1 if (k - i) % 8 < 3 else 0) / 3 for k in range(8)] for i in range(20)]
    near = sv.nearest(prior, 2.0, sv.Line(range(8)))
    assert means["nearest"] == pytest.approx(
        near.divergence(users, sv.wasserstein(near.geometry)).mean(), rel=1e-12
    )
    told = run(
        "compare", "years.csv", "members.csv", "-e", 2, "--near", "parent=part", "-s", "nearest:share=0.4",
        "-d", "w1", "--limit", cwd=folder,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "nearest(share=0.4)" in told.stdout
    assert "best possible" in told.stdout


@pytest.mark.parametrize("near", ["position=item", "parent=part", "latitude=lat,longitude=lon"])
def test_design_release_audit_estimate(folder: Path, near: str) -> None:
    told = run("design", "years.csv", "-e", 2, "--near", near, "-o", "near.json", cwd=folder)
    assert told.returncode == 0, told.stderr
    assert "half of the releases are within" in told.stdout
    assert "however far apart" in told.stdout
    assert sv.load(folder / "near.json", policy=ANY).engine.kind == "nearest"
    told = run("release", "near.json", "members.csv", "--max-epsilon", 2, "-o", "r.csv", cwd=folder)
    assert "20 releases" in told.stderr
    assert run("estimate", "near.json", "r.csv", cwd=folder).returncode == 0
    told = run("audit", "near.json", "--draws", 20000, cwd=folder)
    assert "no violation found" in told.stdout, told.stderr


def test_a_stream_takes_a_geometry_and_a_prior_file_its_own_names(folder: Path) -> None:
    told = run(
        "design", "years.csv", "-e", 16, "-s", "stream:persistence=0.99", "--near", "latitude=lat,longitude=lon",
        "-o", "stream.json", cwd=folder,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert sv.load(folder / "stream.json", policy=ANY).engine.kind == "nearest-stream"
    run("prior", "years.csv", "-o", "prior.json", cwd=folder)
    told = run("design", "prior.json", "-e", 2, "--near", "position=item", "--json", cwd=folder)
    assert json.loads(told.stdout)[0]["sampler"] == "nearest", told.stderr
    told = run("design", "prior.json", "-e", 2, "--near", "position=year", cwd=folder)
    assert "made already has no column 'year'" in told.stderr


def test_choose_prints_the_command_with_its_columns(folder: Path) -> None:
    told = run("choose", "years.csv", "--near", "position=item", "--mean-at-most", 1, cwd=folder)
    assert told.returncode == 0, told.stderr
    assert "Take nearest" in told.stdout
    assert "--near position=item" in told.stdout
    told = run("choose", "years.csv", "--near", "position=item", "-e", 2, "--one-record", cwd=folder)
    (design,) = (line.split()[1:] for line in told.stdout.splitlines() if "sottovoce design" in line)
    assert "--near" not in design  # a kernel takes no geometry, and design would refuse it
    assert run(*design, cwd=folder).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--near", "position=part"), "8 have no number"),
        (("--near", "position=yeer"), "the table has 5 columns, among them item, count"),
        (("--near", "latitude=lat"), "latitude=COLUMN,longitude=COLUMN"),
        (("--near", "place=lat"), "--near takes position=COLUMN"),
        (("--near", "position=lat,position=lon"), "once"),
        (("--near", "position=lat,parent=part"), "near takes position=COLUMN, or parent"),
        (("-s", "nearest"), "needs --near"),
        (("--near", "position=item", "-s", "nearest:share=2"), "share must lie between 0 and 1"),
        (("--near", "position=item", "-s", "nearest:geometry=2"), "takes share"),
    ],
)
def test_what_does_not_fit_is_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    told = run("design", "years.csv", "-e", 2, *arguments, cwd=folder)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1), told.stderr
    assert message in told.stderr


def test_values_that_differ_within_a_category_are_refused_and_w1_needs_near(folder: Path) -> None:
    (folder / "twice.csv").write_text("item,count,year\na,1,1\na,2,2\nb,1,\n")
    told = run("design", "twice.csv", "-e", 2, "--near", "position=year", cwd=folder)
    assert "1 have no number in some row, 1 have several" in told.stderr
    told = run("compare", "years.csv", "members.csv", "-e", 2, "-d", "w1", cwd=folder)
    assert "divergence w1 needs --near" in told.stderr


def test_a_column_of_parents_does_not_look_like_people(folder: Path) -> None:
    """Its values recur with several items; named by --near, it is no reason to refuse the prior."""
    rows = [f"{group},{1990 + k},{5 + k},{'early' if k < 2 else 'late'}" for group in "xy" for k in range(4)]
    (folder / "groups.csv").write_text("group,item,count,part\n" + "\n".join(rows) + "\n")
    told = run(
        "design", "groups.csv", "-e", 2, "--by", "group", "--near", "parent=part", "-o", "g.json", cwd=folder
    )
    assert told.returncode == 0, told.stderr
    more = "".join(f"z,{1990 + k},3,early\n" for k in range(1, 3))
    (folder / "groups.csv").write_text("group,item,count,part\n" + "\n".join(rows) + "\n" + more)
    run("prior", "groups.csv", "--by", "group", "--rare", "drop", "-o", "g2.json", cwd=folder)
    told = run("design", "g2.json", "-e", 2, "--by", "group", "--near", "position=item", cwd=folder)
    assert "different categories" in told.stderr


def test_near_is_for_nearest_and_streams_and_reads_decimal_commas(folder: Path) -> None:
    told = run("design", "years.csv", "-e", 2, "--near", "position=item", "-s", "fitted", cwd=folder)
    assert "--near is for the samplers nearest and stream" in told.stderr
    (folder / "comma.csv").write_text("item;count;at\na;1;1,5\nb;2;2,5\n;3;\n")
    told = run(
        "design", "comma.csv", "-e", 2, "--near", "position=at",
        "--read", "separator=;,decimal=comma,missing=drop", "--json", cwd=folder,
    )  # fmt: skip
    assert json.loads(told.stdout)[0]["worst_w1"] <= 1, told.stderr
    (folder / "names.csv").write_text("item,count\n1_0,3\n2,4\n")
    run("prior", "names.csv", "-o", "names.json", cwd=folder)
    told = run("design", "names.json", "-e", 2, "--near", "position=item", cwd=folder)
    assert "must hold numbers" in told.stderr
