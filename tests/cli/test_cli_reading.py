"""How commands are told about their tables: sheets, decimal commas, merging, reports in any form."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from command import check_refused, run, write
from workbooks import Rows, write_workbook

import sottovoce as sv
from sottovoce.release.file import ANY

pytest.importorskip("fastexcel")
SURVEY: Rows = [["item", "count"], ["Drama", 30], ["War", 9], ["Noir", 1], ["Opera", 0]]
MEMBERS: Rows = [["user", "item"], [1, "Drama"], [1, "War"], [2, "Noir"], [3, "Western"], [4, "Drama"]]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return write_workbook(tmp_path / "club.xlsx", {"Survey": SURVEY, "Members": MEMBERS, "Empty": []})


def test_one_workbook_from_the_survey_to_the_estimate(book: Path) -> None:
    """A person with one workbook: prior, comparison, design, release with a ledger, estimate."""
    folder = book.parent
    sheets = ["--read", "sheet=Survey/Members"]
    check_refused(run("compare", book, book, "-e", 1, *sheets), "category 'Opera' has 0")
    made = run("prior", book, "--rare", "as=rest", "--rare-below", 2, "-o", folder / "p.json")
    assert "2 categories below 2 merged into 'rest' ('Noir', 'Opera'); sheet 1 of 3" in made.stderr
    users = [folder / "p.json", book, "-e", 1, "--read", "sheet=Members", "--unknown", "as=rest"]
    done = run("compare", *users, "-s", "kernel-clip", "--json")
    (row,) = json.loads(done.stdout)["rows"]
    prior = sv.Prior(["Drama", "War", "rest"], [30 / 40, 9 / 40, 1 / 40])
    sampler = sv.kernel_clip(prior, 1.0)
    laws = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    own = [sv.TV(p, sampler.distribution(p)) for p in laws]
    assert row["mean"] == pytest.approx(sum(own) / 4, rel=1e-12)
    assert "sheet 2 of 3; 2 rows with unknown items counted as rest" in done.stderr
    design = ["design", folder / "p.json", "-e", 2, "-s", "minimax-kernel", "-o", folder / "m.json"]
    assert run(*design).returncode == 0
    assert sv.load(folder / "m.json", policy=ANY).categories == prior.categories
    assert run("ledger", "create", folder / "l.db", "--budget", 4).returncode == 0
    release = ["release", folder / "m.json", book, "--read", "sheet=Members", "--ledger", folder / "l.db"]
    strict = run(*release, "-o", folder / "r.csv", "--unknown", "error")
    check_refused(strict, "2 of 5 rows do not name one;")
    done = run(*release, "--unknown", "as=rest", "-o", folder / "r.csv")
    assert done.returncode == 0, done.stderr
    assert "4 releases charged" in done.stderr
    with (folder / "r.csv").open() as file:
        rows = list(csv.reader(file))
    reports = write_workbook(folder / "r.xlsx", {"Notes": [["x"]], "Reports": rows})
    plain = run("estimate", folder / "m.json", folder / "r.csv", "--json")
    read = run("estimate", folder / "m.json", reports, "--read", "sheet=Reports", "--json")
    assert plain.returncode == 0, plain.stderr
    assert read.stdout == plain.stdout
    assert "r.xlsx: sheet 2 of 2." in read.stderr


@pytest.mark.parametrize("command", ["compare", "choose"])
def test_a_merged_prior_is_kept_when_it_is_ready(book: Path, command: str) -> None:
    prior = book.parent / "p.json"
    assert run("prior", book, "--rare", "as=rest", "--rare-below", 2, "-o", prior).returncode == 0
    own = {"choose": ("--source", "a test"), "compare": ("-s", "kernel-clip")}
    more = own[command]
    asked = [command, prior, book, "-e", 2, "--read", "sheet=Members", *more]
    check_refused(run(*asked), "--unknown as=NAME")
    done = run(*asked, "--unknown", "as=rest")
    assert done.returncode == 0, done.stderr
    assert "2 rows with unknown items counted as rest" in done.stderr
    check_refused(run(*asked, "--unknown", "as=none"), "there is no category 'none'")


def test_choose_says_the_design_that_reads_the_same_table(book: Path) -> None:
    other = write_workbook(book.parent / "two.xlsx", {"Notes": [["x"]], "A survey": SURVEY[:-1]})
    done = run("choose", other, "-e", 2, "--read", "separator=;,sheet=A survey", "--count", "count", "--json")
    command = json.loads(done.stdout)["design"]
    assert command.endswith(" --count count --read 'separator=semicolon,sheet=A survey'")
    output = ["--quiet", "--force"]
    assert run(*shlex.split(command)[1:], *output, cwd=book.parent).returncode == 0
    assert sv.load(book.parent / "mechanism.json", policy=ANY).categories == ("Drama", "Noir", "War")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--unknown", "rest"], "--unknown must be error, drop or as=NAME, got 'rest'"),
        (["--unknown", "as="], "--unknown must be error, drop or as=NAME"),
        (["--read", "sheet=a/b/c"], "got 'sheet=a/b/c'"),
        (["--read", "sheet=a", "--read", "sheet=b"], "each once"),
        (["--read", "separator=,"], "write separator=comma for a comma"),
        (["--read", "separators=tab"], "got 'separators=tab'"),
        (["--read", "decimal=dot"], "--read decimal=… must be one of point, comma"),
    ],
)
def test_what_contradicts_itself_is_refused(book: Path, options: list[str], message: str) -> None:
    check_refused(run("compare", book, book, "-e", 1, *options), message)


def test_sheets_are_for_workbooks_and_rare_categories_need_a_name(book: Path) -> None:
    csv_file = write(book.parent, "t.csv", "item,count\na,3\nb,1\n")
    check_refused(run("prior", csv_file, "--read", "sheet=2"), "sheet=… is for workbooks")
    check_refused(run("prior", book, "--read", "sheet=1/2"), "got 'sheet=1/2'")
    check_refused(run("prior", csv_file, "--rare-below", 2), "--rare as=NAME")
    check_refused(run("prior", csv_file, "--rare", "merge"), "--rare must be error, drop or as=NAME")


def test_decimal_commas_on_the_command_line(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", "item;count\na;3,75\nb;1,25\n")
    users = write(tmp_path, "u.csv", "user;item;weight\nx;a;1,5\nx;b;0,5\ny;b;2\n")
    check_refused(run("prior", prior), "for decimal commas set --read decimal=comma")
    asked = ["compare", prior, users, "-e", 1, "-s", "kernel-clip", "--read", "decimal=comma", "--json"]
    done = run(*asked)
    (row,) = json.loads(done.stdout)["rows"]
    sampler = sv.kernel_clip(sv.Prior(["a", "b"], [0.75, 0.25]), 1.0)
    own = [sv.TV(p, sampler.distribution(p)) for p in ([0.75, 0.25], [0.0, 1.0])]
    assert row["mean"] == pytest.approx(sum(own) / 2, rel=1e-12)


def test_reports_in_any_form_are_estimated_alike(tmp_path: Path) -> None:
    mechanism = sv.certify(sv.minimax_kernel(sv.Prior(["á", "b", "c"], [0.5, 0.3, 0.2]), 2.0))
    mechanism.save(tmp_path / "m.json")
    text = "user;item;mechanism\n"
    text += "".join(f"u{i};{'ábc'[i % 3]};{mechanism.digest}\n" for i in range(60))
    reports = tmp_path / "r.csv"

    def found(content: str, stored: str = "utf-8", **said: Any) -> list[float]:
        reports.write_bytes(content.encode(stored))
        values: list[float] = sv.estimate(mechanism, reports, dialect=sv.Dialect(**said)).values.tolist()
        return values

    expected = found(text)
    with pytest.raises(sv.errors.TableError, match="encoding='cp1252'"):
        found(text, "latin-1")
    assert found(text, "latin-1", encoding="latin-1") == expected
    assert found(text.replace(";", ":"), separator=":") == expected
    missing = f"{text};;\n;b;{mechanism.digest}\n"
    with pytest.raises(sv.errors.TableError, match="missing='drop'"):
        found(missing)
    assert found(missing, missing="drop") == expected
    with pytest.raises(sv.errors.EstimateError, match="1 reports do not say which mechanism"):
        found(f"{text}v;b;\n", missing="drop")
    counts = "item;count\ná;20,0\nb;20,0\nc;20,0\n"
    with pytest.raises(sv.errors.TableError, match="decimal='comma'"):
        found(counts)
    assert found(counts, decimal="comma") == expected
    with pytest.raises(sv.errors.ParameterError, match="dialect are for a table"):
        sv.estimate(mechanism, {"b": 3}, dialect=sv.Dialect(separator=";"))
    reports.write_bytes(missing.encode("latin-1"))
    options = ["--read", "encoding=latin-1,missing=drop", "--read", "separator=;,decimal=comma"]
    done = run("estimate", tmp_path / "m.json", reports, "--json", *options)
    assert [row["estimate"] for row in json.loads(done.stdout)[0]["rows"]] == expected
    assert "r.csv: 2 rows with a missing name dropped." in done.stderr
