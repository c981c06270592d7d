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

# Bounds for reports of executions that aren't held here. Beyond, they are dropped unacknowledged, and their runner
# sends them again. Liars can make such reports up, so reports of held executions never wait for them.
UNHELD_MAX: Final = 50_000
UNHELD_CHARACTERS_MAX: Final = 256 * 1024 * 1024  # in their texts
UNHELD_OF_ONE_MAX: Final = 20_000  # of one runner: others may report what a dead controller held
UNVERIFIED_MAX: Final = 8  # reports of one execution by several runners, until it is known whose it is
BACKOFF_BASE_MS: Final = 50
BACKOFF_CAP_MS: Final = 2_000


# docs/decisions/0034: kept by runner until the owner is known
class Pending:
    """A report that isn't decided yet, and the runners that wait for its acknowledgement, with what each of them said.
    Only the execution tells whose report counts: until it is read, the first may be a liar's.
    """

    __slots__ = ("anchor", "execution", "report", "retry_at", "runners", "unverified", "unverified_by")

    def __init__(self, report: Report, execution: Execution | None, runner_id: str | None) -> None:
        self.report = report
        self.execution = execution
        self.retry_at: int | None = None
        self.anchor: int | None = None  # of a run that moves its job's next one
        self.runners: dict[str, None] = {} if runner_id is None else {runner_id: None}
        self.unverified_by = ""  # who reported it, though it isn't held here
        self.unverified: list[tuple[Report, str]] = []  # other runners' reports of it, until its runner is known

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
        """Collect reports. One that contradicts its execution is refused, and acknowledged so that it stops coming."""
        self._context.stats.reports += len(event.reports)
        for report in event.reports:
            known = self._pending.get(report.execution_id)
            # A runner repeats what isn't acknowledged. One entry stands for all: its end is made once.
            if known is not None:
                if not event.runner_id:  # a consumer's report tells more than an end that was declared here
                    known.report = report
                if not _joins(known, report, event.runner_id):
                    self._refuse(event.runner_id, report.execution_id, ReportRefusal.FOREIGN)
                continue
            execution = self._holding.executions.get(report.execution_id)
            if execution is None and self._is_full(event.runner_id):
                self._context.log(Level.ERROR, "reports_dropped", runner=event.runner_id, pending=len(self._pending))
                continue
            # Refused with an acknowledgement: without one, a liar would send it for ever.
            if execution is not None and not _belongs(report, execution, event.runner_id):
                self._refuse(event.runner_id, report.execution_id, ReportRefusal.FOREIGN)
                continue
            if execution is None:
                self._wonder(Pending(report, None, event.runner_id), event.runner_id)
            # docs/decisions/0016: the next tick is computed from the job's row, which has changed: read it first
            elif report.execution_id in self._holding.stale:
                self._collect(self._unknown, Pending(report, None, event.runner_id))
            else:
                self._collect(self._ready, Pending(report, execution, event.runner_id))
        self._tell_refused()

    def declare(self, execution: Execution, outcome: Outcome, error_type: str, error_message: str) -> bool:
        """End it without a report. False: an end is under way already, or this release can't read its job."""
        execution_id = execution.execution_id
        # A report of its runner is there already, and tells more.
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
        """Executions whose fetched report has no committed end yet."""
        return [execution_id for execution_id, pending in self._pending.items() if "" in pending.runners]

    def withdraw(self, execution_id: int, reason: str) -> None:
        """Cancel an execution that no runner has, if it is held here."""
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
        """Whether reports of executions not held here have reached a bound, of all runners or of this one."""
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
        if not context.clock.known:  # the next tick depends on PostgreSQL's time; the first renewal tells it
            return
        # One look at a time: such reports are rare, except after a controller's death, and from liars.
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
        """Whether this release can read the job's policy, which decides what comes next.

        If not, the report is not acknowledged, so its runner offers it to another controller after a while.
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
            # The answer tells only the id of a retry, and whether the anchor moved. So what was asked for is kept.
            pending.retry_at, pending.anchor = request.retry_at, request.anchor
            requests.append(request)
        # docs/decisions/0068: all statements lock jobs and executions in this order, or two would deadlock
        requests.sort(key=_job_and_execution)
        return requests

    def fetched(self, event: ExecutionsFetched) -> None:
        """An absent execution had ended before (or never was). Of the others, only their own runner's report counts."""
        batch = self._fetching.pop(event.request_id)
        self._failures = 0
        found = {execution.execution_id: execution for execution in event.executions}
        for pending in batch:
            execution = found.get(pending.report.execution_id)
            if execution is None:
                self._decided_before(pending)
            elif pending.execution is not None:  # its runner is known already: only its job has changed
                pending.execution = execution
                self._ready[execution.execution_id] = pending
            else:
                self._found(pending, execution)
        self._tell_refused()

    def _found(self, pending: Pending, execution: Execution) -> None:
        """It is unfinished. Its own runner's report ends it, even if others reported it before."""
        # To be first proves nothing: a liar may have guessed the id before the right runner was done.
        own = [said for said in pending.said() if _belongs(said[0], execution, said[1])]
        for report, runner_id in pending.said():
            if not _belongs(report, execution, runner_id):
                self._refuse(runner_id, report.execution_id, ReportRefusal.FOREIGN)
        self._forget(pending)
        if own:
            report, runner_id = own[0]
            self._collect(self._ready, Pending(report, execution, runner_id))

    def _decided_before(self, pending: Pending) -> None:
        """Let go of it, unless it was claimed for another runner since the look: then the report is foreign."""
        execution_id = pending.report.execution_id
        held = self._holding.executions.get(execution_id)
        own = pending.execution is not None or any(held and _belongs(report, held, by) for report, by in pending.said())
        foreign = held is not None and not own
        self._forget(pending)
        # Another controller ended it: its end is in the books, and only this controller thinks that it still runs.
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
            if result.busy:  # it was declared here; a sweep or a cancellation does so again if no report comes
                self._forget(by_id.pop(result.execution_id))
                self._collecting.ask_soon()
                continue
            if result.stale:  # read the job's row as it is now: it decides which ticks passed during the run
                self._unknown[result.execution_id] = by_id.pop(result.execution_id)
                continue
            if result.followers:
                self._activating.follow(result.followers)
            if result.ended:
                context.stats.ended += 1
                self._retry(by_id[result.execution_id], result)
            else:
                context.stats.ends_wasted += 1
            # Also if it had ended before: an answer may be lost, or a partly committed batch may be repeated.
            self._activating.job_freed(result.job_id)
            follow_ups = self._follow(result, by_id[result.execution_id])
            if follow_ups:
                found.update(dict.fromkeys(follow_ups))
        self._settle(by_id.values())
        return tuple(found)

    def _retry(self, pending: Pending, result: EndResult) -> None:
        """If the end made a retry, this controller is the first to know."""
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

    # docs/decisions/0024: even an end that came too late must tell the next tick
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
        else:  # another controller ended it, and the job's next execution runs there already
            self._window.runner_away(result.job_id)
        return newer

    def _stand_in(self, result: EndResult, pending: Pending) -> FollowUps:
        """The job's owners don't hear of an end committed here. What they can't foresee, this controller claims."""
        execution = pending.execution
        if not result.ended or result.next_run_at is None or execution is None:
            return NONE
        job, now_us = execution.job, self._context.now_us
        if result.moved and pending.anchor is not None:
            job = job._replace(anchor=pending.anchor, revision=job.revision + 1)
        # An owner foresees the schedule's next tick from the row, but not an earlier one that this end has set.
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
            # Only after the commit: a runner forgets what is acknowledged.
            for runner_id in filter(None, pending.runners):
                by_runner.setdefault(runner_id, []).append(execution_id)
        for runner_id, execution_ids in by_runner.items():
            self._context.effects.append(AckReports(runner_id, tuple(execution_ids)))

    def _refuse(self, runner_id: str, execution_id: int, why: ReportRefusal) -> None:
        """Acknowledge it in the end, so that it stops coming."""
        if runner_id:
            self._refused.setdefault((runner_id, why), []).append(execution_id)

    def _tell_refused(self) -> None:
        """Answer refused reports. No honest runner sends foreign ones. Decided ones are usual: answers get lost."""
        for (runner_id, why), execution_ids in self._refused.items():
            if why is ReportRefusal.FOREIGN:
                self._context.stats.reports_foreign += len(execution_ids)
                self._context.log(Level.WARNING, "report_refused", runner=runner_id, reports=len(execution_ids))
            else:
                self._context.stats.reports_decided += len(execution_ids)
            self._context.effects.append(AckReports(runner_id, tuple(execution_ids), why))
        self._refused.clear()

    def failed(self, event: StoreFailed) -> None:
        """The outcome is unknown, so the same is asked again."""
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
    """The request that ends it, computed from its job's row as `execution` has it."""
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
    """What the end means for the message. Only for an execution that no runner has."""
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
    """Add another report to a pending one. False: the execution is another runner's."""
    if runner_id in known.runners:
        return True
    if known.execution is not None:
        if not _belongs(report, known.execution, runner_id):
            return False
        known.runners[runner_id] = None
    elif len(known.unverified) < UNVERIFIED_MAX:  # one too many is dropped: its runner sends it again
        known.unverified.append((report, runner_id))
    return True


def _characters(report: Report) -> int:
    return len(report.output) + len(report.error_message) + len(report.stack)


def _job_and_execution(request: EndRequest) -> tuple[int, int]:
    return request.report.job_id, request.report.execution_id
