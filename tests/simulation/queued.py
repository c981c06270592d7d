"""Jobs whose target is a queue, and their consumers, in a world of faults: each tick that runs has one message.

What their consumers do has a generator of its own. So worlds without such jobs remain the stories that they were.
"""

import random
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from cronring.controller.core.node.events import ConsumersNotified
from cronring.controller.ports.many import NewJob
from cronring.controller.store.memory.rows import EnqueuedRow, StoredExecution, StoredJob
from cronring.controller.store.messages import REFUSED
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from cronring.schema.queues import module_of_queue, puts_messages, queue_of
from cronring.virtual.clock import MS, SECOND
from cronring.virtual.performing import run_now

if TYPE_CHECKING:
    from tests.simulation.world import World

SCHEDULES: Final = ("* * * * * *", "*/2 * * * * *", "every 2s", "every 3s")
AWAITED: Final = '{"retries":2,"backoff":"1s","completes":"consumed"}'
RETRIED: Final = '{"retries":1,"backoff":"1s"}'
LOOKS_NS: Final = 40 * MS
LONG_US: Final = 1_500_000  # the longest that a message is with its consumer
BROKEN: Final = "broken"
QUEUES: Final = ("reports", "mail", BROKEN)


class Queued:
    """`check()` judges it, once the world is over."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = random.Random(f"queues of {world.seed}")
        self._until_us: dict[int, int] = {}  # by message: how long its consumer takes
        self.consumed = 0
        store = world.database.store
        store.on_consumed = self._notify
        store.refuses_message = self._refusal
        world.clock.call_after(int(1.5 * SECOND), self._create)

    def _create(self) -> None:
        jobs = [
            NewJob("default", module_of_queue(queue), f"ws_{number}", "n", self._spec())
            for queue in QUEUES
            for number in range(self._rng.randint(1, 4))
        ]
        made = run_now(self._world.database.store.create_jobs(jobs, "me"))
        assert not any(isinstance(each, Exception) for each in made), made
        self._look()

    def _spec(self) -> JobSpec:
        policy = self._rng.choice(("", "", RETRIED, AWAITED, AWAITED))
        schedule = self._rng.choice(SCHEDULES)
        return JobSpec(schedule, timeout_ms=30_000, on_disconnect="stop", policy=policy, payload="1")

    def _refusal(self, row: StoredJob) -> str | None:
        """A user's trigger that takes now and then no message of one queue."""
        broken = queue_of(row.deployment.module[1]) == BROKEN and self._rng.random() < 0.3
        return "not today" if broken else None

    def _look(self) -> None:
        """As consumers do."""
        now_us = self._world.database.now_us()
        for message in list(self._world.database.store.messages.values()):
            until_us = self._until_us.setdefault(message.message_id, now_us + self._rng.randrange(LONG_US))
            if message.ended_at is None and now_us >= until_us:
                self._end(message)
        self._world.clock.call_after(LOOKS_NS, self._look)

    def _end(self, message: EnqueuedRow) -> None:
        outcome = self._rng.choices((Outcome.COMPLETED, Outcome.FAILED, Outcome.LOST), (8, 2, 1))[0]
        self._world.database.store.end_message(message.message_id, outcome, "Oops", "no", "1")
        self.consumed += message.awaited

    def _notify(self) -> None:
        for controller in self._world.controllers:
            if controller.alive and self._rng.random() >= self._world.notify_loss:
                self._world.clock.call_after(2 * MS, partial(controller.put, ConsumersNotified()))

    def check(self) -> None:
        """One message for each execution, but for those that PostgreSQL refused; and no message for anything else."""
        store = self._world.database.store
        put = Counter(execution_id for execution_id, _, _ in store.put)
        for execution in store.executions.values():
            if puts_messages(execution.deployment.key):
                expected = 0 if _is_refused(execution) else 1
                found = put.pop(execution.execution_id, 0)
                assert found == expected, f"{execution} has {found} messages, not {expected}"
        assert not put, f"messages of nothing: {put}"
        attempts = Counter((store.executions[each].job.job_id, *rest) for each, *rest in store.put)
        twice = [attempt for attempt, count in attempts.items() if count > 1]
        assert not twice, f"an attempt at a tick has two messages: {twice}"
        left = [each for each in store.messages.values() if each.awaited and each.execution_id not in store.unfinished]
        assert not left, f"the executions of these have ended: {left}"


def _is_refused(execution: StoredExecution) -> bool:
    if execution.report is None:
        return execution.decided is not None and execution.decided.error_type == REFUSED
    return execution.report.error_type == REFUSED
