"""The command audit: the certificate of a mechanism file again, and its releases as a black box."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..release.audit import AuditReport, Finding, audit, usual_draws
from ..release.file import ANY, parse_mechanisms, read_text
from ..release.proved import agrees
from .app import Command
from .options import json_option, mechanism_argument, option
from .terminal import number, print_json, print_note, print_table, shown_text, step


@click.command("audit", cls=Command)
@mechanism_argument
@option("--draws", type=int, help="Most releases per mechanism; default a million, 100,000 of a stream.")
@option("--confidence", default=0.999, help="Probability that a sound mechanism passes.")
@option("--proved", is_flag=True, help="Ask the checker that `make checker` builds, too.")
@json_option
def audit_command(
    mechanism_file: Path, draws: int | None, confidence: float, proved: bool, as_json: bool
) -> None:
    """Check the certificate again in exact arithmetic, and test the releases as a black box.

    With --proved, the checker that was extracted from a proof in Coq checks the same integers. It is
    sottovoce-checker on the PATH, or the file that SOTTOVOCE_CHECKER names. No user's data go there.

    \b
    Examples:
      sottovoce audit mechanism.json
      sottovoce audit mechanism.json --draws 10000000 --json
      sottovoce audit mechanism.json --proved
    """
    text = read_text(mechanism_file, ANY)
    mechanisms = parse_mechanisms(text, str(mechanism_file), ANY).mechanisms
    confirmed = agrees(text) if proved else {}  # the text that was checked, not the file again
    reports: dict[str, AuditReport] = {}
    for group, mechanism in mechanisms.items():
        with step("auditing", group, total=draws or usual_draws(mechanism), unit="draws") as going:
            reports[group] = audit(mechanism, draws=draws, confidence=confidence, progress=going.reached)
    if as_json:
        print_json([_facts(group, report, confirmed) for group, report in reports.items()])
    else:
        _print_reports(reports)
        for group, yes in confirmed.items():
            print_note(f"{shown_text(group)}: the proved checker says {'yes' if yes else 'NO'}.")
    if not all(report.passed for report in reports.values()) or not all(confirmed.values()):
        raise SystemExit(1)


def _facts(group: str, report: AuditReport, confirmed: dict[str, bool]) -> dict[str, Any]:
    totals = {"draws": report.draws, "lower_bound": report.lower_bound, "passed": report.passed}
    return {"group": group, **asdict(report), **totals, **({"proved": confirmed[group]} if confirmed else {})}


def _print_reports(reports: dict[str, AuditReport]) -> None:
    first = next(iter(reports.values()))
    paths = (f"by {finding.path}" for finding in first.findings)
    columns = ("group", "sampler", "ε", "certificate", *paths, "ε at least", "verdict")
    rows = []
    for group, report in reports.items():
        names = shown_text(group), shown_text(report.sampler), f"{report.epsilon:g}", report.certificate
        draws = (f"{finding.draws:,} draws" for finding in report.findings)
        verdict = "no violation found" if report.passed else "[bold red]VIOLATION[/bold red]"
        rows.append([*names, *draws, number(report.lower_bound), verdict])
    print_table(columns, rows, left=("group", "sampler", "certificate", "verdict"))
    for group, report in reports.items():
        print_note(f"{shown_text(group)}: {_sentence(report.worst, report.epsilon)}")
    print_note(
        "The certificate is a proof in exact integers. The bound comes from draws alone, with confidence "
        f"{first.confidence:g}: above ε it proves a violation, below it nothing."
    )


def _sentence(finding: Finding, epsilon: float) -> str:
    if finding.lower_bound <= 0:
        return "no event was released measurably more often for one user than for another."
    first, second = (shown_text(name) for name in finding.users)
    event = shown_text(str(finding.event[0]))
    if len(finding.event) > 1:
        event += f" or one of {len(finding.event) - 1:,} more answers, which --json names,"
    return (
        f"a user with {first} releases {event} at least {math.exp(finding.lower_bound):.3g} times as often "
        f"as one with {second}; ε allows {math.exp(epsilon):.3g} times. Seen through {finding.path} in "
        f"{finding.draws:,} draws."
    )
