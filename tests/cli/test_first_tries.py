"""What new users tried first, and the answer that each of them should get."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any, get_overloads

import pytest
from command import check_refused, check_refused_last, run, write
from workbooks import write_workbook

import sottovoce as sv


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
        "group,item,votes\nold,Apfel,3\nold,Birne,1\nyoung,Apfel,1\nyoung,Birne,2\n",
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


def test_our_own_files_are_no_tables(club: Path) -> None:
    message = "file, not a table: are the files the other way round?"
    for command in (["compare", "survey.csv", "club.json", "-e", 2], ["choose", "club.json", "-e", 2]):
        check_refused(run(*command, cwd=club), f"club.json is a mechanism {message}")
    assert run("prior", "survey.csv", "-o", "own.json", cwd=club).returncode == 0
    check_refused(
        run("compare", "survey.csv", "own.json", "-e", 2, cwd=club), f"own.json is a prior {message}"
    )


def test_a_prior_given_as_a_mechanism(club: Path) -> None:
    assert (
        run("prior", "survey.csv", "--by", "group", "-o", "prior.json", "--force", cwd=club).returncode == 0
    )
    done = run("release", "prior.json", "members.csv", "--max-epsilon", 4, "-o", "x.csv", cwd=club)
    check_refused(done, "it is a prior (make one from it: sottovoce design)")


def test_a_column_that_differs_by_case_only(tmp_path: Path) -> None:
    table = write(tmp_path, "pub.csv", "package;section\na;net\nb;net\nc;web\n")
    check_refused(
        run("prior", table, "--item", "Section"),
        "the table has 2 columns, among them section; did you mean 'section'?",
    )
    users = write(tmp_path, "log.csv", "user,Section\nann,net\nbob,net\n")
    both = run("compare", table, users, "-e", 2, "--item", "section")
    check_refused(both, "did you mean 'Section'? (of two tables with different names make a prior of the")


def test_a_workbook_whose_first_sheet_is_not_the_table(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    sheets: dict[str, Any] = {
        "README": [["About"], ["us"]],
        "Survey": [["item", "count"], ["a", 3], ["b", 4]],
    }
    book = write_workbook(tmp_path / "book.xlsx", sheets)
    check_refused(run("prior", book), "This is sheet 1 of 2; another one: --read sheet=….")
    assert run("prior", book, "--read", "sheet=Survey").returncode == 0


def test_the_column_that_looks_most_like_people_is_named(tmp_path: Path) -> None:
    rows = "".join(f"{i % 2},device-{i % 30},{'abc'[i % 7 % 3]}\n" for i in range(200))
    shown = run("prior", write(tmp_path, "log.csv", f"click,device,item\n{rows}")).stderr
    assert "the values of 'device' recur with several items" in shown


def test_a_wrong_column_of_items(tmp_path: Path) -> None:
    rows = "".join(f"user-{i % 20},a,package-{i}\n" for i in range(200))
    users = write(tmp_path, "users.csv", f"user,section,item\n{rows}")
    prior = write(tmp_path, "prior.csv", "item,count\na,2\nb,1\n")
    check_refused(
        run("compare", prior, users, "-e", 2),
        "200 of 200 rows do not name one; nearly none is a category: is --item the right column?",
    )


def test_a_wrong_column_of_users_is_asked_about(tmp_path: Path) -> None:
    rows = "".join(f"person-{i % 5},package-{i},{'ab'[i % 2]}\n" for i in range(40))
    users = write(tmp_path, "users.csv", f"person,package,item\n{rows}")
    prior = write(tmp_path, "prior.csv", "item,count\na,2\nb,1\n")
    note = "Every user has one record: is it the right column of users (--user)?"
    assert note in run("compare", prior, users, "-e", 2, "--user", "package").stderr
    assert note not in run("compare", prior, users, "-e", 2, "--user", "person").stderr
    asked = "is the first line of the table a header? If it has another name, pass --user (user=)."
    headless = write(tmp_path, "headless.csv", "ann,package-1,a\nbob,package-2,b\n")
    check_refused(run("compare", prior, headless, "-e", 2), asked)


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


# ---------------------------------------------------------------- names, messages, and what results show

PRIOR = sv.Prior(["a", "b", "c"], [0.6, 0.3, 0.1])
ROOT = Path(__file__).parents[2]


def test_the_ten_lines_that_pyright_reads_are_those_of_the_readme() -> None:
    ten = re.search(r"## Ten lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert ten is not None
    read = (ROOT / "tests" / "types" / "ten_lines.py").read_text()
    assert ten.group(1) in read
    assert "sv.certify(sv.fitted(prior, 2))" in read


@pytest.mark.parametrize("made", [sv.fitted(PRIOR, 2), sv.minimax_kernel(PRIOR, 2)])
def test_members_of_a_sampler_are_what_its_protocol_says(made: sv.Sampler) -> None:
    """pyright accepts neither a cached property nor a class variable where the protocol has a property."""
    for name in ("linear", "keeps_prior"):
        assert isinstance(inspect.getattr_static(type(made), name), property)


def test_a_release_is_typed_as_a_category() -> None:
    annotations = [each.__annotations__["return"] for each in get_overloads(sv.Mechanism.release)]
    assert annotations == ["str | int", "tuple[str | int, StreamState]"]


def pictures() -> list[Any]:
    table = sv.compare([[0.5, 0.3, 0.2]], [sv.fitted(PRIOR, 2), sv.kernel_clip(PRIOR, 2)])
    shares = sv.estimate(sv.minimax_kernel(PRIOR, 2), {"a": 300, "b": 200, "c": 100})
    return [sv.plot_box([sv.fitted(PRIOR, 2)], [0.5, 0.3, 0.2]), table.plot(), shares.plot()]


def test_a_notebook_shows_a_plot_as_a_picture_without_pyplot() -> None:
    for axes in pictures():
        assert axes._repr_png_().startswith(b"\x89PNG\r\n")


def test_a_budget_that_is_too_small_says_how_much_is_needed_and_what_to_do(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,origin,count\nx,A,2\ny,A,1\nx,B,2\ny,B,1\nx,C,1\ny,C,1\n")
    rows = "".join(f"u{i},x,{group}\n" for i in range(5) for group in "ABC"[: 1 + i % 3])
    users = write(tmp_path, "users.csv", f"user,item,origin\n{rows}")
    assert run("design", prior, "-e", 5, "--by", "origin", "-o", "m.json", cwd=tmp_path).returncode == 0
    assert run("ledger", "create", "b.db", "--budget", 5, cwd=tmp_path).returncode == 0
    release = ["release", "m.json", users, "--by", "origin", "--several-groups", "allow", "--ledger", "b.db"]
    done = run(*release, "-o", "r.csv", cwd=tmp_path)
    check_refused_last(done, "3 of 5 users have less than they need; nobody was charged. Users need up to ")
    assert (
        "need up to ε = 15 here, and the budget of an epoch is 5: release at a smaller ε or in" in done.stderr
    )
    assert "--exhausted skip" in done.stderr
    assert not re.search(r"\bu[0-9]\b", done.stderr)


def test_help_of_fitted_begins_with_when_to_use_it_and_its_example_prints_a_law() -> None:
    text = inspect.getdoc(sv.fitted) or ""
    assert text.startswith("The sampler to begin with")
    first, parameters = text.split("Parameters\n")
    assert first.index("Use it if") < first.index("Of 9 exponents")
    assert re.findall(r"^    (\w+): ", parameters.split("\nRaises")[0], re.MULTILINE) == [
        "prior", "epsilon", "users", "tail", "promise",
    ]  # fmt: skip
    law = [
        float(part) for part in doctest.DocTestParser().get_examples(text)[-1].want.strip("[]\n").split(",")
    ]
    assert sum(law) == pytest.approx(1, abs=2e-3)


def test_the_page_of_the_demo_cuts_an_estimate_to_0_as_the_command_does(club: Path) -> None:
    text = (club / "page.html").read_text()
    rows = re.search(r'"head":\["genre","prior","truth","estimate".*?"rows":(\[\[.*?\]\])', text)
    assert rows is not None
    estimates = [row.split('","')[3] for row in rows.group(1).split("],[")]
    assert len(estimates) == 8
    assert all(0 <= float(text) <= 1 and not text.startswith("-") for text in estimates)


@pytest.mark.parametrize("command", ["compare", "design"])
def test_a_decimal_comma_is_a_question(tmp_path: Path, command: str) -> None:
    prior = write(tmp_path, "prior.csv", "item,count\na,2\nb,1\n")
    users = [write(tmp_path, "users.csv", "user,item\nu,a\n")] if command == "compare" else []
    expected = "epsilon 2,5 may be one number or two: write -e 2.5 or -e 2 -e 5"
    check_refused(run(command, prior, *users, "-e", "2,5"), expected)
    assert run(command, prior, *users, "-e", "1,2,5").returncode == 0


@pytest.mark.parametrize("command", ["compare", "release"])
def test_a_workbook_is_no_output(club: Path, command: str) -> None:
    arguments = {
        "compare": ["survey.csv", "members.csv", "-e", 2],
        "release": ["club.json", "members.csv", "--by", "group", "--max-epsilon", 4],
    }
    done = run(command, *arguments[command], "-o", "t.xlsx", cwd=club)
    check_refused(done, "t.xlsx")
    assert all(kind in done.stderr for kind in (".csv", ".parquet", ".json"))


def test_a_missing_ledger_names_the_python_call_too(tmp_path: Path) -> None:
    with pytest.raises(sv.errors.LedgerError, match=r"in Python Ledger\.create\(path, budget=…\)"):
        sv.Ledger.open(tmp_path / "none.db")


def test_a_ledger_shows_its_budget(tmp_path: Path) -> None:
    assert repr(sv.Ledger.create(tmp_path / "b.db", budget=4)) == "<Ledger b.db: ε = 4 per user and epoch>"
    both = sv.Ledger.create(tmp_path / "c.db", budget="0.5", lifetime=12)
    assert repr(both) == "<Ledger c.db: ε = 0.5 per user and epoch, 12 in all>"


def test_python_and_the_command_have_the_same_word_for_shuffling() -> None:
    assert sv.amplify(sv.kernel_clip(PRIOR, 1.0), 10_000, 1e-6) < 1
    assert not hasattr(sv, "amplified")


def results() -> list[Any]:
    users = [[0.5, 0.3, 0.2]] * 3
    shares = sv.estimate(sv.minimax_kernel(PRIOR, 2), {"a": 300, "b": 200, "c": 100})
    return [
        sv.compare(users, [sv.fitted(PRIOR, 2), sv.kernel_clip(PRIOR, 2)]),
        sv.choose(PRIOR, 2.0, limit=False),
        sv.limit(PRIOR, 2.0, users),
        sv.plan(range(5), 2000, 2.0),
        sv.audit(sv.certify(sv.fitted(PRIOR, 2)), draws=2000),
        shares,
        shares.verdict(),
    ]


def test_a_result_shows_what_print_shows() -> None:
    for result in results():
        assert repr(result) == str(result)
        assert not repr(result).startswith(f"{type(result).__name__}(")
        assert len(repr(result)) < 1500


def test_samplers_of_two_priors_are_distinguished() -> None:
    other = sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5])
    table = sv.compare([[0.5, 0.3, 0.2]], [sv.fitted(PRIOR, 2), sv.fitted(other, 2)])
    assert [row.sampler for row in table] == [f"fitted [{q.digest[:8]}]" for q in (PRIOR, other)]
    (alone,) = sv.compare([[0.5, 0.3, 0.2]], [sv.fitted(PRIOR, 2)])
    assert alone.sampler == "fitted"
    table.plot()


def test_the_table_of_samplers_is_read_only() -> None:
    with pytest.raises(TypeError):
        sv.SAMPLERS["mine"] = sv.blend  # type: ignore[index]


def test_the_reference_has_no_note_to_maintainers() -> None:
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        lines = page.read_text().splitlines()
        assert not [line for line in lines if ":::" in line and not line.startswith("::: sottovoce")]


@pytest.mark.parametrize(
    "sentence",
    [
        "-private, at least", "by chance: ", "would report like this", "X a draw of any user's own",
        "never: its reports only", "released undistorted", "better in nothing", "by somebody people trust",
        "released once more", "is yours to say",
    ],
)  # fmt: skip
def test_sentences_that_had_to_be_read_twice_are_gone(sentence: str) -> None:
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    assert not [path.name for path in texts if sentence in path.read_text()]
