"""The JavaScript client in a real browser: the vectors, the budget in two tabs, the worker.

Needs Debian's chromium and playwright (`make test-browser`) and skips visibly without them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium, need_browser

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.browser


class Quiet(SimpleHTTPRequestHandler):
    """The repository's files; the empty page is /blank."""

    def do_GET(self) -> None:
        if self.path != "/blank":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>blank</title>")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    need_browser()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(ROOT)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A profile of its own: nothing is stored in it yet."""
    with browser.new_context() as fresh:
        yield fresh


def tab(context: Any, address: str) -> Any:
    page = context.new_page()
    page.goto(f"{address}/blank")
    return page


def test_the_vectors(context: Any, address: str) -> None:
    found = tab(context, address).evaluate(
        """async () => {
          const { FILES, all, client, complaints } = await import("/clients/js/test/support/checks.js");
          const read = async (name) => [name, await (await fetch(`/tests/vectors/${name}.json`)).json()];
          const vectors = Object.fromEntries(await Promise.all(FILES.map(read)));
          const sv = await client("/clients/js/src");
          return [vectors.files_refused.files.length, await all(complaints(sv, vectors))];
        }"""
    )
    assert found[0] > 300
    assert found[1] == []


VECTOR = ROOT / "tests" / "vectors" / "kernel_clip.json"
MECHANISM = json.loads(VECTOR.read_text(encoding="utf-8"))["mechanism"]
PREPARE = """async ([text, name, limit, begin]) => {
  const sv = await import("/clients/js/src/core.js");
  const { openBudget } = await import("/clients/js/src/budget_browser.js");
  const policy = { maxEpsilon: 2, maxCategories: 5, digest: "any" };
  window.mechanism = await sv.load(new TextEncoder().encode(text), policy);
  window.budget = await openBudget({ name, limit, begin });
  return [budget.fresh, budget.notice];
}"""
ASK = """async ([count, epoch, first]) => Promise.all(Array.from({ length: count }, (_, i) =>
  budget.release(mechanism, epoch, [mechanism.categories[(first + i) % 5]])
    .then((one) => JSON.stringify(one), (problem) => "refused: " + problem.reason)))"""


def opened(context: Any, address: str, *, limit: float = 5, begin: bool = True) -> tuple[Any, list[Any]]:
    page = tab(context, address)
    return page, page.evaluate(PREPARE, [json.dumps(MECHANISM), "test", limit, begin])


@pytest.mark.parametrize("locks", [True, False])
def test_two_tabs_one_answer_one_charge(context: Any, address: str, *, locks: bool) -> None:
    """25 asks in each of two tabs at once; without Web Locks the transactions alone are enough."""
    if not locks:
        context.add_init_script("Object.defineProperty(navigator, 'locks', { value: undefined })")
    one, told = opened(context, address)
    assert told[0] is True
    other, again = opened(context, address)
    assert again[0] is False
    start = "([count, epoch, first]) => { window.answers = (" + ASK + ")([count, epoch, first]); }"
    one.evaluate(start, [25, "November", 0])
    other.evaluate(start, [25, "November", 3])
    found = one.evaluate("() => window.answers") + other.evaluate("() => window.answers")
    assert len(found) == 50
    assert len(set(found)) == 1
    assert json.loads(found[0])["category"] in MECHANISM["categories"]
    assert one.evaluate("() => budget.left()") == 3

    one.reload()
    told = one.evaluate(PREPARE, [json.dumps(MECHANISM), "test", 5, False])
    assert told[0] is False
    assert one.evaluate(ASK, [3, "November", 1]) == found[:3]
    assert one.evaluate("() => budget.left()") == 3


def test_overspending_is_refused_and_nothing_is_charged(context: Any, address: str) -> None:
    page, _ = opened(context, address)
    found = [page.evaluate(ASK, [2, epoch, 0]) for epoch in ("1", "2", "3")]
    assert [len(set(answers)) for answers in found] == [1, 1, 1]
    assert found[2] == ["refused: budget"] * 2
    assert page.evaluate("() => budget.left()") == 1
    assert page.evaluate(ASK, [1, "1", 4]) == found[0][:1]


def test_what_is_lost_is_said(context: Any, address: str) -> None:
    page, told = opened(context, address)
    assert "delete" in told[1] or "keep" in told[1]
    page.evaluate(ASK, [1, "1", 0])
    page.evaluate(
        """() => new Promise((done) => {
          const request = indexedDB.open("test", 1);
          request.onsuccess = () => {
            const change = request.result.transaction("budget", "readwrite");
            change.objectStore("budget").clear();
            change.oncomplete = done;
          };
        })"""
    )
    assert page.evaluate(ASK, [1, "1", 0]) == ["refused: budget"]
    page.close()
    with pytest.raises(Exception, match="deleted or evicted"):
        opened(context, address, begin=False)


def test_the_worker_answers_on_its_grid(context: Any, address: str) -> None:
    reports, waited, reasons = tab(context, address).evaluate(
        """async (text) => {
          const { remote } = await import("/clients/js/src/remote.js");
          const far = remote(new Worker("/clients/js/src/worker.js", { type: "module" }));
          const policy = { maxEpsilon: 2, maxCategories: 5, digest: "any" };
          const mechanism = await far.load(new TextEncoder().encode(text), policy, { grid: 60 });
          const start = performance.now();
          const reports = [await mechanism.release([mechanism.categories[0]]),
            await mechanism.releaseCounts(new Map([[mechanism.categories[1], 3]])),
            await mechanism.release(["nowhere"])];
          const waited = performance.now() - start;
          const strict = (records) =>
            mechanism.release(records, undefined, { unknown: "error" }).catch((problem) => problem.reason);
          const reasons = [await strict(["nowhere"]), await strict([])];
          return [reports, waited, reasons];
        }""",
        json.dumps(MECHANISM),
    )
    assert all(one["mechanism"] == MECHANISM["digest"] for one in reports)
    assert all(one["category"] in MECHANISM["categories"] for one in reports)
    assert waited >= 3 * 59  # never sooner than the grid; timers of a browser are cut to whole milliseconds
    assert reasons == ["user", "user"]


def test_the_worker_shares_the_budget_of_the_page(context: Any, address: str) -> None:
    page, _ = opened(context, address)
    mine = page.evaluate(ASK, [1, "1", 0])
    theirs, reason = page.evaluate(
        """async (text) => {
          const { remote } = await import("/clients/js/src/remote.js");
          const far = remote(new Worker("/clients/js/src/worker.js", { type: "module" }));
          const policy = { maxEpsilon: 2, maxCategories: 5, digest: "any" };
          const bytes = new TextEncoder().encode(text);
          const mechanism = await far.load(bytes, policy, { budget: { name: "test", limit: 5 } });
          const ask = (epoch) => mechanism.release([mechanism.categories[2]], epoch);
          const found = JSON.stringify(await ask("1"));
          await ask("2");
          return [found, await ask("3").catch((problem) => problem.reason)];
        }""",
        json.dumps(MECHANISM),
    )
    assert [theirs] == mine
    assert reason == "budget"
    assert page.evaluate("() => budget.left()") == 1


def test_a_later_load_of_the_worker_leaves_the_earlier_one_counted(context: Any, address: str) -> None:
    """The same file again, without a budget and with another grid: two entries."""
    same, reason, left, waited = tab(context, address).evaluate(
        """async (text) => {
          const { remote } = await import("/clients/js/src/remote.js");
          const { openBudget } = await import("/clients/js/src/budget_browser.js");
          const far = remote(new Worker("/clients/js/src/worker.js", { type: "module" }));
          const policy = { maxEpsilon: 2, maxCategories: 5, digest: "any" };
          const bytes = new TextEncoder().encode(text);
          const budget = { name: "test", limit: 2 };
          const counted = await far.load(bytes, policy, { grid: 80, budget });
          const other = await far.load(bytes, policy, { grid: 1 });
          const first = JSON.stringify(await counted.release([], "1"));
          const start = performance.now();
          const again = JSON.stringify(await counted.release([counted.categories[0]], "1"));
          const waited = performance.now() - start;
          const reason = await counted.release([], "2").catch((problem) => problem.reason);
          await other.release([]);
          return [first === again, reason, await (await openBudget(budget)).left(), waited];
        }""",
        json.dumps(MECHANISM),
    )
    assert same
    assert reason == "budget"
    assert left == 0
    assert waited >= 79


def test_an_insecure_origin_is_refused(context: Any, address: str) -> None:
    """There is no crypto.subtle: the digest cannot be checked, and nothing is loaded."""
    page = tab(context, address.replace("127.0.0.1", "evil.test"))
    found = page.evaluate(
        """async (text) => {
          const { load } = await import("/clients/js/src/core.js");
          const policy = { maxEpsilon: 2, maxCategories: 5, digest: "any" };
          const bytes = new TextEncoder().encode(text);
          return load(bytes, policy).catch((problem) => [problem.reason, problem.message]);
        }""",
        json.dumps(MECHANISM),
    )
    assert found[0] == "digest"
    assert "https" in found[1]
