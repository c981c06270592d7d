"""memory_limit and cpu_limit, enforced on real children."""

import asyncio
from typing import Any

import pytest

from cronring.runner.processes import usage_of
from cronring.schema.execution import Outcome, Report
from tests.integration.runner.conftest import OpenStage, Stage
from tests.support.waiting import TIMEOUT_S

MIB = 1 << 20
SOURCE = """
import asyncio, hashlib, os, subprocess, sys, time
from cronring import Context, cron

MIB = 1 << 20
kept = []

def grow(mib, pause=0.01):
    held = []
    for _ in range(mib // 4):
        held.append(bytearray(b"x" * (4 * MIB)))
        time.sleep(pause)
    return held

@cron("* * * * *")
def grows(): grow(2_000)

@cron("* * * * *")
async def grows_async():
    held = []
    while True:
        held.append(bytearray(b"x" * (4 * MIB)))
        await asyncio.sleep(0.01)

@cron("* * * * *")
def modest(): grow(60)

@cron("* * * * *")
async def modest_async(): grow(60)

@cron("* * * * *")
def at_once():
    print("asking")
    bytearray(8 << 30)

@cron("* * * * *")
async def at_once_async(): bytearray(8 << 30)

@cron("* * * * *")
def catches():
    try:
        bytearray(8 << 30)
    except MemoryError:
        print("did without")

@cron("* * * * *")
def by_a_process():
    code = "import time; held = [];\\nwhile True: held.append(bytearray(b'x' * (4 << 20))); time.sleep(0.02)"
    subprocess.run([sys.executable, "-c", code], check=True)

@cron("* * * * *")
def forks_and_shares():
    held = grow(100, 0)
    pids = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            time.sleep(0.6)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)

@cron("* * * * *")
def burns():
    while True: pass

@cron("* * * * *")
async def burns_async():
    while True: await asyncio.sleep(0)

@cron("* * * * *")
def burns_in_c():
    print("begun", flush=True)
    while True: hashlib.pbkdf2_hmac("sha256", b"a", b"b", 50_000_000)

@cron("* * * * *")
def burns_in_c_with_the_gil(): pow(7, 10 ** 9)

@cron("* * * * *")
def burns_in_a_process(): subprocess.run([sys.executable, "-c", "while True: pass"])

@cron("* * * * *")
def sleeps(): time.sleep(1.0)

@cron("* * * * *")
def process_that_ends():
    code = "import time\\nuntil = time.process_time() + 0.3\\nwhile time.process_time() < until: pass"
    subprocess.run([sys.executable, "-c", code], check=True)

@cron("* * * * *")
def keeps(): kept.append(bytearray(b"x" * (80 * MIB)))

@cron("* * * * *")
def leaves_a_process(): print(subprocess.Popen(["sleep", "60"]).pid)

@cron("* * * * *")
def pid(): print(os.getpid())

@cron("* * * * *")
async def pid_async(): print(os.getpid())

@cron("* * * * *")
def ceilings():
    import resource
    print(resource.getrlimit(resource.RLIMIT_DATA)[0], resource.getrlimit(resource.RLIMIT_CPU)[0])
"""


@pytest.fixture
async def stage(open_stage: OpenStage) -> Stage:
    return await open_stage(SOURCE)


def _over_memory(result: Report) -> None:
    assert (result.outcome, result.error_type) == (Outcome.OUT_OF_MEMORY, "MemoryLimit"), result


def _over_cpu(result: Report, limit_s: float) -> None:
    """Soon after, but who looks may have to wait for a core himself: the kernel ends it within two seconds."""
    assert (result.outcome, result.error_type) == (Outcome.OUT_OF_CPU, "CpuLimit"), result
    assert limit_s * 1e6 < (result.cpu_us or 0) < (limit_s + 3) * 1e6


@pytest.mark.parametrize("verb", ["grows", "grows_async", "by_a_process"])
async def test_what_holds_too_much_is_killed(stage: Stage, verb: str) -> None:
    result = await stage.run(verb, memory_limit=128 * MIB)
    _over_memory(result)
    assert " than its memory_limit=128MiB" in result.error_message
    assert 128 * MIB < (result.memory_peak_bytes or 0) < 384 * MIB
    assert result.memory_shared is False
    after = await stage.run(verb.replace("by_a_process", "grows").replace("grows", "modest"), memory_limit=128 * MIB)
    assert after.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("verb", ["at_once", "at_once_async"])
async def test_a_memory_error_is_the_same_outcome(stage: Stage, verb: str) -> None:
    result = await stage.run(verb, memory_limit=128 * MIB)
    _over_memory(result)
    assert "more memory than its memory_limit=128MiB" in result.error_message
    assert f"in {verb}" in result.stack
    assert (await stage.run("catches", memory_limit=128 * MIB)).output == "did without\n"


@pytest.mark.parametrize("verb", ["modest", "modest_async"])
async def test_under_the_limit_it_completes_and_its_peak_is_kept(stage: Stage, verb: str) -> None:
    result = await stage.run(verb, memory_limit=256 * MIB, cpu_limit_us=10_000_000)
    assert result.outcome is Outcome.COMPLETED
    assert 60 * MIB < (result.memory_peak_bytes or 0) < 256 * MIB
    assert result.memory_shared is False


async def test_memory_that_processes_share_counts_once(stage: Stage) -> None:
    result = await stage.run("forks_and_shares", memory_limit=200 * MIB)
    assert result.outcome is Outcome.COMPLETED, result.error_message


@pytest.mark.parametrize(
    "verb", ["burns", "burns_async", "burns_in_c", "burns_in_c_with_the_gil", "burns_in_a_process"]
)
async def test_what_takes_too_much_cpu_is_killed(stage: Stage, verb: str) -> None:
    result = await stage.run(verb, cpu_limit_us=400_000)
    _over_cpu(result, 0.4)
    assert "more than its cpu_limit=400ms" in result.error_message


async def test_sleep_is_no_cpu_time(stage: Stage) -> None:
    result = await stage.run("sleeps", cpu_limit_us=800_000)
    assert result.outcome is Outcome.COMPLETED
    assert (result.cpu_us or 0) < 800_000
    assert result.ended_at - result.started_at > 900_000


async def test_the_cpu_time_of_processes_that_have_ended_counts(stage: Stage) -> None:
    result = await stage.run("process_that_ends", cpu_limit_us=10_000_000)
    assert result.outcome is Outcome.COMPLETED
    assert 280_000 < (result.cpu_us or 0) < 5_000_000
    _over_cpu(await stage.run("process_that_ends", cpu_limit_us=200_000), 0.2)


async def test_runs_beside_it_notice_nothing(stage: Stage) -> None:
    beside = stage.start("sleeps")
    shared = stage.start("pid_async")
    over = stage.start("grows_async", "grows", memory_limit=96 * MIB)
    results = await stage.ended(*beside, *shared, *over)
    assert [result.outcome for result in results] == [
        Outcome.COMPLETED, Outcome.COMPLETED, Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_MEMORY,
    ]  # fmt: skip
    assert (await stage.run("pid_async")).output == results[1].output, "the shared child lives"
    assert not [event for event, _ in stage.lines if event == "verb_isolated"]


@pytest.mark.parametrize("verb", ["pid", "pid_async"])
async def test_one_child_serves_several_in_turn_and_runs_without_limits_share_as_ever(
    open_stage: OpenStage, verb: str
) -> None:
    stage = await open_stage(SOURCE, sync_children=1)
    limits: dict[str, Any] = {"memory_limit": 128 * MIB, "cpu_limit_us": 5_000_000}
    results = await stage.ended(*stage.start(*[verb] * 20, **limits))
    assert len({result.output for result in results}) == 1
    free = await stage.run(verb)
    assert (free.output == results[0].output) is (verb == "pid")


@pytest.mark.parametrize("before", ["keeps", "leaves_a_process"])
async def test_a_child_that_is_worn_out_is_replaced(open_stage: OpenStage, before: str) -> None:
    stage = await open_stage(SOURCE, sync_children=1)
    first = await stage.run("pid")
    left = (await stage.run(before)).output
    assert (await stage.run("pid")).output == first.output
    modest = await stage.run("modest", memory_limit=128 * MIB)
    assert modest.outcome is Outcome.COMPLETED
    assert (await stage.run("pid")).output != first.output
    if left:
        await _gone(int(left))


async def test_a_module_that_is_too_large_itself_says_so(open_stage: OpenStage) -> None:
    stage = await open_stage("held = bytearray(b'x' * (64 << 20))\n" + SOURCE)
    ids = stage.start("pid", "pid_async", "pid", memory_limit=64 * MIB)
    for result in await stage.ended(*ids):
        _over_memory(result)
        assert "its module alone, once imported, holds" in result.error_message
    assert (await stage.run("pid")).outcome is Outcome.COMPLETED


async def test_ceilings_are_there_during_the_run_only(open_stage: OpenStage) -> None:
    stage = await open_stage(SOURCE, sync_children=1)
    before = (await stage.run("ceilings")).output
    data, cpu = map(int, (await stage.run("ceilings", memory_limit=128 * MIB, cpu_limit_us=2_500_000)).output.split())
    assert 256 * MIB < data < 512 * MIB
    assert 3 <= cpu <= 6
    assert (await stage.run("ceilings")).output == before


async def test_the_kernel_ends_what_a_runner_that_stands_still_does_not(open_stage: OpenStage) -> None:
    """Without any look of the runner: its ceiling of CPU time is the child's own."""
    stage = await open_stage(SOURCE, sync_children=1)
    [started] = stage.start("burns", cpu_limit_us=1_000_000)
    stage.host._tick = lambda: None  # type: ignore[method-assign]  # it doesn't look any more
    [result] = await stage.ended(started)
    assert (result.outcome, result.error_type) == (Outcome.OUT_OF_CPU, "CpuLimit")


async def test_a_run_that_was_asked_to_stop_ends_as_that(stage: Stage) -> None:
    [started] = stage.start("burns_in_c", cpu_limit_us=60_000_000)
    async with asyncio.timeout(TIMEOUT_S):
        while stage.host.held[started].tail is None:  # it prints, and goes into C code
            await asyncio.sleep(0.01)
    stage.cancel(started)
    [result] = await stage.ended(started)
    assert result.outcome is Outcome.CANCELLED


async def _gone(pid: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while (usage := usage_of(pid)) is not None and usage.resident_bytes:  # else a zombie, of whoever adopted it
            await asyncio.sleep(0.01)
