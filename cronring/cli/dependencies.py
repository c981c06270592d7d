"""Jobs that run after others, as the commands tell of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Job
    from cronring.schema.module import Module


def followed(job: "Job") -> str:
    """The key of the job that it follows; "" for none."""
    return str(job.policy.get("after", ""))


def schedule_shown(job: "Job") -> str:
    """`after billing.close_month` in place of a schedule that says no more than `manual`."""
    return f"after {followed(job)}" if followed(job) else job.schedule


def followed_by_module(module: "Module") -> list[str]:
    """The keys of jobs of other modules that some of its verbs follow, each once."""
    from cronring.schema.keys import JobKey

    own = str(JobKey(module.namespace, module.name, ""))
    keys = [verb.policy.after for verb in module.verbs if verb.policy.after]
    return list(dict.fromkeys(key for key in keys if not key.startswith(own)))


async def warn_of_unknown(client: "AsyncClient", keys: Iterable[str]) -> None:
    """No error: the one that is followed may be deployed after the one that follows it."""
    from cronring.client import NotFound

    for key in keys:
        try:
            await client.jobs.get(key)
        except NotFound:
            message = f"warning: there is no job {key} yet: what follows it does not run until it is deployed"
            say(message, err=True)
