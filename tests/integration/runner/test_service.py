"""A whole runner against scripted controllers over real gRPC."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.runner.config import ASYNC_RUNS, RunnerConfig, default_sync_children
from cronring.runner.core.settings import SECOND_NS, RunnerSettings
from cronring.runner.describe import DescribedFiles
from cronring.runner.main import hello_message, load_modules
from cronring.runner.service import RunnerService
from cronring.runner.trust import RunnerTrust
from cronring.trust.channels import plaintext
from tests.integration.runner.fake_controller import FakeController, make_run
from tests.support.waiting import TIMEOUT_S

SOURCE = """
import asyncio
from cronring import Context, cron

@cron("* * * * *")
async def noop(): pass

@cron("* * * * *")
async def sleeper(): await asyncio.sleep(60)

@cron("* * * * *")
def sync(ctx: Context): print("late by", ctx.lateness.total_seconds() >= 0)
"""

# What is waited for here comes soon. What is not, comes late, however long the machine holds us up.
CALM = RunnerSettings(
    beat_ns=SECOND_NS // 10,
    renewal_patience_ns=2 * SECOND_NS,
    fence_ns=30 * SECOND_NS,
    ack_patience_ns=60 * SECOND_NS,
    drain_ns=SECOND_NS // 2,
    farewell_ns=60 * SECOND_NS,
)
FENCED = replace(CALM, renewal_patience_ns=SECOND_NS // 4, fence_ns=2 * SECOND_NS)
UNHEARD = replace(CALM, ack_patience_ns=SECOND_NS, farewell_ns=SECOND_NS)


class Started:
    def __init__(self, service: RunnerService, task: "asyncio.Task[int]") -> None:
        self.service = service
        self.task = task

    async def drained(self) -> int:
        self.service.drain()
        async with asyncio.timeout(TIMEOUT_S):
            return await self.task


Start = Callable[..., Coroutine[Any, Any, Started]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    file = tmp_path / "mod.py"
    file.write_text(textwrap.dedent(SOURCE))
    started: list[Started] = []

    async def start_one(*controllers: FakeController, settings: RunnerSettings = CALM) -> Started:
        config = RunnerConfig((file,), tuple(c.address for c in controllers), insecure=True)
        files = DescribedFiles(config.files, config.interpreter, config.namespace)
        modules = await asyncio.to_thread(load_modules, files)
        trust = RunnerTrust(plaintext, "", config.controllers, None)
        service = RunnerService(settings, trust, hello_message(modules, config), 1, 0)
        task = asyncio.create_task(service.run([(item.module, item.program) for item in modules]))
        started.append(Started(service, task))
        for controller in controllers:
            await controller.connected()
        return started[-1]

    yield start_one
    for one in started:
        if not one.task.done():
            one.task.cancel()
            await asyncio.gather(one.task, return_exceptions=True)


async def test_runs_come_in_and_results_go_out(start: Start) -> None:
    async with FakeController("a") as a:
        runner = await start(a)
        [hello] = a.hellos
        assert [verb.name for verb in hello.modules[0].schema.verbs] == ["noop", "sleeper", "sync"]
        assert len(hello.modules[0].digest) == 64
        assert (hello.sync_places, hello.async_places) == (default_sync_children(), ASYNC_RUNS)
        await a.dispatch(make_run(1, "noop"), make_run(2, "sync"), make_run(3, "missing"))
        await a.until(lambda: len(a.reports) == 3)
        assert a.reports[1].outcome == a.reports[2].outcome == wire.OUTCOME_COMPLETED
        assert a.reports[2].output == "late by True\n"
        assert a.reports[1].claimed_at_us <= a.reports[1].started_at_us <= a.reports[1].ended_at_us
        assert (a.reports[3].outcome, a.reports[3].error_type) == (wire.OUTCOME_FAILED, "UnknownVerb")
        assert await runner.drained() == 0


async def test_a_run_starts_once_however_often_it_is_dispatched(start: Start) -> None:
    async with FakeController("a") as a, FakeController("b") as b:
        await start(a, b)
        run = make_run(1, "noop")
        await a.dispatch(run, run)
        await a.until(lambda: 1 in a.reports)
        first = a.reports[1]
        await a.dispatch(make_run(3, "noop"))  # behind the report's acknowledgement on its stream:
        await a.until(lambda: 3 in a.reports)  # whoever answers it has read that
        await b.dispatch(run, make_run(2, "noop"))  # an adopter that doesn't know yet
        await b.until(lambda: 2 in b.reports)
        assert 1 not in b.reports
        assert a.received == 2
        assert first.outcome == wire.OUTCOME_COMPLETED


async def test_results_go_to_another_controller_when_one_breaks(start: Start) -> None:
    async with FakeController("a") as a, FakeController("b") as b:
        a.acks = False
        await start(a, b)
        await a.dispatch(make_run(1, "noop"), make_run(2, "noop"))
        await a.until(lambda: len(a.reports) == 2)
        await a.stop()
        await b.until(lambda: len(b.reports) == 2)
        assert b.reports[1] == a.reports[1]


async def test_an_adopter_gets_the_result_of_a_run_that_it_dispatched_again(start: Start) -> None:
    async with FakeController("a") as a, FakeController("b") as b:
        await start(a, b)
        run = make_run(1, "sleeper")
        await a.dispatch(run)
        await a.until(lambda: any(beat.running for beat in a.beats))  # else the adopter may come first
        await b.dispatch(run)
        await b.cancel(1)
        await b.until(lambda: 1 in b.reports)
        assert b.reports[1].outcome == wire.OUTCOME_CANCELLED
        assert not a.reports


async def test_silence_after_a_report_is_followed_by_another_offer(start: Start) -> None:
    async with FakeController("a") as a:
        a.acks = False
        await start(a, settings=UNHEARD)
        await a.dispatch(make_run(1, "noop"))
        await a.until(lambda: a.received == 2)
        assert list(a.reports) == [1]


async def test_further_controllers_are_learnt_and_one_is_asked_to_renew(start: Start) -> None:
    async with FakeController("a") as a, FakeController("b") as b:
        a.peers = [b.address]
        await start(a)
        await b.connected()
        await b.until(lambda: len(b.beats) >= 3)
        renewing = [any(beat.renew for beat in c.beats) for c in (a, b)]
        assert renewing == [True, False]
        a.renews = False
        await b.until(lambda: b.beats[-1].renew)


async def test_without_contact_runs_are_stopped_unless_they_may_finish(start: Start) -> None:
    async with FakeController("a") as a:
        await start(a, settings=FENCED)
        await a.dispatch(make_run(1, "sleeper"), make_run(2, "sleeper", finish=True))
        a.renews = False
        await a.until(lambda: 1 in a.reports)
        assert (a.reports[1].outcome, a.reports[1].error_type) == (wire.OUTCOME_CANCELLED, "Disconnected")
        await a.dispatch(make_run(3, "noop"))  # may be counted as lost already: not begun
        assert a.reports.keys().isdisjoint({2, 3})
        a.renews = True
        await a.until(lambda: a.beats[-1].renew)
        heard = len(a.beats)
        await a.until(lambda: len(a.beats) > heard + 1)
        assert a.declined == [3]
        await a.dispatch(make_run(4, "noop"))
        await a.until(lambda: 4 in a.reports)
        assert a.reports[4].outcome == wire.OUTCOME_COMPLETED


async def test_what_comes_without_contact_is_given_back_and_runs_when_it_comes_again(start: Start) -> None:
    async with FakeController("a") as a:
        await start(a, settings=FENCED)
        await a.dispatch(make_run(1, "sleeper"))
        a.renews = False
        await a.until(lambda: 1 in a.reports)
        again = make_run(2, "noop")
        await a.dispatch(again)
        heard = len(a.beats)
        await a.until(lambda: len(a.beats) > heard + 3)
        assert (a.declined, 2 in a.reports) == ([], False)
        a.renews = True
        await a.until(lambda: a.declined == [2])
        await a.dispatch(again)
        await a.until(lambda: 2 in a.reports)
        assert a.reports[2].outcome == wire.OUTCOME_COMPLETED


async def test_a_database_that_is_away_for_all_stops_nothing(start: Start) -> None:
    """Not even when a controller can't welcome the runner for want of it."""
    async with FakeController("a") as a, FakeController("b") as b:
        b.welcomes = False
        b.renews = b.database_ok = False
        await start(a, b, settings=FENCED)
        await a.dispatch(make_run(1, "sleeper"))
        a.renews = a.database_ok = False
        heard = len(a.beats)
        await a.until(lambda: len(a.beats) > heard + 40)  # twice the fence
        assert not a.reports


async def test_a_restarted_controller_is_found_again(start: Start) -> None:
    async with FakeController("a") as a:
        await start(a)
        address = a.address
        await a.stop()
        await a.start(address)
        await a.connected()
        await a.until(lambda: len(a.hellos) == 2)
        assert a.hellos[0].runner_id == a.hellos[1].runner_id


async def test_a_drain_says_so_cancels_in_time_and_delivers(start: Start) -> None:
    async with FakeController("a") as a:
        runner = await start(a)
        await a.dispatch(make_run(1, "sleeper"))
        assert await runner.drained() == 0
        assert a.beats[-1].draining
        assert (a.reports[1].outcome, a.reports[1].error_type) == (wire.OUTCOME_CANCELLED, "RunnerStopped")


async def test_undelivered_results_are_counted(start: Start) -> None:
    async with FakeController("a") as a:
        a.acks = False
        runner = await start(a, settings=UNHEARD)
        await a.dispatch(make_run(1, "noop"))
        await a.until(lambda: 1 in a.reports)
        assert await runner.drained() == 1


async def test_the_process_ends_on_sigterm_with_nothing_left(tmp_path: Path) -> None:
    file = tmp_path / "mod.py"
    file.write_text(textwrap.dedent(SOURCE))
    async with FakeController("a") as a:
        program = (
            "import sys; from pathlib import Path; from cronring.runner.config import RunnerConfig; "
            "from cronring.runner.describe import DescribedFiles; from cronring.runner.main import run; "
            "config = RunnerConfig((Path(sys.argv[1]),), (sys.argv[2],), drain_timeout=0.2, insecure=True); "
            "sys.exit(run(config, DescribedFiles(config.files, config.interpreter, config.namespace)))"
        )
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(file), a.address)
        await a.connected()
        await a.dispatch(make_run(1, "noop"), make_run(2, "sleeper"))
        await a.until(lambda: 1 in a.reports)
        os.kill(process.pid, signal.SIGTERM)
        async with asyncio.timeout(TIMEOUT_S):
            assert await process.wait() == 0
        assert a.reports[2].error_type == "RunnerStopped"
