"""Tables as people have them: other separators and encodings, pipes, counts under any name, missing names."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest

import sottovoce as sv
from sottovoce.tables import amounts, inputs, spool
from sottovoce.tables.dialect import FOUND, Dialect, encoding_of, separator_of
from sottovoce.tables.header import missing_column

WAR = sv.Prior(["Drama", "War"], [0.75, 0.25])


def prior_of(path: Path, dialect: Dialect = FOUND) -> dict[object, float]:
    (prior,) = inputs.read_priors(path, dialect=dialect, ask=True).priors.values()
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
        ("a;b, c\n1;2\n", ";"),  # a comma inside a name
        ("a;b\n1;2\n3\n", ","),  # does not split all lines alike
        ("a;b\n1;2\n\n3;4\n", ";"),
        ('"a;b"\n1\n', ","),
        ("", ","),
    ],
)
def test_another_separator_is_taken_only_where_it_fits(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert separator_of(path, ".csv", FOUND) == found


def test_tabs_go_first_in_a_tsv(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a,b\tc\n1,2\t3\n")
    assert separator_of(path, ".tsv", FOUND) == "\t"


def test_a_separator_that_is_said_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item:count\nDrama:30\nWar:10\n")
    assert prior_of(path, Dialect(separator=":")) == {"Drama": 0.75, "War": 0.25}
    assert [Dialect(separator=name).separator for name in ("tab", "\\t", "Pipe", ";")] == [
        "\t",
        "\t",
        "|",
        ";",
    ]
    for wrong in ("", "::", '"', "\n", "ß"):
        with pytest.raises(sv.ParameterError, match="separator must be one character"):
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
    with pytest.raises(sv.TableError, match="--encoding cp1252") as refused:
        prior_of(path)
    assert "\xe9" not in str(refused.value)
    assert prior_of(path, Dialect(encoding="ISO-8859-1")) == {"Café": 0.75, "War": 0.25}
    assert encoding_of(path, FOUND) == "utf-8"
    with pytest.raises(sv.ParameterError, match="encoding must be one of utf-8, utf-16, latin-1"):
        Dialect(encoding="koi8-r")
    path.write_bytes("item,count\n€-Shop,30\nWar,10\n".encode("cp1252"))
    with pytest.raises(sv.TableError, match="is not Latin-1, but likely of Windows: say --encoding cp1252"):
        prior_of(path, Dialect(encoding="latin-1"))
    assert prior_of(path, Dialect(encoding="windows-1252")) == {"€-Shop": 0.75, "War": 0.25}


def test_percentages_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item;Anteil\na;45 %\nb;55%\n", encoding="utf-8")
    with pytest.raises(sv.TableError, match="column 'Anteil' looks like counts"):
        inputs.read_priors(path, ask=True)


def test_a_dialect_is_one_and_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="positional"):
        Dialect("comma")  # type: ignore[call-arg]  # a decimal comma, or a separator?
    with pytest.raises(sv.ParameterError, match=r"dialect must be a Dialect, such as sottovoce\.Dialect\("):
        sv.build_prior(tmp_path / "t.csv", item="item", dialect="comma")  # type: ignore[call-overload]  # that is the point
    with pytest.raises(sv.ParameterError, match="merge_rare must be the name of a category"):
        sv.build_prior(pl.DataFrame({"item": ["a"]}), item="item", merge_rare=True)  # type: ignore[call-overload]  # the same


def test_users_in_other_encodings_are_the_same_users(tmp_path: Path) -> None:
    text = "user;item;weight\nä;Drama;3\nä;War;1\nö;War;2\n"
    found = []
    for name, encoding in {"a.csv": "utf-8", "b.csv": "utf-16", "c.csv": "latin-1"}.items():
        (tmp_path / name).write_bytes(text.encode(encoding))
        dialect = Dialect(encoding="latin-1") if encoding == "latin-1" else FOUND
        users, how = inputs.read_user_groups(tmp_path / name, {"all": WAR}, dialect=dialect, ask=True)
        assert how == "weights from column 'weight'"
        found.append((users["all"].ids, users["all"].p.toarray().tolist()))
    assert found == [(("ä", "ö"), [[0.75, 0.25], [0.0, 1.0]])] * 3


@pytest.mark.parametrize("name", ["views", "n", "playCount_total", "Zuschauer", "x"])
def test_counts_under_another_name_are_asked_about(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"item,{name}\nDrama,30\nWar,10\n")
    with pytest.raises(sv.TableError, match=f"say --count {name} to add it up, or --no-count"):
        inputs.read_priors(path, ask=True)
    assert inputs.read_priors(path, count=name, ask=True).priors["all"].probabilities.tolist() == [0.75, 0.25]
    assert inputs.read_priors(path).priors["all"].probabilities.tolist() == [0.5, 0.5]
    path.write_text(f"user,item,{name}\nx,Drama,30\nx,War,10\ny,War,2\n")
    with pytest.raises(sv.TableError, match=f"say --weight {name} to add it up, or --no-weight"):
        inputs.read_user_groups(path, {"all": WAR}, ask=True)


@pytest.mark.parametrize(
    "text",
    [
        "user,item,rating,timestamp\nx,Drama,3,978300760\nx,War,5,978302109\ny,War,2,978301968\n",
        "user,item,movieId\nx,Drama,31\nx,War,1029\n",
        "user,item,row\nx,Drama,1\nx,War,2\n",
        "user,item,nr_of_nothing\nx,Drama,1\nx,War,1\n",  # all the same: nothing would change
        "user,item,clicked\nx,Drama,0\nx,War,1\n",  # a flag
        "user,item,zahl\nx,Drama,0\nx,War,1\ny,War,2\n",  # it only numbers the rows
        "user,item,C14\nx,Drama,15706\nx,Drama,15707\ny,War,320\n",  # a log: rows recur
        "user,item,note\nx,Drama,5\nx,War,five\n",  # text
        "user,item,delta\nx,Drama,-1\nx,War,2\n",
        "user,item,x\nx,Drama,1.5\nx,War,2.25\n",  # measured, not counted
        "user,item,plays\nx,Drama,5\ny,War,7\n",  # one row a user: no weight changes anything
        "user,item\nx,Drama\nx,War\n",
    ],
)
def test_other_numbers_are_no_counts(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    _, how = inputs.read_user_groups(path, {"all": WAR}, ask=True)
    assert how == "every row counts once"


def test_a_log_with_a_word_for_counts_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,item,plays\nx,Drama,3\nx,Drama,5\ny,War,2\n")
    with pytest.raises(sv.TableError, match="column 'plays' looks like counts"):
        inputs.read_user_groups(path, {"all": WAR}, ask=True)


def test_counts_are_found_among_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    more = [f"a_long_name_of_a_column_{i}" for i in range(40)]
    path.write_text(
        "\n".join(
            ",".join([*row, *(["x"] * 40)])
            for row in (["user", "item", "plays"], ["x", "Drama", "3"], ["x", "War", "5"])
        ).replace(",".join(["x"] * 40), ",".join(more), 1)
        + "\n"
    )
    with pytest.raises(sv.TableError, match="column 'plays' looks like counts"):
        inputs.read_user_groups(path, {"all": WAR}, ask=True)


def test_a_column_name_that_may_be_data_is_never_printed(tmp_path: Path) -> None:
    """Without a header, the first row has the names: a number among them is somebody's."""
    path = tmp_path / "t.csv"
    path.write_text("user,item,4711\nx,Drama,3\nx,War,5\n")
    _, how = inputs.read_user_groups(path, {"all": WAR}, ask=True)
    assert how == "every row counts once"
    facts = [True, 30.0, True, False]
    assert amounts.looks_like_counts("views", facts, False)
    assert not amounts.looks_like_counts("views", [True, 1.0, True, False], True)
    assert amounts.looks_like_counts("share", [False, 0.5, True, False], False)


def test_the_nearest_column_is_proposed() -> None:
    def head() -> dict[str, list[str]]:
        return {"user_id": ["x"], "genre": ["War"], "weight": ["3"]}

    problem = missing_column(list(head()), ["user", "genre"], head)
    assert str(problem) == (
        "there is no column 'user'; the table has user_id, genre, weight; did you mean 'user_id'?"
    )
    assert "did you mean" not in str(missing_column(list(head()), ["zzz", "genre"], head))
    assert "user_id" not in str(missing_column(["user_id", "12"], ["user", "12"], head))


def test_missing_names_are_dropped_when_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,item,weight\nx,Drama,3\n,War,9\nx,,9\nx,War,1\n")
    with pytest.raises(sv.TableError, match=r"column '\w+' has 1 missing values.*--missing drop"):
        inputs.read_user_groups(path, {"all": WAR}, ask=True)
    users, how = inputs.read_user_groups(path, {"all": WAR}, dialect=Dialect(missing="drop"))
    assert users["all"].ids == ("x",)
    assert users["all"].p.toarray().tolist() == [[0.75, 0.25]]
    assert how == "weights from column 'weight'; 2 rows with a missing name dropped"
    pl.read_csv(path).write_parquet(tmp_path / "t.parquet")
    again, said = inputs.read_user_groups(
        tmp_path / "t.parquet", {"all": WAR}, dialect=Dialect(missing="drop")
    )
    assert (again["all"].p.toarray().tolist(), said) == (users["all"].p.toarray().tolist(), how)
    public = inputs.read_priors(path, dialect=Dialect(missing="drop"))
    assert public.priors["all"].probabilities.tolist() == [3 / 13, 10 / 13]
    assert "1 rows with a missing name dropped" in public.how


def test_a_pipe_is_read_like_a_file_and_leaves_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [sys.executable, "-c", f"open({str(pipe)!r}, 'w').write('item;count\\nDrama;30\\nWar;10\\n')"]
    )
    seen: list[Path] = []
    with spool.at_hand(pipe) as copy:
        seen.append(copy)
        assert copy.stat().st_mode & 0o777 == 0o600
        assert copy.parent.stat().st_mode & 0o777 == 0o700
        assert prior_of(copy) == {"Drama": 0.75, "War": 0.25}
    writer.wait()
    assert not seen[0].parent.exists()
    with pytest.raises(sv.TableError, match="there is no such file"):
        prior_of(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"item,count\na,1\n", ".csv"),
        (b' [{"item": "a"}]', ".json"),
        (b'{"item": 3,\n "b": 4}', ".json"),
        (b'{"item": 3}\n', ".json"),
        (b'{"item": "a"}\n{"item": "b"}\n', ".jsonl"),
        (b"PAR1....", ".parquet"),
        (gzip.compress(b"item\na\n", mtime=0), ".csv.gz"),
    ],
)
def test_what_a_pipe_holds_is_told_by_its_first_bytes(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "t").write_bytes(content)
    assert spool._kind(tmp_path / "t") == kind


def test_too_long_a_pipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MOST", 3)
    with (tmp_path / "long").open("wb") as file:
        file.write(b"1234")
    before = set(Path(tempfile.gettempdir()).glob("sottovoce-*"))
    with (tmp_path / "long").open("rb") as source, pytest.raises(sv.TableError, match="save it as a file"):
        spool._copy(source, tmp_path / "copy", "standard input")
    assert set(Path(tempfile.gettempdir()).glob("sottovoce-*")) <= before
