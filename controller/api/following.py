"""FollowExecution: what an execution prints while it runs, from its runner; then its outcome, from the books.

Every runner has a stream to every controller, so each controller can ask the runner itself. If the runner doesn't know
the run, the run is on its way there, or has just ended: the books tell which. Offsets count all bytes that the run has
printed. So a follower can go on through another controller at the same offset.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

from cronring.controller.api.problems import SlowReaderError
from cronring.controller.errors import RunnerAway, TooMany
from cronring.controller.ports.reads import ExecutionRow, Reads
from cronring.controller.ports.store import OutputParts, Outputs, OutputState
from cronring.schema.recorded import read_recorded

LOOK_S: Final = 0.2  # at the books: has it ended, or does its runner know it by now?
END_LOOK_S: Final = 0.05  # its end has been reported, and is being committed
RECHECK_S: Final = 5.0  # how often to look at the books, as not only the runner may end a run
AWAY_S: Final = 5.0  # how long to wait for the runner; after that the caller may ask another controller
FOLLOWERS_MAX: Final = 500  # through one controller


class Chunk(NamedTuple):
    """`row` is that of the last chunk only."""

    offset: int
    data: bytes
    row: ExecutionRow | None = None


class OutputFollowers:
    """All followers of a controller."""

    def __init__(self, reads: Reads, outputs: Outputs) -> None:
        self._reads = reads
        self._outputs = outputs
        self._followers = 0

    async def follow(self, execution_id: int, offset: int, *, once: bool) -> AsyncGenerator[Chunk, None]:
        """Raises NotFound, TooMany, SlowReaderError, RunnerAway, StoreUnavailable, StoreError."""
        if self._followers >= FOLLOWERS_MAX:
            raise TooMany(f"{FOLLOWERS_MAX} executions are followed through this controller; ask another one")
        self._followers += 1
        try:
            async with contextlib.aclosing(self._chunks(execution_id, offset, once)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._followers -= 1

    async def _chunks(self, execution_id: int, offset: int, once: bool) -> AsyncGenerator[Chunk, None]:
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        ended = False
        while True:
            row = await self._reads.get_execution(execution_id)
            if row.outcome is not None:
                if not ended and (rest := _recorded(row, offset)).data:
                    yield rest
                    offset = rest.offset + len(rest.data)
                yield Chunk(offset, b"", row)
                return
            stream = None if ended else self._outputs.follow(row.runner_id, execution_id, offset)
            if stream is not None:
                async with contextlib.aclosing(_parts(stream)) as parts:
                    async for chunk, state in parts:
                        heard_at = loop.time()
                        ended = state is OutputState.ENDED
                        offset = chunk.offset + len(chunk.data)
                        if chunk.data:
                            yield chunk
                        if once:
                            break
            if not ended and stream is None and (once or loop.time() - heard_at > AWAY_S):
                raise RunnerAway(
                    f"runner {row.runner_id} of execution {execution_id} isn't connected to this controller"
                )
            if once:
                yield Chunk(offset, b"", await self._reads.get_execution(execution_id))
                return
            await asyncio.sleep(END_LOOK_S if ended else LOOK_S)


async def _parts(stream: OutputParts) -> AsyncGenerator[tuple[Chunk, OutputState], None]:
    """Until the runner has sent all, or it is time to look at the books. Raises SlowReaderError, TooMany."""
    with contextlib.closing(stream):
        while True:
            try:
                async with asyncio.timeout(RECHECK_S):
                    part = await stream.next()
            except TimeoutError:
                return
            match part.state:
                case OutputState.RUNNING | OutputState.ENDED:
                    yield Chunk(part.offset, part.data), part.state
                case OutputState.SLOW:
                    raise SlowReaderError(f"this follower reads too slowly; go on from offset {part.offset}")
                case OutputState.REFUSED:
                    raise TooMany("too many runs of its runner are followed; try again later")
                case OutputState.UNKNOWN | OutputState.AWAY:
                    return
            if part.state is OutputState.ENDED:
                return


def _recorded(row: ExecutionRow, offset: int) -> Chunk:
    """What was kept of its output, from `offset` on."""
    begins_at, data = read_recorded(row.output or "")
    skipped = min(max(0, offset - begins_at), len(data))
    return Chunk(max(begins_at, offset), data[skipped:])
