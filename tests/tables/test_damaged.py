"""Damaged, hostile and misplaced tables: one line that shows none of their data, and a process that lives."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import check_refused, run

import sottovoce as sv
from sottovoce.tables import header, inputs, reading, unpack

HEADER = "is the first line of the table a header?"


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def parquet(user: str | None = None, **options: Any) -> bytes:
    table = pa.table({"user": ["u", user] * 20, "item": ["secret", "b"] * 20})
    buffer = io.BytesIO()
    settings = {"compression": "none", "use_dictionary": False, "write_statistics": False, **options}
    pq.write_table(table, buffer, **settings)
    return buffer.getvalue()


def aborting() -> bytes:
    """One bit of each page's number of values: 40 becomes -40, for which no memory is enough."""
    raw = parquet()
    assert raw.count(b",\x15\x50") == 2
    return raw.replace(b",\x15\x50", b",\x15\x4f")


def panicking() -> bytes:
    """A run of definition levels that is longer than the page."""
    raw = parquet()
    assert raw.count(b"\x0bUUUUU") == 1
    return raw.replace(b"\x0bUUUUU", b"\xff\xff\xff\xff\xff\x7f")


# --- readers that break down --------------------------------------------------------------------------


READ_DIRECTLY = """
import sys, polars
polars.scan_parquet(sys.argv[1]).group_by("user", "item").len().collect(engine="streaming")
"""


def test_the_samples_break_the_reader_itself(tmp_path: Path) -> None:
    """If they no longer do, the tests below prove nothing: find other samples."""
    (tmp_path / "a.parquet").write_bytes(aborting())
    assert python(READ_DIRECTLY, tmp_path / "a.parquet").returncode == -6
    (tmp_path / "p.parquet").write_bytes(panicking())
    assert "panicked" in python(READ_DIRECTLY, tmp_path / "p.parquet").stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [(aborting(), "its reader broke down, SIGABRT"), (panicking(), "PanicException")],
    ids=["abort", "panic"],
)
def test_a_damaged_parquet_file_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    done = run("prior", tmp_path / "t.parquet", "--user", "user")
    check_refused(done, f"t.parquet cannot be read as parquet: {message}")
    assert "secret" not in done.stderr


def test_the_asking_process_lives_on_and_reads_the_next_file(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(aborting())
    (tmp_path / "good.parquet").write_bytes(parquet())
    code = """
import sys, sottovoce as sv
for _ in range(2):
    try:
        sv.count_table(sys.argv[1], user="user", item="item")
    except sv.TableError as problem:
        print(problem.__context__, problem.__cause__)
print(sv.count_table(sys.argv[2], item="item"))
"""
    done = python(code, tmp_path / "bad.parquet", tmp_path / "good.parquet")
    assert done.stdout == "None None\nNone None\nTally(40 rows: 1 groups, 2 items)\n", done.stderr
    assert done.stderr == ""


FUZZ = """
import random, sys, pathlib, sottovoce as sv
raws = [path.read_bytes() for path in sorted(pathlib.Path(sys.argv[1]).glob("*.raw"))]
path = pathlib.Path(sys.argv[1]) / "t.parquet"
rng, outcomes = random.Random(int(sys.argv[3])), {"read": 0, "refused": 0}
for _ in range(int(sys.argv[2])):
    raw = bytearray(rng.choice(raws))
    footer = int.from_bytes(raw[-8:-4], "little")
    for _ in range(rng.randint(1, 3)):
        part = rng.choice([(len(raw) - 8 - footer, len(raw)), (4, 60), (4, len(raw))])
        at = rng.randrange(*part)
        raw[at : at + 1] = rng.choice([bytes([rng.randrange(256)]), bytes([raw[at] ^ 1]), b"\\xff\\xff\\x7f"])
    path.write_bytes(raw)
    try:
        sv.count_table(path, user="user", item="item")
        outcomes["read"] += 1
    except sv.SottovoceError as problem:
        outcomes["refused"] += 1
        if "secret" in f"{problem}{problem.__context__!r}{problem.__cause__!r}":
            print("leaked", problem)
print(outcomes)
"""


def check_fuzzed(folder: Path, count: int) -> None:
    for number, codec in enumerate(("none", "snappy", "gzip", "zstd", "lz4", "brotli")):
        (folder / f"{number}.raw").write_bytes(
            parquet("v", compression=codec, use_dictionary=number % 2 == 0)
        )
    done = python(FUZZ, folder, count, 1)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "leaked" not in done.stdout
    outcomes = json.loads(done.stdout.replace("'", '"'))
    assert outcomes["refused"] > count // 4, outcomes
    assert outcomes["read"] > count // 40, outcomes


def test_fuzzed_parquet_files(tmp_path: Path) -> None:
    check_fuzzed(tmp_path, 200)


@pytest.mark.full
def test_ten_thousand_fuzzed_parquet_files(tmp_path: Path) -> None:
    check_fuzzed(tmp_path, 10_000)


# --- the reader's process -----------------------------------------------------------------------------


def test_files_leave_the_asking_process_free_of_their_readers(tmp_path: Path) -> None:
    """Rust catches Ctrl-C, and arrow swallows it while it imports pandas: neither is loaded here."""
    (tmp_path / "t.csv").write_text("user,item\nu,a\n")
    code = """
import sys, sottovoce as sv
sv.count_table(sys.argv[1], user="user", item="item")
print(sorted({"polars", "pandas"} & set(sys.modules)))
"""
    done = python(code, tmp_path / "t.csv")
    assert done.stdout == "[]\n", done.stderr


def test_one_reader_serves_many_files_and_is_replaced_when_it_has_left(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item\na\n")
    names = [sv.count_table(tmp_path / "t.csv", item="item").items for _ in range(3)]
    assert names == [("a",)] * 3
    (reader,) = reading._idle
    reader._stdin.close()  # what the reader sees when nobody needs it any more
    assert reader._process.wait(timeout=10) == 0
    with open(os.devnull, "wb", buffering=0) as nowhere:
        reader._stdin = nowhere
        assert sv.count_table(tmp_path / "t.csv", item="item").items == ("a",)
    (after,) = reading._idle
    assert after is not reader


def test_a_reader_leaves_when_nobody_waits_and_is_ended_whatever_it_does(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    request = {"room": "unpack", "verb": "is_gzip", "path": str(tmp_path / "never"), "arguments": {}}
    busy = reading._Reader()
    busy.send(request)  # waits for ever: nobody writes there
    time.sleep(1)
    assert busy.running()
    busy.let_go()
    assert busy._process.wait(timeout=20) == 0
    stopped = reading._Reader()
    stopped._process.send_signal(signal.SIGSTOP)
    late = threading.Timer(20, stopped._process.kill)
    late.start()
    stopped.end()
    assert late.is_alive()
    late.cancel()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_reader_has_a_limit_of_memory_and_leaves_no_image_of_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item\na\n")
    sv.count_table(tmp_path / "t.csv", item="item")
    limits = Path(f"/proc/{reading._idle[0]._process.pid}/limits").read_text().splitlines()
    soft = {line[:26].strip(): line[26:].split()[0] for line in limits[1:]}
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert soft["Max core file size"] == "0"
    assert 1 << 30 <= int(soft["Max data size"]) <= max(machine, 1 << 30)


def test_a_forked_process_has_a_reader_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item\na\n")
    code = """
import os, sys, sottovoce as sv
from sottovoce.tables import reading
sv.count_table(sys.argv[1], item="item")
first = reading._idle[0]._process.pid
if not os.fork():
    sv.count_table(sys.argv[1], item="item")
    os._exit(7 if reading._idle[0]._process.pid != first else 8)
print(os.waitstatus_to_exitcode(os.wait()[1]), reading._idle[0]._process.pid == first)
print(sv.count_table(sys.argv[1], item="item"))
"""
    done = python(code, tmp_path / "t.csv")
    assert done.stdout == "7 True\nTally(1 rows: 1 groups, 1 items)\n", done.stderr


def test_paths_are_told_as_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("item,item\na,b\n")
    sub = tmp_path / "sub"
    sub.mkdir()
    for folder, given in ((tmp_path, "t.csv"), (sub, "../t.csv")):  # the reader started somewhere else
        monkeypatch.chdir(folder)
        with pytest.raises(sv.TableError) as caught:
            sv.count_table(given, item="item")
        assert str(caught.value).startswith(f"{given} cannot be read")


def test_a_folder_of_lookalikes_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "polars.py").write_text("raise SystemExit(9)")
    (tmp_path / "t.csv").write_text("item,count\na,3\nb,1\n")
    command = [sys.executable, "-P", "-m", "sottovoce", "prior", "t.csv", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


# --- names that may be data ---------------------------------------------------------------------------


def every_library(columns: dict[str, list[Any]]) -> list[Any]:
    frame = pd.DataFrame(columns)
    relation = duckdb.connect().from_df(frame)
    return [pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns), frame, relation]


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("person,item\nann,a\n", {"user": "user", "item": "item"}, True),
        ("thing,count\na,1\nb,2\n", {"item": "item"}, True),
        ("Secret,Flu\nBob,Cold\n", {"item": "item"}, False),  # no header: nothing tells that they are names
        ("Secret,3\nBob,4\n", {"item": "item"}, False),
        ("Secret,Flu\nSecret,item\n", {"item": "item"}, False),
        ("item,Secret\nuser,Bob\n", {"item": "item", "user": "user"}, False),  # transposed
        ("user,Secret\nitem,Flu\n", {"item": "item", "user": "user"}, False),
        ("item,Secret\na,Secret\n", {"item": "item", "user": "user"}, False),
        ("item,Secret\na,secret \n", {"item": "item", "user": "user"}, False),
        ("item,Secret\n", {"item": "item", "user": "user"}, False),
        ("item," + "Secret" * 6 + "\na,b\n", {"item": "item", "user": "user"}, False),
        ("item,Se\x07cret\na,b\n", {"item": "item", "user": "user"}, False),
        (",".join(["item", *(f"Secret {i}" for i in range(20))]) + "\n" + "x," * 20 + "x\n",
         {"item": "item", "user": "user"}, False),
        (",".join(["item", *(f"Secret {i:020}" for i in range(9))]) + "\n" + "x," * 9 + "x\n",
         {"item": "item", "user": "user"}, False),
    ],
)  # fmt: skip
def test_a_header_is_listed_only_if_it_is_one(
    tmp_path: Path, text: str, columns: dict[str, Any], shown: bool
) -> None:
    (tmp_path / "t.csv").write_text(text)
    rows = [line.split(",") for line in text.splitlines()]
    table = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
    for given in (tmp_path / "t.csv", *every_library(table)):
        with pytest.raises(sv.TableError, match="there is no column") as caught:
            sv.count_table(given, **columns)
        message = str(caught.value)
        assert (HEADER in message) != shown, (type(given), message)
        assert (f"the table has {rows[0][0]}" in message) == shown
        assert "secret" not in message.lower()
        assert caught.value.__context__ is None


def test_a_name_far_below_is_found_and_a_head_that_fails_shows_nothing(tmp_path: Path) -> None:
    lines = ["item,Secret", *["a,b"] * (header.ROWS - 1), "Secret,b"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(sv.TableError, match=r"a header\?$"):
        sv.count_table(tmp_path / "t.csv", item="item", user="user")

    def panics() -> Any:
        raise type("Panic", (BaseException,), {})("Secret")

    problem = header.missing_column(["item", "Secret"], ["item", "user"], panics)
    assert problem is not None
    assert HEADER in str(problem)
    (tmp_path / "ragged.csv").write_text("item,Secret\na,b,c\n")
    with pytest.raises(sv.TableError, match=r"a header\?$"):
        sv.count_table(tmp_path / "ragged.csv", item="item", user="user")


def test_commands_show_no_row_of_a_table_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("Secret Ann,Diabetes\nBob,Flu\nCy,Flu\n")
    (tmp_path / "prior.csv").write_text("item,count\na,1\nb,1\n")
    for arguments in (["prior"], ["compare", tmp_path / "prior.csv"], ["design"]):
        more = [] if arguments[0] == "prior" else ["-e", 1]
        done = run(*arguments, tmp_path / "people.csv", *more)
        check_refused(done, HEADER)
        assert "Secret" not in done.stderr
        assert "Diabetes" not in done.stderr


def test_a_wide_file_does_not_name_its_columns(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text('[{"user": "u", "Secret": true, "b": 1}]')
    with pytest.raises(sv.TableError, match="every category column must hold numbers") as caught:
        inputs.read_user_groups(tmp_path / "w.json", {"all": sv.Prior(["a"], [1.0])}, wide=True)
    assert "Secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b'{"Secret": ', b'{"Secret": "\xff"}', b"[" * 100_000])
def test_a_damaged_document_does_not_hang_on_its_error(tmp_path: Path, content: bytes) -> None:
    """A decoding error carries the whole document; what logs errors with their context would print it."""
    (tmp_path / "d.json").write_bytes(content)
    with pytest.raises(sv.TableError, match="cannot be read as json") as caught:
        inputs.read_priors(tmp_path / "d.json")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


# --- gzip and absurd sizes ----------------------------------------------------------------------------


def bomb(head: bytes, line: bytes, size: int = unpack.LEAST) -> bytes:
    block = gzip.compress(line * ((1 << 24) // len(line)))  # members of their own: quick to make
    return gzip.compress(head) + block * (size // (1 << 24) + 2)


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("t.csv.gz", b"item,count\n", b"a,1\n"),
        ("t.tsv.gz", b"item\tcount\n", b"a\t1\n"),
        ("t.json.gz", b'{"a": 1', b" "),
        ("t.json", b'{"a": 1', b" "),
        ("t.jsonl.gz", b"", b'{"item": "a"}\n'),
    ],
)
def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, name: str, head: bytes, line: bytes) -> None:
    (tmp_path / name).write_bytes(bomb(head, line))
    check_refused(run("prior", tmp_path / name), f"{name} unpacks to more than 256 MiB: refused")


def test_a_document_is_refused_before_the_memory_is_used(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(bomb(b'{"a": 1', b" ", 4 * unpack.LEAST))
    code = """
import resource, sys, pathlib
from sottovoce import errors
from sottovoce.tables import unpack
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    unpack.content(pathlib.Path(sys.argv[1]))
except errors.TableError:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""
    done = python(code, tmp_path / "t.json")
    assert int(done.stdout) < 2 * unpack.LEAST, done.stderr


def test_the_limit_follows_the_size_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "LEAST", 1000)
    noise = random.Random(1).randbytes(20_000)
    (tmp_path / "ok.gz").write_bytes(gzip.compress(noise + b" " * 3_000_000))
    unpack.check_unpacked(tmp_path / "ok.gz")
    assert len(unpack.content(tmp_path / "ok.gz")) == 3_020_000
    (tmp_path / "no.gz").write_bytes(gzip.compress(noise + b" " * 6_000_000))
    for refuse in (unpack.check_unpacked, unpack.content):
        with pytest.raises(sv.TableError, match="unpacks to more than"):
            refuse(tmp_path / "no.gz")
    changed = gzip.compress(noise)
    (tmp_path / "no.gz").write_bytes(changed)  # another file under the name: checked anew
    unpack.check_unpacked(tmp_path / "no.gz")


@pytest.mark.parametrize("kind", [".csv", ".json", ".jsonl"])
def test_gzip_in_several_members_cut_off_or_followed_by_something(tmp_path: Path, kind: str) -> None:
    text = {
        ".csv": b"item,count\na,3\nb,1\n",
        ".json": b'[{"item": "a", "count": 3}, {"item": "b", "count": 1}]',
        ".jsonl": b'{"item": "a", "count": 3}\n{"item": "b", "count": 1}\n',
    }[kind]
    for name in (f"t{kind}.gz", f"t{kind}"):  # the name does not decide
        path = tmp_path / name
        path.write_bytes(gzip.compress(text[:16]) + gzip.compress(text[16:]))
        assert inputs.read_priors(path).priors["all"].probabilities.tolist() == [0.75, 0.25]
        whole = gzip.compress(text)
        flipped = whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]
        for content in (whole[:-3], whole[: len(whole) // 2], whole + b"Secret", flipped):
            path.write_bytes(content)
            with pytest.raises(sv.TableError, match="cannot be read as") as caught:
                inputs.read_priors(path)
            assert "\n" not in str(caught.value)
            assert caught.value.__context__ is None


def test_unpacking_in_steps_gives_every_byte(tmp_path: Path) -> None:
    rng = random.Random(2)
    for size in (0, 1, unpack._STEP - 1, unpack._STEP, unpack._STEP + 1, 3 * unpack._STEP):
        text = rng.randbytes(size // 2) + b"x" * (size - size // 2)
        (tmp_path / "t.gz").write_bytes(gzip.compress(text) + gzip.compress(text[::-1]))
        assert unpack.content(tmp_path / "t.gz") == text + text[::-1]


def test_an_endless_first_line_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"Secret" * (1 << 19))
    check_refused(run("prior", tmp_path / "t.csv"), "its first line is too long for a header")
    (tmp_path / "t.csv").write_bytes(b'item,"' + b"Secret\n" * (1 << 19))
    done = run("prior", tmp_path / "t.csv")
    assert done.returncode == 2
    assert "Secret" not in done.stderr


def test_the_reader_runs_out_of_memory_and_not_the_machine(tmp_path: Path) -> None:
    """A file that needs more than there is ends its reader; here the limit is lowered to show it."""
    (tmp_path / "t.csv").write_text("user,item\n" + "".join(f"user {i},item {i}\n" for i in range(1_500_000)))
    code = """
import resource, sys, sottovoce as sv
sv.count_table
resource.setrlimit(resource.RLIMIT_DATA, (256 << 20, 256 << 20))
try:
    sv.count_table(sys.argv[1], user="user", item="item")
except sv.TableError as problem:
    print(str(problem).rsplit("/", 1)[-1])
"""
    done = python(code, tmp_path / "t.csv")
    assert done.stdout.startswith("t.csv cannot be read as csv: its reader broke down, SIG"), done
    assert done.stdout.endswith(": a damaged file, or too little memory\n")
    assert "memory allocation" not in done.stderr


def test_a_reader_is_kept_although_the_asking_process_is_large(tmp_path: Path) -> None:
    """What counts is the reader's own memory, not what its parent held when it started it."""
    (tmp_path / "t.csv").write_text("item\na\n")
    code = """
import sys, time, numpy as np, sottovoce as sv
from sottovoce.tables import reading
held = np.ones(100_000_000)
sv.count_table(sys.argv[1], item="item")
time.sleep(0.5)
print([reader.running() for reader in reading._idle])
"""
    done = python(code, tmp_path / "t.csv")
    assert done.stdout.split() == ["[True]"], done.stderr
