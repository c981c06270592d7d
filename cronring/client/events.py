"""Events: what happens to jobs, executions and the cluster, in one stream that goes on by itself."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.errors import SLOW, Refused
from cronring.client.lasting import AWAY_PAUSE_S, lasting
from cronring.protos.cronring.v1 import events_pb2
from cronring.protos.cronring.v1.events_pb2_grpc import EventsStub


class EventKind(StrEnum):
    JOB_CHANGED = "job_changed"
    JOB_REMOVED = "job_removed"
    EXECUTION_STARTED = "execution_started"
    EXECUTION_ENDED = "execution_ended"
    CLUSTER_CHANGED = "cluster_changed"
    RESYNC = "resync"


@dataclass(frozen=True, slots=True)
class MemberState:
    """A controller. `status`: alive, suspect, draining, dead or left."""

    id: str
    status: str
    primary_slots: int
    backup_slots: int


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the controller that answers thinks of all of them. `ring_digest`: equal where controllers agree."""

    members: tuple[MemberState, ...]
    ring_digest: str


@dataclass(frozen=True, slots=True)
class Event:
    """One of `job`, `execution` (without its output) and `cluster` is there, by the kind; with RESYNC none is.

    RESYNC: what was before may be left out, from here on nothing is. Read anew what you know, by lists.
    `position`: all up to there has been told. Given back as `after`, it goes on from there, for a day.
    """

    kind: EventKind
    position: str
    job: model.Job | None = None
    execution: model.Execution | None = None
    cluster: ClusterState | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """What has happened since a position, in no order between jobs and executions. `resync`: as Event's."""

    events: tuple[Event, ...]
    position: str
    resync: bool


_KINDS: Final[Mapping[int, EventKind]] = {
    events_pb2.Event.KIND_JOB_CHANGED: EventKind.JOB_CHANGED,
    events_pb2.Event.KIND_JOB_REMOVED: EventKind.JOB_REMOVED,
    events_pb2.Event.KIND_EXECUTION_STARTED: EventKind.EXECUTION_STARTED,
    events_pb2.Event.KIND_EXECUTION_ENDED: EventKind.EXECUTION_ENDED,
    events_pb2.Event.KIND_CLUSTER_CHANGED: EventKind.CLUSTER_CHANGED,
    events_pb2.Event.KIND_RESYNC: EventKind.RESYNC,
}
_OF_JOBS: Final = frozenset({EventKind.JOB_CHANGED, EventKind.JOB_REMOVED})
_OF_EXECUTIONS: Final = frozenset({EventKind.EXECUTION_STARTED, EventKind.EXECUTION_ENDED})


class EventCalls:
    """Watch, and poll. `namespace`: only of its jobs and executions; "": of all that the caller may view."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def watch(self, after: str = "", namespace: str = "") -> AsyncIterator[Event]:
        """All that happens from now on, or after a position, for ever.

        When the controller that served it goes, or drops this for reading too slowly, another goes on: nothing is left
        out, and nothing is told twice. A job that changed twice meanwhile may be told once, as it is now.
        Raises Unreachable or Unavailable once none has answered for a minute.
        """
        seen = _Seen(after)

        def request() -> events_pb2.WatchEventsRequest:
            return events_pb2.WatchEventsRequest(resume_token=seen.position, namespace=namespace)

        while True:
            try:
                watched = lasting(self._failover, lambda channel: EventsStub(channel).WatchEvents(request()))
                async for message in watched:
                    event = None if message is None else seen.told(message)
                    if event is not None:
                        yield event
            except Refused as error:
                if error.code != SLOW or not seen.position:
                    raise
                await asyncio.sleep(AWAY_PAUSE_S)

    async def poll(self, after: str = "", namespace: str = "") -> EventPage:
        """What has happened since a position. Without one there are no events: it only gives one.

        Raises PermissionDenied, Invalid.
        """
        request = events_pb2.PollEventsRequest(resume_token=after, namespace=namespace)
        timeout_s = self._failover.timeout_s
        answer = await self._failover.unary(lambda channel: EventsStub(channel).PollEvents(request, timeout=timeout_s))
        events = [_event(message, answer.resume_token) for message in answer.events]
        return EventPage(tuple(each for each in events if each is not None), answer.resume_token, answer.resync)


class _Seen:
    """What was told since `position`, where events have none: after a change of controllers it comes again."""

    def __init__(self, position: str) -> None:
        self.position = position
        self._jobs: dict[str, events_pb2.Event] = {}
        self._executions: set[tuple[int, int]] = set()
        self._cluster: events_pb2.ClusterState | None = None

    def told(self, message: events_pb2.Event) -> Event | None:
        """None: it is no news."""
        is_new = self._is_new(message)
        if message.resume_token:  # that is an exact one
            self.position = message.resume_token
            self._jobs.clear()
            self._executions.clear()
        return _event(message, self.position) if is_new else None

    def _is_new(self, message: events_pb2.Event) -> bool:
        kind = _KINDS.get(message.kind)
        if kind in _OF_JOBS:
            before = self._jobs.get(message.job.key)
            self._jobs[message.job.key] = message
            return before is None or (before.kind, before.job) != (message.kind, message.job)
        if kind in _OF_EXECUTIONS:
            event = message.kind, message.execution.id
            is_new = event not in self._executions
            self._executions.add(event)
            return is_new
        if kind is EventKind.CLUSTER_CHANGED:
            is_new = message.cluster != self._cluster
            self._cluster = message.cluster
            return is_new
        return kind is not None


def _event(message: events_pb2.Event, position: str) -> Event | None:
    """None for a kind that this version doesn't know, and for what has only a position."""
    kind = _KINDS.get(message.kind)
    if kind is None:
        return None
    return Event(
        kind,
        position,
        convert.job(message.job) if message.HasField("job") else None,
        convert.execution(message.execution) if message.HasField("execution") else None,
        _cluster(message.cluster) if message.HasField("cluster") else None,
    )


def _cluster(message: events_pb2.ClusterState) -> ClusterState:
    members = tuple(
        MemberState(each.id, each.status, each.primary_slots, each.backup_slots) for each in message.members
    )
    return ClusterState(members, message.ring_digest)
