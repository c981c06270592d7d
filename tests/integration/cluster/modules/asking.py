"""Verbs that change jobs, and note what became of that."""

import asyncio
import json
import os
import time
from pathlib import Path

from cronring import Context, JobKey, JobsError, manual, verb

JOURNAL = Path(os.environ["JOURNAL"])


def note(ctx: Context, what: str) -> None:
    with JOURNAL.open("a") as journal:
        journal.write(json.dumps({"execution": ctx.execution_id, "attempt": ctx.attempt, "what": what}) + "\n")


@verb
def invoice(ctx: Context, payload: dict[str, int]) -> None:
    note(ctx, f"invoiced {payload['id']}")


def make(ctx: Context, within: float = 60) -> JobKey:
    return ctx.jobs.create("asking.invoice", "c1", cron="0 6 1 1 *", payload={"id": 1}, note="signed up", within=within)


@manual(timeout="5m", on_disconnect="finish")
def signup(ctx: Context) -> None:
    key = make(ctx)
    ctx.jobs.run(key, payload={"id": 2}, within=60)
    note(ctx, f"made {key}")


@manual(timeout="5m")
async def signup_async(ctx: Context) -> None:
    keys = await asyncio.gather(
        *(ctx.jobs.create("asking.invoice", f"d{i}", every="30d", payload={"id": i}, within=60) for i in range(20))
    )
    note(ctx, f"made {len(set(keys))}")


@manual(timeout="5m", on_disconnect="finish")
def gated(ctx: Context) -> None:
    """It begins, waits to be let go, and tries for a short and then for a long time."""
    note(ctx, "begun")
    while not JOURNAL.with_name("go").exists():
        time.sleep(0.01)
    for within in (3, 120):
        try:
            note(ctx, f"made {make(ctx, within)}")
        except JobsError as error:
            note(ctx, f"{type(error).__name__} {error.reason}: {error}")


@manual(timeout="5m", retries=1, backoff="1s")
def fails_once(ctx: Context) -> None:
    ctx.jobs.run(make(ctx))
    if ctx.attempt == 1:
        raise ValueError("the first attempt fails after its calls")
    note(ctx, "made again")
