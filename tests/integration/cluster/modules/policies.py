"""A verb for each policy that shows within seconds. Each run writes a line of JSON: what it was told, and when."""

import asyncio
import json
import os
import time
from dataclasses import dataclass

from cronring import Context, cron, every, manual, once, verb

JOURNAL = os.environ["JOURNAL"]
ONCE_AT = os.environ["ONCE_AT"]


def note(ctx: Context, **more: object) -> None:
    line = {
        "job": ctx.job, "tick": ctx.tick.timestamp(), "run_at": ctx.run_at.timestamp(), "trigger": ctx.trigger,
        "attempt": ctx.attempt, "missed": ctx.missed, "at": time.time(), "zone": ctx.local_tick.isoformat(),
        "previous_tick": ctx.previous_tick and ctx.previous_tick.timestamp(),
        "previous_success": ctx.previous_success and ctx.previous_success.timestamp(),
        "id": ctx.execution_id, "traceparent": ctx.traceparent, **more,
    }  # fmt: skip
    with open(JOURNAL, "a") as journal:
        journal.write(json.dumps(line) + "\n")


@cron("* * * * * *", timezone="Asia/Kathmandu")
def plain(ctx: Context) -> None:
    note(ctx)


@cron("*/2 * * * * *", retries=2, backoff="500ms", retry_on=[ConnectionError])
def retried(ctx: Context) -> None:
    note(ctx)
    if ctx.attempt < 3:
        raise ConnectionError("not yet")


@every("1s", retries=3, backoff="10s", pause_after_failures=3)
def failing(ctx: Context) -> None:
    note(ctx)
    raise ValueError("always")


@every("1s", overlap="buffer_one")
async def buffered(ctx: Context) -> None:
    note(ctx, step="begin")
    await asyncio.sleep(2.5)
    note(ctx, step="end")


@every("2s", overlap="cancel_running")
async def cut(ctx: Context) -> None:
    note(ctx, step="begin")
    await asyncio.sleep(30)


@every("1s", overlap="allow", max_concurrent=2)
async def beside(ctx: Context) -> None:
    note(ctx, step="begin")
    await asyncio.sleep(3.5)
    note(ctx, step="end")


@every("1s", window="00:00-00:01", timezone="Pacific/Apia", start_at="2020-01-01", end_at="2090-01-01")
def hardly(ctx: Context) -> None:
    note(ctx)


@every("2s", jitter="+-800ms")
def spread(ctx: Context) -> None:
    note(ctx)


@every("1s")
def follows(ctx: Context) -> None:
    note(ctx)
    ctx.next_in("3s")


@every("1s", on_missed="run_all")
def each(ctx: Context) -> None:
    note(ctx)


@once(run_at=ONCE_AT)
def only(ctx: Context) -> None:
    note(ctx)


@manual
def by_hand(ctx: Context) -> None:
    note(ctx)


@dataclass
class Order:
    customer: str
    amount: int = 1


@verb
def order(ctx: Context, what: Order) -> None:
    note(ctx, customer=what.customer, amount=what.amount)
