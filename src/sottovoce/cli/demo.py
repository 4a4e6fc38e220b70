"""The command demo: the invented film club, from tables to a page."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import click

from .. import demo
from .._atomic import write_whole
from ..groups import Groups
from ..planning.cards import card
from ..planning.compare import Comparison
from ..planning.fitted import fitted
from ..release.file import save_mechanisms
from .app import Command
from .design import print_card
from .explore import DEMO, USERS, Result, page
from .options import PATH, option
from .terminal import print_note, print_table, print_text, step


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
    total = sum(map(len, released.answers.values()))
    model = released.found.model
    print_text(
        f"\nA film club: {total:,} members, {len(demo.GENRES)} genres, {len(demo.GROUPS)} age groups. "
        "A public\nsurvey gives each group a prior q; each member releases one genre that looks like\n"
        "their own history.\n"
    )
    _print_result(results[0])
    print_text(
        "\nTV is the least chance that the released genre differs from an honest draw of\n"
        "the member's own. Mean and maximum over a group's members, averaged over the\nthree groups.\n"
    )
    print_card(card(fitted(data.priors[released.group], 2.0), group=released.group))
    print_text(
        f"Certified into {mechanism} (digest for {released.group}: "
        f"{released.mechanisms[released.group].digest[:16]}…)\n"
        f"and released: {total:,} members in {released.seconds * 1e3:.0f} ms, "
        f"{total / released.seconds:,.0f} a second.\n\n"
        f"For the estimate, the members {released.group} released a second time, with {model.name} at "
        f"ε = {model.epsilon:g}.\nThe ε of the two releases add up.\n"
    )
    _print_result(results[1])
    print_note(released.found.summary())
    program = "sottovoce" if shutil.which("sottovoce") else f"{Path(sys.executable).parent / 'sottovoce'}"
    command = [program, "compare", str(prior_path), str(users_path), "--by", "group"]
    print_text(
        f"\nPage     {output / 'page.html'}\nPictures {picture}, {estimated}\n"
        f"Tables   {prior_path}, {users_path}\n\n"
        f"Try it yourself:\n  {shlex.join([*command, '-e', '2', '-d', 'tv', '-d', 'kl'])}"
    )


def _compared(table: Comparison) -> Result:
    """How every sampler serves the members."""
    return Result(
        "TV to the member's own taste, mean/maximum",
        "Every sampler on the 2,000 members, averaged over the groups.",
        ("sampler", *(f"ε = {epsilon:g}" for epsilon in demo.EPSILONS), "q kept"),
        [[name, *cells, "yes" if keeps else "no"] for name, cells, keeps in demo.averages(table)],
    )


def _estimated(released: demo.DemoRelease) -> Result:
    """What the collector learns of the largest group, beside the truth."""
    shares = released.found
    low, high = shares.interval()
    columns = (shares.model.prior, released.truth, shares.shares)
    return Result(
        f"what the collector learns about {released.group}",
        f"From one more release of each member {released.group}, through {shares.model.name} at "
        f"ε = {shares.model.epsilon:g}. {shares.summary()}",
        ("genre", "prior", "truth", "estimate", "95 % interval"),
        [
            [str(shares.categories[i]), *(f"{c[i]:.3f}" for c in columns), f"{low[i]:.3f} … {high[i]:.3f}"]
            for i in (-shares.model.prior).argsort(kind="stable")[:8].tolist()
        ],
    )


def _print_result(result: Result) -> None:
    """Print the table of a result."""
    print_table(result.head, [*result.rows], left=(result.head[0],), title=result.title)
