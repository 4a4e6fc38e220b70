"""The command collect as an operator meets it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
from collector import Collector, collecting, write_groups, write_mechanism
from command import check_refused, run

from sottovoce.cli.collect import listening


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "70000"], "not in the range 0<=x<=65535"),
        (["--key-file", "none.keys"], "No such file"),
        (["--origin", "*"], "origin must look like"),
        (["--name", "a:1"], "name must be a host name"),
        (["--host", "999.1.1.1", "--port", "0"], "cannot be used"),
    ],
)
def test_bad_options_are_one_line_and_make_no_store(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_mechanism(tmp_path)
    check_refused(run("collect", "serve", "m.json", "--store", "r.db", *arguments, cwd=tmp_path), message)
    assert not (tmp_path / "r.db").exists()


def test_a_bad_mechanism_or_store_is_refused(tmp_path: Path) -> None:
    path = write_mechanism(tmp_path)
    (tmp_path / "bad.json").write_text(
        path.read_text().replace('"keeps_prior": true', '"keeps_prior": false')
    )
    refused = run("collect", "serve", tmp_path / "bad.json", "--store", tmp_path / "r.db", "--port", 0)
    check_refused(refused, "was changed")
    (tmp_path / "mine.db").write_text("mine")
    check_refused(
        run("collect", "serve", path, "--store", tmp_path / "mine.db", "--port", 0), "not a store of reports"
    )
    assert (tmp_path / "mine.db").read_text() == "mine"
    with Collector(write_groups(tmp_path), tmp_path / "other.db"):
        pass
    before = (tmp_path / "other.db").read_bytes()
    refused = run("collect", "serve", path, "--store", tmp_path / "other.db", "--port", 0)
    check_refused(refused, "another mechanism file")
    assert (tmp_path / "other.db").read_bytes() == before
    assert not (tmp_path / "r.db").exists()


def test_a_collector_for_others_says_what_it_does_not_do_and_shows_no_page(tmp_path: Path) -> None:
    path = write_mechanism(tmp_path)
    with collecting(path, tmp_path / "r.db", "--name", "collect.example") as running:
        named = {"Host": "collect.example"}
        assert running.ask("GET", "/v1/mechanism", headers=named)[0] == 200
        assert running.ask("GET", "/", headers=named)[0] == 404
        running.process.terminate()
        assert "No TLS here" in running.last_words()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = run("collect", "serve", path, "--store", tmp_path / "s.db", "--port", port)
        check_refused(refused, f"port {port} of 127.0.0.1 is taken")
    assert not (tmp_path / "s.db").exists()


def test_an_answer_does_not_wait_for_an_acknowledgement() -> None:
    with listening("127.0.0.1", 0) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
