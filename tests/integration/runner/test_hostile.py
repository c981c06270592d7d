"""Verbs that reach for the machinery around them: streams, descriptors, the loop, forks. Neighbours don't notice."""

import asyncio
import venv
from pathlib import Path

import pytest

from cronring.schema.execution import Outcome
from tests.integration.runner.conftest import OpenStage, Stage

HEAD = """
import asyncio, logging, os, signal, subprocess, sys, threading, time
from cronring import Context, VerbStopped, cron, every, verb

@cron("* * * * *")
async def noop(): pass

@cron("* * * * *")
def sync_noop(): print("fine")

@cron("* * * * *")
async def neighbour():
    await asyncio.sleep(1)
    print("undisturbed")
"""


async def beside_a_neighbour(stage: Stage, verb: str, outcome: Outcome) -> str:
    """Run `verb` while a neighbour is in the middle of its run; the verb's error message or output."""
    [neighbour] = stage.start("neighbour")
    await stage.run("noop")
    result = await stage.run(verb)
    [beside] = await stage.ended(neighbour)
    assert (beside.outcome, beside.output) == (Outcome.COMPLETED, "undisturbed\n"), beside
    assert result.outcome is outcome, result
    return f"{result.error_message}\n{result.stack}".strip() or result.output


async def test_output_that_never_ends_does_not_hold_the_runner(open_stage: OpenStage) -> None:
    """A sync verb leaves a process behind that writes faster than anybody can read."""
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
def floods():
    subprocess.Popen(["yes"])
    time.sleep(0.2)
"""
    )
    assert (await stage.run("floods")).outcome is Outcome.COMPLETED
    assert (await stage.run("noop")).outcome is Outcome.COMPLETED


async def test_one_huge_print_is_cut_before_it_is_sent(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def prints(): print("é" * 12_000_000 + "end")
"""
    )
    text = await beside_a_neighbour(stage, "prints", Outcome.COMPLETED)
    assert text.startswith("[… more than ")
    assert text.endswith("éend\n")


@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_a_fork_that_returns_ends_there(open_stage: OpenStage, kind: str) -> None:
    stage = await open_stage(
        HEAD
        + f"""
@cron("* * * * *")
{kind} forks():
    pid = os.fork()
    if pid == 0:
        print("in the fork")
        return
    _, status = os.waitpid(pid, 0)
    print("the fork ended with", os.waitstatus_to_exitcode(status))

@cron("* * * * *")
{kind} forks_and_leaves():
    pid = os.fork()
    if pid == 0:
        sys.exit(5)
    _, status = os.waitpid(pid, 0)
    print("the fork ended with", os.waitstatus_to_exitcode(status))
""",
        1,
    )
    assert "the fork ended with 0\n" in await beside_a_neighbour(stage, "forks", Outcome.COMPLETED)
    assert "the fork ended with 5\n" in await beside_a_neighbour(stage, "forks_and_leaves", Outcome.COMPLETED)
    assert (await stage.run("sync_noop")).outcome is Outcome.COMPLETED
    assert not [name for name, _ in stage.lines if name == "child_died"]


async def test_a_fork_that_awaits_ends_there(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def forks():
    pid = os.fork()
    await asyncio.sleep(0)
    assert pid
    os.waitpid(pid, 0)
    print("one")
"""
    )
    assert await beside_a_neighbour(stage, "forks", Outcome.COMPLETED) == "one\n"


async def test_pools_of_forked_processes_work(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
import concurrent.futures, multiprocessing

def square(x):
    sys.stdout.write(f"squaring {x}\\n")
    return x * x

def pool():
    return concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork"))

@cron("* * * * *")
async def shared():
    with pool() as executor:
        loop = asyncio.get_running_loop()
        print(await asyncio.gather(*[loop.run_in_executor(executor, square, x) for x in range(20)]))

@cron("* * * * *")
def alone():
    with pool() as executor:
        print(list(executor.map(square, range(20))))
"""
    )
    squares = str([x * x for x in range(20)])
    assert await beside_a_neighbour(stage, "shared", Outcome.COMPLETED) == squares + "\n"
    alone = await stage.run("alone")
    assert squares in alone.output
    assert "squaring 3\n" in alone.output
    assert not [name for name, _ in stage.lines if name == "child_died"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
async def test_processes_that_are_started_afresh_find_the_sdk(
    open_stage: OpenStage, tmp_path: Path, method: str
) -> None:
    """Under an interpreter that has no cronring installed."""
    await asyncio.to_thread(venv.create, tmp_path / "bare", symlinks=True)
    stage = await open_stage(
        HEAD
        + f"""
import concurrent.futures, multiprocessing

def square(x): return x * x

@cron("* * * * *")
def alone():
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("{method}")) as executor:
        print(list(executor.map(square, range(3))))
""",
        python=str(tmp_path / "bare" / "bin" / "python"),
    )
    assert (await stage.run("alone")).output == "[0, 1, 4]\n"


async def test_nobody_stops_the_shared_loop(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def stops(): asyncio.get_event_loop().stop()

@cron("* * * * *")
async def task_leaves():
    async def leave(): sys.exit(3)
    await asyncio.create_task(leave())

@cron("* * * * *")
async def callback_leaves():
    asyncio.get_running_loop().call_soon(sys.exit, 4)
    await asyncio.sleep(0.1)

@cron("* * * * *")
async def interrupts(): os.kill(os.getpid(), signal.SIGINT)
"""
    )
    await beside_a_neighbour(stage, "stops", Outcome.COMPLETED)
    await beside_a_neighbour(stage, "task_leaves", Outcome.FAILED)
    await beside_a_neighbour(stage, "callback_leaves", Outcome.COMPLETED)
    await beside_a_neighbour(stage, "interrupts", Outcome.FAILED)


async def test_a_thread_that_crashes_is_told_apart_in_the_end(open_stage: OpenStage) -> None:
    """Whose thread it was is unknown: who was there twice has a child of its own, so neighbours live from then on."""
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def crashes(): await asyncio.to_thread(fall)

def fall():
    time.sleep(0.05)  # by now its coroutine is off the CPU
    os._exit(3)
"""
    )
    for _ in range(2):
        [neighbour] = stage.start("neighbour")
        await stage.run("crashes")
        [beside] = await stage.ended(neighbour)
        assert "brought down by: unknown" in beside.error_message
    await beside_a_neighbour(stage, "crashes", Outcome.FAILED)


async def test_an_exception_that_nobody_can_print(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
class Mute(Exception):
    def __str__(self): raise SystemExit(9)
    __repr__ = __str__

Mute.__module__ = None

@cron("* * * * *")
async def fails(): raise Mute

@cron("* * * * *")
def sync_fails(): raise Mute
"""
    )
    for verb in ("fails", "sync_fails"):
        assert "unprintable" in await beside_a_neighbour(stage, verb, Outcome.FAILED)


async def test_groups_show_the_authors_frames_only(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def groups():
    async with asyncio.TaskGroup() as group:
        group.create_task(bad())

async def bad():
    await asyncio.sleep(0)
    raise ValueError("inside")
"""
    )
    result = await stage.run("groups")
    assert result.error_type == "ExceptionGroup"
    assert "in bad" in result.stack
    assert "cronring/child" not in result.stack


async def test_a_sync_verb_leaves_nothing_broken_behind(open_stage: OpenStage) -> None:
    """The child is used again: its streams are whole, and no alarm goes off in somebody else's run."""
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
def replaces(): sys.stdout = None; sys.stderr = object()

@cron("* * * * *")
def closes(): sys.stdout.close()

@cron("* * * * *")
def alarms(): signal.setitimer(signal.ITIMER_REAL, 0.2)

@cron("* * * * *")
def naps():
    time.sleep(0.5)
    print("rested")

@cron("* * * * *")
def closes_descriptors(): os.closerange(0, 21)

@cron("* * * * *")
def closes_output(): os.close(1)
""",
        1,
    )
    for verb in ("replaces", "closes", "closes_descriptors", "closes_output"):
        await stage.run(verb)
        assert (await stage.run("sync_noop")).output == "fine\n", verb
    await stage.run("alarms")
    assert (await stage.run("naps")).output == "rested\n"


@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_a_module_that_replaces_a_stream_at_import(open_stage: OpenStage, kind: str) -> None:
    stage = await open_stage(
        HEAD
        + f"""
class Tee:
    def __init__(self, stream): self.stream = stream
    def write(self, text): return self.stream.write(text.upper())
    def flush(self): self.stream.flush()

sys.stdout.reconfigure(errors="backslashreplace")
sys.stdout = Tee(sys.stdout)

@cron("* * * * *")
{kind} prints(): print("loud")
"""
    )
    assert (await stage.run("prints")).output == "LOUD\n"


@pytest.mark.parametrize("options", ["level=logging.DEBUG, stream=sys.stdout", "level=logging.DEBUG, force=True"])
@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_logging_set_up_by_the_module_is_used(open_stage: OpenStage, kind: str, options: str) -> None:
    stage = await open_stage(
        HEAD
        + f"""
logging.getLogger("x").info("at import")
logging.basicConfig(format="mine %(message)s", {options})

@cron("* * * * *")
{kind} logs(ctx: Context): ctx.log.debug("detail")
"""
    )
    assert (await stage.run("logs")).output == "mine detail\n"


async def test_an_awaitable_that_is_no_coroutine_is_awaited(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
import functools

def in_a_task(function):
    @functools.wraps(function)
    def wrapper():
        return asyncio.ensure_future(function())
    return wrapper

@cron("* * * * *")
@in_a_task
async def later():
    await asyncio.sleep(0.05)
    raise ValueError("seen")
"""
    )
    assert (await stage.run("later")).error_type == "ValueError"


async def test_threads_of_an_async_verb_print_into_its_execution(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def threads():
    await asyncio.get_running_loop().run_in_executor(None, print, "from the executor")
    thread = threading.Thread(target=print, args=("from a thread",))
    thread.start()
    thread.join()
"""
    )
    assert (await stage.run("threads")).output == "from the executor\nfrom a thread\n"
