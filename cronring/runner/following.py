"""Who follows what runs print here. Nothing is sent while nobody does.

Ten times a second each follower gets what is new, at most the 64 KiB that are kept: a verb that prints faster than that
is followed with gaps. A link that still has output to write gets no more meanwhile, so output never piles up, and
neither verbs nor results wait for it.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.held import Held

INTERVAL_S: Final = 0.1
FOLLOWERS_MAX: Final = 256  # on one runner: together they may take 16 MiB at once, and 160 MiB a second

# Takes an answer to a link. False: the link has more to write than it should; try again later. `last` is always taken.
Send = Callable[[str, runner_pb2.Output, bool], bool]
Key = tuple[str, int]


class _Follower:
    __slots__ = ("execution_id", "position", "told")

    def __init__(self, execution_id: int, position: int) -> None:
        self.execution_id = execution_id
        self.position = position
        self.told = False  # it has had its first answer


class Piece(NamedTuple):
    """What goes to a follower."""

    offset: int
    data: bytes


class Following:
    """`held`: the runs of this runner."""

    def __init__(self, held: Mapping[int, Held], send: Send, watch: Callable[[bool], None]) -> None:
        """`watch` is told whether ends of runs are of interest here."""
        self._held = held
        self._send = send
        self._watch = watch
        self._followers: dict[Key, _Follower] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._followers)

    def asked(self, address: str, follow: runner_pb2.Follow) -> None:
        """A controller asks to follow an execution, or no longer to."""
        key = address, follow.follow_id
        if follow.stop:
            self._forget(key)
        elif follow.execution_id not in self._held:
            self._answer(key, Piece(follow.from_offset, b""), runner_pb2.Output.STATE_UNKNOWN)
        elif len(self._followers) >= FOLLOWERS_MAX:
            self._answer(key, Piece(follow.from_offset, b""), runner_pb2.Output.STATE_REFUSED)
        else:
            self._followers[key] = _Follower(follow.execution_id, max(0, follow.from_offset))
            self._watch(True)
            self._tell(key)
            self._tick_later()

    def disconnected(self, address: str) -> None:
        """Whoever followed through that controller goes on through another."""
        for key in [key for key in self._followers if key[0] == address]:
            self._forget(key)

    def ended(self, held: Held) -> None:
        """A run is over: the rest of its output, to each of its followers."""
        for key, follower in list(self._followers.items()):
            if follower.execution_id == held.run.execution_id:
                self._answer(key, _news(held, follower), runner_pb2.Output.STATE_ENDED)
                self._forget(key)

    def close(self) -> None:
        for key in list(self._followers):
            self._forget(key)

    def _tick(self) -> None:
        self._timer = None
        for key in list(self._followers):
            self._tell(key)
        self._tick_later()

    def _tick_later(self) -> None:
        if self._timer is None and self._followers:
            self._timer = self._loop.call_later(INTERVAL_S, self._tick)

    def _tell(self, key: Key) -> None:
        follower = self._followers[key]
        piece = _news(self._held[follower.execution_id], follower)
        if follower.told and not piece.data:
            return
        if self._answer(key, piece, runner_pb2.Output.STATE_RUNNING):
            follower.told = True
            follower.position = piece.offset + len(piece.data)

    def _answer(self, key: Key, piece: Piece, state: runner_pb2.Output.State.ValueType) -> bool:
        address, follow_id = key
        output = runner_pb2.Output(follow_id=follow_id, offset=piece.offset, data=piece.data, state=state)
        return self._send(address, output, state != runner_pb2.Output.STATE_RUNNING)

    def _forget(self, key: Key) -> None:
        if self._followers.pop(key, None) is not None and not self._followers:
            self._watch(False)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None


def _news(held: Held, follower: _Follower) -> Piece:
    """From where the follower is; from further on, where that is no longer kept."""
    tail = held.tail
    if tail is None or tail.end <= follower.position:
        return Piece(follower.position, b"")
    return Piece(*tail.since(follower.position))
