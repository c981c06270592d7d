"""Hands in the books, in memory and in PostgreSQL: what no statement of ours would write, for the audit to find."""

from typing import Protocol

from cronring.controller.ports.ledger import Ledger
from cronring.controller.store.connect import Connection
from cronring.controller.store.ledger import PostgresLedger
from cronring.controller.store.memory.ledger import MemoryLedger
from cronring.controller.store.memory.rows import SkipRow, StoredExecution
from cronring.controller.store.memory.store import MemoryStore
from cronring.controller.store.pool import Database
from cronring.schema.execution import Outcome, Report, Skipped, SkipReason, Trigger
from tests.conformance.harness import LOST_AFTER_MS, MemoryScene, PostgresScene
from tests.conformance.scene import Scene


class Hands(Protocol):
    @property
    def ledger(self) -> Ledger: ...
    async def open_books(self, job_id: int, at: int, last_tick: int | None) -> None:
        """The job's schedule counts from `at`, and was in force from then on."""
        ...

    async def add_run(
        self, job_id: int, tick: int, trigger: str = "schedule", attempt: int = 1, outcome: str | None = "completed"
    ) -> None:
        """Claimed at its tick, begun a millisecond later, ended at once."""
        ...

    async def begin_at(self, job_id: int, tick: int, at: int, run_at: int) -> None: ...
    async def remove_run(self, job_id: int, tick: int) -> None: ...
    async def add_skip(self, job_id: int, reason: str, first: int, last: int, ticks: int) -> None: ...
    async def remove_skips(self, job_id: int) -> None: ...


class MemoryHands:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.ledger: Ledger = MemoryLedger(store, LOST_AFTER_MS)

    async def open_books(self, job_id: int, at: int, last_tick: int | None) -> None:
        row = self._store.jobs[job_id]
        row.spec, row.opened_at = row.spec._replace(anchor=at), at
        row.last_tick = last_tick
        self._store.spans[job_id][-1] = self._store.spans[job_id][-1]._replace(anchor=at, from_at=at)

    async def add_run(
        self, job_id: int, tick: int, trigger: str = "schedule", attempt: int = 1, outcome: str | None = "completed"
    ) -> None:
        job, number = self._store.jobs[job_id], max(self._store.executions, default=0) + 1
        row = StoredExecution(
            number, job, job.deployment, tick, tick, tick, "c1", "r1", tick, attempt=attempt, trigger=Trigger(trigger)
        )
        if outcome is not None:
            row.outcome = Outcome(outcome)
            row.report = Report(number, job_id, tick, row.outcome, tick + 1_000, tick + 1_000, "", "", "")
        self._store.executions[number] = row

    async def begin_at(self, job_id: int, tick: int, at: int, run_at: int) -> None:
        row = self._run(job_id, tick)
        assert row.report is not None
        row.claimed_at, row.run_at, row.report = at, run_at, row.report._replace(started_at=at, ended_at=at)

    async def remove_run(self, job_id: int, tick: int) -> None:
        del self._store.executions[self._run(job_id, tick).execution_id]

    async def add_skip(self, job_id: int, reason: str, first: int, last: int, ticks: int) -> None:
        self._store.skips.append(SkipRow(job_id, Skipped(SkipReason(reason), first, last, ticks), "c1", last))

    async def remove_skips(self, job_id: int) -> None:
        self._store.skips = [row for row in self._store.skips if row.job_id != job_id]

    def _run(self, job_id: int, tick: int) -> StoredExecution:
        return next(
            row for row in self._store.executions.values() if row.job.job_id == job_id and row.tick == tick
        )  # fmt: skip


class PostgresHands:
    def __init__(self, database: Database, connection: Connection) -> None:
        self.connection = connection
        self.ledger: Ledger = PostgresLedger(database, LOST_AFTER_MS)

    async def open_books(self, job_id: int, at: int, last_tick: int | None) -> None:
        run = self.connection.execute
        await run(
            "UPDATE cron_jobs SET anchor = $2, created_at = $2, last_tick = $3 WHERE id = $1", job_id, at, last_tick
        )
        await run("UPDATE cron_schedules SET anchor = $2, from_at = $2 WHERE job_id = $1", job_id, at)

    async def add_run(
        self, job_id: int, tick: int, trigger: str = "schedule", attempt: int = 1, outcome: str | None = "completed"
    ) -> None:
        ended_at = None if outcome is None else tick + 1_000
        await self.connection.execute(
            "INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, "
            "outcome, controller_id, runner_id, hard_deadline, attempt, trigger) "
            "SELECT id, deployment_id, $2, $2, $2, $3, $3, $4, 'c1', 'r1', $2, $5, $6 FROM cron_jobs WHERE id = $1",
            job_id, tick, ended_at, outcome, attempt, trigger,
        )  # fmt: skip

    async def begin_at(self, job_id: int, tick: int, at: int, run_at: int) -> None:
        # It holds that nothing is claimed before its run_at: somebody has dropped it, and put the row right there.
        await self.connection.execute("ALTER TABLE cron_executions DROP CONSTRAINT cron_executions_sound")
        await self.connection.execute(
            "UPDATE cron_executions SET claimed_at = $3, started_at = $3, ended_at = $3, run_at = $4 "
            "WHERE job_id = $1 AND tick = $2",
            job_id, tick, at, run_at,
        )  # fmt: skip

    async def remove_run(self, job_id: int, tick: int) -> None:
        await self.connection.execute("DELETE FROM cron_executions WHERE job_id = $1 AND tick = $2", job_id, tick)

    async def add_skip(self, job_id: int, reason: str, first: int, last: int, ticks: int) -> None:
        await self.connection.execute(
            "INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id, decided_at) "
            "VALUES ($1, $2, $3, $4, $5, 'c1', $4)",
            job_id, reason, first, last, ticks,
        )  # fmt: skip

    async def remove_skips(self, job_id: int) -> None:
        await self.connection.execute("DELETE FROM cron_skips WHERE job_id = $1", job_id)


def hands_of(scene: Scene) -> Hands:
    if isinstance(scene, MemoryScene):
        return MemoryHands(scene._store)
    assert isinstance(scene, PostgresScene)
    return PostgresHands(scene._store._database, scene._connection)
