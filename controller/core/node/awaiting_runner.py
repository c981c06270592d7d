"""Due jobs that no connected runner takes: they wait for `runner_grace`, then their ticks are skipped as `no_runner`.

A rolling restart of runners loses nothing that way, and a deployment without runners leaves a trace of each tick. The
grace counts from run_at, but never from before this controller could (again) claim: after an outage runners need time
to connect.
"""

from cronring.controller.core import ticks
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import Level
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.skipping import Skipping
from cronring.controller.core.node.timers import Timers
from cronring.controller.core.node.window import DueWindow, Duty, Entry, Stage
from cronring.schema.execution import SkipReason


# docs/decisions/0066: three queues in which what is due waits
class AwaitingRunner:
    """Entries by deployment, and the end of their grace."""

    __slots__ = (
        "_context",
        "_deployments",
        "_expired",
        "_grace",
        "_lease",
        "_skipping",
        "_waiting",
        "_window",
        "ready_since_us",
    )

    def __init__(self, context: NodeContext, window: DueWindow, lease: Lease, skipping: Skipping) -> None:
        self._context = context
        self._skipping = skipping
        self._window = window
        self._lease = lease
        self._waiting: dict[str, dict[int, Entry]] = {}
        self._deployments: dict[int, str] = {}  # the deployment under which a job stands in `_waiting`
        self._grace = Timers()
        self._expired: dict[int, None] = {}
        self.ready_since_us: int | None = None  # since when it holds its lease

    def __len__(self) -> int:
        return len(self._grace) + len(self._expired)

    def wait(self, entry: Entry) -> None:
        assert entry.run_at is not None, "waits without being due"
        self._window.move_to(entry, Stage.AWAITS_RUNNER)
        self._drop(entry.job.job_id)
        self._expired.pop(entry.job.job_id, None)  # of an earlier tick, which somebody else has decided
        self._waiting.setdefault(entry.job.deployment, {})[entry.job.job_id] = entry
        self._deployments[entry.job.job_id] = entry.job.deployment
        self._arm(entry, max(entry.run_at, entry.hosted_us))

    # docs/decisions/0032: the grace starts anew with the lease
    def ready(self) -> None:
        """The lease is held (again). Each grace starts anew, as runners had no controller to come back to meanwhile."""
        self.ready_since_us = self._context.now_us
        self._expired.clear()
        for entries in self._waiting.values():
            for entry in entries.values():
                if self._window.waits(entry, Stage.AWAITS_RUNNER) and entry.run_at is not None:
                    self._arm(entry, entry.run_at)

    def _arm(self, entry: Entry, run_at: int) -> None:
        settings = self._context.settings
        grace_us = ticks.waits_for_runner(entry.job, settings.runner_grace_ms * 1_000)
        if grace_us is None:
            self._grace.disarm(entry.job.job_id)
            return
        if self._window.duty(entry) is not Duty.PRIMARY:
            grace_us += settings.backup_delay_ms * 1_000
        self._grace.arm(entry.job.job_id, max(run_at, self.ready_since_us or 0) + grace_us)

    def let_in(self, deployments: tuple[str, ...]) -> list[Entry]:
        """A runner of these deployments came. Returns the entries that waited for one."""
        found: list[Entry] = []
        for deployment in deployments:
            for job_id, entry in self._waiting.pop(deployment, {}).items():
                del self._deployments[job_id]
                self._grace.disarm(job_id)
                self._expired.pop(job_id, None)
                if self._window.waits(entry, Stage.AWAITS_RUNNER):
                    found.append(entry)
        return found

    def _drop(self, job_id: int) -> None:
        """The job no longer waits under that deployment: it has a place, another deployment, or is removed."""
        deployment = self._deployments.pop(job_id, None)
        if deployment is not None:
            waiting = self._waiting[deployment]
            del waiting[job_id]
            if not waiting:
                del self._waiting[deployment]

    def next_us(self) -> int | None:
        return self._grace.next_us()

    def act(self) -> None:
        """Skip the ticks of those whose grace is over."""
        context = self._context
        for job_id in self._grace.pop_due(context.now_us):
            self._expired[job_id] = None
        if not self._expired or self._skipping.busy or not self._lease.may_claim:
            return
        expired = list(self._expired)
        self._expired.clear()
        for job_id in expired:
            self._drop(job_id)
        found = (self._window.entries.get(job_id) for job_id in expired)
        entries = [entry for entry in found if entry is not None and self._window.waits(entry, Stage.AWAITS_RUNNER)]
        for entry in entries:
            self._skip(entry)
        if entries:
            context.log(Level.WARNING, "no_runner", jobs=len(entries), first=entries[0].job.key)

    def _skip(self, entry: Entry) -> None:
        """Skip the tick. If the job has more patience than the grace, skip only ticks that have waited that long."""
        planned = entry.planned
        assert planned is not None, "waits without being due"
        grace_us = self._context.settings.runner_grace_ms * 1_000
        patience_us = ticks.waits_for_runner(entry.job, grace_us)
        until_us = self._context.now_us
        if patience_us is not None and patience_us > grace_us:
            until_us = max(until_us - patience_us, planned.run_at)
        answer = ticks.passed(entry.job, planned, until_us, SkipReason.NO_RUNNER)
        self._skipping.skip(entry, answer.skipped, answer.next)
