"""Jobs that this release can't read: a newer release wrote them, or one with newer time zones. This controller doesn't
know what their fields ask for, or when their schedules tick. So it neither claims nor skips their ticks, and ends none
of their runs: controllers of the newer release do. It logs each such job once, and goes on with all others.
"""

from typing import Final

from cronring.controller.core.model import Job
from cronring.controller.core.node import events
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import Level
from cronring.controller.core.node.events import Event
from cronring.schema.newer import unread_of

TOLD_MAX: Final = 10_000  # jobs that are remembered as logged
REMEDY: Final = "upgrade this controller, or set what it doesn't read anew as a whole"


# docs/decisions/0086, 0103: a controller that can't read a policy or a schedule leaves the job alone
class Unread:
    """Stands before all other parts, and lets through what can be decided here."""

    __slots__ = ("_context", "_left", "_told")

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._left: dict[int, None] = {}  # in the window that was read last
        self._told: dict[int, tuple[str, str]] = {}  # their schedules and policies

    def __len__(self) -> int:
        """How many jobs of the window are left to others."""
        return len(self._left)

    def let_through(self, event: Event) -> Event:
        """The event, without the jobs and activations that this release can't read."""
        match event:
            case events.WindowFetched():
                found = self._readable(event.jobs)
                if self._left or len(found) < len(event.jobs):
                    here = {job.job_id for job in found}
                    self._left = {job.job_id: None for job in event.jobs if job.job_id not in here}
                return event._replace(jobs=found)
            case events.OverdueFetched() | events.JobsCreated() | events.TicksSkipped():
                return event._replace(jobs=self._readable(event.jobs))
            case events.ActivationsFetched() | events.ActivationsCreated():
                activations = [each for each in event.activations if self.reads(each.job)]
                return event._replace(activations=activations)
            case _:
                return event

    def _readable(self, jobs: list[Job]) -> list[Job]:
        return [job for job in jobs if self.reads(job)]

    def reads(self, job: Job) -> bool:
        """Whether this release can read the job's schedule and policy. If not, this is logged once."""
        said = job.schedule, job.policy
        fields = unread_of(*said)
        if fields and self._told.get(job.job_id) != said:
            if len(self._told) >= TOLD_MAX:
                self._told.clear()
            self._told[job.job_id] = said
            self._context.log(Level.WARNING, "job_unread", job=job.key, fields=", ".join(fields), remedy=REMEDY)
        return not fields
