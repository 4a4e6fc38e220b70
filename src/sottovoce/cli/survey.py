"""The command survey: private reports to learn a prior from, where there are no public data."""

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
from ..records import Category
from ..release.certify import certify
from ..release.file import save_mechanisms
from ..samplers.survey import survey
from ..tables import files
from ..tables.files import kind_of
from ..tables.priors import AS_COUNTED, PriorOptions, read_priors
from .app import Command
from .options import JSON, Output, option, output_options, path_argument
from .terminal import print_json, print_note, print_text

categories_argument = path_argument("categories_file", metavar="CATEGORIES")
epsilon_option = option("--epsilon", "-e", type=float, required=True, help="Privacy parameter of a report.")


@click.command("survey", cls=Command)
@categories_argument
@epsilon_option
@output_options("Write the certified survey to this JSON file.")
def survey_command(
    categories_file: Path, epsilon: float, output: Path | None, force: bool, as_json: bool
) -> None:
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
    Output(output, force=force, as_json=as_json).check(categories_file, kinds=JSON)
    made = survey(read_categories(categories_file), epsilon)
    mechanism = certify(made)
    if output is not None:
        save_mechanisms({"": mechanism}, None, output, replace=force)
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
    if as_json:
        print_json(facts)
        return
    needed = facts["reports_for_one_per_cent"]
    print_text(
        f"{made!r}\nReports needed: {facts['reports_for_prior']:,} to learn a prior; "
        + (f"{needed:,} for ± 0.01 in a share, if all are alike." if needed else "± 0.01 is out of reach.")
    )
    if output is not None:
        print_note(f"certified and written to {output}; digest {mechanism.digest}")


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
