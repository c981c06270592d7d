"""Queues as their consumers use them: by SQL alone, as a role with few rights."""

from collections.abc import Iterable, Sequence
from typing import Any

import asyncpg

from cronring.controller.store.connect import Connection

# Of each lane that has messages: it may be taken at some time, or a wake tells of it.
FORGOTTEN = """
SELECT DISTINCT m.namespace, m.queue, m.workspace FROM cron_queue m
WHERE m.ended_at IS NULL
  AND NOT EXISTS (SELECT FROM cron_queue_lanes l
                  WHERE (l.namespace, l.queue, l.workspace) = (m.namespace, m.queue, m.workspace)
                    AND l.ready_at IS NOT NULL)
  AND NOT EXISTS (SELECT FROM cron_queue_wakes w
                  WHERE (w.namespace, w.queue, w.workspace) = (m.namespace, m.queue, m.workspace))
"""


class Consumer:
    """One connection. Times are in seconds."""

    def __init__(self, connection: Connection, name: str = "c1") -> None:
        self.connection = connection
        self.name = name

    async def put(self, workspace: str, *payloads: int, queue: str = "q", delay_s: float | None = None) -> list[int]:
        not_before = "NULL" if delay_s is None else f"now() + {delay_s} * interval '1 s'"
        statement = f"SELECT cron_queue_put($1, to_json($2::int), $3, not_before => {not_before})"
        return [await self.connection.fetchval(statement, queue, each, workspace) for each in payloads]

    async def take(self, most: int = 10, hold_s: float = 60, queue: str = "q") -> "Taken":
        rows = await self.connection.fetch(
            "SELECT * FROM cron_queue_take($1, $2, $3 * interval '1 s', $4)", queue, self.name, hold_s, most
        )
        return Taken(self, rows)


class Taken:
    """What one take gave."""

    def __init__(self, consumer: Consumer, rows: list[asyncpg.Record]) -> None:
        self._consumer = consumer
        self.rows = rows
        self.lease: int = rows[0]["lease"] if rows else 0

    @property
    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows]

    @property
    def seen(self) -> list[tuple[str, int]]:
        """Workspace and payload."""
        return [(row["workspace"], int(row["payload"])) for row in self.rows]

    @property
    def deliveries(self) -> list[int]:
        return [row["delivery"] for row in self.rows]

    async def done(self, ids: Iterable[int] | None = None, **more: Any) -> dict[int, str]:
        return await self._ask("cron_queue_done", ids, **more)

    async def retry(self, ids: Iterable[int] | None = None, error: str | None = "no", **more: Any) -> dict[int, str]:
        return await self._ask("cron_queue_retry", ids, error=error, **more)

    async def extend(self, hold_s: float = 60) -> dict[int, str]:
        return states(
            await self._consumer.connection.fetch(
                "SELECT * FROM cron_queue_extend($1, $2 * interval '1 s')", self.lease, hold_s
            )
        )

    async def release(self, ids: Iterable[int] | None = None) -> int:
        statement = "SELECT cron_queue_release($1, $2)"
        count: int = await self._consumer.connection.fetchval(statement, self.lease, None if ids is None else list(ids))
        return count

    async def _ask(self, function: str, ids: Iterable[int] | None, **more: Any) -> dict[int, str]:
        named = "".join(f", {name} => ${place}" for place, name in enumerate(more, 3))
        statement = f"SELECT * FROM {function}($1, $2{named})"
        asked = self.ids if ids is None else list(ids)
        return states(await self._consumer.connection.fetch(statement, self.lease, asked, *more.values()))


def states(rows: Sequence[asyncpg.Record]) -> dict[int, str]:
    return {row["id"]: row["state"] for row in rows}
