"""Amounts with a decimal comma: read where that is set, else asked about; marks between thousands are refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import sottovoce as sv
from sottovoce.tables import priors as priors_table
from sottovoce.tables.files import DETECTED, Dialect
from sottovoce.tables.reader import Columns, count_table

COUNTED = Columns("item", weight="count")
COMMA, POINT = Dialect(decimal="comma"), Dialect(decimal="point")


def counts_of(tmp_path: Path, first: str, second: str, dialect: Dialect) -> list[float]:
    path = tmp_path / "t.csv"
    path.write_text(f"item;count\na;{first}\nb;{second}\n")
    amounts: list[float] = count_table(path, COUNTED, dialect).amount.tolist()
    return amounts


@pytest.mark.parametrize(
    ("text", "comma", "point"),
    [
        ("3,5", 3.5, None),
        ("1,500", 1.5, None),
        ("1.500", None, 1.5),
        ("1.500,25", None, None),
        ("1,500.25", None, None),
        ("1.234.567", None, None),
        ("0.125", None, 0.125),
        ("12.34", None, 12.34),
        ("1234.567", None, 1234.567),
        ("1.50", None, 1.5),
        ("1500", 1500.0, 1500.0),
        (" 2 ", 2.0, 2.0),
        (",5", 0.5, None),
        ("5,", 5.0, None),
        ("1e3", 1000.0, 1000.0),
        ("1,5e3", 1500.0, None),
        ("1,2,3", None, None),
        ("1.2.3", None, None),
        ("1 500", None, None),
        ("inf", None, None),
        ("three", None, None),
        (".", None, None),
        ("-1", None, None),
    ],
)
def test_a_number_means_what_was_said(
    tmp_path: Path, text: str, comma: float | None, point: float | None
) -> None:
    for dialect, meant in ((COMMA, comma), (POINT, point)):
        if meant is None:
            with pytest.raises(sv.errors.TableError, match=r"must hold .*numbers.*: 1 of 2 rows do not"):
                counts_of(tmp_path, text, "7", dialect)
        else:
            assert counts_of(tmp_path, text, "7", dialect) == [meant, 7.0]


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [
        (("3,5", "1"), 1),
        (("1,500", "2,000"), 2),
        (("1,500,000", "3"), 1),
        (("1.500", "0.125"), 2),  # where semicolons separate, points may separate thousands
        (("3,5", "three"), 2),
    ],
)
def test_unset_a_mark_beside_semicolons_is_asked_about_and_never_guessed(
    tmp_path: Path, texts: tuple[str, str], wrong: int
) -> None:
    advice = (
        f"{wrong} of 2 rows do not; for decimal commas set decimal='comma', for decimal points in a file with "
        "semicolons decimal='point'; thousands must not be separated"
    )
    with pytest.raises(sv.errors.TableError, match=f"column 'count' must hold numbers: {advice}") as refused:
        counts_of(tmp_path, *texts, DETECTED)
    assert texts[0] not in str(refused.value)


def test_a_plain_point_needs_no_word(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,count\na,1.500\nb,2.250\n")
    assert count_table(path, COUNTED).amount.tolist() == [1.5, 2.25]


def test_other_files(tmp_path: Path) -> None:
    pl.DataFrame({"item": ["a", "b"], "count": ["3,0", "1,0"]}).write_parquet(tmp_path / "t.parquet")
    found = sv.build_prior(tmp_path / "t.parquet", item="item", weight="count", dialect=COMMA)
    assert found.probabilities.tolist() == [0.75, 0.25]
    pl.DataFrame({"item": ["a", "b"], "count": [3.0, 1.0]}).write_parquet(tmp_path / "t.parquet")
    found = sv.build_prior(tmp_path / "t.parquet", item="item", weight="count", dialect=COMMA)
    assert found.probabilities.tolist() == [0.75, 0.25]  # numbers are numbers, whatever is said of text


def test_counts_with_commas_under_another_name_are_asked_about(tmp_path: Path) -> None:
    """Otherwise every row would count once, without a word."""
    path = tmp_path / "t.csv"
    path.write_text("item;views\na;3,5\nb;1,25\n")
    for dialect in (DETECTED, COMMA):
        with pytest.raises(sv.errors.TableError, match=r"name the column of amounts \(count\)"):
            priors_table.read_priors(path, ask=True, dialect=dialect)


def test_what_is_no_decimal_mark_is_refused() -> None:
    with pytest.raises(sv.errors.ParameterError, match="decimal must be one of point, comma, got 'dot'"):
        Dialect(decimal="dot")
