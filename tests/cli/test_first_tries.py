"""What new users tried first, and the answer that each of them should get."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import check_refused, run, write


@pytest.fixture(scope="module")
def club(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's files, and mechanisms made from them."""
    folder = tmp_path_factory.mktemp("club")
    assert run("demo", "-o", ".", cwd=folder).returncode == 0
    for sampler, name in (("fitted", "club.json"), ("minimax-kernel", "linear.json")):
        design = ["design", "survey.csv", "-e", 4, "-s", sampler, "--by", "group", "-o", name]
        assert run(*design, cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "item,size\nApfel,3.5\nBirne,1.25\nKirsche,0.5\n",
        "item;Größe\nApfel;3,5\nBirne;1,25\nKirsche;0,5\n",
        "item,views\nApfel,3\nBirne,1\n",
    ],
)
def test_a_prior_that_would_be_uniform_is_a_question(tmp_path: Path, text: str) -> None:
    check_refused(run("prior", write(tmp_path, "f.csv", text)), "name the column of amounts (--count)")


def test_two_files_the_other_way_round(club: Path) -> None:
    done = run("release", "members.csv", "club.json", "--max-epsilon", 4, "-o", "x.csv", cwd=club)
    check_refused(
        done,
        "members.csv is not a mechanism file: it is not valid JSON; are the two files the other way round?",
    )
    assert not (club / "x.csv").exists()


def test_a_prior_given_as_a_mechanism(club: Path) -> None:
    assert (
        run("prior", "survey.csv", "--by", "group", "-o", "prior.json", "--force", cwd=club).returncode == 0
    )
    done = run("release", "prior.json", "members.csv", "--max-epsilon", 4, "-o", "x.csv", cwd=club)
    check_refused(done, "it is a prior (make one from it: sottovoce design)")


def test_a_column_that_differs_by_case_only(tmp_path: Path) -> None:
    table = write(tmp_path, "pub.csv", "package;section\na;net\nb;net\nc;web\n")
    check_refused(
        run("prior", table, "--item", "Section"), "the table has package, section; did you mean 'section'?"
    )


def test_a_wrong_column_of_items(tmp_path: Path) -> None:
    rows = "".join(f"user-{i % 20},a,package-{i}\n" for i in range(200))
    users = write(tmp_path, "users.csv", f"user,section,item\n{rows}")
    prior = write(tmp_path, "prior.csv", "item,count\na,2\nb,1\n")
    check_refused(
        run("compare", prior, users, "-e", 2),
        "200 of 200 rows do not name one, with 200 different items; nearly none is a category: is it the right column (item=, --item)?",
    )


def test_estimate_reads_what_release_wrote_whatever_its_columns_were_called(club: Path) -> None:
    rows = (club / "members.csv").read_text().splitlines()
    (club / "renamed.csv").write_text("\n".join(["Maintainer,Age,Section,weight", *rows[1:]]) + "\n")
    columns = ["--user", "Maintainer", "--item", "Section", "--by", "Age"]
    release = [
        "release",
        "linear.json",
        "renamed.csv",
        *columns,
        "--max-epsilon",
        4,
        "-o",
        "r.csv",
        "--force",
    ]
    assert run(*release, cwd=club).returncode == 0
    plain, named = (
        run("estimate", "linear.json", "r.csv", "--by", "Age", *more, cwd=club)
        for more in ([], ["--item", "Section", "--user", "Maintainer"])
    )
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout == named.stdout
    assert "2,000 reports" in plain.stdout


def test_a_long_comparison_begins_with_its_answer_and_fits_a_screen(club: Path) -> None:
    done = run("compare", "survey.csv", "members.csv", "-e", 2, "-e", 4, "--by", "group", cwd=club)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ε = 2: lowest mean relative_mollifier (0.1263), lowest maximum prior_minimax")
    assert lines[1].startswith("ε = 4: lowest mean")
    assert len(lines) <= 30
    assert "lowest mean" in lines[3]
    assert "66 rows of single groups are left out here: -o rows.csv has them." in done.stderr
    assert " best" not in done.stdout
