"""Dependencies between jobs, as far as deployments and orders are concerned: which job is to follow which."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cronring.controller.core.orders.redeploy import Added, Carried
from cronring.schema.after import cycle_fault, cycle_of
from cronring.schema.keys import JobKey
from cronring.schema.module import Module
from cronring.schema.policy import parse_policy


def declared(module: Module) -> dict[str, str]:
    """By the key of each job of a module that follows another one, the key of that."""
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
    """Of jobs that would follow each other, by key."""

    message: str
    keys: list[str]


def circles(after: Mapping[str, str], follows: Mapping[str, str]) -> dict[str, Circle]:
    """Those of these jobs, by key, with which a circle would close; the others follow as they are to.

    `after`: who follows whom by now. `follows`: what one after the other is to follow, "" for none.
    """
    as_it_is, closing, followed_by_any = dict(after), dict[str, Circle](), set(after.values())
    for key, followed_key in follows.items():
        before = as_it_is.pop(key, "")
        if followed_key:
            as_it_is[key] = followed_key
        # Whom nobody follows closes no circle, but one of itself: chains of thousands aren't walked for each of them.
        cycle = cycle_of(key, as_it_is) if key in followed_by_any or key == followed_key else []
        if cycle:
            closing[key] = Circle(cycle_fault(cycle), cycle)
            as_it_is[key] = before
        followed_by_any.add(followed_key)
    return closing
