"""What a mail service runs. Sleeps stand for work."""

import asyncio

from cronring import cron, every


@every("3s")
async def deliver() -> None:
    """What waits."""
    await asyncio.sleep(0.3)


@cron("0 7 * * 1-5", timezone="Europe/Berlin")
async def digest() -> None:
    """On workdays."""
    await asyncio.sleep(1)


@cron("0 * * * *")
async def bounces() -> None:
    """Each hour."""
    await asyncio.sleep(1)
