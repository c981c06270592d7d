"""cronring.v1.Events: jobs and executions, as their own watches tell of them, and the cluster, in one stream.

docs/decisions/0078: a position is those of both watches, and what was told beyond them.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, NamedTuple

from cronring.controller.api.cluster import MemberNode, status_word
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.messages import execution_message, job_message
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, name
from cronring.controller.api.scope import namespaces
from cronring.controller.api.trails import Trails
from cronring.controller.api.watch import JobEventKind, JobHub
from cronring.controller.api.watch_executions import ExecutionEventKind, ExecutionHub, events_of
from cronring.controller.errors import TooMany
from cronring.controller.ports.reads import ExecutionRow, JobRow, Namespaces, Reads, WatchPosition, within
from cronring.protos.cronring.v1 import events_pb2, events_pb2_grpc
from cronring.protos.cronring.v1.events_pb2 import Event
from cronring.schema.identity import Permission

CLUSTER_S: Final = 0.5  # how often to look whether the cluster has changed
PAGE_MAX: Final = 5_000  # events in one answer; after missing more, it is cheaper to read lists
_JOB_KINDS: Final = {
    JobEventKind.CHANGED: Event.KIND_JOB_CHANGED,
    JobEventKind.REMOVED: Event.KIND_JOB_REMOVED,
}
_EXECUTION_KINDS: Final = {
    ExecutionEventKind.WATCHING: Event.KIND_POSITION,
    ExecutionEventKind.STARTED: Event.KIND_EXECUTION_STARTED,
    ExecutionEventKind.ENDED: Event.KIND_EXECUTION_ENDED,
}


class _Seen(NamedTuple):
    """cronring.controller.api.watch.Selection. Keeps what the caller may view: it is used outside of the call."""

    where: Namespaces

    def sees(self, row: JobRow) -> bool:
        return within(self.where, row.key)

    def matches(self, _: JobRow) -> bool:
        return True

    def has(self, _: ExecutionEventKind, row: ExecutionRow) -> bool:
        return within(self.where, row.job)


class _Position(NamedTuple):
    """A watcher's positions in both feeds. `resync`: the watcher must read lists anew."""

    jobs: WatchPosition
    executions: WatchPosition
    trails: Trails
    resync: bool = False


class EventsService(events_pb2_grpc.EventsServicer):
    """On the hubs that WatchJobs and WatchExecutions share."""

    def __init__(
        self, jobs: JobHub, executions: ExecutionHub, reads: Reads, node: MemberNode, defaults: Defaults
    ) -> None:
        self._jobs = jobs
        self._executions = executions
        self._reads = reads
        self._node = node
        self._defaults = defaults

    async def WatchEvents(self, request: events_pb2.WatchEventsRequest, context: Context) -> AsyncIterator[Event]:
        seen = _asked(request.namespace)
        at = await self._position(request.resume_token)
        while True:
            kind = Event.KIND_RESYNC if at.resync else Event.KIND_POSITION
            yield Event(kind=kind, resume_token=at.trails.text())
            try:
                async with contextlib.aclosing(self._since(seen, at)) as events:
                    async for event in events:
                        yield event
            except InvalidRequest:  # too much has changed since
                at = (await self._now())._replace(resync=True)

    async def PollEvents(
        self, request: events_pb2.PollEventsRequest, context: Context
    ) -> events_pb2.PollEventsResponse:
        seen = _asked(request.namespace)
        at = await self._position(request.resume_token)
        found = [] if at.resync or not request.resume_token else await self._page(seen, at)
        if found is None:
            at, found = (await self._now())._replace(resync=True), []
        # If no token can hold all that runs, the old token is returned, and these events come again.
        token = at.trails.text() or request.resume_token
        if not token or (at.resync and token == request.resume_token):
            raise TooMany("too much runs at once for a token to hold it; watch instead, or read lists")
        return events_pb2.PollEventsResponse(events=found, resume_token=token, resync=at.resync)

    async def _page(self, seen: _Seen, at: _Position) -> list[Event] | None:
        """Events since `at`, which notes them as told. The rest is for the next page. None: there are too many."""
        ((position, rows),) = await self._jobs.feed.changes(at.jobs)
        events = [self._of_job(_kind_of(row), row) for row in rows if seen.sees(row)]
        found = [event for event in events if at.trails.jobs.is_news(event)]
        if len(found) > PAGE_MAX:
            return None
        at.trails.jobs.come_to(self._jobs.feed.encode(position))
        for position, changes in await self._executions.feed.changes(at.executions):
            told = [each for change in changes for each in events_of(change) if seen.has(each.kind, change.row)]
            events = [_of_execution(each.kind, each.row) for each in told]
            found += [event for event in events if at.trails.executions.is_news(event)]
            reached = position
            if len(found) > PAGE_MAX:
                break
        at.trails.executions.come_to(self._executions.feed.encode(reached))
        return found

    async def _position(self, token: str) -> _Position:
        """The position of a token; without one, the present position."""
        if not token:
            return await self._now()
        trails, now = Trails(token), await self._reads.database_now()
        try:
            jobs = self._jobs.resumed(trails.jobs.token, now)
            return _Position(jobs, self._executions.resumed(trails.executions.token, now), trails)
        except InvalidRequest:
            return (await self._now())._replace(resync=True)

    async def _now(self) -> _Position:
        jobs, executions = await self._jobs.feed.position(), await self._executions.feed.position()
        trails = Trails.begun(self._jobs.feed.encode(jobs), self._executions.feed.encode(executions))
        return _Position(jobs, executions, trails)

    async def _since(self, seen: _Seen, at: _Position) -> AsyncGenerator[Event, None]:
        """For ever. Raises InvalidRequest if `at` is too far back; SlowReaderError, StoreUnavailable, StoreError."""
        trails = at.trails
        sources = (self._jobs_since(seen, at), self._executions_since(seen, at), self._cluster())
        async with contextlib.aclosing(_merged(*sources)) as events:
            async for event in events:
                if event.kind == Event.KIND_CLUSTER_CHANGED:
                    yield event
                    continue
                trail = trails.jobs if event.kind in _JOB_KINDS.values() else trails.executions
                is_news = event.kind != Event.KIND_POSITION and trail.is_news(event)
                if event.resume_token:
                    trail.come_to(event.resume_token)
                if is_news:
                    event.resume_token = trails.text()
                    yield event
                elif event.resume_token and (token := trails.text()):  # of an event that was told before
                    yield Event(kind=Event.KIND_POSITION, resume_token=token)

    async def _jobs_since(self, seen: _Seen, at: _Position) -> AsyncGenerator[Event, None]:
        async with contextlib.aclosing(self._jobs.resume(seen, at.jobs)) as events:
            async for event in events:
                assert event.row is not None, "nothing is listed"
                yield self._of_job(event.kind, event.row, event.token)

    async def _executions_since(self, seen: _Seen, at: _Position) -> AsyncGenerator[Event, None]:
        async with contextlib.aclosing(self._executions.resume(seen.has, at.executions)) as events:
            async for event in events:
                if event.row is not None or event.token:
                    yield _of_execution(event.kind, event.row, event.token)

    async def _cluster(self) -> AsyncGenerator[Event, None]:
        told: events_pb2.ClusterState | None = None
        while True:
            state = self._state()
            if state != told:
                told = state
                yield Event(kind=Event.KIND_CLUSTER_CHANGED, cluster=state)
            await asyncio.sleep(CLUSTER_S)

    def _state(self) -> events_pb2.ClusterState:
        ring = self._node.ring
        members = [
            events_pb2.MemberState(
                id=each.member_id,
                status=status_word(each),
                primary_slots=len(ring.primary_slots(each.member_id)),
                backup_slots=len(ring.backup_slots(each.member_id)),
            )
            for each in sorted(self._node.members(), key=lambda member: member.member_id)
        ]
        return events_pb2.ClusterState(members=members, ring_digest=ring.digest)

    def _of_job(self, kind: JobEventKind, row: JobRow, token: str = "") -> Event:
        return Event(kind=_JOB_KINDS[kind], job=job_message(row, self._defaults.jitter), resume_token=token)


def _asked(namespace: str) -> _Seen:
    """Raises Forbidden, InvalidRequest."""
    where = namespaces(Permission.VIEW, name("namespace", namespace))
    return _Seen((namespace,) if namespace else where)


def _kind_of(row: JobRow) -> JobEventKind:
    return JobEventKind.CHANGED if row.removed_at is None else JobEventKind.REMOVED


def _of_execution(kind: ExecutionEventKind, row: ExecutionRow | None, token: str = "") -> Event:
    execution = None if row is None else execution_message(row)
    return Event(kind=_EXECUTION_KINDS[kind], execution=execution, resume_token=token)


async def _merged(*sources: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """Events of all sources, as they come. A source waits until its last event is taken. Raises errors of sources."""
    queue: asyncio.Queue[Event | Exception] = asyncio.Queue(1)

    async def pump(source: AsyncGenerator[Event, None]) -> None:
        try:
            async with contextlib.aclosing(source):
                async for event in source:
                    await queue.put(event)
        except Exception as error:  # it is raised where the events are read
            await queue.put(error)

    tasks = [asyncio.get_running_loop().create_task(pump(source)) for source in sources]
    try:
        while True:
            found = await queue.get()
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
