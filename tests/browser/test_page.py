"""The explorer in a real browser, opened from the disk: the walk of a new user, and that nothing is ever sent."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from chromium import chromium, need_browser
from command import run

import sottovoce as sv
from sottovoce.demo import demo_data
from sottovoce.release.file import ANY

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
ODD = ("undefined", "NaN", "[object", "Traceback", "null", "Infinity")
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    need_browser()
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    assert run("explore", "-o", "page.html", cwd=folder).returncode == 0
    return folder / "page.html"


@contextmanager
def visiting(
    browser: Any, path: Path, state: str = "", width: int = 1280, theme: str = "light"
) -> Iterator[Any]:
    """An opened page; whatever was done with it, it said nothing, sent nothing and shows no object of a program."""
    wrong: list[str] = []
    context = browser.new_context(
        color_scheme=theme,
        viewport={"width": width, "height": 900},
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.on("pageerror", lambda problem: wrong.append(str(problem)))
    page.on("console", lambda said: wrong.append(said.text))
    page.on(
        "request",
        lambda sent: wrong.append(sent.url) if not sent.url.startswith(("file:", "blob:")) else None,
    )
    page.goto(f"{path.as_uri()}{state}")
    settled(page)
    yield page
    settled(page)
    text = page.inner_text("body")
    assert [odd for odd in ODD if odd in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []
    context.close()


def settled(page: Any) -> None:
    """Wait until the recommendation of the marked ε is there."""
    page.wait_for_selector("main[aria-busy=false] section[aria-label='Take it with you']", timeout=60_000)


def facts(page: Any) -> dict[str, str]:
    """The numbers below the recommendation."""
    pairs = page.eval_on_selector_all(
        ".facts > div",
        "all => all.map(one => [one.querySelector('dt').innerText, one.querySelector('dd').innerText])",
    )
    return dict(pairs)


def below(bound: float) -> str:
    """A lower bound as it is shown, rounded down."""
    return f"≥ {math.floor(1000 * bound + 1e-9) / 1000:.3f}"


def check_recommendation(page: Any, choice: Any) -> None:
    settled(page)
    assert page.inner_text(".answer b") == choice.sampler.name
    shown = facts(page)
    assert shown["mean distance"] == f"{choice.row.mean:.3f}"
    assert shown["promise to everybody"] == f"≤ {math.ceil(1000 * choice.row.worst_case - 1e-9) / 1000:.3f}"


def move_to(page: Any, epsilon: str) -> None:
    """Move the slider of ε by its keys."""
    slider = page.get_by_label("epsilon (ε)")
    slider.focus()
    slider.press("Home")
    for _ in range(40):
        if slider.get_attribute("aria-valuetext") == f"epsilon {epsilon}":
            break
        slider.press("ArrowRight")
    settled(page)
    assert page.inner_text(".answer").startswith(f"At ε = {epsilon} ")


def card(page: Any, name: str) -> Any:
    return page.locator(f"section[aria-label='{name}']")


def select(page: Any, name: str) -> Any:
    return page.get_by_role("combobox", name=name, exact=True)


def type_person(page: Any, text: str) -> None:
    summary = card(page, "One person").get_by_text("Type a person")
    if not card(page, "One person").locator("textarea").is_visible():
        summary.click()
    card(page, "One person").locator("textarea").fill(text)
    card(page, "One person").locator("textarea").blur()


def test_the_recommendation_is_the_librarys(browser: Any, written: Path) -> None:
    priors = demo_data().priors
    with visiting(browser, written) as page:
        check_recommendation(page, sv.choose(priors["under 25"], 2.0, limit=False))
        bound = sv.choose(priors["under 25"], 2.0).limit
        assert bound is not None
        assert facts(page)["limit"] == below(bound.lower_bound)
        move_to(page, "4")
        check_recommendation(page, sv.choose(priors["under 25"], 4.0, limit=False))
        select(page, "group").select_option("45 and over")
        check_recommendation(page, sv.choose(priors["45 and over"], 4.0, limit=False))
        page.get_by_text("Wishes: what the recommendation").click()
        page.get_by_label("one-record").check()
        check_recommendation(page, sv.choose(priors["45 and over"], 4.0, one_record=True, limit=False))


def test_the_limit_is_that_of_samplers_that_keep_the_public_data(browser: Any, written: Path) -> None:
    with visiting(browser, written, "#epsilon=2&any-prior=") as page:
        assert facts(page)["limit"] == "not computed"
        move_to(page, "3")
        page.evaluate("location.hash = '#epsilon=2'")
        page.wait_for_selector("text=At ε = 2 ")
        settled(page)
        assert facts(page)["limit"].startswith("≥ 0.3")


def test_a_marked_epsilon_between_the_steps_is_reached_again(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("item,count\nUS,5\nus,3\n lead,2\n")
    assert run("explore", "p.csv", "-e", "2.3456789", "-o", "page.html", cwd=tmp_path).returncode == 0
    with visiting(browser, tmp_path / "page.html") as page:
        assert facts(page)["limit"].startswith("≥")
        page.get_by_label("epsilon (ε)").focus()
        for key in ("ArrowRight", "ArrowLeft"):
            page.keyboard.press(key)
        settled(page)
        assert page.get_by_text("download mechanism.json").is_visible()
        type_person(page, "US: 3\nus: 1")  # names that differ by case are two names
        assert card(page, "One person").locator("textarea").input_value() == "US: 3\nus: 1"


def test_a_page_without_a_worker_computes_by_itself(browser: Any, written: Path) -> None:
    """A server's own policy may refuse workers from memory."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    headers = {"content-security-policy": "worker-src 'none'"}
    app = Starlette(routes=[Route("/", lambda _: HTMLResponse(written.read_text("utf-8"), headers=headers))])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/")
    settled(page)
    assert (
        page.inner_text(".answer b")
        == sv.choose(demo_data().priors["under 25"], 2.0, limit=False).sampler.name
    )
    page.close()
    server.should_exit = True
    thread.join()


def test_very_long_names_do_not_widen_the_page(browser: Any, tmp_path: Path) -> None:
    rows = "".join(f"{'very long name ' * 12}{i},{i + 1}\n" for i in range(6))
    (tmp_path / "p.csv").write_text(f"item,count\n{rows}")
    assert run("explore", "p.csv", "-o", "page.html", cwd=tmp_path).returncode == 0
    for width in (1280, 390):
        with visiting(browser, tmp_path / "page.html", width=width):
            pass  # which looks at the width


def test_a_dropped_table_of_people_is_no_public_data(browser: Any, written: Path, tmp_path: Path) -> None:
    rows = "".join(f"patient-{i % 30},{'ab'[i // 30]}\n" for i in range(60))
    (tmp_path / "hospital.csv").write_text(f"patient,item\n{rows}")
    with visiting(browser, written) as page:
        page.locator("input[type=file]").set_input_files(tmp_path / "hospital.csv")
        page.get_by_text("use this table").click()
        page.wait_for_selector("text=These data look like records of people")
        assert "patient" not in page.url


def test_one_person_and_what_leaves_their_device(browser: Any, written: Path) -> None:
    prior = demo_data().priors["under 25"]
    with visiting(browser, written) as page:
        type_person(page, "War: 3\nDrama: 1")
        mine = prior.frequencies(["War"] * 3 + ["Drama"])
        sampler = sv.choose(prior, 2.0, limit=False).sampler
        leaves = card(page, "What may leave their device")
        assert f"{float(sampler.divergence(mine, sv.TV)):.3f}" in leaves.inner_text()
        law = dict(zip(prior.categories, sampler.distribution(mine).tolist(), strict=True))
        shown = leaves.locator(".row").evaluate_all(
            "all => all.map(one => [one.querySelector('.name').innerText, one.querySelector('.value').innerText])"
        )
        assert len(shown) == 18
        for name, value in shown:
            assert abs(float(value.removesuffix(" %")) / 100 - law[name]) <= 0.000_51, name
        card(page, "One person").get_by_label("one War more").click()
        assert card(page, "One person").locator("textarea").input_value() == "War: 4\nDrama: 1"
        leaves.get_by_text("ten times, as an experiment").click()
        assert leaves.locator(".tiles li").count() == 10
        assert "20.0" in leaves.inner_text()  # what ten of them cost
        type_person(page, "Opera: 3")
        assert '"Opera" is no category of the public data' in page.inner_text("[role=alert]")
        assert "Opera" not in page.url  # what is typed is in no address
        assert "War" not in page.url


def test_a_stream_of_twenty_visits(browser: Any, written: Path) -> None:
    with visiting(browser, written) as page:
        move_to(page, "8")
        visits = card(page, "Many visits, one ε")
        visits.get_by_label("visits planned").fill("20")
        assert visits.locator("tbody tr").count() == 20
        genres = set(demo_data().priors["under 25"].categories)
        assert {
            text.strip() for text in visits.locator("tbody tr td:nth-child(2)").all_inner_texts()
        } <= genres
        before = visits.inner_text()
        visits.get_by_text("draw the visits again").click()
        assert visits.inner_text() != before


def test_own_csv_with_other_columns_and_the_printed_commands(
    browser: Any, written: Path, tmp_path: Path
) -> None:
    rows = [
        ("Nord", "Drama", "40,5"),
        ("Nord", "War", "12"),
        ("Nord", "Comedy", "20"),
        ("Süd", "Drama", "9"),
        ("Süd", "War", "30"),
        ("Süd", "Comedy", "11"),
    ]
    (tmp_path / "votes.csv").write_text(
        "region;genre;votes\n" + "".join(f"{';'.join(row)}\n" for row in rows), encoding="utf-8"
    )
    prior = sv.Prior.from_counts({"Comedy": 20, "Drama": 40.5, "War": 12})
    with visiting(browser, written) as page:
        page.locator("input[type=file]").set_input_files(tmp_path / "votes.csv")
        select(page, "item (the category)").select_option("genre")
        select(page, "count").select_option("votes")
        select(page, "by (group)").select_option("region")
        page.get_by_text("use this table").click()
        assert "amounts are numbers" in page.inner_text("[role=alert]")
        select(page, "decimal").select_option("comma")
        page.get_by_text("use this table").click()
        check_recommendation(page, sv.choose(prior, 2.0, limit=False))
        take = card(page, "Take it with you")
        commands = take.locator("pre").all_inner_texts()
        take.get_by_label("copy: Get the recommendation").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == commands[0]
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(f"{copied} --json")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        chosen = json.loads(done.stdout)["choices"][0]
        assert chosen["sampler"].partition(":")[0].replace("-", "_") == page.inner_text(".answer b")
        assert f"{chosen['row']['mean']:.3f}" == facts(page)["mean distance"]
        subprocess.run(
            [sys.executable, "-m", *shlex.split(commands[1])], cwd=tmp_path, check=True, capture_output=True
        )
        assert set(sv.load_groups(tmp_path / "mechanism.json", policy=ANY)) == {"Nord", "Süd"}
        subprocess.run(
            [sys.executable, "-m", *shlex.split(commands[3])], cwd=tmp_path, check=True, capture_output=True
        )
        ran = subprocess.run([sys.executable, "-c", commands[4]], capture_output=True, text=True, check=True)
        assert ran.stdout.splitlines()[-1] in {"Comedy", "Drama", "War"}


def test_own_people_are_marked_as_private(browser: Any, written: Path, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("who,what\nann,Drama\nann,War\nbob,Comedy\nbob,Opera\n")
    with visiting(browser, written) as page:
        page.locator("input[type=file]").set_input_files(tmp_path / "people.csv")
        select(page, "use it as").select_option("people")
        select(page, "user").select_option("who")
        select(page, "item (the category)").select_option("what")
        page.get_by_text("use this table").click()
        page.wait_for_selector("text=mean distance of your users")
        assert "2 people" in page.inner_text("[role=note]")
        assert "Opera" not in page.inner_text("main")
        assert (
            page.evaluate("getComputedStyle(document.querySelector('[role=note]')).color")
            == "rgb(179, 38, 30)"
        )
        assert "person" not in page.url


def test_near_is_better_than_far(browser: Any, tmp_path: Path) -> None:
    years = {1950 + 5 * k: 1 + k % 4 for k in range(12)}
    (tmp_path / "years.csv").write_text(
        "year,count\n" + "".join(f"{year},{count}\n" for year, count in years.items())
    )
    near = ["--item", "year", "--near", "position=year"]
    assert run("explore", "years.csv", *near, "-o", "page.html", cwd=tmp_path).returncode == 0
    prior = sv.Prior.from_counts({str(year): count for year, count in years.items()})
    choice = sv.choose(prior, 2.0, geometry=sv.Line(list(years)))
    with visiting(browser, tmp_path / "page.html") as page:
        settled(page)
        assert page.inner_text(".answer b") == choice.sampler.name == "nearest"
        assert facts(page)["mean distance"] == f"{choice.row.mean:.3f}"
        assert choice.limit is None
        assert facts(page)["limit"] == "not computed"
        assert card(page, "Many visits, one ε").locator("tbody tr").count() == 12
        for command in card(page, "Take it with you").locator("pre").all_inner_texts()[:2]:
            subprocess.run(
                [sys.executable, "-m", *shlex.split(command)], cwd=tmp_path, check=True, capture_output=True
            )
        lines = card(page, "Take it with you").locator("pre").last.inner_text()
        done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] in map(str, years)


def test_parquet_is_read(browser: Any, written: Path, tmp_path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame({"item": ["a", "b", "c"], "count": [5, 3, 2]})
    for compression in ("zstd", "snappy", "uncompressed"):
        frame.write_parquet(tmp_path / f"{compression}.parquet", compression=compression)
    prior = sv.Prior.from_counts({"a": 5, "b": 3, "c": 2})
    with visiting(browser, written) as page:
        for compression in ("zstd", "snappy", "uncompressed"):
            page.locator("input[type=file]").set_input_files(tmp_path / f"{compression}.parquet")
            page.get_by_text("use this table").click()
            page.wait_for_selector("text=3 categories")
            check_recommendation(page, sv.choose(prior, 2.0, limit=False))


def test_download_save_and_share(browser: Any, written: Path, tmp_path: Path) -> None:
    prior = demo_data().priors["25 to 44"]
    with visiting(browser, written, "#epsilon=2&group=2&person=7") as page:
        with page.expect_download() as waiting:
            page.get_by_text("download mechanism.json").click()
        waiting.value.save_as(tmp_path / "m.json")
        sampler = sv.choose(prior, 2.0, limit=False).sampler
        assert (
            sv.load_groups(tmp_path / "m.json", policy=ANY)["25 to 44"].digest == sv.certify(sampler).digest
        )
        move_to(page, "3")
        select(page, "sampler").select_option("blend")
        assert page.inner_text(".answer b") == "blend"
        page.wait_for_url(re.compile("sampler=blend"))
        assert "group=2" in page.url
        assert "person=7" in page.url
        state, shown = page.url.partition("#")[2], facts(page)
        with page.expect_download() as waiting:
            page.get_by_text("save this page as one file").click()
        waiting.value.save_as(tmp_path / "saved.html")
    with visiting(browser, tmp_path / "saved.html") as page:  # the state is in the file too
        assert page.url.partition("#")[2] == state
        assert page.inner_text(".answer b") == "blend"
        assert facts(page) == shown


def test_the_browser_itself_forbids_every_request(browser: Any, written: Path) -> None:
    """Scripts, pictures, forms and beacons: none reaches a server that listens. (A policy cannot forbid navigation.)"""
    asked: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("access-control-allow-origin", "*")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = f"http://127.0.0.1:{server.server_port}"
    page = browser.new_page()
    page.goto(written.as_uri())
    settled(page)
    page.evaluate(f"""async () => {{
      const quietly = (made) => Promise.resolve().then(made).catch(() => null);
      await quietly(() => fetch('{there}/fetch'));
      await quietly(() => import('{there}/import'));
      navigator.sendBeacon('{there}/beacon', 'x');
      await new Promise((done) => {{ const i = new Image(); i.onload = i.onerror = done; i.src = '{there}/image'; }});
      const form = document.createElement('form');
      form.action = '{there}/form'; document.body.append(form); form.submit();
    }}""")
    page.wait_for_timeout(500)
    assert asked == []
    page.goto(f"{there}/witness")  # the server was there
    assert asked[0] == "/witness"
    page.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_everybody_can_use_it(browser: Any, written: Path, theme: str, width: int) -> None:
    with visiting(browser, written, width=width, theme=theme) as page:
        for summary in page.query_selector_all("summary"):
            summary.click()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if not AXE.is_file():
            pytest.skip("axe-core is not installed: it was not asked")
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate(
            "axe.run().then(found => found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.target).join()))"
        )
        assert found == []


def test_it_prints_on_two_pages(browser: Any, written: Path) -> None:
    with visiting(browser, written) as page:
        data: bytes = page.pdf(format="A4")
        assert (
            data.count(b"/Type /Page\n") <= 2 or data.count(b"/Type /Page") - data.count(b"/Type /Pages") <= 2
        )
