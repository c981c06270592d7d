"""From a runner's report to a committed end.

Reports are collected and committed in batches, as claims are. A report is acknowledged only when PostgreSQL has decided
it. Whatever fails meanwhile is repeated, which is harmless, as an end is matched on its claim. Any controller may end
any execution: one that isn't held here is looked up first.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from cronring.controller.core import ticks
from cronring.controller.core.model import Activation, EndRequest, EndResult, Execution, MessageFate, Unseen
from cronring.controller.core.node.activating import Activating
from cronring.controller.core.node.collecting import Collecting
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import AckReports, End, FetchExecutions, Level, ReportRefusal
from cronring.controller.core.node.events import Ended, ExecutionsFetched, ReportsReceived, StoreFailed
from cronring.controller.core.node.follow_ups import NONE, FollowUp, FollowUps, RowNewer, TickOverlooked
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.unread import Unread
from cronring.controller.core.node.window import DueWindow
from cronring.schema.execution import Outcome, Report, Trigger

# Of reports of what isn't held here: beyond, they are dropped without acknowledgement, and the runner sends them again.
# Those of what is held are bounded by that, and never wait for the others: anybody may make those up.
UNHELD_MAX: Final = 50_000
UNHELD_CHARACTERS_MAX: Final = 256 * 1024 * 1024  # in their texts
UNHELD_OF_ONE_MAX: Final = 20_000  # of one runner: another may have what a dead controller held
UNVERIFIED_MAX: Final = 8  # reports of one execution by several runners, until it is known whose it is
BACKOFF_BASE_MS: Final = 50
BACKOFF_CAP_MS: Final = 2_000


# docs/decisions/0034: kept by runner until the owner is known
class Pending:
    """A report that isn't decided yet, and the runners that wait for its acknowledgement, with what each of them said.

    Whose report it is, is known with its execution: until then a runner that lies may have been the first to speak.
    """

    __slots__ = ("anchor", "execution", "report", "retry_at", "runners", "unverified", "unverified_by")

    def __init__(self, report: Report, execution: Execution | None, runner_id: str | None) -> None:
        self.report = report
        self.execution = execution
        self.retry_at: int | None = None
        self.anchor: int | None = None  # of a run that moves its job's next one
        self.runners: dict[str, None] = {} if runner_id is None else {runner_id: None}
        self.unverified_by = ""  # who reported it, though it isn't held here
        self.unverified: list[tuple[Report, str]] = []  # what others say of it, while nobody knows whose it is

    def said(self) -> list[tuple[Report, str]]:
        """Every report of it, and by whom."""
        return [*((self.report, runner_id) for runner_id in self.runners), *self.unverified]


class Ending:
    """Reports by execution id: to be looked up, to be ended, or under way."""

    __slots__ = (
        "_activating",
        "_batch",
        "_collecting",
        "_context",
        "_ending",
        "_failures",
        "_fetching",
        "_holding",
        "_not_before_ns",
        "_pending",
        "_ready",
        "_refused",
        "_unheld",
        "_unheld_characters",
        "_unknown",
        "_unread_jobs",
        "_window",
    )

    def __init__(
        self,
        context: NodeContext,
        window: DueWindow,
        holding: Holding,
        activating: Activating,
        unread: Unread,
        collecting: Collecting,
    ) -> None:
        self._context = context
        self._collecting = collecting
        self._activating = activating
        self._window = window
        self._holding = holding
        self._unread_jobs = unread
        self._pending: dict[int, Pending] = {}
        self._unknown: dict[int, Pending] = {}
        self._ready: dict[int, Pending] = {}
        self._fetching: dict[int, list[Pending]] = {}
        self._ending: dict[int, list[Pending]] = {}
        self._batch = context.settings.end_batch
        self._refused: dict[tuple[str, ReportRefusal], list[int]] = {}
        self._unheld: dict[str, int] = {}  # pending reports of what isn't held here, by runner
        self._unheld_characters = 0
        self._failures = 0
        self._not_before_ns = 0

    def __len__(self) -> int:
        return len(self._pending)

    def next_deadline(self) -> int | None:
        waiting = (self._ready or self._unknown) and self._context.now_ns < self._not_before_ns
        return self._not_before_ns if waiting else None

    def received(self, event: ReportsReceived) -> None:
        """Collect. What contradicts the execution it names is refused, and acknowledged so that it stops coming."""
        self._context.stats.reports += len(event.reports)
        for report in event.reports:
            known = self._pending.get(report.execution_id)
            # A runner repeats what isn't acknowledged. One entry stands for all: its end is made once.
            if known is not None:
                if not event.runner_id:  # what a consumer says tells more than what was declared meanwhile
                    known.report = report
                if not _joins(known, report, event.runner_id):
                    self._refuse(event.runner_id, report.execution_id, ReportRefusal.FOREIGN)
                continue
            execution = self._holding.executions.get(report.execution_id)
            if execution is None and self._is_full(event.runner_id):
                self._context.log(Level.ERROR, "reports_dropped", runner=event.runner_id, pending=len(self._pending))
                continue
            # Told no and acknowledged: unanswered, a liar would send it again for ever.
            if execution is not None and not _belongs(report, execution, event.runner_id):
                self._refuse(event.runner_id, report.execution_id, ReportRefusal.FOREIGN)
                continue
            if execution is None:
                self._wonder(Pending(report, None, event.runner_id), event.runner_id)
            # docs/decisions/0016: what comes after a run is reckoned by its job's row, and that has changed
            elif report.execution_id in self._holding.stale:
                self._collect(self._unknown, Pending(report, None, event.runner_id))
            else:
                self._collect(self._ready, Pending(report, execution, event.runner_id))
        self._tell_refused()

    def declare(self, execution: Execution, outcome: Outcome, error_type: str, error_message: str) -> bool:
        """End it on nobody's report. False: an end of it is under way already, or is for others to make."""
        execution_id = execution.execution_id
        # What its runner says of it tells more.
        if execution_id in self._pending or not self._unread_jobs.reads(execution.job):
            return False
        at_us = max(self._context.now_us, execution.claimed_at)
        report = Report(
            execution_id,
            execution.job.job_id,
            execution.claimed_at,
            outcome,
            execution.claimed_at,
            at_us,
            error_type,
            error_message,
            "",
        )
        self._collect(self._ready, Pending(report, execution, None))
        return True

    def consumed(self) -> list[int]:
        """Those whose end was told by no runner, and is not committed yet."""
        return [execution_id for execution_id, pending in self._pending.items() if "" in pending.runners]

    def withdraw(self, execution_id: int, reason: str) -> None:
        """Cancel one that no runner has."""
        execution = self._holding.executions.get(execution_id)
        if execution is not None:
            self.declare(execution, Outcome.CANCELLED, "Cancelled", reason)

    def _collect(self, into: dict[int, Pending], pending: Pending) -> None:
        into[pending.report.execution_id] = self._pending[pending.report.execution_id] = pending

    def _wonder(self, pending: Pending, runner_id: str) -> None:
        """It isn't held here: look it up."""
        pending.unverified_by = runner_id
        self._unheld[runner_id] = self._unheld.get(runner_id, 0) + 1
        self._unheld_characters += _characters(pending.report)
        self._collect(self._unknown, pending)

    # docs/decisions/0034: one bound for all lets a liar drop honest ends
    def _is_full(self, runner_id: str) -> bool:
        """As much of what isn't held here waits already as may, of all runners or of this one."""
        return (
            self._unheld.get(runner_id, 0) >= UNHELD_OF_ONE_MAX
            or self._unheld_characters >= UNHELD_CHARACTERS_MAX
            or sum(self._unheld.values()) >= UNHELD_MAX
        )

    def act(self) -> None:
        """Look up and end what there is, within the limit of statements under way."""
        context = self._context
        if not (self._ready or self._unknown) or not context.store_ok or context.now_ns < self._not_before_ns:
            return
        if not context.clock.known:  # what comes after a run is reckoned by it; the first renewal tells it
            return
        # One look at a time: reports of what isn't held here are rare, but for a dead controller's, and liars'.
        if self._unknown and not self._fetching:
            batch = _take(self._unknown, context.settings.end_batch)
            request_id = context.request(self)
            self._fetching[request_id] = batch
            ids = tuple(sorted(pending.report.execution_id for pending in batch))
            context.effects.append(FetchExecutions(request_id, ids))
        while self._ready and len(self._ending) < context.settings.ends_in_flight:
            batch = [each for each in _take(self._ready, self._batch) if self._decides(each)]
            if not batch:
                continue
            request_id = context.request(self)
            self._ending[request_id] = batch
            context.effects.append(End(request_id, self._requests(batch)))

    def _decides(self, pending: Pending) -> bool:
        """Whether its job's policy says what comes next in words that are known here.

        If not, it is not acknowledged: its runner offers it to another controller after a while.
        """
        execution = pending.execution
        assert execution is not None, "ended without being known"
        if self._unread_jobs.reads(execution.job):
            return True
        self._forget(pending)
        return False

    def _requests(self, batch: list[Pending]) -> list[EndRequest]:
        now_us = self._context.now_us
        requests: list[EndRequest] = []
        for pending in batch:
            execution = pending.execution
            assert execution is not None, "ended without being known"
            request = request_of(execution, pending.report, now_us)
            if not execution.runner_id:
                request = request._replace(message=_fate(pending))
            elif pending.report.outcome is Outcome.LOST:
                unseen = Unseen(execution.runner_id, self._context.settings.runner_lost_after_ms)
                request = request._replace(unseen=unseen)
            # The answer says which row was made, and not what was asked for it.
            pending.retry_at, pending.anchor = request.retry_at, request.anchor
            requests.append(request)
        # docs/decisions/0068: whoever locks jobs and executions does so in this order, or two would deadlock
        requests.sort(key=_job_and_execution)
        return requests

    def fetched(self, event: ExecutionsFetched) -> None:
        """What is absent was decided before (or never was). Of the others, only what their own runner says counts."""
        batch = self._fetching.pop(event.request_id)
        self._failures = 0
        found = {execution.execution_id: execution for execution in event.executions}
        for pending in batch:
            execution = found.get(pending.report.execution_id)
            if execution is None:
                self._decided_before(pending)
            elif pending.execution is not None:  # whose it is, is known: only its job has changed
                pending.execution = execution
                self._ready[execution.execution_id] = pending
            else:
                self._found(pending, execution)
        self._tell_refused()

    def _found(self, pending: Pending, execution: Execution) -> None:
        """It is unfinished: whoever has it may end it, whatever others have said of it, and before."""
        # Who spoke first proves nothing: a liar may have guessed the id before its runner was done.
        own = [said for said in pending.said() if _belongs(said[0], execution, said[1])]
        for report, runner_id in pending.said():
            if not _belongs(report, execution, runner_id):
                self._refuse(runner_id, report.execution_id, ReportRefusal.FOREIGN)
        self._forget(pending)
        if own:
            report, runner_id = own[0]
            self._collect(self._ready, Pending(report, execution, runner_id))

    def _decided_before(self, pending: Pending) -> None:
        """Let go of it; but not of one that was claimed since it was looked up, for somebody else."""
        execution_id = pending.report.execution_id
        held = self._holding.executions.get(execution_id)
        own = pending.execution is not None or any(held and _belongs(report, held, by) for report, by in pending.said())
        foreign = held is not None and not own
        self._forget(pending)
        # Somebody else ended it: its end is in the books, and only this controller still thinks that it runs.
        if held is not None and not foreign:
            self._window.runner_away(held.job.job_id)
            self._holding.release(execution_id)
        for _, runner_id in pending.said():
            self._refuse(runner_id, execution_id, ReportRefusal.FOREIGN if foreign else ReportRefusal.DECIDED)

    def _forget(self, pending: Pending) -> None:
        del self._pending[pending.report.execution_id]
        if pending.unverified_by:
            self._unheld_characters -= _characters(pending.report)
            self._unheld[pending.unverified_by] -= 1
            if not self._unheld[pending.unverified_by]:
                del self._unheld[pending.unverified_by]

    def ended(self, event: Ended) -> FollowUps:
        """Acknowledge, let go, and wait for the jobs' next ticks."""
        batch = self._ending.pop(event.request_id)
        context = self._context
        self._failures = 0
        self._batch = context.settings.end_batch
        by_id = {pending.report.execution_id: pending for pending in batch}
        found: dict[FollowUp, None] = {}
        for result in event.results:
            if result.busy:  # whoever wanted it ended asks again, if its runner or its consumer says nothing
                self._forget(by_id.pop(result.execution_id))
                self._collecting.ask_soon()
                continue
            if result.stale:  # what passed during the run is for its job's row to say, as it stands
                self._unknown[result.execution_id] = by_id.pop(result.execution_id)
                continue
            if result.followers:
                self._activating.follow(result.followers)
            if result.ended:
                context.stats.ended += 1
                self._retry(by_id[result.execution_id], result)
            else:
                context.stats.ends_wasted += 1
            # Also of one that had ended: an answer was lost, or a batch is repeated of which a part was committed.
            self._activating.job_freed(result.job_id)
            follow_ups = self._follow(result, by_id[result.execution_id])
            if follow_ups:
                found.update(dict.fromkeys(follow_ups))
        self._settle(by_id.values())
        return tuple(found)

    def _retry(self, pending: Pending, result: EndResult) -> None:
        """The end made a retry: this controller is the first to know."""
        execution = pending.execution
        if result.retry_id is None or pending.retry_at is None or execution is None:
            return
        retry = Activation(
            result.retry_id,
            execution.job,
            execution.tick,
            None,
            execution.attempt + 1,
            Trigger.RETRY,
            pending.retry_at,
            execution.payload,
            beside=False,
        )
        self._activating.created([retry])

    # docs/decisions/0024: an end that came too late must say what comes next, too
    def _follow(self, result: EndResult, pending: Pending) -> FollowUps:
        entry = self._window.entries.get(result.job_id)
        if entry is None:
            return self._stand_in(result, pending)
        newer = (RowNewer(),) if result.revision != entry.job.revision else NONE
        if result.paused:
            self._window.forget(result.job_id)
        elif result.ended or result.next_tick is not None:
            self._window.follow_end(entry, result.next_tick, result.next_run_at)
            if result.job_id not in self._window.entries:
                return (*newer, *self._stand_in(result, pending))
        else:  # it had been ended elsewhere, and the next one runs there already
            self._window.runner_away(result.job_id)
        return newer

    def _stand_in(self, result: EndResult, pending: Pending) -> FollowUps:
        """The job's owners don't hear of an end that is committed here. What they can't foresee is claimed here."""
        execution = pending.execution
        if not result.ended or result.next_run_at is None or execution is None:
            return NONE
        job, now_us = execution.job, self._context.now_us
        if result.moved and pending.anchor is not None:
            job = job._replace(anchor=pending.anchor, revision=job.revision + 1)
        # An owner that knows the row foresees the tick, and is there in time. What an end alone decides, it can't.
        foreseen = ticks.following(execution.job, max(now_us, execution.tick))
        unforeseen = foreseen is None or result.next_run_at < foreseen.run_at
        soon = result.next_run_at <= now_us + self._context.settings.refetch_interval_ms * 1_000
        if result.next_run_at <= now_us and job.revision != result.revision:
            return (TickOverlooked(job.slot),)  # it was rescheduled while it ran: only its row tells how
        if unforeseen and soon and job.revision == result.revision:
            self._window.stand_in(
                job._replace(executing=False, next_tick=result.next_tick, next_run_at=result.next_run_at)
            )
        return NONE

    def _settle(self, decided: Iterable[Pending]) -> None:
        by_runner: dict[str, list[int]] = {}
        for pending in decided:
            execution_id = pending.report.execution_id
            self._forget(pending)
            self._holding.release(execution_id)
            # Only now: a runner forgets what is acknowledged, and nobody else could say it again.
            for runner_id in filter(None, pending.runners):
                by_runner.setdefault(runner_id, []).append(execution_id)
        for runner_id, execution_ids in by_runner.items():
            self._context.effects.append(AckReports(runner_id, tuple(execution_ids)))

    def _refuse(self, runner_id: str, execution_id: int, why: ReportRefusal) -> None:
        """To be acknowledged all the same, so that it stops coming."""
        if runner_id:
            self._refused.setdefault((runner_id, why), []).append(execution_id)

    def _tell_refused(self) -> None:
        """No runner of ours says what is foreign; what is decided may come again from one that never heard of it."""
        for (runner_id, why), execution_ids in self._refused.items():
            if why is ReportRefusal.FOREIGN:
                self._context.stats.reports_foreign += len(execution_ids)
                self._context.log(Level.WARNING, "report_refused", runner=runner_id, reports=len(execution_ids))
            else:
                self._context.stats.reports_decided += len(execution_ids)
            self._context.effects.append(AckReports(runner_id, tuple(execution_ids), why))
        self._refused.clear()

    def failed(self, event: StoreFailed) -> None:
        """Whether it was committed is unknown; repeat it."""
        context = self._context
        self._failures += 1
        self._not_before_ns = context.now_ns + context.backoff_ns(self._failures, BACKOFF_BASE_MS, BACKOFF_CAP_MS)
        fetching = self._fetching.pop(event.request_id, None)
        if fetching is not None:
            self._unknown.update((pending.report.execution_id, pending) for pending in fetching)
            return
        batch = self._ending.pop(event.request_id)
        context.log(Level.WARNING, "end_failed", executions=len(batch), reason=event.reason)
        if not event.connection_lost:  # something in this batch may be what PostgreSQL refuses
            self._batch = max(1, len(batch) // 2)
        # docs/decisions/0057: matched on its claim, an end that was committed after all is not made twice
        self._ready.update((pending.report.execution_id, pending) for pending in batch)


def request_of(execution: Execution, report: Report, now_us: int) -> EndRequest:
    """What ends it, by its job's row as `execution` knows it."""
    following = ticks.after_run(execution, report, now_us)
    planned, anchor, closes_at = following.next, None, None
    moved = None if planned is None else ticks.moved(execution, report, planned)
    if moved is not None:
        anchor, planned, closes_at = moved
    tick, run_at = planned or (None, None)
    retry_at = ticks.retry(execution, report, ticks.ended(execution, report, now_us), run_at)
    if retry_at is not None and planned is not None and execution.of_schedule and ticks.retries_first(execution.job):
        tick, run_at = ticks.behind_retry(execution.job, planned, retry_at)
    return EndRequest(
        report,
        execution.tick,
        execution.job.revision,
        tick,
        run_at,
        following.skipped,
        retry_at,
        anchor,
        closes_at,
        holds=execution.holds_job and execution.of_schedule,
    )


def _fate(pending: Pending) -> MessageFate:
    """Of the message of an execution that no runner has."""
    return MessageFate.SETTLED if "" in pending.runners else MessageFate.WITHDRAWN


def _take(waiting: dict[int, Pending], count: int) -> list[Pending]:
    taken = list(islice(waiting.values(), count))
    if len(taken) == len(waiting):
        waiting.clear()
    else:
        for pending in taken:
            del waiting[pending.report.execution_id]
    return taken


def _belongs(report: Report, execution: Execution, runner_id: str) -> bool:
    return (
        report.claimed_at == execution.claimed_at
        and report.job_id == execution.job.job_id
        and runner_id == execution.runner_id
    )


def _joins(known: Pending, report: Report, runner_id: str) -> bool:
    """Another report of what is pending. False: it is about an execution that is not that runner's."""
    if runner_id in known.runners:
        return True
    if known.execution is not None:
        if not _belongs(report, known.execution, runner_id):
            return False
        known.runners[runner_id] = None
    elif len(known.unverified) < UNVERIFIED_MAX:  # beyond, it comes again
        known.unverified.append((report, runner_id))
    return True


def _characters(report: Report) -> int:
    return len(report.output) + len(report.error_message) + len(report.stack)


def _job_and_execution(request: EndRequest) -> tuple[int, int]:
    return request.report.job_id, request.report.execution_id
