"""What runs print, from their runners to those who follow them through this controller."""

import asyncio
from collections import deque
from typing import Final

from cronring.controller.ports.store import OutputPart, OutputState
from cronring.protos.executions import MalformedError
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.recorded import KEEP_BYTES

UNREAD_BYTES_MAX: Final = 1024 * 1024  # a follower that has so much still to read is dropped
PART_BYTES: Final = 256
_STATES: Final = {
    int(wire.Output.STATE_RUNNING): OutputState.RUNNING,
    int(wire.Output.STATE_ENDED): OutputState.ENDED,
    int(wire.Output.STATE_UNKNOWN): OutputState.UNKNOWN,
    int(wire.Output.STATE_REFUSED): OutputState.REFUSED,
}


def _size(part: OutputPart) -> int:
    """How much of a follower's room a part takes. A part without data takes some, too."""
    return len(part.data) + PART_BYTES


class Follow:
    """cronring.controller.ports.store.OutputParts: one follower's share of one run's output."""

    def __init__(self, follow_id: int, follows: "Follows") -> None:
        self._follow_id = follow_id
        self._follows = follows
        self._parts: deque[OutputPart] = deque()
        self._unread_bytes = 0
        self._something = asyncio.Event()

    async def next(self) -> OutputPart:
        """Wait for the next part. After a part that is not RUNNING, no more come."""
        while not self._parts:
            self._something.clear()
            await self._something.wait()
        part = self._parts.popleft()
        self._unread_bytes -= _size(part)
        return part

    def close(self) -> None:
        """Follow it no longer."""
        self._follows.close(self._follow_id)

    def put(self, part: OutputPart) -> None:
        """Never waits. A follower that is too far behind is dropped."""
        self._unread_bytes += _size(part)
        if self._unread_bytes > UNREAD_BYTES_MAX:
            end = self._parts[0].offset
            self._parts.clear()
            part = OutputPart(end, b"", OutputState.SLOW)
            self._follows.close(self._follow_id)
        self._parts.append(part)
        self._something.set()


class Follows:
    """Followers of one runner's runs. What is to be said to that runner waits in `to_send`."""

    def __init__(self) -> None:
        self.to_send: deque[wire.Follow] = deque()
        self._follows: dict[int, Follow] = {}
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._follows)

    def open(self, execution_id: int, from_offset: int) -> Follow:
        self._next_id += 1
        follow = self._follows[self._next_id] = Follow(self._next_id, self)
        self.to_send.append(wire.Follow(follow_id=self._next_id, execution_id=execution_id, from_offset=from_offset))
        return follow

    def close(self, follow_id: int) -> None:
        if self._follows.pop(follow_id, None) is not None:
            self.to_send.append(wire.Follow(follow_id=follow_id, stop=True))

    def received(self, output: wire.Output) -> bool:
        """Whether it was asked for. Raises MalformedError."""
        state = _STATES.get(output.state)
        if state is None or output.offset < 0 or len(output.data) > KEEP_BYTES:
            raise MalformedError(f"output of follower {output.follow_id} is none that a runner sends")
        follow = self._follows.get(output.follow_id)
        if follow is None:
            return False  # never asked for, or not any more: then the runner will soon be told
        if state is not OutputState.RUNNING:
            del self._follows[output.follow_id]
        follow.put(OutputPart(output.offset, output.data, state))
        return True

    def break_off(self) -> None:
        """The runner's stream has ended."""
        for follow in self._follows.values():
            follow.put(OutputPart(0, b"", OutputState.AWAY))
        self._follows.clear()
