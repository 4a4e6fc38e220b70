"""The command amplify: what a mechanism file guarantees behind a shuffler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..planning.shuffling import amplify
from ..release.file import ANY, load_mechanisms
from .app import Command
from .options import json_option, mechanism_argument, option
from .terminal import plain, print_json, print_note, print_text, step

TRUST = (
    "It holds with a shuffler that users trust, and if so many of the reports are honest. The local "
    "epsilon holds whatever the shuffler does."
)


@click.command("amplify", cls=Command)
@mechanism_argument
@option("--reports", type=int, required=True, help="Shuffled reports; of a file of groups, in each group.")
@option("--delta", default=1e-6, help="The δ of the central guarantee.")
@json_option
def amplify_command(mechanism_file: Path, reports: int, delta: float, as_json: bool) -> None:
    """Compute what shuffling adds: the central epsilon of many reports whose order nobody sees.

    \b
    Examples:
      sottovoce amplify mechanism.json --reports 100000
      sottovoce amplify mechanism.json --reports 100000 --delta 1e-9 --json
    """
    loaded = load_mechanisms(mechanism_file, policy=ANY)
    groups: list[dict[str, Any]] = []
    with step("bounding", total=len(loaded.mechanisms), unit="groups") as going:
        for group, mechanism in loaded.mechanisms.items():
            facts = {"group": group, "local_epsilon": float(mechanism.epsilon), "reports": reports}
            central = amplify(mechanism, reports, delta)
            groups.append(going.after({**facts, "delta": delta, "central_epsilon": central}))
    if as_json:
        print_json({"groups": groups, "note": TRUST})
        return
    for facts in groups:
        print_text(
            ("" if loaded.by is None else f"{plain(facts['group'])}: ")
            + f"{reports:,} shuffled reports at a local epsilon of {facts['local_epsilon']:g} are "
            f"differentially private with a central ε ≤ {facts['central_epsilon']:.4g} at δ = {delta:g}."
        )
    if loaded.by is not None:
        print_note("A group is published in clear: only the reports of its own group hide a user.")
    print_note(TRUST)
