"""The command estimate: it parses, calls and prints; no mathematics here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .. import checks
from ..checks import FloatArray
from ..collecting.estimate import TOGETHER, Estimate, Verdict, estimate, whole_population
from ..collecting.model import Model, model_of
from ..collecting.reports import read_collection, read_reports
from ..errors import ParameterError
from ..groups import Groups
from ..prior import FROM_USERS
from ..release.file import ANY, load_mechanisms
from ..tables import files
from ..tables.priors import PublicData, read_priors, write_priors
from . import options, terminal
from .app import Command
from .options import JSON, PATH, Columns, Output, Table, option
from .terminal import number, plain, print_json, print_note, print_table, print_text, shown_text, step

LISTED = 25
LEGEND = (
    "More, fewer: than the prior, all categories at once. Noise: the share cannot be told from 0. Shares are "
    "cut to 0 … 1; the unbiased values are in -o and --json. Projected (no negative value) and shrunk "
    "(towards the prior) are biased, and often nearer."
)
RELEASED = (
    "Released: the share of the releases, not of the users, whatever the number of reports. More, fewer: the "
    "users' own average is above or below the prior, all categories at once."
)
BOUNDED = (
    "Population between: where the users' own average must lie, given the reports; no number of reports "
    "makes that range vanish."
)
MALICIOUS = 0.01
"""The share of malicious reports for which the effect is stated."""


@click.command("estimate", cls=Command)
@options.mechanism_argument
@options.path_argument("reports", metavar="REPORTS…", nargs=-1, required=True)
@options.item_option
@options.column("--user", "The user; default user if there: nobody counts twice.")
@options.column("--by", "Group; default the one of the mechanism file.")
@options.read_option
@option("--level", default=0.95, help="Confidence level of the intervals.")
@option("--simultaneous", is_flag=True, help="Intervals that hold for all categories at once.")
@option("--error", default=0.01, help="The precision you want: ± this in every category.")
@option("--as-prior", type=PATH, metavar="FILE", panel="Prior", help="Write the learned prior (.json).")
@option("--older", type=PATH, metavar="PRIOR", panel="Prior", help="An earlier prior file to start from.")
@options.output_options()
@option("--picture", type=PATH, panel="Output", help="Draw prior, estimate and intervals (.png, .pdf, .svg).")
def estimate_command(
    mechanism_file: Path,
    reports: tuple[Path, ...],
    item: str,
    user: str | None,
    by: str | None,
    read: tuple[str, ...],
    level: float,
    simultaneous: bool,
    error: float,
    as_prior: Path | None,
    older: Path | None,
    output: Path | None,
    force: bool,
    as_json: bool,
    picture: Path | None,
) -> None:
    """Estimate what the users are like on average, from their private reports.

    REPORTS are a table that `sottovoce release -o` wrote, or the store of `sottovoce collect`, also while it
    grows. Several stores and exports of collectors are one collection: a report counts once, by its id.

    \b
    Examples:
      sottovoce estimate mechanism.json reports.csv --picture estimate.png
      sottovoce estimate mechanism.json reports.csv --error 0.005
      sottovoce estimate mechanism.json reports.csv --level 0.99 --json
      sottovoce estimate mechanism.json reports.db
      sottovoce estimate mechanism.json one.db other.db
      sottovoce estimate survey.json reports.csv --as-prior prior.json
    """
    checks.positive(error=error)
    columns = Columns(item=item, user=user, by=by, read=read)
    result = Output(output, picture=picture, force=force, as_json=as_json)
    result.check(mechanism_file, *reports)
    if as_prior is not None:
        others = filter(None, (output, older))
        files.check_writable(as_prior, mechanism_file, *reports, *others, kinds=JSON, force=force)
    elif older is not None:
        raise ParameterError("--older is for --as-prior: name the file of the prior")
    tables = columns.tables(*reports)
    loaded = load_mechanisms(mechanism_file, policy=ANY)
    mechanisms = loaded.mechanisms
    if by is not None and loaded.by is None:
        raise ParameterError("--by needs a mechanism file made with --by, and only such a file needs it")
    by = by or loaded.by  # the reports are public, their group column too
    models: Any = {group: model_of(mechanism) for group, mechanism in mechanisms.items()}
    counts, how = _read(tables, Groups(models, by))
    if how:
        print_note(f"{how}.")
    with step("estimating", total=len(counts), unit="groups") as going:
        estimates = {
            group: going.after(estimate(mechanisms[group], counted, level=level))
            for group, counted in counts.items()
        }
    together = {TOGETHER: whole_population(estimates)} if len(estimates) > 1 else {}
    shown = together | estimates
    verdicts = {group: shares.verdict(error=error) for group, shares in shown.items()}
    rows = {group: shares.to_dicts(simultaneous=simultaneous) for group, shares in shown.items()}
    learned = None if as_prior is None else _learn(estimates, by, older)
    wrote = result.write_rows(
        [({"group": group} if by else {}) | row for group in estimates for row in rows[group]]
    )
    if as_prior is not None and learned is not None:
        write_priors(learned, as_prior, replace=force)
        moved = max(shares.moved_by(MALICIOUS) for shares in estimates.values())
        print_note(
            f"prior written to {as_prior}: {learned.how}. If {MALICIOUS:.0%} of the reports lie, an estimate "
            f"moves by up to {moved:.2g}."
        )
    if picture is not None:
        _draw(estimates, picture, grouped=by is not None)
        print_note(f"drawn into {picture}")
    if any(mechanisms[group].provenance == "users" for group in estimates):
        print_note(FROM_USERS)
    if as_json:
        facts = [_facts(group, shares, verdicts[group]) for group, shares in shown.items()]
        print_json([each | {"rows": rows[each["group"]]} for each in facts])
    elif not wrote:
        for group, shares in shown.items():
            title = f"{plain(group)}: " if by else ""
            print_text(title + verdicts[group].summary(), style="bold")
            _print_rows(title, shares, rows[group], "band" if simultaneous else "interval")
        for legend, holds in ((LEGEND, True), (RELEASED, False)):
            if any(shares.unbiased == holds for shares in shown.values()):
                print_note(legend)
        if any(shares.bounded for shares in shown.values()):
            print_note(BOUNDED)


def _read(tables: Sequence[Table], models: Groups[Model]) -> tuple[Mapping[str, FloatArray], str]:
    """How often each answer was reported, by group, and what was left out in reading."""
    columns, known = tables[0].columns, models.returned
    named: Any = {"item": columns.item, "user": columns.user, "by": models.by}
    with step("reading", ", ".join(table.path.name for table in tables)), ExitStack() as stack:
        paths = [stack.enter_context(files.at_hand(table.path)) for table in tables]
        if len(tables) > 1:
            return read_collection(paths, known, **named, dialects=[table.dialect for table in tables])
        stack.enter_context(files.prefix_errors(paths[0]))
        counts, how = read_reports(paths[0], known, **named, dialect=tables[0].dialect)
    return counts, how and f"{tables[0].path.name}: {how}"


def _learn(estimates: dict[str, Estimate], by: str | None, older: Path | None) -> PublicData:
    earlier = {} if older is None else read_priors(older, by=by).priors
    missing = set(estimates) - set(earlier) if older is not None else set()
    if missing:
        raise ParameterError(f"{older} has no prior for {len(missing)} of the groups of the reports")
    priors = {group: shares.as_prior(older=earlier.get(group)) for group, shares in estimates.items()}
    how = "; ".join(dict.fromkeys(prior.origin for prior in priors.values()))
    return PublicData(Groups(priors, by), how)


def _facts(group: str, shares: Estimate, verdict: Verdict) -> dict[str, Any]:
    judged = {"enough": verdict.enough, "learnt": verdict.learnt, "words": verdict.summary()}
    return {
        "group": group,
        "verdict": asdict(verdict) | judged,
        "mechanism": shares.model.digest,
        "sampler": shares.model.name,
        "epsilon": shares.model.epsilon,
        **{name: getattr(shares, name) for name in ("reports", "level", "unbiased", "bias_bound")},
        "moved_by_one": shares.moved_by(1 / shares.reports),
        "malicious_share": MALICIOUS,
        "moved_by_share": shares.moved_by(MALICIOUS),
        "note": shares.summary(),
    }


def _print_rows(title: str, shares: Estimate, rows: list[dict[str, Any]], band: str) -> None:
    """Print the largest values with their intervals, and what the numbers are."""
    extra = ["population between"] if shares.bounded else []
    interval = f"{100 * shares.level:g}% {band}"
    columns = ("category", "reports", "prior", shares.value_name, interval, "projected", "shrunk", *extra, "")
    cells = [
        [
            shown_text(row["category"]),
            f"{row['reports']:,.0f}",
            number(row["prior"]),
            f"{row['share']:.4f}",
            f"{row['low']:.4f} … {row['high']:.4f}",
            *(f"{row[name]:.4f}" for name in ("projected", "shrunk")),
            *(f"{row['possible_low']:.3f} … {row['possible_high']:.3f}" for _ in extra),
            row["mark"],
        ]
        for row in sorted(rows, key=lambda row: -row["estimate"])[:LISTED]
    ]
    print_table(columns, cells, left=("category",))
    if len(rows) > LISTED:
        print_note(f"{title}and {len(rows) - LISTED:,} smaller ones: -o or --json has them")
    print_note(f"{title}{shares.summary()}")
    terminal.console.print()


def _draw(estimates: dict[str, Estimate], path: Path, *, grouped: bool) -> None:
    from ..pictures import plots

    figure = plots.new_figure(9, 3.6 * len(estimates))
    panels = figure.subplots(len(estimates), 1, squeeze=False).flat
    for axes, (group, shares) in zip(panels, estimates.items(), strict=True):
        shares.plot(axes).set_title(group if grouped else "")
    figure.axes[0].legend(fontsize=8)
    plots.save_figure(figure, path)
