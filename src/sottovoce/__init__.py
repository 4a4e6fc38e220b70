"""Locally private sampling with public data: the public names of `__init__.pyi`, imported when used."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME = {name: room for room, name in re.findall(r"^from (\S+) import (\w+)", _STUB, re.MULTILINE)}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")
    try:
        room = import_module(_HOME[name], __name__) if _HOME[name] != "." else None
        value = import_module(f".{name}", __name__) if room is None else getattr(room, name)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"sottovoce.{name} needs {missing.name}; install it with: pip install 'sottovoce[cli]'"
        ) from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
