"""Names in any script: for characters that the usual font lacks, another font that is installed is used.

What no font here can draw is said once for a picture, with what to do, instead of once for each character.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

FIRST = "DejaVu Sans"
PREFERRED = ("Noto Sans", "Noto", "WenQuanYi", "Droid Sans", "Source Han", "Arial Unicode", "Lohit")
"""Families that are tried before the others, by how their names begin."""


@lru_cache(maxsize=1)
def _faces() -> tuple[tuple[str, str], ...]:
    """Family and file of every font that is upright and of ordinary weight, preferred ones first.

    One of them, which comes with matplotlib, draws an empty frame for every character there is.
    """
    found: dict[str, str] = {}
    for face in font_manager.fontManager.ttflist:
        usual = face.style == "normal" and face.weight in (400, "normal", "regular", "book")
        if usual and "Last Resort" not in face.name:
            found.setdefault(face.name, face.fname)

    def rank(item: tuple[str, str]) -> tuple[int, str]:
        begins = [i for i, name in enumerate(PREFERRED) if item[0].startswith(name)]
        return (begins[0] if begins else len(PREFERRED), item[0])

    return tuple(sorted(found.items(), key=rank))


@lru_cache(maxsize=256)
def _characters(file: str) -> frozenset[int]:
    """The characters that a font draws; none for a font that cannot be opened, such as one of bitmaps."""
    try:
        return frozenset(FT2Font(file).get_charmap())
    except (RuntimeError, OSError):
        return frozenset()


@lru_cache(maxsize=1)
def _look_again() -> bool:
    """Add fonts that were installed after matplotlib made its list of them; once, if it is needed."""
    known = {face.fname for face in font_manager.fontManager.ttflist}
    new = [file for file in font_manager.findSystemFonts() if file not in known]
    for file in new:
        with suppress(RuntimeError, OSError, ValueError):  # one that cannot be read is no font for us
            font_manager.fontManager.addfont(file)
    _faces.cache_clear()
    return bool(new)


def families_for(text: str) -> tuple[list[str], set[str]]:
    """The families that draw a text together, the usual one first, and the characters that none draws."""
    families, missing = _families(text)
    return _families(text) if missing and _look_again() else (families, missing)


def _families(text: str) -> tuple[list[str], set[str]]:
    files = dict(_faces())
    missing = {c for c in text if not c.isspace() and ord(c) not in _characters(files.get(FIRST, ""))}
    families = [FIRST]
    for family, file in _faces():
        covered = {c for c in missing if ord(c) in _characters(file)}
        if covered:
            families.append(family)
            missing -= covered
    return families, missing


@contextmanager
def drawable(figure: Figure) -> Iterator[None]:
    """Give every text of a figure fonts that can draw it, and say once what none can."""
    lacking: set[str] = set()
    for text in figure.findobj(Text):
        words = text.get_text()
        if not words.isascii():
            families, missing = families_for(words)
            lacking |= missing
            if len(families) > 1:
                text.set_fontfamily(families)
    if lacking:
        warnings.warn(
            f"no font on this machine draws {len(lacking)} characters of the names in this picture; install "
            f"fonts for their script, such as the Noto fonts, and draw it again",
            stacklevel=4,
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
