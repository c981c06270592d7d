"""A payload that a caller sent, held against the parameter of the verb that will get it."""

from functools import lru_cache
from typing import Final

from cronring.controller.api.problems import Violations
from cronring.schema.module import Module, Verb
from cronring.schema.payload import PAYLOAD_LIMIT, NoPayload, payload_faults, read_payload, value_faults
from cronring.schema.types import UNIT

_LATEST: Final = 8  # what is judged is stored next


def payload_violations(field: str, module: Module, verb: Verb, payload: str, required: bool) -> Violations:
    """What is wrong with `payload` ("" for none); `required`: the verb will be run with just this one."""
    if verb.request == UNIT:
        return [(field, f"{verb.name} takes no payload; leave it out")] if payload else []
    if payload:
        return [(field, fault) for fault in _faults(module, verb, payload)]
    if required and not verb.request_optional and payload_faults(module, verb.request, "null"):
        return [(field, f"is empty, and {verb.name} takes a {verb.request}; give one as JSON")]
    return []


def _faults(module: Module, verb: Verb, payload: str) -> list[str]:
    try:
        value, canonical = _read(payload)
    except NoPayload as error:
        return [str(error)]
    types = {data.name: data for data in module.types}
    return value_faults(types, verb.request, value) or _size_faults(canonical)


_read = lru_cache(maxsize=_LATEST)(read_payload)


def canonical_payload(payload: str) -> str:
    """As it is stored, so that the same payload is the same text. "" stays "". Raises NoPayload for no JSON."""
    return _read(payload).text if payload else ""


def _size_faults(canonical: str) -> list[str]:
    size = len(canonical.encode())
    if size <= PAYLOAD_LIMIT:
        return []
    return [f"it has {size} bytes as it is stored; at most {PAYLOAD_LIMIT} are allowed: pass a reference instead"]
