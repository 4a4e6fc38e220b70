"""Entry point of the command `sottovoce`."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line, or report which library to install."""
    if sys.stderr is None:  # closed: libraries write there, and nothing else may be opened in its place
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        from .cli.app import run
    except ModuleNotFoundError as missing:
        sys.exit(
            f"sottovoce: the command line needs {missing.name}; install it with: pip install 'sottovoce[cli]'"
        )
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
