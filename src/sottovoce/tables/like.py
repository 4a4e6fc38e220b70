"""A table of the same kind as another one: what came in as pandas goes out as pandas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw

from ..errors import ParameterError


def maker_like(frame: Any) -> Callable[[Mapping[str, Sequence[Any]]], Any]:
    """What makes a table of the same kind from columns; refused for anything that is no table in memory."""
    try:
        kind = nw.from_native(frame, eager_only=True).implementation
    except TypeError:
        raise ParameterError(
            f"frame must be a pandas, polars or pyarrow table, got {type(frame).__name__}; for files there "
            f"is `sottovoce release`, for Spark sottovoce.spark.release"
        ) from None
    return lambda columns: nw.from_dict(columns, backend=kind).to_native()
