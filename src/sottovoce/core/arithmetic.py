"""Integers only: e^ε from below, the box, the exact clip, the integer kernel, and their certificates.

Every law is a vector of whole units that add up to N = 2^62, drawn with one uniform 62-bit integer.
A = p/q is a rational number at most e^ε. If each category's weight lies between low_i and A·low_i for
every user, then w_i/N ≤ A·low_i/N ≤ e^ε·w'_i/N: ε-local privacy as an inequality between integers, with
nothing rounded, that anyone can check again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from ..errors import CertificateError

_SCALE = 64
_DIGITS = 120


def exp_below(epsilon: Fraction) -> Fraction:
    """A = ⌊2^64·e^ε⌋/2^64, the rational that stands for e^ε: A ≤ e^ε < A + 2^-64.

    e^ε is enclosed with a number of digits that doubles until both ends have the same whole part: decimal's
    exp is correct to half a unit of its last digit, and every other step goes down for the lower end and up
    for the upper one. 2^64·e^ε is never whole for a rational ε > 0, so that the search ends.
    """
    if epsilon <= 0:
        raise CertificateError(f"epsilon must be greater than 0, got {epsilon}")
    over, under, scale = Decimal(epsilon.numerator), Decimal(epsilon.denominator), Decimal(1 << _SCALE)
    digits = _DIGITS
    while True:
        down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=digits, rounding=ROUND_CEILING)
        below = int(down.multiply(down.next_minus(down.exp(down.divide(over, under))), scale))
        above = int(up.multiply(up.next_plus(up.exp(up.divide(over, under))), scale))
        if below == above:
            return Fraction(below, 1 << _SCALE)
        digits *= 2


def square_root_below(value: int) -> int:
    """⌊√value⌋, by Newton's steps from above, which fall until they are there."""
    root = 1 << -(-value.bit_length() // 2)
    while (closer := (root + value // root) // 2) < root:
        root = closer
    return root


def whole_numbers(*groups: Iterable[object]) -> None:
    """Refuse anything that is not a plain whole number: a float would pass comparisons unnoticed."""
    for group in groups:
        types = list(map(type, group))
        if types.count(int) != len(types):
            raise CertificateError("weights must be whole numbers")


def times_below(ratio: Fraction, value: int) -> int:
    """⌊ratio·value⌋."""
    return ratio.numerator * value // ratio.denominator


def check_prior_weights(prior: Sequence[int], size: int, total: int) -> None:
    """Refuse prior weights that are not one positive number per category, N in all."""
    if len(prior) != size or sum(prior) != total or min(prior) < 1:
        raise CertificateError("the prior weights must be positive and add up to N")


@dataclass(frozen=True)
class Box:
    """Weights of a law over N units: low_i ≤ w_i ≤ high_i = min(⌊A·low_i⌋, N), Σw = N."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    total: int


def certified_box(low: Sequence[int], ratio: Fraction, total: int) -> Box:
    """The box above `low`, checked: every floor at least one unit, and room for exactly N units."""
    least = tuple(low)
    if min(least) < 1:
        place = next(i for i, value in enumerate(least) if value < 1)
        raise CertificateError(
            f"category number {place} would be released with less than one unit, 1/{total}; merge it"
        )
    up, down = ratio.numerator, ratio.denominator
    most = tuple([min(up * value // down, total) for value in least])
    if not sum(least) <= total <= sum(most):
        raise CertificateError("the floor leaves no law: it must satisfy Σlow ≤ N ≤ Σhigh")
    return Box(least, most, total)


def exact_clip(weights: Sequence[int], low: Sequence[int], high: Sequence[int], target: int) -> list[int]:
    """The clip in whole units: x_i = clip(μ·k_i; low_i, high_i) with Σx = target, rounded to integers.

    μ is the exact rational solution, found by fixing variables (Bitran, Hax 1981): at a trial μ, if the
    caps cut off more than the floors add, the capped ones stay capped, else the floored ones stay floored.
    Then ⌊x_i⌋, and the units that are left go one each to the first coordinates with a fraction. Needs
    k_i ≥ 1 and Σlow ≤ target ≤ Σhigh; every answer lies in the box and adds up to the target.
    """
    answer = [0] * len(weights)
    active = list(range(len(weights)))
    left = target
    while active:
        slope = sum([weights[i] for i in active])
        floored, capped, balance = [], [], 0
        for i in active:
            share = left * weights[i]
            if share <= low[i] * slope:
                floored.append(i)
                balance += low[i] * slope - share
            elif share >= high[i] * slope:
                capped.append(i)
                balance += high[i] * slope - share
        fixed, bound = (floored, low) if balance > 0 else (capped, high)
        if balance == 0:
            for i in floored:
                answer[i] = low[i]
            for i in capped:
                answer[i] = high[i]
            settled = {*floored, *capped}
            inside = [i for i in active if i not in settled]
            left -= sum([answer[i] for i in settled])
            return _round_down(answer, inside, weights, left)
        for i in fixed:
            answer[i] = bound[i]
            left -= bound[i]
        gone = set(fixed)
        active = [i for i in active if i not in gone]
    return answer


def _round_down(answer: list[int], inside: list[int], weights: Sequence[int], left: int) -> list[int]:
    """⌊left·k_i/Σk⌋ for the coordinates strictly inside, then one unit each to the first fractions."""
    if not inside:
        return answer
    slope = sum([weights[i] for i in inside])
    fractions = []
    spare = left
    for i in inside:
        answer[i], remainder = divmod(left * weights[i], slope)
        spare -= answer[i]
        if remainder:
            fractions.append(i)
    for i in fractions[:spare]:
        answer[i] += 1
    return answer


def shares(weights: Sequence[int], words: int) -> list[int]:
    """How many words v below `words` fall into each interval if v is drawn as ⌊v·Σweights/words⌋.

    ⌈E_{i+1}·words/Σweights⌉ − ⌈E_i·words/Σweights⌉, where E are the running sums of the weights.
    """
    size, given, reached, out = sum(weights), 0, 0, []
    for weight in weights:
        reached += weight
        upto = -(-reached * words // size) if size else 0
        out.append(upto - given)
        given = upto
    return out


@dataclass(frozen=True)
class IntegerKernel:
    """The paper's kernel in whole units, categories ascending in the prior weights Q.

    Row x gives low_j units to every j < x, own_x to x itself, and the tail R_x = N − Σ_{j<x} low_j − own_x
    to the categories j > x in proportion to Q_j.
    """

    prior: tuple[int, ...]
    low: tuple[int, ...]
    own: tuple[int, ...]
    total: int


def integer_kernel(prior: Sequence[int], ratio: Fraction, total: int, slack: Fraction) -> IntegerKernel:
    """Build the kernel by one integer recursion, for a ratio a hair below A: A' = A(1 − slack).

    With S_i = Σ_{j≥i} Q_j, X_1 = N and X_{i+1} = X_i − low_i: low_i = ⌊X_i Q_i/((A'−1)Q_i + S_i)⌋, but a unit
    below every tail weight of its column so far, and own_i = ⌊A'·low_i⌋; the last row keeps own_n = X_n. The
    slack makes room for the units that n roundings leave in that last row. `prior` must be ascending and add
    up to N.
    """
    design = ratio * (1 - slack)
    up, down = design.numerator, design.denominator
    low, own = [], []
    left, tail = total, total
    least_r, least_s = total, total
    for weight in prior[:-1]:
        least = left * weight * down // ((up - down) * weight + tail * down)
        least = max(min(least, least_r * weight // least_s - 1), 0)
        low.append(least)
        own.append(up * least // down)
        rest, tail = left - own[-1], tail - weight
        left -= least
        if rest * least_s < least_r * tail:
            least_r, least_s = rest, tail
    low.append(-(-left * ratio.denominator // ratio.numerator))
    own.append(left)
    return IntegerKernel(tuple(prior), tuple(low), tuple(own), total)


def check_kernel(kernel: IntegerKernel, ratio: Fraction) -> int:
    """The certificate, in O(n): in every column the largest weight is at most A times the smallest.

    Returns the sum of the smallest weights of all columns, the floor that every drawn law has.

    Column j holds low_j (rows above j in rank), own_j, and for rows i < j a tail weight within one unit of
    ρ_i·Q_j, ρ_i = R_i/S_{i+1}, because a tail is drawn by ⌊v·S/N⌋ with v uniform below N. The running least
    and largest ρ, kept as fractions, bound the whole column.
    """
    total, last = kernel.total, len(kernel.prior) - 1
    if sum(kernel.prior) != total or min(kernel.prior) < 1 or min(kernel.low) < 1:
        raise CertificateError("the prior weights must be positive and add up to N, and every floor positive")
    if sorted(kernel.prior) != list(kernel.prior):  # what is sorted already is sorted in one pass
        raise CertificateError("the prior weights must be ascending")
    up, down = ratio.numerator, ratio.denominator
    before, behind = 0, total
    least_r, least_s, most_r, most_s = 0, 0, 0, 0
    floor = 0
    for j, (weight, low, own) in enumerate(zip(kernel.prior, kernel.low, kernel.own, strict=True)):
        smallest, largest = own, own
        if j < last and low < own:
            smallest = low
        elif j < last:
            largest = low
        if j > 0:
            below, above = least_r * weight // least_s - 1, 1 - (-most_r * weight // most_s)
            if below < smallest:
                smallest = below
            if above > largest:
                largest = above
        if smallest < 1 or largest * down > up * smallest:
            raise CertificateError(f"column {j} breaks the ratio: the kernel is not ε-private")
        floor += smallest
        rest = total - before - own
        behind -= weight
        before += low
        if (j < last and rest < 0) or (j == last and rest != 0):
            raise CertificateError(f"row {j} does not add up to N")
        if j < last:
            if j == 0 or rest * least_s < least_r * behind:
                least_r, least_s = rest, behind
            if j == 0 or rest * most_s > most_r * behind:
                most_r, most_s = rest, behind
    return floor


def check_response(own: int, other: int, kept: int, ratio: Fraction, total: int) -> None:
    """Randomized response on `kept` categories: a column holds own, other and N/k rounded either way.

    The last two lie between the first two, because own + (k−1)·other = N: they need no check of their own.
    """
    weights = [own, other] if kept > 1 else [own]
    if own + (kept - 1) * other != total or min(weights) < 1:
        raise CertificateError("a row does not add up to N, or has a weight below one unit")
    if max(weights) * ratio.denominator > ratio.numerator * min(weights):
        raise CertificateError("a column breaks the ratio: the response is not ε-private")
