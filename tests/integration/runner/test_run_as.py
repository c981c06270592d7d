"""Children of another user than their runner: started, described, stopped, measured and killed like any other."""

import os
from pathlib import Path

import psutil
import pytest

from cronring.runner.describe import DescribeFailed, Describing, read_program
from cronring.runner.run_as import RunAs, find_user
from cronring.schema.execution import Outcome
from tests.integration.runner.conftest import OpenStage
from tests.support.others import USER, python_for_all

MIB = 1 << 20
MODULE = """
import asyncio, os, time
from cronring import cron

@cron("* * * * *")
def who(): print(os.getresuid(), os.getresgid(), os.getgroups(), os.environ["HOME"])

@cron("* * * * *")
async def who_async(): print(os.getresuid())

@cron("* * * * *")
async def blocks(): time.sleep(3_600)

@cron("* * * * *")
def hangs(): time.sleep(3_600)

@cron("* * * * *")
def deaf():
    while True:
        try:
            time.sleep(3_600)
        except BaseException:
            pass

@cron("* * * * *")
def greedy():
    held = []
    if os.fork() == 0:
        while True:
            held.append(b"x" * (1 << 20))
            time.sleep(0.01)
    os.wait()

@cron("* * * * *")
def busy():
    if os.fork() == 0:
        while True:
            pass
    os.wait()

@cron("* * * * *")
def cuts_the_board():
    for fd in os.listdir("/proc/self/fd"):
        try:
            os.ftruncate(int(fd), 0)
        except OSError:
            pass
    time.sleep(0.2)
"""


@pytest.fixture
def nobody() -> RunAs:
    python_for_all()
    return find_user(f"{USER}:{USER}")


async def test_verbs_run_as_it_and_end_as_ever(open_stage: OpenStage, nobody: RunAs) -> None:
    stage = await open_stage(MODULE, python=python_for_all(), run_as=nobody)
    three = f"({USER}, {USER}, {USER})"
    assert (await stage.run("who")).output == f"{three} {three} [{USER}] {nobody.home}\n"
    assert (await stage.run("who_async")).output == f"{three}\n"
    assert (await stage.run("hangs", timeout_s=0.5)).outcome is Outcome.TIMED_OUT
    assert (await stage.run("deaf", timeout_s=0.5)).outcome is Outcome.TIMED_OUT
    blocked = await stage.run("blocks", timeout_s=0.5)
    assert blocked.outcome is Outcome.TIMED_OUT
    assert (await stage.run("who_async")).output == f"{three}\n", "a spare child has taken over"


async def test_its_limits_hold(open_stage: OpenStage, nobody: RunAs) -> None:
    stage = await open_stage(MODULE, python=python_for_all(), run_as=nobody)
    greedy = await stage.run("greedy", memory_limit=80 * MIB)
    assert (greedy.outcome, "in 2 processes" in greedy.error_message) == (Outcome.OUT_OF_MEMORY, True)
    busy = await stage.run("busy", cpu_limit_us=200_000)
    assert busy.outcome is Outcome.OUT_OF_CPU


async def test_no_verb_cuts_what_its_runner_has_mapped(open_stage: OpenStage) -> None:
    """The runner died of SIGBUS, whatever user the verb was."""
    stage = await open_stage(MODULE)
    assert (await stage.run("cuts_the_board")).outcome is Outcome.COMPLETED
    assert (await stage.run("who")).outcome is Outcome.COMPLETED


def test_the_child_that_describes_is_that_user_too(tmp_path: Path, nobody: RunAs) -> None:
    file = tmp_path / "tells.py"
    file.write_text("import os\nraise RuntimeError(f'as {os.getuid()}')\n")
    described = Describing(read_program(file, python_for_all(), "default", nobody)).described()
    assert f"as {USER}" in described.dump["problems"][0]["message"]


def test_an_interpreter_that_this_user_may_not_start_is_named(tmp_path: Path, nobody: RunAs) -> None:
    private = tmp_path / "python"
    private.write_text("#!/bin/sh\n")
    private.chmod(0o700)
    file = tmp_path / "mod.py"
    file.write_text("")
    with pytest.raises(DescribeFailed, match=f"can't be started as {nobody.name}: Permission denied"):
        Describing(read_program(file, str(private), "default", nobody)).described()


async def test_they_end_when_the_runner_closes(open_stage: OpenStage, nobody: RunAs) -> None:
    stage = await open_stage(MODULE, python=python_for_all(), run_as=nobody)
    children = [each for each in psutil.Process().children() if each.uids().real == USER]
    assert children
    await stage.host.close()
    assert not [each for each in children if each.is_running()]
    assert os.getuid() == 0
