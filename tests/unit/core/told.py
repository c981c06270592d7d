"""A node that a test tells what happens, and asks what it did. Answers are the test's own."""

import random
from typing import Any, Final, TypeVar

from cronring.controller.core.model import (
    ActivationResult,
    ClaimRequest,
    ClaimResult,
    Execution,
    Job,
    LeaseRenewal,
    RunnerInfo,
)
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.schema.execution import Outcome, Report

MS = 1_000_000
S_US = 1_000_000
T = 1_800_000_000 * S_US  # PostgreSQL's time when the node starts
E = TypeVar("E")


def job(job_id: int = 1, due: int = T + 10 * S_US, schedule: str = "*/10 * * * * *", **changes: Any) -> Job:
    base = Job(job_id, f"m.j{job_id}", job_id, "d", "v", schedule, T, 1, 5_000, "stop", False, due, due)
    return base._replace(**changes)


def runner(runner_id: str = "r1", *deployments: str) -> RunnerInfo:
    return RunnerInfo(runner_id, "host", 1, "1", deployments or ("d",))


def report(execution: Execution, outcome: Outcome = Outcome.COMPLETED, **changes: Any) -> Report:
    base = Report(
        execution.execution_id,
        execution.job.job_id,
        execution.claimed_at,
        outcome,
        execution.claimed_at,
        execution.claimed_at + 1_000,
        "",
        "",
        "",
    )
    return base._replace(**changes)


def won(request: ClaimRequest, execution_id: int, claimed_at: int) -> ClaimResult:
    return ClaimResult(request.job_id, True, True, execution_id, claimed_at, True, request.expected_tick, None, 1)


# Of the `controllers` table: whom a test lets gossip name is no stranger.
ROWS: Final = tuple((f"c{number}", f"host:{number}") for number in range(1, 10))


class Told:
    """Keeps the time, and every effect so far that wasn't taken yet."""

    def __init__(self, **settings: Any) -> None:
        self.now_ns = 0
        self.node = Node("c1", "host:1", ClusterSettings(**settings), random.Random(1), 0)
        self.effects: list[effects.Effect] = []
        self.stepped_us = 0

    @property
    def database_us(self) -> int:
        return T + self.now_ns // 1_000 + self.stepped_us

    def tell(self, event: events.Event) -> None:
        self.effects += self.node.step(event, self.now_ns)

    def wait(self, ms: float) -> None:
        """Time passes; the node is woken whenever it wants to be."""
        ends_ns = self.now_ns + int(ms * MS)
        while (deadline_ns := self.node.next_deadline()) is not None and deadline_ns <= ends_ns:
            self.now_ns = max(self.now_ns, deadline_ns)
            self.tell(events.Woke())
        self.now_ns = ends_ns

    def wait_renewing(self, ms: float) -> None:
        """The same, with PostgreSQL answering renewals at once."""
        for _ in range(int(ms // 100)):
            self.wait(100)
            self.renewed()

    def take(self, kind: type[E]) -> list[E]:
        """Effects of this kind, in order; they are taken only once."""
        taken: list[E] = [effect for effect in self.effects if isinstance(effect, kind)]
        self.effects = [effect for effect in self.effects if not isinstance(effect, kind)]
        return taken

    def one(self, kind: type[E]) -> E:
        taken = self.take(kind)
        assert len(taken) == 1, f"{len(taken)} of {kind.__name__}"
        return taken[0]

    def renewed(self, **changes: Any) -> None:
        for effect in self.take(effects.RenewLease):
            renewal = LeaseRenewal(self.database_us, effect.runner_ids, (), (), False, (), ROWS)._replace(**changes)
            self.tell(events.LeaseRenewed(effect.request_id, renewal))

    def fetched(self, *jobs: Job) -> None:
        effect = self.one(effects.FetchWindow)
        self.tell(events.WindowFetched(effect.request_id, self.database_us, list(jobs)))

    def ready(self, *jobs: Job) -> None:
        """Started, with a lease, runner r1 and these jobs."""
        self.tell(events.Woke())
        self.renewed()
        self.tell(events.PeersFound(()))
        self.wait(20)
        self.fetched(*jobs)
        self.tell(events.RunnerJoined(runner()))

    def activated(self, *results: ActivationResult) -> None:
        effect = self.one(effects.Activate)
        self.tell(events.Activated(effect.request_id, self.database_us, list(results)))

    def claimed(self, *results: ClaimResult) -> None:
        effect = self.one(effects.Claim)
        answers = list(results) or [won(request, 100 + request.job_id, self.database_us) for request in effect.requests]
        self.tell(events.Claimed(effect.request_id, self.database_us, answers))

    def running(self, *jobs: Job) -> list[Execution]:
        """Ready, and these jobs (due at T + 10 s) claimed and dispatched."""
        self.ready(*jobs)
        self.wait_renewing(10_000)
        self.claimed()
        return [execution for effect in self.take(effects.Dispatch) for execution in effect.executions]

    def fail(self, effect: Any, connection_lost: bool = True) -> None:
        self.tell(events.StoreFailed(effect.request_id, "test", connection_lost))
