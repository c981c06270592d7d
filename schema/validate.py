"""What is wrong with a module that somebody sent: every flaw, by the path of its field. Nothing here raises."""

import contextlib
import re
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from cronring.schema.after import cycle_fault, cycle_of
from cronring.schema.duration import DURATION_LIMIT_MS
from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.keys import JobKey
from cronring.schema.module import DEFAULT_POLICY, DataType, Module, Verb
from cronring.schema.payload import (
    RESERVED,
    NoPayload,
    parse_type,
    payload_faults,
    read_payload,
    value_faults,
)
from cronring.schema.policy import Policy, Reading, policy_faults, read_each
from cronring.schema.schedule import ScheduleError, check_schedule, is_interval
from cronring.schema.types import UNIT, canonical_type

VERBS_LIMIT: Final = 10_000
TYPES_LIMIT: Final = 1_000
FIELDS_LIMIT: Final = 500
NAME_LIMIT: Final = 100
GENERIC_NAME_LIMIT: Final = 200  # of a record with its arguments, Page[list[Order]]
DOC_LIMIT: Final = 64 * 1024
MODULE_DOCS_LIMIT: Final = 4 * 1024 * 1024
LINE_LIMIT: Final = 2**31 - 1
ON_DISCONNECT: Final = ("stop", "finish")
_FLAWS_SHOWN: Final = 100
_NAMES_CACHED: Final = 4_096  # of thousands of jobs made at once, most are of a few verbs

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
# What a comment can't hold and come back the same, and what is no text: lone surrogates.
_NOT_IN_DOC: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class Flaw(NamedTuple):
    """`path` names the field from the module on: `name`, `verbs[3].schedule`."""

    path: str
    message: str


def validate(module: Module) -> list[Flaw]:
    """Every flaw of a module, up to about a hundred; none: it may be deployed, and its text form says it all."""
    flaws = _field_flaws(
        ("namespace", namespace_fault(module.namespace)),
        ("name", name_fault(module.name)),
        ("doc", doc_fault(module.doc)),
    )
    flaws += _types_flaws(module)
    if len(module.verbs) > VERBS_LIMIT:
        flaws.append(Flaw("verbs", f"{len(module.verbs)} verbs; at most {VERBS_LIMIT} are allowed in a module"))
        return flaws
    docs = len(module.doc) + sum(len(verb.doc) for verb in module.verbs) + sum(len(data.doc) for data in module.types)
    if docs > MODULE_DOCS_LIMIT:
        flaws.append(Flaw("verbs", f"the documentation is over {MODULE_DOCS_LIMIT} characters in all; shorten it"))
    seen: dict[str, int] = {}
    for index, verb in enumerate(module.verbs):
        flaws += [Flaw(f"verbs[{index}].{flaw.path}", flaw.message) for flaw in _verb_flaws(verb, module)]
        first = seen.setdefault(verb.name, index)
        if first != index:
            flaws.append(Flaw(f"verbs[{index}].name", f"verbs[{first}] has the name {verb.name!r:.120} already"))
        if len(flaws) >= _FLAWS_SHOWN:
            break
    return flaws + _cycle_flaws(module)


def _cycle_flaws(module: Module) -> list[Flaw]:
    """Jobs of the module that follow each other in a circle."""
    own = str(JobKey(module.namespace, module.name, ""))
    after = {f"{own}{verb.name}": verb.policy.after for verb in module.verbs if verb.policy.after}
    flaws = []
    for index, verb in enumerate(module.verbs if after else ()):
        cycle = cycle_of(f"{own}{verb.name}", after)
        if cycle:
            flaws.append(Flaw(f"verbs[{index}].policy.after", cycle_fault(cycle)))
    return flaws


@lru_cache(maxsize=_NAMES_CACHED)
def name_fault(name: str) -> str | None:
    """What is wrong with the name of a module or a verb; None if nothing."""
    if not name:
        return "is empty"
    if len(name) > NAME_LIMIT:
        return f"has {len(name)} characters; at most {NAME_LIMIT} are allowed"
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name: letters a to z, digits and _ are allowed, and no digit first"
    return None


@lru_cache(maxsize=_NAMES_CACHED)
def namespace_fault(namespace: str) -> str | None:
    """What is wrong with a namespace; None if nothing."""
    if not namespace:
        return "is empty"
    if len(namespace) > NAME_LIMIT:
        return f"has {len(namespace)} characters; at most {NAME_LIMIT} are allowed"
    if not _NAMESPACE.fullmatch(namespace):
        return f"{namespace!r} is no namespace: letters a to z, digits, _ and - are allowed, and no - first"
    return None


def doc_fault(doc: str) -> str | None:
    """What is wrong with a documentation text; None if nothing."""
    if len(doc) > DOC_LIMIT:
        return f"has {len(doc)} characters; at most {DOC_LIMIT} are allowed"
    if _NOT_IN_DOC.search(doc):
        return "must not contain control characters (but newlines and tabs) or halves of surrogate pairs"
    return None


def clean_doc(doc: str) -> str:
    """A documentation text made fit: nothing forbidden in it, and cut to its limit."""
    return _NOT_IN_DOC.sub("\ufffd", doc.replace("\r\n", "\n"))[:DOC_LIMIT]


def timeout_fault(timeout_ms: int | None, default: str = "the controller's") -> str | None:
    """What is wrong with a timeout; None if nothing. `default`: whose counts where there is none."""
    if timeout_ms is not None and not 1 <= timeout_ms <= DURATION_LIMIT_MS:
        return f"is {timeout_ms}; it must be from 1 to {DURATION_LIMIT_MS}; leave it out for {default}"
    return None


def _verb_flaws(verb: Verb, module: Module) -> list[Flaw]:
    on_disconnect = None
    if verb.on_disconnect not in ON_DISCONNECT:
        on_disconnect = f"is {verb.on_disconnect!r:.120}; it must be 'stop' or 'finish'"
    return _field_flaws(
        ("name", name_fault(verb.name)),
        ("request", _type_fault(verb.request)),
        ("response", _type_fault(verb.response, verb.schedule)),
        ("schedule", _schedule_fault(verb.schedule)),
        *_policy_faults(verb),
        ("anchor", _anchor_fault(verb) if verb.anchor else None),
        ("payload", _payload_fault(verb, module) if verb.payload or verb.request != UNIT else None),
        ("timeout_ms", timeout_fault(verb.timeout_ms)),
        ("on_disconnect", on_disconnect),
        ("doc", doc_fault(verb.doc)),
        ("line", None if 0 <= verb.line <= LINE_LIMIT else "is no line number"),
    )


def _field_flaws(*faults: tuple[str, str | None]) -> list[Flaw]:
    return [Flaw(path, message) for path, message in faults if message is not None]


def _type_fault(text: str, schedule: str = "") -> str | None:
    if schedule and text != UNIT:
        return f"is {text!r:.120}; a verb with a schedule returns {UNIT}"
    canonical = canonical_type(text)
    if canonical is None:
        return f"{text!r:.120} is no type, like `Unit`, `Order` or `list[Order] | None`"
    if canonical != text:
        return f"{text!r:.120} is written {canonical!r}"
    return None


def _policy_faults(verb: Verb) -> list[tuple[str, str | None]]:
    if verb.policy == DEFAULT_POLICY:
        return []
    reading, spelling = _read_again(verb.policy)
    faults = list(spelling)
    with contextlib.suppress(ValueError):  # the schedule is none, which is told by itself
        faults += policy_faults(reading.policy, verb.schedule, reading.unread)
    return [(f"policy.{field}", message) for field, message in faults]


@lru_cache(maxsize=1_000)  # a module's verbs share a few
def _read_again(policy: Policy) -> tuple[Reading, tuple[tuple[str, str], ...]]:
    """Its values as if somebody had written them, and what is wrong with them, each by itself."""
    raw = policy.raw()
    reading = read_each(raw)
    canonical = reading.policy.raw()
    faults = [(error.field, error.told(raw[error.field])) for error in reading.errors]
    for field, value in raw.items():
        if field not in reading.unread and canonical.get(field) != value:
            faults.append((field, f"{value!r:.120} is written {getattr(reading.policy, field)!r:.120}"))
    return reading, tuple(faults)


def _anchor_fault(verb: Verb) -> str | None:
    if not is_interval(verb.schedule):
        return "is where an interval counts from, and the schedule is none"
    try:
        canonical = format_instant(parse_instant(verb.anchor))
    except InstantError as error:
        return str(error)
    return None if canonical == verb.anchor else f"{verb.anchor!r:.120} is written {canonical!r}"


def payload_needed(verb: Verb) -> bool:
    """Whether its schedule has to give it a payload: nobody else does, as somebody does who triggers a manual job."""
    runs_by_itself = bool(verb.policy.after) or verb.schedule not in {"", "manual"}
    return verb.request != UNIT and not verb.request_optional and runs_by_itself


def misfit_faults(module: Module, verb: Verb, schedule: str, policy: Policy, payload: str) -> list[str]:
    """Why runs of a job that somebody made for this verb would fail; `payload` as it was given then, "" for none."""
    if payload:
        takes_none = [f"{verb.name} takes no payload"]
        return takes_none if verb.request == UNIT else payload_faults(module, verb.request, payload)
    needed = payload_needed(replace(verb, schedule=schedule, policy=policy))
    return [f"it has none, and {verb.name} takes a {verb.request}"] if needed else []


def _payload_fault(verb: Verb, module: Module) -> str | None:
    if not verb.payload:
        return f"is empty, but the verb takes {verb.request:.120}, and has no default" if payload_needed(verb) else None
    if not verb.schedule:
        return "is what the schedule gives, and there is none"
    if verb.request == UNIT:
        return "is given, but the verb takes none"
    faults = payload_faults(module, verb.request, verb.payload) if canonical_type(verb.request) else []
    return "; ".join(faults)[:2_000] or _json_fault(verb.payload)


def _json_fault(text: str) -> str | None:
    try:
        canonical = read_payload(text).text
    except NoPayload as error:
        return str(error)
    return None if canonical == text else f"{text!r:.120} is written {canonical!r:.120}"


def _types_flaws(module: Module) -> list[Flaw]:
    if len(module.types) > TYPES_LIMIT:
        return [Flaw("types", f"{len(module.types)} records; at most {TYPES_LIMIT} are allowed in a module")]
    flaws: list[Flaw] = []
    known = {data.name: data for data in module.types}
    for index, data in enumerate(module.types):
        found = _field_flaws(("name", data_name_fault(data.name)), ("doc", doc_fault(data.doc)))
        if known[data.name] is not data:
            found.append(Flaw("name", f"another record has the name {data.name!r:.120}"))
        if len(data.fields) > FIELDS_LIMIT:
            found.append(Flaw("fields", f"{len(data.fields)} fields; at most {FIELDS_LIMIT} are allowed in a record"))
        else:
            found += _data_flaws(data, known)
        flaws += [Flaw(f"types[{index}].{flaw.path}", flaw.message) for flaw in found]
        if len(flaws) >= _FLAWS_SHOWN:
            break
    return flaws


def _data_flaws(data: DataType, known: dict[str, DataType]) -> list[Flaw]:
    flaws: list[Flaw] = []
    names: set[str] = set()
    for index, field in enumerate(data.fields):
        default = None
        type_fault = _type_fault(field.type)
        if field.default:
            default = _json_fault(field.default)
            if not field.optional:
                default = "is given, so the field may be left out: say that it is optional"
            elif default is None and type_fault is None:
                default = "; ".join(value_faults(known, field.type, read_payload(field.default).value)) or None
        repeated = f"{field.name!r:.120} is declared twice" if field.name in names else None
        names.add(field.name)
        found = _field_flaws(("name", name_fault(field.name) or repeated), ("type", type_fault), ("default", default))
        flaws += [Flaw(f"fields[{index}].{flaw.path}", flaw.message) for flaw in found]
    return flaws


def data_name_fault(name: str) -> str | None:
    """What is wrong with the name of a record, a generic one with its arguments; None if nothing."""
    if not name:
        return "is empty"
    plain, bracket, _ = name.partition("[")
    limit = GENERIC_NAME_LIMIT if bracket else NAME_LIMIT
    if len(name) > limit:
        return f"has {len(name)} characters; at most {limit} are allowed"
    if plain in RESERVED:
        return f"{plain!r} has a meaning of its own in types"
    if not all(_NAME.fullmatch(part) for part in plain.split(".")):
        return f"{plain!r} is no name: letters a to z, digits and _ are allowed, with dots between parts"
    if bracket and (canonical_type(name) != name or str(parse_type(name)) != name):
        return f"{name!r} is no generic record, like Page[int]"
    return None


def _schedule_fault(text: str) -> str | None:
    if not text:
        return None
    try:
        canonical = check_schedule(text)
    except ScheduleError as error:
        return str(error)
    if canonical != text:
        return f"{text!r:.120} is written {canonical!r}"
    return None
