"""From the contract's terms to one of our jobs: schedule, policy, payload. Pure."""

from collections.abc import Iterable
from typing import Any, Final

from cronring.controller.interval_jobs.problems import TermFault, unfit
from cronring.controller.interval_jobs.terms import DEFAULTS, OWN, UNITS, Given
from cronring.schema.module import Module, Verb
from cronring.schema.pattern import CronPattern, PatternError
from cronring.schema.payload import RESERVED, Type, canonical_json, parse_type, payload_faults
from cronring.schema.policy import read_policy
from cronring.schema.schedule import MANUAL, ScheduleError, check_schedule
from cronring.schema.types import UNIT

# "Executions are kept 100 per job or 30 days, whichever is more", whatever the cluster keeps of other jobs.
HISTORY: Final = {"history": "30d", "history_runs": 100}
HOUR_S: Final = 3_600
_ANYTHING: Final = frozenset({"Any", "object", "dict", "Dict", "Mapping"})


def is_recurring(terms: Given) -> bool:
    """Else it runs once, at once."""
    timed = "interval_minutes" in terms or "schedule_time" in terms
    return timed and terms.get("schedule_enabled", True)


def schedule_of(terms: Given) -> str:
    """Canonical. The interval wins over the pattern. Raises IntervalRefused."""
    if not is_recurring(terms):
        return MANUAL
    if "interval_minutes" in terms:
        unit = UNITS[terms.get("interval_type", DEFAULTS["interval_type"])]
        try:
            return check_schedule(f"every {terms['interval_minutes']}{unit}")
        except ScheduleError as error:
            raise unfit([TermFault("interval_minutes", str(error))]) from None
    try:
        return CronPattern.parse(terms["schedule_time"]).text
    except PatternError as error:
        raise unfit([TermFault("schedule_time", str(error))]) from None


def policy_of(terms: Given) -> str:
    """Canonical. A job that is out of retries is paused by that: it has failed, and stops.

    Its ticks are where its schedule has them, whatever jitter the cluster gives to other jobs.
    """
    retries = terms.get("max_retries", DEFAULTS["max_retries"])
    backoff_s = min(terms.get("retry_backoff_seconds", DEFAULTS["retry_backoff_seconds"]), HOUR_S)
    raw: dict[str, Any] = {"retries": retries, "pause_after_failures": 1, **HISTORY}
    if retries:
        raw["backoff"] = f"{backoff_s}s" if backoff_s else "1ms"
    if is_recurring(terms):
        raw["jitter"] = "off"
    return read_policy(raw).text


def payload_of(terms: Given, module: Module, verb: Verb) -> str:
    """What the verb gets: the caller's payload, with those of its own fields that the verb's parameter takes.

    Canonical JSON; "" for none. Raises IntervalRefused.
    """
    given = terms.get("payload")
    own = {name: terms[name] for name in OWN if name in terms and _takes(module, verb, name)}
    if own and given is not None and not isinstance(given, dict):
        raise unfit([TermFault("payload", f"must be a JSON object, as {', '.join(own)} stand in it, too")])
    value = {**(given or {}), **own} if own else given
    if value is None:
        faults = [] if verb.request == UNIT or verb.request_optional else payload_faults(module, verb.request, "null")
        if faults:
            raise unfit([TermFault("payload", f"is missing, and {verb.name} takes a {verb.request}; give one as JSON")])
        return ""
    if verb.request == UNIT:
        raise unfit([TermFault("payload", f"{verb.name} takes no payload; leave it out")])
    text = canonical_json(value)
    if found := payload_faults(module, verb.request, text):
        raise unfit([TermFault("payload", each) for each in found])
    return text


def _takes(module: Module, verb: Verb, name: str) -> bool:
    """Whether the verb's parameter has a place of this name: a record's field, or that of any object."""
    if verb.request == UNIT:
        return False
    records = {data.name: {field.name for field in data.fields} for data in module.types}
    for option in _options(parse_type(verb.request)):
        if str(option) in records:
            if name in records[str(option)]:
                return True
        elif option.name in _ANYTHING or option.name not in RESERVED:
            return True
    return False


def _options(type_: Type) -> Iterable[Type]:
    return type_.arguments if type_.name == "|" else (type_,)
