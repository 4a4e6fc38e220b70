"""The command line as a user meets it: a real process, its exit code and what it prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command import check_refused, run, write

import sottovoce as sv
from sottovoce.demo import GROUPS, demo_comparison, demo_data
from sottovoce.release.file import ANY


def test_compare_from_files_equals_the_library(demo: Path) -> None:
    done = run(
        "compare", demo / "survey.csv", demo / "members.csv", "--by", "group", "--weight", "weight",
        "-e", 2, "-e", 6, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {(r["group"], r["epsilon"], r["sampler"]): r for r in json.loads(done.stdout)["rows"]}
    library = demo_comparison(demo_data(), (2.0, 6.0))
    assert len(rows) == len(library) == 3 * 2 * (len(sv.SAMPLERS) + 1)
    for row in library:
        theirs = rows[row.group, row.epsilon, row.sampler]
        assert theirs["users"] == row.users
        assert theirs["keeps_prior"] == row.keeps_prior
        for statistic in ("mean", "median", "p90", "p99", "maximum", "worst_case"):
            assert theirs[statistic] == pytest.approx(getattr(row, statistic), rel=1e-9, abs=1e-12)


def test_compare_prints_a_table_for_people(demo: Path) -> None:
    done = run(
        "compare", demo / "survey.csv", demo / "members.csv", "-e", "2", "--weight", "weight",
        "-s", "blend:weight=0.25", "-s", "local-minimax:gamma=9", "-d", "kl", "-d", "alpha:order=2",
        "-d", "hockey-stick:gamma=1.5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in ("blend(weight=0.25)", "local_minimax(gamma=9)", "alpha(2)", "hockey_stick(1.5)", "2,000"):
        assert text in done.stdout
    assert "not for publishing" in done.stderr
    assert "…" not in done.stdout  # no number is cut


def test_design_card(demo: Path) -> None:
    done = run("design", demo / "survey.csv", "-e", 2, "--by", "group", "--json", "-s", "prior-minimax")
    assert done.returncode == 0, done.stderr
    cards = {card["group"]: card for card in json.loads(done.stdout)}
    assert set(cards) == set(GROUPS)
    prior = demo_data().priors["25 to 44"]
    card = cards["25 to 44"]
    assert card["prior_digest"] == prior.digest
    assert card["smallest_probability"] == prior.smallest
    assert card["keeps_prior"] is True
    worst = {row["divergence"]: row for row in card["worst_cases"]}
    assert worst["kl"]["paper_bound"] == pytest.approx(sv.bounds.optimal_utility(prior, 2.0, sv.KL))
    assert worst["tv"]["this"] == pytest.approx(sv.prior_minimax(prior, 2.0).worst_case(sv.TV))
    assert worst["reverse_kl"]["this"] is None
    kept = card["released_as_itself"]
    assert kept[0]["category"] == card["rarest_category"]
    assert kept == sorted(kept, key=lambda one: one["probability"])
    sampler = sv.prior_minimax(prior, 2.0)
    for one in kept:
        i = prior.categories.index(one["category"])
        alone = sampler.distribution([float(j == i) for j in range(len(prior))])
        assert one["at_least"] == pytest.approx(alone[i], rel=1e-12)
    assert card["released_as_another"] == pytest.approx(1 - min(one["at_least"] for one in kept), abs=1e-12)
    people = run("design", demo / "survey.csv", "-e", 2)
    assert people.returncode == 0
    pooled = json.loads(run("design", demo / "survey.csv", "-e", 2, "--json").stdout)[0]
    assert (
        f"probability ≤ {pooled['released_as_another']:.4f}, for a draw from any user's own data"
        in people.stdout
    )
    for one in pooled["released_as_itself"]:
        assert f"at least {one['at_least']:.4f} for {one['category']}" in people.stdout
    assert "keeps the prior" in people.stdout
    assert "paper's bound" in people.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-e", "0"], "epsilon must be greater than 0, got 0.0"),
        (["-e", "-1"], "epsilon must be greater than 0, got -1.0"),
        (["-e", "nan"], "epsilon must be finite, got nan"),
        (["-e", "2", "-s", "magic"], "sampler must be one of fitted"),
        (["-e", "2", "-s", "blend:weight"], "sampler options look like blend:name=number"),
        (["-e", "2", "-s", "blend:wait=1"], "sampler blend takes weight, got 'wait'"),
        (["-e", "2", "-s", "kernel-clip:weight=1"], "sampler kernel-clip takes no option"),
        (["-e", "2", "-s", "blend:weight=2"], "weight must lie between 0 and 1, got 2.0"),
        (["-e", "2", "-d", "l2"], "divergence must be one of tv, kl"),
        (["-e", "2", "-d", "alpha"], "divergence must be written alpha:order=2"),
        (["-e", "2", "--by", "age"], "there is no column 'age'"),
        (["-e", "2", "--user", "who"], "users.csv: there is no column 'who'; the table has user, item"),
        (["-e", "2", "-s", "blend:weight=1,weight=0"], "each once"),
        (["-e", "2", "--unknown", "guess"], "--unknown must be error, drop or as=NAME, got 'guess'"),
    ],
)
def test_bad_options_exit_2_with_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    prior = write(tmp_path, "prior.csv", "item,count\na,3\nb,1\n")
    users = write(tmp_path, "users.csv", "user,item\nu,a\nv,b\n")
    check_refused(run("compare", prior, users, *arguments), message)


@pytest.mark.parametrize(
    ("prior", "users", "message"),
    [
        ("item,count\na,0\nb,1\n", "user,item\nu,a\n", "category 'a' has 0; drop it, merge it"),
        ("item,count\na,-2\nb,1\n", "user,item\nu,a\n", "finite numbers of at least 0: 1 of 2"),
        ("item,count\na,x\nb,1\n", "user,item\nu,a\n", "column 'count' must hold numbers"),
        ("item,count\na,1\nb,1\n", "user,item\nu,secret\n", "1 of 1 rows do not"),
        ("item,count\na,1\nb,1\n", "secret,a\nu,b\n", "is the first line of the table a header?"),
        ("item,count\na,1\nb,1\n", "user,item,weight\nu,a,secret\n", "column 'weight' must hold numbers"),
        ("item,probability\na,0.4\nb,0.5\n", "user,item\nu,a\n", "sums to 0.9, not to 1"),
        ("item,count\na,1\nb,1\n", "user,item\nu,\n", "column 'item' has 1 missing values"),
        ("item,count\na,1\nb,1\n", "user,item\n", "is empty: it has no rows"),
        ("item,count\na,1\nb,1\n", "", "is empty"),
        ("", "user,item\nu,a\n", "is empty"),
        (
            "wrong,columns\n1,2\n",
            "user,item\nu,a\n",
            "no column 'item': the table has 2 columns; is the first line",
        ),
    ],
)
def test_bad_files_exit_2_with_one_line(tmp_path: Path, prior: str, users: str, message: str) -> None:
    done = run("compare", write(tmp_path, "prior.csv", prior), write(tmp_path, "users.csv", users), "-e", 1)
    check_refused(done, message)
    assert "secret" not in done.stderr + done.stdout


def test_missing_and_unwritable_paths(tmp_path: Path) -> None:
    check_refused(run("design", tmp_path / "none.csv", "-e", 1), "there is no such file")
    check_refused(run("design", tmp_path, "-e", 1), "it is a folder")
    check_refused(run("demo", "-o", write(tmp_path, "a-file", "x")), "File exists")
    pl.DataFrame({"item": ["a"], "count": [1]}).write_csv(tmp_path / "p.csv")
    assert run("design", tmp_path / "p.csv", "-e", "many").returncode == 2


def test_prior_command_writes_what_compare_and_design_read(demo: Path, tmp_path: Path) -> None:
    done = run("prior", demo / "survey.csv", "--by", "group", "-o", tmp_path / "prior.json", "--json")
    assert done.returncode == 0, done.stderr
    printed = {one["group"]: one for one in json.loads(done.stdout)}
    assert {group: one["digest"] for group, one in printed.items()} == {
        group: prior.digest for group, prior in demo_data().priors.items()
    }
    for source in (tmp_path / "prior.json", demo / "survey.csv"):
        by = [] if source.suffix == ".json" else ["--by", "group"]  # a prior file knows its groups
        table = tmp_path / f"{source.stem}.csv"
        done = run("compare", source, demo / "members.csv", "-e", 2, *by, "-o", table)
        assert done.returncode == 0, done.stderr
    one, other = pl.read_csv(tmp_path / "prior.csv"), pl.read_csv(tmp_path / "survey.csv")
    assert one.height == 3 * (len(sv.SAMPLERS) + 1)
    assert one.sort("group", "sampler").equals(other.sort("group", "sampler"))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.json"])
def test_compare_writes_tidy_tables(demo: Path, tmp_path: Path, name: str) -> None:
    done = run(
        "compare", demo / "survey.csv", demo / "members.csv", "-e", 2, "-s", "kernel-clip",
        "-d", "tv", "-d", "reverse-kl", "-o", tmp_path / name, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".csv": pl.read_csv,
        ".parquet": pl.read_parquet,
        ".json": pl.read_json,
    }
    table = readers[Path(name).suffix](tmp_path / name)
    rows = json.loads(done.stdout)["rows"]
    assert table["divergence"].to_list() == ["tv", "reverse_kl"]
    assert table["mean"][0] == rows[0]["mean"]
    assert rows[1]["maximum"] is None
    assert table["maximum"][1] in (None, float("inf"))
    assert (tmp_path / name).stat().st_mode & 0o077 == 0  # measured on private data


def test_a_prior_from_users_is_named_and_refused(demo: Path, tmp_path: Path) -> None:
    members = demo / "members.csv"
    done = run("prior", members, "--user", "user", "-o", tmp_path / "p.json")
    assert done.returncode == 0, done.stderr
    words = "made from the very users it serves"
    assert words in done.stderr
    card = run("design", tmp_path / "p.json", "-e", 2)
    assert card.returncode == 0
    assert words in card.stdout
    compared = run("compare", tmp_path / "p.json", members, "-e", 2, "-s", "kernel-clip", "--json")
    assert words in json.loads(compared.stdout)["note"]
    assert words in run("compare", tmp_path / "p.json", members, "-e", 2, "-s", "kernel-clip").stderr
    check_refused(run("design", tmp_path / "p.json", "-e", 2, "-o", tmp_path / "m.json"), words)
    check_refused(run("design", members, "-e", 2, "-o", tmp_path / "m.json"), "(its provenance, 'public')")
    assert not (tmp_path / "m.json").exists()
    accepted = run("design", tmp_path / "p.json", "-e", 2, "-o", tmp_path / "m.json", "--provenance", "users")
    assert accepted.returncode == 0, accepted.stderr
    assert sv.load(tmp_path / "m.json", policy=ANY).provenance == "users"
    release = ["release", "--max-epsilon", "100", tmp_path / "m.json", members, "-o", tmp_path / "r.csv"]
    check_refused(run(*release), "(for an experiment: --provenance users)")
    assert not (tmp_path / "r.csv").exists()
    released = run(*release, "--provenance", "users")
    assert released.returncode == 0
    assert words in released.stderr
    public = run("prior", members, "--user", "user", "--provenance", "public", "-o", tmp_path / "q.json")
    assert words not in public.stderr
    assert run("design", tmp_path / "q.json", "-e", 2, "-o", tmp_path / "n.json").returncode == 0
    stated = run("design", members, "-e", 2, "--provenance", "public", "-o", tmp_path / "o.json")
    assert words not in stated.stderr
    assert (tmp_path / "o.json").read_bytes() == (tmp_path / "n.json").read_bytes()
    for prior, other in (("p", "public"), ("q", "users")):
        done = run("design", tmp_path / f"{prior}.json", "-e", 2, "--provenance", other)
        check_refused(done, "it states another provenance")


@pytest.mark.parametrize(
    ("users", "arguments", "message"),
    [
        ("user,item,age\nu,a,old\nv,a,new\n", ["--by", "age"], "1 of 2 groups have no prior"),
        ("user,item,age\nu,a,new\nv,a,new\n", ["--by", "age", "--unknown", "drop"], "1 of 1 groups"),
        (
            "user,item,age\nu,z,old\n",
            ["--by", "age", "--unknown", "drop"],
            "no user has a",
        ),
        (
            "user,item,age\nu,z,old\n",
            ["--by", "age", "--unknown", "as=other"],
            "there is no category 'other'",
        ),
        ("user,item,age\nu,a,\n", ["--by", "age"], "column 'age' has 1 missing values"),
        ("user,item,weight\nu,a,-1\n", [], "at least 0: 1 of 1 rows do not"),
        ("user,item\nu,a\n", ["--weight", "w"], "there is no column 'w'; the table has user, item"),
        ("user,a,b\nu,1,2\n", ["--read", "wide"], "SELECT * FROM (UNPIVOT wide ON"),
        ("user,item\nu,a\n", ["-o", "{}/x.txt"], "must end in .csv, .parquet or .json"),
        ("user,item\nu,a\n", ["-o", "{}/users.csv"], "must not be one of the inputs"),
    ],
)
def test_bad_tables_leave_no_file(tmp_path: Path, users: str, arguments: list[str], message: str) -> None:
    prior = write(tmp_path, "prior.csv", "item,count,age\na,3,old\nb,1,old\n")
    table = write(tmp_path, "users.csv", users)
    filled = [argument.format(tmp_path) for argument in arguments]
    output = [] if "-o" in filled else ["-o", tmp_path / "out.csv"]
    check_refused(run("compare", prior, table, "-e", 1, *filled, *output), message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prior.csv", "users.csv"]


def test_a_table_without_a_header_shows_nobodys_row(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count\na,3\nb,1\n")
    done = run("compare", prior, write(tmp_path, "t.csv", "secret_ann,1,2\nbob,3,4\n"), "-e", 1)
    check_refused(done, "is the first line of the table a header?")
    assert "secret" not in done.stderr


def test_outputs_never_replace_inputs(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.json", '{"a": 3, "b": 1}')
    check_refused(run("design", prior, "-e", 1, "-o", prior), "must not be one of the inputs")
    assert prior.read_text() == '{"a": 3, "b": 1}'
    check_refused(run("design", prior, "-e", 1, "-o", tmp_path / "no" / "m.json"), "there is no folder")
    check_refused(run("design", prior, "-e", 1, "-o", tmp_path / "m.csv"), "its name must end in .json")


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count,age\na,3,old\nb,1,old\nrest,1,old\n")
    users = write(tmp_path, "users.csv", "user,item,age\nu,a,old\nu,z,old\nv,a,old\nw,a,new\nw,a,new\n")
    done = run(
        "compare", prior, users, "-e", 1, "--by", "age", "-s", "kernel-clip",
        "--unknown", "drop",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in (
        "1 groups without a prior",
        "1 rows with unknown items dropped",
    ):
        assert text in done.stderr


def test_a_damaged_parquet_file_is_one_line(tmp_path: Path) -> None:
    pl.DataFrame({"user": ["u"] * 999, "item": ["a"] * 999}).write_parquet(tmp_path / "u.parquet")
    prior = write(tmp_path, "prior.csv", "item,count\na,3\nb,1\n")
    raw = (tmp_path / "u.parquet").read_bytes()
    for place in (5, len(raw) // 2, len(raw) - 30):
        (tmp_path / "bad.parquet").write_bytes(raw[:place] + b"\xff\x00\xff\x7f" + raw[place + 4 :])
        done = run("compare", prior, tmp_path / "bad.parquet", "-e", 1)
        assert done.returncode in (0, 2)
        assert "Traceback" not in done.stderr
