"""The explorer: its views against the library, and the page itself in a real browser.

The browser part needs Debian's chromium and playwright (`make test-browser`) and skips visibly without them.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from explorer import chromium, exploring, need_browser

import sottovoce as sv
from sottovoce.demo import demo_data

pytest.importorskip("marimo")
pytest.importorskip("altair")
from sottovoce.explore import charts, given, views

PRIOR = demo_data().priors["25 to 44"]
USERS = demo_data().users("25 to 44").toarray()


def test_views_show_the_librarys_numbers() -> None:
    samplers = views.make(PRIOR, 3.0, ["kernel_clip", "minimax_kernel"])
    p = USERS[3]
    intervals, points = views.box_rows(samplers, p)
    clip = sv.kernel_clip(PRIOR, 3.0)
    by_name = {row["category"]: row for row in intervals}
    for i, name in enumerate(PRIOR.categories):
        assert by_name[name]["floor"] == clip.floor[i]
        assert by_name[name]["cap"] == min(np.exp(3.0) * clip.floor[i], 1)
        assert by_name[name]["prior"] == PRIOR.probabilities[i]
    laws = {(row["law"], row["category"]): row["probability"] for row in points}
    for sampler in samplers:
        for name, value in zip(PRIOR.categories, sampler.distribution(p), strict=True):
            assert laws[sampler.name, name] == value
    table = views.distance_table(samplers, p)
    assert f"| kernel_clip | {clip.divergence(p, sv.TV):.4f} | {clip.worst_case(sv.TV):.4f} | yes |" in table
    heat = views.kernel_rows(samplers[1])
    assert heat is not None
    assert len(heat) == 18 * 18
    assert views.kernel_rows(samplers[0]) is None
    for chart in (
        charts.box(intervals, points),
        charts.heat_map(heat),
        *charts.tradeoff(views.tradeoff_rows(PRIOR, ["blend"], p), 3.0),
    ):
        assert chart.to_dict()["$schema"]


def test_a_typed_user() -> None:
    prior = sv.Prior(["Science fiction", "War"], [0.5, 0.5])
    assert views.typed_user("Science fiction 3\n\nWar: 1", prior).tolist() == [0.75, 0.25]
    assert views.as_text(np.array([0.75, 0.25]), prior) == "Science fiction 15\nWar 5"
    numbers = sv.Prior([1, 2], [0.5, 0.5])
    assert views.typed_user("1 3\n2 1", numbers).tolist() == [0.75, 0.25]
    many = sv.Prior.uniform(range(500))
    assert views.typed_user(views.as_text(many.probabilities, many), many).sum() == pytest.approx(1)
    for text in ("", "War", "War -1", "Opera 3", "War 0", "3"):
        with pytest.raises(sv.UserDataError):
            views.typed_user(text, prior)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"item,count\na,0\nb,1\n", "category 'a' has 0"),
        (b"thing,count\na,1\nb,1\n", "there is no column 'item'; the table has thing, count"),
        (b"", "my.csv is empty"),
    ],
)
def test_bad_uploads_are_named_as_the_visitor_knows_them(content: bytes, message: str) -> None:
    with pytest.raises(sv.SottovoceError, match=re.escape(message)) as caught:
        views.uploaded_prior(content, "my.csv")
    assert "/" not in str(caught.value)
    assert views.uploaded_prior(b"item,count\na,3\nb,1\n", "my.csv").probabilities.tolist() == [0.75, 0.25]


def test_names_are_text_and_charts_offer_no_other_host() -> None:
    evil = '<img src="https://example.org/x">'
    assert "<" not in views.shown(evil)
    assert views.shown("a_b*c") == r"a\_b\*c"
    prior = sv.Prior([evil, "b"], [0.5, 0.5])
    rows = views.box_rows(views.make(prior, 1.0, ["kernel_clip"]), np.array([0.5, 0.5]))
    actions = charts.box(*rows).to_dict()["usermeta"]["embedOptions"]["actions"]
    assert actions == {"export": True, "source": False, "compiled": False, "editor": False}
    with pytest.raises(sv.CertificateError, match="too rare to certify"):
        views.uploaded_prior(b"item,count\na,100000000000000000000\nb,1\n", "x.csv")
    wide = sv.Prior.uniform(range(6000))
    intervals, points = views.box_rows(views.make(wide, 1.0, ["kernel_clip"]), wide.probabilities)
    assert (len(intervals), len(points)) == (views.MOST_SHOWN, 2 * views.MOST_SHOWN)
    assert views.left(None, []) == 0


def packed(kind: str) -> bytes:
    """The same small table in a wrapping that a reader might open."""
    plain, box = b"item,count\na,3\nb,1\n", io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(box, "w") as archive:
            archive.writestr("a.csv", plain)
    elif kind in ("parquet", "ipc"):
        getattr(pl.read_csv(plain), f"write_{kind}")(box)
    made = {"gzip": gzip.compress(plain), "zlib": zlib.compress(plain), "zstd": b"\x28\xb5\x2f\xfd" + plain}
    return made.get(kind, box.getvalue())


@pytest.mark.parametrize("kind", ["gzip", "zlib", "zstd", "zip", "parquet", "ipc"])
def test_a_packed_upload_is_refused_before_it_is_opened(kind: str) -> None:
    with pytest.raises(sv.TableError, match=r"my\.csv is compressed or binary: upload a plain CSV file"):
        views.uploaded_prior(packed(kind), "my.csv")


def test_a_large_upload_is_refused() -> None:
    with pytest.raises(sv.TableError, match=r"my\.csv has more than 10 MB"):
        views.uploaded_prior(b"item,count\n" + b"a,1\n" * 2_500_000, "my.csv")


def test_files_of_the_command_line_reach_the_page(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("item,count\na,3\nb,1\n")
    (tmp_path / "users.csv").write_text("user,item\nu,a\nu,b\nv,c\n")
    assert given.taken() == given.read_given(None, None) == given.Given()
    read = given.read_given(tmp_path / "prior.csv", tmp_path / "users.csv")
    assert read.priors["all"].probabilities.tolist() == [0.75, 0.25]
    assert read.users["all"].p.toarray().tolist() == [[0.5, 0.5]]
    assert "1 rows with unknown items dropped" in read.left_out


def test_the_command_refuses_what_it_cannot_show(tmp_path: Path) -> None:
    prior, users = tmp_path / "prior.csv", tmp_path / "users.csv"
    prior.write_text("item,count\na,3\nb,1\n")
    users.write_text("who,what\nsecret,a\n")
    for files in ([tmp_path / "none.csv"], [prior, tmp_path / "none.csv"], [prior, users]):
        command = [sys.executable, "-m", "sottovoce", "explore", *map(str, files), "--no-browser"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {files[-1]}")
        assert done.stderr.count("\n") == 1
        assert "secret" not in done.stderr


# --- the page in a browser ---


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    need_browser()
    with exploring("--no-browser") as running:
        yield running.address


class Page:
    """The page with everything it said and asked for."""

    def __init__(self, browser: Any, url: str, width: int) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": 5200 if width > 600 else 7000})
        self.page.on("console", lambda m: self.said.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda problem: self.said.append(str(problem)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)
        self.heading("Take it with you").wait_for(timeout=90_000)

    def heading(self, name: str) -> Any:
        return self.page.get_by_role("heading", name=name)

    def shows(self, text: str, seconds: float = 20) -> None:
        self.page.get_by_text(text).first.wait_for(timeout=1000 * seconds)

    def row(self, sampler: str) -> list[str]:
        line = self.page.locator("tr", has=self.page.locator("td", has_text=re.compile(f"^{sampler}$")))
        texts: list[str] = line.first.locator("td").all_inner_texts()
        return texts


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def distances(epsilon: float, p: np.ndarray, name: str, prior: sv.Prior = PRIOR) -> list[str]:
    sampler = sv.SAMPLERS[name](prior, epsilon)
    return [f"{float(sampler.divergence(p, sv.TV)):.4f}", f"{sampler.worst_case(sv.TV):.4f}"]


@pytest.mark.browser
def test_a_visit(address: str, browser: Any, tmp_path: Path) -> None:
    visit = Page(browser, address, 1280)
    page = visit.page
    assert visit.row("kernel_clip")[1:3] == distances(3.0, USERS[3], "kernel_clip")
    # move ε
    slider = page.get_by_role("slider").first
    slider.focus()
    begin = time.perf_counter()
    page.keyboard.press("ArrowRight")
    visit.shows(distances(3.5, USERS[3], "kernel_clip")[0])
    print(f"a slider move took {time.perf_counter() - begin:.2f} s")
    assert visit.row("minimax_kernel")[1:3] == distances(3.5, USERS[3], "minimax_kernel")
    # switch samplers
    page.get_by_role("checkbox", name="blend").click()
    visit.shows(distances(3.5, USERS[3], "blend")[0])
    assert visit.row("blend")[1:3] == distances(3.5, USERS[3], "blend")
    # shape a user
    box = page.locator("textarea").first
    box.fill("War 3\nDrama 1")
    box.blur()
    shaped = PRIOR.frequencies(["War"] * 3 + ["Drama"])
    visit.shows(distances(3.5, shaped, "kernel_clip")[0])
    box.fill("Opera 3")
    box.blur()
    visit.shows("each line is a category of the prior and a number")
    box.fill("War 3\nDrama 1")
    box.blur()
    # release until the budget refuses: 9 allows two releases of 3.5
    for text in ("Left of the budget: 5.5", "Left of the budget: 2", "Refused"):
        page.get_by_role("button", name="release one category").click()
        visit.shows(text)
    # download the mechanism
    with page.expect_download(timeout=30_000) as download:
        page.get_by_text("mechanism.json").first.click()
    download.value.save_as(tmp_path / "mechanism.json")
    assert sv.load(tmp_path / "mechanism.json") == sv.certify(sv.kernel_clip(PRIOR, 3.5))
    # the kernel, and what a collector would conclude
    visit.shows("Each line is what is released for somebody who holds only that category")
    page.locator("select", has=page.locator("option", has_text="minimax_kernel")).last.select_option(
        "minimax_kernel"
    )
    visit.shows("What the collector concludes.")
    visit.shows("1,000 reports of minimax_kernel at ε = 3.5")
    # upload public data, good and bad
    upload = page.locator("input[type=file]").first
    for name, content, message in (
        ("zero.csv", "item,count\na,0\nb,1\n", "category 'a' has 0"),
        ("column.csv", "thing,count\na,1\nb,1\n", "there is no column 'item'"),
        ("good.csv", "item,count\na,6\nb,3\nc,1\n", "good.csv, 3 categories"),
    ):
        (tmp_path / name).write_text(content)
        upload.set_input_files(tmp_path / name)
        visit.shows(message)
    assert visit.said == []
    assert {url.split("/")[2] for url in visit.asked if url.startswith(("http", "ws"))} == {
        address.split("/")[2]
    }
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_the_window(address: str, browser: Any, width: int) -> None:
    visit = Page(browser, address, width)
    visit.page.wait_for_timeout(2000)
    charts_drawn = visit.page.locator("canvas, svg.marks")
    assert charts_drawn.count() >= 4
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    folder = os.environ.get("SOTTOVOCE_SCREENSHOTS")
    if folder:  # the tutorial's pictures
        clip = {"x": 0, "y": 0, "width": width, "height": 1840 if width > 600 else 1900}
        visit.page.screenshot(path=str(Path(folder) / f"explore-{width}.png"), clip=clip)
    assert visit.said == []
    visit.page.close()


def test_the_page_says_what_shuffling_adds_and_whom_to_trust() -> None:
    """The number is an upper bound: not below `amplified`, and at most a few per cent above it."""
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5]), 2.0))
    words = views.shuffled_words(mechanism)
    central = float(words.split("(")[1].split(",")[0])
    exact = sv.amplified(mechanism, 10_000, 1e-6)
    assert exact * 0.95 <= central <= exact * 1.1  # two digits are shown
    assert "somebody whom they trust" in words
    assert "ε = 2 of the single report holds" in words
    large = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5]), 20.0))
    assert "would add nothing" in views.shuffled_words(large)
