"""Finding jobs and verbs by name; where there is none, the answer says what comes nearest."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import required
from cronring.controller.api.scope import admit, require, sees
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.reads import DeploymentFilter, ExecutionRow, JobFilter, JobReads, JobRow, Reads
from cronring.schema.identity import Permission
from cronring.schema.keys import namespace_of
from cronring.schema.module import Module, Verb
from cronring.schema.nearest import nearest
from cronring.schema.queues import queue_of, queue_verb
from cronring.schema.text import SchemaError, parse_module

_LOOKED_THROUGH: Final = 1_000  # names, for the nearest one
_SHOWN: Final = 5
_TEXTS_CACHED: Final = 32  # a module may be megabytes
_JOB_KEY: Final = "a job's key, like module.verb or module.verb:name"


async def find_job(reads: JobReads, key: str, permission: Permission, field: str = "key") -> JobRow:
    """Raises InvalidRequest for an empty key, NotFound with the nearest one of the same module, and Forbidden."""
    required(field, key, _JOB_KEY)
    if not sees(key):
        raise await unknown_job(reads, key)
    try:
        row = await reads.get_job(key)
    except NotFound:
        raise await unknown_job(reads, key) from None
    require(permission, row.namespace)
    return row


async def unknown_job(reads: JobReads, key: str) -> NotFound:
    """What to raise for a key that no job has: it names the nearest one of the same module that the caller may view."""
    namespace, module = _module_of(key)
    if not sees(key):
        return no_job(key)
    rows = await reads.list_jobs(JobFilter(namespace=namespace, module=module), "", _LOOKED_THROUGH)
    rows = rows or await reads.list_jobs(JobFilter(namespace=namespace), "", _LOOKED_THROUGH)
    return no_job(key, (row.key for row in rows))


def no_job(key: str, known: Iterable[str] = ()) -> NotFound:
    """What to raise for a key that no job has. `known`: keys, one of which may have been meant."""
    return NotFound(f"there is no job {key!r}{suggestion(key, known)}; `cronring jobs list` shows them")


def admit_to_job(key: str) -> None:
    """To be called before a store looks for a job ("": any). Raises NotFound, in the store's words."""
    if key:
        admit(Permission.VIEW, key, NotFound(f"there is no job {key!r}; `cronring jobs list` shows them"))


def admit_to_deployment(key: str, permission: Permission) -> None:
    """Before a store looks for it. Raises NotFound, in its words, and Forbidden."""
    admit(permission, key, NotFound(f"there is no deployment {key!r}; `cronring deployments list` shows them"))


async def find_execution(reads: Reads, execution_id: int, permission: Permission) -> ExecutionRow:
    """Raises NotFound, Forbidden."""
    row = await reads.get_execution(execution_id)
    unknown = NotFound(f"there is no execution {execution_id}; `cronring executions list` shows them")
    admit(permission, row.job, unknown)
    return row


def check_followed(field: str, after: str) -> None:
    """`after`: the job to follow, "" for none. Raises InvalidRequest if the caller may not view that job.

    A follower learns of every tick of the other job. So this is refused whether that job exists or not.
    """
    if after and not sees(after):
        raise InvalidRequest([(field, f"names {after!r}, and you may view no such job")])


async def find_module(reads: JobReads, namespace: str, name: str) -> Module:
    """The active version of a module. Raises NotFound, naming what is active. A queue needs no version."""
    if queue_of(name):
        return Module(name, namespace=namespace)
    where = DeploymentFilter(namespace=namespace, module=name, active_only=True)
    rows = await reads.list_deployments(where, 0, 1)
    if rows:
        return parsed_module(rows[0].schema_text)
    active = await reads.list_deployments(DeploymentFilter(namespace=namespace, active_only=True), 0, _LOOKED_THROUGH)
    raise NotFound(
        f"no module {name!r} is active in namespace {namespace!r}{suggestion(name, (row.module for row in active))}; "
        "deploy it: cronring deploy FILE, or cronring runner FILE"
    )


async def find_module_of(reads: JobReads, row: JobRow) -> Module:
    """The version by which a job is judged: the active one; of an orphaned job, the last that had its verb.

    Raises NotFound.
    """
    if row.orphaned_at is None:
        return await find_module(reads, row.namespace, row.module)
    return parsed_module((await reads.get_deployment(row.deployment)).schema_text)


def find_verb(module: Module, name: str) -> Verb:
    """Raises NotFound, naming the verbs that are there."""
    if queue_of(module.name):
        return queue_verb(name)
    for verb in module.verbs:
        if verb.name == name:
            return verb
    raise NotFound(
        f"module {module.name!r} has no verb {name!r}{suggestion(name, (verb.name for verb in module.verbs))}"
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or the first few of `known`; to stand after "there is no ...\""""
    names = list(dict.fromkeys(known))
    close = nearest(name, names)
    if close:
        return f" (did you mean {close!r}?)"
    if not names:
        return " (there is none at all)"
    more = ", ..." if len(names) > _SHOWN else ""
    return f" (there are {', '.join(names[:_SHOWN])}{more})"


def _module_of(key: str) -> tuple[str, str]:
    return namespace_of(key), key.rpartition("/")[2].partition(".")[0]


@lru_cache(maxsize=_TEXTS_CACHED)
def parsed_module(schema_text: str) -> Module:
    """Raises Conflict: a newer release may have deployed what this one can't read."""
    try:
        return parse_module(schema_text)
    except SchemaError as error:
        raise Conflict(
            f"this version of the module was deployed by a newer release ({error}): ask a controller of that release,"
            " or deploy the module by this one"
        ) from None
