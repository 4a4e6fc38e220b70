"""The explorer's page in a real browser, with everything it said and asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CHARTS = (
    "This person's records",
    "What may be released and what is",
    "Distance from this person over ε",
    "Typical distance from these people over ε",
    "Truth, reports and estimate",
    "The kernel of minimax_kernel",
)


class Page:
    """One visit."""

    def __init__(self, browser: Any, url: str, width: int, height: int, theme: str) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
        self.page.on("console", lambda m: self.said.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda problem: self.said.append(str(problem)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("websocket", lambda opened: self.asked.append(opened.url))
        self.page.goto(url)
        self.page.get_by_role("heading", name="Take it with you").wait_for(timeout=90_000)

    def shows(self, text: str, seconds: float = 20) -> None:
        """Wait until a text stands somewhere on the page."""
        self.page.get_by_text(text).locator("visible=true").first.wait_for(timeout=1000 * seconds)

    def becomes(self, read: Callable[[], object], wanted: object, seconds: float = 20) -> None:
        """Wait until what is read is what is wanted: the parts of the page are renewed one after another."""
        end = time.monotonic() + seconds
        while read() != wanted and time.monotonic() < end:
            self.page.wait_for_timeout(50)
        assert read() == wanted

    def text_box(self) -> str:
        """What stands in the box where a person is written."""
        text: str = self.page.locator("textarea").first.input_value()
        return text

    def row(self, sampler: str) -> list[str]:
        """The numbers of a sampler in the table of distances."""
        line = self.page.locator(".sv-table tbody tr", has=self.page.locator("small", has_text=sampler))
        texts: list[str] = line.first.locator("td").all_inner_texts()
        return texts

    def chart(self, name: str) -> Any:
        """A picture by its name."""
        return self.page.locator(f'figure[aria-label="{name}"]')

    def hosts(self) -> set[str]:
        """Every host that was asked for anything."""
        return {url.split("/")[2] for url in self.asked if url.startswith(("http", "ws"))}


@contextmanager
def visiting(
    browser: Any, url: str, width: int = 1280, height: int = 900, theme: str = "light"
) -> Iterator[Page]:
    """A page that is closed again; whatever it was used for, it said nothing and asked nobody else."""
    visit = Page(browser, url, width, height, theme)
    yield visit
    assert visit.said == []
    assert visit.hosts() == {url.split("/")[2]}
    visit.page.close()
