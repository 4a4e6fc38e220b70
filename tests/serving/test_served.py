"""What a collector serves besides taking reports: the file, the client, the estimate, the page."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette")
from chromium import chromium, need_browser
from collector import (
    JSON,
    Answer,
    Collector,
    batch,
    collecting,
    report,
    rows_of,
    write_groups,
    write_mechanism,
)
from command import check_refused, run

import sottovoce as sv
from sottovoce.errors import ParameterError
from sottovoce.release.file import ANY
from sottovoce.serving import app, live


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db") as started:
        yield started


def test_the_mechanism_file_is_served_byte_for_byte(collector: Collector, tmp_path: Path) -> None:
    answer = collector.ask("GET", "/v1/mechanism")
    assert answer.status == 200
    assert answer.body == (tmp_path / "m.json").read_bytes()
    assert answer.headers["content-type"] == "application/json"
    tag = answer.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = collector.ask("GET", "/v1/mechanism", [("if-none-match", known)])
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert collector.ask("GET", "/v1/mechanism", [("if-none-match", '"other"')]).status == 200


def test_a_file_of_groups_is_served_as_it_is(tmp_path: Path) -> None:
    with Collector(write_groups(tmp_path), tmp_path / "r.db") as collector:
        assert collector.ask("GET", "/v1/mechanism").body == (tmp_path / "groups.json").read_bytes()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8000", 200),
        ("evil.test", 421),
        ("evil.test:8000", 421),
        ("127.0.0.1.evil.test", 421),
        ("localhost:8000:8000", 421),
        ("", 421),
    ],
)
def test_a_collector_of_this_machine_answers_to_this_machines_names(
    collector: Collector, host: str, status: int
) -> None:
    assert collector.ask("GET", "/v1/mechanism", [("host", host)]).status == status
    posted = collector.ask("POST", "/v1/reports", [*JSON, ("host", host)], batch([report(collector.digest)]))
    assert posted.status == (202 if status == 200 else 421)
    assert len(rows_of(collector.store)) == (status == 200)


def test_names_are_those_of_the_machine_and_those_that_were_named() -> None:
    assert app.checked_names("127.0.0.1", []) == app.THIS_MACHINE
    assert "a.example" in app.checked_names("::1", ["A.example"])
    assert app.checked_names("0.0.0.0", []) == frozenset()  # noqa: S104
    named = app.checked_names("192.0.2.1", ["a.example"])
    assert {"a.example", "192.0.2.1"} <= named
    for bad in ("a.example:80", "http://a.example", "", "a b"):
        with pytest.raises(ParameterError, match="host name"):
            app.checked_names("127.0.0.1", [bad])
    for bad in ("*", "https://a.example/", "a.example", "https://A.example", "null", "https://a.example?x"):
        with pytest.raises(ParameterError, match="origin must look like"):
            app.checked_origins(["https://a.example", bad])
    several = ["https://a.example:8443", "http://b.example"]
    assert app.checked_origins(several) == frozenset(several)


def test_no_other_site_may_ask_unless_it_was_named(collector: Collector, tmp_path: Path) -> None:
    preflight = [("access-control-request-method", "POST")]
    preflight += [("access-control-request-headers", "content-type")]

    def answers(one: Collector, origin: str) -> list[Answer]:
        asks = [("origin", origin)]
        return [one.ask("OPTIONS", "/v1/reports", asks + preflight), one.ask("GET", "/v1/mechanism", asks)]

    def allowed(one: Collector, origin: str) -> list[str | None]:
        return [answer.headers.get("access-control-allow-origin") for answer in answers(one, origin)]

    listed = frozenset({"https://a.example", "https://b.example"})
    assert allowed(collector, "https://a.example") == [None, None]
    with Collector(write_mechanism(tmp_path), tmp_path / "o.db", origins=listed) as shared:
        for origin in listed:
            assert allowed(shared, origin) == [origin] * 2
        assert allowed(shared, "https://c.example") == [None, None]
        for answer in answers(shared, "https://a.example"):
            assert answer.status == 200
            assert "Origin" in answer.headers["vary"].split(", ")
            assert "access-control-allow-credentials" not in answer.headers
            assert "cross-origin-resource-policy" not in answer.headers


A = "https://a.example"
OPENED = [
    ("POST", "/v1/reports", 415),
    ("POST", "/v1/reports", 413),
    ("GET", "/v1/reports", 405),
    ("GET", "/v1/mechanism", 200),
    ("GET", "/v1/mechanism?digest=0", 404),
    ("PUT", "/v1/mechanism", 405),
    ("GET", "/v1/mechanism", 500),
]
SHUT = [
    *(("GET", path, 200) for path in ("/", "/v1/estimate", "/v1/export", "/metrics", "/healthz")),
    ("GET", "/openapi.json", 200),
    ("GET", "/v1/nothing", 404),
    ("POST", "/v1/export", 405),
    ("POST", "/v1/reports/", 404),
    ("GET", "/v1/estimate", 500),
]


@pytest.mark.parametrize(
    ("method", "path", "status", "opened"), [(*one, one in OPENED) for one in (*OPENED, *SHUT)]
)
def test_a_named_site_reads_every_answer_of_the_paths_that_it_may_ask_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, status: int, opened: bool
) -> None:
    """Whatever the status is: a page must see why it was refused. The other paths stay shut to all sites."""

    async def fails(*_: object) -> None:
        raise ZeroDivisionError

    if status == 500:
        for name in ("mechanism", "estimate"):
            monkeypatch.setattr(app._Answers, name, fails)
    headers, body = (JSON, bytes(1 << 21)) if status == 413 else ((), b"")
    origins = frozenset({A})
    with Collector(write_mechanism(tmp_path), tmp_path / "o.db", origins=origins) as collector:
        for origin in (A, "https://c.example"):
            answer = collector.ask(method, path, [("origin", origin), *headers], body)
            assert answer.status == status
            allowed = answer.headers.get("access-control-allow-origin")
            assert allowed == (A if opened and origin == A else None)
            policy = answer.headers.get("cross-origin-resource-policy")
            assert policy == (None if opened else "same-origin")


def test_an_answer_is_sent_in_pieces(collector: Collector) -> None:
    """A connection that reads nothing keeps no more than a piece of it, because each waits for the last."""
    long = json.dumps({"padding": "".join(map(str, range(1 << 16)))}).encode()
    object.__setattr__(collector.served, "content", long)  # it is frozen
    sizes = []
    answer = collector.ask(
        "GET", "/v1/mechanism", each=lambda message: sizes.append(len(message.get("body", b"")))
    )
    assert answer.body == long
    assert answer.headers["content-length"] == str(len(long))
    assert max(sizes) <= app.PIECE < len(long)


def test_an_origin_is_named_as_often_as_there_are_sites(tmp_path: Path) -> None:
    path, store = write_mechanism(tmp_path), tmp_path / "r.db"
    arguments = ["--origin", "https://a.example", "--origin", "https://b.example"]
    with collecting(path, store, *arguments) as running:
        for origin in arguments[1::2]:
            connection = HTTPConnection("127.0.0.1", running.port, timeout=300)
            connection.request("GET", "/v1/mechanism", headers={"origin": origin})
            assert connection.getresponse().headers["access-control-allow-origin"] == origin
            connection.close()
    refused = run("collect", "serve", path, "--store", store, "--origin", "*", *arguments[:2])
    check_refused(refused, "origin must look like")


def test_every_answer_is_guarded(collector: Collector) -> None:
    for path in ("/", "/v1/mechanism", "/v1/estimate", "/nothing", "/healthz", "/metrics", "/v1/export"):
        headers = collector.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "set-cookie" not in headers


def test_the_live_estimate_is_the_librarys(tmp_path: Path) -> None:
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db") as collector:
        assert json.loads(collector.ask("GET", "/v1/estimate").body)["reports"] == 0
    mechanism = sv.load(tmp_path / "m.json", policy=ANY)
    told = list(mechanism.release_many(np.tile([0.1, 0.2, 0.3, 0.2, 0.2], (400, 1))))
    with Collector(tmp_path / "m.json", tmp_path / "r.db") as collector:
        collector.post([report(collector.digest, one) for one in told])
        found = json.loads(collector.ask("GET", "/v1/estimate").body)
    (only,) = found["groups"]
    library = sv.estimate(mechanism, told)
    low, high = library.interval()
    assert (found["reports"], found["epsilon"], only["reports"]) == (400, 2.0, 400)
    assert only["verdict"] == library.verdict().summary()
    assert [row["share"] for row in only["rows"]] == sorted(library.shares, reverse=True)
    for row in only["rows"]:
        i = library.categories.index(row["category"])
        assert (row["low"], row["high"], row["share"]) == (low[i], high[i], library.shares[i])
        assert (row["reports"], row["prior"]) == (library.counts[i], library.model.prior[i])


def test_the_live_estimate_of_groups_and_of_few_reports(tmp_path: Path) -> None:
    with Collector(write_groups(tmp_path, twins=True), tmp_path / "r.db") as collector:
        digests = collector.served.digests
        told = [("old", "War")] * 3 + [("young", "Drama")] * 2 + [("older", "War")]
        collector.post([report(digests[group], name, group=group) for group, name in told])
        found = json.loads(collector.ask("GET", "/v1/estimate").body)
    assert [(one["group"], one["reports"]) for one in found["groups"]] == [
        ("all groups together", 5), ("old", 3), ("young", 2), ("older", 1),
    ]  # fmt: skip
    assert "at least 2 reports" in found["groups"][-1]["verdict"]
    assert found["groups"][-1]["rows"] == []


def test_a_mechanism_that_cannot_be_undone_is_collected_and_said(tmp_path: Path) -> None:
    sampler = sv.rr_with_prior(sv.Prior(["a", "b", "c"], [0.9, 0.09, 0.01]), 0.5)
    sv.certify(sampler).save(tmp_path / "m.json")
    with Collector(tmp_path / "m.json", tmp_path / "r.db") as collector:
        assert collector.post([report(collector.digest, "a") for _ in range(3)]).status == 202
        found = json.loads(collector.ask("GET", "/v1/estimate").body)
    assert found["reports"] == 3
    assert found["groups"][0]["rows"] == []
    assert found["groups"][0]["verdict"]


def test_the_live_estimate_rests_ten_times_as_long_as_it_took(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, calls = [0.0], []
    one = live.Live(collector.served, collector.store, {(collector.digest, "all"): 1}, lambda: now[0])
    real = one._now

    def slow() -> dict[str, Any]:
        calls.append(now[0])
        now[0] += 0.5
        return real()

    monkeypatch.setattr(one, "_now", slow)
    for moment in (0.0, 1.0, 5.4, 5.6, 6.0, 20.0):
        now[0] = max(now[0], moment)
        one.answer([])
    assert calls == [0.0, 5.6, 20.0]


def test_without_a_page_there_is_no_page_and_no_estimate(tmp_path: Path) -> None:
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db", page=False) as collector:
        assert collector.ask("GET", "/").status == 404
        assert collector.ask("GET", "/v1/estimate").status == 404
        assert collector.ask("GET", "/v1/mechanism").status == 200


def test_the_page_runs_its_own_script_only_and_asks_no_other_host(collector: Collector) -> None:
    answer = collector.ask("GET", "/")
    text, policy = answer.body.decode(), answer.headers["content-security-policy"]
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    named = re.sub(
        r"http://www\.w3\.org/(?:1998/Math/MathML|1999/xhtml|2000/svg)", "", text
    )  # namespaces, not addresses
    assert not re.search(r"https?://|//\w|\ssrc=|\shref=|\sstyle=|\son\w+=|eval\(", named)
    assert app.PAGE.read_bytes() == answer.body


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_in_a_browser(tmp_path: Path, dark: bool) -> None:
    need_browser()
    path = write_mechanism(tmp_path)
    mechanism = sv.load(path, policy=ANY)
    with collecting(path, tmp_path / "r.db") as running, chromium() as browser:
        scheme = "dark" if dark else "light"
        window = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
        faults: list[str] = []
        window.on("console", lambda one: faults.append(one.text) if one.type == "error" else None)
        window.on("pageerror", lambda one: faults.append(str(one)))
        window.goto(f"http://127.0.0.1:{running.port}/")
        window.wait_for_selector("text=waiting for the first report")
        told = list(mechanism.release_many(np.tile([0.1, 0.2, 0.3, 0.2, 0.2], (1000, 1))))
        assert running.post([report(mechanism.digest, one) for one in told])[0] == 202
        window.wait_for_selector("text=1,000 reports")
        window.wait_for_selector(".row")
        assert window.locator(".row:not(.axis)").count() == 5
        assert window.evaluate("document.documentElement.scrollWidth") <= 390
        shades = window.evaluate("getComputedStyle(document.body).backgroundColor")
        assert shades == ("rgb(20, 23, 31)" if dark else "rgb(252, 252, 253)")
        library = sv.estimate(mechanism, told)
        first = window.locator(".row:not(.axis) .value").first.inner_text()
        assert first.startswith(f"{100 * library.shares.max():.1f} %")
        assert window.locator(".verdict").inner_text() == library.verdict().summary()
        marks = sorted(mark for mark in library.marks() if mark in ("more", "fewer"))
        assert marks == sorted(window.locator(".stands:not(:empty)").all_inner_texts())
        assert len(marks) == library.verdict().standing_out > 0
        axis = window.locator(".axis .ticks").inner_text()
        told += list(mechanism.release_many(np.tile([0.6, 0.1, 0.1, 0.1, 0.1], (1000, 1))))
        assert running.post([report(mechanism.digest, one) for one in told[1000:]])[0] == 202
        window.wait_for_selector("text=2,000 reports")
        window.wait_for_selector("text=2,000 since")
        assert window.locator(".axis .ticks").inner_text() == axis  # what moves is the reports, not the axis
        assert faults == []
        if folder := os.environ.get("SOTTOVOCE_PICTURES"):
            for width in (390, 1100):
                window.set_viewport_size({"width": width, "height": 800})
                window.screenshot(path=f"{folder}/collect-{scheme}-{width}.png", full_page=True)
        running.kill()
        window.wait_for_selector("text=does not answer")
