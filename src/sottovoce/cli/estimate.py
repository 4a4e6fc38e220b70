"""The command estimate: it parses, calls and prints; no mathematics here."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .. import _validate
from ..collecting.estimate import TOGETHER, Estimate, Verdict, estimate, whole_population
from ..collecting.model import model_of
from ..collecting.reports import read_reports
from ..errors import ParameterError
from ..groups import Groups
from ..prior import FROM_USERS
from ..release.file import ANY, load_mechanisms
from ..tables import files
from ..tables.files import at_hand
from ..tables.priors import PublicData, read_priors, write_priors
from .app import Command
from .options import (
    PATH,
    force_option,
    item_option,
    json_option,
    mechanism_argument,
    option,
    output_option,
    path_argument,
    read_option,
    readings,
)
from .terminal import (
    check_one_result,
    check_picture,
    console,
    number,
    plain,
    print_json,
    print_note,
    print_table,
    reading_of,
    shown_text,
    step,
)

LISTED = 25
MALICIOUS = 0.01
"""The share of malicious reports for which the effect is stated."""


@click.command("estimate", cls=Command)
@mechanism_argument
@path_argument("reports", metavar="REPORTS")
@item_option
@option(
    "--user", metavar="COLUMN", panel="Columns", help="The user; default user if there: nobody counts twice."
)
@option("--by", metavar="COLUMN", panel="Columns", help="Group; default the one of the mechanism file.")
@read_option
@option("--level", default=0.95, help="Confidence level of the intervals.")
@option("--simultaneous", is_flag=True, help="Intervals that hold for all categories at once.")
@option("--likeliest", is_flag=True, help="Add the maximum-likelihood distribution (biased).")
@option("--error", default=0.01, help="The precision you want: ± this in every category.")
@option(
    "--as-prior",
    type=PATH,
    metavar="FILE",
    panel="Prior",
    help="Write the prior that was learned (.json).",
)
@option("--older", type=PATH, metavar="PRIOR", panel="Prior", help="An earlier prior file to start from.")
@option("--mixture", type=float, panel="Prior", help="Share of the older prior that stays [default: 0.05].")
@option("--few", is_flag=True, panel="Prior", help="Also from fewer reports than a prior needs.")
@output_option
@option("--picture", type=PATH, panel="Output", help="Draw prior, estimate and intervals (.png, .pdf, .svg).")
@force_option
@json_option
def command(
    mechanism_file: Path,
    reports: Path,
    item: str,
    user: str | None,
    by: str | None,
    read: tuple[str, ...],
    level: float,
    simultaneous: bool,
    likeliest: bool,
    error: float,
    as_prior: Path | None,
    older: Path | None,
    mixture: float | None,
    few: bool,
    output: Path | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Estimate what the users are like on average, from their private reports.

    REPORTS are a table that `sottovoce release -o` wrote, or the store of `sottovoce collect`, also while it
    grows.

    \b
    Examples:
      sottovoce estimate mechanism.json reports.csv --picture estimate.png
      sottovoce estimate mechanism.json reports.csv --error 0.005
      sottovoce estimate mechanism.json reports.csv --level 0.99 --json
      sottovoce estimate mechanism.json reports.db
      sottovoce estimate survey.json reports.csv --as-prior prior.json
    """
    _validate.positive(error=error)
    check_one_result(output, as_json)
    if output is not None:
        files.check_writable(output, mechanism_file, reports, force=force)
    check_picture(picture, force)
    _check_prior_options(as_prior, older, mixture, few)
    if as_prior is not None:
        if as_prior in (mechanism_file, reports, output, older):
            raise ParameterError("--as-prior must name a file of its own")
        files.check_writable(as_prior, mechanism_file, reports, force=force)
    (reading,) = readings(read, reports)
    loaded = load_mechanisms(mechanism_file, policy=ANY)
    mechanisms = loaded.mechanisms
    if by is not None and loaded.by is None:
        raise ParameterError("--by needs a mechanism file made with --by, and only such a file needs it")
    by = by or loaded.by  # the reports are public, their group column too
    models: Any = {group: model_of(one) for group, one in mechanisms.items()}
    with reading_of(reports), at_hand(reports) as table, files.prefix_errors(table):
        counts, how = read_reports(
            table, Groups(models, by).returned, item=item, user=user, by=by, dialect=reading.dialect
        )
    if how:
        print_note(f"{reports.name}: {how}.")
    with step("estimating", total=len(counts), unit="groups") as going:
        found = {
            group: going.after(estimate(mechanisms[group], one, level=level)) for group, one in counts.items()
        }
    told = [(group, one, one.verdict(error=error)) for group, one in found.items()]
    if len(found) > 1:
        everybody = whole_population(found)
        told.insert(0, (TOGETHER, everybody, everybody.verdict(error=error)))
    rows = [
        {**({"group": group} if by else {}), **row}
        for group, one in found.items()
        for row in _rows(one, simultaneous, likeliest)
    ]
    learned = None if as_prior is None else _learn(found, by, older, mixture, few)
    if output is not None:
        files.write_rows(rows, output, replace=force)
        if not files.is_standard(output):
            print_note(f"written to {output}")
    if as_prior is not None and learned is not None:
        write_priors(learned, as_prior, replace=force)
        moved = max(estimated.moved_by(share=MALICIOUS) for estimated in found.values())
        print_note(
            f"prior written to {as_prior}: {learned.how}. If {MALICIOUS:.0%} of the reports lie, an estimate "
            f"moves by up to {moved:.2g}."
        )
    if picture is not None:
        _draw(found, picture, grouped=by is not None)
        print_note(f"drawn into {picture}")
    if any(mechanisms[group].provenance == "users" for group in found):
        print_note(FROM_USERS)
    if as_json:
        print_json(
            [
                {"group": group, "verdict": _judged(judged), **_facts(one)}
                | {"rows": _rows(one, simultaneous, likeliest)}
                for group, one, judged in told
            ]
        )
        return
    if files.is_standard(output):
        return
    for group, one, judged in told:
        _print(f"{plain(group)}: " if by else "", one, judged, simultaneous, likeliest)
    _print_legend(any(one.bounded for _, one, _ in told))


def _check_prior_options(as_prior: Path | None, older: Path | None, mixture: float | None, few: bool) -> None:
    """Refuse options of a learned prior where none is asked for, and a name that is not a prior file."""
    if as_prior is None and (older is not None or mixture is not None or few):
        raise ParameterError("--older, --mixture and --few are for --as-prior: name the file of the prior")
    if as_prior is not None and as_prior.suffix.lower() != ".json":
        raise ParameterError(f"{as_prior} cannot be written: a prior file ends in .json")


def _learn(
    found: dict[str, Estimate], by: str | None, older: Path | None, mixture: float | None, few: bool
) -> PublicData:
    """The priors learned from the estimate of every group."""
    earlier = {} if older is None else read_priors(older, by=by).priors
    missing = set(found) - set(earlier) if older is not None else set()
    if missing:
        raise ParameterError(f"{older} has no prior for {len(missing)} of the groups of the reports")
    priors = {
        group: estimated.as_prior(older=earlier.get(group), mixture=mixture, force=few)
        for group, estimated in found.items()
    }
    how = "; ".join(dict.fromkeys(prior.origin for prior in priors.values()))
    return PublicData(Groups(priors, by), how)


def _put_together(found: Estimate) -> bool:
    """Whether it is of several groups, which have a likelihood each and none in common."""
    return found.unbiased and found.model.kernel is None


def _judged(found: Verdict) -> dict[str, Any]:
    return {**asdict(found), "enough": found.enough, "learnt": found.learnt, "words": found.summary()}


def _rows(found: Estimate, simultaneous: bool, likeliest: bool) -> list[dict[str, Any]]:
    rows = found.to_dicts(simultaneous=simultaneous)
    if likeliest and not _put_together(found):
        for row, share in zip(rows, found.likeliest.tolist(), strict=True):
            row["likeliest"] = share
    return rows


def _facts(found: Estimate) -> dict[str, Any]:
    return {
        "mechanism": found.model.digest,
        "sampler": found.model.name,
        "epsilon": found.model.epsilon,
        "reports": found.reports,
        "level": found.level,
        "unbiased": found.unbiased,
        "bias_bound": found.bias_bound,
        "moved_by_one": found.moved_by(reports=1),
        "malicious_share": MALICIOUS,
        "moved_by_share": found.moved_by(share=MALICIOUS),
        "note": found.summary(),
    }


def _print(title: str, found: Estimate, told: Verdict, simultaneous: bool, likeliest: bool) -> None:
    """The verdict, then the largest values with their intervals."""
    console.print(title + told.summary(), style="bold", markup=False, highlight=False, soft_wrap=True)
    band = f"{100 * found.level:g}% band" if simultaneous else f"{100 * found.level:g}% interval"
    likeliest = likeliest and not _put_together(found)
    extra = [*(["likeliest"] if likeliest else []), *(["population between"] if found.bounded else [])]
    columns = ("category", "reports", "prior", "share", band, "projected", "shrunk", *extra, "")
    rows = _rows(found, simultaneous, likeliest)
    rows.sort(key=lambda row: -row["estimate"])
    cells = []
    for row in rows[:LISTED]:
        interval = f"{row['low']:.4f} … {row['high']:.4f}"
        more = [f"{row['likeliest']:.4f}"] if likeliest else []
        if found.bounded:
            more.append(f"{row['possible_low']:.3f} … {row['possible_high']:.3f}")
        cells.append(
            [
                shown_text(row["category"]),
                f"{row['reports']:,.0f}",
                number(row["prior"]),
                f"{row['share']:.4f}",
                interval,
                f"{row['projected']:.4f}",
                f"{row['shrunk']:.4f}",
                *more,
                row["mark"],
            ]
        )
    print_table(columns, cells, left=("category",))
    if len(rows) > LISTED:
        print_note(f"{title}and {len(rows) - LISTED:,} smaller ones: -o or --json has them")
    print_note(f"{title}{found.summary()}")
    console.print()


def _print_legend(bounded: bool) -> None:
    """What the columns say: once, whatever the number of groups."""
    print_note(
        "More, fewer: than the prior, all categories at once. Noise: the share cannot be told from 0. Shares "
        "are cut to 0 … 1; the unbiased values are in -o and --json."
    )
    if bounded:
        print_note(
            "Population between: where the users' own average must lie, given the reports; no number of "
            "reports makes that range vanish."
        )
    print_note("Projected (no negative value) and shrunk (towards the prior) are biased, and often nearer.")


def _draw(found: dict[str, Estimate], path: Path, *, grouped: bool) -> None:
    from ..pictures import plots

    figure = plots.new_figure(9, 3.6 * len(found))
    for axes, (group, one) in zip(
        figure.subplots(len(found), 1, squeeze=False).flat, found.items(), strict=True
    ):
        one.plot(axes)
        axes.set_title(group if grouped else "")
    figure.axes[0].legend(fontsize=8)
    plots.save_figure(figure, path)
