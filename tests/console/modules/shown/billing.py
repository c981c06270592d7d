"""What a billing service runs. Its payments' supplier is away, so two verbs fail by one cause.

Sleeps stand for work.
"""

import asyncio
from dataclasses import dataclass

from cronring import Context, cron, every


@dataclass
class Charge:
    """What one run charges."""

    customer: str = "all"
    limit: int = 500


@every("10s", payload={"customer": "all", "limit": 500})
async def charge_cards(charge: Charge) -> None:
    """Charge what is due."""
    await asyncio.sleep(0.4)
    print(f"charging {charge.customer}, at most {charge.limit}")
    raise ConnectionRefusedError("payments.example: connection refused")


@every("10s")
async def send_invoices() -> None:
    """To who was charged."""
    await asyncio.sleep(0.2)
    raise ConnectionRefusedError("payments.example: connection refused")


@cron("30 1 * * *", timezone="Europe/Berlin", timeout="10m", retries=3, on_missed="run_last")
async def close_day(ctx: Context) -> None:
    """Close the books of the day before."""
    for part in range(1, 200):
        ctx.log.info("closed the books of branch %d", part)
        print(f"\x1b[32mbranch {part:3}\x1b[0m  {part * 37 % 900:5} entries")
        await asyncio.sleep(1)


@every("5s")
async def refresh_rates() -> None:
    """Exchange rates."""
    await asyncio.sleep(0.1)
