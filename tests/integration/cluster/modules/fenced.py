"""A verb that keeps a book of its own in the cluster's database, and commits only while its execution is the holder."""

import asyncio
import json
import os
from pathlib import Path

import asyncpg

from cronring import Context, manual

JOURNAL = Path(os.environ["JOURNAL"])


def write(ctx: Context, step: str) -> None:
    with JOURNAL.open("a") as journal:
        journal.write(json.dumps({"execution": ctx.execution_id, "step": step}) + "\n")


@manual(timeout="1s", on_disconnect="finish")
def invoice(ctx: Context) -> None:
    asyncio.run(invoiced(ctx))


async def invoiced(ctx: Context) -> None:
    connection = await asyncpg.connect(os.environ["BOOKS"])
    try:
        async with connection.transaction():
            assert await connection.fetchval("SELECT cronring.cron_fence_commit($1, $2)", ctx.job, ctx.fence)
            await connection.execute("INSERT INTO invoices VALUES ($1)", ctx.fence)
            write(ctx, "written")
            if not JOURNAL.with_name("quick").exists():
                while not JOURNAL.with_name("go").exists():
                    await asyncio.sleep(0.01)
        write(ctx, "committed")
    except asyncpg.ObjectNotInPrerequisiteStateError:
        write(ctx, "refused")
    finally:
        await connection.close()
