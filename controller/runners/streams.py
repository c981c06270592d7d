"""Streams of connected runners, and what waits to be sent on each. What comes during a write is merged."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from itertools import starmap
from typing import Final, NamedTuple, assert_never

import grpc

from cronring.controller.core.model import Execution
from cronring.controller.core.node.effects import AckBeat, AckReports, CancelRuns, Dispatch, SendDemands, ToRunner
from cronring.controller.core.runs import run_of
from cronring.controller.runners.codec import addresses, encode_demand
from cronring.controller.runners.conduct import Conduct, Lie
from cronring.controller.runners.following import Follow, Follows
from cronring.protos.executions import encode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.duration import measured
from cronring.schema.execution import Report
from cronring.schema.lanes import LaneDemand, LaneKey

QUEUE_ITEMS_MAX: Final = 50_000  # a runner that reads falls behind by a burst, not by more
UNACKED_REPORTS_MAX: Final = 50_000  # more than any runner was given to run
RUNS_PER_MESSAGE: Final = 1_000
PAYLOADS_PER_MESSAGE: Final = 4 * 1024 * 1024  # characters, each of which has up to four bytes
ACKS_PER_MESSAGE: Final = 20_000
STALLED_US: Final = 15_000_000  # if a message isn't taken for so long, the runner doesn't read
BEATS_MAX: Final = 16  # acknowledgements that a stalled runner may still find


class CloseReason(NamedTuple):
    """Why a stream ended."""

    code: grpc.StatusCode
    details: str


class RunnerStream:
    """One stream. `now_us` is any monotonic clock in microseconds; `counted` counts refusals by their kind."""

    def __init__(
        self,
        runner_id: str,
        now_us: Callable[[], int],
        counted: Callable[[str, int], None] = lambda _what, _count: None,
    ) -> None:
        self.runner_id = runner_id
        self.heard_at_us = now_us()
        self.registered = False
        self.draining = False  # its latest beat said so
        self.database_away = False  # so said the latest attempt to register it
        self.closed: asyncio.Future[CloseReason] = asyncio.get_running_loop().create_future()
        self._now_us = now_us
        self._conduct = Conduct(now_us, counted)
        self._something = asyncio.Event()
        self._first: list[wire.ControllerMessage] = []
        self._beats: deque[AckBeat] = deque(maxlen=BEATS_MAX)
        self._runs: list[tuple[Execution, int]] = []  # with the epoch of its place
        self._demands: dict[LaneKey, LaneDemand] = {}
        self._active: dict[str, bool] = {}  # its deployments, as the runner was told, or is about to be told
        self._standings: dict[str, bool] = {}  # changes of that which are not sent yet
        self._acks: list[int] = []
        self._cancels: deque[CancelRuns] = deque()
        self._answers: deque[wire.VerbAnswer] = deque()
        self._database_minus_own_us = 0
        self._peers: tuple[tuple[str, str], ...] = ()
        self._unacked: set[int] = set()
        self._follows = Follows()
        self._silent = False
        self._writing_since_us: int | None = None  # the message under way

    @property
    def queued(self) -> int:
        orders = len(self._cancels) + len(self._answers) + len(self._follows.to_send)
        return len(self._runs) + len(self._acks) + orders

    @property
    def followers(self) -> int:
        return len(self._follows)

    def close(self, code: grpc.StatusCode, details: str) -> None:
        if not self.closed.done():
            self.closed.set_result(CloseReason(code, details))

    def is_stalled(self, now_us: int) -> bool:
        """The runner doesn't read: a message has been under way for too long. Slow reading is no stall."""
        return self._writing_since_us is not None and now_us - self._writing_since_us > STALLED_US

    def took(self, lie: Lie, count: int = 1) -> None:
        """The runner sent what it should not send. More than is allowed of that ends the stream."""
        why = self._conduct.took(lie, count)
        if why is not None:
            self.close(grpc.StatusCode.RESOURCE_EXHAUSTED, why)

    def heard(self, reports: list[Report] | None = None) -> None:
        """The runner said something."""
        self.heard_at_us = self._now_us()
        if reports:
            self._unacked.update(report.execution_id for report in reports)
            if len(self._unacked) > UNACKED_REPORTS_MAX:
                self.close(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"more than {UNACKED_REPORTS_MAX} reports without an acknowledgement",
                )

    def answer(self, answer: wire.VerbAnswer) -> None:
        """What became of a verb's call."""
        self._answers.append(answer)
        self._bound()
        self._something.set()

    def follow(self, execution_id: int, from_offset: int) -> Follow:
        """The run's output from this offset on."""
        follow = self._follows.open(execution_id, from_offset)
        self._bound()
        self._something.set()
        return follow

    def printed(self, output: wire.Output) -> None:
        """Raises MalformedError."""
        if not self._follows.received(output):
            self.took(Lie.OUTPUT)
        self._something.set()  # a follower that was dropped is to be told of

    def break_off(self) -> None:
        """The stream has ended: its followers get no more."""
        self._follows.break_off()

    @property
    def deployments(self) -> Collection[str]:
        """Empty before the runner is welcomed."""
        return self._active.keys()

    def stand(self, active: Collection[str]) -> None:
        """Tell the runner which of its deployments have become active or inactive. Only the latest state is sent."""
        news = {key: key in active for key, was in self._active.items() if was != (key in active)}
        self._active |= news
        self._standings |= news
        self._something.set()

    def welcome(self, welcome: wire.Welcome) -> None:
        self._active = {module.deployment: module.active for module in welcome.modules if module.deployment}
        self._first.append(wire.ControllerMessage(welcome=welcome))
        self._something.set()

    def send(self, effect: ToRunner) -> None:
        """Queue. A stream whose runner doesn't read is closed instead of growing."""
        match effect:
            case Dispatch():
                self._runs += zip(effect.executions, effect.epochs, strict=True)
                self._database_minus_own_us = effect.now_us - self._now_us()
            case AckReports():
                self._acks += effect.execution_ids
                self._unacked.difference_update(effect.execution_ids)
                if effect.refused:
                    self.took(Lie(f"report_{effect.refused}"), len(effect.execution_ids))
            case SendDemands():  # the latest of each lane says all
                self._demands.update(((demand.deployment, demand.kind), demand) for demand in effect.demands)
            case CancelRuns():
                self._cancels.append(effect)
            case AckBeat():
                self._beats.append(effect)
            case _:
                assert_never(effect)
        self._bound()
        self._something.set()

    def _bound(self) -> None:
        if self.queued > QUEUE_ITEMS_MAX:
            self.close(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"the runner doesn't read: more than {QUEUE_ITEMS_MAX} items wait"
            )

    async def write_all(self, write: Callable[[wire.ControllerMessage], Awaitable[None]]) -> None:
        """Write what is queued until `stop_writing`: the only writer of this stream. `write` waits for slow readers."""
        while not self._silent:
            await self._something.wait()
            self._something.clear()
            while not self._silent and (message := self._next()) is not None:
                self._writing_since_us = self._now_us()
                await write(message)
                self._writing_since_us = None

    def stop_writing(self) -> None:
        """After the message under way, write no more."""
        self._silent = True
        self._something.set()

    def _next(self) -> wire.ControllerMessage | None:
        """The most urgent message, holding as much as one may. Beats first: without them a runner stops its runs."""
        if self._first:
            return self._first.pop(0)
        if self._beats:
            return self._beat(self._beats.popleft())
        if self._acks:
            acks, self._acks = self._acks[:ACKS_PER_MESSAGE], self._acks[ACKS_PER_MESSAGE:]
            return wire.ControllerMessage(reports_ack=wire.ReportsAck(execution_ids=acks))
        if self._runs:
            count = self._fitting()
            runs, self._runs = self._runs[:count], self._runs[count:]
            # Read now, at the time of sending: the runner sets its clock by it.
            now_us = self._now_us() + self._database_minus_own_us
            return wire.ControllerMessage(
                dispatch=wire.Dispatch(now_us=now_us, runs=encode_runs(starmap(run_of, runs)))
            )
        if self._demands or self._standings:  # after the runs: a demand counts the places that they use as gone
            return self._latest()
        return self._order()

    def _order(self) -> wire.ControllerMessage | None:
        """The next message about single runs: a cancellation, acknowledgements, answers or follows."""
        if self._cancels:
            cancel = self._cancels.popleft()
            _, execution_ids, reason, grace_ms = cancel
            return wire.ControllerMessage(
                cancel=wire.Cancel(execution_ids=execution_ids, reason=reason, grace_ms=grace_ms)
            )
        if self._answers:
            return wire.ControllerMessage(verb_answer=self._answers.popleft())
        if self._follows.to_send:
            return wire.ControllerMessage(follow=self._follows.to_send.popleft())
        return None

    def _latest(self) -> wire.ControllerMessage:
        """The next message of a kind of which only the latest state counts."""
        if self._demands:
            demands, self._demands = self._demands, {}
            return wire.ControllerMessage(demands=wire.LaneDemands(demands=map(encode_demand, demands.values())))
        standings, self._standings = self._standings, {}
        changed = [wire.Standing(deployment=key, active=active) for key, active in standings.items()]
        return wire.ControllerMessage(standings=wire.Standings(standings=changed))

    def _fitting(self) -> int:
        """How many of the waiting runs fit into one message. A runner refuses messages that are too large."""
        size = 0
        for count, (execution, _) in enumerate(self._runs[:RUNS_PER_MESSAGE]):
            size += len(execution.payload or execution.job.payload or "")
            if size > PAYLOADS_PER_MESSAGE and count:
                return count
        return RUNS_PER_MESSAGE

    def _beat(self, beat: AckBeat) -> wire.ControllerMessage:
        peers = beat.peers if beat.peers != self._peers else ()  # empty on the wire: as before
        self._peers = beat.peers or self._peers
        return wire.ControllerMessage(
            beat_ack=wire.BeatAck(
                sequence=beat.sequence,
                renewed=beat.renewed,
                database_ok=beat.database_ok,
                addresses=addresses(peers),
            )
        )


class RunnerStreams:
    """Every connected runner's stream, one for each runner id."""

    def __init__(self) -> None:
        self._streams: dict[str, RunnerStream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def queued(self) -> int:
        return sum(stream.queued for stream in self._streams.values())

    @property
    def runner_ids(self) -> tuple[str, ...]:
        return tuple(self._streams)

    @property
    def welcomed(self) -> list[RunnerStream]:
        return [stream for stream in self._streams.values() if stream.deployments]

    def add(self, stream: RunnerStream) -> RunnerStream | None:
        """Add a stream. Returns the stream of the same runner that it replaces, if any."""
        replaced = self._streams.get(stream.runner_id)
        self._streams[stream.runner_id] = stream
        return replaced

    def remove(self, stream: RunnerStream) -> bool:
        """False when it has been replaced."""
        if self._streams.get(stream.runner_id) is not stream:
            return False
        del self._streams[stream.runner_id]
        return True

    @property
    def followers(self) -> int:
        return sum(stream.followers for stream in self._streams.values())

    def follow(self, runner_id: str, execution_id: int, from_offset: int) -> Follow | None:
        """cronring.controller.ports.store.Outputs."""
        stream = self._streams.get(runner_id)
        return None if stream is None else stream.follow(execution_id, from_offset)

    def send(self, effect: ToRunner) -> None:
        """To the runner named; dropped when it is gone, as the node hears of that by RunnerLeft."""
        stream = self._streams.get(effect.runner_id)
        if stream is not None:
            stream.send(effect)

    def stalled_at(self, now_us: int) -> list[RunnerStream]:
        """Those whose runners have taken nothing of a message for STALLED_US."""
        return [stream for stream in self._streams.values() if stream.is_stalled(now_us)]

    def close_silent(self, now_us: int, silence_us: int) -> int:
        """Close streams that were silent for `silence_us` (stopped, or a dead connection). Returns how many."""
        for stream in self.stalled_at(now_us):
            reason = f"the runner doesn't read: nothing was taken for {measured(STALLED_US / 1_000)}"
            stream.close(grpc.StatusCode.RESOURCE_EXHAUSTED, reason)
        silent = [stream for stream in self._streams.values() if now_us - stream.heard_at_us > silence_us]
        for stream in silent:
            stream.close(grpc.StatusCode.DEADLINE_EXCEEDED, f"no beat for {measured(silence_us / 1_000)}")
        return len(silent)

    def close_all(self, details: str) -> None:
        for stream in self._streams.values():
            stream.close(grpc.StatusCode.UNAVAILABLE, details)
