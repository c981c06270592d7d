"""What waits in a controller for somebody who doesn't read has a bound."""

import asyncio

from cronring.controller.core.model import Execution, Job
from cronring.controller.core.node.effects import Dispatch
from cronring.controller.ports.store import OutputState
from cronring.controller.runners.following import PART_BYTES, UNREAD_BYTES_MAX, Follows
from cronring.controller.runners.streams import QUEUE_ITEMS_MAX, RunnerStream
from cronring.protos.admission import ANSWER_BYTES_MAX, admitted
from cronring.protos.executions import decode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire


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
        session = RunnerStream("r1", lambda: 0)
        for _ in range(QUEUE_ITEMS_MAX // 2 + 1):
            session.follow(1, 0).close()
        session.follow(1, 0)
        return session.closed.done()

    assert asyncio.run(asked())


def test_large_payloads_are_dispatched_in_messages_that_a_runner_takes() -> None:
    """Each run once, in their order; the payload is the job's own, or the run's."""
    filling = "\N{SNOWMAN}" * (64 * 1024 - 5)
    job = Job(3, "m.v", 5, "m@1", "v", "*/5 * * * *", 0, 1, 60_000, "stop", True, None, None)
    plain = Execution(0, job, 1, 1, 1, 1, "schedule", "m@1", "r1")
    runs = []
    for number in range(120):
        payload = f'"{number:03}{filling}"'
        own = {"payload": payload} if number % 2 else {"job": job._replace(payload=payload)}
        runs.append(plain._replace(execution_id=number, **own))

    async def written() -> list[wire.ControllerMessage]:
        session = RunnerStream("r1", lambda: 0)
        session.send(Dispatch("r1", 0, runs, [0] * len(runs)))
        messages = []
        while (message := session._next()) is not None:
            messages.append(message)
        return messages

    messages = asyncio.run(written())
    assert max(message.ByteSize() for message in messages) < ANSWER_BYTES_MAX // 2
    assert len(messages) < 4, "as few as there may be"
    read = [admitted(wire.ControllerMessage, message.SerializeToString()).dispatch for message in messages]
    ids = [run.execution_id for dispatch in read for run in decode_runs(dispatch.runs)]
    assert ids == [run.execution_id for run in runs]
