"""What waits in a controller for somebody who doesn't read has a bound."""

import asyncio

from controller.ports import OutputState
from controller.runners.following import PART_BYTES, UNREAD_BYTES_MAX, Follows
from controller.runners.sessions import QUEUE_ITEMS_MAX, Session
from protos.runner.v1 import runner_pb2 as wire


def test_parts_without_data_fill_a_followers_room_as_well() -> None:
    """A runner that lies sends them for ever."""

    async def followed() -> OutputState:
        follows = Follows()
        follow = follows.open(1, 0)
        for _ in range(UNREAD_BYTES_MAX // PART_BYTES + 2):
            follows.received(wire.Output(follow_id=1, state=wire.Output.STATE_RUNNING))
        assert len(follow._parts) == 1
        return (await follow.next()).state

    assert asyncio.run(followed()) is OutputState.SLOW


def test_a_runner_that_does_not_read_who_follows_it_is_hung_up() -> None:
    async def asked() -> bool:
        session = Session("r1", lambda: 0)
        for _ in range(QUEUE_ITEMS_MAX // 2 + 1):
            session.follow(1, 0).close()
        session.follow(1, 0)
        return session.closed.done()

    assert asyncio.run(asked())
