"""Effects become calls and their answers events, on the store of the conformance suite."""

import asyncio
from dataclasses import dataclass, field

import pytest

from cronring.controller.core.model import (
    ActivationResult,
    ClaimRequest,
    EndRequest,
    Execution,
    Job,
    LeaseRenewal,
)
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.effects import Effect
from cronring.controller.core.node.events import Event
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.messages import Ack, Packet
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.log import LINES_PER_PERIOD, Log
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.runtime.performer import Performer
from cronring.controller.services.deploying import Deployer
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import Outcome, Report, Trigger
from tests.support.fake_runner import hello
from tests.support.waiting import TIMEOUT_S, wait_until

NOW_US = 1_700_000_000_000_000


class FailingStore(MemoryStore):
    """Fails every renewal with `error`, if there is one."""

    error: BaseException | None = None

    async def renew_lease(
        self,
        controller: ControllerInfo,
        draining: bool,
        lease_ms: int,
        runner_ids: tuple[str, ...],
        lost_after_ms: int,
        cancelling: tuple[int, ...] = (),
    ) -> LeaseRenewal:
        if self.error is not None:
            raise self.error
        return await super().renew_lease(controller, draining, lease_ms, runner_ids, lost_after_ms, cancelling)


@dataclass
class Sent:
    effects: list[Effect] = field(default_factory=list)

    def send(self, effect: Effect) -> None:
        self.effects.append(effect)


class World:
    """A performer, and everything that it tells."""

    def __init__(self) -> None:
        self.now_us = NOW_US
        self.store = FailingStore(lambda: self.now_us)
        self.runners, self.peers, self.metrics = Sent(), Sent(), Metrics()
        self.answers: asyncio.Queue[Event] = asyncio.Queue()
        self.failures: list[BaseException] = []
        log = Log(SystemClock(), self.metrics)
        info = ControllerInfo("c-1", "127.0.0.1:1", "127.0.0.1:2", 1, "0")
        self.performer = Performer(
            self.store, info, ClusterSettings(), self.runners, self.peers, log, self.metrics, SystemClock()
        )
        self.performer.connect(self.answers.put_nowait, self.failures.append)

    async def answer(self, effect: Effect) -> Event:
        self.performer.perform(effect)
        async with asyncio.timeout(TIMEOUT_S):
            return await self.answers.get()


async def test_what_is_for_runners_and_peers_goes_to_them_at_once() -> None:
    world = World()
    ack = effects.AckReports("r-1", (1,))
    packet = effects.SendPacket("a:1", Packet("c-1", "c:1", (), Ack(1)))
    world.performer.perform(ack)
    world.performer.perform(packet)
    assert world.runners.effects == [ack]
    assert world.peers.effects == [packet]


async def test_a_cancellation_that_leaks_out_of_the_driver_is_an_answer() -> None:
    """The node waits for one, and sends no other renewal before it: it would be without a lease for ever."""
    world = World()
    world.store.error = asyncio.CancelledError()
    failed = await world.answer(effects.RenewLease(1, False, ()))
    assert isinstance(failed, events.StoreFailed)
    assert (failed.request_id, failed.connection_lost) == (1, True)
    assert world.failures == []
    world.store.error = None
    assert isinstance(await world.answer(effects.RenewLease(2, False, ())), events.LeaseRenewed)
    await world.performer.close()


async def test_a_tick_from_lease_to_end_is_answered_and_counted() -> None:
    world = World()
    module = hello(schedule="1s").modules[0]
    settings = ClusterSettings(timeout_ms=1_000, default_jitter="off")
    deployer = Deployer(world.store, settings, lambda _: None, lambda _: None)
    await deployer.deploy(module.schema, module.digest, by="ada")
    renewed = await world.answer(effects.RenewLease(1, False, ()))
    assert isinstance(renewed, events.LeaseRenewed)
    fetched = await world.answer(effects.FetchWindow(2, tuple(range(4096)), 90_000))
    assert isinstance(fetched, events.WindowFetched)
    (job,) = fetched.jobs
    assert job.next_tick is not None
    assert job.next_run_at is not None
    world.now_us = job.next_run_at + 3_000
    request = ClaimRequest(job.job_id, job.next_tick, job.next_tick, job.next_run_at, "r-1", job.deployment, ())
    claimed = await world.answer(effects.Claim(3, [request], 30_000))
    assert isinstance(claimed, events.Claimed)
    (result,) = claimed.results
    assert result.updated
    assert result.execution_id is not None
    found = await world.answer(effects.FetchExecutions(4, (result.execution_id,)))
    assert isinstance(found, events.ExecutionsFetched)
    assert [execution.execution_id for execution in found.executions] == [result.execution_id]
    claimed_at = result.claimed_at
    report = Report(
        result.execution_id, job.job_id, claimed_at, Outcome.FAILED, claimed_at, claimed_at + 5, "E", "m", ""
    )
    end = EndRequest(report, found.executions[0].tick, result.revision, None, None, ())
    ended = await world.answer(effects.End(5, [end]))
    assert isinstance(ended, events.Ended)
    assert ended.results[0].ended
    text = world.metrics.text().decode()
    assert 'cronring_claims_total{result="won"} 1.0' in text
    assert 'cronring_executions_total{outcome="failed"} 1.0' in text
    assert "cronring_claim_lateness_seconds_sum 0.003" in text
    assert world.performer.database_ok


@pytest.mark.parametrize(
    ("error", "connection_lost"), [(StoreUnavailable("away"), True), (StoreError("refused"), False)]
)
async def test_a_failure_of_the_store_is_an_event(error: Exception, connection_lost: bool) -> None:
    world = World()
    world.store.error = error
    failed = await world.answer(effects.RenewLease(7, False, ()))
    assert failed == events.StoreFailed(7, str(error), connection_lost)
    assert world.performer.database_ok is not connection_lost
    assert not world.failures
    assert 'cronring_store_failures_total{effect="RenewLease"} 1.0' in world.metrics.text().decode()


async def test_an_error_that_nobody_foresaw_is_not_swallowed() -> None:
    world = World()
    world.store.error = ZeroDivisionError("a defect")
    world.performer.perform(effects.RenewLease(7, False, ()))
    await wait_until(lambda: bool(world.failures), "it was swallowed")
    assert isinstance(world.failures[0], ZeroDivisionError)
    assert world.answers.empty()


def test_claims_beside_the_schedule_are_counted_by_result_and_trigger() -> None:
    metrics = Metrics()
    job = Job(1, "m.a", 1, "d", "a", "manual", 0, 1, 1, "stop", True, None, None)
    run = Execution(7, job, 1, 1, 1, 1, Trigger.MANUAL, "d", "r")
    metrics.activated(
        [
            ActivationResult(1, run, gone=False, next_tick=None),
            ActivationResult(2, run._replace(trigger=Trigger.BACKFILL), gone=False, next_tick=5),
            ActivationResult(3, None, gone=False, next_tick=None),
            ActivationResult(4, None, gone=True, next_tick=None),
        ]
    )
    text = metrics.text().decode()
    for line in (
        'cronring_activation_claims_total{result="won"} 2.0',
        'cronring_activation_claims_total{result="waits"} 1.0',
        'cronring_activation_claims_total{result="gone"} 1.0',
        'cronring_activations_started_total{trigger="manual"} 1.0',
        'cronring_activations_started_total{trigger="backfill"} 1.0',
    ):
        assert line in text


def test_warnings_of_one_kind_are_limited_and_all_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics()
    log = Log(SystemClock(), metrics)
    for _ in range(1_000):
        log.warning("waiting_for_database", reason="refused")
    log.warning("something_else")
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("waiting_for_database") == LINES_PER_PERIOD
    assert (printed.out + printed.err).count("something_else") == 1
    assert 'cronring_log_lines_total{event="waiting_for_database",level="warning"} 1000.0' in metrics.text().decode()
