"""The pictures that stand beside the paper's show the numbers they should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest

import sottovoce as sv
from experiments import movielens, recursion, synthetic
from experiments.results import PAPERS


def test_the_kl_panel_of_figure_2_against_the_recursion_and_a_bisection() -> None:
    at = (0, 45, 99)
    everyone = synthetic.users()[list(at)]
    rounds: dict[str, list[list[float]]] = {name: [] for name in PAPERS}
    for i in range(10):
        q = np.random.RandomState(42 + i).uniform(size=100)
        q /= q.sum()
        kernel = oracles.algorithm_1_any_order(q, 8.0)
        rounds["minimax_kernel"].append([float((p * np.log(p / (p @ kernel))).sum()) for p in everyone])
        low, high = q * np.exp(-4.0), q * np.exp(4.0)
        values = []
        for p in everyone:
            small, large = 1e-9, 1e9  # C of the paper's equation for the mollifier; p has no zeros
            for _ in range(300):
                middle = np.sqrt(small * large)
                total = np.clip(p / middle, low, high).sum()
                small, large = (middle, large) if total > 1 else (small, middle)
            values.append(float((p * np.log(p / np.clip(p / large, low, high))).sum()))
        rounds["relative_mollifier"].append(values)
    rows = synthetic.measure()
    for name in PAPERS:
        mine = [row for row in rows if row["sampler"] == name and row["divergence"] == "kl"]
        found = np.array(rounds[name])
        assert [mine[i]["mean"] for i in at] == pytest.approx(found.mean(axis=0).tolist(), abs=1e-9)
        error = np.sqrt(((found - found.mean(axis=0)) ** 2).sum(axis=0) / 9 / 10)  # n − 1: a sample of priors
        assert [mine[i]["standard_error"] for i in at] == pytest.approx(error.tolist(), abs=1e-9)


def test_each_panel_of_figure_2_shows_the_divergence_that_its_axis_names() -> None:
    """The lines and the bands are the rows of that divergence, sampler by sampler."""
    rows: list[dict[str, Any]] = [
        {
            "p1": first,
            "divergence": f,
            "sampler": name,
            "mean": 10 * k + first,
            "standard_error": (k + 1) / 100,
        }
        for k, (f, name) in enumerate((f, name) for f in ("kl", "tv") for name in PAPERS)
        for first in (0.1, 0.5, 0.9)
    ]
    figure = synthetic.draw(rows, PAPERS)
    assert [axes.get_ylabel().split()[0] for axes in figure.axes] == ["TV", "KL"]
    for axes in figure.axes:
        f = axes.get_ylabel().split()[0].lower()
        assert [line.get_label() for line in axes.lines] == list(PAPERS)
        for line, band, name in zip(axes.lines, axes.collections, PAPERS, strict=True):
            mine = [row for row in rows if (row["divergence"], row["sampler"]) == (f, name)]
            assert line.get_xdata().tolist() == [row["p1"] for row in mine]
            assert line.get_ydata().tolist() == [row["mean"] for row in mine]
            heights = band.get_paths()[0].vertices[:, 1]
            low, high = (mine[0]["mean"] + sign * mine[0]["standard_error"] for sign in (-1, 1))
            assert low == pytest.approx(heights.min())
            assert high + 0.8 == pytest.approx(heights.max())


def test_the_table_of_figure_2_names_its_grid_in_four_digits() -> None:
    """The middle of the grid is 0.4555, which 0.455 is not."""
    head, _, *lines = synthetic.table().splitlines()
    assert head.count("p₁ = 0.4555") == 2
    assert synthetic.FIRST[45] == pytest.approx(0.45545454)
    (line,) = (line for line in lines if "`minimax_kernel`" in line)
    kl = [cell.strip() for cell in line.split("|")[5:8]]
    assert all("±" in cell for cell in kl)


@pytest.mark.parametrize("number", recursion.PRIORS)
def test_the_picture_of_the_recursion_shows_the_kernel(number: int) -> None:
    q = np.array(recursion.PRIORS[number])
    assert np.all(np.diff(q) >= 0)
    shown = recursion.step(q, recursion.EPSILON)
    np.testing.assert_allclose(shown, oracles.algorithm_1(q, recursion.EPSILON), rtol=1e-12)
    texts = [text.get_text() for axes in recursion.draw(number).axes for text in axes.texts]
    assert [text for text in texts if text.startswith("0.")] == [f"{value:.3f}" for value in shown.flat]


def value_of(formula: str, letters: dict[str, float]) -> float:
    """A formula of mathtext as a number: fractions, sums, products and named letters."""
    text = formula.strip("$ ").replace(r"e^{\varepsilon}", "a").replace(r"\bar{q}", "rest")
    while r"\frac" in text:
        text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
    text = re.sub(r"\b(a|q_\w)\s+(?=q_)", r"\1*", text)
    return float(eval(text, {"__builtins__": {}}, letters))  # noqa: S307  # our own formulas


@pytest.mark.parametrize("number", recursion.PRIORS)
def test_the_letters_of_the_recursion_are_the_entries_of_the_kernel(number: int) -> None:
    q = np.array(recursion.PRIORS[number])
    n, a = len(q), float(np.exp(recursion.EPSILON))
    kernel = oracles.algorithm_1(q, recursion.EPSILON)
    letters = {"a": a, "n": float(n), "q_1": q[0], "q_2": q[1], "q_n": q[-1]}
    axes = recursion.draw(number).axes[0]
    texts = [text.get_text() for text in axes.texts]
    (words,) = (text for text in texts if "m =" in text)
    for part in re.findall(r"\$([^$]*)\$", words):
        name, equals, formula = part.partition("=")
        if equals and name.strip() in ("d", "m"):
            letters[name.strip()] = value_of(formula, letters)
    shown = {
        tuple(text.get_position()): value_of(text.get_text(), letters)
        for text in axes.texts
        if "frac" in text.get_text() and "=" not in text.get_text()
    }
    at = {
        (0.5, 0.5): (0, 0),
        (1.5, 0.5): (0, 1),
        (3.5, 0.5): (0, n - 1),
        (0.5, 1.5): (1, 0),
        (0.5, 3.5): (n - 1, 0),
    }
    assert set(shown) == set(at)
    for position, entry in at.items():
        assert shown[position] == pytest.approx(kernel[entry], rel=1e-12)
    inner = oracles.algorithm_1(q[1:] / q[1:].sum(), recursion.EPSILON)
    np.testing.assert_allclose(letters["m"] * inner, kernel[1:, 1:], rtol=1e-12)
    assert r"$m \, K_{\bar{q},\varepsilon}$" in texts
    if number == 1:
        assert r"$\bar{q} = (q_2, \ldots, q_n)/(1 - q_1)$" in words


@pytest.mark.full
def test_the_pictures_of_the_recursion_are_written(tmp_path: Path) -> None:
    assert len(recursion.run(tmp_path)) == 4


def test_figures_4_and_12_show_the_maxima() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"epsilon": epsilon, "group": group, "sampler": name, "max_tv": float(rng.random())}
        for epsilon in movielens.EPSILONS
        for group in movielens.GROUPS
        for name in sv.SAMPLERS
    ]
    for epsilons in ((5.0,), movielens.EPSILONS):
        figure = movielens.draw_bars(rows, epsilons, PAPERS)
        assert [axes.get_title() for axes in figure.axes] == [f"ε = {epsilon:g}" for epsilon in epsilons]
        for axes, epsilon in zip(figure.axes, epsilons, strict=True):
            expected = [
                row["max_tv"]
                for name in PAPERS
                for row in rows
                if row["epsilon"] == epsilon and row["sampler"] == name
            ]
            assert [bar.get_height() for bar in axes.patches] == pytest.approx(expected)
