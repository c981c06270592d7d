"""Verbs that run until they are told to stop, and some that don't listen."""

import asyncio
import json
import os
import time

from cronring import Context, cron, manual

JOURNAL = os.environ["JOURNAL"]


def write(ctx: Context, step: str) -> None:
    line = {"job": ctx.job, "execution": ctx.execution_id, "attempt": ctx.attempt, "step": step, "at": time.time()}
    with open(JOURNAL, "a") as journal:
        journal.write(json.dumps(line) + "\n")


@manual
async def patient(ctx: Context) -> None:
    write(ctx, "begin")
    for number in range(10_000):
        print(f"line {number}")
        await asyncio.sleep(0.05)


@manual
async def stubborn(ctx: Context) -> None:
    """Ignores its cancellation."""
    write(ctx, "begin")
    while True:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            print("not me")


@manual
def spinning(ctx: Context) -> None:
    """Holds the CPU, and catches what it can."""
    write(ctx, "begin")
    while True:
        try:
            sum(range(1000))
        except BaseException as stop:
            print(f"not me: {stop!r}")


@manual
def loud(ctx: Context) -> None:
    """Prints as fast as it can, for a second."""
    write(ctx, "begin")
    block, ends = "x" * 99 + "\n", time.monotonic() + 1
    while time.monotonic() < ends:
        print(block * 1_000, end="")
    print("the end")


@manual(retries=3, backoff="1s")
async def failing(ctx: Context) -> None:
    write(ctx, "begin")
    await asyncio.sleep(0.2)
    raise ValueError("on purpose")


@manual
async def flaky(ctx: Context) -> None:
    """Fails until its second attempt."""
    write(ctx, "begin")
    print(f"attempt {ctx.attempt} of {ctx.tick.isoformat()}")
    if ctx.attempt == 1:
        raise ValueError("the first time")


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    assert ctx.fence == ctx.execution_id
