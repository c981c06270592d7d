"""The log of this controller, as its parts ask for it. controller/runtime/log.py is the one behind it."""

from typing import Protocol


class OperatorLog(Protocol):
    """What operators read. `event` is a fixed word like "runner_gone"; `values` are plain."""

    def info(self, event: str, **values: str | int | float | bool) -> None: ...
    def warning(self, event: str, **values: str | int | float | bool) -> None: ...


class FaultLog(Protocol):
    """What the authors of cronring want to read: errors that nobody expected, with their tracebacks."""

    def exception(self, event: str, error: BaseException) -> None: ...
