"""What an operator asks a collector: description, health, metrics, export, keys, several files, a backup."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn")
from collector import (
    JSON,
    PRIOR,
    Answer,
    Collector,
    Running,
    batch,
    check_described,
    collecting,
    report,
    rows_of,
    write_groups,
    write_mechanism,
)
from command import check_refused, run

import sottovoce as sv
from sottovoce.collecting.store import create_store, export
from sottovoce.release.file import ANY, load_mechanisms
from sottovoce.serving import app, server
from sottovoce.serving.batches import read_served
from sottovoce.serving.operations import OPERATIONS

KEY, READ_KEY = "k" * 32, "r" * 32
MIX = [0.1, 0.2, 0.3, 0.2, 0.2]


def bearer(key: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {key}")]


def keys(folder: Path) -> dict[str, frozenset[bytes]]:
    for name, key in (("reports", KEY), ("read", READ_KEY)):
        (folder / f"{name}.keys").write_text(f"{'x' * 40}\n\n{key}\n")
    return {name: app.read_keys(folder / f"{name}.keys") for name in ("reports", "read")}


def other_mechanism(folder: Path, epsilon: float = 3.0) -> Path:
    sv.certify(sv.minimax_kernel(PRIOR, epsilon)).save(folder / "other.json")
    return folder / "other.json"


def rows_of_json(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_answer_is_described_and_every_described_answer_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other test compares its answers too; here each status of each operation comes once."""
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    with Collector(path, store, keys=keys(tmp_path)) as collector:
        one = report(collector.digest)
        key, strange = [*JSON, *bearer(KEY)], [*JSON, *bearer(KEY), ("content-encoding", "gzip")]

        def post(body: bytes | list[bytes], headers: Any = key, end: str = "whole") -> None:
            collector.ask("POST", "/v1/reports", headers, body, end)

        post(batch([one]))
        post(batch([{**one, "category": "Drama"}]))
        for body in (b"{", batch([{**one, "mechanism": "0"}]), bytes(1 << 21)):
            post(body)
        post(b"", strange)
        with monkeypatch.context() as patched:
            patched.setattr(app, "SECONDS_FOR_A_BODY", 0.01)
            post(batch([one]), end="silent")
        tag = collector.ask("GET", "/v1/mechanism").headers["etag"]
        collector.ask("GET", "/v1/mechanism", [("if-none-match", tag)])
        read = bearer(READ_KEY)
        for operation in OPERATIONS:
            collector.ask(operation.method, operation.path, read)
            collector.ask(operation.method, operation.path, [("host", "evil.test")])
            collector.ask(operation.method, operation.path)
            if operation.query:
                collector.ask("GET", f"{operation.path}?digest=0", read)
        seen, description = collector.seen, collector.description()
        for operation in OPERATIONS:
            assert operation.path in description["paths"]
    with monkeypatch.context() as patched:  # every operation fails

        async def fails(*_: object) -> None:
            raise ZeroDivisionError

        for operation in OPERATIONS:
            if operation.name != "openapi":
                patched.setattr(app._Answers, operation.name, fails)
        with Collector(path, store, keys=keys(tmp_path)) as failing:
            for operation in OPERATIONS:
                mine = KEY if operation.method == "POST" else READ_KEY
                failing.ask(operation.method, operation.path, bearer(mine))
            seen |= failing.seen
    seen |= _answers_without_a_free_connection(tmp_path, monkeypatch, description)
    described = {
        (method, path, status)
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
        for status in operation["responses"]
    }
    assert {one for one in described if one[1] != "/openapi.json"} == {
        one for one in seen if one[1] != "/openapi.json"
    }


def _answers_without_a_free_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, description: Any
) -> set[tuple[str, str, str]]:
    """What a collector that has all its connections answers: 503."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    full = server.server_of(app.Settings(store=tmp_path / "full.db"), [read_served(tmp_path / "m.json")])
    seen = set()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=full.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            port = listener.getsockname()[1]
            for operation in OPERATIONS:
                status, body = Running(None, port).ask(operation.method, operation.path)  # type: ignore[arg-type]
                answer = Answer(status, {"content-type": "text/plain"}, body)
                seen |= check_described(description, operation.method.lower(), operation.path, answer)
        finally:
            full.should_exit = True
            thread.join()
    return seen


def test_health_is_whether_the_store_takes_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.collecting.store.PATIENCE", 0.0)
    store = tmp_path / "r.db"
    with Collector(write_mechanism(tmp_path), store, page=False) as collector:
        assert collector.ask("GET", "/healthz").body == b"ok\n"
        store.rename(tmp_path / "moved.db")
        gone = collector.ask("GET", "/healthz")
        assert (gone.status, gone.body.startswith(b"the store takes no writes")) == (503, True)
        assert str(tmp_path).encode() not in gone.body
        assert "removed or replaced" in collector.said[0]
        (tmp_path / "moved.db").rename(store)
        assert collector.ask("GET", "/healthz").status == 200
        other = sqlite3.connect(store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert collector.ask("GET", "/healthz").status == 503
        other.execute("ROLLBACK")
        other.close()
        assert collector.ask("GET", "/healthz").status == 200
        log = (tmp_path / "r.db-wal").stat().st_size
        assert collector.ask("GET", "/healthz").status == 200
        assert (
            tmp_path / "r.db-wal"
        ).stat().st_size > log  # something was written, and none of it is a report
        assert rows_of(store) == set()


def test_metrics_count_what_was_answered_and_name_nobody(tmp_path: Path) -> None:
    path = write_groups(tmp_path)
    with Collector(path, tmp_path / "r.db") as collector:
        old, young = (collector.served.digests[name] for name in ("old", "young"))
        reports = [report(old), report(young), report(young, "Comedy")]
        collector.post(reports)
        collector.post(reports[:2])
        collector.post([report(old, "unheard")])
        collector.post_body(b"{")
        text = collector.ask("GET", "/metrics").body.decode()
    values = dict(re.findall(r"^(sottovoce_\w+(?:\{\w+=\"[^\"]*\"\})?) (\S+)$", text, re.MULTILINE))
    assert len(values) == sum(not line.startswith("#") for line in text.splitlines())
    assert values['sottovoce_reports_total{result="new"}'] == "3"
    assert values['sottovoce_reports_total{result="repeated"}'] == "2"
    for status, times in (("202", "2"), ("422", "1"), ("400", "1")):
        assert values[f'sottovoce_batches_total{{status="{status}"}}'] == times
    assert (
        values["sottovoce_batch_seconds_count"] == values['sottovoce_batch_seconds_bucket{le="+Inf"}'] == "4"
    )
    assert values[f'sottovoce_stored_reports{{mechanism="{collector.served.digest[:12]}"}}'] == "3"
    sent = sum(len(batch(one)) for one in (reports, reports[:2], [report(old, "unheard")])) + 1
    assert values["sottovoce_batch_bytes_total"] == str(sent)
    assert int(values["sottovoce_store_bytes"]) >= (tmp_path / "r.db").stat().st_size
    for private in ("War", "Comedy", "unheard", "young", str(reports[0]["id"]), "192.0.2.77"):
        assert private not in text


ODD = ["", " a", 'b"b', "c,c", "d\nd", "NULL", "1", "é 能"]


def test_an_export_tells_an_estimate_the_same_as_the_store(tmp_path: Path) -> None:
    prior = sv.Prior(ODD, [0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    mechanism = sv.certify(sv.minimax_kernel(prior, 2.0))
    path, store = tmp_path / "m.json", tmp_path / "r.db"
    mechanism.save(path)
    other = other_mechanism(tmp_path)
    released = mechanism.release_many(np.tile(prior.probabilities, (700, 1)))
    with Collector(path, store, other) as collector:
        assert collector.post([report(mechanism.digest, name) for name in released]).status == 202
        digest = read_served(other).digest
        assert collector.post([report(digest) for _ in range(9)]).status == 202
        answer = collector.ask("GET", f"/v1/export?digest={mechanism.digest}")
        assert answer.headers["content-type"].startswith("text/csv")
        (tmp_path / "http.csv").write_bytes(answer.body)
        assert len(collector.ask("GET", f"/v1/export?digest={digest}").body.splitlines()) == 10
        for name in ("r.csv", "r.parquet", "r.json"):
            done = run("collect", "export", path, store, "-o", tmp_path / name)
            assert (done.returncode, "700 reports written" in done.stderr) == (0, True), done.stderr
        live = rows_of_json(run("estimate", path, store, "--json"))
        for name in ("http.csv", "r.csv", "r.parquet"):
            assert rows_of_json(run("estimate", path, tmp_path / name, "--json")) == live
    check_refused(run("collect", "export", path, store, "-o", tmp_path / "r.csv"), "is there already")
    write_groups(tmp_path)
    refused = run("collect", "export", tmp_path / "groups.json", store, "-o", tmp_path / "g.csv")
    check_refused(refused, "another mechanism file")


def test_an_export_of_groups(tmp_path: Path) -> None:
    path, store = write_groups(tmp_path, twins=True), tmp_path / "r.db"
    with Collector(path, store) as collector:
        digests = collector.served.digests
        given = [("old", "War"), ("older", "War"), ("young", "Drama"), ("old", "🎬")] * 20
        reports = [report(digests[group], name, group=group) for group, name in given]
        assert collector.post(reports).status == 202
        body = collector.ask("GET", "/v1/export").body.decode()
        assert sorted(line.split(",")[0].strip('"') for line in body.splitlines()[1:]) == sorted(
            str(one["id"]) for one in reports
        )
        assert body.startswith('"id","age","item","epsilon","mechanism"\n')
        old = collector.ask("GET", "/v1/export?group=old").body.decode()
        assert len(old.splitlines()) == 41
        assert all(',"old",' in line for line in old.splitlines()[1:])
        assert collector.ask("GET", "/v1/export?group=none").status == 404
        (tmp_path / "r.csv").write_text(body)
        assert rows_of_json(run("estimate", path, tmp_path / "r.csv", "--json")) == rows_of_json(
            run("estimate", path, store, "--json")
        )


def test_an_export_holds_no_transaction_while_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow reader keeps the log of the store neither from being taken in nor from being emptied."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(app, "PIECE", 1024)
    store, answers = tmp_path / "r.db", []
    with Collector(write_mechanism(tmp_path), store) as collector:
        reports = [report(collector.digest) for _ in range(500)]
        assert collector.post(reports).status == 202

        def while_it_is_sent(message: Any) -> None:
            other = sqlite3.connect(store, isolation_level=None, timeout=0)
            other.execute("INSERT INTO reports VALUES (?, 1, 0)", (os.urandom(16),))
            answers.append(other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            other.close()
            assert (tmp_path / "r.db-wal").stat().st_size == 0
            assert (
                list((tmp_path / "temporary").iterdir()) == []
            )  # a file without a name, gone with its process

        body = collector.ask("GET", "/v1/export", each=while_it_is_sent).body
    assert len(answers) > 20
    assert set(answers) == {0}  # never busy
    ids = [line.split(",")[0].strip('"') for line in body.decode().splitlines()[1:]]
    assert ids == sorted(str(one["id"]) for one in reports)  # of one moment, in the order of the random ids


def test_an_export_is_ordered_by_ids_whatever_the_order_of_arrival(tmp_path: Path) -> None:
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    with Collector(path, store) as collector:
        reports = sorted((report(collector.digest) for _ in range(300)), key=lambda one: str(one["id"]))
        for one in (reports[200:], reports[:100], reports[100:200]):
            assert collector.post(one[::-1]).status == 202
        database = sqlite3.connect(store)  # an index in which SQLite might rather look
        database.execute("CREATE INDEX other ON reports (mechanism, category, id DESC)")
        database.close()
        lines = collector.ask("GET", "/v1/export").body.decode().splitlines()[1:]
    parts = list(export(store, load_mechanisms(path, policy=ANY).mechanisms))[1:]
    assert [line.split(",")[0].strip('"') for line in lines] == [one["id"] for one in reports]
    assert [row[0] for part in parts for row in part] == [one["id"] for one in reports]


def test_few_exports_are_sent_at_once_and_each_gives_its_place_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_EXPORTS", 1)
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    with Collector(path, store) as collector:
        assert collector.ask("GET", "/v1/export").status == 200
        with monkeypatch.context() as patched:
            patched.setattr(app, "export", lambda *_: iter([(1 / 0,)]))
            assert collector.ask("GET", "/v1/export").status == 500
        with suppress(IndexError):  # it may be gone before the head is sent
            collector.ask("GET", "/v1/export", end="cut")
        assert collector.ask("GET", "/v1/export").status == 200
    monkeypatch.setattr(app, "MOST_EXPORTS", 0)
    with Collector(path, store) as collector:
        refused = collector.ask("GET", "/v1/export")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")


def test_a_key_is_asked_for_and_each_kind_opens_its_own(tmp_path: Path) -> None:
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db", keys=keys(tmp_path)) as collector:
        one = batch([report(collector.digest)])
        for wrong in (
            [],
            bearer("x" * 39),
            bearer(READ_KEY),
            [("authorization", f"Basic {KEY}")],
            bearer("é"),
        ):
            answer = collector.ask("POST", "/v1/reports", [*JSON, *wrong], one)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert "key" in json.loads(answer.body)["error"]
            assert rows_of(collector.store) == set()
        for right in (bearer(KEY), bearer("x" * 40), [("authorization", f"bearer  {KEY}")]):
            assert collector.ask("POST", "/v1/reports", [*JSON, *right], one).status == 202
        for path in ("/v1/estimate", "/v1/export", "/metrics"):
            assert collector.ask("GET", path).status == 401
            assert collector.ask("GET", path, bearer(KEY)).status == 401
            assert collector.ask("GET", path, bearer(READ_KEY)).status == 200
        for path in ("/", "/healthz", "/v1/mechanism", "/openapi.json"):
            assert collector.ask("GET", path).status == 200
        assert 'status="401"} 5' in collector.ask("GET", "/metrics", bearer(READ_KEY)).body.decode()


def test_a_browser_may_ask_to_send_its_key(tmp_path: Path) -> None:
    origin = ("origin", "https://a.example")
    settings: Any = {"origins": frozenset({origin[1]}), "keys": keys(tmp_path)}
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db", **settings) as collector:
        asked = [("access-control-request-method", "POST")]
        asked += [("access-control-request-headers", "authorization,content-type")]
        answer = collector.ask("OPTIONS", "/v1/reports", [origin, *asked])
        assert answer.status == 200
        assert "authorization" in answer.headers["access-control-allow-headers"].lower()
        for path in ("/v1/export", "/v1/estimate", "/metrics"):  # a site may send, not read
            assert "access-control-allow-origin" not in collector.ask("GET", path, [origin]).headers
        refused = collector.ask("POST", "/v1/reports", [origin, *JSON], batch([report(collector.digest)]))
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, origin[1])


@pytest.mark.parametrize("text", ["", "\n\n", "short", "with a space in the middle", "ключ" * 10, "a" * 201])
def test_a_file_of_bad_keys_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    write_mechanism(tmp_path)
    (tmp_path / "k").write_text(text)
    done = run("collect", "serve", "m.json", "--store", "r.db", "--key-file", "k", cwd=tmp_path)
    check_refused(done, "k must hold one key per line")
    assert text.strip() == "" or text not in done.stderr
    assert not (tmp_path / "r.db").exists()


def test_a_key_is_nowhere_in_the_output_or_the_store(tmp_path: Path) -> None:
    keys(tmp_path)
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    files = ["--key-file", tmp_path / "reports.keys", "--read-key-file", tmp_path / "read.keys"]
    with collecting(path, store, *files) as running:
        one = batch([report(sv.load(path, policy=ANY).digest)])
        for key, status in ((KEY, 202), ("wrong" * 8, 401)):
            header = {**dict(JSON), "Authorization": f"Bearer {key}"}
            assert running.ask("POST", "/v1/reports", one, header)[0] == status
        running.process.terminate()
        assert running.last_words() == "stopped\n"
    assert KEY.encode() not in store.read_bytes()


def test_several_files_are_served_by_their_digests_into_one_store(tmp_path: Path) -> None:
    first, store = write_mechanism(tmp_path), tmp_path / "r.db"
    with Collector(first, store) as collector:
        assert collector.post([report(collector.digest)] * 1).status == 202
    groups, other = write_groups(tmp_path), other_mechanism(tmp_path)
    # The groups' mechanism of the old is the same as that of the first file.
    check_refused(
        run("collect", "serve", first, groups, "--store", store, "--port", 0), "hold the same mechanism"
    )
    check_refused(
        run("collect", "serve", first, first, "--store", tmp_path / "new.db", "--port", 0),
        "the same mechanism",
    )
    assert not (tmp_path / "new.db").exists()
    with Collector(first, store, other) as collector:
        digest = read_served(other).digest
        for path, asked in (
            (first, ""),
            (first, f"?digest={collector.digest}"),
            (other, f"?digest={digest}"),
        ):
            assert collector.ask("GET", f"/v1/mechanism{asked}").body == path.read_bytes()
        for asked in ("mechanism?digest=", "estimate?digest=0", f"export?digest={digest[:12]}"):
            assert collector.ask("GET", f"/v1/{asked}").status == 404
        assert collector.post([report(digest), report(collector.digest), report(digest)]).status == 202
        found = [
            json.loads(collector.ask("GET", f"/v1/estimate?digest={one}").body)
            for one in (collector.digest, digest)
        ]
        assert [(one["reports"], one["epsilon"]) for one in found] == [(2, 2.0), (2, 3.0)]
        assert all(one["mechanisms"] == [collector.digest, digest] for one in found)
        assert sv.estimate(sv.load(other, policy=ANY), store).reports == 2
    with Collector(
        other, store
    ) as collector:  # the first one is no longer served; its reports are still there
        assert collector.ask("GET", "/v1/mechanism").body == other.read_bytes()
    assert sv.estimate(sv.load(first, policy=ANY), store).reports == 2
    third = tmp_path / "third.json"
    sv.certify(sv.minimax_kernel(PRIOR, 1.0)).save(third)
    refused = run("collect", "serve", third, "--store", store, "--port", 0)
    check_refused(refused, "holds the reports of another mechanism file")
    check_refused(run("estimate", third, store), "another mechanism file")


def test_without_the_page_nothing_is_read_and_a_read_key_opens_it(tmp_path: Path) -> None:
    path, read = write_mechanism(tmp_path), ["/v1/export", "/v1/estimate", "/metrics", "/"]
    with Collector(path, tmp_path / "r.db", page=False) as collector:
        assert [collector.ask("GET", one).status for one in read] == [404] * 4
        assert not set(read) & set(collector.description()["paths"])
        assert collector.ask("GET", "/healthz").status == 200
    keys(tmp_path)
    named = ["--name", "a.example", "--read-key-file", tmp_path / "read.keys"]
    with collecting(path, tmp_path / "r.db", *named) as running:
        assert [running.ask("GET", one)[0] for one in read] == [401, 401, 401, 200]


def send_on(running: Running, digest: str, over: threading.Event) -> None:
    while not over.is_set():
        assert running.post([report(digest) for _ in range(50)])[0] == 202


def test_a_backup_under_load_is_a_store_of_one_moment(tmp_path: Path) -> None:
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    mechanism, over = sv.load(path, policy=ANY), threading.Event()
    with collecting(path, store) as running:
        sender = threading.Thread(target=send_on, args=(running, mechanism.digest, over))
        sender.start()
        counts = []
        for i in range(4):
            before = len(rows_of(store))
            done = run("collect", "backup", store, tmp_path / f"copy{i}.db")
            assert done.returncode == 0, done.stderr
            copied = rows_of(tmp_path / f"copy{i}.db")
            assert before <= len(copied) <= len(rows_of(store))
            assert len(copied) % 50 == 0  # whole batches
            assert f"{len(copied):,} reports copied" in done.stderr
            counts.append(len(copied))
        over.set()
        sender.join()
        assert running.process.poll() is None
        stored = rows_of(store)
    assert counts == sorted(counts)
    assert copied <= stored
    assert (tmp_path / "copy3.db").stat().st_mode & 0o777 == 0o600
    assert sv.estimate(mechanism, tmp_path / "copy3.db").reports == counts[-1]
    check_refused(run("collect", "backup", store, tmp_path / "copy3.db"), "is there already")
    check_refused(run("collect", "backup", path, tmp_path / "copy9.db"), "is not a store of reports")
    shutil.copy(store, tmp_path / "lost.db-wal")
    with pytest.raises(sv.errors.StoreError, match="is gone, and its -wal"):
        create_store(tmp_path / "lost.db")
    shutil.copy(store, tmp_path / "copy9.db-wal")  # SQLite would take it for the log of the copy
    check_refused(run("collect", "backup", store, tmp_path / "copy9.db"), "or its -wal or -journal file")
    with collecting(path, tmp_path / "copy3.db") as running:  # a copy is a store like the first
        assert running.post([report(mechanism.digest)])[0] == 202


def test_a_backup_that_is_killed_leaves_no_half_copy(tmp_path: Path) -> None:
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    with Collector(path, store) as collector:
        collector.post([report(collector.digest) for _ in range(1000)])
    with sqlite3.connect(store) as database:
        for _ in range(8):  # 256,000 reports
            database.execute("INSERT INTO reports SELECT randomblob(16), mechanism, category FROM reports")
    database.close()
    (tmp_path / "scratch").mkdir()
    (tmp_path / "copies").mkdir()
    copy = tmp_path / "copies" / "copy.db"
    command = [sys.executable, "-m", "sottovoce", "collect", "backup", str(store), str(copy)]
    process = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(tmp_path / "scratch")}, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not list((tmp_path / "scratch").rglob("copy.db")):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(copy.parent.iterdir()) == [] or len(rows_of(copy)) == 256_000
