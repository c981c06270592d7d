"""Messages of queues, in the transactions of the claims that put them there, and of the ends that take them away."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from cronring.controller.core.model import EndRequest, MessageFate
from cronring.controller.errors import StoreError
from cronring.controller.store.placing import Fetch
from cronring.sql.parameters import AddMessages, DecideExecutions, DeleteMessages, LockMessages

REFUSED: Final = "EnqueueRefused"
"""The error's type of an execution whose message PostgreSQL does not take."""

Request = TypeVar("Request")


async def in_halves(
    requests: Sequence[Request],
    make: Callable[[Sequence[Request]], Awaitable[None]],
    refuse: Callable[[Request, str], Awaitable[object]],
) -> None:
    """`make` all of them at once; where PostgreSQL refuses that, in halves, so that in the end each culprit is alone.

    A culprit goes to `refuse`, with what PostgreSQL said. Where that is refused as well, it is no fault of the message:
    then StoreError is raised.
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
    """Of executions and their ticks. One that no consumer ends is decided by that."""
    if not claimed:
        return
    ids, ticks = zip(*claimed, strict=True)
    records = await fetch(AddMessages(execution_ids=ids, ticks=ticks))
    decided = [(execution_id, tick) for execution_id, tick, awaited in records if not awaited]
    await _decide(fetch, decided, None, None)


async def refuse_messages(fetch: Fetch, claimed: Sequence[tuple[int, int]], error: str) -> None:
    """They are decided by the error that keeps their messages from being there."""
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
    """The executions of those that can't be ended now: their consumers hold the messages, or have ended them."""
    ids = [each.report.execution_id for each in requests if each.message is MessageFate.WITHDRAWN]
    if not ids:
        return set()
    records = await fetch(LockMessages(execution_ids=ids))
    return {execution_id for execution_id, locked, ended in records if ended or not locked}


async def delete_messages(fetch: Fetch, requests: Sequence[EndRequest]) -> None:
    """Of what has ended."""
    ids = [each.report.execution_id for each in requests if each.message is not MessageFate.NONE]
    if ids:
        await fetch(DeleteMessages(execution_ids=ids))
