"""Claims and ends that come all at once, of whatever is due and whatever runs."""

from cronring.controller.core.model import Execution, Job
from tests.conformance.harness import SECOND, World, claim_of, end_of


async def idle_jobs(world: World) -> list[Job]:
    """In the order of their ids."""
    _, jobs = await world.store.get_cron_jobs(tuple(range(4096)), 86_400_000)
    return sorted(job for job in jobs if not job.executing)


class Rush:
    """`claimed`: how many runs there have been. A turn decides of which jobs, and which of those that run end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._running: dict[int, Execution] = {}
        self.claimed = 0

    async def claim(self, controller_id: str, turn: int) -> None:
        known, store = await idle_jobs(self._world), self._world.store
        chosen = sorted((known[turn % 12 :] + known[: turn % 12])[: 3 + turn % 5])
        _, results = await store.start_cron_jobs(controller_id, [claim_of(job) for job in chosen], 30_000)
        ids = tuple(result.execution_id for result in results if result.execution_id is not None)
        self.claimed += len(ids)
        self._running.update({each.execution_id: each for each in await store.get_unfinished(ids)})

    async def end(self, turn: int) -> None:
        mine = sorted(self._running.values(), key=lambda each: (each.job.job_id, each.execution_id))[turn % 2 :: 2]
        await self._world.store.end_cron_jobs("c1", [end_of(each, next_after=SECOND) for each in mine])
        for each in mine:
            self._running.pop(each.execution_id, None)
