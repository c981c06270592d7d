"""Dependencies between jobs, as far as deployments and orders are concerned: which job is to follow which."""

from collections.abc import Iterable

from cronring.controller.core.orders.redeploy import Added, Carried
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
