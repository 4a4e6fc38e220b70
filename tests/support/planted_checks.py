"""Mistakes that somebody could make in Python's check: what is replaced in its source, and by what.

The comparison with the proved checker has to find each of them.
"""

from __future__ import annotations

import inspect
import textwrap
from types import FunctionType
from typing import Any

import pytest

from sottovoce.core import arithmetic, box, kernel, stream, survey
from sottovoce.release import ledger, mechanism

MODULES = (arithmetic, box, kernel, survey, mechanism, ledger, stream)
KERNEL, BOX, RESPONSE, PRIOR = (
    arithmetic.check_kernel,
    arithmetic.certified_box,
    arithmetic.check_response,
    arithmetic.check_prior_weights,
)
STREAM = stream.StreamEngine.check

FAULTS: dict[str, tuple[Any, str, str]] = {
    "kernel: < for <= in the ratio": (
        KERNEL,
        "largest * down > up * smallest",
        "largest * down >= up * smallest",
    ),
    "kernel: the ratio is not checked": (KERNEL, " or largest * down > up * smallest", ""),
    "kernel: up and down exchanged on one side": (KERNEL, "largest * down > up", "largest * up > up"),
    "kernel: the least tail without its unit": (KERNEL, "// least_s - 1", "// least_s"),
    "kernel: the largest tail without its unit": (KERNEL, "1 - (-most_r", "0 - (-most_r"),
    "kernel: the largest tail rounded down": (
        KERNEL,
        "1 - (-most_r * weight // most_s)",
        "1 + most_r * weight // most_s",
    ),
    "kernel: tails are not looked at": (KERNEL, "if j > 0:", "if False:"),
    "kernel: the last column's tails are not looked at": (KERNEL, "if j > 0:", "if 0 < j < last:"),
    "kernel: only the first row's tail": (
        KERNEL,
        "if j < last:\n            if j == 0",
        "if j == 0:\n            if j == 0",
    ),
    "kernel: the last row's tail is not the least": (
        KERNEL,
        "j == 0 or rest * least_s < least_r * behind",
        "j == 0",
    ),
    "kernel: the last row's tail is not the largest": (
        KERNEL,
        "j == 0 or rest * most_s > most_r * behind",
        "j == 0",
    ),
    "kernel: the least tail is the largest": (
        KERNEL,
        "rest * least_s < least_r * behind",
        "rest * least_s > least_r * behind",
    ),
    "kernel: behind counts the row itself": (KERNEL, "        behind -= weight\n", ""),
    "kernel: the floor is not in its column": (KERNEL, "if j < last and low < own:", "if False:"),
    "kernel: a floor above own is not in its column": (
        KERNEL,
        "elif j < last:\n            largest = low",
        "elif False:\n            largest = low",
    ),
    "kernel: the last floor is in its column": (KERNEL, "if j < last and low < own:", "if low < own:"),
    "kernel: the last row need not add up": (KERNEL, " or (j == last and rest != 0)", ""),
    "kernel: the prior need not add up": (KERNEL, "sum(kernel.prior) != total or ", ""),
    "kernel: the prior may be zero": (KERNEL, "min(kernel.prior) < 1 or ", ""),
    "kernel: the last floor may be zero": (KERNEL, " or min(kernel.low) < 1", ""),
    "kernel: the prior in any order": (KERNEL, "if sorted(kernel.prior) != list(kernel.prior):", "if False:"),
    "box: a floor of nothing": (BOX, "if min(least) < 1:", "if min(least) < 0:"),
    "box: < for <= at the floors": (BOX, "sum(least) <= total", "sum(least) < total"),
    "box: < for <= at the caps": (BOX, "total <= sum(most)", "total < sum(most)"),
    "box: the floors may overflow": (BOX, "sum(least) <= total <= sum(most)", "total <= sum(most)"),
    "box: the caps need not fill": (BOX, "sum(least) <= total <= sum(most)", "sum(least) <= total"),
    "box: caps rounded up": (BOX, "min(up * value // down, total)", "min(-(-up * value // down), total)"),
    "prior: any sum": (PRIOR, "sum(prior) != total or ", ""),
    "prior: zeros": (PRIOR, "min(prior) < 1", "min(prior) < 0"),
    "response: any sum": (RESPONSE, "own + (kept - 1) * other != total or ", ""),
    "response: one category too many": (RESPONSE, "(kept - 1)", "kept"),
    "response: the ratio is not checked": (
        RESPONSE,
        "if max(weights) * ratio.denominator > ratio.numerator * min(weights):",
        "if False:",
    ),
    "response: the ratio is checked one way": (
        RESPONSE,
        "if max(weights) * ratio.denominator > ratio.numerator * min(weights):",
        "if own * ratio.denominator > ratio.numerator * other and kept > 1:",
    ),
    "response: < for <= in the ratio": (
        RESPONSE,
        "ratio.denominator > ratio.numerator",
        "ratio.denominator >= ratio.numerator",
    ),
    "ratio: anything below": (
        mechanism.recheck,
        "mechanism.ratio != exp_below",
        "mechanism.ratio > exp_below",
    ),
    "ratio: a unit too large": (
        arithmetic.exp_below,
        "return Fraction(below, 1 << _SCALE)",
        "return Fraction(below + 1, 1 << _SCALE)",
    ),
    "the claim about the prior is believed": (
        mechanism.recheck,
        "if mechanism.keeps_prior != engine.keeps_prior():",
        "if False:",
    ),
    "the order may name a rank twice": (
        kernel.KernelEngine.check,
        "len(self.order) == len(order) == size",
        "len(self.order) == size",
    ),
    "the order is not looked at": (
        kernel.KernelEngine.check,
        "if not len(self.order) == len(order) == size or min(order) != 0 or max(order) != size - 1:",
        "if False:",
    ),
    "a category may be kept twice": (
        kernel.ResponseEngine.check,
        "len(set(self.kept)) != len(self.kept) or ",
        "",
    ),
    "nothing may be kept": (kernel.ResponseEngine.check, " or not self.kept", ""),
    "box: keeps a prior at the caps only inside": (
        box.BoxEngine.keeps_prior,
        "a <= w <= b",
        "a <= w < b",
    ),
    "response: keeps a level prior only": (kernel.ResponseEngine.keeps_prior, "<= 1", "< 1"),
    "survey: any base": (survey.SurveyEngine.check, "self.base % f == 0", "False"),
    "survey: one answer too many": (
        survey.SurveyEngine.check,
        "self.other, self.base, ratio",
        "self.other, self.base + 1, ratio",
    ),
}

FAULTS |= {
    f"stream: {name}": (STREAM, old, new)
    for name, old, new in (
        ("any start", "if not self.one <= self.start <= self.most:", "if False:"),
        ("a start below 1", "self.one <= self.start", "self.one - 1 <= self.start"),
        ("< for <= at the least start", "self.one <= self.start", "self.one < self.start"),
        ("a start above A", "self.start <= self.most", "self.start <= self.most + 1"),
        ("< for <= at the largest start", "self.start <= self.most", "self.start < self.most"),
        ("any prior", "check_prior_weights(self.prior, size, self.prior_total)", "pass"),
        ("a prior of N units", "self.prior_total", "self.total"),
        ("any epsilon", "int(ratio).bit_length() > MOST_DIGITS", "False"),
        ("A one digit shorter", "bit_length() > MOST_DIGITS", "bit_length() >= MOST_DIGITS"),
        ("A one digit longer", "bit_length() > MOST_DIGITS", "bit_length() > MOST_DIGITS + 1"),
        ("no pace", "1 <= len(self.pace)", "0 <= len(self.pace)"),
        ("a pace that is too long", "len(self.pace) <= MOST_STEPS", "len(self.pace) <= MOST_STEPS + 1"),
        ("a pace below 0", "0 <= one <= PACE", "-1 <= one <= PACE"),
        ("a pace above 256", "0 <= one <= PACE", "0 <= one <= PACE + 1"),
        ("a pace below 256 only", "0 <= one <= PACE", "0 <= one < PACE"),
        ("persistence below 0", "0 <= self.persistence", "-1 <= self.persistence"),
        ("persistence of everything", "self.persistence < PERSISTENCE", "self.persistence <= PERSISTENCE"),
    )
}
FAULTS["stream: keeps the prior with persistence"] = (
    stream.StreamEngine.keeps_prior,
    "self.persistence == 0",
    "True",
)


KERNEL_DRAW, RESPONSE_DRAW = kernel.KernelEngine.position, kernel.ResponseEngine.position
BOX_DRAW = box.BoxEngine.position

DRAWING_FAULTS: dict[str, tuple[Any, str, str]] = {
    "clip: the missing units go to the last fractions": (
        arithmetic._round_down,
        "fractions[:spare]",
        "fractions[len(fractions) - spare :]",
    ),
    "clip: one unit is lost": (arithmetic._round_down, "fractions[:spare]", "fractions[: spare - 1]"),
    "clip: what is capped takes its floor from the rest": (
        arithmetic.exact_clip,
        "left -= bound[i]",
        "left -= low[i]",
    ),
    "box: what a capped user leaves, by a remainder": (
        BOX_DRAW,
        "number * room // left",
        "number % room",
    ),
    "box: what a capped user leaves, rounded up": (
        BOX_DRAW,
        "number * room // left",
        "-(-number * room // left)",
    ),
    "box: a capped user's own categories have room": (
        box.BoxEngine._left,
        "above[-1] - sum([above[i + 1] - above[i] for i, _ in units])",
        "above[-1]",
    ),
    "box: caps are filled first": (box.BoxEngine.clipped, "target = min(", "target = max("),
    "box: <= for < at the end of a category": (
        box.walk,
        "if number < start + unit:",
        "if number <= start + unit:",
    ),
    "box: the floors behind are not shifted": (
        box.walk,
        "bisect_right(before, number - shift)",
        "bisect_right(before, number)",
    ),
    "kernel: <= for < at the own category": (
        KERNEL_DRAW,
        "if u < start + own[r]:",
        "if u <= start + own[r]:",
    ),
    "kernel: the tail begins with the row itself": (
        KERNEL_DRAW,
        "behind = passed[r + 1]",
        "behind = passed[r]",
    ),
    "kernel: the tail by a remainder": (
        KERNEL_DRAW,
        "(v * (self.kernel.total - behind) >> self.bits)",
        "v % max(self.kernel.total - behind, 1)",
    ),
    "response: > for >= beside the own category": (RESPONSE_DRAW, "step >= slot", "step > slot"),
    "survey: > for >= beside the right answer": (
        survey.SurveyEngine.position,
        "step >= right",
        "step > right",
    ),
    "survey: the question by a remainder": (
        survey.SurveyEngine.position,
        "asked * self.questions >> self.bits",
        "asked % self.questions",
    ),
    "survey: one digit is forgotten": (
        survey.SurveyEngine.answer,
        "range(self.digits)",
        "range(self.digits - 1)",
    ),
    "survey: questions from the next level": (
        survey.SurveyEngine.vector,
        "level[0] <= question",
        "level[0] < question + 2",
    ),
    "records: the choice by a remainder": (
        kernel.choose_record,
        "word * ends[-1] >> bits",
        "word % ends[-1]",
    ),
    "charges: rounded down": (
        ledger.charge_of,
        "-(-epsilon.numerator * MICRO // epsilon.denominator)",
        "epsilon.numerator * MICRO // epsilon.denominator",
    ),
}
"""Mistakes in what is drawn: the comparison with the model that the theorems are about has to find them."""


def plant(fault: str, patch: pytest.MonkeyPatch) -> None:
    """Replace one function of the library by the faulty one, wherever it is used."""
    function, old, new = {**FAULTS, **DRAWING_FAULTS}[fault]
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise AssertionError(f"{fault}: its place is not found once, but {source.count(old)} times")
    names: dict[str, Any] = {}
    exec(compile(source.replace(old, new), "planted", "exec"), function.__globals__, names)  # noqa: S102
    owners: list[Any] = [*MODULES, *mechanism.ENGINES]
    for owner in owners:
        if owner.__dict__.get(function.__name__) is function:
            patch.setattr(owner, function.__name__, names[function.__name__])
