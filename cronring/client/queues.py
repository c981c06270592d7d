"""Calls about queues of messages: put, take, end; and what operators do. `AsyncClient.consume` is made of these."""

import builtins
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.client.payloads import json_text
from cronring.protos.cronring.v1 import queues_pb2
from cronring.protos.cronring.v1.queues_pb2_grpc import QueuesStub

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.queues_pb2_grpc import QueuesAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")
HOLD = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that its consumer has under a lease. `delivery`: 1 for the first. `job` "": somebody put it there."""

    id: int
    workspace: str
    payload: str
    delivery: int
    job: str
    execution_id: int
    tick: datetime | None
    attempt: int
    run_at: datetime | None
    enqueued_at: datetime | None
    leased_until: datetime | None


@dataclass(frozen=True, slots=True)
class Lease:
    """What one take gave. `number` 0: nothing."""

    number: int
    namespace: str
    messages: tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class Queue:
    """Counts end at 100,000. `changed_at` None: nobody has set anything of it."""

    namespace: str
    queue: str
    depth: int
    oldest_at: datetime | None
    lanes: int
    leased: int
    consumers: int
    dead: int
    max_deliveries: int
    on_retry: str
    dead_kept_days: int
    changed_at: datetime | None
    changed_by: str
    note: str
    etag: str  # of what is set, for `set`


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """One that is not done. `consumer`: who has it until `leased_until`; "": nobody."""

    id: int
    workspace: str
    payload: str
    job: str
    execution_id: int
    tick: datetime | None
    run_at: datetime | None
    attempt: int
    enqueued_at: datetime | None
    failures: int
    awaited: bool
    error_type: str
    error_message: str
    consumer: str
    leased_until: datetime | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`outcome`: how its last delivery ended, failed or lost."""

    id: int
    workspace: str
    payload: str
    job: str
    execution_id: int
    tick: datetime | None
    attempt: int
    enqueued_at: datetime | None
    died_at: datetime | None
    failures: int
    outcome: str
    error_type: str
    error_message: str


class QueueCalls:
    """`by` says who asks, which is kept; "": this address. What is said of messages is told by id: done, gone, ..."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def put(
        self,
        queue: str,
        payload: Any,
        workspace: str = "",
        namespace: str = "default",
        *,
        not_before: datetime | None = None,
    ) -> int:
        """The id of a new message. `payload`: a value that JSON has; JSON that is text already is given as JsonText.

        Raises Invalid; OutcomeUnknown where it may be there already.
        """
        request = queues_pb2.PutMessageRequest(
            namespace=namespace,
            queue=queue,
            workspace=workspace,
            payload=json_text(payload),
            not_before=convert.timestamp(not_before),
        )
        call = self._change(lambda stub, timeout: stub.PutMessage(request, timeout=timeout), repeatable=False)
        return (await call).id

    async def take(
        self,
        queue: str,
        consumer: str,
        namespace: str = "default",
        *,
        most: int = 10,
        hold: timedelta = HOLD,
        wait: timedelta = timedelta(),
    ) -> Lease:
        """Messages of the lanes that wait longest. `wait`: for something to take, 30 s at most. Raises Invalid."""
        request = queues_pb2.TakeMessagesRequest(
            namespace=namespace, queue=queue, consumer=consumer, hold_ms=_ms(hold), most=most, wait_ms=_ms(wait)
        )
        more_s = wait.total_seconds()
        # Sent again it takes others: what an answer that was lost gave waits for the end of its lease.
        call = self._change(lambda stub, timeout: stub.TakeMessages(request, timeout=timeout + more_s), repeatable=True)
        answer = await call
        return Lease(answer.lease, namespace, tuple(convert.alike(Taken, each) for each in answer.messages))

    async def extend(self, lease: Lease, hold: timedelta = HOLD) -> dict[int, str]:
        """`held` or `gone`, of each message that the lease has left."""
        request = queues_pb2.ExtendLeaseRequest(namespace=lease.namespace, lease=lease.number, hold_ms=_ms(hold))
        call = self._change(lambda stub, timeout: stub.ExtendLease(request, timeout=timeout), repeatable=True)
        return _states((await call).messages)

    async def finish(self, lease: Lease, ids: Sequence[int], output: str = "") -> dict[int, str]:
        """`done`, `gone` or `refused`, of each. `refused` also where it was done before, by a call whose answer was
        lost.
        """
        request = queues_pb2.FinishMessagesRequest(
            namespace=lease.namespace, lease=lease.number, message_ids=ids, output=output
        )
        call = self._change(lambda stub, timeout: stub.FinishMessages(request, timeout=timeout), repeatable=True)
        return _states((await call).messages)

    async def retry(
        self,
        lease: Lease,
        ids: Sequence[int],
        error: str,
        error_type: str = "",
        *,
        delay: timedelta | None = None,
        last: bool = False,
    ) -> dict[int, str]:
        """`waits`, `dead`, `ended`, `gone` or `refused`, of each. `delay` None: longer each time. `last`: no more."""
        request = queues_pb2.RetryMessagesRequest(
            namespace=lease.namespace,
            lease=lease.number,
            message_ids=ids,
            error_message=error,
            error_type=error_type,
            delay_ms=None if delay is None else _ms(delay),
            last=last,
        )
        call = self._change(lambda stub, timeout: stub.RetryMessages(request, timeout=timeout), repeatable=True)
        return _states((await call).messages)

    async def release(self, lease: Lease, ids: Sequence[int] = ()) -> int:
        """How many are given back as they are. (): all that the lease has left."""
        request = queues_pb2.ReleaseMessagesRequest(namespace=lease.namespace, lease=lease.number, message_ids=ids)
        call = self._change(lambda stub, timeout: stub.ReleaseMessages(request, timeout=timeout), repeatable=True)
        return (await call).released

    async def list(self, namespace: str = "") -> builtins.list[Queue]:
        """By namespace and name. `namespace`: "" for all."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[Queue], str]:
            request = queues_pb2.ListQueuesRequest(page_size=page_size, page_token=token, namespace=namespace)
            answer = await self._unary(lambda stub, timeout: stub.ListQueues(request, timeout=timeout))
            return [convert.alike(Queue, each) for each in answer.queues], answer.next_page_token

        return await follow(fetch, None)

    async def messages(
        self, queue: str, namespace: str = "default", *, workspace: str | None = None, limit: int | None = 100
    ) -> builtins.list[QueueMessage]:
        """The oldest first; of one workspace, as consumers get them. `limit` None: all. `workspace` "": of none."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[QueueMessage], str]:
            request = queues_pb2.ListMessagesRequest(
                page_size=page_size, page_token=token, namespace=namespace, queue=queue, workspace=workspace
            )
            answer = await self._unary(lambda stub, timeout: stub.ListMessages(request, timeout=timeout))
            return [convert.alike(QueueMessage, each) for each in answer.messages], answer.next_page_token

        return await follow(fetch, limit)

    async def dead_letters(
        self, queue: str, namespace: str = "default", *, workspace: str | None = None, limit: int | None = 100
    ) -> builtins.list[DeadLetter]:
        """The oldest first. `limit` None: all. `workspace` "": those of none."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[DeadLetter], str]:
            request = queues_pb2.ListDeadLettersRequest(
                page_size=page_size, page_token=token, namespace=namespace, queue=queue, workspace=workspace
            )
            answer = await self._unary(lambda stub, timeout: stub.ListDeadLetters(request, timeout=timeout))
            return [convert.alike(DeadLetter, each) for each in answer.dead_letters], answer.next_page_token

        return await follow(fetch, limit)

    async def replay(
        self,
        queue: str,
        namespace: str = "default",
        *,
        ids: Sequence[int] = (),
        everything: bool = False,
        workspace: str | None = None,
        dry_run: bool = False,
        by: str = "",
        note: str = "",
    ) -> builtins.list[int]:
        """Dead letters are messages again: these, or with `everything` the oldest 1,000. Returns their ids."""
        request = queues_pb2.ReplayDeadLettersRequest(
            namespace=namespace,
            queue=queue,
            message_ids=ids,
            dry_run=dry_run,
            requested_by=by,
            note=note,
            all=everything,
            workspace=workspace,
        )
        call = self._change(lambda stub, timeout: stub.ReplayDeadLetters(request, timeout=timeout), repeatable=False)
        return list((await call).message_ids)

    async def remove(
        self,
        queue: str,
        namespace: str = "default",
        *,
        ids: Sequence[int] = (),
        everything: bool = False,
        workspace: str | None = None,
        dry_run: bool = False,
        by: str = "",
        note: str = "",
    ) -> builtins.list[int]:
        """Dead letters are no more: these, or with `everything` the oldest 1,000. Returns their ids."""
        request = queues_pb2.RemoveDeadLettersRequest(
            namespace=namespace,
            queue=queue,
            message_ids=ids,
            dry_run=dry_run,
            requested_by=by,
            note=note,
            all=everything,
            workspace=workspace,
        )
        call = self._change(lambda stub, timeout: stub.RemoveDeadLetters(request, timeout=timeout), repeatable=False)
        return list((await call).message_ids)

    async def set(
        self,
        queue: str,
        namespace: str = "default",
        *,
        max_deliveries: int | None = None,
        on_retry: str | None = None,
        dead_kept_days: int | None = None,
        by: str = "",
        note: str = "",
        etag: str = "",
    ) -> Queue:
        """None: stays as it is. `on_retry`: `block` or `pass`. Raises Invalid.

        `etag`: only if the settings still have this one, else EtagMismatch is raised.
        """
        request = queues_pb2.SetQueueRequest(
            namespace=namespace,
            queue=queue,
            max_deliveries=max_deliveries,
            on_retry=on_retry,
            dead_kept_days=dead_kept_days,
            requested_by=by,
            note=note,
            etag=etag,
        )
        call = self._change(lambda stub, timeout: stub.SetQueue(request, timeout=timeout), repeatable=not etag)
        return convert.alike(Queue, await call)

    async def _change(
        self, call: "Callable[[QueuesAsyncStub, float], Awaitable[Answer]]", *, repeatable: bool
    ) -> Answer:
        return await self._failover.change(
            lambda channel: call(QueuesStub(channel), self._failover.timeout_s),
            "`cronring queues list`",
            repeatable=repeatable,
        )

    async def _unary(self, call: "Callable[[QueuesAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(QueuesStub(channel), self._failover.timeout_s))


def _ms(duration: timedelta) -> int:
    return round(duration / timedelta(milliseconds=1))


def _states(fates: Sequence[queues_pb2.MessageFate]) -> dict[int, str]:
    return {each.id: each.state for each in fates}
