"""The command explore: one HTML file with data inside, which computes in the browser.

The page itself is `page.html`, built from the folder page/ of the repository. Here the data are put into it:
priors, the limits that only Python computes, and the certified mechanism of the marked ε.
"""

from __future__ import annotations

import json
import tempfile
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from .. import demo
from ..atomic import inf_to_null, write_whole
from ..errors import CertificateError, ParameterError
from ..geometry import Geometry
from ..groups import Groups
from ..listing import Listing
from ..planning.choose import GAP, Choice, choose, people
from ..planning.limit import limit
from ..prior import FROM_USERS, Prior
from ..release.certify import certify
from ..release.file import mechanisms_text
from . import options
from .app import Command
from .options import PATH, Columns, Output, option
from .terminal import plain, print_note, print_text, step

PAGE = Path(__file__).parents[1] / "page.html"
HOLE = '<script type="application/json" id="data">null</script>'
MOST_CATEGORIES = 20_000
LIMITED = 300
"""Categories up to which the limit is computed while the user waits."""
LIMITS, FEW = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0), 20
"""For so few categories the limit is computed at these ε too: with more the user would wait."""


@dataclass(frozen=True)
class Source:
    """Where the data come from, as a command names it: the page prints commands with it."""

    prior: str
    item: str = "item"
    count: str | None = None
    by: str | None = None
    near: str | None = None
    read: str = ""
    users: Mapping[str, str] | None = None  # path, user, item
    note: str = ""


USERS = {"path": "sottovoce-demo/members.csv", "user": "user", "item": "item"}
DEMO = Source(
    "sottovoce-demo/survey.csv",
    by="group",
    users=USERS,
    note="The data are those of the invented film club: `sottovoce demo` writes these files.",
)


def page(
    priors: Groups[Prior],
    source: Source,
    *,
    epsilon: float = 2.0,
    geometry: Geometry | None = None,
    results: Sequence[Listing] = (),
    progress: Callable[[], object] = lambda: None,
) -> str:
    """The page as HTML, with these data inside."""
    for prior in priors.values():
        if len(prior) > MOST_CATEGORIES:
            raise ParameterError(
                f"{len(prior):,} categories are too many for a page, which takes {MOST_CATEGORIES:,}: "
                f"merge rare ones (sottovoce prior --rare)"
            )
    choices, groups = {}, []
    for name, prior in priors.items():
        choices[name] = choose(prior, epsilon, limit=len(prior) <= LIMITED, geometry=geometry)
        limits = _limits(choices[name], geometry)
        facts = {"name": name, "categories": list(prior.categories), "weights": prior.probabilities.tolist()}
        groups.append({**facts, "provenance": prior.provenance, "limits": limits})
        progress()
    data = {
        "source": asdict(source),
        "groups": groups,
        "exact": True,
        "epsilon": epsilon,
        "mechanism": _mechanism(choices, priors.by),
        "geometry": geometry and {name: getattr(geometry, name) for name in ("parents", "lengths", "unit")},
        "results": [
            {"title": each.title, "words": each.note, "head": each.head, "rows": each.rows}
            for each in results
        ],
    }
    text = json.dumps(inf_to_null(data), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    before, hole, after = PAGE.read_text(encoding="utf-8").partition(HOLE)
    if not hole:
        raise AssertionError("page.html has no place for data: build it again (make page)")
    return before + hole.replace("null", text) + after


def _limits(choice: Choice, geometry: Geometry | None) -> list[dict[str, float]]:
    """At some ε: the proven lower bound of mean + tail·maximum, and the mean of a sampler that is near it."""
    if choice.limit is None:
        return []
    prior = choice.sampler.prior
    made = {choice.epsilon: choice.limit}
    if len(prior) <= FEW and geometry is None:
        rows, _ = people(prior, None)
        for epsilon in LIMITS:
            if epsilon not in made:
                made[epsilon] = limit(prior, epsilon, rows, relative_gap=GAP)
    return [
        {"epsilon": epsilon, "lower": each.lower_bound, "mean": each.mean} for epsilon, each in made.items()
    ]


def _mechanism(choices: Mapping[str, Choice], by: str | None) -> dict[str, Any] | None:
    """The certified file of what is recommended, unless it is too large or its prior is not public."""
    if any(choice.sampler.prior.provenance == "users" for choice in choices.values()):
        return None
    try:
        text, _ = mechanisms_text({name: certify(choice.sampler) for name, choice in choices.items()}, by)
    except CertificateError:
        return None
    if len(text) > 100_000:
        return None  # the page shows the command instead
    samplers = {name: choice.sampler.name for name, choice in choices.items()}
    return {"text": text, "epsilon": next(iter(choices.values())).epsilon, "samplers": samplers}


@click.command("explore", cls=Command)
@options.path_argument("prior_file", metavar="[PRIOR]", required=False)
@option("--epsilon", "-e", type=float, default=2.0, help="Where the page begins; its mechanism has this ε.")
@options.placed_columns
@option("--output", "-o", type=PATH, panel="Output", help="Write this .html file, and open nothing.")
@options.force_option
def explore_command(
    prior_file: Path | None,
    epsilon: float,
    item: str,
    count: str | None,
    by: str | None,
    near: str | None,
    read: tuple[str, ...],
    output: Path | None,
    force: bool,
) -> None:
    """Write a page and open it in the browser: move ε, pick a sampler, shape a person, see what is released.

    The page is one file that computes everything in the browser and sends nothing; mail it, archive it, or
    put it on a web server. PRIOR is public data, by default the demo's. Drop a table of users onto the page
    to see what happens to them.

    \b
    Examples:
      sottovoce explore
      sottovoce explore survey.csv --by group -e 4
      sottovoce explore survey.csv -o page.html
    """
    columns = Columns(item=item, count=count, by=by, near=near, read=read)
    Output(output, force=force).check(prior_file, kinds=(".html", ".htm"))
    priors, source, geometry = Groups(demo.demo_data().priors, "group"), DEMO, None
    if prior_file is not None:
        (table,) = columns.tables(prior_file)
        public = table.priors()
        print_note(f"{prior_file.name}: {plain(public.how)}.")
        if any(prior.provenance == "users" for prior in public.priors.values()):
            print_note(FROM_USERS)
        # A page that is passed on tells no folder of its owner.
        private = prior_file.is_absolute() or ".." in prior_file.parts
        shown = prior_file.name if private else str(prior_file)
        source = Source(shown, item, count, public.by, near, table.settings)
        priors, geometry = public.priors, public.geometry
    with step("computing", "the limits", total=len(priors), unit="groups") as going:
        made = page(priors, source, epsilon=epsilon, geometry=geometry, progress=going.advance)
    path = output or Path(tempfile.mkdtemp(prefix="sottovoce-")) / "page.html"
    write_whole(made, path, replace=force)
    print_text(str(path))
    if output is None and not webbrowser.open(path.absolute().as_uri()):
        print_note("No browser was found here: open the file yourself.")
