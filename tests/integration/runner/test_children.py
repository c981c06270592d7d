"""Real child processes, and verbs that behave badly."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cronring.schema.execution import Outcome
from tests.integration.runner.conftest import OpenStage
from tests.support.waiting import TIMEOUT_S

HEAD = """
import asyncio, ctypes, logging, os, subprocess, sys, threading, time
from cronring import Context, VerbStopped, cron, every, verb

@cron("* * * * *")
async def noop(): pass

@cron("* * * * *")
async def sleeper():
    await asyncio.sleep(60)
"""
LINES = """
@cron("* * * * *")
async def lines():
    for i in range(20_000):
        print(f"{i:050d}")
"""


async def test_output_and_logging_are_kept_with_their_execution(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def one(ctx: Context):
    print("printed by", ctx.job)
    await asyncio.sleep(0)
    ctx.log.info("logged")
    logging.getLogger("library").warning("warned")
    await asyncio.to_thread(print, "from a thread")
    await asyncio.create_task(later())
    sys.stderr.write("no newline")

async def later():
    print("from a task")

@cron("* * * * *")
def two(ctx: Context):
    print("sync", ctx.attempt)
    subprocess.run(["echo", "from a subprocess"], check=True)
"""
    )
    ids = stage.start("one", "two", "noop", "one")
    one, two, noop, again = await stage.ended(*ids)
    for result in (one, again):
        assert result.outcome is Outcome.COMPLETED
        lines = result.output.splitlines()
        assert lines[0] == "printed by mod.one"
        assert lines[1].endswith("INFO mod.one: logged")
        assert lines[2].endswith("WARNING library: warned")
        assert lines[3:] == ["from a thread", "from a task", "no newline"]
    assert two.output == "sync 1\nfrom a subprocess\n"
    assert noop.output == ""
    assert one.claimed_at <= one.started_at <= one.ended_at


async def test_an_error_carries_its_type_and_the_authors_frames_only(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def wrong(): raise ValueError("bad \\0 value")

@cron("* * * * *")
def leaves(): sys.exit(3)

@cron("* * * * *")
def wordy(ctx: Context): ctx.report(source="x" * 201)
"""
    )
    wrong = await stage.run("wrong")
    assert (wrong.outcome, wrong.error_type) == (Outcome.FAILED, "ValueError")
    assert "in wrong" in wrong.stack
    assert "cronring/child" not in wrong.stack
    assert "\0" not in wrong.error_message + wrong.stack
    leaves = await stage.run("leaves")
    assert (leaves.outcome, leaves.error_type) == (Outcome.FAILED, "SystemExit")
    wordy = await stage.run("wordy")
    assert "in wordy" in wordy.stack
    assert "cronring/context.py" not in wordy.stack


async def test_a_megabyte_of_output_disturbs_nobody(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + LINES
        + """
@cron("* * * * *")
async def characters():
    for i in range(300_000):
        sys.stdout.write("é")
        if i % 1000 == 0:
            await asyncio.sleep(0)

@cron("* * * * *")
def megabyte(): print("x" * 1_000_000 + "end")
"""
    )
    ids = stage.start("lines", "characters", "megabyte", "noop")
    lines, characters, megabyte, noop = await stage.ended(*ids)
    for result in (lines, characters, megabyte):
        assert result.outcome is Outcome.COMPLETED
        assert 60_000 < len(result.output.encode()) <= 65_536
        assert "bytes of earlier output cut …]\n" in result.output[:80]
    # On a busy machine the runner may not get to read it; then it says so, as the next test has it.
    assert lines.output.endswith((f"{19_999:050d}\n", "before that was read …]\n"))
    assert megabyte.output.endswith("xend\n")
    assert noop.outcome is Outcome.COMPLETED


async def test_output_that_nobody_could_read_is_said_to_be_missing(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + LINES
        + """
@cron("* * * * *")
async def blocks(): time.sleep(4)
"""
    )
    ids = stage.start("lines", "blocks")
    await asyncio.sleep(0)  # they are sent
    time.sleep(1.5)  # noqa: ASYNC251  # as a runner that gets no CPU time: it reads nothing meanwhile
    lines, _ = await stage.ended(*ids)
    assert lines.outcome is Outcome.COMPLETED
    assert not lines.output.endswith(f"{19_999:050d}\n")
    assert lines.output.endswith("before that was read …]\n")


async def test_a_verb_that_leaves_takes_only_those_that_had_begun(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def leave():
    print("last words")
    os._exit(7)
"""
    )
    before = stage.start("sleeper")
    ids = stage.start("noop", "leave", "noop")
    first, leave, after = await stage.ended(*ids)
    [sleeper] = await stage.ended(*before)
    assert first.outcome is Outcome.COMPLETED  # it had ended, although its result had not been sent
    assert (leave.outcome, leave.error_type) == (Outcome.FAILED, "ChildCrashed")
    assert "exit code 7" in leave.error_message
    assert leave.output == "last words\n"
    assert after.outcome is Outcome.COMPLETED  # it had not begun, so the spare child ran it
    assert (sleeper.outcome, sleeper.error_type) == (Outcome.FAILED, "ChildCrashed")
    assert f"mod.leave (execution {ids[1]})" in sleeper.error_message


async def test_a_segfault_names_the_signal_and_isolates_the_verb(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def segfault(): ctypes.string_at(0)

@cron("* * * * *")
def sync_segfault():
    print("before")
    ctypes.string_at(0)
"""
    )
    segfault = await stage.run("segfault")
    assert (segfault.outcome, segfault.error_type) == (Outcome.FAILED, "ChildCrashed")
    assert "SIGSEGV" in segfault.error_message
    assert await stage.logged("verb_isolated")
    # From now on it has a child of its own: the neighbour lives.
    [sleeper] = stage.start("sleeper")
    assert (await stage.run("segfault")).outcome is Outcome.FAILED
    assert (await stage.run("noop")).outcome is Outcome.COMPLETED
    assert sleeper not in stage.results
    sync = await stage.run("sync_segfault")
    assert "SIGSEGV" in sync.error_message
    assert sync.output.startswith("before\n")
    stage.cancel(sleeper)
    [cancelled] = await stage.ended(sleeper)
    assert (cancelled.outcome, cancelled.error_type) == (Outcome.CANCELLED, "Cancelled")


async def test_a_blocked_loop_is_noticed_and_left(open_stage: OpenStage, tmp_path: Path) -> None:
    """The neighbour that had not begun runs elsewhere; the blocking one is allowed to end."""
    gate = tmp_path / "gate"  # which lets it go
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def block():
    while not os.path.exists(GATE):
        time.sleep(0.02)
    print("awake")
"""
        + f"GATE = {str(gate)!r}\n"
    )
    ids = stage.start("noop", "block", "noop")
    first, after = await stage.ended(ids[0], ids[2])
    assert ids[1] not in stage.results
    assert first.outcome is after.outcome is Outcome.COMPLETED
    note = await stage.logged("event_loop_blocked")
    assert note["job"] == "mod.block"
    assert "in block" in str(note["stack"])
    gate.touch()
    [block] = await stage.ended(ids[1])
    assert (block.outcome, block.output) == (Outcome.COMPLETED, "awake\n")
    # Isolated: a neighbour is not even delayed any more.
    gate.unlink()
    [blocked] = stage.start("block")
    assert (await stage.run("noop")).outcome is Outcome.COMPLETED
    assert blocked not in stage.results
    gate.touch()
    await stage.ended(blocked)


async def test_c_code_that_keeps_the_gil_is_killed_at_its_deadline(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def hog(): sum(range(10**12))
"""
    )
    await stage.run("noop")  # a child is there, as the hog has little time
    ids = [*stage.start("noop"), *stage.start("hog", timeout_s=1.5), *stage.start("noop")]
    first, hog, after = await stage.ended(*ids)
    assert first.outcome is after.outcome is Outcome.COMPLETED
    assert hog.outcome is Outcome.TIMED_OUT
    assert "killed" in hog.error_message


async def test_a_child_that_somebody_stops_is_replaced_and_its_runs_fail(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """

@cron("* * * * *")
def sync(): print(os.getpid(), flush=True); time.sleep(60)
@cron("* * * * *")
async def shared(): print(os.getpid(), flush=True); await asyncio.sleep(60)
"""
    )
    runs = stage.start("sync", "shared", timeout_s=60)
    async with asyncio.timeout(TIMEOUT_S):
        while not all(stage.host.held[run].tail for run in runs):
            await asyncio.sleep(0.02)
    for run in runs:
        child = stage.host.held[run].child
        assert child is not None
        os.kill(child.pid, signal.SIGSTOP)
    results = await stage.ended(*runs)
    assert [(each.outcome, each.error_type) for each in results] == [(Outcome.FAILED, "ChildKilled")] * 2
    assert all("SIGSTOP" in each.error_message for each in results)
    assert not any(event == "verb_isolated" for event, _ in stage.lines), "no verb is to blame"
    assert (await stage.run("noop")).outcome is Outcome.COMPLETED


async def test_a_killed_child_names_the_culprit_to_its_neighbours(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def stubborn():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("no")
"""
    )
    await stage.run("noop")  # a child is there, as the stubborn one has little time
    [sleeper] = stage.start("sleeper")
    stubborn = await stage.run("stubborn", timeout_s=1.5)
    assert stubborn.outcome is Outcome.TIMED_OUT
    assert "did not stop within 2s" in stubborn.error_message
    assert stubborn.output == "no\n"
    [neighbour] = await stage.ended(sleeper)
    assert (neighbour.outcome, neighbour.error_type) == (Outcome.FAILED, "ChildKilled")
    assert "mod.stubborn" in neighbour.error_message
    assert (await stage.run("noop")).outcome is Outcome.COMPLETED


async def test_soft_timeouts(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def tidy():
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)
        print("tidied")

@cron("* * * * *")
async def spin():
    while True: pass

@cron("* * * * *")
def sync_tidy():
    try:
        time.sleep(60)
    except VerbStopped:
        print("tidied")
        raise

@cron("* * * * *")
def sync_stubborn():
    while True:
        try: time.sleep(60)
        except BaseException: pass
""",
        sync_children=2,
    )
    await stage.ended(*stage.start("noop", "sync_noop", "sync_noop"))  # children are there, as there is little time
    ids = stage.start("tidy", "sync_tidy", "sync_stubborn", "sync_tidy", timeout_s=2.0)
    tidy, sync_tidy, stubborn, queued = await stage.ended(*ids)
    assert {result.outcome for result in (tidy, sync_tidy, stubborn, queued)} == {Outcome.TIMED_OUT}
    assert (tidy.error_type, tidy.output) == ("TimedOut", "tidied\n")
    assert (sync_tidy.error_type, sync_tidy.output) == ("TimedOut", "tidied\n")
    assert "did not stop" in stubborn.error_message
    assert "waiting for a free child" in queued.error_message
    spin = await stage.run("spin", timeout_s=1.0)
    assert (spin.outcome, spin.error_type) == (Outcome.TIMED_OUT, "TimedOut")
    assert "in spin" in spin.stack


async def test_children_run_what_was_registered_whatever_the_file_says_now(
    open_stage: OpenStage, tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text("")
    stage = await open_stage(
        """
        import helper
        import os
        from cronring import cron

        @cron("* * * * *")
        async def version():
            print("first", helper.__name__)

        @cron("* * * * *")
        async def leave(): os._exit(1)
        """
    )
    (tmp_path / "mod.py").write_text("raise SystemExit('changed')")
    assert (await stage.run("leave")).outcome is Outcome.FAILED
    assert (await stage.run("leave")).outcome is Outcome.FAILED
    assert (await stage.run("version")).output == "first helper\n"


async def test_another_interpreter_sees_nothing_of_ours_but_the_sdk(open_stage: OpenStage, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    create = [str(Path(sys.base_prefix) / "bin" / "python3"), "-m", "venv", "--without-pip", str(tmp_path / "venv")]
    await asyncio.to_thread(subprocess.run, create, check=True)
    stage = await open_stage(
        """
import sys
from cronring import Context, cron

@cron("* * * * *")
async def names(ctx: Context):
    roots = sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
    print(*(root for root in roots if not root.startswith("__")))
    print(sys.prefix)
    print(any("site-packages" in path and not path.startswith(sys.prefix) for path in sys.path))
    for name in ("schema", "controller", "protos", "grpc"):
        try:
            __import__(name)
        except ImportError:
            continue
        print("imported", name)
    print(*sorted(name for name in sys.modules if name.startswith("cronring.") and ".child" not in name))
""",
        python=str(python),
    )
    result = await stage.run("names")
    assert result.output.splitlines() == [
        "cronring mod",
        str(tmp_path / "venv"),
        "False",
        "cronring.context cronring.declare cronring.jobs",
    ]


@pytest.mark.parametrize(("kind", "runs"), [("async def", 1), ("def", 4)])
async def test_killing_the_runner_kills_children_and_what_they_started(tmp_path: Path, kind: str, runs: int) -> None:
    (tmp_path / "mod.py").write_text(
        HEAD
        + f"""
@cron("* * * * *")
{kind} spawn():
    process = subprocess.Popen(["sleep", "600"])
    print(process.pid, os.getpid())
    {"time.sleep(600)" if kind == "def" else "sum(range(10**12))"}
"""
    )
    script = f"""
import asyncio, threading, time
from pathlib import Path
from tests.integration.runner.conftest import Stage

async def main():
    for _ in range(20):  # its threads end one by one, and the one that started the children not last
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    stage = Stage({runs})
    await stage.open(Path({str(tmp_path / "mod.py")!r}), {sys.executable!r}, None)
    spawned = [stage.host.held[run] for run in stage.start(*["spawn"] * {runs})]
    while not all(held.tail for held in spawned):
        await asyncio.sleep(0.01)
    print(*[held.tail.text().strip() for held in spawned], flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert process.stdout is not None
    async with asyncio.timeout(TIMEOUT_S):
        pids = [int(pid) for pid in (await process.stdout.readline()).split()]
    assert len(pids) == 2 * runs
    watches = [os.pidfd_open(pid) for pid in pids]
    loop = asyncio.get_running_loop()
    gone = [asyncio.Event() for _ in pids]
    for watch, event in zip(watches, gone, strict=True):
        loop.add_reader(watch, event.set)
    process.send_signal(signal.SIGKILL)
    async with asyncio.timeout(TIMEOUT_S):
        for event in gone:
            await event.wait()
    await process.wait()
    for watch in watches:
        loop.remove_reader(watch)
        os.close(watch)
