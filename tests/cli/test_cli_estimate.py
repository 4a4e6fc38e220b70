"""The command estimate as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command import check_refused, run, write

import sottovoce as sv
from sottovoce.release.file import ANY

PRIOR = "item,count,age\na,50,old\nb,30,old\nc,20,old\na,20,young\nb,30,young\nc,50,young\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimate")
    rng = np.random.default_rng(0)
    people = 4000
    pl.DataFrame(
        {
            "user": [f"u{i}" for i in range(people)],
            "item": rng.choice(list("abc"), people, p=[0.2, 0.3, 0.5]),
            "age": rng.choice(["old", "young"], people),
        }
    ).write_csv(folder / "users.csv")
    write(folder, "prior.csv", PRIOR)
    for name, sampler in (("m", "minimax-kernel"), ("c", "kernel-clip")):
        design = ["design", folder / "prior.csv", "-e", 2, "--by", "age", "-s", sampler]
        assert run(*design, "-o", folder / f"{name}.json").returncode == 0
        release = [
            "release",
            "--max-epsilon",
            "100",
            folder / f"{name}.json",
            folder / "users.csv",
            "-o",
            folder / f"{name}.csv",
        ]
        # These users are drawn from the very prior: too good for other people's data.
        assert run(*release, "--by", "age").returncode == 0
    return folder


def test_estimate_equals_the_library_and_finds_the_population(made: Path) -> None:
    done = run("estimate", made / "m.json", made / "m.csv", "--json")
    assert done.returncode == 0, done.stderr
    reports = pl.read_csv(made / "m.csv")
    mechanisms = sv.load_groups(made / "m.json", policy=ANY)
    groups = {one["group"]: one for one in json.loads(done.stdout)}
    together = groups.pop("all groups together")
    assert together["reports"] == 4000
    assert together["verdict"]["enough"] is (together["verdict"]["needed"] <= 4000)
    assert set(groups) == {"old", "young"}
    for group, one in groups.items():
        mine = reports.filter(pl.col("age") == group)["item"].to_list()
        library = sv.estimate(mechanisms[group], mine)
        assert [row["estimate"] for row in one["rows"]] == library.values.tolist()
        assert one["moved_by_share"] == library.moved_by(0.01)
        assert one["unbiased"] is True
        for row, truth in zip(one["rows"], (0.2, 0.3, 0.5), strict=True):
            assert abs(row["estimate"] - truth) < 6 * row["standard_error"]


def test_a_table_a_picture_and_files(made: Path, tmp_path: Path) -> None:
    done = run(
        "estimate", made / "m.json", made / "m.csv", "--picture", tmp_path / "e.png",
        "-o", tmp_path / "e.csv", "--simultaneous", "--level", 0.9,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in ("old", "young", "90% band", "shrunk", "prior"):
        assert text in done.stdout
    first = done.stdout.splitlines()[0]
    assert first.startswith("all groups together: 4,000 reports; ± 0.01 in every category needs ")
    assert "The users differ from the public prior" in first  # the old are like the young
    assert "One malicious report can move a value by" in done.stderr
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    table = pl.read_csv(tmp_path / "e.csv")
    assert table.columns[:4] == ["group", "category", "reports", "prior"]
    assert table.height == 6
    assert table["reports"].sum() == 4000


def test_clip_reports_are_called_what_they_are(made: Path) -> None:
    done = run("estimate", made / "c.json", made / "c.csv")
    assert done.returncode == 0, done.stderr
    assert "that was released, not the users' own" in done.stderr


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (lambda t: t, ["c.json"], "4000 of 4000 reports were released with another mechanism"),
        (lambda t: pl.concat([t, t.head(2)]), ["m.json"], "2 of 4000 users have more than one report"),
        (lambda t: t.with_columns(item=pl.lit("z")), ["m.json"], "are not; is it the mechanism"),
        (lambda t: t.drop("age"), ["m.json"], "there is no column 'age'"),
        (lambda t: t.head(0), ["m.json"], "it has no rows"),
        (lambda t: t.head(1), ["m.json"], "at least 2 reports, there are 1"),
        (lambda t: t.with_columns(age=pl.lit("other")), ["m.json"], "1 of 1 groups have no prior"),
        (lambda t: t, ["m.json", "--level", "1.5"], "level must lie between 0 and 1"),
        (lambda t: t, ["m.json", "--picture", "x.txt"], "must end in .png, .pdf or .svg"),
        (lambda t: t, ["m.json", "-o", "x.txt"], "must end in .csv, .parquet or .json"),
    ],
)
def test_bad_reports_exit_2_with_one_line(
    made: Path, tmp_path: Path, change: object, arguments: list[str], message: str
) -> None:
    change(pl.read_csv(made / "m.csv")).write_csv(tmp_path / "r.csv")  # type: ignore[operator]
    mechanism, *rest = arguments
    check_refused(run("estimate", made / mechanism, tmp_path / "r.csv", *rest), message)
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_a_prior_made_from_users_keeps_its_mark_whatever_older_prior_is_named(tmp_path: Path) -> None:
    """No prior is learned with a mechanism of raw users, and no message advises a way round that."""
    where: dict[str, Any] = {"cwd": tmp_path}
    rows = "".join(f"u{i},{'aab'[i % 3]}\n" for i in range(300))
    write(tmp_path, "users.csv", "user,item\n" + rows)
    assert run("prior", "users.csv", "--user", "user", "-o", "raw.json", **where).returncode == 0
    design = "design", "raw.json", "-e", 2, "-s", "minimax-kernel", "--provenance", "users", "-o", "m.json"
    assert run(*design, **where).returncode == 0
    release = "release", "m.json", "users.csv", "--max-epsilon", 2, "--provenance", "users", "-o", "r.csv"
    assert run(*release, **where).returncode == 0
    write(tmp_path, "flat.csv", "item,count\na,1\nb,1\n")
    assert run("prior", "flat.csv", "-o", "uniform.json", **where).returncode == 0
    for more in ([], ["--older", "uniform.json"]):
        done = run("estimate", "m.json", "r.csv", "--as-prior", "laundered.json", *more, **where)
        check_refused(done, "was made from the users")
        assert "--older" not in done.stderr
        assert not (tmp_path / "laundered.json").exists()
