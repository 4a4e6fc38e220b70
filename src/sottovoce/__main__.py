"""Entry point of the command `sottovoce`."""

from __future__ import annotations

import sys

from . import _starting


def main() -> None:
    """Run the command line, or say what to install when its libraries are missing."""
    _starting.quiet()
    try:
        from .cli.main import run
    except ModuleNotFoundError as missing:
        sys.exit(
            f"sottovoce: the command line needs {missing.name}; install it with: pip install 'sottovoce[cli]'"
        )
    run()


if __name__ == "__main__":
    main()
