"""The other half of `tiny_client`: users' data, drawing, laws and reports, from docs/format.md alone."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import Any

from tiny_client import WORDS, Counts, Document, File, N, highs, integers, need, parse, questions_of

# --- users ---------------------------------------------------------------------------------------


def from_records(document: Document, records: list[Any], unknown: str = "prior") -> Counts:
    """How often a user has each category, by position; the counts of the prior for a user without records."""
    need(isinstance(records, list), "user")
    return from_counts(document, [(record, 1) for record in records], unknown)


def from_counts(document: Document, pairs: list[tuple[Any, Any]], unknown: str = "prior") -> Counts:
    """The same from names and counts."""
    need(all(type(count) is int and count >= 0 for _, count in pairs), "user")
    placed = [(position(document, name), count) for name, count in pairs]
    known = [(place, count) for place, count in placed if place >= 0]
    need(unknown == "prior" or len(known) == len(placed), "user")
    need(sum(count for _, count in known) < 2**53, "user")
    counts: Counts = {}
    for place, count in known:
        if count > 0:
            counts[place] = counts.get(place, 0) + count
    need(unknown == "prior" or len(counts) > 0, "user")
    return counts or public(document)


def public(document: Document) -> Counts:
    """The counts of a user without records: the weights of the prior, by position; none for a nearest law."""
    if document["kind"] == "nearest":
        return {}
    if document["kind"] == "survey":
        return dict(enumerate(shares_of([1] * len(document["categories"]))))
    weights = integers(document)["prior"]
    return dict(zip(document.get("order", range(len(weights))), weights, strict=True))


def position(document: Document, name: Any) -> int:
    for place, one in enumerate(document["categories"]):
        if type(one) is type(name) and one == name:
            return place
    return -1


def from_shares(p: list[float]) -> Counts:
    """A distribution in doubles as whole numbers."""
    need(all(math.isfinite(share) and share >= 0 for share in p), "user")
    total = math.fsum(p)
    if total == 0:
        return {}
    need(abs(total - 1) <= 1e-9, "user")
    units = [int(Fraction(share / total) * 2**61) for share in p]
    return {place: unit for place, unit in enumerate(units) if unit > 0}


# --- drawing -------------------------------------------------------------------------------------


def bytes_needed(document: Document) -> int:
    return 8 * WORDS[document["kind"]]


def release(document: Document, counts: Counts, data: bytes) -> Any:
    """The released category."""
    need(len(data) == bytes_needed(document), "randomness")
    words = [int.from_bytes(data[i : i + 8], "little") // 4 for i in range(0, len(data), 8)]
    counts = counts or public(document)
    if document["kind"] == "survey":
        return survey(document, counts, words)
    if document["kind"] == "nearest":
        return document["categories"][interval(nearest(document, counts), words[0])]
    draw = {"box": box, "kernel": kernel, "response": response}[document["kind"]]
    return document["categories"][draw(document, counts, words)]


def interval(weights: list[int], u: int) -> int:
    """The smallest i with u below the sum of the weights up to i."""
    return bisect_right(list(accumulate(weights)), u)


def box(document: Document, counts: Counts, words: list[int]) -> int:
    weights, rooms = box_parts(document, counts)
    filled = sum(weights)
    if words[0] < filled:
        return interval(weights, words[0])
    return interval(rooms, (words[0] - filled) * sum(rooms) // (N - filled))


def box_law(document: Document, counts: Counts) -> list[int]:
    """The weights of a box for a user, out of N."""
    weights, rooms = box_parts(document, counts)
    left = N - sum(weights)
    if left == 0:
        return weights
    ends = [math.ceil(Fraction(end * left, sum(rooms))) for end in (0, *accumulate(rooms))]
    return [weight + ends[i + 1] - ends[i] for i, weight in enumerate(weights)]


def box_parts(document: Document, counts: Counts) -> tuple[list[int], list[int]]:
    """What the user's categories have and the floors of the others; and d, by which what is left is shared."""
    numbers = integers(document)
    low = numbers["low"]
    up, down = (int(part) for part in document["ratio"].split("/"))
    high = highs(low, up, down)
    mine = sorted(counts)
    target = N - sum(low[i] for i in range(len(low)) if i not in counts)
    if sum(high[i] for i in mine) >= target:
        return fill(low, high, counts, target), []
    above = fill(low, high, public(document), N)
    rooms = [0 if i in counts else above[i] - low[i] for i in range(len(low))]
    return [high[i] if i in counts else low[i] for i in range(len(low))], rooms


def fill(low: list[int], high: list[int], counts: Counts, target: int) -> list[int]:
    """clip(m·k; low, high) with total `target` over the counts: search the segments between the knots, obviously."""
    places = sorted(counts)
    knots = sorted({Fraction(bound[i], counts[i]) for i in places for bound in (low, high)})

    def total(m: Fraction) -> Fraction:
        return sum((clip(m, i) for i in places), Fraction(0))

    def clip(m: Fraction, i: int) -> Fraction:
        return min(max(m * counts[i], Fraction(low[i])), Fraction(high[i]))

    below, above = 0, len(knots) - 1  # the total reaches the target at `above`
    while below < above:
        middle = (below + above) // 2
        below, above = (below, middle) if total(knots[middle]) >= target else (middle + 1, above)
    m = knots[above]
    reached = total(m)
    if above > 0 and reached > target:
        before = knots[above - 1]
        start = total(before)
        m = before + (m - before) * (target - start) / (reached - start)
    x = [clip(m, i) if i in counts else Fraction(value) for i, value in enumerate(low)]
    weights = [math.floor(value) for value in x]
    missing = N - sum(weights)
    for i, value in enumerate(x):
        if missing > 0 and value.denominator > 1:
            weights[i] += 1
            missing -= 1
    return weights


def nearest(document: Document, counts: Counts) -> list[int]:
    """The law of a user in units."""
    numbers, (up, down) = integers(document), map(int, document["ratio"].split("/"))
    low, prior = numbers["low"], dict(enumerate(numbers["prior"]))
    high = highs(low, up, down)
    targets = targets_of(counts, len(low)) if counts else fill(low, high, prior, N)
    return nearest_law(targets, low, high, document)


def targets_of(counts: Counts, n: int) -> list[int]:
    """The user's shares in units, by running sums of the counts."""
    sums = [0, *accumulate(counts.get(i, 0) for i in range(n))]
    ends = [reached * N // sums[-1] for reached in sums]
    return [ends[i + 1] - ends[i] for i in range(n)]


def nearest_law(targets: list[int], low: list[int], high: list[int], tree: Document) -> list[int]:
    """The rule as the page says it: all pieces of a node in one list, which is sorted anew for every cut."""
    paths = [above(i, tree["parents"]) for i in range(len(low))]
    pieces = []  # slope, 0 for own ones and 1 for those beyond, category, units
    for i, (p, a, b) in enumerate(zip(targets, low, high, strict=True)):
        own = min(max(p - a, 0), b - a)
        pieces += [(0, 0, i, own), (0, 1, i, b - a - own)]
    for v, length in enumerate(tree["lengths"]):
        below = {i for i, path in enumerate(paths) if v in path}
        goal = sum(targets[i] - low[i] for i in below)
        if length > 0:
            front, back = divided([one for one in pieces if one[2] in below], goal)
            pieces = [one for one in pieces if one[2] not in below]
            pieces += [(slope - length, *rest) for slope, *rest in front]
            pieces += [(slope + length, *rest) for slope, *rest in back]
    law = list(low)
    for _, _, i, units in divided(pieces, N - sum(low))[0]:
        law[i] += units
    assert all(a <= x <= b for a, x, b in zip(low, law, high, strict=True))
    assert sum(law) == N
    return law


def above(v: int, parents: list[int]) -> set[int]:
    """A node and all nodes between it and the root."""
    return {v} if v == len(parents) else {v, *above(parents[v], parents)}


def divided(pieces: list[Any], goal: int) -> tuple[list[Any], list[Any]]:
    """The pieces in their order, cut behind so many units; empty ones are left out."""
    front, back = [], []
    for slope, beyond, i, units in sorted(pieces):
        inside = min(max(goal, 0), units)
        goal -= inside
        front += [(slope, beyond, i, inside)] if inside > 0 else []
        back += [(slope, beyond, i, units - inside)] if inside < units else []
    return front, back


def record(counts: Counts, word: int) -> int:
    """The position of one of the user's records."""
    number = word * sum(counts.values()) // N
    places = sorted(counts)
    return places[interval([counts[place] for place in places], number)]


def kernel(document: Document, counts: Counts, words: list[int]) -> int:
    numbers, order = integers(document), document["order"]
    prior, low, own = numbers["prior"], numbers["low"], numbers["own"]
    r = order.index(record(counts, words[0]))
    before = sum(low[:r])
    if words[1] < before:
        return int(order[interval(low, words[1])])
    if words[1] < before + own[r]:
        return int(order[r])
    passed = sum(prior[: r + 1])
    return int(order[interval(prior, passed + words[2] * (N - passed) // N)])


def response(document: Document, counts: Counts, words: list[int]) -> int:
    kept, numbers = document["kept"], integers(document)
    place = record(counts, words[0])
    if place not in kept:
        return int(kept[words[1] * len(kept) // N])
    if words[1] < numbers["own"]:
        return place
    rest = [other for other in kept if other != place]
    return int(rest[(words[1] - numbers["own"]) // numbers["other"]])


def survey(document: Document, counts: Counts, words: list[int]) -> int:
    questions, base, numbers = questions_of(document), document["base"], integers(document)
    s = words[1] * len(questions) // N
    right = right_answer(questions[s], record(counts, words[0]), base)
    others = [value for value in range(base) if value != right]
    if words[2] < numbers["own"]:
        return int(s * base + right)
    return int(s * base + others[(words[2] - numbers["own"]) // numbers["other"]])


def right_answer(vector: int, place: int, base: int) -> int:
    """The sum of the products of the digits, modulo the base."""
    powers = [base**j for j in range(64) if base**j <= max(vector, place)]
    return int(sum(vector // power % base * (place // power % base) for power in powers) % base)


# --- exact laws ----------------------------------------------------------------------------------


def shares_of(weights: list[int]) -> list[int]:
    """For how many of the N words number ⌊word·Σ/N⌋ falls to each weight."""
    size = sum(weights)
    ends = [-(-reached * N // size) for reached in accumulate(weights)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def law(document: Document, counts: Counts) -> list[int]:
    """The exact weight of every category, out of N to the power of the number of words."""
    counts = counts or public(document)
    if document["kind"] in ("box", "nearest"):
        return {"box": box_law, "nearest": nearest}[document["kind"]](document, counts)
    row = {"kernel": kernel_row, "response": response_row, "survey": survey_row}[document["kind"]]
    places = sorted(counts)
    weights = [0] * len(row(document, places[0]))
    for place, chosen in zip(places, shares_of([counts[place] for place in places]), strict=True):
        weights = [w + chosen * one for w, one in zip(weights, row(document, place), strict=True)]
    return weights


def kernel_row(document: Document, place: int) -> list[int]:
    """The law of one record, out of N²."""
    numbers, order = integers(document), document["order"]
    prior, low, own = numbers["prior"], numbers["low"], numbers["own"]
    r = order.index(place)
    tail = N - sum(low[:r]) - own[r]
    by_rank = [low[j] * N for j in range(r)] + [own[r] * N]
    by_rank += [tail * share for share in shares_of(prior[r + 1 :])]
    weights = [0] * len(order)
    for j, weight in enumerate(by_rank):
        weights[order[j]] = weight
    return weights


def response_row(document: Document, place: int) -> list[int]:
    """The law of one record, out of N."""
    kept, numbers = document["kept"], integers(document)
    weights = [0] * len(document["categories"])
    for other, share in zip(kept, shares_of([1] * len(kept)), strict=True):
        weights[other] = share if place not in kept else numbers["other"]
    if place in kept:
        weights[place] = numbers["own"]
    return weights


def survey_row(document: Document, place: int) -> list[int]:
    """The law of one record, out of N²."""
    base, numbers, questions = document["base"], integers(document), questions_of(document)
    weights = []
    for vector, chance in zip(questions, shares_of([1] * len(questions)), strict=True):
        right = right_answer(vector, place, base)
        weights += [chance * numbers["own" if value == right else "other"] for value in range(base)]
    return weights


# --- reports -------------------------------------------------------------------------------------


def read_reports(data: bytes, served: File) -> list[dict[str, Any]]:
    """The reports of a batch, all of them released with the mechanisms of the file that is served."""
    plain = parse(data)
    need(isinstance(plain, dict) and set(plain) == {"reports"}, "fields")
    batch = plain["reports"]
    need(isinstance(batch, list) and 1 <= len(batch) <= 1000, "value")
    for report in batch:
        need(
            isinstance(report, dict) and set(report) - {"group"} == {"mechanism", "id", "category"}, "fields"
        )
        group, name = report.get("group"), report["id"]
        need("group" not in report or isinstance(group, str), "value")
        need(isinstance(name, str) and re.fullmatch("[0-9a-f]{32}", name) is not None, "value")
        found = [key for key, one in served.documents.items() if one["digest"] == report["mechanism"]]
        need(len(found) > 0, "mechanism")
        need(group is not None or len(found) == 1, "group")
        need(group is None or (served.by is not None and group in found), "group")
        document, answer = served.documents[found[0]], report["category"]
        if document["kind"] == "survey":
            most = len(questions_of(document)) * document["base"]
            need(type(answer) is int and 0 <= answer < most, "category")
        else:
            need(position(document, answer) >= 0, "category")
    return list(batch)
