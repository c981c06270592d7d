"""What is wrong with a module that somebody sent: every flaw, by the path of its field. Nothing here raises."""

import re
from typing import Final, NamedTuple

from schema.duration import DURATION_LIMIT_MS
from schema.module import Module, Verb
from schema.schedule import ScheduleError, check_schedule
from schema.types import UNIT, canonical_type

VERBS_LIMIT: Final = 10_000
NAME_LIMIT: Final = 100
DOC_LIMIT: Final = 64 * 1024
MODULE_DOCS_LIMIT: Final = 8 * 1024 * 1024
LINE_LIMIT: Final = 2**31 - 1
ON_DISCONNECT: Final = ("stop", "finish")
_FLAWS_SHOWN: Final = 100

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
    if len(module.verbs) > VERBS_LIMIT:
        flaws.append(Flaw("verbs", f"{len(module.verbs)} verbs; at most {VERBS_LIMIT} are allowed in a module"))
        return flaws
    if len(module.doc) + sum(len(verb.doc) for verb in module.verbs) > MODULE_DOCS_LIMIT:
        flaws.append(Flaw("verbs", f"the documentation is over {MODULE_DOCS_LIMIT} characters in all; shorten it"))
    seen: dict[str, int] = {}
    for index, verb in enumerate(module.verbs):
        flaws += [Flaw(f"verbs[{index}].{flaw.path}", flaw.message) for flaw in _verb_flaws(verb)]
        first = seen.setdefault(verb.name, index)
        if first != index:
            flaws.append(Flaw(f"verbs[{index}].name", f"verbs[{first}] has the name {verb.name!r:.120} already"))
        if len(flaws) >= _FLAWS_SHOWN:
            break
    return flaws


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a module or a verb; None if nothing."""
    if not name:
        return "is empty"
    if len(name) > NAME_LIMIT:
        return f"has {len(name)} characters; at most {NAME_LIMIT} are allowed"
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name: letters a to z, digits and _ are allowed, and no digit first"
    return None


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


def timeout_fault(timeout_ms: int) -> str | None:
    """What is wrong with a timeout; None if nothing."""
    if not 0 <= timeout_ms <= DURATION_LIMIT_MS:
        return f"is {timeout_ms}; it must be from 0 (the controller's default) to {DURATION_LIMIT_MS}"
    return None


def _verb_flaws(verb: Verb) -> list[Flaw]:
    on_disconnect = None
    if verb.on_disconnect not in ON_DISCONNECT:
        on_disconnect = f"is {verb.on_disconnect!r:.120}; it must be 'stop' or 'finish'"
    return _field_flaws(
        ("name", name_fault(verb.name)),
        ("request", _type_fault(verb.request, verb.schedule)),
        ("response", _type_fault(verb.response, verb.schedule)),
        ("schedule", _schedule_fault(verb.schedule)),
        ("timeout_ms", timeout_fault(verb.timeout_ms)),
        ("on_disconnect", on_disconnect),
        ("doc", doc_fault(verb.doc)),
        ("line", None if 0 <= verb.line <= LINE_LIMIT else "is no line number"),
    )


def _field_flaws(*faults: tuple[str, str | None]) -> list[Flaw]:
    return [Flaw(path, message) for path, message in faults if message is not None]


def _type_fault(text: str, schedule: str) -> str | None:
    if schedule and text != UNIT:
        return f"is {text!r:.120}; a verb with a schedule takes and returns {UNIT}"
    canonical = canonical_type(text)
    if canonical is None:
        return f"{text!r:.120} is no type, like `Unit`, `Order` or `list[Order] | None`"
    if canonical != text:
        return f"{text!r:.120} is written {canonical!r}"
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
