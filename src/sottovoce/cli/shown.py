"""Cards and comparisons as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from rich.table import Table

from ..demo import averages
from ..planning.cards import Card, Shuffled
from ..planning.compare import STATISTICS, Comparison, ComparisonRow
from ..planning.limit import TAIL
from ..planning.several import JointCard
from ..prior import FROM_USERS
from .terminal import console, number, print_note, shown_text


def print_card(card: Card) -> None:
    """The card of one sampler."""
    kept = "yes: data equal to the public data are released undistorted" if card.keeps_prior else "no"
    one = "yes: the sampler is linear" if card.linear else "no: the clip needs the user's whole p"
    facts = Table.grid(padding=(0, 2))
    facts.add_row("sampler", f"[bold]{shown_text(card.sampler)}[/bold] for {shown_text(card.group)}")
    facts.add_row("epsilon", f"{card.epsilon:g}")
    facts.add_row("categories", f"{card.categories:,}")
    rarest = shown_text(card.rarest_category)
    facts.add_row("smallest probability", f"{card.smallest_probability:.4g} ({rarest})")
    facts.add_row("keeps the prior", kept)
    facts.add_row("one record is enough", one)
    another = f"at most {number(card.released_as_another)}: Pr(X ≠ Z), X a draw of any user's own"
    facts.add_row("released as another", another)
    for k, own in enumerate(card.released_as_itself):
        name, q = shown_text(own.category), number(own.probability)
        least = f"at least {number(own.at_least)} for {name} (q = {q})"
        facts.add_row("released as itself" if k == 0 else "", least)
    needed = "never: its reports only tell what was released"
    if card.reports_needed is not None:
        needed = f"{card.reports_needed:,} for ± 0.01 in every category (95 %), if users are like the prior"
    facts.add_row("reports to estimate", needed)
    add_shuffled(facts, card.shuffled)
    facts.add_row("prior digest", card.prior_digest[:16])
    console.print(facts)
    if card.prior_from_users:
        console.print(f"[bold red]Not public.[/bold red] {FROM_USERS}")
    table = Table(box=None, header_style="bold")
    columns = ("worst case", "this", "rand. resp.", "mollifier", "paper's bound", "best keeping q")
    for column in columns:
        table.add_column(column, justify="left" if column == "worst case" else "right", no_wrap=True)
    for row in card.worst_cases:
        rivals = (row.randomized_response, row.relative_mollifier, row.paper_bound, row.prior_minimax)
        table.add_row(row.divergence, *map(number, (row.this, *rivals)))
    console.print(table)
    console.print()


def print_joint_card(card: JointCard) -> None:
    """The card of a design with several samples."""
    facts = Table.grid(padding=(0, 2))
    facts.add_row("sampler", f"[bold]{shown_text(card.sampler)}[/bold] for {shown_text(card.group)}")
    facts.add_row("samples", f"{card.samples} categories in one release")
    facts.add_row("epsilon", f"{card.epsilon:g} for all samples together")
    facts.add_row("categories", f"{card.categories:,}")
    kept = (
        "yes: data equal to the public data are released as independent draws" if card.keeps_prior else "no"
    )
    facts.add_row("keeps the prior", kept)
    facts.add_row(
        "worst case",
        f"{number(card.worst_together)} joint total variation for the rarest user, "
        f"{number(card.worst_separately)} with separate releases at {card.epsilon / card.samples:g}",
    )
    facts.add_row(
        "told apart", f"{card.told_apart} categories of a user; with more, the samples are drawn separately"
    )
    add_shuffled(facts, card.shuffled)
    facts.add_row("prior digest", card.prior_digest[:16])
    console.print(facts)
    if card.prior_from_users:
        console.print(f"[bold red]Not public.[/bold red] {FROM_USERS}")
    console.print()


def add_shuffled(facts: Table, found: Sequence[Shuffled]) -> None:
    """What shuffling adds, and whom one has to trust for it."""
    for k, one in enumerate(found):
        words = f"{one.reports:,} reports are ({one.central_epsilon:.2g}, {one.delta:g})-private, at least"
        facts.add_row("if shuffled" if k == 0 else "", words)
    if found:
        facts.add_row("", "[dim]by somebody people trust; epsilon holds whatever the shuffler does[/dim]")


def print_comparison(table: Comparison, statistic: str, marks: Mapping[ComparisonRow, str]) -> None:
    """One line per row, the marked ones bold; on a narrow terminal fewer statistics: no number is cut."""
    wide = console.width >= 110
    rows = table.rows + table.all_groups
    columns = STATISTICS if wide else tuple(dict.fromkeys(("mean", statistic, "maximum")))
    grouped = any(row.group != "all" for row in table)
    limited = any(row.above_limit is not None for row in rows)
    shown = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    head = [*(["group"] if grouped else []), "ε", "sampler", "f", "users", *columns]
    head += [*(["above limit"] if limited else []), "keeps q", *(["best"] if marks else [])]
    for column in head:
        side = column in ("group", "sampler", "f", "best")
        justify: Literal["left", "right"] = "left" if side else "right"
        shown.add_column(column.replace("_", " "), justify=justify, no_wrap=not side, overflow="fold")
    block: tuple[object, ...] = ()
    for row in rows:
        if marks and block not in ((), (row.group, row.epsilon, row.divergence)):
            shown.add_row()
        block = row.group, row.epsilon, row.divergence
        shown.add_row(
            *([shown_text(row.group)] if grouped else []),
            f"{row.epsilon:g}",
            shown_text(row.sampler),
            shown_text(row.divergence),
            f"{row.users:,}",
            *(_number_or_dash(getattr(row, column)) for column in columns),
            *([_number_or_dash(row.above_limit)] if limited else []),
            "yes" if row.keeps_prior else "no",
            *([marks.get(row, "")] if marks else []),
            style="bold" if marks.get(row) == "best" else None,
        )
    console.print(shown)
    if table.prior_from_users:
        print_note(FROM_USERS)
    if limited:
        print_note(
            f"best possible: no private sampler that keeps the prior has a smaller mean + {TAIL:g}·maximum "
            "on these users; above limit: how much larger that sum is, at most (its own: the proof's gap)."
        )
    if not wide:
        print_note("More columns in a wider window, or with --json.")


def print_averages(table: Comparison) -> None:
    """Mean and maximum TV per sampler and epsilon, averaged over groups."""
    title = "TV to the member's own taste, mean/maximum"
    shown = Table(title=title, box=None, header_style="bold", padding=(0, 1, 0, 0))
    shown.add_column("sampler", no_wrap=True)
    for epsilon in dict.fromkeys(row.epsilon for row in table):
        shown.add_column(f"ε = {epsilon:g}", justify="right", no_wrap=True)
    shown.add_column("q kept", justify="right", no_wrap=True)
    for name, cells, keeps in averages(table):
        shown.add_row(name, *cells, "yes" if keeps else "no")
    console.print(shown)


def _number_or_dash(value: float | None) -> str:
    return "-" if value is None else number(value)
