"""Cancelling, retrying and following executions on a living cluster of three controllers, with kill -9."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cronring.client import AsyncClient
from cronring.client.errors import Conflict, NotFound
from cronring.client.model import Execution, ExecutionEventKind
from cronring.controller.store.connect import connect
from tests.support.cluster import Cluster, Process
from tests.support.waiting import wait_until

MODULE = Path(__file__).parent / "modules" / "control.py"


class Field:
    """A cluster with its runner, whose controllers may die: there are three again at each test's beginning."""

    def __init__(self, cluster: Cluster, journal: Path) -> None:
        self.cluster = cluster
        self.journal = journal

    @property
    def addresses(self) -> list[str]:
        return [controller.grpc for controller in self.cluster.controllers]

    def whole(self) -> None:
        dead = [controller for controller in self.cluster.controllers if not controller.alive()]
        for each in [self.cluster.restart_controller(controller) for controller in dead]:
            self.cluster.wait_ready(each)

    async def holder(self, client: AsyncClient, execution: Execution) -> Process:
        """The controller that holds it."""
        members = {member.id: member.grpc_address for member in (await client.cluster.get()).members}
        address = members[execution.controller]
        return next(controller for controller in self.cluster.controllers if controller.grpc == address)

    async def running(self, client: AsyncClient, verb: str) -> Execution:
        """A new execution of it whose code has begun."""
        activation = await client.jobs.trigger(f"control.{verb}")
        found: list[Execution] = []

        async def begun() -> bool:
            found[:] = await client.executions.list(f"control.{verb}", since=activation.tick, until=activation.tick)
            lines = self.journal.read_text().splitlines() if self.journal.exists() else []
            return bool(found) and any(json.loads(line)["execution"] == found[0].id for line in lines)

        await wait_until(begun, f"{verb} doesn't begin", 30)
        return found[0]


@pytest.fixture(scope="module")
def cluster_field(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("control")
    journal = folder / "journal"
    with Cluster(module_database_url, folder, {"JOURNAL": str(journal)}) as cluster:
        for _ in range(3):
            cluster.start_controller()
        cluster.start_runner(MODULE)
        yield Field(cluster, journal)


@pytest.fixture
async def field(cluster_field: Field) -> Field:
    await asyncio.to_thread(cluster_field.whole)
    async with AsyncClient(cluster_field.addresses) as client:

        async def deployed() -> bool:
            jobs = await client.jobs.list(module="control", limit=100)
            return len(jobs) == 7

        await wait_until(deployed, "its runner doesn't register", 40)
    return cluster_field


async def ended(client: AsyncClient, execution_id: int, seconds: float = 20) -> Execution:
    found: list[Execution] = []

    async def has_ended() -> bool:
        found[:] = [await client.executions.get(execution_id)]
        return found[0].outcome is not None

    await wait_until(has_ended, lambda: f"it goes on: {found}", seconds)
    return found[0]


async def test_a_trigger_returns_its_execution_or_says_that_it_waits(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        first = await client.jobs.trigger("control.patient", by="ann")
        execution = await client.executions.get(first.execution_id)
        assert (execution.job, execution.tick, execution.trigger) == ("control.patient", first.tick, "manual")
        second = await client.jobs.trigger("control.patient", by="bob")
        assert second.execution_id == 0, "one at a time"
        assert await client.jobs.cancel_activation("control.patient", second.id)
        await client.executions.cancel(execution.id)
        await ended(client, execution.id)


async def test_any_controller_cancels_whoever_holds_it(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "patient")
        holder = await field.holder(client, execution)
    for address in [address for address in field.addresses if address != holder.grpc][:1]:
        async with AsyncClient([address]) as other:
            asked = await other.executions.cancel(execution.id, "wrong month", "ann")
            assert asked.outcome in {None, "cancelled"}, "it may have ended before it was read"
            assert (asked.cancel_requested_by, asked.cancel_note) == ("ann", "wrong month")
            end = await ended(other, execution.id)
            again = await other.executions.cancel(execution.id, "once more", "bob")
    assert (end.outcome, end.error_type) == ("cancelled", "Cancelled")
    assert end.error_message.startswith("cancelled by ann: wrong month")
    assert (again.outcome, again.cancel_requested_by) == ("cancelled", "ann")


@pytest.mark.parametrize("verb", ["stubborn", "spinning"])
async def test_who_does_not_listen_is_killed_after_the_grace(field: Field, verb: str) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, verb)
        began = time.monotonic()
        await client.executions.cancel(execution.id, by="ann")
        end = await ended(client, execution.id)
        assert time.monotonic() - began > 1.8
    assert end.outcome == "cancelled"
    assert end.error_message.startswith("cancelled by ann")
    assert "did not stop within 2s" in end.error_message


async def test_what_has_ended_is_not_cancelled_and_the_answer_says_how(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "flaky")
        await ended(client, execution.id)
        with pytest.raises(Conflict, match=r"is failed, and only a running one can become cancelled: .* before"):
            await client.executions.cancel(execution.id)
        with pytest.raises(NotFound):
            await client.executions.cancel(10**15)


async def test_cancelled_executions_are_not_retried_by_policy(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "failing")
        await client.executions.cancel(execution.id, by="ann")
        end = await ended(client, execution.id)
        assert end.outcome in {"cancelled", "failed"}
        assert end.retry_at is None
        assert await client.jobs.activations("control.failing") == ()


async def test_the_holder_dies_between_the_mark_and_the_runner(field: Field) -> None:
    """It is stopped while it is marked, so that it can't have told anybody, and then killed: its adopter does it."""
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "patient")
        holder = await field.holder(client, execution)
        connection = await connect(field.cluster.database_url, "marker")
        holder.send(signal.SIGSTOP)
        # Without NOTIFY: nobody hears of it but by the table.
        await connection.execute(
            "UPDATE cron_executions SET cancel_requested_at = now(), cancel_requested_by = 'ann', "
            "cancel_note = 'by the table alone' WHERE id = $1",
            execution.id,
        )
        assert await connection.fetchval("SELECT outcome IS NULL FROM cron_executions WHERE id = $1", execution.id)
        await connection.close()
        await asyncio.to_thread(holder.kill)
        end = await ended(client, execution.id, 15)
    assert end.outcome == "cancelled"
    assert end.controller != execution.controller
    assert end.error_message.startswith("cancelled by ann: by the table alone")


async def test_a_retry_by_hand_is_the_next_attempt(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "flaky")
        assert (await ended(client, execution.id)).outcome == "failed"
        waiting = await client.executions.retry(execution.id, "ann")
        assert (waiting.trigger, waiting.tick, waiting.attempt) == ("retry", execution.tick, 2)

        async def completed() -> bool:
            runs = await client.executions.list("control.flaky", since=execution.tick, until=execution.tick)
            return [(run.attempt, run.outcome) for run in runs] == [(2, "completed"), (1, "failed")]

        await wait_until(completed, "it isn't tried again")
        with pytest.raises(Conflict, match="completed"):
            await client.executions.retry(execution.id)


async def test_output_is_followed_through_a_controller_that_dies(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "patient")
    victim = field.cluster.controllers[0]
    text, killed = b"", False
    async with AsyncClient(field.addresses) as follower:
        assert follower.current_address == victim.grpc
        async for chunk in follower.executions.follow(execution.id):
            assert chunk.gap == 0
            text += chunk.data
            if text.count(b"\n") > 10 and not killed:
                killed = True
                await asyncio.to_thread(victim.kill)
            if text.count(b"\n") > 60 and chunk.execution is None:
                await follower.executions.cancel(execution.id, by="ann")
            if chunk.execution is not None:
                assert chunk.execution.outcome == "cancelled"
        assert killed
        recorded = (await follower.executions.get(execution.id)).output
    assert text.decode().splitlines() == [f"line {number}" for number in range(text.count(b"\n"))]
    assert recorded.encode() == text


async def test_what_is_printed_faster_than_it_can_be_followed_has_gaps_and_harms_nobody(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "loud")
        chunks = [chunk async for chunk in client.executions.follow(execution.id)]
        assert chunks[-1].execution is not None
        assert chunks[-1].execution.outcome == "completed"
        text = b"".join(chunk.data for chunk in chunks)
        assert text.endswith(b"the end\n")
        assert sum(chunk.gap for chunk in chunks) > 0
        assert len(text) < 4_000_000
        ticks = await client.executions.list("control.each_second", limit=5)
        assert all((each.lateness_ms or 0) < 1_000 for each in ticks)


async def test_after_the_end_what_was_recorded_is_followed_from_any_offset(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "flaky")
        end = await ended(client, execution.id)
        whole = [chunk async for chunk in client.executions.follow(execution.id)]
        rest = [chunk async for chunk in client.executions.follow(execution.id, 8)]
        nothing = [chunk async for chunk in client.executions.follow(execution.id, 10_000)]
    assert b"".join(chunk.data for chunk in whole).decode() == end.output
    assert b"".join(chunk.data for chunk in rest).decode() == end.output[8:]
    assert [chunk.data for chunk in nothing] == [b""]


async def test_every_start_and_end_is_told_once_through_a_controller_that_dies(field: Field) -> None:
    victim = field.cluster.controllers[0]
    told: dict[ExecutionEventKind, list[int]] = {kind: [] for kind in ExecutionEventKind}
    async with AsyncClient(field.addresses) as client, asyncio.timeout(60):
        assert client.current_address == victim.grpc
        killed_after = 0
        async for event in client.executions.watch("control.each_second"):
            told[event.kind].append(event.execution.id)
            if len(told[ExecutionEventKind.ENDED]) == 3 and victim.alive():
                killed_after = event.execution.id
                await asyncio.to_thread(victim.kill)
            if killed_after and len(told[ExecutionEventKind.ENDED]) > 8:
                break
        first = told[ExecutionEventKind.STARTED][0]
        rows = await client.executions.list("control.each_second", after_id=first - 1)
    ran = sorted(row.id for row in rows if row.outcome is not None)
    for ids in told.values():
        assert len(set(ids)) == len(ids)
    assert sorted(told[ExecutionEventKind.STARTED])[: len(ran) - 2] == ran[: len(ran) - 2]
    last = max(told[ExecutionEventKind.ENDED])
    # One that was going on when the watch began has an end to tell, and no start.
    assert sorted(each for each in told[ExecutionEventKind.ENDED] if each >= first) == [
        each for each in ran if each <= last
    ]


def cli(field: Field, *arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cronring.cli.main", *arguments, "--controllers", ",".join(field.addresses)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=field.cluster.environment, check=False, **settings
    )


async def test_the_command_line(field: Field) -> None:
    run: Callable[..., subprocess.CompletedProcess[str]] = lambda *arguments: cli(field, *arguments)  # noqa: E731
    failing = await asyncio.to_thread(run, "jobs", "trigger", "control.flaky", "--wait")
    assert failing.returncode == 1, failing.stderr
    assert failing.stdout.startswith("attempt 1 of ")
    assert "ValueError: the first time" in failing.stdout
    execution_id = next(line.split()[-1] for line in failing.stdout.splitlines() if line.startswith("execution "))
    retried = await asyncio.to_thread(run, "executions", "retry", execution_id, "--wait")
    assert (retried.returncode, retried.stdout.splitlines()[0][:13]) == (0, "attempt 2 of "), retried.stderr
    again = await asyncio.to_thread(run, "executions", "retry", execution_id)
    assert again.returncode == 1
    assert "completed" in again.stderr
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "patient")
    now = await asyncio.to_thread(run, "logs", "control.patient")
    assert now.stdout.startswith("line 0\n"), now.stderr
    assert f"execution {execution.id} of control.patient runs on" in now.stderr
    # By its id: the cancellation may come before the follower has asked.
    following = asyncio.to_thread(run, "logs", "-f", str(execution.id))
    cancelling = asyncio.to_thread(
        run, "executions", "cancel", str(execution.id), "--note", "enough", "--as", "ann", "--wait", "-o", "json"
    )
    followed, cancelled = await asyncio.gather(following, cancelling)
    assert cancelled.returncode == 0, cancelled.stderr
    assert json.loads(cancelled.stdout)["outcome"] == "cancelled"
    assert "it has no tick to come" in cancelled.stderr
    assert "cancelled by ann: enough" in followed.stderr
    late = await asyncio.to_thread(run, "executions", "cancel", execution_id)
    assert late.returncode == 1
    assert "is failed, and only a running one can become cancelled" in late.stderr


async def test_top_draws_one_frame_or_one_after_the_other_until_q(field: Field) -> None:
    async with AsyncClient(field.addresses) as client:
        execution = await field.running(client, "patient")
        once = await asyncio.to_thread(cli, field, "top", "--once")
        assert once.returncode == 0, once.stderr
        assert "controllers (3)" in once.stdout
        assert "control.patient" in once.stdout
        seen = await asyncio.to_thread(on_a_terminal, field)
        assert seen.count("controllers (3)") >= 2, "it is drawn anew"
        assert "control.each_second" in seen
        await client.executions.cancel(execution.id, by="ann")


def on_a_terminal(field: Field) -> str:
    """`cronring top` on a terminal of 80x24, until it has been drawn a few times; then q."""
    own, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "cronring.cli.main", "top", "--interval", "300ms"]
    environment = field.cluster.environment | {"TERM": "xterm", "CRONRING_CONTROLLERS": ",".join(field.addresses)}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen, deadline = "", time.monotonic() + 20
        while seen.count("controllers (3)") < 3 and time.monotonic() < deadline:
            seen += os.read(own, 65_536).decode(errors="replace")
        os.write(own, b"q")
        with contextlib.suppress(OSError):  # Linux: its other end is closed
            while os.read(own, 65_536):
                pass
        assert process.wait(60) == 0
    os.close(own)
    return seen
