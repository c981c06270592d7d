"""A verb that jobs are made of by hand: cronring jobs create crawl.site --name docs --every 30m --payload ..."""

from dataclasses import dataclass

from cronring import Context, verb


@dataclass
class Site:
    """What a job of it needs to know."""

    url: str


@verb
def site(ctx: Context, site: Site) -> None:
    ctx.log.info("crawling %s", site.url)
