"""The command amplify: what shuffling adds to the local guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..planning.shuffling import amplified, amplified_delta, reports_for
from ..release.file import ANY, load_mechanisms
from .app import Command
from .options import json_option, mechanism_argument, option
from .terminal import console, print_json, print_note, shown_text, step

TRUST = (
    "It holds if reports are shuffled by somebody people trust, and if so many of them are honest. The local "
    "epsilon holds whatever the shuffler does."
)


@click.command("amplify", cls=Command)
@mechanism_argument
@option("--reports", type=int, required=True, help="Shuffled reports; of a file of groups, in each group.")
@option("--delta", default=1e-6, help="The δ of the central guarantee.")
@option("--target", type=float, help="Also compute how many reports reach this central epsilon.")
@json_option
def command(mechanism_file: Path, reports: int, delta: float, target: float | None, as_json: bool) -> None:
    """Compute what shuffling adds: the central epsilon of many reports whose order nobody sees.

    With --json, also δ for some values of the central epsilon.

    \b
    Examples:
      sottovoce amplify mechanism.json --reports 100000
      sottovoce amplify mechanism.json --reports 100000 --delta 1e-9 --json
      sottovoce amplify mechanism.json --reports 10000 --target 0.5
    """
    loaded = load_mechanisms(mechanism_file, policy=ANY)
    found: list[dict[str, Any]] = []
    with step("bounding", total=len(loaded.mechanisms), unit="groups") as going:
        for group, one in loaded.mechanisms.items():
            central = amplified(one, reports, delta)
            told: dict[str, Any] = {"group": group, "local_epsilon": float(one.epsilon), "reports": reports}
            told |= {"delta": delta, "central_epsilon": central}
            if target is not None:
                told |= {"target": target, "reports_for_target": reports_for(one, target, delta)}
            if as_json:
                steps = [central * part / 5 for part in range(11)]
                told["curve"] = [{"epsilon": e, "delta": amplified_delta(one, reports, e)} for e in steps]
            found.append(told)
            going.advance()
    if as_json:
        print_json({"groups": found, "note": TRUST})
        return
    for told in found:
        name = "" if loaded.by is None else f"{shown_text(told['group'])}: "
        console.print(
            f"{name}{reports:,} shuffled reports at a local epsilon of {told['local_epsilon']:g} are "
            f"({told['central_epsilon']:.4g}, {delta:g})-differentially private, at least.",
            highlight=False,
            soft_wrap=True,
        )
        if target is not None:
            needed = told["reports_for_target"]
            console.print(f"{name}A central epsilon of {target:g} takes {needed:,} reports.", highlight=False)
    if loaded.by is not None:
        print_note("A group is published in clear: only the reports of its own group hide a user.")
    print_note(TRUST)
