"""The collector takes and refuses the reports that tests/vectors says."""

from __future__ import annotations

from typing import Any

import pytest
from vector_checks import vectors

from sottovoce.serving.batches import Refusal, parse_served, read_batch, reportable

SERVED = [reportable([parse_served(text, "a vector")]) for text in vectors("reports")["mechanisms"]]


@pytest.mark.parametrize("case", vectors("reports")["cases"], ids=lambda case: case["name"])
def test_the_collector_agrees_with_the_vectors(case: dict[str, Any]) -> None:
    try:
        taken = len(read_batch(case["text"].encode(), SERVED[case["served"]]))
    except Refusal:
        taken = 0
    assert taken == case["accepted"]
