"""Many jobs to make at once. The modules and templates that they name are read once; each job is judged by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from cronring.controller.api.job_specs import Defaults, new_job
from cronring.controller.api.job_writes import AT_NOW, check_names
from cronring.controller.api.lookup import check_followed, find_module, find_verb
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.scope import require
from cronring.controller.api.template_specs import find_template, started_from
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import CronringError, NotFound
from cronring.controller.ports.many import NewJob
from cronring.controller.ports.reads import Reads
from cronring.controller.ports.templates import TemplateRow, Templates
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE, JobKey
from cronring.schema.module import Module
from cronring.schema.policy import parse_policy

MODULES_MAX: Final = 100  # of one call: each is locked until its transaction ends
PAYLOADS_MAX: Final = 32 * 1024 * 1024  # bytes, of templates

T = TypeVar("T")


class LookedUp(NamedTuple):
    """The modules and templates that a call's items name, or why one is not found."""

    modules: Mapping[tuple[str, str], Module | NotFound]
    templates: Mapping[tuple[str, str], TemplateRow | NotFound]


class NewJobs:
    """Reads what the jobs of a call name, and judges each."""

    def __init__(self, reads: Reads, templates: Templates, defaults: Defaults) -> None:
        self._reads = reads
        self._templates = templates
        self._defaults = defaults

    async def given(self, items: Sequence[jobs_pb2.CreateJobRequest]) -> LookedUp:
        """Raises Forbidden, and InvalidRequest for too many modules. Malformed names are not looked up."""
        items = await asyncio.to_thread(_named, items)
        for namespace in sorted({namespace_of_item(item) for item in items}):
            require(Permission.OPERATE, namespace)
        modules = sorted({(namespace_of_item(item), item.module) for item in items})
        if len(modules) > MODULES_MAX:
            raise InvalidRequest([("jobs", f"are of {len(modules)} modules; at most {MODULES_MAX} in a call")])
        templates = sorted({(namespace_of_item(item), item.template) for item in items if item.template})
        if len(templates) > MODULES_MAX:
            raise InvalidRequest(
                [("jobs", f"start from {len(templates)} templates; at most {MODULES_MAX} in one call")]
            )
        given = LookedUp(
            {of: await or_not_found(find_module(self._reads, *of)) for of in modules},
            {of: await or_not_found(find_template(self._templates, *of)) for of in templates},
        )
        _check_payloads(items, given)
        return given

    def judged(self, item: jobs_pb2.CreateJobRequest, given: LookedUp, module: Module | None = None) -> NewJob:
        """`module`: by which it is judged, if not by the active version. Raises InvalidRequest, NotFound."""
        check_item(item)
        check_names(item)
        module = module or there(given.modules[namespace_of_item(item), item.module])
        verb = find_verb(module, item.verb)
        template = there(given.templates[namespace_of_item(item), item.template]) if item.template else None
        job = started_from(template, item, lambda filled: new_job(filled, module, verb, self._defaults))
        check_followed("spec.policy.after", parse_policy(job.spec.policy).after)
        return job


def check_item(item: jobs_pb2.CreateJobRequest | jobs_pb2.UpdateJobRequest) -> None:
    """Raises InvalidRequest."""
    for field in ("requested_by", "note"):
        if getattr(item, field):
            raise InvalidRequest([(field, "is the whole call's; leave it out of its jobs")])
    if item.spec.schedule.split() == AT_NOW:
        raise InvalidRequest([("spec.schedule", "`at now` is of single jobs; give an instant to come")])


def _check_payloads(items: Sequence[jobs_pb2.CreateJobRequest], given: LookedUp) -> None:
    """Raises InvalidRequest, as each job of a small call may name a template with a large payload."""
    sizes = {
        of: 0 if isinstance(template, NotFound) else len(template.values.spec.payload.encode())
        for of, template in given.templates.items()
    }
    whole = sum(
        sizes[namespace_of_item(item), item.template] for item in items if item.template and not item.spec.payload
    )
    if whole > PAYLOADS_MAX:
        text = f"get {whole} bytes of payloads from their templates; at most {PAYLOADS_MAX} in a call"
        raise InvalidRequest([("jobs", text)])


def _named(items: Iterable[jobs_pb2.CreateJobRequest]) -> list[jobs_pb2.CreateJobRequest]:
    """Those whose names can be names."""
    return [item for item in items if not isinstance(judged(check_names, item), Exception)]


def judged(judge: Callable[..., T], *arguments: object) -> T | Exception:
    """The result of `judge`, or its error as a value, which concerns this item alone."""
    try:
        return judge(*arguments)
    except (CronringError, InvalidRequest, NeverRuns) as error:
        return error


async def or_not_found(finding: Awaitable[T]) -> T | NotFound:
    """The result, or the NotFound as a value, which concerns only the items that name it."""
    try:
        return await finding
    except NotFound as error:
        return error


def there(found: T | NotFound) -> T:
    """Raises NotFound."""
    if isinstance(found, NotFound):
        raise NotFound(str(found))
    return found


def namespace_of_item(item: jobs_pb2.CreateJobRequest) -> str:
    """Of the module, and so of the job."""
    return item.namespace or DEFAULT_NAMESPACE


def key_of(item: jobs_pb2.CreateJobRequest) -> str:
    """The key of the job that it makes."""
    return str(JobKey(namespace_of_item(item), item.module, f"{item.verb}:{item.name}"))
