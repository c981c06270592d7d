"""Messages of queues, in the transactions of the claims that put them there, and of the ends that take them away."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from cronring.controller.core.model import EndRequest, MessageFate
from cronring.controller.errors import StoreError
from cronring.controller.store.placing import Fetch
from cronring.sql.parameters import AddMessages, DecideExecutions, DeleteMessages, LockMessages

REFUSED: Final = "EnqueueRefused"
"""The error type of an execution whose message PostgreSQL refuses."""

Request = TypeVar("Request")


async def in_halves(
    requests: Sequence[Request],
    make: Callable[[Sequence[Request]], Awaitable[None]],
    refuse: Callable[[Request, str], Awaitable[object]],
) -> None:
    """`make` all requests at once. If PostgreSQL refuses, try in halves, so that in the end each bad request is alone.

    A bad request goes to `refuse`, with PostgreSQL's error. If that fails as well, the message is not to blame: raises
    StoreError.
    """
    if not requests:
        return
    try:
        await make(requests)
    except StoreError as error:
        if len(requests) == 1:
            await refuse(requests[0], str(error.__cause__ or error))
            return
        middle = len(requests) // 2
        await in_halves(requests[:middle], make, refuse)
        await in_halves(requests[middle:], make, refuse)


async def add_messages(fetch: Fetch, claimed: Sequence[tuple[int, int]]) -> None:
    """Add messages of (execution id, tick). Executions that await no consumer are decided by this."""
    if not claimed:
        return
    ids, ticks = zip(*claimed, strict=True)
    records = await fetch(AddMessages(execution_ids=ids, ticks=ticks))
    decided = [(execution_id, tick) for execution_id, tick, awaited in records if not awaited]
    await _decide(fetch, decided, None, None)


async def refuse_messages(fetch: Fetch, claimed: Sequence[tuple[int, int]], error: str) -> None:
    """Decide executions as failed by the error that PostgreSQL has raised for their messages."""
    await _decide(fetch, claimed, REFUSED, error)


async def _decide(
    fetch: Fetch, claimed: Sequence[tuple[int, int]], error_type: str | None, error_message: str | None
) -> None:
    if not claimed:
        return
    ids, ticks = zip(*claimed, strict=True)
    types, messages = [error_type] * len(claimed), [error_message] * len(claimed)
    await fetch(DecideExecutions(execution_ids=ids, ticks=ticks, error_types=types, error_messages=messages))


async def held_by_consumers(fetch: Fetch, requests: Sequence[EndRequest]) -> set[int]:
    """Executions that can't be ended now: their consumers hold the messages, or have ended them."""
    ids = [each.report.execution_id for each in requests if each.message is MessageFate.WITHDRAWN]
    if not ids:
        return set()
    records = await fetch(LockMessages(execution_ids=ids))
    return {execution_id for execution_id, locked, ended in records if ended or not locked}


async def delete_messages(fetch: Fetch, requests: Sequence[EndRequest]) -> None:
    """Delete messages of executions that have ended."""
    ids = [each.report.execution_id for each in requests if each.message is not MessageFate.NONE]
    if ids:
        await fetch(DeleteMessages(execution_ids=ids))
