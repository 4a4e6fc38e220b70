"""Users as rows of a Spark table, and back: whose they are, their group, and their distribution.

This is what Spark holds between the checks and the draws: a row per user and group, with the positions and
shares of the user's categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from ..release.mechanism import Mechanism
from ..users import Users
from .cells import Sums

PEOPLE = "group string, what int, values array<double>, user string, places array<int>"
"""Rows with what = 0 are users, `values` their shares; what < 0 are counters for the driver."""
DRAWN = "group string, user string, answer string"


def people_rows(group: str, users: Users) -> Any:
    """The users of a group as rows."""
    p = users.p
    begins = pa.array(p.indptr.astype(np.int32))
    return pa.table(
        {
            "group": _repeated(group, len(users)),
            "what": pa.array(np.zeros(len(users), np.int32)),
            "values": pa.ListArray.from_arrays(begins, pa.array(p.data)),
            "user": pa.array(list(map(str, users.ids)), pa.string()),
            "places": pa.ListArray.from_arrays(begins, pa.array(p.indices.astype(np.int32))),
        }
    )


def found_rows(sums: Sums) -> Any:
    """What the driver has to know, as rows of the same table."""
    found = sums.to_arrow()
    nothing = pa.nulls(len(found), pa.string()), pa.nulls(len(found), pa.list_(pa.int32()))
    return found.append_column("user", nothing[0]).append_column("places", nothing[1])


def by_group(table: Any, known: Mapping[str, Mechanism]) -> Iterator[tuple[str, list[str], Any]]:
    """The users of each group in an arrow table of people: group, names and rows of p."""
    for name in table["group"].unique().to_pylist():
        part = table.filter(pc.equal(table["group"], name)).combine_chunks()
        values, places = (part[column].combine_chunks() for column in ("values", "places"))
        lengths = np.from_dlpack(pc.list_value_length(places))
        begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        held = np.from_dlpack(values.flatten()), np.from_dlpack(places.flatten())
        size = len(lengths), len(known[name].categories)
        yield name, part["user"].to_pylist(), sparse.csr_array((*held, begins), shape=size)


def drawn_table(group: str, ids: Sequence[str], answers: Sequence[object]) -> Any:
    """What was drawn for the users of a group, as arrow columns."""
    return pa.table(
        {
            "group": _repeated(group, len(ids)),
            "user": pa.array(ids, pa.string()),
            "answer": pa.array([str(one) for one in answers], pa.string()),
        }
    )


def _repeated(text: str, times: int) -> Any:
    return pa.repeat(pa.scalar(text, pa.string()), times)
