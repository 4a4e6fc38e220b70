"""Tables as people have them: other separators and encodings, pipes, counts under any name, missing names."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import sottovoce as sv
from sottovoce.tables import files
from sottovoce.tables import priors as priors_table
from sottovoce.tables import users as users_table
from sottovoce.tables.files import DETECTED, Dialect
from sottovoce.tables.reader import encoding_of, header_of, require

WAR = sv.Prior(["Drama", "War"], [0.75, 0.25])


def prior_of(path: Path, dialect: Dialect = DETECTED) -> dict[object, float]:
    (prior,) = priors_table.read_priors(path, dialect=dialect, ask=True).priors.values()
    return dict(zip(prior.categories, prior.probabilities.tolist(), strict=True))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_the_separator_is_found(tmp_path: Path, separator: str, packed: bool, name: str) -> None:
    text = "item;count;note\nDrama;30;a\nWar;10;b\n".replace(";", separator).encode()
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text) if packed else text)
    assert prior_of(path) == {"Drama": 0.75, "War": 0.25}


def test_semicolons_with_commas_inside(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('item;count\nDrama, French;30\n"War; cold";10\n')
    assert prior_of(path) == {"Drama, French": 0.75, "War; cold": 0.25}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("item\nComedy|Drama\nWar\n", ","),  # one column: what stands in its values is no separator
        ("a;b,c\n1;2,3\n", ","),  # both would do: .csv promises a comma
        ("a;b;c, d\n1;2;3\n", ";"),  # a comma inside a name
        ("a;b\n1,5;2\n", ";"),
        ('"a;b"\n1\n', ","),
        ("", ","),
    ],
)
def test_another_separator_is_taken_only_where_it_fits(text: str, found: str) -> None:
    assert header_of(text.splitlines(), ".csv", DETECTED)[0] == found


def test_tabs_go_first_in_a_tsv() -> None:
    assert header_of(["a,b\tc", "1,2\t3"], ".tsv", DETECTED) == ("\t", ["a,b", "c"])


def test_a_separator_that_is_said_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item:count\nDrama:30\nWar:10\n")
    assert prior_of(path, Dialect(separator=":")) == {"Drama": 0.75, "War": 0.25}
    assert [Dialect(separator=name).separator for name in ("tab", "Pipe", ";")] == ["\t", "|", ";"]
    for wrong in ("", "::", '"', "\n", "ß"):
        with pytest.raises(sv.errors.ParameterError, match="separator must be one character"):
            Dialect(separator=wrong)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_recognised(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    path = tmp_path / "t.csv"
    path.write_bytes((mark + "item;count\nCafé;30\nWar;10\n").encode(encoding))
    assert prior_of(path) == {"Café": 0.75, "War": 0.25}


def test_latin_1_has_to_be_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("item,count\nCafé,30\nWar,10\n".encode("latin-1"))
    with pytest.raises(
        sv.errors.TableError, match=r"not UTF-8 .*set its encoding: encoding='cp1252'"
    ) as refused:
        prior_of(path)
    assert "\xe9" not in str(refused.value)
    assert prior_of(path, Dialect(encoding="latin-1")) == {"Café": 0.75, "War": 0.25}
    assert encoding_of(path, DETECTED) == "utf-8"
    with pytest.raises(sv.errors.ParameterError, match="encoding must be one of utf-8, utf-16, latin-1"):
        Dialect(encoding="koi8-r")
    path.write_bytes("item,count\n€-Shop,30\nWar,10\n".encode("cp1252"))
    for encoding in ("cp1252", "latin-1"):  # the same letters, and more of them
        assert prior_of(path, Dialect(encoding=encoding)) == {"€-Shop": 0.75, "War": 0.25}
    path.write_bytes(b"item,count\nSecret\x81,30\nWar,10\n")
    with pytest.raises(sv.errors.TableError, match=r"cannot be read as text in latin-1$") as refused:
        prior_of(path, Dialect(encoding="latin-1"))
    assert refused.value.__context__ is None


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "content", [b"item,count\nCaf\xe9,3\nWar,1\n", b"item,gr\xf6\xdfe\nWar,1\n", b"it\xe9m,count\nWar,1\n"]
)
def test_a_prior_of_a_text_that_is_not_utf_8_asks_for_its_encoding(
    tmp_path: Path, content: bytes, packed: bool
) -> None:
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    for read in (prior_of, lambda path: sv.build_prior(path, item="item")):
        with pytest.raises(sv.errors.TableError, match=r"not UTF-8 .*set its encoding: encoding='cp1252'"):
            read(path)


def test_percentages_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item;Anteil\na;45 %\nb;55%\n", encoding="utf-8")
    with pytest.raises(sv.errors.TableError, match="every item has as many rows"):
        priors_table.read_priors(path, ask=True)


def test_a_dialect_is_one_and_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="positional"):
        Dialect("comma")  # type: ignore[call-arg]  # a decimal comma, or a separator?
    with pytest.raises(
        sv.errors.ParameterError, match=r"dialect must be a Dialect, such as sottovoce\.Dialect\("
    ):
        sv.build_prior(tmp_path / "t.csv", item="item", dialect="comma")  # type: ignore[call-overload]  # that is the point
    with pytest.raises(sv.errors.ParameterError, match="merge_rare must be the name of a category"):
        sv.build_prior(pl.DataFrame({"item": ["a"]}), item="item", merge_rare=True)  # type: ignore[call-overload]  # the same


def test_users_in_other_encodings_are_the_same_users(tmp_path: Path) -> None:
    text = "user;item;weight\nä;Drama;3\nä;War;1\nö;War;2\n"
    found = []
    for name, encoding in {"a.csv": "utf-8", "b.csv": "utf-16", "c.csv": "latin-1"}.items():
        (tmp_path / name).write_bytes(text.encode(encoding))
        dialect = Dialect(encoding="latin-1") if encoding == "latin-1" else DETECTED
        users, how = users_table.read_user_groups(tmp_path / name, {"all": WAR}, dialect=dialect)
        assert how == "weights from column 'weight'"
        found.append((users["all"].ids, users["all"].p.toarray().tolist()))
    assert found == [(("ä", "ö"), [[0.75, 0.25], [0.0, 1.0]])] * 3


@pytest.mark.parametrize("name", ["views", "Zuschauer", "x"])
def test_one_row_for_each_item_and_no_amounts_is_asked_about(tmp_path: Path, name: str) -> None:
    """Otherwise every row would count once, without a word."""
    path = tmp_path / "t.csv"
    path.write_text(f"item,{name}\nDrama,30\nWar,10\n")
    with pytest.raises(
        sv.errors.TableError, match=r"name the column of amounts \(count\), or pass count='none'"
    ):
        priors_table.read_priors(path, ask=True)
    public = priors_table.read_priors(path, count=name, ask=True)
    assert public.priors["all"].probabilities.tolist() == [0.75, 0.25]
    assert priors_table.read_priors(path).priors["all"].probabilities.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "text",
    [
        "item\nDrama\nWar\n",  # no other column: nothing else can be meant
        "item,Count\nDrama,1\nWar,1\n",
        "item,note\nDrama,a\nDrama,b\nWar,c\n",  # a log: rows recur
        "user,item\nx,Drama\ny,War\n",
    ],
)
def test_other_tables_are_not_asked_about(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert priors_table.read_priors(path, ask=True).priors["all"].categories == ("Drama", "War")


def test_other_numbers_of_users_are_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,item,rating,4711\nx,Drama,3,978300760\nx,War,5,978302109\ny,War,2,978301968\n")
    users, how = users_table.read_user_groups(path, {"all": WAR})
    assert how == "every row counts once"
    assert users["all"].p.toarray().tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_the_nearest_column_is_proposed() -> None:
    names = ["user_id", "genre", "weight"]

    def head() -> list[tuple[str, ...]]:
        return [("x", "War", "3")]

    def refusal(needed: list[str], present: list[str]) -> str:
        with pytest.raises(sv.errors.TableError) as refused:
            require(needed, present, head)
        return str(refused.value)

    assert refusal(["user", "genre"], names) == (
        "there is no column 'user'; the table has user_id, genre, weight; did you mean 'user_id'?"
    )
    assert "did you mean" not in refusal(["zzz", "genre"], names)
    assert "user_id" not in refusal(["user", "12"], ["user_id", "12"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("item,Ann Miller,Bob Stone\nWar,3,1\nDrama,0,2\n", "the table has 3 columns, among them item"),
        ("item,u17,u18\nWar,3,1\n", "the table has 3 columns, among them item"),
        ("genre,Ann,Bob\nWar,3,1\n", "'user': the table has 3 columns; is the first line"),
        ("Item,Ann,rating\nWar,x,1\n", "the table has 3 columns, among them Item"),
        ("item,User,weight\nWar,u1,1\n", "the table has item, User, weight; did you mean 'User'?"),
    ],
)
@pytest.mark.parametrize("of_frame", [False, True])
def test_only_names_that_are_usual_or_asked_for_are_in_a_message(
    tmp_path: Path, text: str, told: str, of_frame: bool
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table: Any = pl.read_csv(tmp_path / "t.csv") if of_frame else tmp_path / "t.csv"
    with pytest.raises(sv.errors.TableError) as refused:
        sv.read_users(table, user="user", item="item", prior=WAR)
    assert told in str(refused.value)
    assert not any(name in str(refused.value) for name in ("Ann", "Bob", "u17", "u18", "War"))


def test_missing_names_are_dropped_when_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,item,weight\nx,Drama,3\n,War,9\nx,,9\nx,War,1\n")
    with pytest.raises(sv.errors.TableError, match=r"column '\w+' has 1 missing values.*missing='drop'"):
        users_table.read_user_groups(path, {"all": WAR})
    users, how = users_table.read_user_groups(path, {"all": WAR}, dialect=Dialect(missing="drop"))
    assert users["all"].ids == ("x",)
    assert users["all"].p.toarray().tolist() == [[0.75, 0.25]]
    assert how == "weights from column 'weight'; 2 rows with a missing name dropped"
    pl.read_csv(path).write_parquet(tmp_path / "t.parquet")
    again, said = users_table.read_user_groups(
        tmp_path / "t.parquet", {"all": WAR}, dialect=Dialect(missing="drop")
    )
    assert (again["all"].p.toarray().tolist(), said) == (users["all"].p.toarray().tolist(), how)
    public = priors_table.read_priors(path, dialect=Dialect(missing="drop"))
    assert public.priors["all"].probabilities.tolist() == [3 / 13, 10 / 13]
    assert "1 rows with a missing name dropped" in public.how


def test_a_pipe_is_read_like_a_file_and_leaves_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [sys.executable, "-c", f"open({str(pipe)!r}, 'w').write('item;count\\nDrama;30\\nWar;10\\n')"]
    )
    seen: list[Path] = []
    with files.at_hand(pipe) as copy:
        seen.append(copy)
        assert copy.stat().st_mode & 0o777 == 0o600
        assert copy.parent.stat().st_mode & 0o777 == 0o700
        assert prior_of(copy) == {"Drama": 0.75, "War": 0.25}
    writer.wait()
    assert not seen[0].parent.exists()
    with pytest.raises(sv.errors.TableError, match="there is no such file"):
        prior_of(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"item,count\na,1\n", ".csv"),
        (b' [{"item": "a"}]', ".json"),
        (b'{"item": 3,\n "b": 4}', ".json"),
        (b'{"item": "a"}\n{"item": "b"}\n', ".json"),
        (b"PAR1....", ".parquet"),
        (gzip.compress(b"item\na\n", mtime=0), ".csv.gz"),
    ],
)
def test_what_a_pipe_holds_is_told_by_its_first_bytes(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "t").write_bytes(content)
    assert files._kind_by_content(tmp_path / "t") == kind


def test_too_long_a_pipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_PIPE", 3)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (tmp_path / "long").open("wb") as file:
        file.write(b"1234")
    with (
        (tmp_path / "long").open("rb") as source,
        pytest.raises(sv.errors.TableError, match="save it as a file"),
    ):
        files._copy(source, tmp_path / "copy", "standard input")
    assert list(tmp_path.glob("sottovoce-*")) == []


def test_zstd_is_read_in_utf_8_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zst"
    rows = "SELECT * FROM (VALUES ('Drama', 30), ('War', 10)) AS t(item, count)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT CSV, HEADER, COMPRESSION zstd)")
    assert prior_of(path) == {"Drama": 0.75, "War": 0.25}
    with pytest.raises(sv.errors.TableError, match=r"UTF-8 is read only: unpack it first \(unzstd\)"):
        prior_of(path, Dialect(encoding="cp1252"))
