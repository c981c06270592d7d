"""What the façade asks of our own services: the one seam between its contract and our jobs.

Everything here is done for the call in hand (controller/ports/caller.py), whose permissions routes.py has looked at.
"""

import contextlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.lookup import find_module, find_verb
from cronring.controller.core.figures import Figures
from cronring.controller.core.node.events import ActivationsCreated, JobsCreated, JobsNotified
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.core.orders.interval_states import IntervalOrder
from cronring.controller.errors import NotFound, Outdated
from cronring.controller.interval_jobs.problems import TermFault, unfit
from cronring.controller.interval_jobs.settings import IntervalSettings
from cronring.controller.interval_jobs.specs import payload_of, policy_of, schedule_of
from cronring.controller.interval_jobs.terms import Given, kept_terms, merged, of_kept, verb_of
from cronring.controller.ports.interval_jobs import (
    Changed,
    IntervalFigures,
    IntervalFilter,
    IntervalJobRow,
    IntervalRun,
)
from cronring.controller.ports.many import JobChange, NewJob, Seen
from cronring.controller.ports.stores import Stores
from cronring.schema.job import JobSpec
from cronring.schema.keys import VerbName
from cronring.schema.module import Module, Verb
from cronring.schema.schedule import MANUAL

TRIES: Final = 50  # each lost to somebody whose change was committed
SET: Final = ("schedule", "policy", "payload")

Put = Callable[[JobsCreated | JobsNotified | ActivationsCreated], None]
"""Takes what this controller's own node has to hear of, so that nothing waits for PostgreSQL to tell of it."""


# docs/decisions/0082: states are derived, and what the caller gave stands beside the job's row
class IntervalJobsService:
    """Raises IntervalRefused for what the contract doesn't take, NotFound, and Conflict."""

    def __init__(self, stores: Stores, settings: IntervalSettings, defaults: Defaults, put: Put) -> None:
        self._stores = stores
        self._jobs = stores.interval_jobs
        self._settings = settings
        self._defaults = defaults
        self._put = put
        self._namespace = settings.namespace

    async def create(self, given: Mapping[str, Any], by: str) -> IntervalJobRow:
        terms = merged({}, given, self._settings)
        module, verb = await self._verb(verb_of(terms, self._settings))
        spec = self._spec(terms, module, verb)
        job = NewJob(module.namespace, module.name, verb.name, uuid.uuid4().hex, spec)
        with _never_as_unfit():
            changed = await self._jobs.make_interval_job(job, kept_terms(terms), by, runs=spec.schedule == MANUAL)
        self._tell(changed)
        return await self.get(job.name)

    async def update(self, interval_id: str, given: Mapping[str, Any], by: str) -> IntervalJobRow:
        """What isn't given stays, whoever changes the job at the same time."""
        for _ in range(TRIES):
            with contextlib.suppress(Outdated):
                await self._update(interval_id, given, by)
                return await self.get(interval_id)
        raise Outdated(f"others keep changing job {interval_id!r}; try again")

    async def _update(self, interval_id: str, given: Mapping[str, Any], by: str) -> None:
        """Raises Outdated."""
        row = await self.get(interval_id)
        terms, name = merged(of_kept(row.terms), given, self._settings), row.key.rpartition(":")[0]
        if "verb" in given and str(verb_of(terms, self._settings)) != name:
            raise unfit([TermFault("verb", f"stays what it was, {name}; make another job for another verb")])
        native = await self._stores.reads.get_job(row.key)
        module, verb = await self._verb(VerbName(native.namespace, native.module, native.verb))
        spec, there = self._spec(terms, module, verb), native.spec
        seen = Seen(native.job_id, native.deployment, there)
        change = JobChange.to(seen, **{name: getattr(spec, name) for name in SET})
        runs = spec.schedule == MANUAL and there.schedule != MANUAL
        with _never_as_unfit():
            changed = await self._jobs.change_interval_job(
                self._namespace, interval_id, change, row.terms, kept_terms(terms), by, runs=runs
            )
        self._tell(changed)

    async def delete(self, interval_id: str, by: str) -> None:
        """What runs finishes."""
        row = await self.get(interval_id)
        try:
            await self._stores.control.delete_job(row.key, by)
        except NotFound:  # in our own words: whoever came first knows of no key
            raise NotFound(f"there is no job {interval_id!r}") from None
        self._put(JobsNotified())

    async def order(self, interval_id: str, order: IntervalOrder, by: str) -> IntervalJobRow:
        self._tell(await self._jobs.order_interval_job(self._namespace, interval_id, order, by))
        return await self.get(interval_id)

    async def find(
        self, status: str, source_id: str | None, limit: int, offset: int
    ) -> tuple[list[IntervalJobRow], int]:
        """The newest first, and how many there are."""
        return await self._jobs.list_interval_jobs(IntervalFilter(self._namespace, status, source_id), limit, offset)

    async def runs(self, interval_id: str, limit: int, offset: int) -> tuple[list[IntervalRun], int]:
        """The newest first, and how many there are."""
        row = await self.get(interval_id)
        return await self._jobs.list_interval_runs(row.job_id, limit, offset)

    async def run(self, execution_id: int) -> tuple[str, IntervalRun]:
        """With the id of its job."""
        return await self._jobs.get_interval_run(self._namespace, execution_id)

    async def figures(self, interval_id: str) -> tuple[IntervalJobRow, Figures]:
        row = await self.get(interval_id)
        return row, (await self._stores.statistics.job(row.key)).figures

    async def all_figures(self) -> tuple[dict[str, int], IntervalFigures]:
        """Of all jobs: how many there are by status, and what they come to."""
        counts = await self._jobs.count_interval_jobs(self._namespace)
        return counts, await self._jobs.interval_figures(self._namespace)

    async def get(self, interval_id: str) -> IntervalJobRow:
        return await self._jobs.get_interval_job(self._namespace, interval_id)

    async def _verb(self, name: VerbName) -> tuple[Module, Verb]:
        """Raises IntervalRefused: the verb is a value that doesn't fit."""
        try:
            module = await find_module(self._stores.reads, name.namespace, name.module)
            return module, find_verb(module, name.verb)
        except NotFound as error:
            raise unfit([TermFault("verb", str(error))]) from None

    def _spec(self, terms: Given, module: Module, verb: Verb) -> JobSpec:
        return JobSpec(
            schedule=schedule_of(terms),
            policy=policy_of(terms),
            payload=payload_of(terms, module, verb),
            timeout_ms=verb.timeout_ms or -self._defaults.timeout_ms,
            on_disconnect=verb.on_disconnect,
        )

    def _tell(self, changed: Changed) -> None:
        self._put(JobsCreated([changed.job]))
        if changed.activation is not None:
            self._put(ActivationsCreated([changed.activation]))


@contextlib.contextmanager
def _never_as_unfit() -> Any:
    """A pattern whose years are past."""
    try:
        yield
    except NeverRuns as error:
        raise unfit([TermFault("schedule_time", str(error))]) from None
