"""What jobs of the contract run: it does what its url says, and notes what it was given."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from cronring import Context, manual, verb


@manual(timeout="2s")
async def fetch(ctx: Context, site: dict[str, Any]) -> None:
    folder = Path(os.environ["CRAWLED"])
    name = f"{ctx.job.rpartition(':')[2]}-{ctx.execution_id}"
    (folder / name).write_text(json.dumps({"payload": site, "attempt": ctx.attempt}))
    what = site.get("url", "").rpartition("/")[2]
    if what == "counts":
        ctx.report(items_crawled=12, items_indexed=7.5, pages_failed=2)
    elif what == "fails":
        raise ValueError("the site is closed")
    elif what == "hangs":
        await asyncio.sleep(600)
    elif what == "waits":  # until the test says so
        while not (folder / "go").exists():
            await asyncio.sleep(0.02)
    elif what == "recovers" and not (folder / "open").exists():
        raise ValueError("not yet")


@verb
def sweep() -> None:
    """Takes nothing."""
