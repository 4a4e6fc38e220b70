"""All targets by name."""

from __future__ import annotations

from . import arguments, collector, databases, mechanisms, streams, tables, workbooks

TARGETS = {
    target.name: target
    for room in (mechanisms, streams, tables, workbooks, databases, collector, arguments)
    for target in room.TARGETS
}
