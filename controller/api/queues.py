"""cronring.v1.Queues: what operators ask, beside the calls of consumers."""

from typing import Final

from cronring.controller.api.consuming import ConsumingCalls, check_workspace, queue_name
from cronring.controller.api.etags import check_etag, queue_etag
from cronring.controller.api.paging import Pages, fitting, page_size, total
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.queue_messages import dead_letter_message, queue_message, waiting_message
from cronring.controller.api.queue_waiting import QueueWaiting
from cronring.controller.api.requests import Context, actor, name, note, number, one_of
from cronring.controller.api.scope import namespaces, require
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.queues import (
    CheckQueue,
    DeadLetterRow,
    MessageRow,
    QueueLane,
    QueueName,
    QueueRow,
    Queues,
    QueueSeen,
    place_of,
)
from cronring.protos.cronring.v1 import queues_pb2, queues_pb2_grpc
from cronring.schema.identity import Permission

LETTERS_MAX: Final = 1_000  # of one call
DELIVERIES_MAX: Final = 1_000
DAYS_MAX: Final = 3_650


class QueuesService(ConsumingCalls, queues_pb2_grpc.QueuesServicer):
    """Queues are in PostgreSQL, so any controller answers."""

    def __init__(self, queues: Queues, waiting: QueueWaiting, box: TokenBox) -> None:
        super().__init__(queues, waiting)
        self._queues = queues
        self._box = box

    async def ListQueues(
        self, request: queues_pb2.ListQueuesRequest, context: Context
    ) -> queues_pb2.ListQueuesResponse:
        named, size = name("namespace", request.namespace), page_size(request)
        pages = Pages(self._box, "ListQueues", named)
        namespace, _, queue = pages.text_cursor(request.page_token).partition("/")
        visible = namespaces(Permission.VIEW, named)
        rows = await self._queues.list_queues(
            None, named or None, visible, after=QueueName(namespace, queue), limit=size + 1
        )
        page = rows[:size]
        return queues_pb2.ListQueuesResponse(
            queues=map(self._told, page),
            next_page_token=pages.token(f"{page[-1].namespace}/{page[-1].queue}") if len(rows) > size else "",
            total=await total(request, lambda: self._queues.count_queues(named or None, visible)),
        )

    async def ListMessages(
        self, request: queues_pb2.ListMessagesRequest, context: Context
    ) -> queues_pb2.ListMessagesResponse:
        lane, size = _seen(request), page_size(request)
        pages = Pages(self._box, "ListMessages", lane)
        rows = await self._queues.list_messages(lane, pages.place_cursor(request.page_token), size + 1)
        page = fitting(rows, size, _weight)
        return queues_pb2.ListMessagesResponse(
            messages=[waiting_message(row, lane.name.namespace) for row in page],
            next_page_token=pages.token(place_of(page[-1])) if len(rows) > len(page) else "",
        )

    async def ListDeadLetters(
        self, request: queues_pb2.ListDeadLettersRequest, context: Context
    ) -> queues_pb2.ListDeadLettersResponse:
        lane, size = _seen(request), page_size(request)
        pages = Pages(self._box, "ListDeadLetters", lane)
        rows = await self._queues.list_dead_letters(lane, pages.number_cursor(request.page_token), size + 1)
        page = fitting(rows, size, _weight)
        return queues_pb2.ListDeadLettersResponse(
            dead_letters=[dead_letter_message(row, lane.name.namespace) for row in page],
            next_page_token=pages.token(page[-1].message_id) if len(rows) > len(page) else "",
        )

    async def ReplayDeadLetters(
        self, request: queues_pb2.ReplayDeadLettersRequest, context: Context
    ) -> queues_pb2.ReplayDeadLettersResponse:
        lane = QueueLane(_ordered(request, context), _workspace(request))
        ids = await self._queues.replay_dead_letters(lane, _letters(request), LETTERS_MAX, dry_run=request.dry_run)
        return queues_pb2.ReplayDeadLettersResponse(message_ids=ids)

    async def RemoveDeadLetters(
        self, request: queues_pb2.RemoveDeadLettersRequest, context: Context
    ) -> queues_pb2.RemoveDeadLettersResponse:
        lane = QueueLane(_ordered(request, context), _workspace(request))
        ids = await self._queues.remove_dead_letters(lane, _letters(request), LETTERS_MAX, dry_run=request.dry_run)
        return queues_pb2.RemoveDeadLettersResponse(message_ids=ids)

    async def SetQueue(self, request: queues_pb2.SetQueueRequest, context: Context) -> queues_pb2.Queue:
        found = _ordered(request, context)
        changes: dict[str, object] = {"note": request.note}
        if request.HasField("max_deliveries"):
            changes["max_deliveries"] = number(request, "max_deliveries", 0, DELIVERIES_MAX)
        if request.HasField("on_retry"):
            changes["on_retry"] = one_of("on_retry", request.on_retry or "?", ("block", "pass"))
        if request.HasField("dead_kept_days"):
            changes["dead_kept_days"] = number(request, "dead_kept_days", 0, DAYS_MAX)
        if len(changes) == 1:
            raise InvalidRequest([("max_deliveries", "give this, on_retry or dead_kept_days: nothing is changed yet")])
        by, check = actor(request.requested_by, context), self._check(request.etag, found)
        return self._told(await self._queues.set_queue(found, changes, by, check))

    def _told(self, row: QueueRow) -> queues_pb2.Queue:
        message = queue_message(row)
        message.etag = queue_etag(self._box, QueueName(row.namespace, row.queue), row.seen)
        return message

    def _check(self, etag: str, queue: QueueName) -> CheckQueue:
        def check(seen: QueueSeen) -> None:
            check_etag(etag, queue_etag(self._box, queue, seen), f"what is set of the queue {str(queue)!r}")

        return check


def _ordered(
    request: queues_pb2.ReplayDeadLettersRequest | queues_pb2.RemoveDeadLettersRequest | queues_pb2.SetQueueRequest,
    context: Context,
) -> QueueName:
    """The queue that an operator's order concerns. Raises InvalidRequest, Forbidden."""
    actor(request.requested_by, context)
    note("note", request.note)
    found = queue_name(request.namespace, request.queue)
    require(Permission.OPERATE, found.namespace)
    return found


def _weight(row: MessageRow | DeadLetterRow) -> int:
    return len(row.payload.encode()) + len((row.error_message or "").encode())


def _seen(request: queues_pb2.ListMessagesRequest | queues_pb2.ListDeadLettersRequest) -> QueueLane:
    """The lane that somebody lists. Raises InvalidRequest, Forbidden."""
    lane = QueueLane(queue_name(request.namespace, request.queue), _workspace(request))
    require(Permission.VIEW, lane.name.namespace)
    return lane


def _workspace(
    request: queues_pb2.ListMessagesRequest
    | queues_pb2.ListDeadLettersRequest
    | queues_pb2.ReplayDeadLettersRequest
    | queues_pb2.RemoveDeadLettersRequest,
) -> str | None:
    """None: of any. Raises InvalidRequest."""
    workspace = request.workspace if request.HasField("workspace") else None
    if workspace:
        check_workspace(workspace)
    return workspace


def _letters(request: queues_pb2.ReplayDeadLettersRequest | queues_pb2.RemoveDeadLettersRequest) -> list[int] | None:
    """Ids, or None for all, which must be said: an empty list doesn't mean all. Raises InvalidRequest."""
    ids = list(request.message_ids)
    if not ids and not request.all:
        raise InvalidRequest([("message_ids", "is empty; name the dead letters, or say all: true for the oldest 1000")])
    if ids and request.all:
        raise InvalidRequest([("all", "is true, and message_ids names some; leave out one of them")])
    return ids or None
