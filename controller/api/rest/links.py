"""Links of the OpenAPI document: which operations take what the answer of another one tells.

One rule makes them all. An operation leads to those whose path begins as its own does, and then has names which its
answer tells: itself, or the first thing in it, or the first of a list. A PUT names a thing, so it leads to what is done
with that thing. docs/decisions/0099
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import Any, Final

from cronring.controller.api.rest.facades import JSON

_PIECE: Final = re.compile(r"[/:][^/:]+")
_REF: Final = "#/components/schemas/"
Pieces = Sequence[str]
"""Of a path: like /jobs, /{key}, :watch."""
Told = Sequence[tuple[str, set[str]]]
"""Places in an answer, and the plain names that stand at each."""


class OperationLinks:
    """Of these paths, whose operations are whole but for their links."""

    def __init__(self, paths: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
        self._paths: Final = paths
        self._schemas: Final = schemas
        self._pieces: Final = {path: _PIECE.findall(path) for path in paths}

    def add(self) -> None:
        for path, operations in self._paths.items():
            for verb, operation in operations.items():
                for answer in operation["responses"].values() if verb != "delete" else ():
                    if (schema := _json_of(answer)) and (found := self._from(path, verb, schema)):
                        answer["links"] = found

    def _from(self, path: str, verb: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """By the operations that they lead to."""
        begin, named = self._pieces[path], list[str]()
        while verb == "put" and _is_name(begin[-1]):
            *begin, last = begin
            named.insert(0, last)
        told = list(self._told(schema))
        found: dict[str, Any] = {}
        for other, operations in self._paths.items():
            if taken := self._taken(begin, named, self._pieces[other], told):
                found |= {
                    each["operationId"]: {"operationId": each["operationId"], "parameters": taken}
                    for each in operations.values()
                }
        return found

    def _told(self, schema: Mapping[str, Any]) -> Iterator[tuple[str, set[str]]]:
        """Where in an answer, and the names that stand there: in itself, then in the first thing in it."""
        properties = self._properties(schema)
        yield "", _plain(properties)
        for name, each in properties.items():
            for pointer, inner in ((f"/{name}", each), (f"/{name}/0", each.get("items", {}))):
                if found := self._properties(inner):
                    yield pointer, _plain(found)
                    return

    def _properties(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        whole = self._schemas[schema["$ref"].removeprefix(_REF)] if "$ref" in schema else schema
        found: Mapping[str, Any] = whole.get("properties", {})
        return found

    def _taken(self, begin: Pieces, named: Pieces, other: Pieces, told: Told) -> dict[str, str]:
        """The parameters of that path, each with where it is found; none: it is not led to.

        An answer that has the request's own names is what was there before, and tells of nothing beneath it.
        """
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(begin, other, strict=False)))
        beyond = list(dropwhile(lambda each: not _is_name(each), other[same:]))
        names = list(takewhile(_is_name, beyond))
        is_beneath = same == len(begin) or any(map(_is_name, begin[:same]))
        if not names or not is_beneath or (named and names != named) or any(map(_is_name, beyond[len(names) :])):
            return {}
        asked = {_bare(each): f"$request.path.{_bare(each)}" for each in other[:same] if _is_name(each)}
        first, *more = names
        rest = list(map(_bare, more))
        for pointer, properties in told:
            for alias in self._aliases(other[: other.index(first)], first):
                if {alias, *rest} <= properties and not asked.keys() & properties:
                    found = {each: f"$response.body#{pointer}/{each}" for each in rest}
                    return asked | {_bare(first): f"$response.body#{pointer}/{alias}"} | found
        return {}

    def _aliases(self, before: Pieces, name: str) -> list[str]:
        """What stands at that depth has one name in this path, and maybe another in that one."""
        depth = len(before)
        others = {each[depth] for each in self._pieces.values() if each[:depth] == before and len(each) > depth}
        return [_bare(each) for each in (name, *sorted(others - {name})) if _is_name(each)]


def _is_name(piece: str) -> bool:
    return piece.startswith("/{")


def _bare(name: str) -> str:
    return name[2:-1]


def _plain(properties: Mapping[str, Any]) -> set[str]:
    return {name for name, each in properties.items() if not each.keys() & {"$ref", "items", "properties"}}


def _json_of(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = answer.get("content", {}).get(JSON, {}).get("schema", {})
    return found
