"""Jobs that say what this release doesn't read: a newer one wrote them, or one with newer time zones.

What their fields ask for, or when their schedules tick, nobody here knows. So this controller neither claims nor skips
their ticks, and ends none of their runs: whoever reads them does. It says so once for each, and goes on with all
others.
"""

from typing import Final

from cronring.controller.core.model import Job
from cronring.controller.core.node import events
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import Level
from cronring.controller.core.node.events import Event
from cronring.schema.newer import unread_of

TOLD_MAX: Final = 10_000  # jobs of which it is remembered that they were told of
REMEDY: Final = "upgrade this controller, or set what it doesn't read anew as a whole"


# docs/decisions/0086, 0103: who can't read a policy, or a schedule, leaves its job alone
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
        """The event, without jobs and activations that are for others to decide."""
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
        """Whether this release knows all that the job says. If not, that is told, once."""
        said = job.schedule, job.policy
        fields = unread_of(*said)
        if fields and self._told.get(job.job_id) != said:
            if len(self._told) >= TOLD_MAX:
                self._told.clear()
            self._told[job.job_id] = said
            self._context.log(Level.WARNING, "job_unread", job=job.key, fields=", ".join(fields), remedy=REMEDY)
        return not fields
