"""What the tests of jobs made through the API run: verbs without a schedule of their own."""

import asyncio
from dataclasses import dataclass

from cronring import Context, manual, verb


@dataclass
class Site:
    url: str
    depth: int = 1
    takes_s: float = 0.0


@verb
async def site(ctx: Context, site: Site) -> None:
    """Says what it was given and why it runs, and fails for a site that is down."""
    print(f"{ctx.trigger} {ctx.tick:%Y-%m-%dT%H:%M:%SZ} {site.url} to depth {site.depth}")
    await asyncio.sleep(site.takes_s)
    if site.url == "down":
        raise ConnectionError("the site is down")


@manual
async def sweep(ctx: Context) -> None:
    print(f"swept by {ctx.trigger}")
