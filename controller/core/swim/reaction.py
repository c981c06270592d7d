"""What a Swim answers with."""

from typing import NamedTuple

from cronring.controller.core.swim.member import MemberChange
from cronring.controller.core.swim.messages import SendPacket, Update
from cronring.schema.log_line import Level, LogLine


class Reaction(NamedTuple):
    """Packets to send, in order; changes of what is believed of members, in order; and lines for the log.

    `burials`: verdicts on myself that I had to refute; who held me dead may have acted on it.
    """

    packets: list[SendPacket]
    changes: list[MemberChange]
    lines: list[LogLine]
    burials: list[Update]

    @classmethod
    def nothing(cls) -> "Reaction":
        return cls([], [], [], [])

    def log(self, level: Level, event: str, **values: str | int | float | bool) -> None:
        self.lines.append(LogLine(level, event, values))
