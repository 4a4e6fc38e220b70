"""The library against a client written from docs/format.md: random draws and re-signed mutants of files."""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import pytest
import tiny_client
import tiny_draws
from mutants import POLICIES, N, mutant, some_mechanism
from vector_checks import LibraryClient
from vector_draws import boundaries, signed

import sottovoce as sv

LIBRARY = LibraryClient()


def check_draws(count: int) -> None:
    """Category, law and acceptance of users are the same; half of the words are ends of intervals."""
    rng, done = random.Random(f"draws {count}"), 0
    while done < count:
        mechanism = some_mechanism(rng)
        document = tiny_client.load(signed(mechanism.document()).encode(), {}).documents["all"]
        assert tiny_draws.bytes_needed(document) == 8 * mechanism.engine.words
        for _ in range(5):
            names = list(mechanism.categories)
            records: list[Any] = rng.choices(names, k=rng.choice([1, 2, 5, 40]))
            counts = tiny_draws.from_records(document, records)
            held = LIBRARY.from_records(mechanism, records)
            assert sorted(counts.items()) == held
            if len(names) < 300:
                assert tiny_draws.law(document, counts) == LIBRARY.law(mechanism, held)
            ends = boundaries(mechanism, records)
            words = [rng.choice(ends) for _ in range(5)]
            words += [[rng.randrange(N) for _ in range(mechanism.engine.words)] for _ in range(5)]
            for chosen in words[: 2 if len(names) == 300 else 10]:
                data = b"".join((word << 2 | rng.randrange(4)).to_bytes(8, "little") for word in chosen)
                assert tiny_draws.release(document, counts, data) == LIBRARY.release(mechanism, held, data)
                done += 1


def accepts(load: Any, data: bytes, policy: dict[str, Any]) -> str | None:
    """The digest of a file that is accepted."""
    try:
        return str(load(data, policy).digest)
    except (tiny_client.Refused, sv.errors.SottovoceError):
        return None


def check_mutants(count: int) -> None:
    """Library and client accept the same files, and call them the same."""
    rng, accepted = random.Random(f"mutants {count}"), 0
    for _ in range(count):
        data, policy = mutant(rng), rng.choice(POLICIES)
        mine, theirs = accepts(tiny_client.load, data, policy), accepts(LIBRARY.load, data, policy)
        assert mine == theirs, (data[:3000], policy)
        accepted += mine is not None
    assert 0.05 * count < accepted < 0.6 * count  # or the mutants tell nothing


def test_draws() -> None:
    check_draws(1_000)


@pytest.mark.full
def test_draws_at_their_stated_number() -> None:
    check_draws(50_000)


def test_mutants() -> None:
    check_mutants(1_000)


@pytest.mark.full
def test_mutants_at_their_stated_number() -> None:
    check_mutants(20_000)


def test_printable_characters_are_those_of_the_page() -> None:
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        assert chr(code).isprintable() == (code == 0x20 or category[0] not in "CZ"), hex(code)
