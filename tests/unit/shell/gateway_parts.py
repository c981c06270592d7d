"""What a gateway talks to, for its tests: a node's inbox that keeps all, and a log that does."""

from dataclasses import dataclass, field
from typing import Any

from cronring.controller.core.node.events import Event


@dataclass
class Inbox:
    events: list[Event] = field(default_factory=list)

    def put(self, event: Event) -> None:
        self.events.append(event)

    async def room(self) -> None:
        return

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@dataclass
class Log:
    """(level, event, values) of each line."""

    lines: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def info(self, event: str, **values: str | int | float | bool) -> None:
        self.lines.append(("info", event, values))

    def warning(self, event: str, **values: str | int | float | bool) -> None:
        self.lines.append(("warning", event, values))

    def of(self, runner_id: str) -> list[tuple[str, str, dict[str, Any]]]:
        return [line for line in self.lines if line[2]["runner"] == runner_id]
