"""`cronring why`: why a tick ran, or not."""

from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.conversation import ask, job_keys, or_nearest, page_url
from cronring.cli.instants import instant_option, resolved
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import jsonable, print_json
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Why


@click.command("why")
@click.argument("job", shell_complete=job_key)
@instant_option("--at", zone="the job's", help="The tick due at this instant; else the latest that was due")
@output_option
@controllers_option
def why(job: str, at: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Say why a tick of JOB (its key) ran, or not: what was due, what happened, who decided, and what comes next.

    Any instant will do: where no tick was due, the answer says what was going on then, and names the ticks next to it.
    It comes from the books alone, so it is the same from every controller, and for jobs that have been removed.

    \b
    Examples:
      cronring why billing.close_month
      cronring why billing.close_month --at 2026-11-01T06:00
      cronring why crawl.site:docs --at -2h -o json
    """

    from cronring.schema.instant import to_us
    from cronring.schema.pages import job_page

    async def question(client: "AsyncClient") -> "tuple[Why, str]":
        found = await or_nearest(client.ledger.why(job), "job", job, lambda: job_keys(client))
        instant = None if at is None else resolved(at, found.timezone)
        if instant is not None:
            found = await client.ledger.why(job, instant)
        return found, await page_url(client, job_page(job, None if instant is None else to_us(instant)))

    answer, url = ask(controllers, question)
    if output == "json":
        print_json(jsonable(answer) | {"url": url})
        return
    for sentence in answer.sentences:
        say(sentence)
    if url:
        say(f"console: {url}")
