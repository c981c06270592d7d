"""What the console shows: runs that end in each way, and texts that try to be more than text."""

import asyncio

from cronring import Context, cron, every

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\x1b[31mred\x1b[0m\x1b]8;;http://x/\x07link\u202egnp.exe"


@every("1s")
async def sells() -> None:
    """Each second."""


@every("2s")
async def fails() -> None:
    """Each time, with what an attacker would write."""
    raise ConnectionRefusedError(EVIL)


@every("2s")
async def fails_as_well() -> None:
    """By the same cause."""
    raise ConnectionRefusedError("nobody listens there")


@cron("0 0 1 1 *", timeout="10m")
def prints() -> None:
    """When it is told to."""
    print(EVIL)
    print("\x1b[1;32mgreen and bold\x1b[0m")
    print("the last line")


@cron("0 0 1 1 *", timeout="10m")
async def lasts(ctx: Context) -> None:
    """Until it is cancelled."""
    for number in range(600):
        ctx.log.info("part %d", number)
        await asyncio.sleep(1)
