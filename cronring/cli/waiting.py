"""Waiting for what was asked for: a manual run's end, a backfill's last tick. Controllers are asked again and again."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from cronring.cli.printing import say
from cronring.client.errors import Unavailable, Unreachable

if TYPE_CHECKING:
    from datetime import datetime

    from cronring.client import AsyncClient
    from cronring.client.model import Activation, Execution

Answer = TypeVar("Answer")
Question = ParamSpec("Question")

POLL_S: Final = 0.2
AWAY_MAX_S: Final = 60.0  # a controller that dies, or a database that fails over, doesn't end the waiting
NOT_BEGUN_S: Final = 5.0  # after this, say why nothing seems to happen


async def wait_for_backfill(
    client: "AsyncClient", activation: "Activation", after_id: int, progress: Callable[[int], None]
) -> "Counter[str]":
    """Until its last tick has run: executions by outcome. `progress` is told how many ticks have begun.

    `after_id`: an execution's id from before the backfill was made.
    """
    total, left = activation.ticks_left, activation.ticks_left
    while left:
        waiting = await _patiently(client.jobs.activations, activation.job)
        left = next((each.ticks_left for each in waiting if each.id == activation.id), 0)
        progress(total - left)
        if left:
            await asyncio.sleep(POLL_S)
    while True:
        runs = await _patiently(_backfilled, client, activation, after_id)
        if all(run.outcome is not None for run in runs):
            return Counter(run.outcome or "" for run in runs)
        await asyncio.sleep(POLL_S)


async def begun(client: "AsyncClient", activation: "Activation") -> "Execution | None":
    """The execution of a manual run or a retry, once it has begun; None if it was cancelled before."""
    polls = 0
    while True:
        # In this order: it leaves the list with the statement that makes its execution.
        waiting = await _patiently(client.jobs.activations, activation.job)
        found = await _patiently(_of_activation, client, activation)
        if found is not None or all(each.id != activation.id for each in waiting):
            return found
        polls += 1
        if polls == round(NOT_BEGUN_S / POLL_S):
            say("still waiting to begin: another run of this job lasts, or no runner hosts it", err=True)
        await asyncio.sleep(POLL_S)


async def _of_activation(client: "AsyncClient", activation: "Activation") -> "Execution | None":
    runs = await client.executions.list(activation.job, since=activation.tick, until=activation.tick, limit=1_000)
    return next((run for run in runs if _belongs(run, activation)), None)


def _belongs(run: "Execution", activation: "Activation") -> bool:
    # Its attempt is counted at the claim: others may have come before.
    return run.trigger == activation.trigger and run.attempt >= activation.attempt


async def _backfilled(client: "AsyncClient", activation: "Activation", after_id: int) -> "list[Execution]":
    runs = await client.executions.list(activation.job, since=activation.tick, after_id=after_id, limit=None)
    return [run for run in runs if run.trigger == "backfill" and _at_most(run.tick, activation.until_tick)]


def _at_most(tick: "datetime | None", until: "datetime | None") -> bool:
    return tick is not None and until is not None and tick <= until


async def _patiently(
    ask: Callable[Question, Awaitable[Answer]], *question: Question.args, **named: Question.kwargs
) -> Answer:
    """What it answers. Raises Unavailable or Unreachable only once nobody has answered for AWAY_MAX_S."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + AWAY_MAX_S
    while True:
        try:
            return await ask(*question, **named)
        except (Unavailable, Unreachable):
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(POLL_S)
