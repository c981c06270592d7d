"""What the conformance suite may do beside calling a store: set the scene, and look into the books."""

import json

import asyncpg

from cronring.controller.core.ledger.books import Span
from cronring.controller.core.model import (
    Activation,
    ActivationRequest,
    ActivationResult,
    ClaimRequest,
    ClaimResult,
    EndRequest,
    EndResult,
    Execution,
    Job,
    LeaseRenewal,
    RunnerInfo,
)
from cronring.controller.core.node.ending import request_of
from cronring.controller.core.orders.states import State
from cronring.controller.ports.defaults import DefaultsStore
from cronring.controller.ports.history import Lives
from cronring.controller.ports.interval_jobs import IntervalJobs
from cronring.controller.ports.limits import Limits
from cronring.controller.ports.sets import Sets
from cronring.controller.ports.store import Control, ControllerInfo, ExecutionControl, Store
from cronring.controller.ports.templates import Templates
from cronring.controller.ports.verb_calls import VerbCalls
from cronring.controller.store.connect import Connection
from cronring.controller.store.control import PostgresControl
from cronring.controller.store.defaults import PostgresDefaults
from cronring.controller.store.execution_control import PostgresExecutionControl
from cronring.controller.store.history import PostgresLives
from cronring.controller.store.interval_jobs import PostgresIntervalJobs
from cronring.controller.store.limits import PostgresLimits
from cronring.controller.store.memory.orders import standing
from cronring.controller.store.memory.store import MemoryStore
from cronring.controller.store.pool import Database
from cronring.controller.store.sets import PostgresSets
from cronring.controller.store.store import PostgresStore
from cronring.controller.store.templates import PostgresTemplates
from cronring.controller.store.verb_calls import PostgresVerbCalls
from cronring.schema.execution import Outcome, Report, Skipped
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.booked import (
    BookedAction,
    BookedActivation,
    BookedChange,
    BookedExecution,
    BookedJob,
    BookedSkip,
    changed,
)
from tests.conformance.scene import Scene

SECOND = 1_000_000
LEASE_MS = 5_000
CONSOLE = "https://cron.example"  # where links lead
LOST_AFTER_MS = 8_750
TIMEOUT_MS = 300_000
GRACE_MS = 30_000
NO_POLICY = Policy()
SLOTS = tuple(range(4096))


class MemoryScene:
    """Time passes by a millisecond whenever somebody looks."""

    def __init__(self) -> None:
        self._clock = 1_790_000_000 * SECOND
        self._store = MemoryStore(self._tick)
        self.defaults: DefaultsStore = self._store

    def _tick(self) -> int:
        self._clock += 1_000
        return self._clock

    @property
    def store(self) -> Store:
        return self._store

    @property
    def control(self) -> Control:
        return self._store

    @property
    def execution_control(self) -> ExecutionControl:
        return self._store

    @property
    def templates(self) -> Templates:
        return self._store

    @property
    def sets(self) -> Sets:
        return self._store

    @property
    def limits(self) -> Limits:
        return self._store

    @property
    def interval_jobs(self) -> IntervalJobs:
        return self._store

    @property
    def lives(self) -> Lives:
        return self._store

    @property
    def verb_calls(self) -> VerbCalls:
        return self._store

    async def now(self) -> int:
        return self._tick()

    async def set_next_tick(self, job_id: int, tick: int | None) -> None:
        row = self._store.jobs[job_id]
        row.next_tick = row.next_run_at = tick

    async def set_anchor(self, job_id: int, anchor: int) -> None:
        row = self._store.jobs[job_id]
        row.spec = row.spec._replace(anchor=anchor)

    async def set_schedule(self, job_id: int, schedule: str) -> None:
        row = self._store.jobs[job_id]
        row.spec = row.spec._replace(schedule=schedule)
        self._store.spans[job_id][-1] = self._store.spans[job_id][-1]._replace(schedule=schedule)

    async def set_followed(self, job_id: int, key: str) -> None:
        self._store.followers.set(job_id, key)

    async def set_paused_tick(self, job_id: int, tick: int) -> None:
        self._store.jobs[job_id].paused_tick = tick

    async def set_orphaned_tick(self, job_id: int, tick: int) -> None:
        self._store.jobs[job_id].orphaned_tick = tick

    async def set_pause(self, job_id: int, until: int, last_tick: int) -> None:
        row = self._store.jobs[job_id]
        row.paused_at, row.paused_until, row.last_tick = self._tick(), until, last_tick

    async def expire_lease(self, controller_id: str, seconds_ago: float) -> None:
        self._store.controllers[controller_id].lease_expires_at = self._tick() - int(seconds_ago * SECOND)

    async def last_saw_runner(self, runner_id: str, seconds_ago: float) -> None:
        self._store.runners[runner_id].last_seen_at = self._tick() - int(seconds_ago * SECOND)

    async def pass_hard_deadline(self, execution_id: int) -> None:
        self._store.executions[execution_id].hard_deadline = self._tick()

    async def hard_deadline(self, execution_id: int) -> int:
        return self._store.executions[execution_id].hard_deadline

    async def executions(self) -> list[BookedExecution]:
        return [
            BookedExecution(
                row.execution_id, row.job.job_id, row.tick, row.claimed_at, row.controller_id, row.outcome,
                row.attempt, row.trigger, row.missed, row.holds_job, row.retry_at,
                row.number,
            )
            for row in self._store.executions.values()
        ]  # fmt: skip

    async def job(self, job_id: int) -> BookedJob:
        row = self._store.jobs[job_id]
        return BookedJob(
            row.executing, row.running, row.next_tick, row.next_run_at, row.last_tick, row.last_success, row.failures,
            row.revision, row.spec.timing[1], row.paused, row.paused_tick, row.paused_by or "", row.paused_note or "",
        )  # fmt: skip

    async def spans(self, job_id: int) -> list[Span]:
        return self._store.spans[job_id]

    async def activations(self) -> list[BookedActivation]:
        return [
            BookedActivation(
                row.activation_id, row.job.job_id, row.trigger, row.tick, row.until_tick, row.attempt, row.run_at,
                row.payload, row.beside,
            )
            for row in self._store.activations.values()
        ]  # fmt: skip

    async def skips(self) -> list[BookedSkip]:
        return [BookedSkip(row.job_id, *row.skipped, row.controller_id) for row in self._store.skips]

    async def state(self, job_id: int) -> str:
        row = self._store.jobs[job_id]
        found = standing(row).state
        return State.CANCELLED if row.removed else found

    async def actions(self) -> list[BookedAction]:
        return [BookedAction(row.action, row.actor, row.note, row.details) for row in self._store.actions]

    async def changes(self) -> list[BookedChange]:
        return [
            changed(
                row.principal, row.method, row.origin, row.namespace, row.subject, row.before, row.after, row.remark
            )
            for row in self._store.audit_log
        ]

    async def controllers(self) -> list[str]:
        return sorted(self._store.controllers)

    async def runners(self) -> dict[str, list[int]]:
        return {key: [row.info.sync_places, row.info.async_places] for key, row in self._store.runners.items()}


class PostgresScene:
    def __init__(self, database: Database, connection: Connection) -> None:
        self._store = PostgresStore(database)
        self._control = PostgresControl(database)
        self._execution_control = PostgresExecutionControl(database)
        self._templates = PostgresTemplates(database)
        self._sets = PostgresSets(database)
        self._limits = PostgresLimits(database)
        self._interval_jobs = PostgresIntervalJobs(database, LEASE_MS)
        self._verb_calls = PostgresVerbCalls(database)
        self.defaults: DefaultsStore = PostgresDefaults(database)
        self._lives = PostgresLives(database)
        self._connection = connection

    @property
    def store(self) -> Store:
        return self._store

    @property
    def control(self) -> Control:
        return self._control

    @property
    def execution_control(self) -> ExecutionControl:
        return self._execution_control

    @property
    def templates(self) -> Templates:
        return self._templates

    @property
    def sets(self) -> Sets:
        return self._sets

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def interval_jobs(self) -> IntervalJobs:
        return self._interval_jobs

    @property
    def lives(self) -> Lives:
        return self._lives

    @property
    def verb_calls(self) -> VerbCalls:
        return self._verb_calls

    async def now(self) -> int:
        now: int = await self._connection.fetchval("SELECT clock_timestamp()")
        return now

    async def set_next_tick(self, job_id: int, tick: int | None) -> None:
        await self._run("UPDATE cron_jobs SET next_tick = $2, next_execution = $2 WHERE id = $1", job_id, tick)

    async def set_anchor(self, job_id: int, anchor: int) -> None:
        await self._run("UPDATE cron_jobs SET anchor = $2 WHERE id = $1", job_id, anchor)

    async def set_schedule(self, job_id: int, schedule: str) -> None:
        await self._connection.execute("UPDATE cron_jobs SET schedule = $2 WHERE id = $1", job_id, schedule)
        await self._connection.execute(
            "UPDATE cron_schedules SET schedule = $2 WHERE job_id = $1 AND until_at IS NULL", job_id, schedule
        )

    async def set_followed(self, job_id: int, key: str) -> None:
        await self._connection.execute("INSERT INTO cron_followers (job_id, after) VALUES ($1, $2)", job_id, key)

    async def set_paused_tick(self, job_id: int, tick: int) -> None:
        await self._run("UPDATE cron_jobs SET paused_tick = $2 WHERE id = $1", job_id, tick)

    async def set_orphaned_tick(self, job_id: int, tick: int) -> None:
        await self._run("UPDATE cron_jobs SET orphaned_tick = $2 WHERE id = $1", job_id, tick)

    async def set_pause(self, job_id: int, until: int, last_tick: int) -> None:
        statement = "UPDATE cron_jobs SET paused_at = now(), paused_until = $2, last_tick = $3 WHERE id = $1"
        await self._run(statement, job_id, until, last_tick)

    async def expire_lease(self, controller_id: str, seconds_ago: float) -> None:
        at = await self.now() - int(seconds_ago * SECOND)
        await self._run("UPDATE controllers SET lease_expires_at = $2 WHERE id = $1", controller_id, at)

    async def last_saw_runner(self, runner_id: str, seconds_ago: float) -> None:
        at = await self.now() - int(seconds_ago * SECOND)
        await self._run("UPDATE runners SET last_seen_at = $2 WHERE id = $1", runner_id, at)

    async def pass_hard_deadline(self, execution_id: int) -> None:
        await self._run("UPDATE cron_executions SET hard_deadline = now() WHERE id = $1", execution_id)

    async def hard_deadline(self, execution_id: int) -> int:
        statement = "SELECT hard_deadline FROM cron_executions WHERE id = $1"
        deadline: int = (await self._fetch(statement, execution_id))[0][0]
        return deadline

    async def executions(self) -> list[BookedExecution]:
        records = await self._fetch(
            "SELECT id, job_id, tick, claimed_at, controller_id, outcome, attempt, trigger, missed, holds_job, "
            "retry_at, number FROM cron_executions ORDER BY id"
        )
        return list(map(BookedExecution._make, records))

    async def job(self, job_id: int) -> BookedJob:
        (record,) = await self._fetch(
            "SELECT state = 'executing', running, next_tick, next_execution, last_tick, last_success, failures, "
            "revision, anchor, cron_paused(paused_at, paused_until), paused_tick, coalesce(paused_by, ''), "
            "coalesce(paused_note, '') FROM cron_jobs WHERE id = $1",
            job_id,
        )
        return BookedJob._make(record)

    async def spans(self, job_id: int) -> list[Span]:
        records = await self._fetch(
            "SELECT schedule, anchor, from_at, until_at, policy FROM cron_schedules WHERE job_id = $1 "
            "ORDER BY revision",
            job_id,
        )
        return list(map(Span._make, records))

    async def activations(self) -> list[BookedActivation]:
        records = await self._fetch(
            "SELECT id, job_id, trigger, tick, until_tick, attempt, run_at, payload, beside FROM cron_activations "
            "ORDER BY id"
        )
        return list(map(BookedActivation._make, records))

    async def skips(self) -> list[BookedSkip]:
        records = await self._fetch(
            "SELECT job_id, reason, first_tick, last_tick, ticks, controller_id FROM cron_skips ORDER BY id"
        )
        return list(map(BookedSkip._make, records))

    async def state(self, job_id: int) -> str:
        state: str = (await self._fetch("SELECT status FROM cron_job_details WHERE id = $1", job_id))[0][0]
        return state

    async def actions(self) -> list[BookedAction]:
        records = await self._fetch("SELECT action, actor, note, details::text FROM cron_actions ORDER BY id")
        return [BookedAction(action, actor, note, json.loads(details)) for action, actor, note, details in records]

    async def changes(self) -> list[BookedChange]:
        records = await self._fetch(
            "SELECT principal, method, origin, namespace, subject, before, after, remark FROM cron_audit_log "
            "WHERE refused IS NULL ORDER BY id"
        )
        return [changed(*record) for record in records]

    async def controllers(self) -> list[str]:
        return [record[0] for record in await self._fetch("SELECT id FROM controllers ORDER BY id")]

    async def runners(self) -> dict[str, list[int]]:
        return {row[0]: row[1] for row in await self._fetch("SELECT id, ARRAY[sync_places, async_places] FROM runners")}

    async def _run(self, statement: str, *arguments: object) -> None:
        status = await self._connection.execute(statement, *arguments)
        assert status == "UPDATE 1", f"{statement}: {status}"

    async def _fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        records: list[asyncpg.Record] = await self._connection.fetch(statement, *arguments)
        return records


class World:
    """Shorthand for stories: controllers, runners, a module whose jobs are due when the story says so."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.store = scene.store
        self.control = scene.control
        self.execution_control = scene.execution_control
        self.templates = scene.templates
        self.sets = scene.sets
        self.limits = scene.limits
        self.defaults = scene.defaults
        self.interval_jobs = scene.interval_jobs
        self.verb_calls = scene.verb_calls
        self.is_real = isinstance(scene, PostgresScene)  # time passes by itself

    async def controller(self, controller_id: str, runner_ids: tuple[str, ...] = ()) -> str:
        """A controller with a valid lease."""
        await self.renewed(controller_id, runner_ids)
        return controller_id

    async def renewed(self, controller_id: str, runner_ids: tuple[str, ...] = ()) -> LeaseRenewal:
        """What a controller hears that has just renewed its lease."""
        info = ControllerInfo(controller_id, "127.0.0.1:1", "127.0.0.1:2", 7, "0.1.0")
        return await self.store.renew_lease(info, False, LEASE_MS, runner_ids, LOST_AFTER_MS)

    async def runner(self, runner_id: str, *deployments: str) -> str:
        await self.store.register_runner(RunnerInfo(runner_id, "host", 8, "0.1.0", deployments))
        return runner_id

    async def jobs(
        self, *names: str, schedule: str = "every 1h", on_disconnect: str = "stop", policy: Policy = NO_POLICY
    ) -> list[Job]:
        """Jobs whose next tick is far off, in order of their ids."""
        verbs = tuple(Verb(name, schedule=schedule, on_disconnect=on_disconnect, policy=policy) for name in names)
        deployed = await self.store.create_deployment(Module("billing", verbs), "a" * 64, 1, TIMEOUT_MS, True)
        return sorted(deployed.jobs)

    async def due(self, job: Job, seconds_ago: int = 1) -> Job:
        """The job with a next tick that came due so many seconds ago."""
        now = await self.scene.now()
        tick = now - now % SECOND - seconds_ago * SECOND
        await self.scene.set_next_tick(job.job_id, tick)
        return job._replace(next_tick=tick, next_run_at=tick)

    async def due_jobs(self, *names: str, policy: Policy = NO_POLICY, seconds_ago: int = 1) -> list[Job]:
        return [await self.due(job, seconds_ago) for job in await self.jobs(*names, policy=policy)]

    async def claim(self, controller_id: str, *jobs: Job, runner_id: str = "r1") -> list[ClaimResult]:
        requests = [claim_of(job, runner_id) for job in jobs]
        return (await self.store.start_cron_jobs(controller_id, requests, GRACE_MS))[1]

    async def running(
        self, controller_id: str, *names: str, runner_id: str = "r1", policy: Policy = NO_POLICY, seconds_ago: int = 1
    ) -> list[Execution]:
        """Executions of new jobs, claimed by a controller with a lease, for a runner that is registered."""
        await self.controller(controller_id)
        await self.runner(runner_id)
        jobs = await self.due_jobs(*names, policy=policy, seconds_ago=seconds_ago)
        claimed = await self.claim(controller_id, *jobs, runner_id=runner_id)
        assert all(result.updated for result in claimed)
        ids = tuple(result.execution_id for result in claimed if result.execution_id is not None)
        return await self.store.get_unfinished(ids)

    async def claim_next(self, controller_id: str, job: Job, gap: int = 60 * SECOND) -> ClaimResult:
        """Of a job of which several may run: claimed as due, with its next tick `gap` microseconds later."""
        assert job.next_tick is not None
        following = job.next_tick + gap
        request = claim_of(job)._replace(next_tick=following, next_run_at=following)
        return (await self.store.start_cron_jobs(controller_id, [request], GRACE_MS))[1][0]

    async def activate(
        self, controller_id: str, *waiting: Activation, next_tick: int | None = None
    ) -> list[ActivationResult]:
        requests = [
            ActivationRequest(each.activation_id, each.job.job_id, each.tick, "r1", each.job.deployment, next_tick)
            for each in waiting
        ]
        return (await self.store.start_activations(controller_id, requests, GRACE_MS))[1]

    async def waiting(self) -> list[Activation]:
        """What GetActivations has, in order of ids."""
        return sorted((await self.store.get_activations(SLOTS, 86_400_000))[1])

    async def end(self, execution: Execution, outcome: Outcome = Outcome.COMPLETED, **changes: object) -> EndResult:
        """As a controller does: by the row as it stands, should the job have changed since the claim."""
        request = end_of(execution, outcome)._replace(**changes)  # type: ignore[arg-type]  # its fields' values
        (result,) = await self.store.end_cron_jobs("c1", [request])
        if not result.stale:
            return result
        (known,) = await self.store.get_unfinished((execution.execution_id,))
        anew = request_of(known, request.report, await self.scene.now())
        anew = anew._replace(retry_at=anew.retry_at if request.retry_at is None else request.retry_at)
        return (await self.store.end_cron_jobs("c1", [anew]))[0]

    async def job(self, job_id: int) -> Job:
        """The job as GetCronJobs has it. KeyError when it has no next tick."""
        _, jobs = await self.store.get_cron_jobs(SLOTS, 10 * 366 * 86_400_000)
        return {job.job_id: job for job in jobs}[job_id]


def claim_of(job: Job, runner_id: str = "r1", skipped: tuple[Skipped, ...] = ()) -> ClaimRequest:
    assert job.next_tick is not None
    assert job.next_run_at is not None
    return ClaimRequest(
        job.job_id, job.next_tick, job.next_tick, job.next_run_at, runner_id, job.deployment, skipped,
        revision=job.revision,
    )  # fmt: skip


def end_of(
    execution: Execution,
    outcome: Outcome = Outcome.COMPLETED,
    skipped: Skipped | None = None,
    next_after: int = 3600 * SECOND,
    output: str = "done",
) -> EndRequest:
    """The end of an execution, with the next tick `next_after` microseconds past its own."""
    report = Report(
        execution.execution_id, execution.job.job_id, execution.claimed_at, outcome,
        execution.claimed_at, execution.claimed_at + 10, "", "", output,
    )  # fmt: skip
    next_tick = execution.tick + next_after
    return EndRequest(
        report, execution.tick, execution.job.revision, next_tick, next_tick, () if skipped is None else (skipped,)
    )
