"""`sottovoce amplify`."""

from __future__ import annotations

import json
from pathlib import Path

from command import check_refused, run, write

import sottovoce as sv
from sottovoce.release.file import ANY

GROUPED = "group,item,count\nnorth,a,5\nnorth,b,3\nnorth,c,2\nsouth,a,1\nsouth,b,1\nsouth,c,8\n"


def test_amplify_says_what_the_library_says_and_whom_one_has_to_trust(tmp_path: Path) -> None:
    survey, out = write(tmp_path, "survey.csv", GROUPED), tmp_path / "m.json"
    assert run("design", survey, "-e", "2", "--by", "group", "-o", out).returncode == 0
    done = run("amplify", out, "--reports", "500", "--delta", "1e-5", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for told, (group, one) in zip(said["groups"], sv.load_groups(out, policy=ANY).items(), strict=True):
        assert told["group"] == group
        assert told["central_epsilon"] == sv.amplify(one, 500, 1e-5)
    assert "trust" in said["note"]
    printed = run("amplify", out, "--reports", "500")
    assert printed.stdout.count("500 shuffled reports at a local epsilon of 2") == 2
    assert "only the reports of its own group" in printed.stderr
    check_refused(run("amplify", out, "--reports", "1"), "--reports must be an integer of at least 2")
