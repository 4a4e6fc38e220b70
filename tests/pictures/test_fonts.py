"""Names in other scripts: drawn by a font that is there, and told once where there is none."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from matplotlib import font_manager

import sottovoce as sv
from sottovoce.pictures import plots

CJK, PRIVATE = "\u6f22\u5b57", "\U0010fabc"  # two Chinese characters, and one that no font should have


def picture(tmp_path: Path, *names: str) -> Path:
    prior = sv.Prior(list(names), [1 / len(names)] * len(names))
    axes = sv.plot_box([sv.kernel_clip(prior, 1.0)], prior.probabilities)
    return plots.save_figure(axes.figure, tmp_path / "box.png")  # type: ignore[arg-type]  # a whole figure


def test_characters_of_the_usual_font_need_no_other() -> None:
    assert plots.families_for("Ærøskøbing ε ✓ عربي") == (["DejaVu Sans"], set())


def test_what_no_font_draws_is_said_once_and_the_picture_is_there(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="no font on this machine draws 1 characters") as told:
        path = picture(tmp_path, f"x{PRIVATE}", f"y{PRIVATE}", "plain")
    assert len(told) == 1
    assert path.stat().st_size > 5000


def test_a_font_that_has_the_characters_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A font of another family stands for one of another script: the usual one is made to lack a letter."""
    serif = font_manager.findfont("DejaVu Serif")
    usual = font_manager.findfont("DejaVu Sans")
    monkeypatch.setattr(plots, "_faces", lambda: {"DejaVu Sans": usual, "DejaVu Serif": serif})
    known = plots._characters

    def lacking(file: str) -> frozenset[int]:
        return known(file) - ({ord("Ж")} if file == usual else set())

    monkeypatch.setattr(plots, "_characters", lacking)
    assert plots.families_for("Ж") == (["DejaVu Sans", "DejaVu Serif"], set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture(tmp_path, "Ж", "plain")


def test_chinese_is_drawn_where_a_font_is_there() -> None:
    families, missing = plots.families_for(CJK)
    if missing:
        pytest.skip("no font with Chinese characters on this machine")
    assert len(families) > 1
