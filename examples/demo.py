"""What `make demo` runs: short and long verbs, sync and async, one that fails now and then."""

import asyncio
import hashlib
import random
import time

from cronring import Context, cron, every


@cron("* * * * * *", timeout="10s")
async def heartbeat(ctx: Context) -> None:
    """Every second, and done at once: kill a controller, and see who takes the next ticks over."""
    print(f"tick {ctx.tick:%H:%M:%S}, {ctx.lateness.total_seconds() * 1000:.1f} ms late")


@every("7s")
async def fetch_prices(ctx: Context) -> None:
    """Waits for something slow, as most async verbs do."""
    await asyncio.sleep(random.uniform(0.1, 0.6))  # noqa: S311
    ctx.log.info("fetched %d prices", random.randint(90, 110))  # noqa: S311


@cron("*/5 * * * * *")
def build_report(ctx: Context) -> None:
    """A sync verb: it may compute as long as it likes, in a process of its own."""
    digest = b"cronring"
    began = time.monotonic()
    for _ in range(200_000):
        digest = hashlib.sha256(digest).digest()
    print(f"report {digest.hex()[:8]} for {ctx.tick:%H:%M:%S} took {time.monotonic() - began:.2f} s")


@cron("*/10 * * * * *")
async def flaky_import() -> None:
    """Fails one time in three."""
    await asyncio.sleep(0.05)
    if random.random() < 1 / 3:  # noqa: S311
        raise ConnectionError("the supplier's server hung up; the next tick tries again")
    print("imported 12 rows")


@cron("*/10 * * * * *", timeout="1m", on_disconnect="finish")
async def long_export(ctx: Context) -> None:
    """Runs for 14 seconds, every 10: each second tick falls into the run before, and is skipped as `overlap`."""
    for part in range(1, 8):
        await asyncio.sleep(2)
        ctx.log.info("exported part %d of 7", part)


@cron("0 * * * * *")
def clean_up(ctx: Context) -> None:
    """Once a minute, on the minute."""
    print(f"cleaned up after {ctx.tick:%H:%M}")
