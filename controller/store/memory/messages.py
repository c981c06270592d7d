"""Messages of queues, in memory; see sql/queries/queue.sql."""

from cronring.controller.core import ticks
from cronring.controller.core.model import EndRequest, MessageFate
from cronring.controller.store.memory.limits import MemoryLimits
from cronring.controller.store.memory.rows import DecidedByClaim, EnqueuedRow, StoredExecution
from cronring.controller.store.messages import REFUSED
from cronring.schema.execution import Outcome, Report
from cronring.schema.queues import queue_of, workspace_of


class MemoryMessages(MemoryLimits):
    """The part of MemoryStore that is about messages."""

    def _add_message(self, execution: StoredExecution) -> None:
        """Of one that was claimed without a runner. One that no consumer ends is decided by that."""
        error = self.refuses_message(execution.job)
        if error is not None:
            execution.decided = DecidedByClaim(Outcome.FAILED, REFUSED, error)
            return
        awaited = ticks.awaits_consumer(execution.job.job())
        self._put_message(execution, awaited=awaited)
        if not awaited:
            execution.decided = DecidedByClaim(Outcome.COMPLETED)

    def _put_message(self, execution: StoredExecution, *, awaited: bool) -> None:
        job = execution.job
        payload = job.spec.payload if execution.payload is None else execution.payload
        self.messages_made += 1
        namespace, module = job.deployment.module
        self.messages[self.messages_made] = EnqueuedRow(
            self.messages_made, namespace, queue_of(module), workspace_of(job.verb), job, execution.execution_id,
            execution.tick, execution.run_at, execution.attempt, payload, awaited,
            execution.hard_deadline if awaited else None, self.now_us(),
        )  # fmt: skip

    def end_message(
        self, message_id: int, outcome: Outcome, error_type: str = "", error_message: str = "", output: str = ""
    ) -> None:
        """What a consumer says of a message: controllers end its execution by that. One not awaited is gone.

        Tests call it, in place of the functions that consumers call in SQL.
        """
        message = self.messages[message_id]
        if not message.awaited:
            del self.messages[message_id]
            return
        message.ended_at, message.outcome = self.now_us(), outcome
        message.error_type, message.error_message, message.output = error_type, error_message, output
        self.on_consumed()

    async def get_queue_reports(self, controller_id: str, known: tuple[int, ...], at_most: int) -> list[Report]:
        return self._queue_reports(controller_id, frozenset(known))[:at_most]

    def _has_queue_reports(self, controller_id: str) -> bool:
        """Consumers have said something of any executions, or claims of this controller's own."""
        return any(each.ended_at is not None for each in self.messages.values()) or any(
            each.decided is not None and each.controller_id == controller_id for each in self.unfinished.values()
        )

    def _queue_reports(self, controller_id: str, known: frozenset[int] = frozenset()) -> list[Report]:
        found = [_consumed(self.unfinished, each) for each in self.messages.values()]
        found += [_decided(each) for each in self.unfinished.values()]
        return [
            report
            for report in found
            if report is not None
            and report.execution_id not in known
            and self.unfinished[report.execution_id].controller_id == controller_id
        ]

    def _message_of(self, execution_id: int) -> EnqueuedRow | None:
        of_it = (each for each in self.messages.values() if each.awaited and each.execution_id == execution_id)
        return next(of_it, None)

    def _held_by_consumer(self, request: EndRequest) -> bool:
        """Its message can't be withdrawn: its consumer has ended it."""
        if request.message is not MessageFate.WITHDRAWN:
            return False
        message = self._message_of(request.report.execution_id)
        return message is not None and message.ended_at is not None

    def _delete_message(self, request: EndRequest) -> None:
        message = None if request.message is MessageFate.NONE else self._message_of(request.report.execution_id)
        if message is not None:
            del self.messages[message.message_id]


def _consumed(unfinished: dict[int, StoredExecution], message: EnqueuedRow) -> Report | None:
    execution = unfinished.get(message.execution_id)
    if execution is None or message.ended_at is None or message.outcome is None:
        return None
    claimed_at, ended_at = execution.claimed_at, max(message.ended_at, execution.claimed_at)
    return Report(
        execution.execution_id, execution.job.job_id, claimed_at, message.outcome, claimed_at, ended_at,
        message.error_type, message.error_message, message.output,
    )  # fmt: skip


def _decided(execution: StoredExecution) -> Report | None:
    if execution.decided is None:
        return None
    claimed_at, decided = execution.claimed_at, execution.decided
    return Report(
        execution.execution_id, execution.job.job_id, claimed_at, decided.outcome, claimed_at, claimed_at,
        decided.error_type, decided.error_message,
    )  # fmt: skip
