"""Groups as a value: what is passed and returned, and a group that is called like everybody."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from command import run, write

import sottovoce as sv
from sottovoce.groups import EVERYBODY, Groups


def test_one_thing_or_one_per_group() -> None:
    alone: Groups[int] = Groups.of(7, None)
    grouped: Groups[int] = Groups.of({"old": 1, EVERYBODY: 2}, "age")
    assert (dict(alone), alone.by, alone.returned) == ({EVERYBODY: 7}, None, 7)
    assert (dict(grouped), grouped.by) == ({"old": 1, EVERYBODY: 2}, "age")
    assert grouped.returned == {"old": 1, EVERYBODY: 2}
    assert (len(grouped), list(grouped), grouped["old"]) == (2, ["old", EVERYBODY], 1)
    wrong: list[tuple[Any, str | None]] = [(7, "age"), ({"old": 1}, None)]
    for given, by in wrong:
        with pytest.raises(sv.errors.ParameterError, match="needs the group column by="):
            Groups.of(given, by)


def test_a_group_called_all_keeps_its_column(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", f"item,count,age\na,3,{EVERYBODY}\nb,1,{EVERYBODY}\n")
    users = write(tmp_path, "u.csv", f"user,item,age\nu,a,{EVERYBODY}\nv,b,{EVERYBODY}\n")
    shown = run("compare", prior, users, "-e", 1, "-s", "kernel-clip", "--by", "age").stdout
    assert shown.splitlines()[0].split()[0] == "group"
    assert run("design", prior, "-e", 1, "--by", "age", "-o", tmp_path / "m.json").returncode == 0
    released = tmp_path / "r.csv"
    command = ["release", tmp_path / "m.json", users, "--by", "age", "--max-epsilon", 1, "-o", released]
    assert run(*command).returncode == 0
    with released.open() as file:
        assert [row["age"] for row in csv.DictReader(file)] == [EVERYBODY, EVERYBODY]
    done = run("estimate", tmp_path / "m.json", released)
    assert done.stdout.startswith(f"{EVERYBODY}: ")
    rows = json.loads(run("prior", prior, "--by", "age", "--json").stdout)
    assert [row["group"] for row in rows] == [EVERYBODY]
