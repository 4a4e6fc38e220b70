"""The commands prior, survey and plan: a prior from public data, or private reports to learn one from."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..collecting.estimate import reports_or_none
from ..collecting.learning import reports_for_prior
from ..collecting.model import model_of
from ..errors import PriorError, TableError
from ..planning.plan import plan
from ..prior import FROM_USERS
from ..records import Category
from ..release.certify import certify
from ..release.file import save_mechanisms
from ..samplers.survey import survey
from ..tables import files
from ..tables.files import kind_of
from ..tables.priors import AS_COUNTED, PriorOptions, PublicData, read_priors, write_priors
from . import options
from .app import Command
from .options import JSON, Columns, Output, json_option, option, output_options, path_argument
from .terminal import number, plain, print_json, print_note, print_table, print_text, shown_text, step

LISTED = 15
categories_argument = path_argument("categories_file", metavar="CATEGORIES")
epsilon_option = option("--epsilon", "-e", type=float, required=True, help="Privacy parameter of a report.")


@click.command("prior", cls=Command)
@options.path_argument("table", metavar="TABLE")
@options.public_columns
@options.column("--user", "The user: the prior is then marked as made from its users.")
@option("--smoothing", default=0.0, help="Added to every count, so that none is zero.")
@option(
    "--rare", default="error", metavar="WHAT", stands_for={"merge_rare": "as={}", "drop_zero": "drop"},
    help="Categories without a count or below --rare-below: as=NAME makes them one; drop leaves out those "
    "without a count.",
)  # fmt: skip
@option("--rare-below", type=float, help="Counts below this are rare; default those that are zero.")
@options.provenance_option
@options.output_options("Write the prior to this JSON file.")
def prior_command(
    table: Path,
    columns: Columns,
    smoothing: float,
    rare: str,
    rare_below: float | None,
    provenance: str | None,
    output: Output,
) -> None:
    """Count public data into a prior, or into one per group.

    TABLE is CSV (also compressed), Parquet, JSON or Excel: a row per item with a count, or a row per record.
    The result is the prior file of compare, choose and design.

    \b
    Examples:
      sottovoce prior survey.csv --by group -o prior.json
      sottovoce prior visits.csv.gz --item site --by country --count none \\
          --rare as=elsewhere --rare-below 100 -o prior.json
      sottovoce prior survey.xlsx --read sheet=2 --rare as=other --rare-below 5
    """
    output.check(table, kinds=JSON)
    kind, name = options.parse_as(rare, "--rare", "error", "drop")
    counted = PriorOptions(smoothing, name, rare_below, drop_zero=kind == "drop")
    (public,) = columns.tables(table)
    data = public.priors(user=columns.user, provenance=provenance, options=counted)
    print_note(f"{table.name}: {plain(data.how)}.")
    if output.output is not None:
        write_priors(data, output.output, replace=output.force)
        print_note(f"written to {output.output}")
    if not output.as_json:
        _print_priors(data)
        return
    facts = []
    for name, prior in data.priors.items():
        shares = {"categories": list(prior.categories), "probabilities": prior.probabilities.tolist()}
        facts.append({"group": name, "digest": prior.digest, "provenance": prior.provenance, **shares})
    print_json(facts)


def _print_priors(data: PublicData) -> None:
    """Print one line per group; the categories too where there is only one group."""
    rows = []
    for name, prior in data.priors.items():
        ends = (prior.smallest, float(prior.probabilities.max()))
        rows.append([shown_text(name), f"{len(prior):,}", *map(number, ends), prior.digest[:16]])
    print_table(("group", "categories", "smallest", "largest", "digest"), rows, left=("group", "digest"))
    if len(data.priors) == 1:
        (prior,) = data.priors.values()
        largest = (-prior.probabilities).argsort(kind="stable")[:LISTED].tolist()
        names = [[shown_text(prior.categories[i]), number(float(prior.probabilities[i]))] for i in largest]
        print_table(("category", "probability"), names, left=("category",))
        if len(prior) > LISTED:
            print_note(f"and {len(prior) - LISTED:,} rarer ones")
    if any(prior.provenance == "users" for prior in data.priors.values()):
        print_note(FROM_USERS)


def read_categories(path: Path) -> Sequence[Category]:
    """The names in a text file, one a line, or in the column `item` of a table of public data."""
    if not files.is_standard(path) and kind_of(path) not in ("", ".txt"):
        ready = kind_of(path) == ".json"
        counted = AS_COUNTED if ready else PriorOptions(smoothing=1)  # amounts do not matter
        (prior, *others) = read_priors(path, options=counted).priors.values()
        if prior.provenance == "users" or others:
            raise PriorError(
                f"{path} looks like histories of users, and the names of the categories must be public: "
                f"write them into a text file, one a line"
            )
        return prior.categories
    try:
        text = sys.stdin.read() if files.is_standard(path) else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{path}: it is not UTF-8 text; write one category a line") from None
    names = [line.strip() for line in re.split("\r\n|\n|\r", text.removeprefix("\ufeff")) if line.strip()]
    if not names:
        raise TableError(f"{path}: it names no category; write one a line")
    if len(set(names)) < len(names):
        raise TableError(
            f"{path}: {len(names) - len(set(names))} lines repeat others; write every category once"
        )
    return names


@click.command("survey", cls=Command)
@categories_argument
@epsilon_option
@output_options("Write the certified survey to this JSON file.")
def survey_command(categories_file: Path, epsilon: float, output: Output) -> None:
    """Design a survey: private reports from which `estimate` learns what users are like.

    CATEGORIES is a text file with one category a line, or a table with them in its column item. No public
    data are needed. A report is one integer or, with few categories, one of them; many reports tell the
    population, and `estimate --as-prior` turns them into a prior.

    \b
    Examples:
      sottovoce survey genres.txt --epsilon 2 -o survey.json
      sottovoce release survey.json users.csv --max-epsilon 2 -o reports.csv
      sottovoce estimate survey.json reports.csv --as-prior prior.json
    """
    output.check(categories_file, kinds=JSON)
    made = survey(read_categories(categories_file), epsilon)
    mechanism = certify(made)
    if output.output is not None:
        save_mechanisms({"": mechanism}, None, output.output, replace=output.force)
    facts: dict[str, Any] = {
        "epsilon": made.epsilon,
        "categories": len(made.prior),
        "answers": len(mechanism.answers) if made.base is None else made.base,
        "reports": len(mechanism.answers),
        "variance": made.variance,
        "reports_for_prior": reports_for_prior(model_of(mechanism)),
        "reports_for_one_per_cent": reports_or_none(mechanism, 0.01),
        "digest": mechanism.digest,
    }
    if output.as_json:
        print_json(facts)
        return
    needed = facts["reports_for_one_per_cent"]
    print_text(
        f"{made!r}\nReports needed: {facts['reports_for_prior']:,} to learn a prior; "
        + (f"{needed:,} for ± 0.01 in a share, if all are alike." if needed else "± 0.01 is out of reach.")
    )
    if output.output is not None:
        print_note(f"certified and written to {output.output}; digest {mechanism.digest}")


@click.command("plan", cls=Command)
@categories_argument
@option("--users", type=int, required=True, help="How many users there are in all.")
@epsilon_option
@json_option
def plan_command(categories_file: Path, users: int, epsilon: float, as_json: bool) -> None:
    """Plan a survey: what share of the users should answer it, and how well the others are served then.

    CATEGORIES is a text file with one category a line, or a table with them in its column item. The surveys
    and the users are invented; the population is taken to fall off like rank^-0.9.

    \b
    Examples:
      sottovoce plan genres.txt --users 100000 --epsilon 2
    """
    with step("simulating", categories_file.name, total=1) as going:
        made = plan(read_categories(categories_file), users, epsilon, progress=going.reached)
    if as_json:
        print_json(made.to_dict())
        return
    print_text(made.summary(), style="bold")
    print_table(made.listing().head, made.listing().rows, left=())
    print_note(
        "Means of total variation on invented users; a user who answers is then served by draws of the prior."
    )
