"""Write a verb, put a schedule on it. Standard library only: this is what runs inside an author's own process.

from cronring import Context, cron, every, verb

@cron("0 6 1 * *", timeout="5m")
async def close_month(ctx: Context) -> None: ...
"""

from cronring.context import Context, VerbStopped
from cronring.declare import cron, every, manual, once, verb

__all__ = ["Context", "VerbStopped", "cron", "every", "manual", "once", "verb"]
