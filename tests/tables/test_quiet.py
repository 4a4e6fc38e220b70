"""A long query prints nothing, also where DuckDB takes the process for a notebook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
from sottovoce.tables.reader import _connection
print(_connection("unused").execute("SELECT current_setting('enable_progress_bar')").fetchall())
"""


def test_no_bar_of_duckdb_is_shown() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"


COUNTING = """
import sys
from pathlib import Path

class Missing:
    asked = 0
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "polars", "pyarrow"):
            Missing.asked += 1
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from sottovoce.tables.reader import Writer
names = [f"u{i}" for i in range(5000)]
columns = {"user": names, "item": ["é", None] * 2500, "share": [0.5, None] * 2500, "sign": [True, False] * 2500}
with Writer({"user": str, "item": str, "share": float, "sign": bool}) as table:
    table.add(columns)
    table.save(Path(sys.argv[1]))
print(Missing.asked)
"""


def test_a_table_is_written_without_looking_for_pandas_at_every_value(tmp_path: Path) -> None:
    """Where pandas is not installed, DuckDB would search for it again and again: minutes for a million users."""
    out = tmp_path / "o.csv"
    done = subprocess.run([sys.executable, "-c", COUNTING, out], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[:3] == ["user,item,share,sign", "u0,é,0.5,true", "u1,,,false"]
    assert len(lines) == 5001
