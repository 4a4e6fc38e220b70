"""The paper's pictures of Algorithm 1 (Figure 1, and Figure 5 for a uniform prior), drawn from the library.

Left: one step in letters. The first category gets a row and a column, and the rest of the matrix is m times
the kernel of the remaining categories. Right: the same on numbers, with a frame around what each step leaves
to the next; the last two categories are the binary kernel of Proposition 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.pictures.plots import new_figure

from .results import save_both

EPSILON = 1.0
PRIORS = {1: (0.05, 0.1, 0.2, 0.25, 0.4), 5: (0.2, 0.2, 0.2, 0.2, 0.2)}
"""The prior of each figure, ascending as Algorithm 1 wants it."""

_LETTERS = {
    1: (r"$\frac{e^{\varepsilon} q_1}{d}$", r"$\frac{q_1}{d}$", r"$\frac{q_2}{d}$", r"$\frac{q_n}{d}$"),
    5: (
        r"$\frac{e^{\varepsilon}}{e^{\varepsilon}+n-1}$",
        r"$\frac{1}{e^{\varepsilon}+n-1}$",
        r"$\frac{1}{e^{\varepsilon}+n-1}$",
        r"$\frac{1}{e^{\varepsilon}+n-1}$",
    ),
}
_WORDS = {
    1: r"$d = e^{\varepsilon} q_1 + 1 - q_1$,  $m = 1 - q_1/d$,  $\bar{q} = (q_2, \ldots, q_n)/(1 - q_1)$",
    5: r"$m = (e^{\varepsilon}+n-2)/(e^{\varepsilon}+n-1)$: randomized response inside and out",
}


def kernel(q: np.ndarray, epsilon: float) -> np.ndarray:
    """The library's kernel for an ascending prior."""
    return sv.minimax_kernel(sv.Prior(range(len(q)), q), epsilon).matrix()


def step(q: np.ndarray, epsilon: float) -> np.ndarray:
    """One step of the recursion: the first row and column as the paper prints them, m times the rest."""
    a = np.exp(epsilon)
    d = a * q[0] + 1 - q[0]
    out = np.empty((len(q), len(q)))
    out[0] = q / d
    out[1:, 0] = q[0] / d
    out[0, 0] = a * q[0] / d
    out[1:, 1:] = (1 - q[0] / d) * kernel(q[1:] / q[1:].sum(), epsilon)
    return out


def draw(number: int) -> Any:
    """Figure 1 or Figure 5."""
    q = np.array(PRIORS[number])
    figure = new_figure(10.5, 4.6)
    letters, numbers = figure.subplots(1, 2)
    _draw_letters(letters, number)
    _draw_numbers(numbers, step(q, EPSILON))
    shown = ", ".join(f"{value:g}" for value in q)
    letters.set_title("one step of Algorithm 1" + (", uniform prior" if number == 5 else ""))
    numbers.set_title(f"q = ({shown}), ε = {EPSILON:g}; a frame for each step")
    return figure


def _draw_letters(axes: Any, number: int) -> None:
    from matplotlib.patches import Rectangle

    corner, below, second, last = _LETTERS[number]
    size = 22 if number == 1 else 15
    middle = {"ha": "center", "va": "center"}
    axes.set_xlim(0, 4)
    axes.set_ylim(4, -0.55)
    axes.set_aspect("equal")
    axes.axis("off")
    for x, y, wide, high, color in (
        (0, 0, 1, 1, "#F5C6A5"), (1, 0, 3, 1, "#FCE9DA"), (0, 1, 1, 3, "#FCE9DA"), (1, 1, 3, 3, "#D6E6F2"),
    ):  # fmt: skip
        axes.add_patch(Rectangle((x, y), wide, high, facecolor=color, edgecolor="black", linewidth=1))
    axes.text(0.5, 0.5, corner, fontsize=size, **middle)
    for across, text in ((1.5, second), (2.5, r"$\cdots$"), (3.5, last)):
        axes.text(across, 0.5, text, fontsize=size, **middle)
    for down, text in ((1.5, below), (2.5, r"$\vdots$"), (3.5, below)):
        axes.text(0.5, down, text, fontsize=size, **middle)
    axes.text(2.5, 2.5, r"$m \, K_{\bar{q},\varepsilon}$", fontsize=26, **middle)
    axes.text(2, -0.3, _WORDS[number], fontsize=10, **middle)


def _draw_numbers(axes: Any, matrix: np.ndarray) -> None:
    from matplotlib.patches import Rectangle

    n = len(matrix)
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1.4 * matrix.max())
    for i in range(n):
        for j in range(n):
            weight = "bold" if i == j else "normal"
            axes.text(j, i, f"{matrix[i, j]:.3f}", ha="center", va="center", fontsize=10, fontweight=weight)
    for begin in range(n - 1):
        corner, side = (begin - 0.46,) * 2, n - begin - 0.08
        axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor="#D55E00", linewidth=1.6))
    axes.set_xticks(range(n), [f"to {j + 1}" for j in range(n)])
    axes.set_yticks(range(n), [f"from {i + 1}" for i in range(n)])
    axes.tick_params(length=0)


def run(folder: Path) -> list[Path]:
    """Write Figures 1 and 5."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        path for number in PRIORS for path in save_both(draw(number), folder, f"recursion-figure{number}")
    ]
