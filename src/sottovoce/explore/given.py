"""What the command hands to the page: it stays in this process, and is in no address and no argument list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..prior import Prior
from ..tables.files import DETECTED, Dialect
from ..tables.priors import read_priors
from ..tables.users import ReadingOptions, read_user_groups
from ..users import Users


@dataclass(frozen=True)
class Given:
    """Priors and users by group, and what was left out of the users; nothing where no file was named."""

    priors: Mapping[str, Prior] = field(default_factory=dict)
    users: Mapping[str, Users] = field(default_factory=dict)
    left_out: str = ""


_given = Given()


def read_given(
    prior_file: Path | None, users_file: Path | None, written: Sequence[Dialect] = (DETECTED, DETECTED)
) -> Given:
    """Read the files of the command line; what is wrong with them is told before the page opens."""
    if prior_file is None:
        return Given()
    data = read_priors(prior_file, dialect=written[0])
    if users_file is None:
        return Given(data.priors)
    users, how = read_user_groups(
        users_file,
        data.priors,
        by=data.by,
        dialect=written[1],
        options=ReadingOptions(
            unknown="drop",
            empty="skip",
            several_groups="allow",  # looked at, and not released
        ),
    )
    return Given(data.priors, users, how)


def give(given: Given) -> None:
    """Put down what the page will show."""
    global _given
    _given = given


def taken() -> Given:
    """What was put down, for the page."""
    return _given
