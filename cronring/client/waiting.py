"""Waiting for the run of an activation to begin. Controllers are asked again and again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from cronring.client.executions import ExecutionCalls
from cronring.client.model import Activation, Execution
from cronring.client.patience import patiently

POLL_S: Final = 0.2
NOT_BEGUN_S: Final = 5.0  # after this, somebody may want to know why nothing seems to happen


async def begun(
    activations: Callable[[str], Awaitable[Sequence[Activation]]],
    executions: ExecutionCalls,
    activation: Activation,
    waits: Callable[[], None] = lambda: None,
) -> Execution | None:
    """The execution of a manual run or a retry, once it has begun; None if it was cancelled before.

    `activations`: as `jobs.activations`. `waits` is told once, where that takes some seconds.
    """
    polls = 0
    while True:
        # In this order: it leaves the list with the statement that makes its execution.
        waiting = await patiently(activations, activation.job)
        found = await patiently(_of_activation, executions, activation)
        if found is not None or all(each.id != activation.id for each in waiting):
            return found
        polls += 1
        if polls == round(NOT_BEGUN_S / POLL_S):
            waits()
        await asyncio.sleep(POLL_S)


async def _of_activation(executions: ExecutionCalls, activation: Activation) -> Execution | None:
    runs = await executions.list(activation.job, since=activation.tick, until=activation.tick, limit=1_000)
    return next((run for run in runs if _belongs(run, activation)), None)


def _belongs(run: Execution, activation: Activation) -> bool:
    # Its attempt is counted at the claim: others may have come before.
    return run.trigger == activation.trigger and run.attempt >= activation.attempt
