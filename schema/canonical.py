"""Turns a module as somebody wrote it into the spelling that is stored, so that deployments accept what parsers do."""

from dataclasses import replace

from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.module import DEFAULT_POLICY, Module, Verb
from cronring.schema.policy import read_each
from cronring.schema.schedule import ScheduleError, check_schedule


def canonical_module(module: Module) -> Module:
    """The module with its schedules, policies and anchors in canonical form.

    What is wrong stays as it is, for `validate` to say so. Instants without an offset are in the policy's time zone.
    """
    verbs = tuple(_verb(verb) if verb.schedule or verb.policy != DEFAULT_POLICY else verb for verb in module.verbs)
    return replace(module, verbs=verbs)


def _verb(verb: Verb) -> Verb:
    policy, zone = verb.policy, ""
    if policy != DEFAULT_POLICY:
        reading = read_each(policy.raw())
        zone = reading.policy.timezone
        wrong = {error.field: getattr(policy, error.field) for error in reading.errors}
        policy = replace(reading.policy, **wrong)
    anchor = _anchor(verb.anchor, zone) if verb.anchor else ""
    return replace(verb, policy=policy, anchor=anchor, schedule=_schedule(verb.schedule, zone))


def _schedule(text: str, zone: str) -> str:
    if not text:
        return ""
    try:
        return check_schedule(text, zone)
    except ScheduleError:
        return text


def _anchor(text: str, zone: str) -> str:
    try:
        return format_instant(parse_instant(text, zone))
    except InstantError:
        return text
