"""The decorators, and the declarations that they leave behind.

Nothing is checked here beyond types: what a pattern may say is the business of `schema`, which an author's process
does not have. The decorated function is returned as it was, so it stays callable in the author's own tests.
"""

from __future__ import annotations

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

    def declare(function: Function) -> Function:
        return _declare(function, cron=pattern, timeout=timeout, on_disconnect=on_disconnect)

    return declare


def every(
    interval: str, *, timeout: str | None = None, on_disconnect: str | None = None
) -> Callable[[Function], Function]:
    """Run the verb each `interval` ("30s", "30m", "6h", "1d"). Options as for `cron`."""
    _require_text("every", "interval", interval, '@every("30m")')

    def declare(function: Function) -> Function:
        return _declare(function, every=interval, timeout=timeout, on_disconnect=on_disconnect)

    return declare


def verb(function: Function) -> Function:
    """Declare a verb without a schedule."""
    if not callable(function):
        raise TypeError(f"@verb takes no arguments: write @verb above the function, not @verb({function!r})")
    return _declare(function)


def _declare(function: Function, **schedule: str | None) -> Function:
    code = getattr(function, "__code__", None)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None and getattr(wrapped, "__module__", None) == getattr(function, "__module__", None):
        code = getattr(wrapped, "__code__", code)  # a wrapper's own line would point into somebody's library
    name = getattr(function, "__name__", None)
    if name is None:
        raise TypeError(f"{function!r} has no name; decorate a function made by def or async def")
    line = code.co_firstlineno if code is not None else 0
    _declared.setdefault(function.__module__, []).append(Declaration(name, line, function, **schedule))
    return function


def _require_text(decorator: str, what: str, value: object, example: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"@{decorator} takes its {what} as text, not {value!r}: write {example}")
