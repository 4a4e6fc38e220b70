"""A long query prints nothing, also where DuckDB takes the process for a notebook."""

from __future__ import annotations

import subprocess
import sys

CODE = """
from sottovoce.tables.query import _connection
print(_connection("unused").execute("SELECT current_setting('enable_progress_bar')").fetchall())
"""


def test_no_bar_of_duckdb_is_shown() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"
