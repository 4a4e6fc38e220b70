"""design -o, release and audit as a user meets them, and fuzzed files that must not get through."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command import check_refused, check_refused_last, run, write

import sottovoce as sv
from sottovoce.release.file import ANY, load_mechanisms
from sottovoce.tables import users as users_table
from sottovoce.tables.users import ReadingOptions

PRIOR = "item,count\na,50\nb,30\nc,20\n"
USERS = "user,item,weight\nann,a,3\nann,b,1\nbob,c,2\ncy,a,1\n"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    prior = write(tmp_path, "prior.csv", PRIOR)
    write(tmp_path, "users.csv", USERS)
    done = run("design", prior, "-e", 1.5, "-s", "kernel-clip", "-o", tmp_path / "m.json")
    assert done.returncode == 0, done.stderr
    assert "certified and written" in done.stderr
    return tmp_path


def test_design_writes_the_mechanism_it_shows(made: Path) -> None:
    mechanism = sv.load(made / "m.json", policy=ANY)
    library = sv.certify(sv.kernel_clip(sv.Prior.from_counts({"a": 50, "b": 30, "c": 20}), 1.5))
    assert mechanism == library


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.json"])
def test_release_writes_one_category_per_user_that_describes_itself(made: Path, name: str) -> None:
    done = run("release", "--max-epsilon", "100", made / "m.json", made / "users.csv", "-o", made / name)
    assert done.returncode == 0, done.stderr
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".csv": pl.read_csv,
        ".parquet": pl.read_parquet,
        ".json": pl.read_json,
    }
    table = readers[Path(name).suffix](made / name)
    assert table["user"].to_list() == ["ann", "bob", "cy"]
    assert set(table["item"].to_list()) <= {"a", "b", "c"}
    assert set(table["mechanism"].to_list()) == {sv.load(made / "m.json", policy=ANY).digest}
    assert {str(value) for value in table["epsilon"].to_list()} == {"3/2"}
    assert "3 releases" in done.stderr
    assert (made / name).stat().st_mode & 0o077 == 0  # what people released is theirs to show
    assert sorted(p.name for p in made.iterdir()) == sorted(["m.json", name, "prior.csv", "users.csv"])


def test_release_in_groups_and_with_a_ledger(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count,age\na,5,old\nb,3,old\na,1,young\nb,9,young\n")
    users = write(tmp_path, "users.csv", "user,item,age\nann,a,old\nbob,b,young\nann,b,young\n")
    assert run("design", prior, "-e", 1, "--by", "age", "-o", tmp_path / "m.json").returncode == 0
    loaded = load_mechanisms(tmp_path / "m.json", policy=ANY)
    assert loaded.by == "age"
    assert set(loaded.mechanisms) == {"old", "young"}
    made = run("ledger", "create", tmp_path / "b.db", "--budget", 2)
    assert made.returncode == 0, made.stderr
    book = ["--ledger", tmp_path / "b.db", "--epoch", "may", "--by", "age", "--several-groups", "allow"]
    first = run(
        "release", "--max-epsilon", "100", tmp_path / "m.json", users, "-o", tmp_path / "1.csv", *book
    )
    assert first.returncode == 0, first.stderr
    assert "epoch 'may' is new to this ledger" in first.stderr
    assert "3 releases charged, 0 repeated" in first.stderr
    again = run(
        "release", "--max-epsilon", "100", tmp_path / "m.json", users, "-o", tmp_path / "2.csv", *book
    )
    assert again.returncode == 0, again.stderr
    assert "is new" not in again.stderr
    assert "0 releases charged, 3 repeated" in again.stderr
    assert (tmp_path / "1.csv").read_text() == (tmp_path / "2.csv").read_text()  # remembered, not drawn anew
    ledger = sv.Ledger(tmp_path / "b.db")
    assert ledger.left("ann", "may") == 0
    assert ledger.left("bob", "may") == 1
    more = run("design", prior, "-e", 1.5, "--by", "age", "-o", tmp_path / "n.json")
    assert more.returncode == 0
    done = run("release", "--max-epsilon", "100", tmp_path / "n.json", users, "-o", tmp_path / "3.csv", *book)
    check_refused_last(done, "2 of 2 users have less than they need; nobody was charged")
    assert not (tmp_path / "3.csv").exists()


def test_users_without_a_usable_record_are_left_out_where_that_is_asked_for(made: Path) -> None:
    users = write(made, "odd.csv", "user,item\nann,a\nzoe,secret\nbob,b\n")
    asked = ["release", "--max-epsilon", "100", made / "m.json", users, "-o", made / "o.csv"]
    check_refused(run(*asked, "--unknown", "error"), "1 of 3 rows do not")
    assert not (made / "o.csv").exists()
    done = run(
        "release", "--max-epsilon", "100", made / "m.json", users, "-o", made / "o.csv", "--unknown", "drop"
    )
    assert done.returncode == 0
    assert "1 users with no usable record left out" in done.stderr
    assert "zoe" not in done.stderr
    assert "zoe" not in (made / "o.csv").read_text()
    only = write(made, "none.csv", "user,item\nzoe,secret\n")
    check_refused(
        run(
            "release",
            "--max-epsilon",
            "100",
            made / "m.json",
            only,
            "-o",
            made / "p.csv",
            "--unknown",
            "drop",
        ),
        "no user has",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "{}/x.txt"], "must end in .csv, .parquet or .json"),
        (["-o", "{}/no/x.csv"], "there is no folder"),
        (["-o", "{}/x.csv", "--by", "age"], "--by needs a mechanism file made with --by"),
        (["-o", "{}/x.csv", "--max-epsilon", "1"], "has epsilon 1.5, the policy allows 1"),
        (["-o", "{}/x.csv", "--epoch", "may"], "--epoch and --exhausted need a ledger (--ledger)"),
        (["-o", "{}/x.csv", "--digest", "abc"], "64 hexadecimal digits"),
        (["-o", "{}/x.csv", "--digest", "0" * 64], "is not the expected mechanism"),
        (["-o", "{}/x.csv", "--several-groups", "yes"], "Invalid value for '--several-groups'"),
        (["-o", "{}/users.csv"], "must not be one of the inputs"),
        (["-o", "{}/x.csv", "--item", "mechanism"], "not be named epsilon or mechanism"),
        (["-o", "{}/x.csv", "--user", "item"], "must differ"),
        (["-o", "{}/x.csv", "--ledger", "{}/none.db"], "there is no ledger"),
    ],
)
def test_bad_release_options(made: Path, arguments: list[str], message: str) -> None:
    filled = [argument.format(made) for argument in arguments]
    check_refused(
        run("release", "--max-epsilon", "100", made / "m.json", made / "users.csv", *filled), message
    )
    assert not list(made.glob("x.*"))


def test_an_epsilon_is_within_itself(made: Path) -> None:
    run("design", made / "prior.csv", "-e", 0.1, "-o", made / "tenth.json")
    done = run("release", made / "tenth.json", made / "users.csv", "-o", made / "t.csv", "--max-epsilon", 0.1)
    assert done.returncode == 0, done.stderr


def test_a_mechanism_has_one_epsilon(made: Path) -> None:
    check_refused(run("design", made / "prior.csv", "-e", 1, "-e", 2, "-o", made / "z.json"), "one epsilon")


def test_changed_group_files_are_refused(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count,age\na,5,old\nb,3,old\n")
    run("design", prior, "-e", 1, "--by", "age", "-o", tmp_path / "m.json")
    plain = json.loads((tmp_path / "m.json").read_text())
    changes: list[dict[str, object]] = [
        {"by": 3}, {"groups": {}}, {"version": 9}, {"extra": 1}, {"digest": "0"}, {"by": "sex"},
    ]  # fmt: skip
    for change in changes:
        (tmp_path / "x.json").write_text(json.dumps({**plain, **change}))
        with pytest.raises(sv.errors.MechanismFileError):
            load_mechanisms(tmp_path / "x.json", policy=ANY)


def test_audit_command(made: Path) -> None:
    sure = ["--draws", 20_000, "--confidence", 0.999999]  # one false alarm in a million runs
    done = run("audit", made / "m.json", *sure)
    assert done.returncode == 0, done.stderr
    assert "no violation found" in done.stdout
    assert "holds" in done.stdout
    told = " ".join((done.stdout + done.stderr).split())
    assert "times as often as one with" in told
    assert "ε allows 4.48 times" in told  # e^1.5
    report = json.loads(run("audit", made / "m.json", *sure, "--json").stdout)[0]
    assert report["passed"] is True
    many, one = report["findings"]
    assert (many["path"], one["path"]) == ("release_many", "release")
    assert many["draws"] + one["draws"] == report["draws"] <= 20_000
    assert report["lower_bound"] <= report["epsilon"] == 1.5
    (made / "bad.json").write_text((made / "m.json").read_text().replace('"a"', '"z"', 1))
    check_refused(run("audit", made / "bad.json"), "was changed")


# --- promise 9: fuzzed tables ------------------------------------------------------------------------


def check_fuzzed(folder: Path, count: int) -> None:
    """Tables broken in every way: only declared errors, no private value in them, no partial output."""
    mechanism = sv.certify(sv.kernel_clip(sv.Prior.from_counts({"a": 5, "b": 3}), 1.0))
    rng = random.Random(9)
    good = "user,item,weight\nsecret-ann,a,3\nsecret-bob,b,1\nsecret-cy,a,2\n"
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        raw = bytearray(good.encode())
        for _ in range(rng.randint(0, 5)):
            at = rng.randrange(len(raw) + 1)
            if rng.random() < 0.4:
                raw[at : at + rng.randint(0, 9)] = b""
            else:
                raw[at:at] = bytes(rng.choices(b'"\n,;\x00\xff-1ea.NaInf', k=rng.randint(1, 6)))
        path = folder / "t.csv"
        path.write_bytes(bytes(raw))
        try:
            groups, _ = users_table.read_user_groups(
                path,
                {"all": mechanism},
                user="user",
                item="item",
                weight=None,
                by=None,
                options=ReadingOptions(empty="skip"),
            )
            released = mechanism.release_many(groups["all"].p)
            assert set(released) <= {"a", "b"}
            outcomes["released"] += 1
        except sv.errors.SottovoceError as problem:
            header = bytes(raw).decode("utf-8", "replace").split("\n")[0]
            leaked = "secret" in str(problem) and "secret" not in header
            outcomes["leaked" if leaked else type(problem).__name__] += 1
    assert outcomes["leaked"] == 0
    assert outcomes["released"] > count // 20
    assert outcomes["TableError"] > count // 20


def test_promise_9_fuzzed_tables(tmp_path: Path) -> None:
    check_fuzzed(tmp_path, 1_000)


@pytest.mark.full
def test_promise_9_a_hundred_thousand_fuzzed_tables(tmp_path: Path) -> None:
    check_fuzzed(tmp_path, 100_000)


def test_released_frequencies_follow_the_law_through_the_command(made: Path) -> None:
    n = 20_000
    table = pl.DataFrame({"user": np.arange(n).astype(str), "item": ["b"] * n})
    table.write_parquet(made / "many.parquet")
    done = run(
        "release", "--max-epsilon", "100", made / "m.json", made / "many.parquet", "-o", made / "r.parquet"
    )
    assert done.returncode == 0, done.stderr
    drawn = Counter(pl.read_parquet(made / "r.parquet")["item"].to_list())
    for category, share in zip("abc", sv.load(made / "m.json", policy=ANY).law(records=["b"]), strict=True):
        sigma = (float(share) * (1 - float(share)) / n) ** 0.5
        assert abs(drawn[category] / n - float(share)) < 6 * sigma


def test_groups_are_loaded_by_their_own_name(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count,age\na,5,old\nb,3,old\na,1,young\nb,9,young\n")
    assert run("design", prior, "-e", 1, "--by", "age", "-o", tmp_path / "m.json").returncode == 0
    with pytest.raises(sv.errors.MechanismFileError, match="load_groups"):
        sv.load(tmp_path / "m.json", policy=ANY)
    assert set(sv.load_groups(tmp_path / "m.json", policy=ANY)) == {"old", "young"}
    with pytest.raises(sv.errors.MechanismFileError, match="has epsilon 1, the policy allows"):
        sv.load_groups(tmp_path / "m.json", policy=sv.Policy(max_epsilon=0.5))


# --- --dry-run, and the share of rows that count for nothing ---


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_dry_run_says_what_would_happen_and_changes_nothing(made: Path) -> None:
    run("ledger", "create", made / "b.db", "--budget", 2)
    before = everything(made)
    ask = ["release", made / "m.json", made / "users.csv", "--ledger", made / "b.db", "-o", made / "r.csv"]
    dry = run(*ask, "--dry-run")
    assert (dry.returncode, everything(made)) == (0, before)
    assert "3 releases, one for each user and group, ε = 1.5 each; 3 releases would be charged" in dry.stdout
    assert "nobody was charged, nothing was drawn or written" in dry.stdout
    assert run(*ask).returncode == 0
    after = everything(made)
    again = run(*ask[:-2], "--dry-run")
    assert "0 releases would be charged, 3 repeated as they were" in again.stdout
    assert everything(made) == after


def test_a_dry_run_without_a_ledger_or_an_output(made: Path) -> None:
    before = everything(made)
    dry = run("release", made / "m.json", made / "users.csv", "--max-epsilon", 2, "--dry-run", "--quiet")
    assert (dry.returncode, dry.stderr, everything(made)) == (0, "", before)
    assert dry.stdout.startswith("Dry run: 3 releases")


def test_a_dry_run_is_refused_as_the_release_would_be(made: Path) -> None:
    run("ledger", "create", made / "b.db", "--budget", 1)
    before = everything(made)
    ask = ["release", made / "m.json", made / "users.csv", "--ledger", made / "b.db"]
    check_refused_last(run(*ask, "--dry-run"), "3 of 3 users have less than they need; nobody was charged")
    skipped = run(*ask, "--dry-run", "--exhausted", "skip")
    assert "0 releases would be charged, 0 repeated as they were at no cost, 3 left out" in skipped.stdout
    check_refused(run(*ask), "pass --output, where to write, or --dry-run")
    assert everything(made) == before


@pytest.mark.parametrize("output", ["book.csv", "witness.json", "m.json", "users.csv"])
def test_a_dry_run_refuses_an_output_that_would_replace_an_input(made: Path, output: str) -> None:
    """Also the ledger and its witness, whatever they are called."""
    make = ["ledger", "create", made / "book.csv", "--budget", 2, "--witness", made / "witness.json"]
    assert run(*make).returncode == 0
    before = everything(made)
    ask = ["release", made / "m.json", made / "users.csv", "--ledger", made / "book.csv", "--force"]
    for more in ([], ["--dry-run"]):
        check_refused(run(*ask, "-o", made / output, *more), "--output must not be one of the inputs")
        assert everything(made) == before


def test_a_dry_run_refuses_an_output_that_is_there_already(made: Path) -> None:
    write(made, "r.csv", "x")
    ask = [
        "release",
        made / "m.json",
        made / "users.csv",
        "--max-epsilon",
        2,
        "-o",
        made / "r.csv",
        "--dry-run",
    ]
    check_refused(run(*ask), "is there already")
    assert run(*ask, "--force").returncode == 0
    assert (made / "r.csv").read_text() == "x"


def test_a_dry_run_refuses_the_stream_whose_state_was_changed(made: Path) -> None:
    design = ["design", made / "prior.csv", "-e", 1.5, "-s", "stream", "-o", made / "s.json"]
    assert run(*design).returncode == 0
    run("ledger", "create", made / "b.db", "--budget", 2)
    ask = ["release", made / "s.json", made / "users.csv", "--ledger", made / "b.db"]
    assert run(*ask, "-o", made / "1.csv", "--epoch", "w1").returncode == 0
    with sqlite3.connect(made / "b.db") as database:
        database.execute("UPDATE streams SET state = substr(state, 1, length(state) - 9)")
    database.close()
    before = everything(made)
    dry = run(*ask, "--epoch", "w2", "--dry-run")
    check_refused_last(dry, "was changed; nothing is released")
    assert everything(made) == before
    check_refused_last(run(*ask, "-o", made / "2.csv", "--epoch", "w2"), "was changed; nothing is released")


@pytest.mark.parametrize(
    ("items", "line"),
    [
        ("abcA", "1 of 4 rows have no item of this mechanism and count for nothing.\n"),
        (
            "ABCA",
            "warning: 4 of 4 rows have no item of this mechanism and count for nothing: is --item the right",
        ),
        ("aBCAXYZUVWQ", "warning: 10 of 11 rows have no item"),
    ],
)
def test_the_share_of_unknown_rows_is_told_and_decides_nothing(made: Path, items: str, line: str) -> None:
    table = write(made, "odd.csv", "user,item\n" + "".join(f"u{i},{item}\n" for i, item in enumerate(items)))
    done = run("release", "--max-epsilon", 2, made / "m.json", table, "-o", made / "r.csv")
    assert line in done.stderr
    assert done.returncode == 0
    assert pl.read_csv(made / "r.csv")["user"].to_list() == sorted(f"u{i}" for i in range(len(items)))


def test_no_share_is_told_where_every_row_counts(made: Path) -> None:
    done = run("release", "--max-epsilon", 2, made / "m.json", made / "users.csv", "-o", made / "r.csv")
    assert "have no item" not in done.stderr
