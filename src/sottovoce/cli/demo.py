"""The command demo: the whole way on invented data, and a page about it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import click

from .. import demo
from ..atomic import write_whole
from ..groups import Groups
from ..listing import Listing
from ..planning.cards import card
from ..planning.compare import Comparison
from ..planning.fitted import fitted
from ..release.file import save_mechanisms
from .app import Command
from .design import print_card
from .explore import DEMO, USERS, page
from .options import PATH, option
from .terminal import print_table, print_text, step


@click.command("demo", cls=Command)
@option(
    "--output", "-o", type=PATH, default="sottovoce-demo", panel="Output",
    help="Folder for the tables, the pictures and the page.",
)  # fmt: skip
def demo_command(output: Path) -> None:
    """Run the whole way on two thousand invented film lovers, and write a page about it.

    \b
    Examples:
      sottovoce demo
      sottovoce demo --output my-demo
    """
    from ..pictures import plots

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
        results = _compared(table), _estimated(released)
        source = replace(DEMO, prior=str(prior_path), users={**USERS, "path": str(users_path)})
        write_whole(page(Groups(data.priors, "group"), source, results=results), output / "page.html")
    mechanism = output / "mechanism.json"
    save_mechanisms(released.mechanisms, "group", mechanism)
    total = sum(map(len, data.members.values()))
    print_text(
        f"\nA film club: {total:,} members, {len(demo.GENRES)} genres, {len(demo.GROUPS)} age groups. "
        "A public\nsurvey gives each group a prior q; each member releases one genre that looks like\n"
        "their own history.\n"
    )
    for result in results:
        print_table(result.head, result.rows, left=result.head[:1], title=result.title)
        print_text(f"{result.note}\n")
    print_card(card(fitted(data.priors[released.group], 2.0), group=released.group))
    digest, tables = released.mechanisms[released.group].digest, [str(prior_path), str(users_path)]
    print_text(
        f"Certified into {mechanism} (digest for {released.group}: {digest[:16]}…)\n"
        f"and released: {total:,} members in {released.seconds * 1e3:.0f} ms, "
        f"{total / released.seconds:,.0f} a second.\n\n"
        f"Page     {output / 'page.html'}\nPictures {picture}, {estimated}\nTables   {', '.join(tables)}\n\n"
        f"Try it yourself:\n  sottovoce compare {shlex.join(tables)} --by group -e 2 -d tv -d kl"
    )


def _compared(table: Comparison) -> Listing:
    return Listing(
        ("sampler", *(f"ε = {epsilon:g}" for epsilon in demo.EPSILONS), "q kept"),
        [[name, *cells, "yes" if keeps else "no"] for name, cells, keeps in demo.averages(table)],
        title="TV to the member's own taste, mean/maximum",
        note="Every sampler on the 2,000 members, averaged over the groups. TV is the least chance that the "
        "released genre differs from an honest draw of the member's own.",
    )


def _estimated(released: demo.DemoRelease) -> Listing:
    shares = released.found
    low, high = shares.interval()
    columns = (shares.model.prior, released.truth, shares.shares)
    return Listing(
        ("genre", "prior", "truth", "estimate", "95 % interval"),
        [
            [str(shares.categories[i]), *(f"{c[i]:.3f}" for c in columns), f"{low[i]:.3f} … {high[i]:.3f}"]
            for i in (-shares.model.prior).argsort(kind="stable")[:8].tolist()
        ],
        title=f"what the collector learns about {released.group}",
        note=f"From one more release of each member {released.group}, through {shares.model.name} at "
        f"ε = {shares.model.epsilon:g}; the ε of the two releases add up. {shares.summary()}",
    )
