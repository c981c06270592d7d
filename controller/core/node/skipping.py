"""Ticks that are decided without a run: outside the window, missed, without a runner, or beside too many others."""

from cronring.controller.core.model import SkipRequest
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import SkipTicks
from cronring.controller.core.node.events import StoreFailed, TicksSkipped
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.window import DueWindow, Entry, Stage
from cronring.schema.execution import Skipped
from cronring.schema.timetable import PlannedTick

RETRY_US = 1_000_000


class Skipping:
    """Entries whose skips wait to be written, and one statement under way."""

    __slots__ = ("_context", "_in_flight", "_lease", "_waiting", "_window")

    def __init__(self, context: NodeContext, window: DueWindow, lease: Lease) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._waiting: list[tuple[Entry, SkipRequest]] = []
        self._in_flight: dict[int, list[Entry]] = {}

    @property
    def busy(self) -> bool:
        return bool(self._in_flight)

    def skip(self, entry: Entry, skipped: tuple[Skipped, ...], following: PlannedTick | None) -> None:
        """The ticks of `skipped` don't run, and the entry's tick is among them. `following` comes next."""
        assert entry.tick is not None, "skipped without being due"
        self._window.move_to(entry, Stage.SKIPPING)
        tick, run_at = following or (None, None)
        job = entry.job
        self._waiting.append((entry, SkipRequest(job.job_id, entry.tick, job.revision, skipped, tick, run_at)))

    def act(self) -> None:
        context = self._context
        if not self._waiting or self._in_flight:
            return
        if not self._lease.may_claim:
            self._give_back()
            return
        batch, self._waiting = (
            self._waiting[: context.settings.claim_batch],
            self._waiting[context.settings.claim_batch :],
        )
        batch.sort(key=lambda pair: pair[0].job.job_id)
        request_id = context.request(self)
        self._in_flight[request_id] = [entry for entry, _ in batch]
        context.effects.append(SkipTicks(request_id, [request for _, request in batch]))

    def _give_back(self) -> None:
        """Skips that can't be written now are decided anew later, as the decision may be another one then."""
        waiting, self._waiting = self._waiting, []
        for entry, _ in waiting:
            self._window.retry_at(entry, self._context.now_us + RETRY_US)

    def skipped(self, event: TicksSkipped) -> None:
        """The rows as they are now; a job without a row is gone."""
        rows = {job.job_id: job for job in event.jobs}
        for entry in self._in_flight.pop(event.request_id):
            job = rows.get(entry.job.job_id)
            if job is None:
                self._window.forget(entry.job.job_id)
            else:
                entry.job = job
                self._window.reset(entry, job.executing, job.next_tick, job.next_run_at)

    def failed(self, event: StoreFailed) -> None:
        """It is unknown whether the skips were written. The next claims tell."""
        for entry in self._in_flight.pop(event.request_id):
            self._window.retry_at(entry, self._context.now_us + RETRY_US)
