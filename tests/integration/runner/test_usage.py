"""What a run used, and what it says of itself by `ctx.report`."""

import json

from tests.integration.runner.conftest import OpenStage


async def test_what_a_run_used_and_said_of_itself_is_kept(open_stage: OpenStage) -> None:
    stage = await open_stage(
        """
import asyncio, time
from cronring import Context, cron

def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

@cron("* * * * *")
def alone(ctx: Context):
    burn(0.2)
    held = bytearray(b"x" * (64 << 20))
    ctx.report(items=len(held), name="first")
    ctx.report(name="last", share=0.5)

@cron("* * * * *")
def after():
    pass

@cron("* * * * *")
async def shared(ctx: Context):
    burn(0.2)
    await asyncio.sleep(0.05)
    await asyncio.create_task(asyncio.sleep(0))
    ctx.report(done=True)

@cron("* * * * *")
def wrong(ctx: Context):
    for bad in ({"a": object()}, {"b": float("nan")}, {"c": "x" * 201}, {f"k{n}": "y" * 190 for n in range(30)}):
        try:
            ctx.report(**bad)
        except (TypeError, ValueError) as error:
            print(type(error).__name__)
"""
    )
    alone = await stage.run("alone")
    assert json.loads(alone.metrics) == {"items": 64 << 20, "name": "last", "share": 0.5}
    assert 200_000 <= (alone.cpu_us or 0) < 5_000_000
    assert (alone.memory_peak_bytes or 0) > 64 << 20
    assert alone.memory_shared is False
    after = await stage.run("after")
    assert (after.cpu_us or 0) < 200_000, "of the run before nothing"
    shared = await stage.run("shared")
    assert (shared.memory_shared, shared.metrics) == (True, '{"done":true}')
    assert 200_000 <= (shared.cpu_us or 0) < 5_000_000
    wrong = await stage.run("wrong")
    assert (wrong.metrics, wrong.output.split()) == ("", ["TypeError", "ValueError", "ValueError", "ValueError"])
