"""Verbs that run into their timeout, or not."""

import asyncio

from cronring import every


@every("1h", jitter="off", timeout="4s")
async def stuck() -> None:
    await asyncio.Event().wait()


@every("1h", jitter="off", timeout="1h")
async def patient() -> None:
    pass
