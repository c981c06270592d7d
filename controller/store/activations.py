"""Runs beside the schedule: what waits, and claims of it."""

import asyncpg

from cronring.controller.core.model import Activation, ActivationRequest, ActivationResult
from cronring.controller.store.pool import Database
from cronring.controller.store.rows import activation_of, execution_of
from cronring.sql.parameters import GetActivations, GetFollowers, GetNow, StartActivations

_EXECUTION_FIRST = 6


class ActivationStatements:
    """The part of PostgresStore that is about activations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_activations(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Activation]]:
        """(PostgreSQL's now, waiting activations of the slots with run_at before now + window)."""
        return _fetched(await self._database.fetch(GetActivations(slots=slots, window_ms=window_ms)))

    async def get_followers(self, activation_ids: tuple[int, ...]) -> tuple[int, list[Activation]]:
        """(PostgreSQL's now, those of these that are there, and whose jobs are not paused)."""
        return _fetched(await self._database.fetch(GetFollowers(activation_ids=activation_ids)))

    async def start_activations(
        self, controller_id: str, requests: list[ActivationRequest], hard_grace_ms: int
    ) -> tuple[int, list[ActivationResult]]:
        """Claim what is due and whose job may run, under a valid lease; every request is answered, in order."""
        if not requests:
            return (await self._database.fetch(GetNow()))[0][0], []
        records = await self._database.fetch(
            StartActivations(
                controller_id=controller_id,
                activation_ids=[request.activation_id for request in requests],
                expected_ticks=[request.tick for request in requests],
                runner_ids=[request.runner_id for request in requests],
                deployments=[request.deployment for request in requests],
                next_ticks=[request.next_tick for request in requests],
                hard_grace_ms=hard_grace_ms,
            )
        )
        return records[0][0], list(map(_result, records))


def _fetched(records: list[asyncpg.Record]) -> tuple[int, list[Activation]]:
    database_now: int = records[0][0]
    if records[0][1] is None:
        return database_now, []
    return database_now, [activation_of(record, 1) for record in records]


def _result(record: asyncpg.Record) -> ActivationResult:
    _, activation_id, started, gone, next_tick, full = record[:_EXECUTION_FIRST]
    execution = execution_of(record, _EXECUTION_FIRST) if started else None
    return ActivationResult(activation_id, execution, gone, next_tick, full)
