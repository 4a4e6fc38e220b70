"""Faults that somebody could make in a client: what is replaced in the source of the tiny one, and by what."""

from __future__ import annotations

FAULTS: dict[str, list[tuple[str, str]]] = {
    "all checks removed": [("    if not condition:\n", "    if False:\n")],
    "no digest": [('need(document["digest"] == digest_of(document), "digest")', "pass")],
    "no digest of the file of groups": [('need(plain["digest"] == digest_of(plain), "digest")', "pass")],
    "digest in any case": [
        (
            'need(document["digest"] == digest_of(document)',
            'need(str(document["digest"]).lower() == digest_of(document)',
        )
    ],
    "keys sorted by UTF-16 units": [("[ord(c) for c in member[0]]", 'member[0].encode("utf-16-be")')],
    "keys not sorted": [
        ("sorted(value.items(), key=lambda member: [ord(c) for c in member[0]])", "value.items()")
    ],
    "U+007F written as it is": [("<= code <= 0x7E", "<= code <= 0x7F")],
    "escapes in capitals": [('f"\\\\u{code:04x}"', 'f"\\\\u{code:04X}"')],
    "no short escapes": [(', "\\f": "\\\\f"', "")],
    "astral characters as one escape": [("if code <= 0xFFFF:", "if code <= 0x10FFFF:")],
    "the ratio is not checked": [('need(stated == ratio_of(a, b), "ratio")', "pass")],
    "the ratio may be anything below e^epsilon": [
        ("need(stated == ratio_of(a, b)", "need(Fraction(*stated) <= Fraction(*ratio_of(a, b))")
    ],
    "the ratio may be a hair too large": [
        (
            "need(stated == ratio_of(a, b)",
            "need(abs(Fraction(*stated) - Fraction(*ratio_of(a, b))) <= Fraction(1, 2**64)",
        )
    ],
    "the exponential in doubles": [
        (
            "    places = 256\n",
            "    return Fraction(math.floor(math.exp(a / b) * 2**64), 2**64).as_integer_ratio()\n",
        )
    ],
    "the exponential with too few digits": [
        ("    places = 256\n", "    places = 80\n"),
        ("        if found == upper", "        if True or found == upper"),
    ],
    "not in lowest terms": [('    need(math.gcd(a, b) == 1, "value")\n', "")],
    "a box without floors": [("need(up >= down and min(low) >= 1,", "need(up >= down,")],
    "a box may overflow": [('need(sum(low) <= N, "certificate")', "pass")],
    "a box may not fill": [('need(sum(high) >= N, "certificate")', "pass")],
    "caps rounded up": [("min(up * value // down, N)", "min(-(-up * value // down), N)")],
    "the prior may add up to anything": [(' and sum(numbers["prior"]) == N', "")],
    "the prior may be zero": [('min(numbers["prior"]) >= 1 and ', "")],
    "a kernel in any order": [("need(all(a <= b for a, b in pairwise(prior)), ", "need(True, ")],
    "a kernel without floors": [('need(min(low) >= 1, "certificate")', "pass")],
    "the last row is not checked": [('need(rest[last] == 0, "certificate")', "pass")],
    "columns are not checked": [('need(largest * down <= up * smallest, "certificate")', "pass")],
    "the tail without its unit below": [
        ("math.floor(min(rho[:j]) * prior[j]) - 1", "math.floor(min(rho[:j]) * prior[j])")
    ],
    "the tail without its unit above": [
        ("math.ceil(max(rho[:j]) * prior[j]) + 1", "math.ceil(max(rho[:j]) * prior[j])")
    ],
    "the tail of the row before only": [("min(rho[:j])", "rho[j - 1]"), ("max(rho[:j])", "rho[j - 1]")],
    "the last floor counts": [("[own[j]] if j == last else [own[j], low[j]]", "[own[j], low[j]]")],
    "a response of any sum": [('need(own + (k - 1) * other == N, "certificate")', "pass")],
    "own may be too large": [('need(own * down <= up * other, "certificate")', "pass")],
    "other may be too large": [('need(other * down <= up * own, "certificate")', "pass")],
    "keeps_prior is believed": [
        (
            'need(document["keeps_prior"] is certify[str(kind)](document, numbers, *stated), "keeps_prior")',
            "certify[str(kind)](document, numbers, *stated)",
        )
    ],
    "keeps_prior with dropped categories": [("return k == len(prior) and ", "return ")],
    "unknown fields are ignored": [
        ("need(set(document) - {", "need(set(document) & (COMMON | OWN[str(kind)]) - {")
    ],
    "false as a mark": [
        ('need(document.get("provenance", "users") in ("learned", "users"), "value")', "pass")
    ],
    "true is the number one": [('need(type(document.get("version")) is int and ', "need(")],
    "numbers that equal whole ones": [("parse_float=no_number", "parse_float=lambda text: int(float(text))")],
    "minus zero": [('    need(text != "-0", "text")\n', "")],
    "a key twice": [('    need(len({key for key, _ in pairs}) == len(pairs), "text")\n', "")],
    "a byte order mark is swallowed": [('data.decode("utf-8")', 'data.decode("utf-8-sig")')],
    "damaged UTF-8 is repaired": [('data.decode("utf-8")', 'data.decode("utf-8", "replace")')],
    "any length": [("need(len(data) <= 65_536 +", "need(0 <= 65_536 +")],
    "too strict a length": [("<= 65_536 +", "<= 65_000 +")],
    "leading zeros": [('"0|[1-9][0-9]{0,18}"', '"[0-9]{1,19}"')],
    "digits of other scripts": [('"0|[1-9][0-9]{0,18}"', '"0|[1-9\\\\d][0-9\\\\d]{0,18}"')],
    "a line break behind a number": [
        ('re.fullmatch("0|[1-9][0-9]{0,18}", value)', 're.match("(0|[1-9][0-9]{0,18})$", value)')
    ],
    "weights above N": [('    need(number <= N, "value")\n', "")],
    "epsilon above 100": [("need(0 < a <= 100 * b,", "need(0 < a,")],
    "epsilon zero": [("need(0 < a <= 100 * b,", "need(a <= 100 * b,")],
    "categories twice": [('    need(len(set(names)) == len(names), "value")\n', "")],
    "categories by their normal form": [
        (
            "need(len(set(names)) == len(names)",
            "need(len({unicodedata.normalize('NFC', str(n)) for n in names}) == len(names)",
        )
    ],
    "mixed names": [
        (
            '    need({type(name) for name in names} in ({str}, {int}), "value")\n',
            "    need({type(name) for name in names} <= {str, int}, 'value')\n    names = [str(name) for name in names]\n",
        )
    ],
    "integers up to 2^53": [("-(2**53) < name < 2**53", "-(2**53) <= name <= 2**53")],
    "half a surrogate pair": [
        ('need(not any("\\ud800" <= c <= "\\udfff" for name in names for c in name), "value")', "pass")
    ],
    "an order with gaps": [('need(kind != "kernel" or len(document["order"]) == n, "value")', "pass")],
    "a place twice": [('        need(len(set(places)) == len(places), "value")\n', "")],
    "labels in UTF-16 units": [
        ("not 1 <= len(value) <= 100", 'not 2 <= len(value.encode("utf-16-le", "replace")) <= 200')
    ],
    "labels with line breaks": [('c == " " or unicodedata.category(c)[0] not in "CZ"', 'c != "\\ud800"')],
    "any column may be the group": [
        ('    need(column not in ("", "user", "item", "weight", "count"), "value")\n', "")
    ],
    "a column as it is written": [
        ('unicodedata.normalize("NFKC", plain["by"]).strip(" ").lower()', 'plain["by"]')
    ],
    "a column without its normal form": [('unicodedata.normalize("NFKC", plain["by"])', 'plain["by"]')],
    "groups are not checked": [
        (
            "    for document in documents.values():\n        check(document)\n",
            "    if not grouped:\n        check(plain)\n",
        )
    ],
    "only the first group is checked": [
        (
            "in documents.values():\n        check(document)",
            "in list(documents.values())[:1]:\n        check(document)",
        )
    ],
    "no policy": [('    check_policy(documents, plain["digest"], policy)\n', "")],
    "epsilon of the policy in doubles": [
        (
            'Fraction(document["epsilon"]) <= Fraction(policy["max_epsilon"])',
            'float(Fraction(document["epsilon"])) <= float(Fraction(policy["max_epsilon"]))',
        )
    ],
    "a prior learned at any epsilon": [('"max_learned_epsilon" in policy and', "False and")],
    "a learned prior that states no epsilon": [
        ('need(document["provenance"] == "learned" and bool(re.fullmatch(form, stated)), "policy")', "pass"),
        ("Fraction(float(stated))", "Fraction(float(stated or 0))"),
    ],
    "less than the largest epsilon": [
        ('Fraction(document["epsilon"]) <= Fraction(', 'Fraction(document["epsilon"]) < Fraction(')
    ],
    "categories of each group alone": [("size = sum(", "size = max(")],
    "an empty list of digests means any": [('"digests" not in policy or', 'not policy.get("digests") or')],
    "the digest of any group": [
        (
            'digest in policy["digests"]',
            '{digest, *(d["digest"] for d in documents.values())} & set(policy["digests"])',
        )
    ],
    "words from the wrong end": [('"little") // 4', '"big") // 4')],
    "the highest bits dropped": [('"little") // 4', '"little") % N')],
    "63 bits": [('"little") // 4', '"little") // 2')],
    "intervals closed at the wrong end": [
        (
            "    return bisect_right(list(accumulate(weights)), u)",
            "    return bisect_right(list(accumulate(weights)), u - 1)",
        )
    ],
    "records in the order they come": [
        ("    places = sorted(counts)\n    return places[", "    places = list(counts)\n    return places[")
    ],
    "records chosen in doubles": [
        ("word * sum(counts.values()) // N", "int(word / N * sum(counts.values()))")
    ],
    "records by remainder": [("word * sum(counts.values()) // N", "word % sum(counts.values())")],
    "leftover units to the last": [
        (
            "for i, value in enumerate(x):\n        if missing",
            "for i, value in reversed(list(enumerate(x))):\n        if missing",
        )
    ],
    "leftover units to the first, fraction or not": [
        ("if missing > 0 and value.denominator > 1:", "if missing > 0:")
    ],
    "capped users by count": [("0 if i in counts else above[i] - low[i]", "0 if i in counts else 1")],
    "capped users by the public law": [
        ("0 if i in counts else above[i] - low[i]", "0 if i in counts else above[i]")
    ],
    "capped users by the prior": [
        (
            "above = fill(low, high, public(document), N)",
            'above = [max(q, a) for q, a in zip(numbers["prior"], low)]',
        )
    ],
    "capped users' own categories have room": [
        ("0 if i in counts else above[i] - low[i]", "above[i] - low[i]")
    ],
    "capped users' words rounded up": [
        (
            "(words[0] - filled) * sum(rooms) // (N - filled)",
            "-((filled - words[0]) * sum(rooms) // (N - filled))",
        )
    ],
    "capped users' words by a remainder": [
        ("(words[0] - filled) * sum(rooms) // (N - filled)", "(words[0] - filled) % sum(rooms)")
    ],
    "capped users in the order of the categories": [
        (
            "    weights, rooms = box_parts(document, counts)\n    filled = sum(weights)\n",
            "    weights, rooms = box_law(document, counts), []\n    filled = sum(weights)\n",
        )
    ],
    "capped users fill from the first": [("if sum(high[i] for i in mine) >= target:", "if True:")],
    "a nearest law: beyond is not later": [("(0, 1, i, b - a - own)", "(0, 0, i, b - a - own)")],
    "a nearest law: ties to the last": [
        ("sorted(pieces)", "sorted(pieces, key=lambda one: (one[0], one[1], -one[2]))")
    ],
    "a nearest law: lengths on one side only": [("(slope + length, *rest)", "(slope, *rest)")],
    "a nearest law: no cut before everything": [
        ("inside = min(max(goal, 0), units)", "inside = min(abs(goal), units)")
    ],
    "a nearest law: shares one by one": [
        (
            "    ends = [reached * N // sums[-1] for reached in sums]\n"
            "    return [ends[i + 1] - ends[i] for i in range(n)]\n",
            "    return [(sums[i + 1] - sums[i]) * N // sums[-1] for i in range(n)]\n",
        )
    ],
    "a nearest law: too narrow a box": [("(stated[0] - stated[1]) << 20", "stated[0] << 20")],
    "a nearest law: nobody has the counts of the prior": [
        ("if counts else fill(low, high, prior, N)", "if counts else targets_of(prior, len(low))")
    ],
    "a geometry: a path of any length": [('need(max(far) <= 2**30, "value")', "pass")],
    "a geometry: lengths of single edges": [("need(max(far) <= 2**30", "need(max(lengths) <= 2**30")],
    "the words of a kernel exchanged": [("passed + words[2] *", "passed + words[1] *")],
    "a tail from the whole prior": [("passed + words[2] * (N - passed) // N", "words[2]")],
    "own before low": [("    if words[1] < before:\n", "    if words[1] >= N - before:\n")],
    "kept in ascending order": [
        ("rest = [other for other in kept if", "rest = [other for other in sorted(kept) if")
    ],
    "the record is not left out": [(" if other != place]\n", "]\n")],
    "a record that is not kept is a failure": [
        ("return int(kept[words[1] * len(kept) // N])", "return int(kept[0])")
    ],
    "a text for a number": [("if type(one) is type(name) and one == name:", "if str(one) == str(name):")],
    "unknown records are refused": [
        ('unknown: str = "prior") -> Counts:\n    """How', 'unknown: str = "error") -> Counts:\n    """How')
    ],
    "unknown counts are refused": [
        ('unknown: str = "prior") -> Counts:\n    """The', 'unknown: str = "error") -> Counts:\n    """The')
    ],
    "unknown records are never refused": [
        ('need(unknown == "prior" or len(known) == len(placed), "user")', "pass")
    ],
    "nobody is refused for having no record": [
        ('need(unknown == "prior" or len(counts) > 0, "user")', "pass")
    ],
    "users without records draw evenly": [
        ('    weights = integers(document)["prior"]\n', '    weights = [1 for _ in document["categories"]]\n')
    ],
    "the prior of a kernel by rank": [('document.get("order", range(len(weights)))', "range(len(weights))")],
    "users without mass are refused": [("    if total == 0:\n        return {}\n", "")],
    "unknown records make the sum": [
        ("need(sum(count for _, count in known) < 2**53", "need(sum(count for _, count in pairs) < 2**53")
    ],
    "counts without a limit": [('need(sum(count for _, count in known) < 2**53, "user")', "pass")],
    "counts up to 2^53": [("for _, count in known) < 2**53", "for _, count in known) <= 2**53")],
    "each count below 2^53": [
        ("need(sum(count for _, count in known) < 2**53", "need(all(count < 2**53 for _, count in known)")
    ],
    "a double of the policy as it is printed": [
        ('Fraction(policy["max_epsilon"])', 'Fraction(str(policy["max_epsilon"]))')
    ],
    "a digest by its beginning": [
        ('digest in policy["digests"]', 'any(digest.startswith(one) for one in policy["digests"])')
    ],
    "categories among those expected": [("need(names == expected", "need(names <= expected")],
    "categories at least those expected": [("need(names == expected", "need(names >= expected")],
    "expected categories by text": [("{(type(name), name) for name in", "{str(name) for name in")],
    "the length in UTF-16 units": [
        (
            "need(len(data) <= 65_536",
            'need(len(data.decode(errors="replace").encode("utf-16-le")) // 2 <= 65_536',
        )
    ],
    "a key twice inside": [
        (
            "need(len({key for key, _ in pairs}) == len(pairs)",
            'need("format" not in dict(pairs) or len({key for key, _ in pairs}) == len(pairs)',
        )
    ],
    "caps in 64 bits": [("min(up * value // down, N)", "min(up * value // down % 2**64, N)")],
    "halves rounded": [
        (
            "weights = [math.floor(value) for value in x]",
            "weights = [math.floor(value + Fraction(1, 2)) for value in x]",
        )
    ],
    "a report without a batch": [
        (
            'need(isinstance(plain, dict) and set(plain) == {"reports"}, "fields")',
            'plain = plain if "reports" in plain else {"reports": [plain]}',
        )
    ],
    "the group is left out of two": [('need(group is not None or len(found) == 1, "group")', "pass")],
    "any group of a file": [("group in found), ", "group in served.documents), ")],
    "an unknown group": [("need(group is None or (served.by is not None and group in found)", "need(True")],
    "a group where there are none": [("(served.by is not None and group in found)", "group in found")],
    "negative counts": [
        ('need(all(type(count) is int and count >= 0 for _, count in pairs), "user")', "pass")
    ],
    "shares rounded": [("int(Fraction(share / total) * 2**61)", "round(share / total * 2**61 + 0.5)")],
    "shares not divided by their sum": [("share / total)", "share)")],
    "reports with any id": [('re.fullmatch("[0-9a-f]{32}", name) is not None', "True")],
    "reports with null for a group": [
        ('need("group" not in report or isinstance(group, str), "value")', "pass")
    ],
    "reports with other fields": [
        ('set(report) - {"group"} == {"mechanism"', 'set(report) - {"group"} >= {"mechanism"')
    ],
    "reports of any mechanism": [
        ('    need(len(found) > 0, "mechanism")\n', "    found = found or list(served.documents)\n")
    ],
    "reports of any category": [('need(position(document, answer) >= 0, "category")', "pass")],
}

REDUNDANT = {
    'need(not text.startswith("\\ufeff"), "text")': "Python's parser refuses the mark, too",
    'need(isinstance(value, str), "value")': "what is not text does not have the form of a fraction",
    'need(all(r >= 0 for r in rest[:last]), "certificate")': "a negative tail fails in the next column",
    'need(smallest >= 1, "certificate")': "a column with a weight above zero fails the ratio",
    'need(up >= down and own >= 1, "certificate")': "follows from the sum and the ratio",
    'need(other >= 1, "certificate")': "follows from the ratio",
    'need(isinstance(records, list), "user")': "JSON has no other way to hold records",
    'need(len(found) > 0, "mechanism")': "without a group there must be one, and a group must be among them",
    'need(len(data) == bytes_needed(document), "randomness")': "the vectors have the right number of bytes",
}
"""Checks of the tiny client that only say again what others say, as docs/format.md does."""
