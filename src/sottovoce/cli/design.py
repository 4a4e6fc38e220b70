"""The command design: a card for one sampler, and a certified mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ParameterError, PriorError
from ..planning.cards import card
from ..planning.several import JointCard, joint_card
from ..prior import FROM_USERS
from ..release.certify import certify
from ..release.file import save_mechanisms
from ..samplers.joint import MOST_SAMPLES, JointSampler, several
from ..tables import files
from .app import (
    AsJson,
    By,
    Count,
    Decimal,
    Encoding,
    Epsilons,
    Force,
    Item,
    Missing,
    NoCount,
    PriorFile,
    PublicMerge,
    RareBelow,
    Separator,
    Sheets,
    Smoothing,
    app,
)
from .parsing import SAMPLER_NAMES, complete_sampler, parse_epsilons, parse_sampler
from .progress import step
from .shown import print_card, print_joint_card
from .tables import dialects_said, read_public
from .terminal import plain, print_json, print_note


@app.command()
def design(
    prior_file: PriorFile,
    epsilon: Epsilons,
    sampler: Annotated[
        str,
        typer.Option(
            "--sampler",
            "-s",
            help=f"auto (chosen for you), or: {SAMPLER_NAMES.lower()}.",
            autocompletion=complete_sampler,
        ),
    ] = "fitted",
    item: Item = "item",
    count: Count = None,
    no_count: NoCount = False,
    by: By = None,
    smoothing: Smoothing = 0.0,
    merge: PublicMerge = None,
    rare_below: RareBelow = None,
    samples: Annotated[
        int,
        typer.Option(help="Categories that one release gives, 1 to 16; epsilon covers all of them together."),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Certify, and write the mechanism to this JSON file."),
    ] = None,
    accept_prior_from_users: Annotated[
        bool,
        typer.Option("--accept-prior-from-users", help="Certify on a prior made from the users it serves."),
    ] = False,
    separator: Separator = None,
    encoding: Encoding = None,
    missing: Missing = "error",
    decimal: Decimal = None,
    sheet: Sheets = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """A card for one sampler: what it keeps and how bad it can get; with -o also a certified mechanism.

    \b
    Examples:
      sottovoce design survey.csv --epsilon 2
      sottovoce design survey.csv -e 2 -e 4 -s prior-minimax --by group
      sottovoce design survey.csv -e 2 --by group -o mechanism.json
      sottovoce design survey.csv -e 4 --samples 4 -o four.json
    """
    make: Callable[..., Any]
    options: dict[str, Any]
    make, options = parse_sampler(sampler)
    if not 1 <= samples <= MOST_SAMPLES:
        raise ParameterError(f"--samples must be a whole number from 1 to {MOST_SAMPLES}, got {samples}")
    epsilons = parse_epsilons(epsilon)
    if output is not None and len(epsilons) != 1:
        raise ParameterError(f"a mechanism has one epsilon: with --output give one, not {len(epsilons)}")
    if output is not None:
        files.check_writable(output, prior_file, force=force)
        if output.suffix.lower() != ".json":
            raise ParameterError(f"{output} cannot be written: a mechanism file ends in .json")
    (dialect,) = dialects_said([prior_file], separator, encoding, missing, decimal, sheet)
    public = read_public(
        prior_file, item=item, count=count, by=by, smoothing=smoothing, merge=merge, rare_below=rare_below,
        dialect=dialect, no_count=no_count,
    )  # fmt: skip
    if samples > 1:
        make, options = several, {**options, "sampler": make, "samples": samples}
    parts = len(public.priors) * len(epsilons)
    with step("designing", prior_file.name, total=parts, unit="samplers") as going:
        samplers = {
            (group, one): going.after(make(prior, one, **options))
            for group, prior in public.priors.items()
            for one in epsilons
        }
    if output is not None:
        if any(prior.made_from_users for prior in public.priors.values()) and not accept_prior_from_users:
            raise PriorError(
                f"{prior_file}: {FROM_USERS} Read: {plain(public.how)}. If it is not about them, make it "
                f"with: sottovoce prior --public -o prior.json; for an experiment say "
                f"--accept-prior-from-users"
            )
        with step("certifying", prior_file.name, total=parts, unit="mechanisms") as going:
            mechanisms = {
                group: going.after(certify(one, accept_prior_from_users=accept_prior_from_users))
                for (group, _), one in samplers.items()
            }
        digest = save_mechanisms(mechanisms, public.by, output, replace=force)
        print_note(f"certified and written to {output}; whoever releases can pin it: --digest {digest}")
        if public.by is not None:
            print_note(f"Who releases with it publishes each user's {plain(public.by)!r} in clear.")
    with step("bounding", "what shuffling adds", total=parts, unit="cards") as going:
        made = [
            going.after(
                joint_card(one, group=group, shuffled=True)
                if isinstance(one, JointSampler)
                else card(one, group=group, shuffled=True)
            )
            for (group, _), one in samplers.items()
        ]
    print_note(
        f"{prior_file.name}: {plain(public.how)}. It must be public data, not counts of the users to be "
        f"served."
    )
    if as_json:
        print_json([asdict(one) for one in made])
        return
    for one in made:
        print_joint_card(one) if isinstance(one, JointCard) else print_card(one)
