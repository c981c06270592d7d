"""Which job follows which, as deployments and orders need it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cronring.controller.core.orders.redeploy import Added, Carried
from cronring.schema.after import cycle_fault, cycle_of
from cronring.schema.keys import JobKey
from cronring.schema.module import Module
from cronring.schema.policy import parse_policy


def declared(module: Module) -> dict[str, str]:
    """Which jobs a module's jobs follow: key of the follower -> key of the followed job."""
    return {
        str(JobKey(module.namespace, module.name, verb.name)): verb.policy.after
        for verb in module.verbs
        if verb.schedule and verb.policy.after
    }


def followed(planned: Iterable[Added | Carried]) -> dict[str, str]:
    """The same, of jobs that are planned."""
    follows = ((job.key, parse_policy(job.spec.policy).after) for job in planned if job.spec.policy)
    return {key: after for key, after in follows if after}


class Circle(NamedTuple):
    """Jobs that would follow each other in a circle, by their keys."""

    message: str
    keys: list[str]


def circles(after: Mapping[str, str], follows: Mapping[str, str]) -> dict[str, Circle]:
    """The jobs that would close a circle, by key. The others may follow as wanted.

    `after`: follower -> followed, as it is. `follows`: the changes in order; "" for none.
    """
    as_it_is, closing, followed_by_any = dict(after), dict[str, Circle](), set(after.values())
    for key, followed_key in follows.items():
        before = as_it_is.pop(key, "")
        if followed_key:
            as_it_is[key] = followed_key
        # A job without followers can only follow itself. So long chains aren't walked for each of their jobs.
        cycle = cycle_of(key, as_it_is) if key in followed_by_any or key == followed_key else []
        if cycle:
            closing[key] = Circle(cycle_fault(cycle), cycle)
            as_it_is[key] = before
        followed_by_any.add(followed_key)
    return closing
