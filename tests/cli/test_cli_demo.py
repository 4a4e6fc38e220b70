"""`sottovoce demo`: what it prints is what its files hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from command import run

import sottovoce as sv
from sottovoce.demo import GROUPS, demo_data
from sottovoce.release.file import ANY


def test_demo_prints_a_table_and_saves_a_picture(demo: Path) -> None:
    printed = (demo / "printed.txt").read_text()
    assert (demo / "comparison.png").read_bytes().startswith(b"\x89PNG")
    for name in sv.SAMPLERS:
        assert name in printed
    assert "2,000 members, 18 genres, 3 age groups" in printed
    assert "keeps the prior" in printed
    assert sorted(path.name for path in demo.iterdir()) == [
        "comparison.png", "estimate.png", "genres.txt", "mechanism.json", "members.csv", "page.html",
        "printed.txt", "survey.csv",
    ]  # fmt: skip
    assert "2,000 members in" in printed
    assert "what the collector learns about 25 to 44" in printed


def test_the_demos_digest_is_that_of_the_file_it_wrote(demo: Path) -> None:
    mechanisms = sv.load_groups(demo / "mechanism.json", policy=ANY)
    assert set(mechanisms) == set(GROUPS)
    assert f"{mechanisms['25 to 44'].digest[:16]}…" in (demo / "printed.txt").read_text()
    done = run(
        "release",
        "--max-epsilon",
        "100",
        "mechanism.json",
        "members.csv",
        "--by",
        "group",
        "-o",
        "-",
        "--quiet",
        cwd=demo,
    )
    assert len(done.stdout.splitlines()) == 2001


def test_the_demos_page_holds_what_the_demo_printed(demo: Path) -> None:
    text = (demo / "page.html").read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(found)
    assert [group["name"] for group in data["groups"]] == list(GROUPS)
    assert data["source"]["prior"] == str(demo / "survey.csv")
    printed = (demo / "printed.txt").read_text()
    cells = [cell for result in data["results"] for row in result["rows"] for cell in row]
    assert len(cells) > 90
    assert all(cell in printed for cell in cells)
    truth: np.ndarray = np.asarray(demo_data().users("25 to 44").mean(axis=0)).ravel()
    assert f"{truth[0]:.3f}" in cells
