"""The command design: a card for one sampler, and a certified mechanism."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ..errors import ParameterError, PriorError
from ..planning.cards import Card, NearCard, StreamCard, any_card
from ..prior import FROM_USERS
from ..release.certify import certify
from ..release.file import save_mechanisms
from ..samplers.nearest import nearest
from ..samplers.stream import stream
from . import names, options, terminal
from .app import Command
from .options import JSON, Columns, Output, option
from .terminal import number, plain, print_facts, print_json, print_note, print_table, shown_text, step

UNDISTORTED = "yes: for data equal to the prior, the released category follows the prior exactly"


@click.command("design", cls=Command)
@options.prior_argument
@names.epsilons_option
@option(
    "--sampler", "-s", metavar="NAME", panel="Samplers",
    help=f"Default fitted; auto (as choose recommends), stream:horizon=12, or one of {names.SAMPLER_NAMES}.",
)  # fmt: skip
@options.provenance_option
@options.placed_columns
@options.output_options("Certify, and write the mechanism to this JSON file.")
def design_command(
    prior_file: Path,
    epsilons: list[float],
    sampler: str | None,
    provenance: str | None,
    item: str,
    count: str | None,
    by: str | None,
    near: str | None,
    read: tuple[str, ...],
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Describe one sampler: what it keeps and how bad it can get; with -o also certify it as a mechanism.

    \b
    Examples:
      sottovoce design survey.csv --epsilon 2
      sottovoce design survey.csv -e 2 -e 4 -s prior-minimax --by group
      sottovoce design survey.csv -e 2 --by group -o mechanism.json
      sottovoce design survey.csv -e 8 -s stream:horizon=52 -o stream.json
      sottovoce design cells.csv -e 16 -s stream:persistence=0.99 \\
          --near latitude=lat,longitude=lon -o places.json
    """
    columns = Columns(item=item, count=count, by=by, near=near, read=read)
    make = names.parse_sampler(sampler or ("nearest" if near else "fitted"), streams=True)
    if output is not None and len(epsilons) != 1:
        raise ParameterError(f"a mechanism has one epsilon: with --output give one, not {len(epsilons)}")
    Output(output, force=force, as_json=as_json).check(prior_file, kinds=JSON)
    (table,) = columns.tables(prior_file)
    public = table.priors(provenance=provenance)
    if near and make.func not in (nearest, stream):
        raise ParameterError(
            "--near is for the samplers nearest and stream: leave it out, or name one of them"
        )
    (make,) = names.with_geometry([make], public.geometry)
    parts = len(public.priors) * len(epsilons)
    with step("designing", prior_file.name, total=parts, unit="samplers") as going:
        samplers = {
            (group, epsilon): going.after(make(prior, epsilon))
            for group, prior in public.priors.items()
            for epsilon in epsilons
        }
    if output is not None:
        if provenance != "users" and any(prior.provenance == "users" for prior in public.priors.values()):
            raise PriorError(
                f"{prior_file}: {FROM_USERS} Read: {plain(public.how)}. For an experiment pass "
                "--provenance users"
            )
        with step("certifying", prior_file.name, total=parts, unit="mechanisms") as going:
            mechanisms = {
                group: going.after(certify(made, provenance=provenance or "public"))
                for (group, _), made in samplers.items()
            }
        digest = save_mechanisms(mechanisms, public.by, output, replace=force)
        print_note(f"certified and written to {output}; whoever releases can pin it: --digest {digest}")
        if public.by is not None:
            print_note(f"A release with this file publishes each user's {plain(public.by)!r} in clear.")
    cards = [any_card(made, group) for (group, _), made in samplers.items()]
    learned = all(prior.provenance == "learned" for prior in public.priors.values())
    must = "" if learned else " It must be public data, not counts of the users to be served."
    print_note(f"{prior_file.name}: {plain(public.how)}.{must}")
    if as_json:
        print_json([asdict(facts) for facts in cards])
        return
    for facts in cards:
        print_card(facts)


def print_card(facts: Card | NearCard | StreamCard) -> None:
    """Print the card of a sampler or a stream."""
    if isinstance(facts, StreamCard):
        meant, rows = " for all releases together", _stream_rows(facts)
    elif isinstance(facts, NearCard):
        meant, rows = ", between any two users, however far apart", _near_rows(facts)
    else:
        meant, rows = "", _sampler_rows(facts)
    name = "stream" if isinstance(facts, StreamCard) else facts.sampler
    print_facts(
        [
            ("sampler", f"[bold]{shown_text(name)}[/bold] for {shown_text(facts.group)}"),
            ("epsilon", f"{facts.epsilon:g}{meant}"),
            ("categories", f"{facts.categories:,}"),
            ("keeps the prior", UNDISTORTED if facts.keeps_prior else "no"),
            *rows,
            ("prior digest", facts.prior_digest[:16]),
        ]
    )
    if facts.provenance == "users":
        terminal.console.print(f"[bold red]Not public.[/bold red] {FROM_USERS}")
    if isinstance(facts, Card):
        columns = ("worst case", "this", "rand. resp.", "mollifier", "paper's bound", "best keeping q")
        cells = [[row.divergence, *map(number, list(asdict(row).values())[1:])] for row in facts.worst_cases]
        print_table(columns, cells, left=("worst case",))
    terminal.console.print()


def _sampler_rows(facts: Card) -> list[tuple[str, object]]:
    kept = [
        f"at least {number(own.at_least)} for {shown_text(own.category)} (q = {number(own.probability)})"
        for own in facts.released_as_itself
    ]
    needed = "no number is enough: they estimate the released law, not the users' own"
    if facts.reports_needed is not None:
        needed = f"{facts.reports_needed:,} for ± 0.01 in every category (95 %), if users are like the prior"
    enough = "yes: the sampler is linear" if facts.linear else "no: the clip needs the user's whole p"
    another = f"probability ≤ {number(facts.released_as_another)}, for a draw from any user's own data"
    return [
        ("smallest probability", f"{facts.smallest_probability:.4g} ({shown_text(facts.rarest_category)})"),
        ("one record is enough", enough),
        ("released as another", another),
        *zip(("released as itself", *[""] * len(kept)), kept, strict=False),
        ("reports to estimate", needed),
    ]


def _near_rows(facts: NearCard) -> list[tuple[str, object]]:
    worst = facts.worst_w1
    return [
        ("one category only", "of a user who has one category, drawn from the prior:"),
        ("", f"half of the releases are within {number(facts.half_within)} of it"),
        ("", f"nine in ten are within {number(facts.nine_tenths_within)}"),
        ("", f"{number(facts.as_itself)} of them are the category itself; the mean is {number(facts.mean)}"),
        *([("any possible user", f"W1 is at most {number(worst)}")] if worst is not None else []),
    ]


def _stream_rows(facts: StreamCard) -> list[tuple[str, object]]:
    planned = "without an end" if facts.horizon is None else f"planned for {facts.horizon}"
    rows: list[tuple[str, object]] = [("releases", f"any number, {planned}; each device keeps a state")]
    if not facts.keeps_prior:
        rows.append(("with persistence", "the public law follows the last release"))
    if facts.released_as_another is not None:
        far = number(facts.released_as_another)
        rows.append(("released as another", f"probability ≤ {far} at the first step"))
    return rows
