"""Queues in PostgreSQL. What consumers do is done by functions that they may call themselves."""

from collections.abc import Sequence

from cronring.controller.ports.queues import (
    BEFORE_ALL,
    COUNTED_MAX,
    CheckQueue,
    DeadLetterRow,
    MessageRow,
    MessageState,
    QueueFigure,
    QueueLane,
    QueueName,
    QueueRow,
    QueueSeen,
    QueueSettings,
    TakenMessage,
)
from cronring.controller.ports.reads import Cursor, Namespaces
from cronring.controller.services.audit_changes import of_queue
from cronring.controller.store.pool import Database
from cronring.controller.store.recording import record
from cronring.sql.parameters import (
    CountQueues,
    ExtendLease,
    FindDeadLetters,
    FindDeadLettersOfWorkspace,
    FinishMessages,
    GetQueue,
    GetQueueFigures,
    GetReadyQueues,
    ListDeadLetters,
    ListDeadLettersOfWorkspace,
    ListLane,
    ListMessages,
    ListQueues,
    LockQueue,
    PutMessage,
    ReleaseMessages,
    RemoveDeadLetters,
    ReplayDeadLetters,
    RetryMessages,
    SetQueue,
    TakeMessages,
)
from cronring.sql.records import Statement


class PostgresConsuming:
    """cronring.controller.ports.queues.Consuming."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, name: QueueName, consumer: str, hold_ms: int, most: int) -> list[TakenMessage]:
        asked = TakeMessages(
            queue=name.queue, consumer=consumer, hold_ms=hold_ms, most=most, namespace=name.namespace
        )  # fmt: skip
        return list(map(TakenMessage._make, await self._database.fetch(asked)))

    async def extend(self, namespace: str, lease: int, hold_ms: int) -> list[MessageState]:
        """See cronring.controller.ports.queues.Consuming."""
        asked = ExtendLease(lease=lease, namespace=namespace, hold_ms=hold_ms)
        return list(map(MessageState._make, await self._database.fetch(asked)))

    async def finish(self, namespace: str, lease: int, ids: Sequence[int], output: str) -> list[MessageState]:
        asked = FinishMessages(lease=lease, namespace=namespace, ids=ids, output=output)
        return list(map(MessageState._make, await self._database.fetch(asked)))

    async def retry(
        self,
        namespace: str,
        lease: int,
        ids: Sequence[int],
        error: tuple[str, str],
        delay_ms: int | None,
        *,
        last: bool,
    ) -> list[MessageState]:
        """See cronring.controller.ports.queues.Consuming."""
        error_type, message = error
        asked = RetryMessages(
            lease=lease,
            namespace=namespace,
            ids=ids,
            error=message,
            delay_ms=delay_ms,
            error_type=error_type,
            last=last,
        )
        return list(map(MessageState._make, await self._database.fetch(asked)))

    async def release(self, namespace: str, lease: int, ids: Sequence[int] | None) -> int:
        """See cronring.controller.ports.queues.Consuming."""
        records = await self._database.fetch(ReleaseMessages(lease=lease, namespace=namespace, ids=ids))
        count: int = records[0][0]
        return count

    async def put(self, name: QueueName, workspace: str, payload: str, not_before: int | None) -> int:
        """See cronring.controller.ports.queues.Consuming."""
        asked = PutMessage(
            queue=name.queue, payload=payload, workspace=workspace, namespace=name.namespace, not_before=not_before
        )  # fmt: skip
        message_id: int = (await self._database.fetch(asked))[0][0]
        return message_id

    async def ready(self, names: Sequence[QueueName]) -> list[QueueName]:
        """See cronring.controller.ports.queues.Consuming."""
        asked = GetReadyQueues(
            namespaces=[each.namespace for each in names], queues=[each.queue for each in names]
        )  # fmt: skip
        return [names[index - 1] for (index,) in await self._database.fetch(asked)]


class PostgresQueues(PostgresConsuming):
    """cronring.controller.ports.queues.Queues."""

    async def list_queues(
        self,
        name: QueueName | None = None,
        namespace: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: QueueName = BEFORE_ALL,
        limit: int = 1_000,
    ) -> list[QueueRow]:
        """See cronring.controller.ports.queues.Queues."""
        asked = ListQueues(
            most=COUNTED_MAX,
            namespace=namespace if name is None else name.namespace,
            queue=None if name is None else name.queue,
            namespaces=namespaces,
            after_namespace=after.namespace,
            after_queue=after.queue,
            limit=limit,
        )
        return list(map(QueueRow._make, await self._database.fetch(asked)))

    async def count_queues(self, namespace: str | None = None, namespaces: Namespaces = None) -> int:
        ((count,),) = await self._database.fetch(CountQueues(namespace=namespace, namespaces=namespaces))
        return int(count)

    async def figures(self, queues: int, most: int) -> list[QueueFigure]:
        """See cronring.controller.ports.queues.Queues."""
        asked = GetQueueFigures(queues=queues, most=most)
        return list(map(QueueFigure._make, await self._database.fetch(asked)))

    async def list_messages(self, lane: QueueLane, after: Cursor, limit: int) -> list[MessageRow]:
        """See cronring.controller.ports.queues.Queues."""
        (namespace, queue), workspace = lane
        run_at, after_id = after or (None, 0)
        asked: Statement = ListMessages(namespace=namespace, queue=queue, after_id=after_id, limit=limit)
        if workspace is not None:
            asked = ListLane(
                namespace=namespace,
                queue=queue,
                workspace=workspace,
                after_run_at=run_at,
                after_id=after_id,
                limit=limit,
            )
        return list(map(MessageRow._make, await self._database.fetch(asked)))

    async def list_dead_letters(self, lane: QueueLane, after_id: int, limit: int) -> list[DeadLetterRow]:
        """See cronring.controller.ports.queues.Queues."""
        (namespace, queue), workspace = lane
        asked: Statement = ListDeadLetters(namespace=namespace, queue=queue, after_id=after_id, limit=limit)
        if workspace is not None:
            asked = ListDeadLettersOfWorkspace(
                namespace=namespace, queue=queue, workspace=workspace, after_id=after_id, limit=limit
            )
        return list(map(DeadLetterRow._make, await self._database.fetch(asked)))

    async def replay_dead_letters(
        self, lane: QueueLane, ids: Sequence[int] | None, limit: int, *, dry_run: bool
    ) -> list[int]:
        """See cronring.controller.ports.queues.Queues."""
        return await self._dead_letters(lane, ids, limit, "replayed", dry_run)

    async def remove_dead_letters(
        self, lane: QueueLane, ids: Sequence[int] | None, limit: int, *, dry_run: bool
    ) -> list[int]:
        """See cronring.controller.ports.queues.Queues."""
        return await self._dead_letters(lane, ids, limit, "removed", dry_run)

    async def _dead_letters(
        self, lane: QueueLane, ids: Sequence[int] | None, limit: int, what: str, rehearsal: bool
    ) -> list[int]:
        name, workspace = lane
        asked: Statement = FindDeadLetters(namespace=name.namespace, queue=name.queue, ids=ids, limit=limit)
        if workspace is not None:
            asked = FindDeadLettersOfWorkspace(
                namespace=name.namespace, queue=name.queue, workspace=workspace, ids=ids, limit=limit
            )
        async with self._database.transaction(f"dead letters that are {what}", rehearsal=rehearsal) as transaction:
            found = [row[0] for row in await transaction.fetch(asked)]
            transaction.unchanged = not found
            if found:
                replays = what == "replayed"
                await transaction.fetch(ReplayDeadLetters(ids=found) if replays else RemoveDeadLetters(ids=found))
                await record(transaction, of_queue(name, None, {what: found}))
        return found

    async def set_queue(
        self, name: QueueName, changes: dict[str, object], by: str, check: CheckQueue | None = None
    ) -> QueueRow:
        """See cronring.controller.ports.queues.Queues."""
        async with self._database.transaction("setting a queue") as transaction:
            await transaction.fetch(LockQueue(namespace=name.namespace, queue=name.queue))
            rows = await transaction.fetch(GetQueue(namespace=name.namespace, queue=name.queue))
            seen = QueueSeen(QueueSettings._make(rows[0][:-1]), rows[0][-1]) if rows else QueueSeen()
            if check is not None:
                check(seen)
            before = seen.settings
            after = before._replace(**changes)  # type: ignore[arg-type]  # its fields' values
            await transaction.fetch(
                SetQueue(
                    namespace=name.namespace,
                    queue=name.queue,
                    max_deliveries=after.max_deliveries,
                    on_retry=after.on_retry,
                    dead_kept_days=after.dead_kept_days,
                    actor=by,
                    note=after.note,
                )
            )
            await record(transaction, of_queue(name, before._asdict() if rows else None, after._asdict()))
        return (await self.list_queues(name))[0]
