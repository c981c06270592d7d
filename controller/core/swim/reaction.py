"""What a Swim answers with."""

from typing import NamedTuple

from controller.core.effects import Level, Note, SendPacket
from controller.core.swim.member import Change


class Reaction(NamedTuple):
    """Packets to send, in order; changes of what is believed of members, in order; and notes for the log."""

    packets: list[SendPacket]
    changes: list[Change]
    notes: list[Note]

    @classmethod
    def nothing(cls) -> "Reaction":
        return cls([], [], [])

    def note(self, level: Level, event: str, **values: str | int | float | bool) -> None:
        self.notes.append(Note(level, event, values))
