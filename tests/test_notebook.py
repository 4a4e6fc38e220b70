"""What a notebook shows: every value has a form in HTML, with its facts, and without anybody's data."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import sottovoce as sv

EVIL = "<script>alert('&')</script>"
PRIOR = sv.Prior([EVIL, "b", "c"], [0.5, 0.3, 0.2])
KERNEL = sv.minimax_kernel(PRIOR, 2.0)
MECHANISM = sv.certify(KERNEL)
ROWS = np.array([[0.9, 0.0, 0.1], [0.0, 1.0, 0.0]])
FOUND = sv.estimate(MECHANISM, {EVIL: 60, "b": 30, "c": 10})
TABLE = pl.DataFrame(
    {"user": ["Ada", "Ada", "Grace"], "item": [EVIL, "b", "z"], "weight": [6130007, 3310007, 1]}
)
USERS = sv.read_users(
    TABLE, prior=PRIOR, user="user", item="item", weight="weight", unknown="drop", empty="skip"
)
SHOWN: dict[str, tuple[Any, list[str]]] = {
    "prior": (PRIOR, ["0.5000"]),
    "linear sampler": (
        KERNEL,
        ["Sampler minimax_kernel", "one record is enough yes", f"{KERNEL.worst_case(sv.TV):.4f}"],
    ),
    "clip sampler": (
        sv.blend(PRIOR, 2.0, weight=0.25),
        ["weight 0.25", "keeps the prior yes", "one record is enough no"],
    ),
    "free sampler": (sv.randomized_response(PRIOR, 2.0), ["keeps the prior no"]),
    "stream": (sv.stream(PRIOR, 2.0), ["any number", "2 for all of them together"]),
    "mechanism": (MECHANISM, [MECHANISM.digest]),
    "users": (USERS, ["users 1", "their item is no category 1", "no usable record 1"]),
    "comparison": (sv.compare(ROWS, [KERNEL, sv.kernel_clip(PRIOR, 2.0)], sv.TV), ["kernel_clip"]),
    "limit": (
        sv.limit(PRIOR, 2.0, ROWS),
        ["The limit at epsilon 2", "that keeps the prior", "not for publishing"],
    ),
    "choice": (sv.choose(PRIOR, epsilon=2.0), ["sottovoce design"]),
    "estimate": (FOUND, ["interval"]),
    "verdict": (FOUND.verdict(), ["100 reports"]),
    "audit": (sv.audit(MECHANISM, draws=2000), ["certificate holds", "passed yes", "of 2 stated"]),
}


@pytest.mark.parametrize("what", SHOWN)
def test_every_value_has_a_form_with_its_facts(what: str) -> None:
    value, wanted = SHOWN[what]
    page = value._repr_html_()
    said = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    for words in wanted:
        assert words in said or words in page
    assert "<script" not in page  # a name is text, whatever it holds
    assert not re.search("color|background", page)  # dark and light pages both keep their own


def test_users_are_shown_by_their_sizes_alone() -> None:
    assert not re.search(r"Ada|Grace|6130007|3310007|0\.6|0\.3|alert", USERS._repr_html_())


def test_a_prior_made_from_users_is_told() -> None:
    prior = sv.Prior(["a", "b"], [0.5, 0.5], provenance="users")
    for value in (sv.kernel_clip(prior, 1.0), sv.stream(prior, 1.0)):
        assert "not public" in value._repr_html_()
    assert "not public" not in sv.kernel_clip(PRIOR, 1.0)._repr_html_()
