"""Rows of queues as messages of the API. What authors wrote is shown to those who may see outputs."""

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.ports.caller import caller
from cronring.controller.ports.queues import DeadLetterRow, MessageRow, MessageState, QueueRow, TakenMessage
from cronring.protos.cronring.v1 import queues_pb2
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission


def taken_message(row: TakenMessage) -> queues_pb2.TakenMessage:
    return queues_pb2.TakenMessage(
        id=row.message_id,
        workspace=row.workspace,
        payload=row.payload,
        delivery=row.delivery,
        leased_until=timestamp(row.leased_until),
        run_at=timestamp(row.run_at),
        **_origin(row),
    )


def fate_message(fate: MessageState) -> queues_pb2.MessageFate:
    return queues_pb2.MessageFate(id=fate.message_id, state=fate.state)


def queue_message(row: QueueRow) -> queues_pb2.Queue:
    return queues_pb2.Queue(
        namespace=row.namespace,
        queue=row.queue,
        depth=row.depth,
        oldest_at=_instant(row.oldest_at),
        lanes=row.lanes,
        leased=row.leased,
        consumers=row.consumers,
        dead=row.dead,
        max_deliveries=row.max_deliveries,
        on_retry=row.on_retry,
        dead_kept_days=row.dead_kept_days,
        changed_at=_instant(row.changed_at),
        changed_by=row.changed_by,
        note=row.note,
    )


def waiting_message(row: MessageRow, namespace: str) -> queues_pb2.QueueMessage:
    shown = _shows(namespace)
    return queues_pb2.QueueMessage(
        id=row.message_id,
        workspace=row.workspace,
        payload=row.payload if shown else "",
        run_at=timestamp(row.run_at),
        failures=row.failures,
        awaited=row.awaited,
        error_type=(row.error_type or "") if shown else "",
        error_message=(row.error_message or "") if shown else "",
        consumer=row.consumer,
        leased_until=_instant(row.leased_until),
        **_origin(row),
    )


def dead_letter_message(row: DeadLetterRow, namespace: str) -> queues_pb2.DeadLetter:
    shown = _shows(namespace)
    return queues_pb2.DeadLetter(
        id=row.message_id,
        workspace=row.workspace,
        payload=row.payload if shown else "",
        died_at=timestamp(row.died_at),
        failures=row.failures,
        outcome=row.outcome,
        error_type=row.error_type if shown else "",
        error_message=row.error_message if shown else "",
        **_origin(row),
    )


def _origin(row: TakenMessage | MessageRow | DeadLetterRow) -> dict[str, Any]:
    """Where a message came from: fields that all of them have."""
    return {
        "job": row.job,
        "job_id": row.job_id,
        "execution_id": row.execution_id,
        "tick": _instant(row.tick),
        "attempt": row.attempt,
        "enqueued_at": timestamp(row.enqueued_at),
    }


def _shows(namespace: str) -> bool:
    return caller().may(Permission.OUTPUTS, namespace)


def _instant(at: int | None) -> Timestamp | None:
    return None if at is None else timestamp(at)
