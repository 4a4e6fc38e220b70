"""Tables of every kind, prior files and reports: counted as Python's own reader counts them, or refused.

The first line of an input gives its kind and the requested columns; the rest is the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sottovoce as sv
from sottovoce.collecting.model import model_of
from sottovoce.collecting.reports import read_reports
from sottovoce.tables import reader
from sottovoce.tables.priors import read_priors, write_priors

from .mutate import bytes_mutated, json_mutated
from .patches import damaged
from .patches import mutated as patched
from .target import Target, folder, holds, refusals, written

KINDS = {"csv", "tsv", "json", "jsonl", "ndjson"}
OPTIONS = {"user", "weight", "by"}
PRIOR = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2])
MECHANISM = sv.certify(sv.kernel_clip(PRIOR, 1.0))


def check_table(data: bytes) -> bool:
    """Count a table, make a prior and users of it, and count it with the csv module where it is plain."""
    head, _, rest = data.partition(b"\n")
    kind, *options = head.decode("latin-1").split() or ["csv"]
    packed = kind.endswith(".gz")
    plain = kind.removesuffix(".gz") if kind.removesuffix(".gz") in KINDS else "csv"
    content = gzip.compress(rest, mtime=0) if packed and "torn" not in options else rest
    path = written(f"t.{plain}.gz" if packed else f"t.{plain}", content)
    columns: dict[str, Any] = {name: name for name in options if name in OPTIONS}
    tally = None
    with refusals():
        tally = reader.count_table(path, reader.Columns("item", **columns))
        expected = _by_hand(rest, plain, columns) if "torn" not in options else None
        if expected is not None:
            found = {str(tally.items[i]): 0.0 for i in tally.item}
            for i, rows in zip(tally.item.tolist(), tally.rows.tolist(), strict=True):
                found[str(tally.items[i])] += rows
            holds(found == expected, f"counted as {found}, and by the csv module as {expected}")
        prior = sv.build_prior(path, item="item", smoothing=0.5, **columns)
        for one in prior.values() if isinstance(prior, dict) else [prior]:
            _check_prior(one)
        if "user" in columns:
            known = prior if isinstance(prior, dict) else PRIOR
            named: dict[str, Any] = {"item": "item", **columns, "several_groups": "allow"}
            users = sv.read_users(path, prior=known, unknown="drop", empty="skip", **named)
            for group in users.values() if isinstance(users, dict) else [users]:
                sums: Any = np.asarray(group.p.sum(axis=1))
                holds(bool(np.all(np.abs(sums - 1) < 1e-9)), "a user's shares do not add up to one")
    return tally is not None


def _by_hand(content: bytes, kind: str, columns: dict[str, Any]) -> dict[str, float] | None:
    """Rows of every item of a CSV file that leaves no question open; None for any other file."""
    if kind not in ("csv", "tsv") or "weight" in columns:
        return None
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError:
        return None
    strange = any(c == '"' or not (c.isprintable() or c in "\n\t") for c in text)
    if strange or "\n\n" in text:
        return None
    rows = list(csv.reader(io.StringIO(text), delimiter="," if kind == "csv" else "\t"))
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows) or len(rows[0]) < 2:
        return None
    if "item" not in rows[0] or any(not cell or cell != cell.strip() for row in rows for cell in row):
        return None
    at = rows[0].index("item")
    return {name: float(count) for name, count in Counter(row[at] for row in rows[1:]).items()}


def _check_prior(prior: sv.Prior) -> None:
    p = prior.probabilities
    holds(bool(np.all(p > 0)) and abs(float(p.sum()) - 1) < 1e-9, "a prior is no distribution")
    holds(len(set(prior.categories)) == len(prior), "a prior names a category twice")


def check_prior(data: bytes) -> bool:
    """Read a file of public data in JSON; what is accepted is written and read again, the same."""
    public = None
    with refusals():
        public = read_priors(written("prior.json", data))
        for prior in public.priors.values():
            _check_prior(prior)
    if public is None:
        return False
    again = folder() / "again.prior.json"
    write_priors(public, again)
    read = read_priors(again)
    holds(set(read.priors) == set(public.priors), "a written prior has other groups")
    for name, prior in public.priors.items():
        same = prior.categories == read.priors[name].categories
        holds(same and np.allclose(prior.probabilities, read.priors[name].probabilities), "another prior")
    return True


def check_reports(data: bytes) -> bool:
    """Count a table of reports against the mechanism they claim to come from."""
    counts = None
    with refusals():
        counts, _ = read_reports(written("reports.csv", data), model_of(MECHANISM))
    if counts is None:
        return False
    found = counts["all"]
    holds(bool(np.all(np.isfinite(found)) and np.all(found >= 0)), "reports are counted below zero")
    expected = _by_hand(data, "csv", {"weight": "count"} if b"count" in data else {})
    if expected is not None:
        named = dict(zip(MECHANISM.categories, found.tolist(), strict=True))
        holds({k: v for k, v in named.items() if v} == expected, "reports are counted in another way")
    return True


def check_parquet(data: bytes) -> bool:
    """Count a damaged Parquet file in the reader's process; the first line chooses the file."""
    first, *lines = data.decode("latin-1").split("\n")
    sound = _sound_parquet()
    tally = None
    with refusals():
        path = written("t.parquet", damaged(sound[len(first) % len(sound)], lines))
        tally = reader.count_table(path, reader.Columns("item", "user"))
    return tally is not None


HEADS = ["csv", "csv user", "csv user weight", "csv user by", "tsv user", "json", "json user", "jsonl user"]
HEADS += ["jsonl user weight", "csv.gz user", "csv.gz torn", "json.gz", "ndjson by", "csv by weight"]


def mutated_table(data: bytes, rng: random.Random) -> bytes:
    """Another first line, or another file below it."""
    head, _, rest = data.partition(b"\n")
    if rng.random() < 0.15:
        head = rng.choice(HEADS).encode()
    change = json_mutated if head.startswith((b"json", b"ndjson")) and rng.random() < 0.6 else bytes_mutated
    return head + b"\n" + change(rest, rng)


def table_seeds() -> Sequence[bytes]:
    """A small table in every kind."""
    rows = [("u1", "a", "x", 1.5), ("u1", "b", "x", 2), ("u2", "a", "y", 1), ("u3", "c", "y", 0.5)]
    names = ("user", "item", "by", "weight")
    made = []
    for head in HEADS:
        kind = head.split()[0].removesuffix(".gz")
        if kind in ("csv", "tsv"):
            cut = "," if kind == "csv" else "\t"
            text = "\n".join(cut.join(map(str, row)) for row in [names, *rows]) + "\n"
        else:
            records = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
            text = f"[{','.join(records)}]" if kind == "json" else "\n".join(records) + "\n"
        content = gzip.compress(text.encode(), mtime=0) if "torn" in head else text.encode()
        made.append(head.encode() + b"\n" + content)
    return [*made, b'csv\nitem,"q"\n"a ""b"" c",1\n"two\nlines",2\n', b"csv user\r\nuser;item\r\n\xe9;a\r\n"]


def prior_seeds() -> Sequence[bytes]:
    """Every form of public data in JSON."""
    ready = {"categories": ["a", "b"], "probabilities": [0.4, 0.6]}
    file: dict[str, Any] = {"format": "sottovoce-prior", "version": 1, "provenance": "public", "how": "x"}
    return [
        json.dumps(plain).encode()
        for plain in (
            {"a": 3, "b": 1},
            [{"item": "a", "count": 3}, {"item": "b", "count": 1}],
            [{"item": "a", "probability": 0.25}, {"item": "b", "probability": 0.75}],
            {**file, "by": None, "groups": {"all": ready}},
            {**file, "by": "region", "groups": {"north": ready, "south": ready}},
        )
    ]


def report_seeds() -> Sequence[bytes]:
    """Reports as `release` writes them, added up, and bare."""
    digest = MECHANISM.digest
    lines = [f"u{i},{name},1.0,{digest}" for i, name in enumerate("abcab")]
    return [
        ("user,item,epsilon,mechanism\n" + "\n".join(lines) + "\n").encode(),
        b"item,count\na,3\nb,2\nc,0\n",
        b"item\na\nb\n",
    ]


@cache
def _sound_parquet() -> list[bytes]:
    """Small files with and without dictionary, statistics and compression."""
    table = pa.table({"user": ["u", "v"] * 4, "item": ["a", "b"] * 4, "n": list(range(8))})
    made = []
    for options in ({"compression": "none", "use_dictionary": False}, {"compression": "snappy"}, {}):
        buffer = io.BytesIO()
        pq.write_table(table, buffer, **options)
        made.append(buffer.getvalue())
    return made


def parquet_seeds() -> Sequence[bytes]:
    """Each of the files, and damage here and there."""
    return [b"", b"x", b"xx", b"\n40 ff", b"x\n400 7fffffff", b"xx\n10 cut 1", b"\n700 end"]


TEXTS = ("tables/files.py", "tables/frames.py", "tables/cells.py", "tables/tally.py", "tables/read.py")
TARGETS = (
    Target(
        "tables", check_table, table_seeds, mutated_table, (*TEXTS, "tables/unpack.py", "tables/header.py")
    ),
    Target("priors", check_prior, prior_seeds, json_mutated, ("tables/inputs.py", "prior.py")),
    Target("reports", check_reports, report_seeds, bytes_mutated, ("collecting/reports.py",)),
    Target(
        "parquet",
        check_parquet,
        parquet_seeds,
        patched,
        ("tables/reading.py", "tables/frames.py"),
        longest=400,
        everyday=20,
    ),
)
