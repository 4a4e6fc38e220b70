"""The explorer's page in a real browser: a visit, its widths and themes, its keys, and what axe-core finds.

It needs Debian's chromium and playwright (`make test-browser`) and skips visibly without them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explorer import chromium, exploring, need_browser

import sottovoce as sv
from page import CHARTS, Page, visiting
from sottovoce.demo import demo_data
from sottovoce.release.file import ANY

pytestmark = pytest.mark.browser
PRIOR = demo_data().priors["25 to 44"]
COUNTS = demo_data().members["25 to 44"]
AXE = Path(__file__).parents[2] / "build/axe/node_modules/axe-core/axe.min.js"
SIZES = [(1440, 900), (1024, 768), (390, 844)]

OVERFLOWING = """() => [...document.querySelectorAll('nav *, .sv-card *')]
    .flatMap((one) => one.shadowRoot ? [...one.shadowRoot.querySelectorAll('button')] : [])
    .filter((one) => one.scrollHeight > one.clientHeight + 2 || one.scrollWidth > one.clientWidth + 2)
    .map((one) => one.innerText)"""
"""Buttons whose words do not fit into them."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    need_browser()
    with exploring("--no-browser") as running:
        yield running.address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def distance(epsilon: float, counts: np.ndarray, name: str) -> str:
    sampler = sv.fitted(PRIOR, epsilon) if name == "fitted" else sv.SAMPLERS[name](PRIOR, epsilon)
    return f"{float(sampler.divergence(counts / counts.sum(), sv.TV)):.4f}"


def test_a_visit(address: str, browser: Any, tmp_path: Path) -> None:
    with visiting(browser, address) as visit:
        page = visit.page
        visit.becomes(lambda: visit.row("kernel_clip")[:1], [distance(3.0, COUNTS[3], "kernel_clip")])
        # move ε: the advice, the distances and the odds follow
        page.get_by_role("slider").first.focus()
        page.keyboard.press("ArrowRight")
        visit.shows("at ε = 3.5 take")
        visit.shows(distance(3.5, COUNTS[3], "kernel_clip"))
        visit.becomes(lambda: visit.row("minimax_kernel")[:1], [distance(3.5, COUNTS[3], "minimax_kernel")])
        visit.shows("33.2")  # e^3.5, upwards
        # another sampler, with its sentence on a tap
        page.get_by_role("checkbox", name="prior_minimax").click()
        visit.shows(distance(3.5, COUNTS[3], "prior_minimax"))
        page.get_by_label("What is fair to everyone?").click()
        visit.shows("The person it serves worst is served as well as any private method")
        shape_a_person(visit)
        release_until_refused(visit)
        # what the collector concludes, from the reports of as many people as one likes
        page.get_by_label("release with").select_option("minimax_kernel")
        visit.shows("1,000 reports of minimax_kernel at ε = 3.5")
        page.get_by_role("slider").last.focus()
        page.keyboard.press("ArrowLeft")
        visit.shows("300 reports of minimax_kernel")
        with page.expect_download(timeout=30_000) as download:
            page.get_by_text("mechanism.json").first.click()
        download.value.save_as(tmp_path / "mechanism.json")
        assert sv.load(tmp_path / "mechanism.json", policy=ANY) == sv.certify(sv.minimax_kernel(PRIOR, 3.5))
        upload_public_data(visit, tmp_path)


def shape_a_person(visit: Page) -> None:
    """By the text box, by a click on a bar and by a button; a mistake is told and changes nothing."""
    box = visit.page.locator("textarea").first
    box.fill("War 3\nDrama 1")
    box.blur()
    shaped = np.bincount(
        [PRIOR.categories.index("War")] * 3 + [PRIOR.categories.index("Drama")], minlength=18
    )
    visit.shows(distance(3.5, shaped, "kernel_clip"))
    visit.page.locator(".sv-own").first.click()
    visit.shows("5 records in 2 categories")
    visit.page.get_by_role("button", name="−1 Drama").click()
    visit.shows("4 records in 1 category")
    visit.becomes(visit.text_box, "War 4")
    visit.page.locator("textarea").first.fill("Opera 3")
    visit.page.locator("textarea").first.blur()
    visit.shows("each line is a category of the prior and a number")
    visit.shows("4 records in 1 category")


def release_until_refused(visit: Page) -> None:
    """A budget of 30 pays for eight releases of 3.5: ten at once bring eight answers and a refusal."""
    visit.page.get_by_role("button", name="release one category").click()
    visit.shows("Left of the budget: 26.5")
    visit.page.get_by_role("button", name="release ten").click()
    visit.shows("Refused: 3.5 is more than the 2 that was left.")
    tiles = visit.page.locator(".sv-tile")
    visit.becomes(tiles.count, 9)
    names = tiles.all_inner_texts()
    assert names[0] == "refused"
    assert set(names[1:]) <= set(PRIOR.categories)
    visit.page.get_by_role("button", name="start over").click()
    visit.shows("Nothing released yet.")


def upload_public_data(visit: Page, folder: Path) -> None:
    """Good and bad files."""
    upload = visit.page.locator("input[type=file]").first
    for name, content, message in (
        ("zero.csv", "item,count\na,0\nb,1\n", "category 'a' has 0"),
        ("column.csv", "thing,count\na,1\nb,1\n", "there is no column 'item'"),
        ("good.csv", "item,count\na,6\nb,3\nc,1\n", "good.csv, 3 categories"),
    ):
        (folder / name).write_text(content)
        upload.set_input_files(folder / name)
        visit.shows(message)
    visit.shows("an invented user")


def test_a_long_history_is_shown_as_it_is(browser: Any, tmp_path: Path) -> None:
    """A user with 1,120 rows shows 1,120, and looking at them changes nothing."""
    rows = ["long,a"] * 613 + ["long,b"] * 331 + ["long,c"] * 176
    (tmp_path / "prior.csv").write_text("item,count\na,9\nb,7\nc,3\nd,1\n")
    (tmp_path / "users.csv").write_text("\n".join(["user,item", *rows, "short,d"]) + "\n")
    with (
        exploring("--no-browser", tmp_path / "prior.csv", tmp_path / "users.csv") as running,
        visiting(browser, running.address) as visit,
    ):
        visit.page.get_by_role("slider").nth(1).focus()
        for key, words, text in (
            ("Home", "1,120 records in 3 categories", "a 613\nb 331\nc 176"),
            ("End", "1 record in 1 category", "d 1"),
            ("Home", "1,120 records in 3 categories", "a 613\nb 331\nc 176"),
        ):
            visit.page.keyboard.press(key)
            visit.shows(words)
            visit.becomes(visit.text_box, text)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_controls_are_in_view_while_each_chart_is(
    address: str, browser: Any, width: int, height: int
) -> None:
    with visiting(browser, address, width, height) as visit:
        page = visit.page
        for name in CHARTS:
            chart = visit.chart(name)
            assert chart.locator("figcaption").inner_text().strip()  # the numbers in words
            for where in ("start", "center", "end"):
                chart.evaluate("(chart, where) => chart.scrollIntoView({block: where})", where)
                slider = page.get_by_role("slider").first.bounding_box()
                assert 0 <= slider["y"] <= height - slider["height"]
                assert 0 <= slider["x"] <= width - slider["width"]
        assert page.evaluate(OVERFLOWING) == []
        for scrolled in ("document.documentElement", "document.querySelector('#App')"):
            assert page.evaluate(f"{scrolled}.scrollWidth") <= width
        left = {name: visit.chart(name).bounding_box()["x"] for name in CHARTS[:4]}
        assert (left[CHARTS[0]] < left[CHARTS[1]]) == (left[CHARTS[2]] < left[CHARTS[3]]) == (width > 1180)
        if width < 760:  # on a phone the other controls are one tap away
            person = page.locator(".sv-rest")
            assert not person.is_visible()
            page.get_by_label("all controls").check()
            assert person.is_visible()


@pytest.mark.skipif(
    not os.environ.get("SOTTOVOCE_SCREENSHOTS"), reason="renews the pictures of the documents"
)
@pytest.mark.parametrize(
    ("width", "height", "theme", "below"), [(1280, 1500, "light", 0), (390, 1150, "dark", 1450)]
)
def test_pictures_of_the_documents(
    address: str, browser: Any, width: int, height: int, theme: str, below: int
) -> None:
    with visiting(browser, address, width, height, theme) as visit:
        visit.page.evaluate("y => document.querySelector('#App').scrollTo(0, y)", below)
        visit.page.wait_for_timeout(1000)
        file = Path(os.environ["SOTTOVOCE_SCREENSHOTS"]) / f"explore-{width}.png"
        visit.page.screenshot(path=str(file))
        assert 20_000 < file.stat().st_size < 400_000  # a page, not an empty one, and fit for the tree


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_axe_finds_nothing_serious(address: str, browser: Any, width: int, height: int, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test-browser does it where npm is there")
    with visiting(browser, address, width, height, theme) as visit:
        page = visit.page
        if width < 760:
            page.get_by_label("all controls").check()
        page.get_by_role("button", name="release ten").click()
        visit.shows("Left of the budget: 0")
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        page.wait_for_timeout(1000)  # names of controls are given within a moment
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert found["passes"]
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []
        background = page.evaluate("getComputedStyle(document.querySelector('.sv-card')).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(24, 32, 42)"}[theme]


def test_every_control_is_reached_by_keys(address: str, browser: Any) -> None:
    """Tab goes through the panel and the cards; a box is checked with the space bar."""
    with visiting(browser, address) as visit:
        page = visit.page
        named = """() => { let one = document.activeElement;
            while (one && one.shadowRoot && one.shadowRoot.activeElement) one = one.shadowRoot.activeElement;
            const host = one.getRootNode().host;
            const label = one.getAttribute('aria-label') || one.innerText || one.id || '';
            return (host ? host.tagName.toLowerCase() : one.tagName.toLowerCase()) + ' ' + label; }"""
        page.locator("h1").click()
        reached = []
        for _ in range(75):
            page.keyboard.press("Tab")
            reached.append(page.evaluate(named))
        text = "\n".join(reached)
        for kind, least in (
            ("marimo-slider", 3), ("marimo-checkbox", 5), ("marimo-dropdown", 2), ("marimo-file", 1),
            ("marimo-text-area", 1), ("marimo-number", 1), ("summary", 6), ("marimo-button", 27),
        ):  # fmt: skip
            assert sum(one.startswith(kind) for one in reached) >= least, (kind, text)
        page.get_by_role("checkbox", name="prior_minimax").focus()
        page.keyboard.press("Space")
        visit.shows(distance(3.0, COUNTS[3], "prior_minimax"))
