"""What is coming, and what has just been, from PostgreSQL."""

import asyncio
import json
from collections.abc import Mapping
from typing import Final

from cronring.controller.core.ledger.coming import Group, GroupPart
from cronring.controller.core.ledger.overloads import HostedPlaces
from cronring.controller.ports.forecast import Recent
from cronring.controller.ports.reads import Namespaces
from cronring.controller.store.pool import Database
from cronring.sql.parameters import (
    FindExecutionBefore,
    GetAsyncVerbs,
    GetJobGroups,
    GetNow,
    GetPlaces,
    GetRecentFigures,
)

_LOOKED: Final = 50_000  # runs; skips as well
_MS_US: Final = 1_000


class PostgresForecast:
    """controller.ports.forecast.Forecast. Large reads wait for each other, so that claims find free connections."""

    def __init__(self, database: Database, lost_after_ms: int) -> None:
        self._database = database
        self._lost_after_ms = lost_after_ms
        self._one_at_a_time = asyncio.Semaphore(1)

    async def groups(self, namespaces: Namespaces, limit: int) -> tuple[list[Group], int]:
        """See cronring.controller.ports.forecast.Forecast. Reads every job's row."""
        async with self._one_at_a_time:
            records = await self._database.fetch(GetJobGroups(namespaces=namespaces, limit=limit))
            rows = await self._database.fetch(GetAsyncVerbs())
        async_verbs = {row["key"]: frozenset(row["async_verbs"]) for row in rows}
        found = [Group._make((*row[:6], tuple(row["keys"]), _parts(row["parts"], async_verbs))) for row in records]
        every = records[0]["all_jobs"] if records else 0
        return found, every - sum(group.jobs for group in found)

    async def places(self) -> dict[str, HostedPlaces]:
        """See cronring.controller.ports.forecast.Forecast."""
        records = await self._database.fetch(GetPlaces(lost_after_ms=self._lost_after_ms))
        return {row["deployment"]: HostedPlaces._make(row[1:]) for row in records}

    async def recent(self, within_ms: int, late_within_ms: int, namespaces: Namespaces) -> Recent:
        """See cronring.controller.ports.forecast.Forecast. It looks at a bounded number of the latest."""
        async with self._one_at_a_time:
            now: int = (await self._database.fetch(GetNow()))[0][0]
            since = now - within_ms * _MS_US
            above_id: int = (await self._database.fetch(FindExecutionBefore(instant=since)))[0][0]
            asked = GetRecentFigures(
                above_id=above_id, looked=_LOOKED, since=since, late_since=now - late_within_ms * _MS_US,
                namespaces=namespaces,
            )  # fmt: skip
            (row,) = await self._database.fetch(asked)
        return Recent(json.loads(row["outcomes"]), json.loads(row["skipped"]), row["p50_us"], row["p99_us"])


def _parts(text: str, async_verbs: Mapping[str, frozenset[str]]) -> tuple[GroupPart, ...]:
    """Sum up parts by verb into parts by kind of verb (sync or async), for each deployment."""
    found: dict[tuple[str, bool], GroupPart] = {}
    for deployment, verb, jobs, running_us in json.loads(text):
        of = deployment, verb in async_verbs.get(deployment, ())
        before = found.get(of, GroupPart(*of, 0, 0))
        found[of] = GroupPart(*of, before.jobs + jobs, before.running_us + running_us)
    return tuple(found.values())
