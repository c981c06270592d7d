"""Completion of job keys while the user types. It must be quick, and it must never print an error."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

TIMEOUT_S: Final = 0.8


def job_key(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """Keys of jobs that begin with what was typed; none when no controller answers at once."""
    import asyncio

    from cronring.cli.options import Addresses
    from cronring.client.errors import ClientError

    given = ctx.params.get("controllers")
    addresses = Addresses().convert(given, param, ctx) if given else ("127.0.0.1:7400",)
    try:
        return asyncio.run(_keys(addresses, incomplete))
    except (ClientError, TimeoutError):
        return []


async def _keys(addresses: tuple[str, ...], prefix: str) -> list[str]:
    import asyncio

    from cronring.client import Client

    async with asyncio.timeout(TIMEOUT_S), Client(addresses, timeout_s=TIMEOUT_S / 2) as client:
        return [job.key for job in await client.jobs.list(limit=1000) if job.key.startswith(prefix)]
