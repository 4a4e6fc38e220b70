"""The paper's Avazu experiment (Figure 3 and appendix): a device's sites, within one value of an attribute.

    python -m experiments.avazu train.gz --attribute C18

Rules, as the published numbers were computed: devices with at least 20 rows in the whole log; per value of
the attribute the 100 sites with the most clicks (of those devices); counts are of rows, not of clicks; values
with at least 100 devices; the prior of a value is the plain mean of its devices' distributions. That prior is
made from the very devices it serves. It compares samplers; it is no private deployment, and every table says
so.

The log is not ours to ship: it is one gzip CSV of about 40 million rows. `experiments.avazu_like` writes
invented files in its format. The file is read in a stream, once per attribute, and only its counts stay in
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import sottovoce as sv

ATTRIBUTES = ("C1", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21")
EPSILONS = (8.0, 12.0, 16.0)
COLUMNS = (
    "attribute",
    "epsilon",
    "group",
    "sampler",
    "users",
    "max_tv",
    "mean_tv",
    "p99_tv",
    "prior_from_users",
)
DRAWN = ("minimax_kernel", "relative_mollifier", "kernel_clip", "prior_minimax", "blend")
NULL_DEVICE = "a99f214a"


@dataclass(frozen=True)
class Rules:
    """What is left out; the defaults are the paper's, small samples need lower ones."""

    rows_per_device: int = 20
    sites: int = 100
    devices_per_value: int = 100


def measure(
    path: Path, attribute: str, epsilons: tuple[float, ...] = EPSILONS, rules: Rules | None = None
) -> list[dict[str, object]]:
    """One tidy row per epsilon, value of the attribute and sampler."""
    least = rules or Rules()
    counted = sv.count_table(path, user="device_id", item="site_id", by=attribute, top_by="click")
    priors = sv.build_prior(
        counted,
        top=least.sites,
        minimum_rows=least.rows_per_device,
        minimum_users=least.devices_per_value,
        average="users",
    )
    users = sv.read_users(
        counted,
        prior=priors,
        minimum_rows=least.rows_per_device,
        unknown="drop",
        empty="skip",
        unknown_groups="drop",
    )
    samplers = {
        value: [make(prior, epsilon) for epsilon in epsilons for make in sv.SAMPLERS.values()]
        for value, prior in priors.items()
    }
    return [
        dict(
            zip(
                COLUMNS,
                (
                    attribute,
                    row.epsilon,
                    row.group,
                    row.sampler.split("(")[0],
                    row.users,
                    row.maximum,
                    row.mean,
                    row.p99,
                    row.prior_from_users,
                ),
                strict=True,
            )
        )
        for row in sv.compare(users, samplers, sv.TV)
    ]
