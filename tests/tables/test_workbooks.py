"""Workbooks as people have them: sheets, whole numbers, dates, formulas, blanks, titles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from workbooks import (
    Cell,
    Rows,
    date,
    error,
    formula,
    old_workbook,
    open_document,
    sheet_xml,
    write_workbook,
)

import sottovoce as sv
from sottovoce.tables import files, reader
from sottovoce.tables import priors as priors_table
from sottovoce.tables import users as users_table
from sottovoce.tables.files import DETECTED, Dialect

pytest.importorskip("fastexcel")
PUBLIC: Rows = [["item", "count"], ["Drama", 30], ["War", 10]]
SHARES = {"Drama": 0.75, "War": 0.25}
WAR = sv.Prior(["Drama", "War"], [0.75, 0.25])


def prior_of(path: Path, dialect: Dialect = DETECTED) -> dict[object, float]:
    (prior,) = priors_table.read_priors(path, dialect=dialect, ask=True).priors.values()
    return dict(zip(prior.categories, prior.probabilities.tolist(), strict=True))


def users_of(path: Path, known: sv.Prior = WAR, **named: Any) -> dict[object, list[float]]:
    found = users_table.read_user_groups(path, {"all": known}, **named)[0]["all"]
    return dict(zip(found.ids, found.p.toarray().tolist(), strict=True))


@pytest.mark.parametrize("kind", [".xlsx", ".xlsm", ".XLSX", ".ods", ".xls"])
def test_every_kind_of_workbook_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"t{kind}"
    if kind == ".ods":
        path.write_bytes(open_document(PUBLIC))
    elif kind == ".xls":
        path.write_bytes(old_workbook(PUBLIC))
    else:
        write_workbook(path, PUBLIC)
    assert prior_of(path) == SHARES
    assert priors_table.read_priors(path).how == "amounts from column 'count'"
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    assert files._kind_by_content(copy) == {".xlsm": ".xlsx", ".XLSX": ".xlsx"}.get(kind, kind)


def test_the_first_sheet_that_is_neither_hidden_nor_empty_is_taken_and_said(tmp_path: Path) -> None:
    other: Rows = [["item", "count"], ["Noir", 1], ["Opera", 1]]
    path = write_workbook(
        tmp_path / "t.xlsx", {"Old": other, "Survey": PUBLIC, "2": other, "Notes": [["x"]]}, hidden=["Old"]
    )
    assert prior_of(path) == SHARES
    assert priors_table.read_priors(path).how.endswith(
        "; sheet 2 of 4"
    )  # not its name, which may be a person's
    assert priors_table.read_priors(path, dialect=Dialect(sheet=3)).how.endswith("; sheet 3 of 4")
    with pytest.raises(
        sv.errors.TableError, match=r"has no sheet 'Surveys'; it has 4 sheets: pass a name, or a num"
    ):
        prior_of(path, Dialect(sheet="Surveys"))
    for sheet in ("Survey", 2):
        assert prior_of(path, Dialect(sheet=sheet)) == SHARES
    for sheet in ("Old", "2", 1, 3, "1"):  # a hidden one that was asked for; a name goes before a number
        assert prior_of(path, Dialect(sheet=sheet)) == {"Noir": 0.5, "Opera": 0.5}
    blank = write_workbook(tmp_path / "b.xlsx", {"Chart": [], "Survey": PUBLIC})
    assert priors_table.read_priors(blank).how.endswith("; sheet 2 of 2")
    assert prior_of(blank) == SHARES
    again = write_workbook(tmp_path / "u.xlsx", {"Survey": PUBLIC, "Notes": [["x"]]})
    assert priors_table.read_priors(again).how.endswith("; sheet 1 of 2")
    with pytest.raises(
        sv.errors.TableError, match=r"has no sheet '0'; it has 2 sheets: pass a name, or a number up "
    ):
        prior_of(again, Dialect(sheet="0"))
    for wrong in ("", True, 1.5):
        with pytest.raises(sv.errors.ParameterError, match="sheet must be the name of a sheet"):
            Dialect(sheet=wrong)  # type: ignore[arg-type]  # that is the point


def named_by_integers(path: Path) -> bool:
    with reader.opened(path) as source:
        return reader.ordered_cells(source, reader.Columns("item", "user")).named_by_integers()


def test_whole_numbers_are_whole_again(tmp_path: Path) -> None:
    """A workbook keeps 1 as a double; a CSV file and a workbook must still name the same things."""
    book = write_workbook(
        tmp_path / "t.xlsx", [["user", "item", "weight"], [1, 7, 1.5], [1, 8, 0.5], [22, 8, 2]]
    )
    (tmp_path / "t.csv").write_text("user,item,weight\n1,7,1.5\n1,8,0.5\n22,8,2\n")
    known = sv.Prior(["7", "8"], [0.5, 0.5])
    assert (
        users_of(book, known) == users_of(tmp_path / "t.csv", known) == {"1": [0.75, 0.25], "22": [0.0, 1.0]}
    )
    assert named_by_integers(book)
    assert sv.read_users(book, user="user", item="item", weight="weight", prior=known).ids == ("1", "22")
    public = write_workbook(tmp_path / "p.xlsx", [["item", "count"], [7, 1], [8, 1]])
    assert prior_of(public) == {"7": 0.5, "8": 0.5}


def test_text_stays_text(tmp_path: Path) -> None:
    rows: Rows = [["user", "item"], ["007", "War"], ["7", "War"], [7, "Drama"], ["1e3", "War"]]
    path = write_workbook(tmp_path / "t.xlsx", rows)
    assert users_of(path) == {"007": [0.0, 1.0], "1e3": [0.0, 1.0], "7": [0.5, 0.5]}
    path = write_workbook(tmp_path / "s.xlsx", [["user", "item"], ["7", "War"], ["8", "War"]])
    assert not named_by_integers(path)  # a column of text


def test_blank_rows_and_columns_are_none(tmp_path: Path) -> None:
    blank: list[Cell] = [None, " ", None, None]
    rows: Rows = [blank[:0], ["item", None, "count", " "], blank, ["Drama", None, 30, None], ["War", "", 10]]
    path = write_workbook(tmp_path / "t.xlsx", [*rows, blank, blank])
    assert prior_of(path) == SHARES
    far = write_workbook(tmp_path / "far.xlsx", {"a": sheet_xml(PUBLIC, first_row=9, first_column=30)})
    assert prior_of(far) == SHARES


def test_a_formula_is_the_value_that_was_saved_with_it(tmp_path: Path) -> None:
    rows: Rows = [["item", "count"], ["Drama", formula("10*3", 30)], [formula('"W"&"ar"', "War"), 10]]
    assert prior_of(write_workbook(tmp_path / "t.xlsx", rows)) == SHARES
    never = write_workbook(
        tmp_path / "n.xlsx", [["item", "count"], ["Drama", formula("1+1", None)], ["War", 1]]
    )
    with pytest.raises(sv.errors.TableError, match="1 of 2 rows do not"):
        prior_of(never)


def test_errors_and_blanks_are_missing(tmp_path: Path) -> None:
    rows: Rows = [["user", "item"], ["x", "War"], ["x", error("#N/A")], ["x", "  "], [None, "War"]]
    path = write_workbook(tmp_path / "t.xlsx", rows)
    with pytest.raises(sv.errors.TableError, match=r"column '\w+' has \d missing values.*missing='drop'"):
        users_of(path)
    found, how = users_table.read_user_groups(path, {"all": WAR}, dialect=Dialect(missing="drop"))
    assert found["all"].p.toarray().tolist() == [[0.0, 1.0]]
    assert "3 rows with a missing name dropped" in how
    bad = write_workbook(tmp_path / "b.xlsx", [["item", "count"], ["Drama", 3], ["War", error("#DIV/0!")]])
    with pytest.raises(
        sv.errors.TableError, match=r"column 'count' must hold finite numbers.*1 of 2 rows do not"
    ):
        prior_of(bad)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([date(44000), date(44001)], "dates or times"),
        (["Drama", date(44000)], "text and dates"),  # Excel makes a date of 1-2 and of MARCH1
        ([True, False], "TRUE and FALSE"),
        ([1234567890123456, 2], "numbers of more than 15 digits"),
        ([1.5, 2.5], "it holds fractions"),
    ],
)
def test_names_that_excel_may_have_changed_are_refused(tmp_path: Path, cells: list[Cell], words: str) -> None:
    path = write_workbook(tmp_path / "t.xlsx", [["item", "count"], *([cell, 1] for cell in cells)])
    with pytest.raises(sv.errors.TableError, match=words) as refused:
        prior_of(path)
    assert "2020" not in str(refused.value)
    assert "1234" not in str(refused.value)
    beside = write_workbook(
        tmp_path / "u.xlsx", [["item", "count", "note"], ["Drama", 30, cells[0]], ["War", 10, cells[1]]]
    )
    assert prior_of(beside) == SHARES  # in a column that nobody asked for they do no harm


def test_every_column_with_values_has_a_name(tmp_path: Path) -> None:
    merged = '<mergeCells count="1"><mergeCell ref="A1:B1"/></mergeCells>'
    titled = sheet_xml([["Survey of 2026", None], *PUBLIC], more=merged)
    path = write_workbook(tmp_path / "t.xlsx", {"a": titled})
    with pytest.raises(
        sv.errors.TableError, match=r"1 of 2 columns have values but no name.*merged"
    ) as refused:
        prior_of(path)
    assert "2026" not in str(refused.value)
    twice = write_workbook(tmp_path / "u.xlsx", [["item", "count", "item "], ["Drama", 3, "War"]])
    with pytest.raises(sv.errors.TableError, match="two of its columns have the same name"):
        prior_of(twice)
    number = write_workbook(tmp_path / "w.xlsx", [["user", 7, 8.0], ["x", "War", 3]])
    assert users_of(number, item="7", weight="8") == {"x": [0.0, 1.0]}


@pytest.mark.parametrize(
    "rows", [[], [["item", "count"]], [[None, None], [" "]]], ids=["none", "head", "blank"]
)
def test_an_empty_sheet_is_refused(tmp_path: Path, rows: Rows) -> None:
    with pytest.raises(sv.errors.TableError, match="empty"):
        prior_of(write_workbook(tmp_path / "t.xlsx", rows))


def test_counts_in_a_workbook_are_asked_about(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t.xlsx", [["item", "views"], ["Drama", 30], ["War", 10]])
    with pytest.raises(
        sv.errors.TableError, match=r"every item has as many rows.*\(count\), or pass count='none'"
    ):
        prior_of(path)
    with pytest.raises(sv.errors.TableError, match="the table has item, views; did you mean 'item'"):
        priors_table.read_priors(path, item="items", count="views")


def test_a_workbook_without_its_reader_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(sv.errors.TableError, match=r"needs fastexcel: pip install 'sottovoce\[excel\]'"):
        prior_of(write_workbook(tmp_path / "t.xlsx", PUBLIC))


def test_a_workbook_that_changes_is_read_again(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t.xlsx", PUBLIC)
    assert prior_of(path) == SHARES
    write_workbook(path, [["item", "count"], ["Drama", 1], ["War", 1], ["Noir", 2]])
    assert prior_of(path) == {"Drama": 0.25, "War": 0.25, "Noir": 0.5}


def test_a_workbook_counts_as_the_same_table_in_parquet(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        [i % 40, f"i{i * i % 13}", 0.25 * (i % 5) + 0.1, "ab"[i % 2]] for i in range(400)
    ]
    names = ["user", "item", "w", "g"]
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(tmp_path / "t.parquet")
    book = write_workbook(tmp_path / "t.xlsx", [names, *rows])
    asked: list[dict[str, Any]] = [{}, {"weight": "w"}, {"weight": "w", "by": "g"}]
    for named in asked:
        found, expected = (
            reader.count_table(path, reader.Columns("item", "user", **named))
            for path in (book, tmp_path / "t.parquet")
        )
        assert (found.items, found.groups) == (expected.items, expected.groups)
        assert found.users is not None
        assert expected.users is not None
        assert found.users.tolist() == expected.users.tolist()
        for part in ("group", "user", "item", "rows", "amount"):
            assert getattr(found, part).tolist() == getattr(expected, part).tolist(), part


def test_numbers_among_texts_are_not_read_by_a_decimal_comma(tmp_path: Path) -> None:
    """A number has no mark: 1.125 in a cell of its own is not 1125, whatever the texts beside it say."""
    rows: Rows = [["item", "count"], ["a", "3,5"], ["b", 1.125], ["c", 2]]
    path = write_workbook(tmp_path / "mixed.xlsx", rows)
    with pytest.raises(sv.errors.TableError, match="column 'count' must hold numbers: 1 of 3 rows do not"):
        prior_of(path, Dialect(decimal="comma"))
    texts = write_workbook(tmp_path / "texts.xlsx", [["item", "count"], ["a", "3,5"], ["b", "1,5"]])
    assert prior_of(texts, Dialect(decimal="comma")) == {"a": 0.7, "b": 0.3}


@pytest.mark.parametrize("odd", [4012345678901234567, 2.5, True, 1e22])
def test_names_that_excel_may_have_changed_are_refused_among_texts_too(tmp_path: Path, odd: float) -> None:
    """Long numbers that differ in their last digits are the same number by now: two people would be one."""
    rows: Rows = [["user", "item"], [odd, "War"], ["A17", "War"]]
    with pytest.raises(
        sv.errors.TableError, match="column 'user' holds text and numbers that are fractions or too"
    ):
        users_table.read_user_groups(write_workbook(tmp_path / "t.xlsx", rows), {"all": WAR})
    fine: Rows = [["user", "item"], [4012, "War"], ["A17", "War"], ["2.5 b", "War"]]
    found, _ = users_table.read_user_groups(write_workbook(tmp_path / "u.xlsx", fine), {"all": WAR})
    assert sorted(map(str, found["all"].ids)) == ["2.5 b", "4012", "A17"]
    written: Rows = [["user", "item"], [str(odd), "War"], ["A17", "War"]]  # all of them are texts
    found, _ = users_table.read_user_groups(write_workbook(tmp_path / "v.xlsx", written), {"all": WAR})
    assert sorted(map(str, found["all"].ids)) == sorted([str(odd), "A17"])
