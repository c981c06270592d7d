"""Messages of queues as the conformance suite sees them, and what consumers and users do there."""

from typing import NamedTuple, Protocol

from cronring.controller.store.connect import Connection
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import Outcome
from tests.conformance.harness import MemoryScene, PostgresScene
from tests.conformance.scene import Scene

_REFUSES = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.queue = TG_ARGV[0] THEN RAISE EXCEPTION 'not today'; END IF;
    RETURN new;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON cron_queue FOR EACH ROW EXECUTE FUNCTION refuse('{queue}');
"""


class BookedMessage(NamedTuple):
    message_id: int
    namespace: str
    queue: str
    workspace: str
    job_id: int
    execution_id: int
    tick: int
    run_at: int
    attempt: int
    payload: str
    awaited: bool
    hard_deadline: int | None


class Queues(Protocol):
    async def messages(self) -> list[BookedMessage]:
        """By their ids."""
        ...

    async def consume(self, message: BookedMessage, outcome: Outcome, error: str = "", output: str = "") -> None:
        """As a consumer does that ends an awaited one."""
        ...

    async def refuse(self, queue: str) -> None:
        """From now on it takes no message: a trigger of the user's raises `not today`."""
        ...


class MemoryQueues:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def messages(self) -> list[BookedMessage]:
        return [
            BookedMessage(
                row.message_id, row.namespace, row.queue, row.workspace, row.job.job_id, row.execution_id, row.tick,
                row.run_at, row.attempt, row.payload, row.awaited, row.hard_deadline,
            )
            for row in self._store.messages.values()
        ]  # fmt: skip

    async def consume(self, message: BookedMessage, outcome: Outcome, error: str = "", output: str = "") -> None:
        self._store.end_message(message.message_id, outcome, "Oops" if error else "", error, output)

    async def refuse(self, queue: str) -> None:
        name = f"@{queue}"
        self._store.refuses_message = lambda row: "not today" if row.deployment.module[1] == name else None


class PostgresQueues:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def messages(self) -> list[BookedMessage]:
        records = await self._connection.fetch(
            f"SELECT id, {', '.join(BookedMessage._fields[1:])} FROM cron_queue ORDER BY id"
        )
        return list(map(BookedMessage._make, records))

    async def consume(self, message: BookedMessage, outcome: Outcome, error: str = "", output: str = "") -> None:
        statement = (
            "UPDATE cron_queue SET ended_at = now(), outcome = $2, error_type = $3, error_message = $4, output = $5 "
            "WHERE id = $1"
        )
        error_type = "Oops" if error else None
        status = await self._connection.execute(
            statement, message.message_id, outcome.value, error_type, error or None, output or None
        )
        assert status == "UPDATE 1"

    async def refuse(self, queue: str) -> None:
        await self._connection.execute(_REFUSES.format(queue=queue))


def queues_of(scene: Scene) -> Queues:
    if isinstance(scene, PostgresScene):
        return PostgresQueues(scene._connection)
    assert isinstance(scene, MemoryScene)
    return MemoryQueues(scene._store)
