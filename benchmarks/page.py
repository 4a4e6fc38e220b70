"""The explorer's page in a browser: from a key on the slider of ε to the last change of what is in view."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .measure import Line

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SIZES = ((18, 0.3), (100, 0.3), (3000, 0.6))
"""Categories, and the seconds that a move of the slider may take."""
PEOPLE, RECORDS, MOVES = 300, 30, 9
QUIET = 700
"""Milliseconds without a change after which the page is taken to be done."""
WATCH = """() => {
  window.changed = 0;
  const inView = (node) => {
    const one = node.nodeType === 1 ? node : node.parentElement;
    if (!one || one.closest('nav')) return false;
    const box = one.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight && box.width > 0;
  };
  new MutationObserver((all) => {
    if (all.some((one) => inView(one.target))) window.changed = performance.now();
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
  document.addEventListener('keydown', () => { window.pressed = performance.now(); }, true);
}"""

DONE = """([before, quiet]) => document.querySelector('.sv-take').innerText !== before
  && performance.now() > window.changed + quiet"""


def page() -> list[Line]:
    """Seconds from the key to the page, the median of several moves, for small and large public data."""
    if find_spec("playwright") is None or CHROMIUM is None:
        return [Line("the page: chromium or playwright is not here", "–", "–", "–", "", True)]
    lines = []
    with (
        import_module("playwright.sync_api").sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as folder,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for n, most in SIZES:
            with _explorer(Path(folder), n) as address:
                took = statistics.median(_moves(browser, address))
            what = f"a move of the slider of ε, {n:,} categories"
            ratio, shown = f"{took / most:.2f}×", f"{took:.2f} s"
            lines.append(Line(what, shown, f"{most:g} s", ratio, "≤ 1×", took <= most))
        browser.close()
    return lines


def _moves(browser: Any, address: str) -> Iterator[float]:
    """Seconds of each move: half of them to where nobody has been."""
    visit = browser.new_page(viewport={"width": 1280, "height": 900})
    visit.goto(address)
    visit.get_by_role("heading", name="Take it with you").wait_for(timeout=90_000)
    visit.wait_for_timeout(5000)
    visit.evaluate(WATCH)
    visit.get_by_role("slider").first.focus()
    for move in range(MOVES):
        before = visit.locator(".sv-take").inner_text()
        visit.keyboard.press("ArrowRight" if move < (MOVES + 1) // 2 else "ArrowLeft")
        visit.wait_for_function(DONE, arg=[before, QUIET], timeout=30_000)
        yield visit.evaluate("(window.changed - window.pressed) / 1000")
    visit.close()


@contextmanager
def _explorer(folder: Path, n: int) -> Iterator[str]:
    """The address of a running `sottovoce explore` on invented data."""
    random = np.random.default_rng(n)
    q = random.dirichlet(np.full(n, 0.5 + 5 / n)) + 1e-6
    prior, users = folder / f"prior-{n}.csv", folder / f"users-{n}.csv"
    prior.write_text("item,count\n" + "".join(f"item {i},{x:.9f}\n" for i, x in enumerate(q)), "utf-8")
    drawn = random.choice(n, (PEOPLE, RECORDS), p=q / q.sum())
    rows = (f"{user},item {item}\n" for user, items in enumerate(drawn) for item in items)
    users.write_text("user,item\n" + "".join(rows), "utf-8")
    command = [sys.executable, "-m", "sottovoce", "explore", "--no-browser", str(prior), str(users)]
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as running:
        try:
            told = (re.search(r"http://\S+", line) for line in running.stderr or ())
            yield next(found.group() for found in told if found)
        finally:
            running.terminate()


SECTIONS = {"The explorer's page": page}
