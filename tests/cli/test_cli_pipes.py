"""Tables through pipes: standard input, standard output, and what they are not mixed with."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import check_refused, run, write

import sottovoce as sv

SURVEY = "item;count\nDrama;30\nWar;10\n"
MEMBERS = "user,item\n" + "".join(f"u{i},{'Drama' if i % 3 else 'War'}\n" for i in range(60))


def piped(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sottovoce", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_table_from_standard_input(name: str) -> None:
    done = piped(SURVEY, "prior", name, "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert dict(zip(found["categories"], found["probabilities"], strict=True)) == {"Drama": 0.75, "War": 0.25}


def test_a_refusal_speaks_of_standard_input() -> None:
    done = piped("thing,count\nDrama,30\n", "prior", "-")
    check_refused(done, "standard input: there is no column 'item'")
    assert "sottovoce-" not in done.stderr
    check_refused(piped("", "prior", "-"), "standard input is empty")
    check_refused(piped(SURVEY, "compare", "-", "-", "-e", 1), "standard input is empty")


def test_a_release_goes_through_pipes_and_is_estimated(tmp_path: Path) -> None:
    survey = write(tmp_path, "survey.csv", SURVEY)
    made = run("design", survey, "-e", 2, "-s", "minimax-kernel", "-o", tmp_path / "m.json")
    assert made.returncode == 0, made.stderr
    done = piped(MEMBERS, "release", "--max-epsilon", "100", tmp_path / "m.json", "-", "-o", "-")
    assert done.returncode == 0, done.stderr
    reports = pl.read_csv(io.StringIO(done.stdout))
    assert sorted(reports["user"].to_list()) == sorted(f"u{i}" for i in range(60))
    assert set(reports["item"]) <= {"Drama", "War"}
    assert "into standard output" in done.stderr
    found = piped(done.stdout, "estimate", tmp_path / "m.json", "-", "--json")
    assert json.loads(found.stdout)[0]["reports"] == 60, found.stderr
    rows = piped(done.stdout, "estimate", tmp_path / "m.json", "-", "-o", "-")
    table = pl.read_csv(io.StringIO(rows.stdout))
    assert table["category"].to_list() == ["Drama", "War"]
    assert table["reports"].sum() == 60


def test_the_rows_of_a_comparison_alone_on_standard_output(tmp_path: Path) -> None:
    survey = write(tmp_path, "survey.csv", SURVEY)
    members = write(tmp_path, "members.csv", MEMBERS)
    done = run("compare", survey, members, "-e", "1", "-e", "2", "-s", "kernel-clip", "-o", "-")
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(io.StringIO(done.stdout))
    assert table["epsilon"].to_list() == [1.0, 2.0]
    assert table["users"].to_list() == [60, 60]


def test_a_public_table_without_amounts_is_asked_about(tmp_path: Path) -> None:
    survey = write(tmp_path, "survey.csv", "item,views\nDrama,30\nWar,10\n")
    members = write(tmp_path, "members.csv", "user,item,plays\nx,Drama,9\nx,War,1\ny,War,2\n")
    refused = run("compare", survey, members, "-e", 1)
    check_refused(refused, "survey.csv: every item has as many rows")
    assert "(--count), or pass --count none" in refused.stderr
    assert run("prior", survey, "--count", "none").returncode == 0
    for words, first in {("--weight", "plays"): [0.9, 0.1], (): [0.5, 0.5]}.items():
        done = run(
            "compare", survey, members, "-e", 1, "--count", "views", *words, "-s", "kernel-clip", "--json"
        )
        assert done.returncode == 0, done.stderr
        sampler = sv.kernel_clip(sv.Prior(["Drama", "War"], [0.75, 0.25]), 1.0)
        own = [float(sv.TV(p, sampler.distribution(p))) for p in (first, [0.0, 1.0])]
        assert json.loads(done.stdout)["rows"][0]["mean"] == pytest.approx(sum(own) / 2, rel=1e-12)


def test_missing_separator_and_encoding_reach_every_reader(tmp_path: Path) -> None:
    survey = tmp_path / "survey.csv"
    survey.write_bytes("item:count\nCafé:30\nWar:10\n".encode("latin-1"))
    members = tmp_path / "members.csv"
    members.write_bytes("user:item\nx:Café\n:War\ny:War\n".encode("latin-1"))
    words = ("--read", "separator=:,encoding=latin-1", "--read", "missing=drop")
    for command in (
        ("prior", survey),
        ("design", survey, "-e", 1),
        ("choose", survey, "-e", 1),
        ("compare", survey, members, "-e", 1, "-s", "kernel-clip"),
    ):
        done = run(*command, *words)
        assert done.returncode == 0, (command, done.stderr)
        assert members not in command or "1 rows with a missing name dropped" in done.stderr
        assert run(*command).returncode == 2
    assert run("design", survey, "-e", 1, *words, "-o", tmp_path / "m.json").returncode == 0
    done = run(
        "release", "--max-epsilon", "100", tmp_path / "m.json", members, "-o", tmp_path / "r.csv", *words
    )
    assert done.returncode == 0, done.stderr
    assert sorted(pl.read_csv(tmp_path / "r.csv")["user"].to_list()) == ["x", "y"]


NUMBERED = {"user": [3, 20, 100], "item": ["Drama", "War", "Drama"]}


@pytest.mark.parametrize("source", ["t.csv", "t.parquet", "t.json"])
def test_whole_names_stay_whole_numbers_in_every_format(tmp_path: Path, source: str) -> None:
    """So that the reports can be merged with the table on the user."""
    frame = pl.DataFrame(NUMBERED)
    getattr(frame, {"t.csv": "write_csv", "t.parquet": "write_parquet", "t.json": "write_json"}[source])(
        tmp_path / source
    )
    survey = write(tmp_path, "survey.csv", SURVEY)
    assert run("design", survey, "-e", 2, "-o", tmp_path / "m.json").returncode == 0
    for output in ("r.csv", "r.parquet", "r.json"):
        done = run(
            "release", "--max-epsilon", "100", tmp_path / "m.json", tmp_path / source, "-o", tmp_path / output
        )
        assert done.returncode == 0, done.stderr
        kinds: dict[str, Any] = {"csv": pl.read_csv, "parquet": pl.read_parquet, "json": pl.read_json}
        reports = kinds[output.removeprefix("r.")](tmp_path / output)
        assert reports.schema["user"] == pl.Int64
        assert sorted(frame.join(reports, on="user")["user"].to_list()) == [3, 20, 100]


@pytest.mark.parametrize("names", [["3", "x", "100"], ["3", "007", "100"], ["3", "+4", "9" * 30]])
def test_other_names_stay_text(tmp_path: Path, names: list[str]) -> None:
    pl.DataFrame({**NUMBERED, "user": names}).write_csv(tmp_path / "t.csv")
    survey = write(tmp_path, "survey.csv", SURVEY)
    assert run("design", survey, "-e", 2, "-o", tmp_path / "m.json").returncode == 0
    assert (
        run(
            "release",
            "--max-epsilon",
            "100",
            tmp_path / "m.json",
            tmp_path / "t.csv",
            "-o",
            tmp_path / "r.parquet",
        ).returncode
        == 0
    )
    assert sorted(pl.read_parquet(tmp_path / "r.parquet")["user"].to_list()) == sorted(names)


def test_text_that_looks_like_numbers_stays_text_where_the_table_says_text(tmp_path: Path) -> None:
    frame = pl.DataFrame({**NUMBERED, "user": ["3", "20", "100"]})
    frame.write_parquet(tmp_path / "t.parquet")
    survey = write(tmp_path, "survey.csv", SURVEY)
    assert run("design", survey, "-e", 2, "-o", tmp_path / "m.json").returncode == 0
    done = run(
        "release",
        "--max-epsilon",
        "100",
        tmp_path / "m.json",
        tmp_path / "t.parquet",
        "-o",
        tmp_path / "r.parquet",
    )
    assert done.returncode == 0, done.stderr
    assert len(frame.join(pl.read_parquet(tmp_path / "r.parquet"), on="user")) == 3


def test_categories_without_a_count(tmp_path: Path) -> None:
    table = write(tmp_path, "zeros.csv", "item,count\nDrama,30\nWar,0\nNoir,0\nOpera,10\n")
    check_refused(run("prior", table), "2 of 4 categories have none ('Noir', 'War')")
    done = run("prior", table, "--rare", "drop", "--json")
    assert json.loads(done.stdout)[0]["categories"] == ["Drama", "Opera"]
    assert "2 categories without a count left out: 'Noir', 'War'" in done.stderr
    assert run("prior", table, "--smoothing", 1).returncode == 0


def test_categories_of_people_are_not_named(tmp_path: Path) -> None:
    """A table with users is about them: what they lack is theirs."""
    table = write(tmp_path, "h.csv", "user,item,weight\nx,Drama,3\ny,War,0\ny,Noir,0\ny,Opera,1\n")
    refused = run("prior", table)
    check_refused(
        refused,
        "2 of 4 categories have none; when the prior is made, leave them out (--rare drop), merge them with other rare ones (--rare as=NAME, --rare-below N), or smooth (--smoothing)",
    )
    done = run("prior", table, "--rare", "drop")
    assert "2 categories without a count left out" in done.stderr
    assert not {"War", "Noir"} & {*refused.stderr.split("'"), *done.stderr.split("'")}


def test_the_ledger_says_what_its_number_is(tmp_path: Path) -> None:
    book = tmp_path / "b.db"
    assert run("ledger", "create", book, "--budget", "4").returncode == 0
    done = run("ledger", "show", book, "x")
    assert done.stdout == "4\n"
    assert done.stderr == "ε = 4 is left to this user; 0 was spent in all epochs\n"
    assert json.loads(run("ledger", "show", book, "x", "--json").stdout)["left"] == "4"
