"""What a caller gives of a job: read, judged field by field, and kept. Pure.

Texts that are empty where they would say something, and null, are as good as not given.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from cronring.controller.api.strict_json import NotStrictJsonError, read_object
from cronring.controller.interval_jobs.problems import TermFault, malformed, unfit
from cronring.controller.interval_jobs.settings import IntervalSettings
from cronring.controller.ports.interval_jobs import Terms
from cronring.schema.keys import VerbName
from cronring.schema.nearest import nearest
from cronring.schema.payload import DEPTH_LIMIT, PAYLOAD_LIMIT, NoPayload, canonical_json, read_payload
from cronring.schema.verb_name import read_verb

BODY_MAX: Final = 256 * 1024
NAME_MAX: Final = 500  # characters
URL_MAX: Final = 8_192
RETRIES_MAX: Final = 100
BACKOFF_MAX_S: Final = 86_400  # what waits longer than an hour waits an hour
COUNT_MAX: Final = 36_500 * 24 * 60
UNITS: Final = MappingProxyType({"minutes": "m", "hours": "h", "days": "d"})
DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"interval_type": "minutes", "max_retries": 3, "retry_backoff_seconds": 60}
)
# What is only told. Clients that change a job send back what they have read: that is passed over.
TOLD: Final = frozenset({
    "id", "status", "is_paused", "paused_at", "cancelled_at", "next_run_at", "started_at", "completed_at", "created_at",
    "updated_at", "error_message", "current_retry_count",
})  # fmt: skip
_BODY_DEPTH: Final = DEPTH_LIMIT + 2  # a payload that is a little too deep is told by its field
OWN: Final = ("source_id", "source_name", "url")  # the caller's: the verb gets them in its payload
_EMPTY_SAYS_NOTHING: Final = frozenset({"url", "verb", "interval_type", "schedule_time"})

Given = Mapping[str, Any]
"""Fields by name, without null."""


def read_given(body: bytes) -> dict[str, Any]:
    """The fields of a request's body, null for what is no longer given. Raises IntervalRefused."""
    try:
        found = read_object(body, _BODY_DEPTH)
    except NotStrictJsonError as error:
        raise malformed(f'the body {error}; it must be an object, like {{"url": "https://example.com"}}') from None
    given = {name: value for name, value in found.items() if name not in TOLD}
    unknown = [name for name in given if name not in _CHECKS]
    if unknown:
        raise unfit([TermFault(name[:NAME_MAX], _unknown(name)) for name in unknown])
    return {name: _or_null(name, value) for name, value in given.items()}


def merged(kept: Given, given: Mapping[str, Any], settings: IntervalSettings) -> dict[str, Any]:
    """What isn't given stays. Raises IntervalRefused where the whole doesn't fit."""
    terms = {name: value for name, value in {**kept, **given}.items() if value is not None}
    faults = [TermFault(name, fault) for name, value in terms.items() if (fault := _CHECKS[name](value)) is not None]
    if not faults:
        faults = _between(terms, settings)
    if faults:
        raise unfit(faults)
    return terms


def kept_terms(terms: Given) -> Terms:
    """As they are stored."""
    return Terms(canonical_json(dict(terms)), terms.get("source_id"))


def of_kept(terms: Terms) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(terms.text)
    return found


def verb_of(terms: Given, settings: IntervalSettings) -> VerbName:
    """Raises ValueError for what is no verb's name, or in another namespace."""
    if "verb" not in terms:
        if settings.verb is None:
            raise ValueError(
                "is missing, and this controller has none to run instead (--interval-jobs-verb); give MODULE.VERB"
            )
        return settings.verb
    verb = read_verb(terms["verb"], settings.namespace)
    if verb.namespace != settings.namespace:
        raise ValueError(f"{verb} is in another namespace; jobs here run in {settings.namespace!r}")
    return verb


def _between(terms: Given, settings: IntervalSettings) -> list[TermFault]:
    if "url" not in terms and "verb" not in terms:
        return [TermFault("url", "is missing, and so is verb; give one of them")]
    try:
        verb_of(terms, settings)
    except ValueError as error:
        return [TermFault("verb", str(error))]
    payload = terms.get("payload")
    if isinstance(payload, dict):
        return [
            TermFault(f"payload.{name}", f"is another than {name}, which the verb gets in its payload; give it once")
            for name in OWN
            if name in payload and name in terms and payload[name] != terms[name]
        ]
    return []


def _or_null(name: str, value: Any) -> Any:
    return None if value == "" and name in _EMPTY_SAYS_NOTHING else value


def _unknown(name: str) -> str:
    close = nearest(name, _CHECKS)
    return "there is no such field" + (f"; did you mean {close}?" if close else "")


def _text(most: int) -> Callable[[Any], str | None]:
    def fault(value: Any) -> str | None:
        if not isinstance(value, str):
            return "must be a text"
        if len(value) > most:
            return f"has {len(value)} characters; at most {most} are allowed"
        if "\x00" in value or (not value.isascii() and _is_broken(value)):
            return "holds characters that no text may: NUL, or half of a surrogate pair"
        return None

    return fault


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _count(least: int, most: int) -> Callable[[Any], str | None]:
    def fault(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"must be a whole number from {least} to {most}"
        return None if least <= value <= most else f"is {value}; it must be from {least} to {most}"

    return fault


def _unit(value: Any) -> str | None:
    return None if isinstance(value, str) and value in UNITS else f"must be one of {', '.join(UNITS)}"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _json(value: Any) -> str | None:
    try:
        read_payload(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except NoPayload as error:
        return str(error)
    except RecursionError:
        return f"it is nested deeper than {DEPTH_LIMIT}"
    return None


def _object(value: Any) -> str | None:
    return _json(value) if isinstance(value, dict) else f"must be a JSON object of {PAYLOAD_LIMIT} bytes at most"


_CHECKS: Final[Mapping[str, Callable[[Any], str | None]]] = MappingProxyType({
    "source_id": _text(NAME_MAX), "source_name": _text(NAME_MAX), "url": _text(URL_MAX), "verb": _text(NAME_MAX),
    "payload": _json, "interval_minutes": _count(1, COUNT_MAX), "interval_type": _unit,
    "schedule_time": _text(NAME_MAX), "schedule_enabled": _flag, "max_retries": _count(0, RETRIES_MAX),
    "retry_backoff_seconds": _count(0, BACKOFF_MAX_S), "metadata": _object,
})  # fmt: skip
FIELDS: Final = tuple(_CHECKS)
