"""The map of the invented town in a real browser: nights pass, a home is moved, attacks are replayed."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from chromium import chromium, need_browser

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    need_browser()
    sys.path.insert(0, str(ROOT / "examples" / "places"))
    import town  # type: ignore[import-not-found]

    server = uvicorn.Server(uvicorn.Config(town.site(town.invent_town()), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    sys.path.pop(0)


def guesses(page: Any) -> list[tuple[float, float]]:
    """What the four maps say: tonight's distance, and the attacker's."""
    texts = [figure.inner_text() for figure in page.query_selector_all("figure p")]
    return [tuple(map(float, re.findall(r"([\d.]+) km", text))) for text in texts]  # type: ignore[misc]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_sixty_nights_and_a_move(address: str, theme: str, width: int) -> None:
    with chromium() as browser:
        page = browser.new_page(color_scheme=theme, viewport={"width": width, "height": 900})
        wrong: list[str] = []
        page.on("pageerror", lambda problem: wrong.append(str(problem)))
        page.on("request", lambda sent: None if sent.url.startswith(address) else wrong.append(sent.url))
        page.goto(address)
        page.wait_for_selector("#night:not([disabled])")
        page.click("#month")
        stream, split, _, fresh = guesses(page)
        assert fresh[1] < 1  # thirty nights are averaged away
        assert max(stream[0], split[0]) < 30
        page.click("#move")
        page.click("#night")
        assert guesses(page)[2][1] == 0  # who knows the first home has the second
        assert "Night 31" in page.inner_text("#status")
        page.select_option("#epsilon", "8")
        page.wait_for_function("document.querySelector('figcaption').textContent.includes('ε = 8')")
        page.click("svg >> nth=1", position={"x": 40, "y": 40})
        page.click("#month")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if AXE.is_file():
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run().then(found => found.violations.map(one => one.id))")
            assert found == []
        assert wrong == []
