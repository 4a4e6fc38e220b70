"""Several samples and streams on the command line: designed, compared, released, charged, audited."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from command import run

import sottovoce as sv
from sottovoce.release.file import ANY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.csv").write_text("item,count\na,10\nb,20\nc,30\nd,40\n")
    rows = [f"u{i},{item}" for i in range(30) for item in ("a", "d", "abcd"[i % 4])]
    (tmp_path / "members.csv").write_text("user,item\n" + "\n".join(rows) + "\n")
    return tmp_path


def design(folder: Path, *more: object) -> None:
    told = run("design", "survey.csv", "-e", 4, "--samples", 3, "-o", "three.json", *more, cwd=folder)
    assert told.returncode == 0, told.stderr


def test_design_says_what_epsilon_covers_and_writes_a_mechanism(folder: Path) -> None:
    told = run("design", "survey.csv", "-e", 4, "--samples", 3, "-o", "three.json", cwd=folder)
    assert "4 for all of them together" in told.stdout
    assert "3 categories in one release" in told.stdout
    assert "with a shuffler that users trust" in told.stdout
    assert sv.load(folder / "three.json", policy=ANY).samples == 3
    plain = json.loads(run("design", "survey.csv", "-e", 4, "--samples", 3, "--json", cwd=folder).stdout)
    assert (plain[0]["samples"], plain[0]["epsilon"]) == (3, 4.0)
    for wrong in (0, 5000):
        told = run("design", "survey.csv", "-e", 4, "--samples", wrong, cwd=folder)
        assert (told.returncode, "1<=x<=4096" in told.stderr) == (2, True)
    told = run("design", "survey.csv", "-e", 4, "--samples", 2, "-s", "minimax-kernel", cwd=folder)
    assert (told.returncode, "leave out --sampler" in told.stderr) == (2, True)


def test_one_sample_is_designed_as_before_with_what_shuffling_adds(folder: Path) -> None:
    told = run("design", "survey.csv", "-e", 2, "-o", "one.json", cwd=folder)
    assert sv.load(folder / "one.json", policy=ANY).samples == 1
    assert "10,000 reports: central ε ≤ " in told.stdout
    assert "epsilon holds whatever the shuffler does" in told.stdout


def test_release_writes_a_row_for_each_sample_and_estimate_reads_them(folder: Path) -> None:
    design(folder)
    run("ledger", "create", "budget.db", "--budget", 4, cwd=folder)
    told = run("release", "three.json", "members.csv", "-o", "r.csv", "--ledger", "budget.db", cwd=folder)
    assert told.returncode == 0, told.stderr
    assert "30 releases, 3 samples, a row each," in told.stderr
    with (folder / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["user"] for row in rows) == Counter({f"u{i}": 3 for i in range(30)})
    assert [row["sample"] for row in rows[:6]] == ["1", "2", "3"] * 2
    again = run("release", "three.json", "members.csv", "-o", "s.csv", "--ledger", "budget.db", cwd=folder)
    assert "0 releases charged" in again.stderr
    assert (folder / "s.csv").read_text() == (folder / "r.csv").read_text()
    told = run("estimate", "three.json", "r.csv", "--json", cwd=folder)
    found = json.loads(told.stdout)[0]
    assert found["reports"] == 30
    assert sum(row["reports"] for row in found["rows"]) == 90
    cut = (folder / "r.csv").read_text().splitlines()[:-1]
    (folder / "cut.csv").write_text("\n".join(cut) + "\n")
    told = run("estimate", "three.json", "cut.csv", cwd=folder)
    assert (told.returncode, "1 of 30 users do not have 3 reports" in told.stderr) == (2, True)


def test_a_column_of_the_users_is_not_taken_for_the_number_of_a_sample(folder: Path) -> None:
    design(folder)
    told = run(
        "release",
        "--max-epsilon",
        "100",
        "three.json",
        "members.csv",
        "-o",
        "r.csv",
        "--item",
        "sample",
        cwd=folder,
    )
    assert (told.returncode, "not be named" in told.stderr) == (2, True)


def test_audit_amplify_and_collect_know_them(folder: Path) -> None:
    design(folder)
    told = run("audit", "three.json", "--draws", 2000, cwd=folder)
    assert (told.returncode, "no violation found" in told.stdout) == (0, True)
    told = run("amplify", "three.json", "--reports", 10000, "--json", cwd=folder)
    central = json.loads(told.stdout)["groups"][0]["central_epsilon"]
    assert 0 < central < 4
    told = run("collect", "serve", "three.json", "--store", "store.db", cwd=folder)
    assert (told.returncode, "one sample per user" in told.stderr) == (2, True)
    assert not (folder / "store.db").exists()


def test_compare_tells_what_several_samples_are_worth(folder: Path) -> None:
    told = run(
        "compare", "survey.csv", "members.csv", "-e", 4, "--samples", "1,3", "-s", "kernel-clip",
        "-o", "rows.csv", cwd=folder,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "separately" in told.stdout
    assert "one alone" in told.stdout
    with (folder / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["samples"], row["way"], row["users"]) for row in rows] == [
        ("1", "together", "30"), ("3", "together", "30"), ("3", "separately", "30")
    ]  # fmt: skip
    assert float(rows[1]["mean"]) < float(rows[2]["mean"])


def test_a_stream_is_designed_and_released_week_by_week_for_one_charge(folder: Path) -> None:
    told = run("design", "survey.csv", "-e", 8, "-s", "stream:horizon=4", "-o", "stream.json", cwd=folder)
    assert told.returncode == 0, told.stderr
    assert "any number, planned for 4" in told.stdout
    assert sv.load(folder / "stream.json", policy=ANY).streaming
    alone = run("release", "--max-epsilon", 8, "stream.json", "members.csv", "-o", "r.csv", cwd=folder)
    assert (alone.returncode, "--ledger" in alone.stderr) == (2, True)
    run("ledger", "create", "budget.db", "--budget", 8, "--lifetime", 8, cwd=folder)
    weeks = []
    for week in range(4):
        options = ["--max-epsilon", 8, "--ledger", "budget.db", "--epoch", f"w{week}", "-o", f"{week}.csv"]
        told = run("release", "stream.json", "members.csv", *options, cwd=folder)
        assert told.returncode == 0, told.stderr
        assert ("30 releases charged" if week == 0 else "30 of streams that go on") in told.stderr
        weeks.append((folder / f"{week}.csv").read_text())
        again = run("release", "stream.json", "members.csv", *options, "--force", cwd=folder)
        assert "0 releases charged, 30 repeated" in again.stderr
        assert (folder / f"{week}.csv").read_text() == weeks[week]
    assert len(set(weeks)) == 4
    told = run("ledger", "show", "budget.db", "u1", "--epoch", "w3", cwd=folder)
    assert "8 was spent in all epochs" in told.stderr + told.stdout
    told = run("audit", "stream.json", "--draws", 2000, cwd=folder)
    assert (told.returncode, "no violation found" in told.stdout) == (0, True)
    told = run("estimate", "stream.json", "3.csv", cwd=folder)
    assert "not the users' own" in told.stdout + told.stderr
    for wrong in ("nan", "inf", "1.7", "-3"):
        told = run("design", "survey.csv", "-e", 8, "-s", f"stream:horizon={wrong}", cwd=folder)
        assert (told.returncode, told.stderr.count("\n")) == (2, 1), told.stderr
    told = run("compare", "survey.csv", "members.csv", "-e", 8, "-s", "stream", cwd=folder)
    assert (told.returncode, "compare_over_time" in told.stderr) == (2, True)
