"""How the command line treats people: short help, near names, lists of epsilons, quiet, completion."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import check_refused, run, write

import sottovoce as sv
from sottovoce.cli.names import SAMPLERS, parse_epsilons
from sottovoce.errors import ParameterError


@pytest.mark.parametrize("path", [[], ["compare"], ["ledger"], ["ledger", "show"], ["demo"]], ids=" ".join)
def test_h_is_help(path: list[str]) -> None:
    short, long = run(*path, "-h"), run(*path, "--help")
    assert short.returncode == 0
    assert short.stdout == long.stdout
    assert "Usage:" in short.stdout


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["2"], [2.0]),
        (["1", "4"], [1.0, 4.0]),
        (["1,2,4"], [1.0, 2.0, 4.0]),
        (["3,0.5", "3", " 2 "], [3.0, 0.5, 2.0]),
    ],
)
def test_lists_of_epsilons(texts: list[str], numbers: list[float]) -> None:
    assert parse_epsilons(texts) == numbers


@pytest.mark.parametrize("text", ["", "two", "1,", "1:8", "1;2"])
def test_what_is_no_list_of_epsilons_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="a list such as 1,2,4"):
        parse_epsilons([text])


def test_a_list_of_epsilons_gives_the_rows_of_its_numbers(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count\na,3\nb,1\n")
    users = write(tmp_path, "users.csv", "user,item\nx,a\ny,b\n")
    done = run("compare", prior, users, "-e", "1,2,3", "-s", "kernel-clip", "--json", "--quiet")
    rows = json.loads(done.stdout)["rows"]
    assert sorted({row["epsilon"] for row in rows}) == [1.0, 2.0, 3.0]
    for row in rows:
        sampler = sv.kernel_clip(sv.Prior(["a", "b"], [0.75, 0.25]), row["epsilon"])
        own = [sv.TV(p, sampler.distribution(p)) for p in ([1.0, 0.0], [0.0, 1.0])]
        assert row["mean"] == pytest.approx(float(np.mean(own)), rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compar"], "No such command 'compar'. Did you mean 'compare'? See: sottovoce --help"),
        (["ledger", "shw"], "No such command 'shw'. Did you mean 'show'? See: sottovoce ledger --help"),
        (
            ["compare", "--epsilom", "2"],
            "--epsilom'. Did you mean '--epsilon'? See: sottovoce compare --help",
        ),
        (["compare", "a.csv", "-e", "2"], "Missing argument"),
        (["audit", "m.json", "--draws", "many"], "Invalid value for '--draws'"),
    ],
)
def test_a_slip_of_the_finger_is_one_line(arguments: list[str], message: str) -> None:
    check_refused(run(*arguments), message)


@pytest.mark.parametrize(
    ("option", "given", "meant"),
    [
        ("-s", "kernel-clp", "did you mean kernel-clip?"),
        ("-s", "prior_minmax", "did you mean prior-minimax?"),
        ("-d", "helinger2", "did you mean hellinger2?"),
    ],
)
def test_the_nearest_name_is_proposed(tmp_path: Path, option: str, given: str, meant: str) -> None:
    prior = write(tmp_path, "prior.csv", "item,count\na,3\nb,1\n")
    check_refused(run("compare", prior, prior, "-e", "2", option, given), meant)


def test_help_names_every_sampler_and_divergence() -> None:
    for command, options in {"compare": "sd", "design": "s"}.items():
        shown = "".join(run(command, "-h").stdout.split())
        for name in SAMPLERS:
            assert name.replace("_", "-") in shown, (command, name)
        for name in (*sv.DIVERGENCES, "hockey-stick:gamma=2") if "d" in options else ():
            assert name.replace("_", "-") in shown, (command, name)


def test_quiet_leaves_results_and_errors(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count\na,3\nb,1\n")
    loud, silent = run("prior", prior), run("prior", prior, "--quiet")
    assert run("--quiet", "prior", prior).stderr == silent.stderr
    assert loud.stderr != ""
    assert silent.stderr == ""
    assert silent.stdout == loud.stdout
    check_refused(run("prior", tmp_path / "none.csv", "--quiet"), "there is no such file")


def test_no_color_is_respected(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sottovoce", "prior", str(tmp_path / "none.csv")]
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    shown = [
        subprocess.run(command, capture_output=True, check=False, env={**plain, "FORCE_COLOR": "1", **more})
        for more in ({}, {"NO_COLOR": "1"})
    ]
    red = b"\x1b[31m"
    assert red in shown[0].stderr
    assert red not in shown[1].stderr
    assert b"there is no such file" in shown[1].stderr


def test_one_result_on_standard_output(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count\na,3\nb,1\n")
    check_refused(run("compare", prior, prior, "-e", 1, "-o", "-", "--json"), "both write to standard output")


def test_version_says_what_matters() -> None:
    first, second = run("--version").stdout.splitlines()
    assert first == f"sottovoce {sv.__version__}"
    assert f"python {platform.python_version()}, numpy {np.__version__}" in second
    assert all(name in second for name in ("scipy", "duckdb"))


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("compa", ["compare"]),
        ("ledger gr", ["grant"]),
        ("design survey.csv --sam", ["--sampler"]),
        (
            "compare members.csv members.csv --user ",
            [],
        ),  # nothing of a table: its first row may be somebody's
    ],
)
def test_the_shell_completes(tmp_path: Path, line: str, offered: list[str]) -> None:
    (tmp_path / "members.csv").write_text("anna,drama,3\nben,comedy,4\n")
    environment = {
        **os.environ,
        "_SOTTOVOCE_COMPLETE": "bash_complete",
        "COMP_WORDS": f"sottovoce {line}",
        "COMP_CWORD": str(len(line.split(" "))),
    }
    code = "import sys; sys.argv = ['sottovoce']; from sottovoce.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.stderr == ""
    assert [row.partition(",")[2] for row in done.stdout.split()] == offered


def test_none_counts_every_row_once(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", "item,count\na,3\nb,1\n")
    assert json.loads(run("prior", prior, "--count", "none", "--json").stdout)[0]["probabilities"] == [
        0.5,
        0.5,
    ]
    named = write(tmp_path, "n.csv", "item,none\na,3\nb,1\n")
    assert json.loads(run("prior", named, "--count", "none", "--json").stdout)[0]["probabilities"] == [
        0.75,
        0.25,
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-e", "1:2:1e-400000000"],
        ["-e", "1e99999999"],
        ["-e", "sNaN"],
        ["-e", "1," * 5000],
    ],
)
def test_odd_numbers_are_one_line(tmp_path: Path, arguments: list[str]) -> None:
    prior = write(tmp_path, "p.csv", "item,count\na,3\nb,1\n")
    check_refused(run("compare", prior, prior, *arguments), "")


def test_json_without_a_standard_output_is_refused(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", "item,count\na,3\nb,1\n")
    line = f"{sys.executable} -m sottovoce prior {prior} --json >&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
