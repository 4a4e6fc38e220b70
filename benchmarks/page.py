"""The explorer's page in a browser: seconds until the recommendation is there, and seconds of a step of ε."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.cli.explore import Source
from sottovoce.cli.explore import page as page_of
from sottovoce.groups import Groups

from .measure import Line

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SIZES = ((18, 0.5, 0.1), (3000, 1.5, 0.3))
"""Categories, and the seconds that opening and a step may take."""
TIMES = 9
QUIET = 600
"""Milliseconds without a change after which the page is done."""
OPENED = """() => new Promise((done) => {
  const look = () => document.querySelector('.answer') ? done(performance.now()) : setTimeout(look, 2);
  look();
})"""
STEP = """([key, quiet]) => new Promise((done) => {
  const slider = document.querySelector('nav input');
  const inView = (node) => {
    const one = node.nodeType === 1 ? node : node.parentElement;
    const box = one && one.getBoundingClientRect();
    return box && !one.closest('nav') && box.bottom > 0 && box.top < innerHeight && box.width > 0;
  };
  let changed = 0;
  const watch = new MutationObserver((all) => {
    if (all.some((one) => inView(one.target))) changed = performance.now();
  });
  watch.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
  const begin = performance.now();
  slider.value = Number(slider.value) + key;
  slider.dispatchEvent(new Event('input', {bubbles: true}));
  const wait = () => {
    if (changed && performance.now() > changed + quiet) { watch.disconnect(); done(changed - begin); }
    else setTimeout(wait, 20);
  };
  wait();
})"""


def page() -> list[Line]:
    """Medians of nine, for Zipf priors; half of the steps lead where nobody has been."""
    if find_spec("playwright") is None or CHROMIUM is None:
        return [Line("the page: chromium or playwright is not here", "–", "–", "–", "", True)]
    lines = []
    with (
        import_module("playwright.sync_api").sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as folder,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for n, opening, step in SIZES:
            path = Path(folder, f"{n}.html")
            prior = sv.Prior.from_counts(dict(enumerate((1 / np.arange(1, n + 1)).tolist())))
            path.write_text(page_of(Groups({"all": prior}), Source("prior.csv")), "utf-8")
            opened = statistics.median(_opened(browser, path) for _ in range(TIMES))
            stepped = statistics.median(_steps(browser, path))
            for what, took, most in (("opening", opened, opening), ("a step of ε", stepped, step)):
                ratio = f"{took / most:.2f}×"
                shown = f"{what}, {n:,} categories"
                lines.append(Line(shown, f"{took:.3f} s", f"{most:g} s", ratio, "≤ 1×", took <= most))
        browser.close()
    return lines


def _opened(browser: Any, path: Path) -> float:
    visit = browser.new_page(viewport={"width": 1280, "height": 900})
    visit.goto(path.as_uri(), wait_until="commit")
    took: float = visit.evaluate(OPENED) / 1000
    visit.close()
    return took


def _steps(browser: Any, path: Path) -> list[float]:
    visit = browser.new_page(viewport={"width": 1280, "height": 900})
    visit.goto(path.as_uri())
    visit.evaluate(OPENED)
    keys = [1] * ((TIMES + 1) // 2) + [-1] * (TIMES // 2)
    took = [visit.evaluate(STEP, [key, QUIET]) / 1000 for key in keys]
    visit.close()
    return took


SECTIONS = {"The explorer's page": page}
