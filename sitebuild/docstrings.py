"""A griffe extension: mkdocstrings reads every docstring of the library through the house style."""

from __future__ import annotations

import re
from typing import Any

from griffe import Attribute, Docstring, Extension, Object

import sottovoce

from .house_style import as_markdown

COMMENT = re.compile(r"  # (?!noqa|type:|fmt:)(.+)$")
"""What a field of a dataclass says about itself at the end of its line."""


class HouseStyle(Extension):
    """Rewrites docstrings, and takes the comment of a field where it has no docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called once for every object that was read."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value, sottovoce.__all__)
        elif isinstance(obj, Attribute) and obj.parent is not None and obj.parent.is_class:
            found = COMMENT.search(obj.source)
            if found:
                sentence = found[1][0].upper() + found[1][1:]
                obj.docstring = Docstring(as_markdown(sentence, sottovoce.__all__), parent=obj)
