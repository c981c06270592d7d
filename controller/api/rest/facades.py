"""Operations of the document that are no RPC's: those that a façade's own table tells, as its routes are above us.

`operations` are rows of verb, path, operationId, summary, and the schema of the answer, null for none. `made` are those
whose success is 201. Names of a path, and those of `queries`, stand in `parameters`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cronring.controller.api.web_problems import PROBLEM
from cronring.protos.idempotency import KEY_HEADER

INTERVAL_JOBS: Final = Path(__file__).parents[2] / "interval_jobs" / "operations.json"
JSON: Final = "application/json"
KEY: Final[Mapping[str, Any]] = {"$ref": f"#/components/parameters/{KEY_HEADER}"}
FAILED: Final[Mapping[str, Any]] = {
    "description": "a problem; its status says which",
    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class Facade:
    """Of one table."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self.tags: list[dict[str, str]] = table["tags"]

    @classmethod
    def of_interval_jobs(cls) -> "Facade":
        return cls(json.loads(INTERVAL_JOBS.read_text()))

    def schemas(self) -> dict[str, Any]:
        """Answers have all their fields."""
        asked = set(self._table["bodies"].values())
        return {name: each if name in asked else _whole(each) for name, each in self._table["schemas"].items()}

    def paths(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for verb, path, name, summary, answer in self._table["operations"]:
            found.setdefault(path, {})[verb.lower()] = self._operation(verb, path, name, summary, answer)
        return found

    def _operation(self, verb: str, path: str, name: str, summary: str, answer: str | None) -> dict[str, Any]:
        schemas, queries = self._table["parameters"], self._table["queries"]
        in_path = [
            {"name": each, "in": "path", "required": True, "schema": schemas[each]}
            for each in re.findall(r"\{(\w+)\}", path)
        ]
        in_query = [{"name": each, "in": "query", "schema": schemas[each]} for each in queries.get(name, ())]
        operation: dict[str, Any] = {
            "operationId": name,
            "tags": [self.tags[0]["name"]],
            "description": summary,
            "parameters": in_path + in_query + ([] if verb == "GET" else [dict(KEY)]),
            "responses": {"204": {"description": "done"}, "default": FAILED},
            "summary": summary.rstrip("."),
        }
        if answer is not None:
            made = name in self._table["made"]
            done = {"description": "made" if made else "done", "content": _json_of(answer)}
            operation["responses"] = {"201" if made else "200": done, "default": FAILED}
        if body := self._table["bodies"].get(name):
            operation["requestBody"] = {"required": True, "content": _json_of(body)}
        return operation


def _json_of(name: str) -> dict[str, Any]:
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _whole(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "properties" not in schema:
        return dict(schema)
    inner = {name: _whole(each) for name, each in schema["properties"].items()}
    return {**schema, "properties": inner, "required": list(inner)}
