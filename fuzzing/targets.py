"""All targets by name."""

from __future__ import annotations

from . import arguments, collector, databases, joint, mechanisms, tables, workbooks

TARGETS = {
    target.name: target
    for room in (mechanisms, joint, tables, workbooks, databases, collector, arguments)
    for target in room.TARGETS
}
