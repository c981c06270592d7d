"""The decorators, and the declarations that they leave behind.

Only types and names are checked here. `schema` checks patterns and policies, and an author's process does not have
`schema`. The decorated function is returned unchanged, so that the author's own tests can call it.
"""

from __future__ import annotations

import difflib
import json
import sys
from dataclasses import dataclass, field
from datetime import date, datetime
from dis import findlinestarts
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypedDict, TypeVar, Union, overload

if TYPE_CHECKING:
    from typing_extensions import Unpack  # known to every type checker, and never imported

Function = TypeVar("Function", bound=Callable[..., Any])
Instant = Union[str, date, datetime]
Failures = Union[str, "type[BaseException]"]


class Options(TypedDict, total=False):
    """What every decorator of a job takes. docs/schedules.md says what each option does in special cases."""

    timeout: str | None
    """Soft timeout, after which a run is cancelled: "5m"."""
    on_disconnect: str | None
    """"stop" (default) ends a run whose runner has lost every controller; "finish" lets it run on."""
    timezone: str | None
    """IANA name, like "Europe/Berlin"; UTC by default."""
    dst_gap: str | None
    """For a fixed time that a clock change leaves out: "run_after" (default) or "skip"."""
    dst_overlap: str | None
    """For a fixed time that comes twice: "first" (default), "both" or "second"."""
    start_at: Instant | None
    """No tick before it. Without an offset it is in the job's time zone."""
    end_at: Instant | None
    """No tick after it."""
    window: str | list[str] | None
    """Ticks outside are skipped: "Mon-Fri 08:00-18:00", also with a zone of its own."""
    jitter: str | float | None
    """By how much a start may be moved: "off", "30s", "10%", 0.1 (of the gap to the next tick)."""
    on_missed: str | None
    """When nobody was there to run it: "run_last" (default), "skip" or "run_all"."""
    catch_up_window: str | None
    """How old a missed tick may be to be caught up: "6h"."""
    overlap: str | None
    """While it still runs: "skip" (default), "buffer_one", "buffer_all", "cancel_running" or "allow"."""
    max_concurrent: int | None
    """With overlap "allow": how many at once."""
    retries: int | None
    """Further attempts at a tick after the first has failed."""
    backoff: str | None
    """Before the first retry; doubled for each further one, up to 1 h: "10s"."""
    retry_on: Failures | list[Failures] | tuple[Failures, ...] | None
    """Only after these failures: exceptions, by class or name, "timed_out", "lost", "out_of_memory"..."""
    pause_after_failures: int | None
    """Pause the job after so many ticks in a row without success."""
    late_after: str | None
    """Tell webhooks of a tick that has not started so long after its time: "5m"."""
    after: str | None
    """In place of a schedule: run for each tick of this job that has succeeded: "billing.close_month"."""
    priority: int | None
    """Where places are short, -100 to 100: a level is worth a second of waiting."""
    memory_limit: str | None
    """End a run whose processes hold more memory: "256MiB"."""
    cpu_limit: str | None
    """End a run whose processes take more CPU time: "30s"."""
    history: str | None
    """Keep its executions for so long at least: "90d"."""
    history_runs: int | None
    """Keep so many of its newest executions, whatever their age."""
    payload: Any
    """The JSON value that a run by schedule gets, where the verb takes one."""


class IntervalOptions(Options, total=False):
    """What `every` takes."""

    anchor: Instant | None
    """Where the interval counts from; the job's first deployment by default."""


@dataclass(frozen=True)
class Declaration:
    """One decorated function. `line` is that of its first decorator, as Python counts a function's lines.

    At most one of `cron`, `every`, `once` and `manual` is set; the first three hold what the author wrote. `options`
    hold what the author wrote too, as values that JSON has.
    """

    name: str
    line: int
    function: Callable[..., Any]
    cron: str | None = None
    every: str | None = None
    once: str | None = None
    manual: bool = False
    options: dict[str, Any] = field(default_factory=dict)


_OPTIONS = tuple(Options.__annotations__)
_INTERVAL_OPTIONS = (*_OPTIONS, "anchor")
_TEXTS = {"timeout": '"5m"', "on_disconnect": '"finish"', "after": '"billing.close_month"'}
_declared: dict[str, list[Declaration]] = {}


def declarations(module_name: str) -> list[Declaration]:
    """What the module of that name has declared so far, in the order of its source."""
    return list(_declared.get(module_name, ()))


def cron(pattern: str | None = None, **options: Unpack[Options]) -> Callable[[Function], Function]:
    """Run the verb at every instant that `pattern` matches: `@cron("0 9 * * 1-5", timezone="Europe/Berlin")`.

    The pattern is in UTC, unless `timezone` names another zone. Without a pattern, `@cron(after="billing.close_month")`
    runs the verb for each tick for which that job has succeeded. `Options` has all options. Raises TypeError for an
    option that doesn't exist, or a value of a wrong type.
    """
    read = read_options("@cron", options)
    if pattern is None and "after" in read:
        return _decorator(_caller(), read, manual=True)
    require_text("@cron", "pattern", pattern, '@cron("0 6 1 * *")')
    return _decorator(_caller(), read, cron=pattern)


def every(interval: str, **options: Unpack[IntervalOptions]) -> Callable[[Function], Function]:
    """Run the verb each `interval` ("30s", "30m", "6h", "1d"), counted from `anchor`. Options as for `cron`."""
    require_text("@every", "interval", interval, '@every("30m")')
    return _decorator(_caller(), read_options("@every", options), every=interval)


def once(run_at: Instant, **options: Unpack[Options]) -> Callable[[Function], Function]:
    """Run the verb once: `@once("2026-03-01 09:00", timezone="Europe/Berlin")`. Options as for `cron`."""
    text = json_instant("@once", "run_at", run_at)
    return _decorator(_caller(), read_options("@once", options), once=text)


@overload
def manual(function: Function, /) -> Function: ...
@overload
def manual(**options: Unpack[Options]) -> Callable[[Function], Function]: ...
def manual(*function: Any, **options: Any) -> Any:
    """A job that only runs when it is triggered: `@manual`, or `@manual(timeout="5m")`. Options as for `cron`."""
    caller = _caller()
    if function and (len(function) > 1 or not callable(function[0])):
        given = ", ".join(map(repr, function))
        raise TypeError(f"@manual takes options by name only: write @manual or @manual(timeout=...), not {given}")
    decorate = _decorator(caller, read_options("@manual", options), manual=True)
    return decorate(function[0]) if function else decorate


def verb(*function: Function) -> Function:
    """Declare a verb without a schedule."""
    if len(function) != 1 or not callable(function[0]):
        given = ", ".join(map(repr, function))
        raise TypeError(f"@verb takes no arguments: write @verb above the function, not @verb({given})")
    return _declare(function[0], _caller(), {})


class _Caller(NamedTuple):
    """Where a decorator is written."""

    module: str
    code: CodeType
    instruction: int

    @property
    def line(self) -> int:
        """Computed only on request, as Python walks the code's whole table of lines to find it.

        Doing that for each verb at import would take quadratic time: 3 s for 10,000 verbs.
        """
        found = self.code.co_firstlineno
        for offset, line in findlinestarts(self.code):
            if offset > self.instruction:
                break
            found = line or found
        return found


def _caller() -> _Caller:
    frame = sys._getframe(2)  # noqa: SLF001  # `inspect` offers the same for a hundred times its cost
    return _Caller(str(frame.f_globals.get("__name__", "")), frame.f_code, frame.f_lasti)


def _decorator(caller: _Caller, options: dict[str, Any], **schedule: Any) -> Callable[[Function], Function]:
    def declare(function: Function) -> Function:
        return _declare(function, caller, options, **schedule)

    return declare


def _declare(function: Function, caller: _Caller, options: dict[str, Any], **schedule: Any) -> Function:
    """Declare it for the module that `function` says it is from, and for the module that `caller` names.

    The two differ when a library's decorator below ours returned a function of its own: the verb is the caller's. They
    also differ when a helper in another module applies our decorator: the verb is the function's.
    """
    code = getattr(function, "__code__", None)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None and getattr(wrapped, "__module__", None) == getattr(function, "__module__", None):
        code = getattr(wrapped, "__code__", code)  # a wrapper's own line would point into somebody's library
    name = getattr(function, "__name__", None)
    if name is None or not callable(function):
        what = "has no name" if name is None else "can't be called as it is"
        raise TypeError(f"{function!r} {what}; decorate a function made by def or async def")
    line = code.co_firstlineno if code is not None else caller.line
    places = {function.__module__: line}
    if caller.module not in places:
        places = {caller.module: caller.line, **places}
    for module, at in places.items():
        _declared.setdefault(module, []).append(Declaration(name, at, function, **schedule, options=options))
    return function


# What the decorators take, as JSON


def read_options(decorator: str, options: Any) -> dict[str, Any]:
    """The options as JSON values. `decorator`: the name that errors give. Raises TypeError."""
    names = _INTERVAL_OPTIONS if decorator == "@every" else _OPTIONS
    read: dict[str, Any] = {}
    for name, value in options.items():
        if name not in names:
            raise TypeError(_no_such_option(decorator, name, names))
        if value is not None:
            read[name] = _json_value(decorator, name, value)
    return read


def _no_such_option(decorator: str, name: str, names: tuple[str, ...]) -> str:
    if name == "anchor":
        return f"{decorator} takes no anchor: only the interval of @every counts from one"
    close = difflib.get_close_matches(name, names, 1, cutoff=0.85) or difflib.get_close_matches(name, names, 2)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(sorted(names))}"
    return f"{decorator} has no option {name!r}; {hint}"


def _json_value(decorator: str, name: str, value: Any) -> Any:
    if name == "payload":
        try:
            return json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{decorator}: the payload must be a value that JSON has ({error})") from None
    if name in {"start_at", "end_at", "anchor"}:
        return json_instant(decorator, name, value)
    if name in _TEXTS:
        require_text(decorator, name, value, f"{name}={_TEXTS[name]}")
    if name == "retry_on" and not isinstance(value, str):
        return [_failure_name(decorator, each) for each in (value if isinstance(value, (list, tuple)) else [value])]
    if name == "window" and isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    if not isinstance(value, (str, int, float)):
        raise TypeError(f"{decorator} takes its {name} as text or a number, not {value!r}")
    return value


def json_instant(decorator: str, name: str, value: object) -> str:
    """An instant as text. Raises TypeError."""
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if not isinstance(value, str):
        raise TypeError(
            f'{decorator} takes its {name} as text or datetime, not {value!r}: write {name}="2026-03-01 09:00"'
        )
    return value


def _failure_name(decorator: str, failure: object) -> str:
    """As the runner names an exception's type: `ConnectionError`, `requests.exceptions.Timeout`."""
    if isinstance(failure, type) and issubclass(failure, BaseException):
        module = failure.__module__
        plain = module == "builtins" or module.startswith("cronring.")
        return failure.__qualname__ if plain else f"{module}.{failure.__qualname__}"
    if not isinstance(failure, str):
        raise TypeError(f"{decorator} takes retry_on as exceptions or their names, not {failure!r}")
    return failure


def require_text(decorator: str, what: str, value: object, example: str) -> None:
    """Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{decorator} takes its {what} as text, not {value!r}: write {example}")
