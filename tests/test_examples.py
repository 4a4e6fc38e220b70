"""The examples run, write nothing that stays, and say what is true."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sottovoce as sv

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, folder: Path) -> str:
    """What an example prints. It starts in an empty folder, and that folder is empty afterwards."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    return done.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_has_cells(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    assert sum(line.startswith("# %% ") for line in lines) >= 4
    assert f"def test_the_{path.stem}" in Path(__file__).read_text(encoding="utf-8")


def test_the_privacy_engineer_is_charged_once_and_refused_twice(tmp_path: Path) -> None:
    out = run("privacy_engineer", tmp_path)
    ratio = float(re.search(r"more than ([\d.]+) ≤ e\^ε", out)[1])  # type: ignore[index]
    assert ratio == pytest.approx(math.exp(2), abs=1e-6)
    assert "the same mechanism is True" in out
    assert out.count("refused: ") == 2
    assert re.search(r"released: (Drama|Comedy|War|Western); asked again, the answer is the same: True", out)
    assert "left for ann in this epoch: 0\n" in out
    bound = float(re.search(r"certificate holds, ε is at least ([\d.]+), passed True", out)[1])  # type: ignore[index]
    assert 1 < bound <= 2  # a bound near zero would mean that the audit saw nothing


def test_the_researcher_sees_that_no_user_loses(tmp_path: Path) -> None:
    out = run("researcher", tmp_path)
    rows = {
        name: [float(number) for number in numbers.split()]
        for name, numbers in re.findall(r"^([a-z_]+)\S* +((?:\d\.\d{3} ?){3})$", out, re.MULTILINE)
    }
    assert list(rows) == list(sv.SAMPLERS)
    for mean, maximum, worst in rows.values():
        assert mean <= maximum <= worst + 1e-3
    assert rows["kernel_clip"][0] < rows["minimax_kernel"][0]
    assert rows["prior_minimax"][2] < rows["minimax_kernel"][2]
    assert out.count("for 100% of the users") == 3
    stated, attained = re.search(r"closed form ([\d.]+), the paper's sampler ([\d.]+)", out).groups()  # type: ignore[union-attr]
    assert stated == attained
    assert int(re.search(r"box.png, (\d+) kB", out)[1]) > 5  # type: ignore[index]


def test_the_analyst_finds_the_truth_and_not_the_survey(tmp_path: Path) -> None:
    out = run("analyst", tmp_path)
    row = r"^(\w+) +([\d.]+) +([\d.]+) +([\d.]+)  \[([\d.]+), ([\d.]+)\]$"
    rows = {name: [float(x) for x in numbers] for name, *numbers in re.findall(row, out, re.MULTILINE)}
    assert list(rows) == ["Comedy", "Drama", "War", "Western"]
    for truth, survey, value, low, high in rows.values():
        half = (high - low) / 2  # 2.5 standard errors: three of these are missed once in 10^13
        assert abs(value - truth) < 3 * half
        assert abs(value - survey) > abs(value - truth)  # survey and truth differ by ten standard errors
    assert "reports; there are 40,000" in out


def test_the_where_i_live_stays_near_for_sixty_nights(tmp_path: Path) -> None:
    out = run("where_i_live", tmp_path)
    before, after = (
        [float(far) for far in re.search(rf"{when} the move: +(.*)", out)[1].split()]  # type: ignore[index]
        for when in ("before", "after")
    )
    assert len(before) == len(after) == 30
    assert max(before + after) < 40  # the town is 20 km wide
    assert "one epsilon of 16" in out


def test_the_town_and_its_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight people, two of them attacked: each attack does what docs/places.md says of it."""
    monkeypatch.syspath_prepend(EXAMPLES / "places")
    import town  # type: ignore[import-not-found]

    monkeypatch.setattr(town, "NIGHTS", 12)
    monkeypatch.setattr(town, "MOVE", 6)
    found = {(one.method, one.epsilon): one for one in town.measure(8, epsilons=(16.0,), attacked=1)}
    stream = found["stream", "16 for ever"]
    assert stream.before < 5 < found["split", "16/60 a night"].before + 3
    assert found["fixed offset", "none"].attack == pytest.approx(0, abs=1e-9)
    assert (
        found["fresh noise", "none for 60 nights"].attack < found["fresh noise", "none for 60 nights"].before
    )
    text = town.table(list(found.values()))
    assert text.count("\n") == 5
    made = town.invent_town()
    assert len(made.prior) == len(made.tree) == 100
    inside = made.cell_of(made.middles)
    assert inside.tolist() == list(range(100))
