"""What a posted batch is answered, and that nothing of it is stored unless it is 202."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette")
from collector import JSON, Collector, batch, report, rows_of, write_groups, write_mechanism

import sottovoce as sv
from sottovoce.serving import app
from sottovoce.serving.batches import MOST_BYTES, MOST_REPORTS

MARK = "Zanzibar"
"""A word that stands in what is sent, and must not stand in any answer."""


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    with Collector(write_mechanism(tmp_path), tmp_path / "r.db") as started:
        yield started


def refused(collector: Collector, answer: Any, status: int, word: str, place: int | None = None) -> None:
    assert answer.status == status, answer.body
    told = json.loads(answer.body)
    assert word in told["error"]
    assert told.get("report") == place
    assert MARK.encode() not in answer.body
    assert not any(MARK in value for value in answer.headers.values())
    assert rows_of(collector.store) == set()


def test_a_batch_is_stored_and_answered(collector: Collector) -> None:
    names = list(collector.served.mechanisms["all"].categories)
    reports = [report(collector.digest, name) for name in names for _ in range(3)]
    answer = collector.post(reports)
    assert (answer.status, json.loads(answer.body)) == (202, {"accepted": 15})
    expected = {(bytes.fromhex(str(one["id"])), 1, names.index(str(one["category"]))) for one in reports}
    assert rows_of(collector.store) == expected


def test_reports_of_a_stream_are_taken_and_tell_the_law_that_was_released(tmp_path: Path) -> None:
    stream = sv.certify(sv.stream(sv.Prior(["War", "Drama"], [0.3, 0.7]), 4.0))
    stream.save(tmp_path / "m.json")
    with Collector(tmp_path / "m.json", tmp_path / "r.db") as started:
        reports = [report(started.digest, "War")] + [report(started.digest, "Drama") for _ in range(3)]
        assert started.post(reports).status == 202
    found = sv.estimate(stream, tmp_path / "r.db")
    assert found.values.tolist() == [0.25, 0.75]
    assert found.bias_bound == pytest.approx(0.7)  # a later step may be as the prior


def test_reports_of_a_survey_are_numbers(tmp_path: Path) -> None:
    survey = sv.certify(sv.survey(range(100), 2.0))
    survey.save(tmp_path / "s.json")
    with Collector(tmp_path / "s.json", tmp_path / "s.db") as started:
        for strange in ("5", True, -1, len(survey.answers)):
            assert started.post([report(started.digest, strange)]).status in (400, 422)
        given = [int(survey.release(records=[7])) for _ in range(200)]
        assert started.post([report(started.digest, one) for one in given]).status == 202
        live = json.loads(started.ask("GET", "/v1/estimate").body)
    assert live["reports"] == 200
    assert live["groups"][0]["rows"][0]["category"] == 7
    found = sv.estimate(survey, tmp_path / "s.db")
    np.testing.assert_allclose(found.values, sv.estimate(survey, given).values, rtol=0, atol=1e-12)


def test_repeats_get_the_same_answer_and_are_stored_once(collector: Collector) -> None:
    first, second = report(collector.digest), report(collector.digest, "Comedy")
    before = collector.post([first, second])
    stored = rows_of(collector.store)
    assert collector.post([first, second]) == before
    assert collector.post([second, first]) == before
    assert rows_of(collector.store) == stored
    third = report(collector.digest)
    answer = collector.post([first, third, third])  # old, new, and new again
    assert (answer.status, json.loads(answer.body)) == (202, {"accepted": 3})
    assert len(rows_of(collector.store)) == 3


def test_an_id_with_another_content_is_a_conflict_and_its_batch_is_not_stored(collector: Collector) -> None:
    first = report(collector.digest, "War")
    collector.post([first])
    stored = rows_of(collector.store)
    new = [report(collector.digest) for _ in range(5)]
    for reports, place in (
        ([*new, {**first, "category": "Drama"}], 5),
        ([new[0], {**first, "category": "Drama"}, *new], 1),
        ([new[0], {**new[0], "category": "Drama"}], 1),  # within one batch
    ):
        answer = collector.post(reports)
        assert answer.status == 409
        assert json.loads(answer.body)["report"] == place
        assert rows_of(collector.store) == stored
    assert collector.post([first]).status == 202


GOOD = {"mechanism": "0" * 64, "id": "0" * 32, "category": "War"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"reports": [' + b"[" * 100_000,
        b"\xff\xfe{}",
        b'\xef\xbb\xbf{"reports":[]}',
        b'{"reports":[],"reports":[]}',
        b'{"reports":[NaN]}',
        b'{"reports":[Infinity]}',
        b'{"reports":[1.0]}',
        b'{"reports":[1e3]}',
        b'{"reports":[-0]}',
        b'{"reports":[' + b"9" * 5000 + b"]}",
        b'{"reports":[{"mechanism":"a","id":"b","category":"c","id":"Zanzibar"}]}',
        b'{"reports":[]} Zanzibar',
    ],
)
def test_what_is_not_strict_json_is_refused(collector: Collector, body: bytes) -> None:
    refused(collector, collector.post_body(body), 400, "must be JSON")


@pytest.mark.parametrize(
    "plain", [[], "Zanzibar", 3, None, {}, {"reports": {}}, {"reports": [], "user": MARK}, {"report": [GOOD]}]
)
def test_what_is_no_batch_is_refused(collector: Collector, plain: object) -> None:
    refused(collector, collector.post_body(json.dumps(plain).encode()), 400, '{"reports": [...]}')


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"user": MARK}, "a report must be"),
        ({"time": 1}, "a report must be"),
        ({"id": None}, "id must be 32"),
        ({"id": "0" * 31}, "id must be 32"),
        ({"id": "0" * 33}, "id must be 32"),
        ({"id": "A" * 32}, "id must be 32"),
        ({"id": "0" * 31 + "\n"}, "id must be 32"),
        ({"id": "٠" * 32}, "id must be 32"),
        ({"id": 0}, "id must be 32"),
        ({"category": None}, "must be text"),
        ({"category": True}, "must be text"),
        ({"category": [MARK]}, "must be text"),
        ({"category": {"a": MARK}}, "must be text"),
        ({"category": "\ud800"}, "must be text"),
        ({"mechanism": 3}, "must be text"),
        ({"mechanism": "\udfff"}, "must be text"),
        ({"group": 3}, "must be text"),
    ],
)
def test_a_malformed_report_refuses_its_batch(
    collector: Collector, change: dict[str, object], word: str
) -> None:
    fine = [report(collector.digest) for _ in range(3)]
    answer = collector.post([*fine, {**report(collector.digest), **change}, fine[0]])
    refused(collector, answer, 400, word, 3)


@pytest.mark.parametrize("missing", ["mechanism", "id", "category"])
def test_a_report_has_all_its_fields(collector: Collector, missing: str) -> None:
    one = report(collector.digest)
    del one[missing]
    refused(collector, collector.post([one]), 400, "a report must be", 0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"mechanism": "0" * 64}, "another mechanism"),
        ({"mechanism": MARK}, "another mechanism"),
        ({"category": MARK}, "not one of the mechanism's"),
        ({"category": ""}, "not one of the mechanism's"),
        ({"category": 0}, "not one of the mechanism's"),
        ({"category": "war"}, "not one of the mechanism's"),
        ({"category": "No\u0302 能"}, "not one of the mechanism's"),  # the same to the eye, not the same name
        ({"group": "all"}, "not that of the group"),
        ({"group": MARK}, "not that of the group"),
    ],
)
def test_foreign_reports_refuse_their_batch(
    collector: Collector, change: dict[str, object], word: str
) -> None:
    fine = report(collector.digest)
    refused(collector, collector.post([fine, {**report(collector.digest), **change}]), 422, word, 1)


def test_upper_case_digests_and_other_spellings_are_foreign(collector: Collector) -> None:
    refused(collector, collector.post([report(collector.digest.upper())]), 422, "another mechanism", 0)


def test_too_many_reports_or_bytes_are_refused(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [report(collector.digest) for _ in range(MOST_REPORTS + 1)]
    refused(collector, collector.post(many), 413, "1 to 1000")
    refused(collector, collector.post([]), 400, "1 to 1000")
    refused(collector, collector.post_body(bytes(MOST_BYTES + 1)), 413, "at most")
    part = b" " * (1 << 16)  # no length stated: it is counted as it comes
    parts = [part] * (MOST_BYTES // len(part)) + [b" "]
    refused(collector, collector.ask("POST", "/v1/reports", JSON, parts), 413, "at most")
    exact = batch([report(collector.digest)])
    padded = exact + b" " * (MOST_BYTES - len(exact))
    assert collector.post_body(padded).status == 202
    assert collector.post(many[:-1]).status == 202
    assert len(rows_of(collector.store)) == MOST_REPORTS + 1


def test_a_batch_that_comes_too_slowly_is_given_up(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "SECONDS_FOR_A_BODY", 0.01)
    body = batch([report(collector.digest)])
    slow = collector.ask("POST", "/v1/reports", JSON, body, end="silent")
    refused(collector, slow, 408, "too slowly")
    assert slow.headers["connection"] == "close"
    refused(collector, collector.ask("POST", "/v1/reports", JSON, body, end="cut"), 400, "to its end")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((), 415),
        ((("content-type", "text/plain"),), 415),
        ((("content-type", "application/x-www-form-urlencoded"),), 415),
        ((("content-type", "application/json; charset=utf-16"),), 415),
        ((("content-type", "application/jsonp"),), 415),
        ((*JSON, ("content-encoding", "gzip")), 415),
        ((("content-type", "Application/JSON; charset=UTF-8"),), 202),
        ((*JSON, ("content-encoding", "identity")), 202),
    ],
)
def test_the_type_of_a_body(collector: Collector, headers: tuple[tuple[str, str], ...], status: int) -> None:
    answer = collector.ask("POST", "/v1/reports", headers, batch([report(collector.digest)]))
    assert answer.status == status
    assert len(rows_of(collector.store)) == (status == 202)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/reports", 405),
        ("PUT", "/v1/reports", 405),
        ("POST", "/v1/mechanism", 405),
        ("GET", "/v1/report", 404),
        ("POST", "/v1/reports/", 404),
    ],
)
def test_other_paths_and_methods(collector: Collector, method: str, path: str, status: int) -> None:
    answer = collector.ask(method, path, JSON, batch([report(collector.digest)]))
    assert answer.status == status
    assert json.loads(answer.body)["error"]
    assert rows_of(collector.store) == set()


def test_integer_categories_are_told_from_their_spellings(tmp_path: Path) -> None:
    sv.certify(sv.minimax_kernel(sv.Prior([1, 2, -3], [0.5, 0.3, 0.2]), 1.0)).save(tmp_path / "n.json")
    with Collector(tmp_path / "n.json", tmp_path / "n.db") as collector:
        for strange in ("1", True, 4):
            assert collector.post([report(collector.digest, strange)]).status in (400, 422)
        text = batch([report(collector.digest, 1)])
        for spelling in (b"1.0", b"1e0", b"01", b"-0", b"+1"):
            assert collector.post_body(text.replace(b": 1}", b": " + spelling + b"}")).status == 400
        assert rows_of(collector.store) == set()
        places = {name: i for i, name in enumerate(collector.served.mechanisms["all"].categories)}
        assert collector.post([report(collector.digest, -3)]).status == 202
        assert {row[2] for row in rows_of(collector.store)} == {places[-3]}


def test_groups_are_told_by_their_mechanism_or_by_name(tmp_path: Path) -> None:
    with Collector(write_groups(tmp_path), tmp_path / "r.db") as collector:
        old, young = (collector.served.digests[name] for name in ("old", "young"))
        assert collector.post([report(old), report(young), report(young, group="young")]).status == 202
        answer = collector.post([report(old), report(old, group="young")])
        assert (answer.status, json.loads(answer.body)["report"]) == (422, 1)
        assert sorted(row[1] for row in rows_of(collector.store)) == [1, 2, 2]


def test_twin_groups_need_their_name(tmp_path: Path) -> None:
    with Collector(write_groups(tmp_path, twins=True), tmp_path / "r.db") as collector:
        digest = collector.served.digests["older"]
        assert digest == collector.served.digests["old"]
        assert collector.post([report(digest)]).status == 422
        assert collector.post([report(digest, group="young")]).status == 422
        assert collector.post([report(digest, group="older"), report(digest, group="old")]).status == 202
        assert len({row[1] for row in rows_of(collector.store)}) == 2
