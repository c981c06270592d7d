"""Finding jobs and verbs by name; where there is none, the answer says what comes nearest."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from cronring.controller.api.requests import required
from cronring.controller.errors import NotFound
from cronring.controller.ports.reads import DeploymentFilter, JobFilter, JobRow, Reads
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import Module, Verb
from cronring.schema.nearest import nearest as nearest_of
from cronring.schema.text import parse_module

_LOOKED_THROUGH: Final = 1_000  # names, for the nearest one
_NAMED: Final = 5
_TEXTS_CACHED: Final = 32  # a module may be megabytes
_JOB_KEY: Final = "a job's key, like module.verb or module.verb:name"


async def find_job(reads: Reads, key: str) -> JobRow:
    """Raises InvalidRequest for an empty key, and NotFound with the nearest one of the same module."""
    required("key", key, _JOB_KEY)
    try:
        return await reads.get_job(key)
    except NotFound:
        raise await unknown_job(reads, key) from None


async def unknown_job(reads: Reads, key: str) -> NotFound:
    """What to raise for a key that no job has: it names the nearest one of the same module."""
    namespace, module = _module_of(key)
    rows = await reads.list_jobs(JobFilter(namespace=namespace, module=module), "", _LOOKED_THROUGH)
    rows = rows or await reads.list_jobs(JobFilter(namespace=namespace), "", _LOOKED_THROUGH)
    return NotFound(
        f"there is no job {key!r}{nearest(key, (row.key for row in rows))}; `cronring jobs list` shows them"
    )


async def find_module(reads: Reads, namespace: str, name: str) -> Module:
    """The active version of a module. Raises NotFound, naming what is active."""
    where = DeploymentFilter(namespace=namespace, module=name, active_only=True)
    rows = await reads.list_deployments(where, 0, 1)
    if rows:
        return _parsed(rows[0].schema_text)
    active = await reads.list_deployments(DeploymentFilter(namespace=namespace, active_only=True), 0, _LOOKED_THROUGH)
    raise NotFound(
        f"no module {name!r} is active in namespace {namespace!r}{nearest(name, (row.module for row in active))}; "
        "deploy it: cronring deploy FILE, or cronring runner FILE"
    )


async def find_module_of(reads: Reads, row: JobRow) -> Module:
    """The version by which a job is judged: the active one; of an orphaned job, the last that had its verb.

    Raises NotFound.
    """
    if row.orphaned_at is None:
        return await find_module(reads, row.namespace, row.module)
    return _parsed((await reads.get_deployment(row.deployment)).schema_text)


def find_verb(module: Module, name: str) -> Verb:
    """Raises NotFound, naming the verbs that are there."""
    for verb in module.verbs:
        if verb.name == name:
            return verb
    raise NotFound(f"module {module.name!r} has no verb {name!r}{nearest(name, (verb.name for verb in module.verbs))}")


def nearest(name: str, known: Iterable[str]) -> str:
    """`: did you mean 'x'?`, or the first few of what there is; to stand after "there is no ...\""""
    names = list(dict.fromkeys(known))
    close = nearest_of(name, names)
    if close:
        return f" (did you mean {close[0]!r}?)"
    if not names:
        return " (there is none at all)"
    more = ", ..." if len(names) > _NAMED else ""
    return f" (there are {', '.join(names[:_NAMED])}{more})"


def _module_of(key: str) -> tuple[str, str]:
    namespace, slash, short = key.rpartition("/")
    return (namespace if slash else DEFAULT_NAMESPACE), short.partition(".")[0]


@lru_cache(maxsize=_TEXTS_CACHED)
def _parsed(schema_text: str) -> Module:
    return parse_module(schema_text)
