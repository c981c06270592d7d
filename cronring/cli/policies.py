"""A job's policies on the command line: an option for each of cronring.schema.policy.FIELDS, and each in words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from cronring.cli.completion import job_key
from cronring.cli.failures import Failure
from cronring.cli.instants import canonical
from cronring.cli.options import OrUnset, count
from cronring.schema.policy_model import FIELDS, PolicyField

Command = TypeVar("Command", bound=Callable[..., Any])
_INSTANTS: Final = frozenset({"start_at", "end_at"})
Value = str | int | list[str]

# By field, and by value where it is a word.
_WORDS: Final[dict[str, str | dict[str, str]]] = {
    "timezone": "its schedule is read on the clocks of {}",
    "dst_gap": {
        "run_after": "fixed times that the clocks skip run once, when the clocks go on",
        "skip": "fixed times that the clocks skip do not run",
    },
    "dst_overlap": {
        "first": "fixed times that the clocks show twice run the first time",
        "both": "fixed times that the clocks show twice run both times",
        "second": "fixed times that the clocks show twice run the second time",
    },
    "start_at": "no tick before {}",
    "end_at": "no tick after {}",
    "window": "ticks outside {} are skipped",
    "jitter": {
        "off": "runs start on their ticks",
        "auto": "runs start after their ticks, by up to 3s, 10s, 30s or 1m: at least 5m, 1h, 1d or 7d apart",
        "±": "runs start before or after their ticks, by at most {}",
        "*": "runs start after their ticks, by at most {}",
    },
    "on_missed": {
        "run_last": "of the ticks missed in an outage, the latest runs",
        "skip": "ticks missed in an outage do not run",
        "run_all": "every tick missed in an outage runs, one after the other",
    },
    "catch_up_window": "a missed tick older than {} does not run",
    "overlap": {
        "skip": "a tick that comes while a run lasts is skipped",
        "buffer_one": "of the ticks that come while a run lasts, the latest runs after it",
        "buffer_all": "every tick that comes while a run lasts runs after it",
        "cancel_running": "a tick that comes while a run lasts cancels that run",
        "allow": "ticks run beside each other",
    },
    "max_concurrent": "at most {} runs at once",
    "retries": {
        "0": "a tick whose run failed is not tried again",
        "*": "after a failure up to {} further attempts at the same tick",
    },
    "backoff": "the first of them after {}, each next after twice as long, at most 1h",
    "retry_on": "retried only: {}",
    "pause_after_failures": "paused after {} ticks in a row without success",
    "late_after": "webhooks are told of a tick that has not started {} after its time",
    "after": "runs for each tick of {} that has succeeded",
    "memory_limit": "a run is ended when its processes hold more than {} of memory",
    "cpu_limit": "a run is ended when its processes have taken more than {} of CPU time",
    "history": "executions are kept for {} at least",
    "history_runs": "the newest {} executions are kept whatever their age",
    "completes": {
        "enqueued": "a tick is completed when its message is in the queue",
        "consumed": "a tick is completed when its message's consumer has ended it",
    },
    "priority": "where places are short it runs as if it had been due {} seconds earlier",
}


def in_words(name: str, value: Value) -> str:
    """What a policy's value does."""
    words = _WORDS[name]
    if isinstance(words, dict):
        words = words.get(str(value)) or words.get(str(value)[:1]) or words.get("*", "{}")
    return words.format(", ".join(value) if isinstance(value, list) else value)


def policy_options(command: Command) -> Command:
    """--timezone, --overlap, --retries and so on; what was given is in `given_policy(values)`."""
    for field in reversed(FIELDS):
        command = click.option(f"--{field.name.replace('_', '-')}", **_settings(field))(command)
    return command


def _settings(field: PolicyField) -> dict[str, Any]:
    match field.kind:
        case "count":
            return {"type": OrUnset(count(field.lowest)), "metavar": "N", "help": _help(field)}
        case "names":
            return {"metavar": "NAME,...", "multiple": True, "help": _help(field)}
        case _:
            completed = job_key if field.name == "after" else None
            return {"metavar": "TEXT", "help": _help(field), "shell_complete": completed}


def _help(field: PolicyField) -> str:
    return f"{field.help[0].upper()}{field.help[1:]}."


def given_policy(values: Mapping[str, Any], zone: str = "") -> dict[str, Value]:
    """Of a command's values, the policies that were given; "" and [] are there too, to unset with.

    `zone`: of instants that are as of today.
    """
    given: dict[str, Value] = {}
    for field in FIELDS:
        value = values[field.name]
        if field.kind == "names" and value:
            given[field.name] = _names(value)
        elif field.kind != "names" and value is not None:
            given[field.name] = _canonical(field, value, zone) if field.name in _INSTANTS else value
    return given


def _canonical(field: PolicyField, value: str, zone: str) -> str:
    """Raises Failure that names the option."""
    try:
        return canonical(value, zone)
    except Failure as error:
        raise Failure(f"--{field.name.replace('_', '-')}: {error}") from error


def _names(values: Sequence[str]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
