"""The OpenAPI 3.1 document, made from the descriptors, their comments, the policy and the caps, and a façade's table.

`python -m cronring.controller.api.rest.openapi` (`make protos`) writes openapi.json beside this file, which is served.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from cronring.controller.api.cookies import SESSION
from cronring.controller.api.policy import POLICY, Reach
from cronring.controller.api.rest.bindings import Binding, bindings, fields_of, is_map, services
from cronring.controller.api.rest.comments import Comments, read_comments
from cronring.controller.api.rest.facades import FAILED, JSON, KEY, Facade
from cronring.controller.api.rest.links import OperationLinks
from cronring.controller.api.rest.reading import MASK, STAMP
from cronring.controller.api.rest.streams import EVENTS, LINES
from cronring.controller.api.same_site import CSRF_HEADER
from cronring.protos.caps import cap_of
from cronring.protos.idempotency import KEY_HEADER, why_no_key

FILE: Final = Path(__file__).with_name("openapi.json")
_ABOUT: Final = (
    "The services of cronring, by HTTP and JSON. Names are those of the .proto files. int64 is a text in answers; "
    "requests may have a number or a text. docs/rest.md tells the rest."
)
_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: ("int32", -(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: ("uint32", 0, 2**32 - 1),
}
_LARGE: Final = {FieldDescriptor.CPPTYPE_INT64: "int64", FieldDescriptor.CPPTYPE_UINT64: "uint64"}
_PROBLEM: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "RFC 9457. `reason` and `status` are for programs, `title` and `detail` for people.",
    "required": ["type", "title", "status", "detail", "instance", "code", "reason"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string", "description": "as gRPC names it, like NOT_FOUND"},
        "reason": {"type": "string"},
        "violations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "description"],
                "properties": {"field": {"type": "string"}, "description": {"type": "string"}},
            },
        },
        "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
        "outcome": {"type": "string", "enum": ["unknown", "done"], "description": "of the change; absent: not done"},
    },
}
_KEY: Final[Mapping[str, Any]] = {
    "name": KEY_HEADER,
    "in": "header",
    "description": "with it this is done once in 24 hours, however often it is sent; methods without it refuse it",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}


class Document:
    """Of all bindings. A message's schema is made when the first that has it is."""

    def __init__(self, comments: Comments) -> None:
        self._comments = comments
        self._asked: set[str] = set()
        self._schemas: dict[str, Any] = {"Problem": _PROBLEM}

    def made(self) -> dict[str, Any]:
        found = bindings()
        for each in found:
            self._ask(each.method.input_type)
        paths: dict[str, Any] = {}
        for number, each in _numbered(found):
            paths.setdefault(each.path, {})[each.verb.lower()] = self._operation(each, number)
        tags = [{"name": each.name, "description": self._comments.of(each)} for each in services()]
        facade = Facade.of_interval_jobs()
        paths |= facade.paths()
        self._schemas |= facade.schemas()
        OperationLinks(paths, self._schemas).add()
        return {
            "openapi": "3.1.0",
            "info": {"title": "cronring", "version": "v1", "description": _ABOUT},
            "servers": [{"url": "/"}],
            "security": [{"bearer": []}, {"session": [], "csrf": []}],
            "tags": tags + facade.tags,
            "paths": paths,
            "components": {
                "schemas": dict(sorted(self._schemas.items())),
                "parameters": {KEY_HEADER: _KEY},
                "securitySchemes": _security(),
            },
        }

    def _ask(self, descriptor: Any) -> None:
        """Requests have it: it takes no unknown fields, and what is larger than its cap is refused."""
        if descriptor.full_name not in self._asked:
            self._asked.add(descriptor.full_name)
            for field in descriptor.fields:
                if field.message_type is not None:
                    self._ask(field.message_type)

    def _operation(self, each: Binding, number: int) -> dict[str, Any]:
        said = self._comments.of(each.method)
        operation: dict[str, Any] = {
            "operationId": each.method.name + (f"_{number}" if number > 1 else ""),
            "tags": [each.method.containing_service.name],
            "description": " ".join(filter(None, (said, _takes(each)))),
            "parameters": list(self._parameters(each)),
            "responses": self._responses(each),
        }
        if said:
            operation["summary"] = re.split(r"(?<=[.:])\s", said)[0].rstrip(".:")
        if each.has_body:
            rest = self._object(each.method.input_type, each.fields)
            operation["requestBody"] = {"content": {JSON: {"schema": rest}}}
        return operation

    def _parameters(self, each: Binding) -> Iterator[dict[str, Any]]:
        for name in each.fields:
            schema = self._plain(each.method.input_type.fields_by_name[name], asked=True)
            yield {"name": name, "in": "path", "required": True, "schema": schema}
        if not each.has_body:
            yield from self._in_query(each.method.input_type, "", each.fields)
        if not why_no_key(each.method):
            yield dict(KEY)

    def _in_query(self, descriptor: Any, prefix: str, but: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
        for field in fields_of(descriptor, but):
            if is_map(field):
                continue  # `filter.labels.NAME=value`: OpenAPI has no words for a name that begins so
            inner = field.message_type
            if inner is not None and inner.full_name not in {MASK, STAMP}:
                yield from self._in_query(inner, f"{prefix}{field.name}.")
                continue
            schema = self._field(field, asked=True)
            said = {"description": schema.pop("description")} if "description" in schema else {}
            yield {"name": prefix + field.name, "in": "query", "schema": schema, **said}

    def _responses(self, each: Binding) -> dict[str, Any]:
        if not each.answer.fields and not each.streams:
            return {"204": {"description": "done"}, "default": FAILED}
        schema = self._ref(each.answer)
        if each.streams:
            words = "one such object for each line; lines may be empty. Or server-sent events that have one"
            done = {
                "description": words,
                "content": {LINES: {"schema": schema}, EVENTS: {"schema": {"type": "string"}}},
            }
        else:
            done = {"description": "made" if each.makes else "done", "content": {JSON: {"schema": schema}}}
        there = {"200": done | {"description": "nothing was made: it was there, or this is a rehearsal"}}
        return {"201" if each.makes else "200": done, **(there if each.may_make_nothing else {}), "default": FAILED}

    def _ref(self, descriptor: Any) -> dict[str, Any]:
        name = _name(descriptor)
        if name not in self._schemas:
            self._schemas[name] = {}  # for those that have themselves in them
            self._schemas[name] = self._object(descriptor)
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, descriptor: Any, but: tuple[str, ...] = ()) -> dict[str, Any]:
        asked = descriptor.full_name in self._asked
        found: dict[str, Any] = {"type": "object"}
        if said := self._comments.of(descriptor):
            found["description"] = said
        found["properties"] = {each.name: self._field(each, asked=asked) for each in fields_of(descriptor, but)}
        if asked:
            found["additionalProperties"] = False
        elif always := [each.name for each in fields_of(descriptor, but) if not each.has_presence]:
            found["required"] = always
        return found

    def _field(self, field: Any, *, asked: bool) -> dict[str, Any]:
        found: dict[str, Any]
        if is_map(field):
            value = field.message_type.fields_by_name["value"]
            found = {"type": "object", "additionalProperties": self._one(value, asked=False)}
            bound = "maxProperties"
        elif field.is_repeated:
            found, bound = {"type": "array", "items": self._one(field, asked=asked)}, "maxItems"
        else:
            found, bound = dict(self._one(field, asked=asked)), ""
        if asked and bound:
            found[bound] = cap_of(field.name).items
        if said := self._comments.of(field):
            found["description"] = said
        return found

    def _one(self, field: Any, *, asked: bool) -> dict[str, Any]:
        inner = field.message_type
        if inner is None:
            return self._plain(field, asked=asked)
        if inner.full_name == STAMP:
            return {"type": "string", "format": "date-time"}
        if inner.full_name == MASK:
            return {"type": "string", "pattern": "^[^,]*(,[^,]+)*$"}
        return self._ref(inner)

    def _plain(self, field: Any, *, asked: bool) -> dict[str, Any]:
        kind = field.cpp_type
        if field.enum_type is not None:
            return {"type": "string", "enum": list(field.enum_type.values_by_name)}
        if kind in _INTEGERS:
            name, lowest, highest = _INTEGERS[kind]
            return {"type": "integer", "format": name, "minimum": lowest, "maximum": highest}
        if kind in _LARGE:
            return {
                "type": ["string", "integer"] if asked else "string",
                "format": _LARGE[kind],
                "pattern": "^-?[0-9]+$",
            }
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return {"type": "boolean"}
        if kind == FieldDescriptor.CPPTYPE_DOUBLE:
            return {"type": "number", "format": "double"}
        if field.type == FieldDescriptor.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        return {"type": "string", "maxLength": cap_of(field.name).length} if asked else {"type": "string"}


def _numbered(found: Sequence[Binding]) -> Iterator[tuple[int, Binding]]:
    """Among those of its RPC."""
    times: dict[str, int] = {}
    for each in found:
        times[each.rpc] = times.get(each.rpc, 0) + 1
        yield times[each.rpc], each


def _takes(each: Binding) -> str:
    """Who may."""
    access = POLICY[each.rpc]
    if access.permission is None:
        return "Whoever is known may do it."
    where = "all namespaces" if access.scope is Reach.CLUSTER else "the namespace"
    return f"It takes the permission `{access.permission}` in {where}."


def _name(descriptor: Any) -> str:
    return str(descriptor.full_name).removeprefix("cronring.v1.")


def _security() -> dict[str, Any]:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "`cronring token create`, or an issuer's JWT"},
        "session": {"type": "apiKey", "in": "cookie", "name": SESSION, "description": "of who logged in at /login"},
        "csrf": {"type": "apiKey", "in": "header", "name": CSRF_HEADER, "description": "GET /session tells it"},
    }


def text() -> str:
    """Of the file."""
    return json.dumps(Document(read_comments()).made(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    sys.exit(0)
