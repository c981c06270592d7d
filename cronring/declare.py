"""The decorators, and the declarations that they leave behind.

Nothing is checked here beyond types: what a pattern may say is the business of `schema`, which an author's process
does not have. The decorated function is returned as it was, so it stays callable in the author's own tests.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Callable, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declaration:
    """One decorated function. `line` is that of its first decorator, as Python counts a function's lines."""

    name: str
    line: int
    function: Callable[..., Any]
    cron: str | None = None
    every: str | None = None
    timeout: str | None = None
    on_disconnect: str | None = None


_declared: dict[str, list[Declaration]] = {}


def declarations(module_name: str) -> list[Declaration]:
    """What the module of that name has declared so far, in the order of its source."""
    return list(_declared.get(module_name, ()))


def cron(
    pattern: str, *, timeout: str | None = None, on_disconnect: str | None = None
) -> Callable[[Function], Function]:
    """Run the verb at every instant that `pattern` matches, in UTC: `@cron("0 6 1 * *")`.

    `timeout` ("5m"): soft timeout, after which the run is cancelled. `on_disconnect`: "stop" (default) ends a run
    whose runner has lost every controller; "finish" lets it run on. Raises TypeError for anything but text.
    """
    _require_text("cron", "pattern", pattern, '@cron("0 6 1 * *")')

    caller = _caller()

    def declare(function: Function) -> Function:
        return _declare(function, caller, cron=pattern, timeout=timeout, on_disconnect=on_disconnect)

    return declare


def every(
    interval: str, *, timeout: str | None = None, on_disconnect: str | None = None
) -> Callable[[Function], Function]:
    """Run the verb each `interval` ("30s", "30m", "6h", "1d"). Options as for `cron`."""
    _require_text("every", "interval", interval, '@every("30m")')

    caller = _caller()

    def declare(function: Function) -> Function:
        return _declare(function, caller, every=interval, timeout=timeout, on_disconnect=on_disconnect)

    return declare


def verb(*function: Function) -> Function:
    """Declare a verb without a schedule."""
    if len(function) != 1 or not callable(function[0]):
        given = ", ".join(map(repr, function))
        raise TypeError(f"@verb takes no arguments: write @verb above the function, not @verb({given})")
    return _declare(function[0], _caller())


def _caller() -> tuple[str, int]:
    """The module and the line in which the decorator is written."""
    frame = sys._getframe(2)  # noqa: SLF001  # `inspect` offers the same for a hundred times its cost
    return str(frame.f_globals.get("__name__", "")), frame.f_lineno


def _declare(function: Function, caller: tuple[str, int], **schedule: str | None) -> Function:
    """For the module that `function` says it is from, and for the one that `caller` names.

    They differ when a decorator below ours, from elsewhere, returned a function of its own (then it is the caller's),
    and when a helper applies ours (then it is the function's).
    """
    code = getattr(function, "__code__", None)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None and getattr(wrapped, "__module__", None) == getattr(function, "__module__", None):
        code = getattr(wrapped, "__code__", code)  # a wrapper's own line would point into somebody's library
    name = getattr(function, "__name__", None)
    if name is None or not callable(function):
        what = "has no name" if name is None else "can't be called as it is"
        raise TypeError(f"{function!r} {what}; decorate a function made by def or async def")
    line = code.co_firstlineno if code is not None else caller[1]
    for module, at in {caller[0]: caller[1], function.__module__: line}.items():
        _declared.setdefault(module, []).append(Declaration(name, at, function, **schedule))
    return function


def _require_text(decorator: str, what: str, value: object, example: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"@{decorator} takes its {what} as text, not {value!r}: write {example}")
