"""Waiting for a backfill's last tick. Controllers are asked again and again."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cronring.client.patience import patiently

if TYPE_CHECKING:
    from datetime import datetime

    from cronring.client import AsyncClient
    from cronring.client.model import Activation, Execution

POLL_S: Final = 0.2


async def wait_for_backfill(
    client: "AsyncClient", activation: "Activation", after_id: int, progress: Callable[[int], None]
) -> "Counter[str]":
    """Until its last tick has run: executions by outcome. `progress` is told how many ticks have begun.

    `after_id`: an execution's id from before the backfill was made.
    """
    total, left = activation.ticks_left, activation.ticks_left
    while left:
        waiting = await patiently(client.jobs.activations, activation.job)
        left = next((each.ticks_left for each in waiting if each.id == activation.id), 0)
        progress(total - left)
        if left:
            await asyncio.sleep(POLL_S)
    while True:
        runs = await patiently(_backfilled, client, activation, after_id)
        if all(run.outcome is not None for run in runs):
            return Counter(run.outcome or "" for run in runs)
        await asyncio.sleep(POLL_S)


async def _backfilled(client: "AsyncClient", activation: "Activation", after_id: int) -> "list[Execution]":
    runs = await client.executions.list(activation.job, since=activation.tick, after_id=after_id, limit=None)
    return [run for run in runs if run.trigger == "backfill" and _at_most(run.tick, activation.until_tick)]


def _at_most(tick: "datetime | None", until: "datetime | None") -> bool:
    return tick is not None and until is not None and tick <= until
