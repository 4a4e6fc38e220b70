"""What tests/vectors/README.md asks of a client, for any object that has the functions of `tiny_client`.

The library is such an object, too: `LibraryClient`. `complaints` yields a line for each vector that a
client gets wrong.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tiny_client
import tiny_draws

import sottovoce as sv
from sottovoce.core import randomness
from sottovoce.core.arithmetic import exp_below
from sottovoce.records import weights_of_law, weights_of_records
from sottovoce.release.file import MechanismFile, load_mechanisms

FOLDER = Path(__file__).parent.parent / "vectors"
N = 1 << 62
DRAWS = [f"draws_{kind}" for kind in ("groups", "box", "nearest", "kernel", "response", "survey")]


@cache
def vectors(name: str) -> Any:
    """A file of vectors, parsed once."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def content(row: dict[str, Any]) -> bytes:
    """The bytes of a file in a vector."""
    data = bytes.fromhex(row["bytes"]) if "text" not in row else row["text"].encode()
    return data.ljust(row.get("length", 0))


def tiny(source: str | None = None) -> Any:
    """The tiny client, or another one made from its source."""
    if source is None:
        source = tiny_source()
    module = ModuleType("planted")
    module.__dict__["__name__"] = "tiny_client"  # where its dataclass looks for its module
    exec(compile(source, "planted", "exec"), module.__dict__)  # noqa: S102
    return module


@cache
def tiny_source() -> str:
    """Both halves of the tiny client as one text."""
    first, second = (
        Path(str(half.__file__)).read_text(encoding="utf-8") for half in (tiny_client, tiny_draws)
    )
    lines = second.splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("from tiny_client", "from __future__"))]
    return first + "".join(kept)


class LibraryClient:
    """The library under the names of the tiny client."""

    def load(self, data: bytes, policy: dict[str, Any]) -> Any:
        digests = policy.get("digests")
        rules: dict[str, Any] = {"max_epsilon": "any"}
        rules |= {key: value for key, value in policy.items() if key != "digests"}
        if digests is not None and len(digests) == 1:
            rules["digest"] = digests[0]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file.json"
            path.write_bytes(data)
            found = load_mechanisms(path, policy=sv.Policy(**rules))
        if digests is not None and found.digest not in digests:  # the library expects one digest at most
            raise sv.errors.MechanismFileError("not one of the digests that are expected")
        return _Loaded(found)

    def from_records(self, mechanism: sv.Mechanism, records: list[Any], unknown: str = "prior") -> Any:
        return weights_of_records(records, mechanism.index, unknown)

    def from_counts(self, mechanism: sv.Mechanism, pairs: list[list[Any]], unknown: str = "prior") -> Any:
        """The library takes counts as an array: names are looked up as records are."""
        counts = [0] * len(mechanism.categories)
        for name, count in pairs:
            for place, _ in weights_of_records([name], mechanism.index, unknown):
                counts[place] = count
        held = weights_of_law(np.array(counts), len(counts))
        if unknown == "error" and not held:
            raise sv.errors.UserDataError("no record")
        return held

    def from_shares(self, p: list[float]) -> dict[int, int]:
        return dict(weights_of_law(np.array(p), len(p)))

    def bytes_needed(self, mechanism: sv.Mechanism) -> int:
        return 8 * mechanism.engine.words

    def release(self, mechanism: sv.Mechanism, held: Any, data: bytes) -> Any:
        before, randomness._read = randomness._read, lambda size: data[:size]
        try:
            words = randomness.words(mechanism.engine.words, mechanism.bits)
        finally:
            randomness._read = before
        return mechanism.answers[mechanism.engine.position(_pairs(held), words)]

    def law(self, mechanism: sv.Mechanism, held: Any) -> list[int]:
        return [int(share * N**mechanism.engine.words) for share in mechanism.engine.law(_pairs(held))]

    def ratio_of(self, a: int, b: int) -> tuple[int, int]:
        ratio = exp_below(Fraction(a, b))
        return ratio.numerator, ratio.denominator


def _pairs(held: Any) -> Any:
    return list(held.items()) if isinstance(held, dict) else held


class _Loaded:
    """A file of mechanisms as the tiny client returns it."""

    def __init__(self, found: MechanismFile) -> None:
        self.documents, self.by, self.digest = found.mechanisms, found.by, found.digest


def complaints(client: Any) -> Iterator[str]:
    """What a client gets wrong, vector by vector."""
    yield from _files(client)
    for name in DRAWS:
        for row in vectors(name)["files"]:
            yield from _draws(client, row)
    for sampler in sv.SAMPLERS:
        plain = vectors(sampler)
        cases = [{"records": case["records"], "draws": [case], **case} for case in plain["cases"]]
        yield from _draws(client, {"name": sampler, "text": json.dumps(plain["mechanism"]), "users": cases})
    for epsilon, ratio in vectors("exponentials")["table"]:
        a, b = map(int, epsilon.split("/"))
        if "/".join(map(str, client.ratio_of(a, b))) != ratio:
            yield f"the ratio of {epsilon[:30]}"
    for case in vectors("shares")["cases"]:
        counts = _outcome(client.from_shares, case["p"])
        expected = None if case["counts"] is None else {place: int(count) for place, count in case["counts"]}
        if counts != expected:
            yield f"the whole numbers of {case['p'][:3]}"
    if not isinstance(client, LibraryClient):
        yield from _texts(client)


def _outcome(function: Any, *given: Any) -> Any:
    """What a function returns, or None if it refuses."""
    try:
        return function(*given)
    except (tiny_client.Refused, sv.errors.SottovoceError):
        return None
    except Exception as problem:
        if type(problem).__name__ == "Refused":  # of a client that was made from the source
            return None
        return f"a failure: {type(problem).__name__}"


def _files(client: Any) -> Iterator[str]:
    for row in vectors("files_accepted")["files"]:
        if not hasattr(_outcome(client.load, content(row), row.get("policy", {})), "documents"):
            yield f"refused: {row['name']}"
    for row in vectors("files_refused")["files"]:
        if _outcome(client.load, content(row), row.get("policy", {})) is not None:
            yield f"not refused: {row['name']}"


def _draws(client: Any, row: dict[str, Any]) -> Iterator[str]:
    found = _outcome(client.load, content(row), {})
    if not hasattr(found, "documents"):
        yield f"refused: {row['name']}"
        return
    for user in row["users"]:
        document = found.documents[user.get("group", "all")]
        held = _held(client, document, user)
        if "weights" in user and _outcome(client.law, document, held) != [int(w) for w in user["weights"]]:
            yield f"{row['name']}: a law"
        for case in user["draws"]:
            data = bytes.fromhex(case["bytes"])
            if client.bytes_needed(document) != len(data):
                yield f"{row['name']}: the number of bytes"
            released = _outcome(client.release, document, held, data)
            if released != case["released"] or type(released) is not type(case["released"]):
                yield f"{row['name']}: a release from {case['bytes']}"
    for user in row.get("refused_users", []):
        if _held(client, found.documents["all"], user) is not None:
            yield f"{row['name']}: a user who must be refused, {next(iter(user))}"


def _held(client: Any, document: Any, user: dict[str, Any]) -> Any:
    if "shares" in user:
        return _outcome(client.from_shares, user["shares"])
    unknown = [user["unknown"]] if "unknown" in user else []
    if "records" in user:
        return _outcome(client.from_records, document, user["records"], *unknown)
    return _outcome(client.from_counts, document, user["counts"], *unknown)


def _texts(client: Any) -> Iterator[str]:
    """What the library does not offer, or does elsewhere: the canonical form, and reports."""
    for case in vectors("canonical")["cases"]:
        value = json.loads(case["value"])
        if (client.canonical(value), client.digest_of(value)) != (case["canonical"], case["digest"]):
            yield f"the canonical form of {case['value'][:40]}"
    plain = vectors("reports")
    served = [client.load(text.encode(), {}) for text in plain["mechanisms"]]
    for case in plain["cases"]:
        found = _outcome(client.read_reports, case["text"].encode(), served[case["served"]])
        if (len(found) if isinstance(found, list) else found) != (case["accepted"] or None):
            yield f"reports: {case['name']}"
