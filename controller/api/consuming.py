"""cronring.v1.Queues, what consumers ask: take, extend, finish, retry, release, put."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from cronring.controller.api.payloads import canonical_payload
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.queue_messages import fate_message, taken_message
from cronring.controller.api.queue_waiting import QueueWaiting
from cronring.controller.api.requests import Context, instant, number
from cronring.controller.api.scope import require
from cronring.controller.ports.queues import Consuming, MessageState, QueueName
from cronring.protos.cronring.v1 import queues_pb2
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.payload import PAYLOAD_LIMIT, NoPayload
from cronring.schema.queues import queue_fault, workspace_fault
from cronring.schema.validate import namespace_fault

HOLD_MS: Final = 30_000
HOLD_MS_MIN: Final = 1_000
HOLD_MS_MAX: Final = 86_400_000
WAIT_MS_MAX: Final = 30_000
DELAY_MS_MAX: Final = 30 * 86_400_000
TAKEN: Final = 10
TAKEN_MAX: Final = 1_000
AT_ONCE: Final = 4  # statements of takes, which have no place among the calls in hand
ANSWER_S: Final = 2.0  # how much of a caller's time is kept for the last take


class ConsumingCalls:
    """The part of QueuesService that consumers call."""

    def __init__(self, queues: Consuming, waiting: QueueWaiting) -> None:
        self._consuming = queues
        self._waiting = waiting
        self._taking = asyncio.Semaphore(AT_ONCE)

    async def TakeMessages(
        self, request: queues_pb2.TakeMessagesRequest, context: Context
    ) -> queues_pb2.TakeMessagesResponse:
        name = queue_name(request.namespace, request.queue)
        require(Permission.CONSUME, name.namespace)
        if not request.consumer or not request.consumer.isprintable():
            raise InvalidRequest([("consumer", "must be a name of printable characters: it is shown in lists")])
        hold_ms = number(request, "hold_ms", HOLD_MS, HOLD_MS_MAX, HOLD_MS_MIN)
        most = number(request, "most", TAKEN, TAKEN_MAX)
        wait_s = number(request, "wait_ms", 0, WAIT_MS_MAX, 0) / 1_000
        left_s = context.time_remaining()
        until = time.monotonic() + (wait_s if left_s is None else min(wait_s, left_s - ANSWER_S))
        while True:
            async with self._taking:
                rows = await self._consuming.take(name, request.consumer, hold_ms, most)
            remaining_s = until - time.monotonic()
            if rows or remaining_s <= 0:
                return queues_pb2.TakeMessagesResponse(
                    lease=rows[0].lease if rows else 0, messages=map(taken_message, rows)
                )
            await self._waiting.until_ready(name, remaining_s)

    async def ExtendLease(
        self, request: queues_pb2.ExtendLeaseRequest, context: Context
    ) -> queues_pb2.ExtendLeaseResponse:
        namespace = _namespace(request.namespace)
        hold_ms = number(request, "hold_ms", HOLD_MS, HOLD_MS_MAX, HOLD_MS_MIN)
        found = await self._consuming.extend(namespace, _lease(request.lease), hold_ms)
        return queues_pb2.ExtendLeaseResponse(messages=map(fate_message, found))

    async def FinishMessages(
        self, request: queues_pb2.FinishMessagesRequest, context: Context
    ) -> queues_pb2.FinishMessagesResponse:
        namespace, lease, ids = _namespace(request.namespace), _lease(request.lease), _ids(request.message_ids)
        found: list[MessageState] = await self._consuming.finish(namespace, lease, ids, _text(request.output))
        return queues_pb2.FinishMessagesResponse(messages=map(fate_message, found))

    async def RetryMessages(
        self, request: queues_pb2.RetryMessagesRequest, context: Context
    ) -> queues_pb2.RetryMessagesResponse:
        namespace, lease, ids = _namespace(request.namespace), _lease(request.lease), _ids(request.message_ids)
        delay_ms = number(request, "delay_ms", 0, DELAY_MS_MAX, 0) if request.HasField("delay_ms") else None
        error = _text(request.error_type), _text(request.error_message)
        found = await self._consuming.retry(namespace, lease, ids, error, delay_ms, last=request.last)
        return queues_pb2.RetryMessagesResponse(messages=map(fate_message, found))

    async def ReleaseMessages(
        self, request: queues_pb2.ReleaseMessagesRequest, context: Context
    ) -> queues_pb2.ReleaseMessagesResponse:
        namespace, ids = _namespace(request.namespace), list(request.message_ids) or None
        released = await self._consuming.release(namespace, _lease(request.lease), ids)
        return queues_pb2.ReleaseMessagesResponse(released=released)

    async def PutMessage(
        self, request: queues_pb2.PutMessageRequest, context: Context
    ) -> queues_pb2.PutMessageResponse:
        name = queue_name(request.namespace, request.queue)
        require(Permission.CONSUME, name.namespace)
        check_workspace(request.workspace)
        not_before = instant("not_before", request.not_before) if request.HasField("not_before") else None
        message_id = await self._consuming.put(name, request.workspace, _payload(request.payload), not_before)
        return queues_pb2.PutMessageResponse(id=message_id)


def queue_name(namespace: str, queue: str) -> QueueName:
    """Raises InvalidRequest."""
    problems: Violations = []
    if namespace and (fault := namespace_fault(namespace)):
        problems.append(("namespace", fault))
    if fault := queue_fault(queue):
        problems.append(("queue", fault))
    if problems:
        raise InvalidRequest(problems)
    return QueueName(namespace or DEFAULT_NAMESPACE, queue)


def check_workspace(workspace: str) -> None:
    """Raises InvalidRequest."""
    if fault := workspace_fault(workspace):
        raise InvalidRequest([("workspace", fault)])


def _namespace(named: str) -> str:
    """Of a lease. Raises InvalidRequest, Forbidden."""
    if named and (fault := namespace_fault(named)):
        raise InvalidRequest([("namespace", fault)])
    require(Permission.CONSUME, named or DEFAULT_NAMESPACE)
    return named or DEFAULT_NAMESPACE


def _lease(lease: int) -> int:
    if lease <= 0:
        raise InvalidRequest([("lease", f"is {lease}; it must be the number that a take gave")])
    return lease


def _ids(ids: Sequence[int]) -> list[int]:
    if not ids:
        raise InvalidRequest([("message_ids", "is empty; name the messages")])
    return list(dict.fromkeys(ids))


def _payload(payload: str) -> str:
    try:
        found = canonical_payload(payload) or "null"
    except NoPayload as error:
        raise InvalidRequest([("payload", str(error))]) from None
    if len(found.encode()) > PAYLOAD_LIMIT:
        raise InvalidRequest([("payload", f"has more than {PAYLOAD_LIMIT} bytes; put a reference to it")])
    return found


def _text(text: str) -> str:
    """Without what PostgreSQL can't keep."""
    return text.replace("\x00", "\N{SYMBOL FOR NULL}")
