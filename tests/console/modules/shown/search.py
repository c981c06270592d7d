"""What a search service runs. Sleeps stand for work."""

import asyncio

from cronring import cron, every


@every("4s")
async def reindex() -> None:
    """Takes longer than its interval now and then."""
    await asyncio.sleep(5)


@every("2s")
async def refresh() -> None:
    """Quick."""
    await asyncio.sleep(0.05)


@cron("*/15 * * * *", jitter="2m")
async def sitemap() -> None:
    """For crawlers."""
    await asyncio.sleep(1)


@cron("0 3 * * 0", timezone="America/New_York")
async def compact() -> None:
    """Once a week."""
    await asyncio.sleep(2)
