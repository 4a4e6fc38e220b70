"""What several tests of the commands need."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `sottovoce demo` wrote, and what it printed; nobody changes it."""
    folder = tmp_path_factory.mktemp("demo")
    done = run("demo", "--output", folder)
    assert done.returncode == 0, done.stderr
    (folder / "printed.txt").write_text(done.stdout)
    return folder
