"""The command demo: the invented film club, from tables to a page."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from .. import demo
from ..planning.cards import card
from ..planning.fitted import fitted
from ..release.file import save_mechanisms
from .app import Command
from .design import print_card
from .options import PATH, option
from .terminal import console, print_note, print_table, print_text, step


@click.command("demo", cls=Command)
@option(
    "--output", "-o", type=PATH, default="sottovoce-demo", panel="Output",
    help="Folder for the tables, the pictures and the page.",
)  # fmt: skip
def command(output: Path) -> None:
    """Run the whole way on two thousand invented film lovers, and write a page about it.

    \b
    Examples:
      sottovoce demo
      sottovoce demo --output my-demo
    """
    from ..pictures import plots
    from ..pictures.page import demo_report

    data = demo.demo_data()
    rows = len(demo.COMPARED) * len(demo.GROUPS) * len(demo.EPSILONS)
    with step("comparing", "the film club", total=rows, unit="samplers") as going:
        table = demo.demo_comparison(data, progress=going.advance)
    output.mkdir(parents=True, exist_ok=True)
    prior_path, users_path = demo.write_tables(data, output)
    with step("releasing", "estimating and drawing"):
        picture = plots.demo_picture(data, table, output / "comparison.png")
        released = demo.demo_release(data)
        estimated = plots.demo_estimate(released, output / "estimate.png")
    mechanism = output / "mechanism.json"
    save_mechanisms(released.mechanisms, "group", mechanism)
    facts = card(fitted(data.priors[released.group], 2.0), group=released.group)
    drawn = [(picture, "one member's box, and every sampler against epsilon"), (estimated, "the estimate")]
    page = demo_report(data, table, facts, released, drawn, output / "report.html")
    members = sum(map(len, data.members.values()))
    print_text(
        f"\nA film club: {members:,} members, {len(demo.GENRES)} genres, {len(demo.GROUPS)} age groups. "
        "A public\nsurvey gives each group a prior q; each member releases one genre that looks like\n"
        "their own history.\n"
    )
    print_table(
        ("sampler", *(f"ε = {epsilon:g}" for epsilon in demo.EPSILONS), "q kept"),
        [[name, *cells, "yes" if keeps else "no"] for name, cells, keeps in demo.averages(table)],
        left=("sampler",),
        title="TV to the member's own taste, mean/maximum",
    )
    print_text(
        "\nTV is the least chance that the released genre differs from an honest draw of\n"
        "the member's own. Mean and maximum over a group's members, averaged over the\nthree groups.\n"
    )
    print_card(facts)
    _print_released(released, mechanism)
    _print_learned(demo.demo_learned(data))
    program = "sottovoce" if shutil.which("sottovoce") else f"{Path(sys.executable).parent / 'sottovoce'}"
    command = [program, "compare", str(prior_path), str(users_path), "--by", "group"]
    print_text(
        f"Page     {page}\nPictures {picture}, {estimated}\nTables   {prior_path}, {users_path}\n\n"
        f"Try it yourself:\n  {shlex.join([*command, '-e', '2', '-d', 'tv', '-d', 'kl'])}"
    )


def _print_released(released: demo.DemoRelease, mechanism: Path) -> None:
    """Print the releases and their rate, then what the collector learns beside the truth."""
    total = sum(map(len, released.answers.values()))
    digest = released.mechanisms[released.group].digest[:16]
    shares = released.found
    print_text(
        f"Certified into {mechanism} (digest for {released.group}: {digest}…)\n"
        f"and released: {total:,} members in {released.seconds * 1e3:.0f} ms, "
        f"{total / released.seconds:,.0f} a second.\n\n"
        f"To be learnt from, the members {released.group} released once more, through {shares.model.name} at "
        f"ε = {shares.model.epsilon:g}:\nwhat they spent adds up.\n"
    )
    rows = []
    for i in (-shares.model.prior).argsort(kind="stable")[:8].tolist():
        values = (shares.model.prior[i], released.truth[i], shares.values[i])
        interval = " … ".join(f"{end[i]:.3f}" for end in shares.interval())
        rows.append([str(shares.categories[i]), *(f"{value:.3f}" for value in values), interval])
    title = f"what the collector learns about {released.group}"
    print_table(("genre", "prior", "truth", "estimate", "95 % interval"), rows, left=("genre",), title=title)
    print_note(shares.summary())


def _print_learned(learned: demo.DemoLearned) -> None:
    """Print what the others gain where no survey is public."""
    print_text(
        f"\nAnd if there were no public survey? One member in five answers a private one at "
        f"ε = {learned.epsilon:g}\n(sottovoce survey); what was learned from it serves the others.\n"
    )
    rows = [[name, f"{mean:.3f}"] for name, mean in learned.means.items()]
    print_table(("prior of the others", "mean TV"), rows, left=("prior of the others",))
    print_note(f"The prior is {learned.prior.origin}. `sottovoce plan` says how many should answer.")
    console.print()
