"""The past, from PostgreSQL. One answer looks at a bounded number of runs (docs/decisions/0084)."""

import asyncio
from itertools import starmap
from typing import Final

from cronring.controller.core.ledger.happenings import BadRun, Deed
from cronring.controller.core.ledger.lateness import LateRun
from cronring.controller.core.ledger.lives import Life
from cronring.controller.ports.history import RunsThen
from cronring.controller.ports.reads import ExecutionRow, Namespaces
from cronring.controller.store.pool import Database
from cronring.schema.execution import FAILURES
from cronring.sql.parameters import (
    FindExecutionBefore,
    FindExecutionsEnd,
    GetFirstLife,
    ListDeeds,
    ListLateAt,
    ListLives,
    ListRunningAt,
    ListTroubles,
)
from cronring.sql.records import Statement

LOOKED: Final = 20_000  # runs, each way from an instant; actions
LIVES_MAX: Final = 5_000
FAILURES_MAX: Final = 2_000  # of each outcome
LATE_MS: Final = 1_000
LATE_WITHIN_US: Final = 600_000_000  # before the instant that is asked about
# Ids are in the order of claims, give or take a minute (FindExecutionBefore).
_MINUTE_US: Final = 60_000_000
_DAY_US: Final = 86_400_000_000


class PostgresHistory:
    """controller.ports.history.History. Its reads wait for each other, so that others find a free connection."""

    def __init__(self, database: Database, lost_after_ms: int) -> None:
        self._database = database
        self._lives = PostgresLives(database)
        self._lost_after_ms = lost_after_ms
        self._one_at_a_time = asyncio.Semaphore(1)

    async def lives(self, since: int, until: int) -> list[Life]:
        """See cronring.controller.ports.history.Lives."""
        return await self._lives.list_lives(since, until, self._lost_after_ms)

    async def known_since(self) -> int | None:
        """See cronring.controller.ports.history.History."""
        first: int | None = (await self._database.fetch(GetFirstLife()))[0][0]
        return first

    async def runs_at(self, at: int, namespaces: Namespaces, limit: int) -> RunsThen:
        """See cronring.controller.ports.history.History."""
        async with self._one_at_a_time:
            until_id = 1 + await self._value(FindExecutionBefore(instant=at + 2 * _MINUTE_US))
            ends = await self._database.fetch(
                FindExecutionsEnd(before_id=until_id + 1, above_id=0, since=None, until=None, looked=LOOKED)
            )
            above_id, looked_to = (ends[0][0], ends[0][1]) if ends else (0, None)
            running = await self._database.fetch(
                ListRunningAt(above_id=above_id, until_id=until_id, at=at, namespaces=namespaces, limit=limit)
            )
            since = at - LATE_WITHIN_US
            late = await self._database.fetch(
                ListLateAt(
                    above_id=await self._value(FindExecutionBefore(instant=since)), looked=LOOKED, since=since, at=at,
                    late_ms=LATE_MS, namespaces=namespaces, limit=limit,
                )
            )  # fmt: skip
        return RunsThen(list(starmap(ExecutionRow, running)), list(starmap(LateRun, late)), looked_to)

    async def troubles(self, since: int, until: int, namespaces: Namespaces) -> tuple[list[BadRun], int | None]:
        """See cronring.controller.ports.history.History. Runs claimed over a day before `since` are not looked at."""
        async with self._one_at_a_time:
            above_id = await self._value(FindExecutionBefore(instant=since - _DAY_US))
            asked = ListTroubles(
                outcomes=FAILURES, above_id=above_id, since=since, until=until, namespaces=namespaces,
                limit=FAILURES_MAX,
            )  # fmt: skip
            found = list(starmap(BadRun, await self._database.fetch(asked)))
        oldest = [
            min(run.ended_at for run in found if run.outcome == outcome)
            for outcome in FAILURES
            if sum(run.outcome == outcome for run in found) == FAILURES_MAX
        ]
        return found, max(oldest, default=None)

    async def deeds(self, since: int, until: int, namespaces: Namespaces) -> tuple[list[Deed], int | None]:
        """See cronring.controller.ports.history.History."""
        asked = ListDeeds(since=since, until=until, looked=LOOKED, namespaces=namespaces)
        async with self._one_at_a_time:
            records = await self._database.fetch(asked)
        found = [Deed(**{name: each[name] for name in Deed._fields}) for each in records]
        return found, records[0]["looked_to"] if records else None

    async def _value(self, statement: Statement) -> int:
        value: int = (await self._database.fetch(statement))[0][0]
        return value


class PostgresLives:
    """controller.ports.history.Lives."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_lives(self, since: int, until: int, lost_after_ms: int) -> list[Life]:
        """See cronring.controller.ports.history.Lives."""
        asked = ListLives(since=since, until=until, lost_after_ms=lost_after_ms, limit=LIVES_MAX)
        records = await self._database.fetch(asked)
        return [Life(**dict(life) | {"deployments": tuple(life["deployments"])}) for life in records]
