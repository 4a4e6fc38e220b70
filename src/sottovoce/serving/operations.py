"""What the collector can be asked: one table, from which its routes and /openapi.json are made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import __version__
from .batches import MOST_REPORTS

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}


def fields(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    """The schema of an object with these fields and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


REPORT = fields(
    {
        "mechanism": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        "category": {"type": ["string", "integer"]},
        "group": TEXT,
    },
    "group",
)
BATCH = fields({"reports": {"type": "array", "items": REPORT, "minItems": 1, "maxItems": MOST_REPORTS}})
REFUSAL = fields({"error": TEXT, "report": COUNT}, "report")
ESTIMATE = {"type": "object", "required": ["reports", "mechanism", "mechanisms", "groups"]}
MEANINGS = {
    200: "the answer",
    202: "every report of the batch is on the disk, now or since an earlier time",
    304: "the file is the one that the ETag names",
    400: "not strict JSON, not of the form of a batch, or cut off",
    401: "a key is needed: Authorization: Bearer, then the key",
    404: "nothing of this name is served",
    408: "the batch came too slowly",
    409: "an id is stored with another content; nothing of the batch was stored",
    413: "too many reports or bytes",
    415: "not application/json in UTF-8, or compressed",
    421: "the collector does not answer to this host name",
    422: "another mechanism, an unknown category, or the wrong group",
    500: "the collector failed; nothing of the request was accepted",
    503: "too many connections, reports or exports, or the store takes no writes: try again later",
}


@dataclass(frozen=True)
class Operation:
    """A request that is answered: by what, with what, and whose key it needs where keys are set."""

    path: str
    name: str
    summary: str
    kind: str = "application/json"
    schema: Any = None
    refusals: tuple[int, ...] = ()
    query: tuple[str, ...] = ()
    method: str = "GET"
    success: int = 200
    key: str = ""
    live: bool = False  # served with the page only

    def description(self, *, keyed: bool) -> dict[str, Any]:
        """This operation as OpenAPI describes it."""
        statuses = {self.success, *self.refusals, *((401,) if keyed else ()), 421, 500, 503}
        contents = {status: {"application/json": {"schema": REFUSAL}} for status in statuses}
        contents[self.success] = {self.kind: {"schema": self.schema or TEXT}}
        contents[503] = contents[503] | {"text/plain": {"schema": TEXT}}
        answers = {str(s): {"description": MEANINGS[s], "content": contents[s]} for s in sorted(statuses)}
        answers.get("304", {}).pop("content", None)
        described: dict[str, Any] = {"operationId": self.name, "summary": self.summary, "responses": answers}
        if self.query:
            described["parameters"] = [{"name": name, "in": "query", "schema": TEXT} for name in self.query]
        if self.method == "POST":
            content = {"application/json": {"schema": BATCH}}
            described["requestBody"] = {"required": True, "content": content}
        return described | ({"security": [{"key": []}]} if keyed else {})


OPERATIONS = (
    Operation(
        "/v1/reports", "reports", "Store a batch of reports, as a whole or not at all.",
        schema=fields({"accepted": COUNT}), refusals=(400, 408, 409, 413, 415, 422),
        method="POST", success=202, key="reports",
    ),
    Operation(
        "/v1/mechanism", "mechanism", "A mechanism file, byte for byte; without a digest the first one.",
        schema={"type": "object"}, refusals=(304, 404), query=("digest",),
    ),
    Operation("/healthz", "healthz", "Whether the store takes writes.", "text/plain"),
    Operation("/openapi.json", "openapi", "This description.", schema={"type": "object"}),
    Operation("/", "page", "The live page.", "text/html", live=True),
    Operation(
        "/v1/estimate", "estimate", "The estimate as it is now; without a digest that of the first file.",
        schema=ESTIMATE, refusals=(404,), query=("digest",), key="read", live=True,
    ),
    Operation(
        "/v1/export", "export", "The reports of a mechanism file as CSV; without a digest of the first file.",
        "text/csv", refusals=(404,), query=("digest", "group"), key="read", live=True,
    ),
    Operation("/metrics", "metrics", "Counters for Prometheus.", "text/plain", key="read", live=True),
)  # fmt: skip


def openapi(operations: Iterable[Operation], keyed: Iterable[str]) -> dict[str, Any]:
    """The description of these operations, of which some kinds need a key."""
    paths = {
        operation.path: {operation.method.lower(): operation.description(keyed=operation.key in keyed)}
        for operation in operations
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "sottovoce collector", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
