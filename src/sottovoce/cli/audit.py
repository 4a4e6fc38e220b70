"""The command audit: it parses, calls and prints; no mathematics here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import Progress, TaskID
from rich.table import Table

from ..release.audit import AuditReport, audit
from ..release.mechanism_file import load_mechanisms
from ..release.policy import Policy
from .app import (
    AsJson,
    Digest,
    MaxEpsilon,
    MechanismPath,
    RequirePublicPrior,
    app,
)
from .terminal import console, errors, number, print_json, print_note, shown_text


@app.command("audit")
def audit_command(
    mechanism_file: MechanismPath,
    draws: Annotated[int, typer.Option(help="Releases to look at, per mechanism.")] = 1_000_000,
    confidence: Annotated[float, typer.Option(help="Chance that a sound mechanism passes.")] = 0.999,
    max_epsilon: MaxEpsilon = None,
    digest: Digest = None,
    require_public_prior: RequirePublicPrior = False,
    as_json: AsJson = False,
) -> None:
    """Check the certificate again in exact arithmetic, and test the releases as a black box.

    \b
    Examples:
      sottovoce audit mechanism.json
      sottovoce audit mechanism.json --draws 10000000 --json
    """
    rules = Policy(max_epsilon=max_epsilon, digest=digest, require_public_prior=require_public_prior)
    mechanisms = load_mechanisms(mechanism_file, policy=rules).mechanisms
    reports: dict[str, AuditReport] = {}
    quiet = as_json or not errors.is_terminal
    with Progress(console=errors, transient=True, disable=quiet) as progress:
        for group, mechanism in mechanisms.items():
            task = progress.add_task(f"auditing {shown_text(group)}", total=draws)

            def show(done: int, task: TaskID = task) -> None:
                progress.update(task, completed=done)

            reports[group] = audit(mechanism, draws=draws, confidence=confidence, progress=show)
    if as_json:
        print_json([{"group": g, **asdict(r), "passed": r.passed} for g, r in reports.items()])
    else:
        _print_reports(reports)
    if not all(report.passed for report in reports.values()):
        raise typer.Exit(1)


def _print_reports(reports: dict[str, AuditReport]) -> None:
    shown = Table(box=None, header_style="bold")
    for column in ("group", "sampler", "ε", "certificate", "draws", "ε at least", "verdict"):
        shown.add_column(column, justify="right" if column in ("ε", "draws", "ε at least") else "left")
    for group, report in reports.items():
        verdict = "no violation found" if report.passed else "[bold red]VIOLATION[/bold red]"
        shown.add_row(
            shown_text(group),
            shown_text(report.sampler),
            f"{report.epsilon:g}",
            report.certificate,
            f"{report.draws:,}",
            number(report.lower_bound),
            verdict,
        )
    console.print(shown)
    print_note(
        "The certificate is a proof in exact integers. The bound comes from draws alone, with confidence "
        f"{next(iter(reports.values())).confidence:g}: above ε it proves a violation, below it nothing."
    )
