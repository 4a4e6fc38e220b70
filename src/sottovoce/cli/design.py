"""The command design: a card for one sampler, and a certified mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..errors import ParameterError, PriorError
from ..planning.cards import Card, Shuffled, StreamCard, card, stream_card
from ..prior import FROM_USERS
from ..release.certify import certify
from ..release.file import save_mechanisms
from ..samplers.stream import MOST_STEPS, Stream, several
from ..tables import files
from ..tables.priors import PublicData
from .app import Command
from .options import (
    PATH,
    SAMPLER_NAMES,
    complete_sampler,
    epsilons_option,
    force_option,
    json_option,
    option,
    parse_sampler,
    prior_argument,
    provenance_option,
    public_columns,
    read_public,
    readings,
)
from .terminal import console, number, plain, print_json, print_note, print_table, shown_text, step


@click.command("design", cls=Command)
@prior_argument
@epsilons_option
@option(
    "--sampler", "-s", metavar="NAME", panel="Samplers", shell_complete=complete_sampler,
    help=f"Default fitted; auto (as choose recommends), stream:horizon=12, or one of {SAMPLER_NAMES}.",
)  # fmt: skip
@option(
    "--samples", default=1, type=click.IntRange(1, MOST_STEPS), panel="Samplers",
    help="Categories in one release; epsilon covers all of them together.",
)  # fmt: skip
@provenance_option
@public_columns
@option(
    "--output", "-o", type=PATH, panel="Output", help="Certify, and write the mechanism to this JSON file."
)
@force_option
@json_option
def command(
    prior_file: Path,
    epsilons: list[float],
    sampler: str | None,
    samples: int,
    provenance: str,
    item: str,
    count: str | None,
    by: str | None,
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
      sottovoce design survey.csv -e 4 --samples 4 -o four.json
      sottovoce design survey.csv -e 8 -s stream:horizon=52 -o stream.json
    """
    make: Callable[..., Any]
    options: dict[str, Any]
    make, options = parse_sampler(sampler or "fitted", streams=True)
    if output is not None:
        if len(epsilons) != 1:
            raise ParameterError(f"a mechanism has one epsilon: with --output give one, not {len(epsilons)}")
        files.check_writable(output, prior_file, force=force)
        if output.suffix.lower() != ".json":
            raise ParameterError(f"{output} cannot be written: a mechanism file ends in .json")
    public = read_public(prior_file, *readings(read, prior_file), item=item, count=count, by=by)
    if samples > 1:
        if sampler is not None:
            raise ParameterError("several samples are the steps of a stream: leave out --sampler")
        make, options = several, {"samples": samples}
    parts = len(public.priors) * len(epsilons)
    with step("designing", prior_file.name, total=parts, unit="samplers") as going:
        samplers = {
            (group, epsilon): going.after(make(prior, epsilon, **options))
            for group, prior in public.priors.items()
            for epsilon in epsilons
        }
    if output is not None:
        chosen = {group: made for (group, _), made in samplers.items()}
        _certify(chosen, public, prior_file, output, force, provenance)
    with step("bounding", "what shuffling adds", total=parts, unit="cards") as going:
        cards = [
            going.after(
                stream_card(made, group=group, shuffled=True)
                if isinstance(made, Stream)
                else card(made, group=group, shuffled=True)
            )
            for (group, _), made in samplers.items()
        ]
    print_note(
        f"{prior_file.name}: {plain(public.how)}. It must be public data, not counts of the users to be "
        f"served."
    )
    if as_json:
        print_json([asdict(facts) for facts in cards])
        return
    for facts in cards:
        print_stream_card(facts) if isinstance(facts, StreamCard) else print_card(facts)


def _certify(
    samplers: dict[str, Any],
    public: PublicData,
    prior_file: Path,
    output: Path,
    force: bool,
    provenance: str,
) -> None:
    """Certify the sampler of every group, and write the mechanism file."""
    if provenance != "users" and any(prior.provenance == "users" for prior in public.priors.values()):
        raise PriorError(
            f"{prior_file}: {FROM_USERS} Read: {plain(public.how)}. If it is not about them, make it with: "
            f"sottovoce prior --provenance public -o prior.json; for an experiment pass --provenance users"
        )
    with step("certifying", prior_file.name, total=len(samplers), unit="mechanisms") as going:
        mechanisms = {
            group: going.after(certify(sampler, provenance=provenance)) for group, sampler in samplers.items()
        }
    digest = save_mechanisms(mechanisms, public.by, output, replace=force)
    print_note(f"certified and written to {output}; whoever releases can pin it: --digest {digest}")
    if public.by is not None:
        print_note(f"Who releases with it publishes each user's {plain(public.by)!r} in clear.")


def print_card(facts: Card) -> None:
    """Print the card of one sampler."""
    kept = "yes: data equal to the public data are released undistorted" if facts.keeps_prior else "no"
    enough = "yes: the sampler is linear" if facts.linear else "no: the clip needs the user's whole p"
    grid = Table.grid(padding=(0, 2))
    grid.add_row("sampler", f"[bold]{shown_text(facts.sampler)}[/bold] for {shown_text(facts.group)}")
    grid.add_row("epsilon", f"{facts.epsilon:g}")
    grid.add_row("categories", f"{facts.categories:,}")
    rarest = shown_text(facts.rarest_category)
    grid.add_row("smallest probability", f"{facts.smallest_probability:.4g} ({rarest})")
    grid.add_row("keeps the prior", kept)
    grid.add_row("one record is enough", enough)
    another = f"at most {number(facts.released_as_another)}: Pr(X ≠ Z), X a draw of any user's own"
    grid.add_row("released as another", another)
    for k, own in enumerate(facts.released_as_itself):
        name, q = shown_text(own.category), number(own.probability)
        least = f"at least {number(own.at_least)} for {name} (q = {q})"
        grid.add_row("released as itself" if k == 0 else "", least)
    needed = "never: its reports only tell what was released"
    if facts.reports_needed is not None:
        needed = f"{facts.reports_needed:,} for ± 0.01 in every category (95 %), if users are like the prior"
    grid.add_row("reports to estimate", needed)
    _end_card(grid, facts)
    columns = ("worst case", "this", "rand. resp.", "mollifier", "paper's bound", "best keeping q")
    rows = []
    for row in facts.worst_cases:
        rivals = (row.randomized_response, row.relative_mollifier, row.paper_bound, row.prior_minimax)
        rows.append([row.divergence, *map(number, (row.this, *rivals))])
    print_table(columns, rows, left=("worst case",))
    console.print()


def print_stream_card(facts: StreamCard) -> None:
    """Print the card of a stream, or of several samples."""
    grid = Table.grid(padding=(0, 2))
    grid.add_row("sampler", f"[bold]stream[/bold] for {shown_text(facts.group)}")
    releases = f"{facts.samples} categories in one release"
    if facts.samples == 1:
        planned = "without an end" if facts.horizon is None else f"planned for {facts.horizon}"
        releases = f"any number, {planned}; each device keeps a state"
    grid.add_row("releases", releases)
    grid.add_row("epsilon", f"{facts.epsilon:g} for all of them together")
    grid.add_row("categories", f"{facts.categories:,}")
    kept = "yes: data equal to the public data are released undistorted, for ever"
    persistent = "no: with persistence the public law follows the last release"
    grid.add_row("keeps the prior", kept if facts.keeps_prior else persistent)
    another = f"at most {number(facts.released_as_another)} at the first step: Pr(X ≠ Z)"
    grid.add_row("released as another", another)
    _end_card(grid, facts)
    console.print()


def _end_card(grid: Table, facts: Card | StreamCard) -> None:
    """Print a card with its last lines: what shuffling adds, and the prior."""
    shuffled: Sequence[Shuffled] = facts.shuffled
    for k, row in enumerate(shuffled):
        words = f"{row.reports:,} reports are ({row.central_epsilon:.2g}, {row.delta:g})-private, at least"
        grid.add_row("if shuffled" if k == 0 else "", words)
    if shuffled:
        grid.add_row("", "[dim]by somebody people trust; epsilon holds whatever the shuffler does[/dim]")
    grid.add_row("prior digest", facts.prior_digest[:16])
    console.print(grid)
    if facts.provenance == "users":
        console.print(f"[bold red]Not public.[/bold red] {FROM_USERS}")
