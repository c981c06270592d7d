"""Who waits for a row that somebody else has locked."""

from cronring.controller.store.connect import Connection
from tests.support.waiting import wait_until


async def until_locked_out(watcher: Connection) -> None:
    """Until some session of the watcher's database waits for a lock."""

    async def waits() -> bool:
        statement = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return bool(await watcher.fetchval(statement))

    await wait_until(waits, "nobody waits for a lock")
