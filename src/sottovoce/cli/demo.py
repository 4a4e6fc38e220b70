"""The command demo: the invented film club, from tables to a page."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from ..demo import (
    COMPARED,
    EPSILONS,
    GENRES,
    GROUPS,
    DemoLearned,
    DemoRelease,
    averages,
    demo_comparison,
    demo_data,
    demo_learned,
    demo_release,
    write_tables,
)
from ..planning.cards import card
from ..planning.fitted import fitted
from ..release.file import save_mechanisms
from .app import Command
from .design import print_card
from .options import PATH, json_option, option
from .terminal import console, print_json, print_note, print_table, step


@click.command("demo", cls=Command)
@option(
    "--output", "-o", type=PATH, default="sottovoce-demo", panel="Output",
    help="Folder for the tables, the pictures and the page.",
)  # fmt: skip
@json_option
def command(output: Path, as_json: bool) -> None:
    """Run the whole way on two thousand invented film lovers, and write a page about it.

    With --json the comparison is printed and no file is written.

    \b
    Examples:
      sottovoce demo
      sottovoce demo --output my-demo
    """
    from ..pictures import plots
    from ..pictures.page import demo_report

    data = demo_data()
    rows = len(COMPARED) * len(GROUPS) * len(EPSILONS)
    with step("comparing", "the film club", total=rows, unit="samplers") as going:
        table = demo_comparison(data, progress=going.advance)
    if as_json:
        print_json({"rows": table.to_dicts()})
        return
    output.mkdir(parents=True, exist_ok=True)
    prior_path, users_path = write_tables(data, output)
    with step("drawing", "the comparison"):
        picture = plots.demo_picture(data, table, output / "comparison.png")
    with step("releasing", "and estimating"):
        released = demo_release(data)
    mechanism = output / "mechanism.json"
    save_mechanisms(released.mechanisms, "group", mechanism)
    with step("drawing", "the estimate"):
        estimated = plots.demo_estimate(released, output / "estimate.png")
    facts = card(fitted(data.priors[released.group], 2.0), group=released.group)
    drawn = [(picture, "one member's box, and every sampler against epsilon"), (estimated, "the estimate")]
    page = demo_report(data, table, facts, released, drawn, output / "report.html")
    members = sum(map(len, data.members.values()))
    console.print(
        f"\n[bold]A film club[/bold]: {members:,} members, {len(GENRES)} genres, {len(GROUPS)} age groups. "
        f"A public survey\ngives each group a prior q; each member releases one genre that looks like\n"
        f"their own history.\n"
    )
    columns = [f"ε = {epsilon:g}" for epsilon in dict.fromkeys(row.epsilon for row in table)]
    print_table(
        ("sampler", *columns, "q kept"),
        [[name, *cells, "yes" if keeps else "no"] for name, cells, keeps in averages(table)],
        left=("sampler",),
        title="TV to the member's own taste, mean/maximum",
    )
    console.print(
        "\nTV is the least chance that the released genre differs from an honest draw of\n"
        "the member's own. Mean and maximum over a group's members, averaged over the\n"
        "three groups.\n"
    )
    print_card(facts)
    _print_released(released, mechanism)
    _print_learned(demo_learned(data))
    console.print(f"Page     {page}\nPictures {picture}, {estimated}", markup=False)
    console.print(f"Tables   {prior_path}, {users_path}\n", markup=False)
    console.print("Try it yourself:", style="bold")
    program = "sottovoce" if shutil.which("sottovoce") else f"{Path(sys.executable).parent / 'sottovoce'}"
    command = [program, "compare", str(prior_path), str(users_path), "--by", "group"]
    line = f"  {shlex.join([*command, '-e', '2', '-d', 'tv', '-d', 'kl'])}"
    console.print(line, soft_wrap=True, markup=False)


def _print_released(released: DemoRelease, mechanism: Path) -> None:
    """The releases and their rate, then what the collector learns beside the truth."""
    total = sum(map(len, released.answers.values()))
    rate = total / released.seconds
    digest = released.mechanisms[released.group].digest[:16]
    console.print(
        f"Certified into {mechanism} (digest for {released.group}: {digest}…)\n"
        f"and released: {total:,} members in {released.seconds * 1e3:.0f} ms, {rate:,.0f} a second.\n",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    found = released.found
    low, high = found.interval()
    console.print(
        f"To be learnt from, the members {released.group} released once more, through {found.model.name} at "
        f"ε = {found.model.epsilon:g}:\nwhat they spent adds up.\n",
        highlight=False,
    )
    rows = []
    for i in (-found.model.prior).argsort(kind="stable")[:8].tolist():
        values = (found.model.prior[i], released.truth[i], found.values[i])
        interval = f"{low[i]:.3f} … {high[i]:.3f}"
        rows.append([str(found.categories[i]), *(f"{value:.3f}" for value in values), interval])
    print_table(
        ("genre", "prior", "truth", "estimate", "95 % interval"),
        rows,
        left=("genre",),
        title=f"what the collector learns about {released.group}",
    )
    print_note(found.summary())
    console.print()


def _print_learned(learned: DemoLearned) -> None:
    """What the others gain where no survey is public."""
    console.print(
        f"And if there were no public survey? One member in five answers a private one at "
        f"ε = {learned.epsilon:g}\n(sottovoce survey); what was learned from it serves the others.\n",
        highlight=False,
    )
    rows = [[name, f"{mean:.3f}"] for name, mean in learned.means.items()]
    print_table(("prior of the others", "mean TV"), rows, left=("prior of the others",))
    print_note(f"The prior is {learned.prior.origin}. `sottovoce plan` says how many should answer.")
    console.print()
