"""Who follows whom, in memory; see the table cron_followers."""

from collections.abc import Iterable

from cronring.controller.errors import CircleOfJobs
from cronring.controller.store.memory.rows import StoredJob
from cronring.schema.after import cycle_fault, cycle_of
from cronring.schema.policy import parse_policy


class Followers:
    """Jobs that are not removed, by the key of the one that they follow."""

    def __init__(self) -> None:
        self._after: dict[int, str] = {}
        self._of: dict[str, dict[int, None]] = {}

    def of(self, key: str) -> list[int]:
        """Ids of the jobs that follow this one."""
        return list(self._of.get(key, ()))

    def note(self, job: StoredJob) -> None:
        """The job is new, or another, or removed."""
        self.set(job.job_id, parse_policy(job.spec.policy).after if job.spec.policy and not job.removed else "")

    def set(self, job_id: int, after: str) -> None:
        """It follows that job from now on; "": none."""
        before = self._after.pop(job_id, "")
        if before:
            del self._of[before][job_id]
        if after:
            self._after[job_id] = after
            self._of.setdefault(after, {})[job_id] = None

    def after(self, jobs: Iterable[StoredJob]) -> dict[str, str]:
        """By the key of each of these that follows another one, the key of that."""
        return {job.key: self._after[job.job_id] for job in jobs if job.job_id in self._after}

    def refuse_cycles(self, jobs: list[StoredJob], wanted: dict[str, str]) -> None:
        """Raises CircleOfJobs. `jobs`: all there are; `wanted`: what some of them are to follow, by their keys."""
        after = self.after(jobs) | wanted
        for key in sorted(wanted):
            cycle = cycle_of(key, after)
            if cycle:
                raise CircleOfJobs(cycle_fault(cycle), cycle)
