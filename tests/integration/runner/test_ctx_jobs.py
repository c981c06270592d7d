"""ctx.jobs in real children: calls go out on the socket, verbs wait for their answers, and stop while they wait."""

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from cronring.runner.core.model import CallAnswer
from cronring.runner.lines import Asked
from cronring.schema.execution import Outcome
from tests.integration.runner.conftest import OpenStage, Stage
from tests.integration.runner.test_told import others

SOURCE = """
    import asyncio, os, threading, time
    from cronring import Context, JobNotFound, JobRefused, JobsUnavailable, VerbStopped, manual

    @manual
    def sync_calls(ctx: Context):
        print(ctx.jobs.create("m.invoice", "c7", cron="0 6 1 * *", payload={"id": 7}, retries=2))
        print(ctx.jobs.run("m.invoice:c7"))
        print(ctx.jobs.get("m.invoice:c7"))

    @manual
    async def async_calls(ctx: Context):
        print(await asyncio.gather(*(ctx.jobs.run(f"m.invoice:c{i}") for i in range(5))))
        print(await ctx.jobs.get("m.invoice:c7"))

    @manual
    def told(ctx: Context):
        for kind in (JobNotFound, JobRefused, JobsUnavailable):
            try:
                ctx.jobs.run("m.invoice:c7")
            except kind as error:
                print(kind.__name__, error.reason, error)

    @manual
    def waits(ctx: Context):
        try:
            ctx.jobs.run("m.invoice:c7")
        except VerbStopped:
            print("stopped in time")
            raise

    @manual
    async def waits_async(ctx: Context):
        try:
            await ctx.jobs.run("m.invoice:c7")
        except asyncio.CancelledError:
            print("stopped in time")
            raise

    @manual
    def threads(ctx: Context):
        keys = []
        def call(number):
            keys.append(ctx.jobs.run(f"m.invoice:c{number}"))
        workers = [threading.Thread(target=call, args=(i,)) for i in range(8)]
        for each in workers: each.start()
        for each in workers: each.join()
        print(sorted(keys))

    @manual
    def large(ctx: Context):
        print(ctx.jobs.run("m.invoice:c7", payload="x" * 250_000))

    @manual
    def too_large(ctx: Context):
        ctx.jobs.run("m.invoice:c7", payload="x" * 270_000)

    kept = []
    calling, told = threading.Event(), threading.Event()

    @manual
    def keeps(ctx: Context):
        kept.append(ctx)
        left = threading.Thread(target=outlives, args=(ctx,), daemon=True)
        left.start()
        calling.wait(20)
        time.sleep(0.3)  # mostly it waits for its answer by then; one that asks later hears the same

    def outlives(ctx):
        calling.set()
        try:
            ctx.jobs.run("m.invoice:c7")  # nobody answers it before the run ends
        except RuntimeError as error:
            kept.append(str(error))
            told.set()

    @manual
    def uses_kept(ctx: Context):
        ctx.jobs.run("m.invoice:c8")
        told.wait(20)
        print(kept[1])
        kept[0].jobs.run("m.invoice:c9")

    @manual
    def forks(ctx: Context):
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                ctx.jobs.run("m.invoice:c7")
            except RuntimeError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.close(write)
        print(os.read(read, 1000).decode())
"""
INFO = {
    "key": "m.invoice:c7", "schedule": "every 1h", "status": "scheduled", "source": "api", "paused": False,
    "next_tick_us": 1_767_225_600_000_000, "payload_json": '{"id":7}', "labels": {"team": "x"}, "template": "",
    "last_outcome": "",
}  # fmt: skip


def done(asked: Asked) -> CallAnswer:
    if asked.method == "get":
        return CallAnswer(json.dumps(INFO))
    request = asked.request
    return CallAnswer(json.dumps(request.get("key") or f"{request['verb']}:{request['name']}"))


async def stage_of(open_stage: OpenStage, answer: Any = done, **options: Any) -> Stage:
    stage = await open_stage(SOURCE, **options)
    stage.answer = answer
    return stage


@pytest.mark.parametrize("python", [sys.executable, *others()])
async def test_a_sync_verb_asks_and_is_answered(open_stage: OpenStage, python: str) -> None:
    stage = await stage_of(open_stage, python=python)
    result = await stage.run("sync_calls")
    assert result.outcome is Outcome.COMPLETED, (result.error_message, result.stack)
    key, again, info = result.output.splitlines()
    assert key == again == "m.invoice:c7"
    assert info.startswith("JobInfo(key='m.invoice:c7', schedule='every 1h'")
    assert "payload={'id': 7}" in info
    first, second, third = stage.asked
    assert [each.number for each in stage.asked] == [1, 2, 3]
    assert first.request == {
        "verb": "m.invoice", "name": "c7", "template": "", "run_now": False, "schedule": "0 6 1 * *", "labels": {},
        "options": {"payload": {"id": 7}, "retries": 2},
    }  # fmt: skip
    assert (second.method, second.request) == ("trigger", {"key": "m.invoice:c7"})
    assert (third.method, third.patience_ms) == ("get", 30_000)


@pytest.mark.parametrize("python", [sys.executable, *others()])
async def test_an_async_verb_awaits_many_at_once(open_stage: OpenStage, python: str) -> None:
    stage = await stage_of(open_stage, python=python)
    result = await stage.run("async_calls")
    assert result.outcome is Outcome.COMPLETED, (result.error_message, result.stack)
    assert "['m.invoice:c0', 'm.invoice:c1', 'm.invoice:c2', 'm.invoice:c3', 'm.invoice:c4']" in result.output
    assert sorted(each.number for each in stage.asked) == [1, 2, 3, 4, 5, 6]


async def test_runs_count_their_calls_each_for_itself(open_stage: OpenStage) -> None:
    stage = await stage_of(open_stage)
    await stage.ended(*stage.start("async_calls", "async_calls", "sync_calls"))
    await stage.run("sync_calls")
    numbers: dict[int, list[int]] = {}
    for each in stage.asked:
        numbers.setdefault(each.execution_id, []).append(each.number)
    assert [sorted(each) for _, each in sorted(numbers.items())] == [
        [*range(1, 7)],
        [*range(1, 7)],
        [1, 2, 3],
        [1, 2, 3],
    ]


async def test_refusals_are_exceptions_that_a_verb_can_catch(open_stage: OpenStage) -> None:
    reasons = iter(["NOT_FOUND", "CONFLICT", "UNAVAILABLE"])
    stage = await stage_of(open_stage, lambda _: CallAnswer(reason=next(reasons), problem="so it is"))
    result = await stage.run("told")
    assert result.output.splitlines() == [
        "JobNotFound NOT_FOUND so it is", "JobRefused CONFLICT so it is", "JobsUnavailable UNAVAILABLE so it is",
    ]  # fmt: skip
    assert result.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("verb", ["waits", "waits_async"])
async def test_a_verb_that_waits_for_an_answer_stops_at_its_deadline(open_stage: OpenStage, verb: str) -> None:
    """It isn't killed for it: it cleans up, and its child serves on."""
    stage = await stage_of(open_stage, lambda _: None)
    result = await stage.run(verb, timeout_s=0.5)
    assert (result.outcome, result.output) == (Outcome.TIMED_OUT, "stopped in time\n")
    stage.answer = done
    assert (await stage.run("sync_calls")).outcome is Outcome.COMPLETED
    assert not [event for event, _ in stage.lines if event == "child_died"]


async def test_an_answer_that_comes_after_the_run_is_nobody_s(open_stage: OpenStage) -> None:
    stage = await stage_of(open_stage, lambda _: None, sync_children=1)
    first = await stage.run("waits", timeout_s=0.3)
    assert first.outcome is Outcome.TIMED_OUT
    stage.answer = done
    result = await stage.run("sync_calls")
    assert result.output.startswith("m.invoice:c7\nm.invoice:c7\n")


async def test_threads_of_a_sync_verb_get_their_own_answers(open_stage: OpenStage) -> None:
    stage = await stage_of(open_stage)
    result = await stage.run("threads")
    assert result.output.strip() == str([f"m.invoice:c{i}" for i in range(8)])


async def test_large_calls_pass_and_too_large_ones_are_told_in_the_verb(open_stage: OpenStage) -> None:
    stage = await stage_of(open_stage)
    assert (await stage.run("large")).output == "m.invoice:c7\n"
    result = await stage.run("too_large")
    assert (result.outcome, result.error_type) == (Outcome.FAILED, "ValueError")
    assert "at most 262144 are passed on" in result.error_message


async def test_what_outlives_a_run_asks_for_nothing_and_reads_nothing_of_the_next(open_stage: OpenStage) -> None:
    stage = await stage_of(open_stage, lambda _: None, sync_children=1)
    assert (await stage.run("keeps")).outcome is Outcome.COMPLETED
    stage.answer = done
    result = await stage.run("uses_kept")
    assert result.output == "ctx.jobs: this run is over; what outlives it can't change jobs in its name\n"
    assert (result.outcome, result.error_type) == (Outcome.FAILED, "RuntimeError")


async def test_a_copy_that_a_verb_has_forked_has_no_runner(open_stage: OpenStage) -> None:
    stage = await stage_of(open_stage)
    result = await stage.run("forks")
    assert "a process that a verb has forked has no runner" in result.output
    assert stage.asked == []


async def test_garbage_in_place_of_a_call_ends_the_child_and_not_the_runner(open_stage: OpenStage) -> None:
    source = """
        import json, os
        from cronring import manual
        @manual
        def lies():
            for fd in range(3, 4096):
                try:
                    os.write(fd, b'{"call": [1, -1, "run", [], 5]}\\n')
                except OSError:
                    pass
            os.read(os.pipe()[0], 1)
        @manual
        def honest(): pass
    """
    stage = await open_stage(source)
    result = await stage.run("lies")
    assert result.outcome is Outcome.FAILED
    assert (await stage.run("honest")).outcome is Outcome.COMPLETED
    assert stage.asked == []


async def test_a_verb_that_asks_for_ever_and_reads_no_answer_is_ended(open_stage: OpenStage) -> None:
    """What it doesn't read must not grow in the runner."""
    source = """
        import os, socket, stat
        from cronring import Context, manual
        @manual
        def floods(ctx: Context):
            fd = next(fd for fd in range(3, 4096) if is_socket(fd))
            os.set_blocking(fd, True)
            line = b'{"call": [%d, 1, "run", {"key": "m.v:x"}, 1000]}\\n' % ctx.execution_id
            while True:
                os.write(fd, line * 100)
        def is_socket(fd):
            try:
                return stat.S_ISSOCK(os.fstat(fd).st_mode)
            except OSError:
                return False
        @manual
        def honest(): pass
    """
    stage = await open_stage(source)
    stage.answer = lambda _: CallAnswer('"m.v:x"')
    result = await stage.run("floods")
    assert (result.outcome, result.error_type) != (Outcome.TIMED_OUT, "TimedOut"), "it was noticed before"
    assert "read no answers" in result.error_message
    assert (await stage.run("honest")).outcome is Outcome.COMPLETED


async def test_the_runner_goes_away_while_a_verb_waits(open_stage: OpenStage) -> None:
    stage = await stage_of(open_stage, lambda _: None)
    (execution_id,) = stage.start("waits")
    async with asyncio.timeout(60):
        while not stage.asked:
            await asyncio.sleep(0.01)
    child = stage.host.held[execution_id].child
    assert child is not None
    await stage.host.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
