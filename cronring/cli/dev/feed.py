"""Asks whichever controller is alive, again and again, and tells what changed. Everything comes over gRPC."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from cronring.cli.dev.happenings import (
    Happening,
    Heartbeat,
    MemberChanged,
    OutputLine,
    RingHealed,
    RunEnded,
    RunStarted,
    ServedBy,
    ViewLost,
)
from cronring.cli.dev.state import DevState
from cronring.client import AsyncClient, ClientError
from cronring.client.model import Cluster, Execution
from cronring.schema.keys import SLOTS

CLUSTER_S: Final = 0.25
EXECUTIONS_S: Final = 0.25
JOBS_S: Final = 0.5
BOOKS_S: Final = 2.0
# A question that takes long (thousands of jobs) is asked less often: at most this share of the time goes to it.
BUSY_SHARE: Final = 0.2
# Ids are given before they are committed, so a listing may lack one that is below others; it is looked for this long.
OVERLAP_S: Final = 5.0
PAGE_OF_EXECUTIONS: Final = 2000
STILL_RUNNING_ASKED: Final = 20
# Of a burst, only the outputs of some are asked for, and of each its last lines.
OUTPUTS_ASKED: Final = 5
LINES_OF_OUTPUT: Final = 3


class DevFeed:
    """Keeps `state` fresh. `tell` is called for everything worth a line."""

    def __init__(self, client: AsyncClient, state: DevState, tell: Callable[[Happening], None]) -> None:
        self._client = client
        self._state = state
        self._tell = tell
        self._since: datetime | None = None
        self._died_ns: int | None = None
        self._told_started: set[int] = set()
        self._told_ended: set[int] = set()
        self._ended: list[Execution] = []  # whose output is still to be asked for
        self._newest: deque[tuple[int, int]] = deque([(time.monotonic_ns(), 0)])

    async def begin(self) -> None:
        """The books of this `cronring dev` begin now; what a kept database holds from before is no news."""
        await self.ask_cluster()
        self._since = self._state.now()
        before = await self._client.executions.list(limit=1)
        self._newest = deque([(time.monotonic_ns(), before[0].id if before else 0)])

    @property
    def since(self) -> datetime | None:
        """When the books began, in PostgreSQL's time."""
        return self._since

    def controller_died(self) -> None:
        """A controller's process has ended: watch for the ring to heal."""
        self._died_ns = time.monotonic_ns()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(self.ask_cluster, CLUSTER_S))
            tasks.create_task(self._repeat(self.ask_jobs, JOBS_S))
            tasks.create_task(self._repeat(self.ask_executions, EXECUTIONS_S))
            tasks.create_task(self._repeat(self.ask_books, BOOKS_S))

    async def _repeat(self, ask: Callable[[], Awaitable[None]], period_s: float) -> None:
        while True:
            before = time.monotonic()
            try:
                await ask()
                self._state.answering = True
            except ClientError as error:
                if self._state.answering:
                    self._tell(ViewLost(str(error).splitlines()[0]))
                self._state.answering = False
            took = time.monotonic() - before
            await asyncio.sleep(max(period_s, took / BUSY_SHARE))

    async def ask_cluster(self) -> None:
        before = self._state.cluster
        cluster = await self._client.cluster.get()
        self._state.learn(cluster)
        self._tell_members(before, cluster)
        if before is not None and before.answered_by != cluster.answered_by:
            self._tell(ServedBy(self._state.name_of(cluster.answered_by)))
        self._tell_healed(cluster)

    def _tell_members(self, before: Cluster | None, cluster: Cluster) -> None:
        known = {member.id: member.status for member in before.members} if before is not None else {}
        for member in cluster.members:
            status = known.pop(member.id, "")
            if status != member.status:
                self._tell(MemberChanged(self._state.name_of(member.id), status, member.status))
        for gone, status in known.items():
            if status not in {"dead", "left"}:
                self._tell(MemberChanged(self._state.name_of(gone), status, "gone"))

    def _tell_healed(self, cluster: Cluster) -> None:
        if self._died_ns is None:
            return
        dead = {child.grpc_address for child in self._state.controllers if not child.alive}
        owned = [member.primary_slots for member in cluster.members if member.grpc_address not in dead]
        if sum(owned) == SLOTS:
            after_s = (time.monotonic_ns() - self._died_ns) / 1e9
            self._died_ns = None
            self._tell(RingHealed(after_s, sum(1 for slots in owned if slots)))

    async def ask_jobs(self) -> None:
        self._state.jobs = await self._client.jobs.list()

    async def ask_executions(self) -> None:
        """New ones, those of the last seconds again, and whatever still runs of the older ones."""
        now_ns = time.monotonic_ns()
        while len(self._newest) > 1 and now_ns - self._newest[1][0] > OVERLAP_S * 1e9:
            self._newest.popleft()
        floor = self._newest[0][1]
        listed = await self._client.executions.list(after_id=floor, limit=PAGE_OF_EXECUTIONS)
        if listed:
            self._newest.append((now_ns, max(self._newest[-1][1], listed[0].id)))
        for execution in reversed(listed):
            self._take(execution)
        running = [each.id for each in self._state.executions.values() if each.outcome is None and each.id <= floor]
        for execution_id in sorted(running)[:STILL_RUNNING_ASKED]:
            self._take(await self._client.executions.get(execution_id))
        await self._ask_outputs()
        self._told_started = {each for each in self._told_started if each > floor}
        self._told_ended = {each for each in self._told_ended if each > floor}

    def _take(self, execution: Execution) -> None:
        """Told once when it is seen first, and once when it has ended."""
        names = self._state.name_of(execution.controller), self._state.name_of(execution.runner)
        if execution.outcome is None:
            if execution.id not in self._told_started and execution.id not in self._state.executions:
                self._told_started.add(execution.id)
                self._tell(RunStarted(execution, *names))
        elif execution.id not in self._told_ended and self._is_news(execution):
            self._told_ended.add(execution.id)
            self._state.worst_lateness_ms = max(self._state.worst_lateness_ms, execution.lateness_ms or 0.0)
            self._tell(RunEnded(execution, *names))
            self._ended.append(execution)
        self._state.keep(execution)

    async def _ask_outputs(self) -> None:
        """The last lines of what the latest ones printed, and why they failed."""
        ended, self._ended = self._ended, []
        asked = {each.id for each in ended[-OUTPUTS_ASKED:]}
        for execution in ended:
            lines: list[str] = []
            if execution.id in asked:
                found = await self._client.executions.get(execution.id)
                lines = [line for line in found.output.splitlines() if line.strip()][-LINES_OF_OUTPUT:]
            told = [OutputLine(execution.id, execution.job, line, is_error=False) for line in lines]
            if execution.error_type or execution.error_message:
                why = f"{execution.error_type}: {execution.error_message}".strip(": ")
                told.append(OutputLine(execution.id, execution.job, why.partition("\n")[0], is_error=True))
            for each in told:
                self._state.printed.append(each)
                self._tell(each)

    def _is_news(self, execution: Execution) -> bool:
        known = self._state.executions.get(execution.id)
        return known is None or known.outcome is None

    async def ask_books(self) -> None:
        if self._since is None:
            return
        self._state.books = await self._client.ledger.audit(since=self._since)
        alive = sum(1 for child in self._state.controllers if child.alive)
        self._tell(Heartbeat(self._state.books, self._state.worst_lateness_ms, alive))
