"""Runs beside the schedule: what waits, and claims of it."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import asyncpg

from cronring.controller.core.model import Activation, ActivationRequest, ActivationResult, Execution
from cronring.controller.store.messages import add_messages, in_halves, refuse_messages
from cronring.controller.store.placing import (
    Fetch,
    WantedPlace,
    find_places,
    lock_places,
    placed,
    take_places,
    who_waits,
)
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.rows import activation_of, execution_of
from cronring.sql.parameters import (
    AdvanceBackfills,
    DropActivations,
    GetActivations,
    GetFollowers,
    GetNow,
    GetUnfinished,
    ListActivations,
    StartActivations,
)

_NOT_TO_RUN = ("superseded", "over", "passed")


class ActivationStatements:
    """The part of PostgresStore that is about activations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_activations(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Activation]]:
        """(PostgreSQL's now, waiting activations of the slots with run_at before now + window)."""
        return _fetched(await self._database.fetch(GetActivations(slots=slots, window_ms=window_ms)))

    async def get_followers(self, activation_ids: tuple[int, ...]) -> tuple[int, list[Activation]]:
        """(PostgreSQL's now, those of these activations that are there, without those of paused jobs)."""
        return _fetched(await self._database.fetch(GetFollowers(activation_ids=activation_ids)))

    async def start_activations(
        self, controller_id: str, requests: list[ActivationRequest], hard_grace_ms: int
    ) -> tuple[int, list[ActivationResult]]:
        """Claim what is due and whose job may run, under a valid lease. Every request is answered, in order."""
        if not requests:
            return (await self._database.fetch(GetNow()))[0][0], []
        activating = _Activating(controller_id, hard_grace_ms)
        results = await activating.make(self._database, requests)
        return activating.database_now, results


class _Activating:
    """Claims of activations: most are one statement, and few need a transaction."""

    def __init__(self, controller_id: str, hard_grace_ms: int) -> None:
        self._controller_id = controller_id
        self._hard_grace_ms = hard_grace_ms
        self.database_now = 0
        self._records: dict[int, asyncpg.Record] = {}  # by activation
        self._moved: dict[int, int | None] = {}  # by activation that is not to run: its next tick; None: it is gone
        self._full: dict[int, int] = {}

    async def make(self, database: Database, requests: list[ActivationRequest]) -> list[ActivationResult]:
        """Their results, in order."""
        run = [request for request in requests if request.runner_id]
        await self._start(database.fetch, run)
        more = [request for request in run if _has_more(self._records[request.activation_id])]
        if more:
            async with database.transaction("claiming activations") as transaction:
                await self._start_whole(transaction, more)
        queued = [request for request in requests if not request.runner_id]
        await in_halves(queued, partial(self._enqueue, database), partial(self._refuse, database))
        started = [record["execution_id"] for record in self._records.values() if record["execution_id"] is not None]
        executions: dict[int, Execution] = {}
        if started:
            records = await database.fetch(GetUnfinished(execution_ids=started, controller_id=None))
            executions = {execution.execution_id: execution for execution in map(execution_of, records)}
        return [self._result(request.activation_id, executions) for request in requests]

    async def _enqueue(self, database: Database, requests: Sequence[ActivationRequest]) -> None:
        async with database.transaction("enqueueing messages") as transaction:
            await add_messages(transaction.fetch, await self._start_whole(transaction, list(requests)))

    async def _refuse(self, database: Database, request: ActivationRequest, error: str) -> None:
        async with database.transaction("claiming an activation without its message") as transaction:
            await refuse_messages(transaction.fetch, await self._start_whole(transaction, [request]), error)

    async def _start_whole(self, transaction: Transaction, requests: list[ActivationRequest]) -> list[tuple[int, int]]:
        """(execution id, tick) of what was won."""
        await self._start(transaction.fetch, requests)
        await self._move(transaction.fetch, requests)
        await self._start_under_limits(transaction.fetch, requests)
        found = [(self._records[each.activation_id]["execution_id"], each.tick) for each in requests]
        return [(execution_id, tick) for execution_id, tick in found if execution_id is not None]

    async def _start(
        self, fetch: Fetch, requests: list[ActivationRequest], places: dict[int, WantedPlace] | None = None
    ) -> None:
        """`places`: by activation, what it needs a place of. None: activations under a limit are not started."""
        if not requests:
            return
        records = await fetch(
            StartActivations(
                controller_id=self._controller_id,
                activation_ids=[request.activation_id for request in requests],
                expected_ticks=[request.tick for request in requests],
                runner_ids=[request.runner_id for request in requests],
                deployments=[request.deployment for request in requests],
                next_ticks=[request.next_tick for request in requests],
                hard_grace_ms=self._hard_grace_ms if requests[0].runner_id else 0,
                placed=places is not None,
                places=placed(places, [request.activation_id for request in requests]) if places is not None else [],
            )
        )
        self.database_now = records[0]["database_now"]
        self._records |= {record["activation_id"]: record for record in records}

    async def _move(self, fetch: Fetch, requests: list[ActivationRequest]) -> None:
        """Drop activations that are not to run, or move backfills on to their next ticks."""
        failures: Counter[int] = Counter()
        for activation_id, _, _, _, _, next_tick, _ in requests:
            record = self._records[activation_id]
            if record["verdict"] in _NOT_TO_RUN:
                self._moved[activation_id] = next_tick if record["verdict"] == "passed" else None
                failures[record["job_id"]] += record["verdict"] == "superseded"
        going = {activation_id: tick for activation_id, tick in self._moved.items() if tick is not None}
        failed = +failures
        if len(going) < len(self._moved):
            await fetch(
                DropActivations(
                    activation_ids=list(self._moved.keys() - going),
                    failed_job_ids=list(failed),
                    failures=list(failed.values()),
                )
            )
        if going:
            await fetch(AdvanceBackfills(activation_ids=list(going), next_ticks=list(going.values())))

    async def _start_under_limits(self, fetch: Fetch, requests: list[ActivationRequest]) -> None:
        """Start activations under limits, as many as there are places."""
        under_limits = [each for each in requests if self._records[each.activation_id]["waits_from"] is not None]
        if not under_limits:
            return
        needs = await find_places(fetch, [each.job_id for each in under_limits])
        wanted = {
            each.activation_id: WantedPlace(
                needs[each.job_id], each.turn, self._records[each.activation_id]["waits_from"]
            )
            for each in under_limits
        }
        full = who_waits(wanted, await lock_places(fetch, wanted.values()))
        self._full |= full
        await self._start(fetch, [each for each in under_limits if each.activation_id in wanted.keys() - full], wanted)
        started = [each for key, each in wanted.items() if self._records[key]["execution_id"] is not None]
        await take_places(fetch, started)

    def _result(self, activation_id: int, executions: dict[int, Execution]) -> ActivationResult:
        if activation_id in self._moved:
            next_tick = self._moved[activation_id]
            return ActivationResult(activation_id, None, next_tick is None, next_tick)
        _, _, execution_id, gone, next_tick, *_ = self._records[activation_id]
        full = self._full.get(activation_id)
        return ActivationResult(activation_id, executions.get(execution_id), gone, next_tick, full)


def _has_more(record: asyncpg.Record) -> bool:
    """Whether it needs further statements, and so a transaction."""
    waits = record["execution_id"] is None and record["waits_from"] is not None
    return waits or record["verdict"] in _NOT_TO_RUN


def _fetched(records: list[asyncpg.Record]) -> tuple[int, list[Activation]]:
    database_now: int = records[0][0]
    if records[0][1] is None:
        return database_now, []
    return database_now, [activation_of(record, 1) for record in records]


async def find_activation(transaction: Transaction, job_id: int, activation_id: int) -> Activation:
    """Read an activation that the caller has just made."""
    wanted = ListActivations(job_id=job_id, activation_id=activation_id, after_run_at=None, after_id=0, limit=1)
    return activation_of((await transaction.fetch(wanted))[0])
